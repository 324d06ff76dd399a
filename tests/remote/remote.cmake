# SPDX-License-Identifier: MIT
# Jobs with real agents, on loopback.
foreach(part IN ITEMS strangers connect work failure fake kill rails tools times wipe)
  rig_test(test_remote_${part} SOURCES test_remote_${part}.c remote_support.c remote_relay.c LINKS test_system folder_remote
    LABEL remote TIMEOUT 1800 DEPENDS rig-agent rigctl example_blocks rvx1-model firmware test_kernels)
endforeach()

# An agent in the test's process, with test drivers, and controllers that say whatever a test wants.
foreach(part IN ITEMS uses links code memory order rails)
  rig_test(test_agent_${part} SOURCES test_agent_${part}.c agent_inside.c LINKS test_polled folder_agent LABEL remote TIMEOUT 600)
endforeach()
target_link_options(test_agent_order PRIVATE -Wl,--wrap=rails_fail)

rig_test(test_agent_queue SOURCES test_agent_queue.c LINKS folder_agent PkgConfig::CMOCKA LABEL remote)

# An agent of test drivers as a process.
rig_program(polled-agent SOURCES polled_agent.c LINKS test_polled folder_agent PkgConfig::CMOCKA)
foreach(part IN ITEMS word errors)
  rig_test(test_remote_${part} SOURCES test_remote_${part}.c remote_support.c LINKS test_polled test_system folder_remote
    LABEL remote DEPENDS polled-agent)
endforeach()

# Proxies under the laws of the contract. The program has librig_edge's functions.
add_library(remote_conform MODULE remote_conform.c)
target_include_directories(remote_conform PRIVATE "${CMAKE_SOURCE_DIR}/src/remote/job" "${CMAKE_SOURCE_DIR}/src/remote/proxy" "${CMAKE_SOURCE_DIR}/src/remote/rail" "${CMAKE_SOURCE_DIR}/src/remote/control" "${CMAKE_SOURCE_DIR}/tests/contract" "${CMAKE_BINARY_DIR}/tests/contract/generated")
target_link_libraries(remote_conform PRIVATE rig_headers rig_options rig_edge
  $<TARGET_FILE:folder_remote> $<TARGET_FILE:folder_remote_job> $<TARGET_FILE:folder_remote_rail> $<TARGET_FILE:folder_remote_fabric>
  $<TARGET_FILE:folder_remote_abi> $<TARGET_FILE:folder_remote_control>
  $<TARGET_FILE:folder_base> PkgConfig::SODIUM PkgConfig::CRYPTO Threads::Threads ${CMAKE_DL_LIBS})
add_dependencies(remote_conform folder_remote rig-conform)
set_target_properties(remote_conform PROPERTIES PREFIX "")

# The same with two agents and the library's controller.
foreach(part IN ITEMS parcels first)
  rig_test(test_agent_${part} SOURCES test_agent_${part}.c agent_inside.c LINKS test_polled test_system folder_agent folder_remote
    LABEL remote TIMEOUT 600)
endforeach()
target_link_options(test_agent_first PRIVATE -Wl,--wrap=rig_rmt_chan_send)

# Peers that lie.
foreach(part IN ITEMS controller agent path)
  rig_test(test_hostile_${part} SOURCES hostile/test_hostile_${part}.c hostile/liar.c hostile/liar_rails.c remote_support.c remote_relay.c LINKS test_system folder_remote
    LABEL remote TIMEOUT 1800 DEPENDS rig-agent rvx1-model firmware test_kernels)
  target_include_directories(test_hostile_${part} PRIVATE "${CMAKE_CURRENT_LIST_DIR}" "${CMAKE_CURRENT_LIST_DIR}/hostile")
endforeach()
