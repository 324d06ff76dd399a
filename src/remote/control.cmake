# SPDX-License-Identifier: MIT
# The control connection, which agents use too; and jobs with the proxy driver.
rig_folder(remote_control
  SOURCES rmt_wire.c rmt_key.c rmt_pake.c rmt_chan.c rmt_post.c rmt_frames.c rmt_work.c rmt_draft.c
  LINKS folder_base folder_edge folder_remote_abi Threads::Threads PkgConfig::SODIUM)
rig_folder(remote
  SOURCES rmt_job.c rmt_connect.c rmt_request.c rmt_reader.c rmt_query.c rmt_clock.c rmt_fork.c
    rmt_rails.c rmt_parcels.c rmt_rail_links.c rmt_rail_windows.c rmt_rail_over.c
    rmt_proxy.c rmt_proxy_call.c rmt_proxy_memory.c rmt_proxy_code.c rmt_proxy_build.c rmt_proxy_room.c rmt_proxy_parcel.c rmt_proxy_send.c rmt_proxy_take.c
  LINKS folder_remote_control folder_remote_rail folder_remote_abi)
