# SPDX-License-Identifier: MIT
# rigctl doctor, bind, reset and regs from outside, on sim and on machines made of files.
if(TARGET test_machine_tree)
  rig_test(test_system_doctor SOURCES test_system_doctor.c LINKS test_system test_machine_tree folder_vfu PkgConfig::JSONC LABEL model
    DEPENDS rigctl rvx1-model firmware)
endif()
