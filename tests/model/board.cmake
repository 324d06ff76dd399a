# SPDX-License-Identifier: MIT
if(TARGET test_rvx_client)
  rig_test(test_board_work SOURCES test_board_work.c LINKS test_rvx_client LABEL model DEPENDS firmware)
endif()
