# SPDX-License-Identifier: MIT
if(TARGET test_rvx_client)
  foreach(part IN ITEMS cp irq regs)
    rig_test(test_board_${part} SOURCES test_board_${part}.c LINKS test_rvx_client LABEL model)
  endforeach()
  foreach(part IN ITEMS fault work)
    rig_test(test_board_${part} SOURCES test_board_${part}.c LINKS test_rvx_client LABEL model DEPENDS firmware)
  endforeach()
endif()
