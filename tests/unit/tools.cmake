# SPDX-License-Identifier: MIT
rig_test(test_tools_run_args SOURCES test_tools_run_args.c "${CMAKE_SOURCE_DIR}/tools/run_args.c"
  LINKS folder_rig test_support)
target_include_directories(test_tools_run_args PRIVATE "${CMAKE_SOURCE_DIR}/tools")

# The rest of the agent, the rails and what is sent are the test's.
rig_test(test_tools_agent_parcel SOURCES test_tools_agent_parcel.c "${CMAKE_SOURCE_DIR}/tools/agent_parcel.c"
  "${CMAKE_SOURCE_DIR}/tools/agent_peer.c" LINKS folder_remote_control folder_base)
target_include_directories(test_tools_agent_parcel PRIVATE "${CMAKE_SOURCE_DIR}/tools")
target_link_options(test_tools_agent_parcel PRIVATE -Wl,--wrap=rig_rmt_chan_send,--wrap=rig_rmt_post_send)

# When the kernel gives no connection, and how long a wait lasts, are the test's.
rig_test(test_tools_agent_waits SOURCES test_tools_agent_waits.c "${CMAKE_SOURCE_DIR}/tools/agent_served.c"
  "${CMAKE_SOURCE_DIR}/tools/agent_listen.c" LINKS folder_remote_control folder_base)
target_include_directories(test_tools_agent_waits PRIVATE "${CMAKE_SOURCE_DIR}/tools")
target_link_options(test_tools_agent_waits PRIVATE
  -Wl,--wrap=accept4,--wrap=poll,--wrap=rig_cond_wait_ms,--wrap=rig_deadline_passed)
