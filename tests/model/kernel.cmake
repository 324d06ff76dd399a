# SPDX-License-Identifier: MIT
# The tests' kernels on the board with the project's firmware.
if(TARGET test_rvx_client)
  foreach(test IN ITEMS test_kernel_good test_kernel_bad)
    rig_test(${test} SOURCES ${test}.c kernel_image.c LINKS test_rvx_client m LABEL model
      DEPENDS firmware test_kernels)
  endforeach()
endif()
