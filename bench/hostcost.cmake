# SPDX-License-Identifier: MIT
# The runtime's cost in instructions, run by scripts/bench-hostcost. The driver under it is the tests' own.
include("${CMAKE_SOURCE_DIR}/tests/contract/polled_sources.cmake")
rig_program(bench-hostcost SOURCES hostcost.c hostcost_make.c hostcost_ops.c hostcost_threads.c ${polled_sources} LINKS folder_rig)
target_include_directories(bench-hostcost PRIVATE ${CMAKE_SOURCE_DIR}/tests/contract)
