# SPDX-License-Identifier: MIT
rig_test(test_vfio_open SOURCES "${CMAKE_CURRENT_LIST_DIR}/test_vfio_open.c"
  LINKS test_fake test_fake_peer test_support LABEL fault)
