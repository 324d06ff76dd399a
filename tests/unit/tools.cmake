# SPDX-License-Identifier: MIT
rig_test(test_tools_run_args SOURCES test_tools_run_args.c "${CMAKE_SOURCE_DIR}/tools/run_args.c"
  LINKS folder_rig test_support)
target_include_directories(test_tools_run_args PRIVATE "${CMAKE_SOURCE_DIR}/tools")
