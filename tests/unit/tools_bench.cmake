# SPDX-License-Identifier: MIT
rig_test(test_tools_bench_stat SOURCES test_tools_bench_stat.c "${CMAKE_SOURCE_DIR}/tools/bench_stat.c")
if(RIG_TESTS)
  target_include_directories(test_tools_bench_stat PRIVATE "${CMAKE_SOURCE_DIR}/tools")
endif()
