# SPDX-License-Identifier: MIT
rig_test(test_driver_walk SOURCES test_driver_walk.c LINKS test_passive LABEL fault DEPENDS kernel_ids)
target_compile_definitions(test_driver_walk PRIVATE KERNEL_IMAGE="${CMAKE_BINARY_DIR}/tests/kernels/ids.elf")
