# SPDX-License-Identifier: MIT
# The runtime's test driver.
add_library(test_polled STATIC ${CMAKE_CURRENT_LIST_DIR}/polled.c ${CMAKE_CURRENT_LIST_DIR}/rig_help.c)
target_link_libraries(test_polled PUBLIC test_support folder_rig PRIVATE rig_options)
