# SPDX-License-Identifier: MIT
# The agent as it is, but for its connection and the engine of rails.
add_library(fuzz_agent INTERFACE)
target_link_libraries(fuzz_agent INTERFACE folder_agent)
foreach(name IN ITEMS chan_accept chan_dial chan_send chan_try_send chan_recv chan_shut chan_free chan_set_silence chan_peer)
  target_link_options(fuzz_agent INTERFACE "-Wl,--wrap=rig_rmt_${name}")
endforeach()
target_link_options(fuzz_agent INTERFACE "-Wl,--wrap=rails_request")
rig_fuzz(agent_session_fuzz SOURCES agent_session_fuzz.c LINKS fuzz_agent)
