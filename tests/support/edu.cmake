# SPDX-License-Identifier: MIT
# QEMU's edu device in the process.
add_library(test_fake_edu STATIC ${CMAKE_CURRENT_LIST_DIR}/fake_edu.c)
target_link_libraries(test_fake_edu PUBLIC test_support folder_boards folder_driver test_fake
  PRIVATE rig_options)

# The same as a process, behind a socket.
rig_program(edu-model SOURCES ${CMAKE_CURRENT_LIST_DIR}/edu_model.c LINKS folder_vfu)
