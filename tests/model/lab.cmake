# SPDX-License-Identifier: MIT
rig_test(test_lab_sim SOURCES test_lab_sim.c LINKS test_system LABEL model
  DEPENDS lab_device rvx1-model firmware test_kernels)
target_compile_definitions(test_lab_sim PRIVATE "LAB_DEVICE=\"$<TARGET_FILE:lab_device>\"")
