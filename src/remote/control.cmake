# SPDX-License-Identifier: MIT
# The control connection, jobs and the proxy driver.
rig_folder(remote_control SOURCES rmt_wire.c rmt_key.c rmt_pake.c rmt_chan.c rmt_frames.c rmt_work.c LINKS folder_base folder_edge Threads::Threads PkgConfig::SODIUM)
