# SPDX-License-Identifier: MIT
# src/doctor and rigctl bind on trees of files; each report of users that a tree can show is one of them.
if(TARGET test_machine_tree)
  foreach(file IN ITEMS machine memory function group bars in_use)
    rig_test(test_doctor_${file} SOURCES test_doctor_${file}.c LINKS test_machine_tree)
  endforeach()
  rig_test(test_tools_bind SOURCES test_tools_bind.c "${CMAKE_SOURCE_DIR}/tools/bind.c" LINKS test_machine_tree)
  target_include_directories(test_tools_bind PRIVATE "${CMAKE_SOURCE_DIR}/tools")
  rig_test(test_tools_regs_dump SOURCES test_tools_regs_dump.c "${CMAKE_SOURCE_DIR}/tools/regs_dump.c"
    LINKS folder_rvx1 folder_driver)
  target_include_directories(test_tools_regs_dump PRIVATE "${CMAKE_SOURCE_DIR}/tools")
endif()
