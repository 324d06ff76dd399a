# SPDX-License-Identifier: MIT
# The runtime's test driver (tests/contract) with what its tests share.
include("${CMAKE_SOURCE_DIR}/tests/contract/polled_sources.cmake")
add_library(test_polled STATIC ${polled_sources} ${CMAKE_CURRENT_LIST_DIR}/rig_help.c)
target_include_directories(test_polled PUBLIC "${CMAKE_SOURCE_DIR}/tests/contract")
target_link_libraries(test_polled PUBLIC test_support folder_rig PRIVATE rig_options)
