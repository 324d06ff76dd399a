# SPDX-License-Identifier: MIT
# librig with its hook points (src/rig/hook.h), the test driver and what holds threads there. Instead of test_polled:
# both have librig in them.
include("${CMAKE_SOURCE_DIR}/tests/contract/polled_sources.cmake")
set(held_sources "")
get_target_property(held_names folder_rig SOURCES)
foreach(name IN LISTS held_names)
  list(APPEND held_sources "${CMAKE_SOURCE_DIR}/src/rig/${name}")
endforeach()
add_library(test_held STATIC ${held_sources} ${polled_sources} ${CMAKE_CURRENT_LIST_DIR}/rig_help.c
  ${CMAKE_CURRENT_LIST_DIR}/held.c)
target_compile_definitions(test_held PUBLIC RT_HOOKS)
target_include_directories(test_held PUBLIC "${CMAKE_SOURCE_DIR}/tests/contract" "${CMAKE_SOURCE_DIR}/src/rig")
target_link_libraries(test_held PUBLIC test_support folder_base folder_edge Threads::Threads PRIVATE rig_options)
