# SPDX-License-Identifier: MIT
# The runtime's cost in instructions, run by scripts/bench-hostcost. The driver under it is the tests' own.
rig_program(bench-hostcost SOURCES hostcost.c ${CMAKE_SOURCE_DIR}/tests/support/polled.c LINKS folder_rig)
target_include_directories(bench-hostcost PRIVATE ${CMAKE_SOURCE_DIR}/tests/support)
