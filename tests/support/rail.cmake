# SPDX-License-Identifier: MIT
# Two rail engines in one process.
add_library(test_rail_pair STATIC ${CMAKE_CURRENT_LIST_DIR}/rail_pair.c)
target_include_directories(test_rail_pair PUBLIC "${CMAKE_CURRENT_LIST_DIR}" PRIVATE ${LIBFABRIC_INCLUDE_DIRS})
target_link_libraries(test_rail_pair PUBLIC rig_headers folder_remote_rail PkgConfig::CMOCKA PRIVATE rig_options)
