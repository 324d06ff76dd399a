# SPDX-License-Identifier: MIT
# The driver over a board of plain memory.
add_library(test_passive STATIC ${CMAKE_CURRENT_LIST_DIR}/passive.c)
target_link_libraries(test_passive PUBLIC test_support folder_boards folder_driver test_fake folder_firmware
  PRIVATE rig_options)
