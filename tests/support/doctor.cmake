# SPDX-License-Identifier: MIT
# A machine as a tree of files, for src/doctor and rigctl bind.
if(TARGET folder_doctor)
  add_library(test_machine_tree STATIC machine_tree.c)
  target_include_directories(test_machine_tree PUBLIC "${CMAKE_CURRENT_SOURCE_DIR}")
  target_link_libraries(test_machine_tree PUBLIC folder_doctor PkgConfig::CMOCKA PRIVATE rig_options)
endif()
