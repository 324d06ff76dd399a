# SPDX-License-Identifier: MIT
# The runtime's cost in instructions, run by scripts/bench-hostcost. The driver under it is the tests' own.
set(polled_sources)
foreach(part IN ITEMS polled polled_memory polled_code polled_work polled_hot polled_cold)
  list(APPEND polled_sources ${CMAKE_SOURCE_DIR}/tests/support/${part}.c)
endforeach()
rig_program(bench-hostcost SOURCES hostcost.c ${polled_sources} LINKS folder_rig)
target_include_directories(bench-hostcost PRIVATE ${CMAKE_SOURCE_DIR}/tests/support)
