# SPDX-License-Identifier: MIT
if(TARGET folder_board)
  foreach(part IN ITEMS clock copier mmu options)
    rig_test(test_board_${part} SOURCES test_board_${part}.c LINKS folder_board)
  endforeach()
  rig_test(test_board_compute SOURCES test_board_compute.c LINKS test_rvx_client)
  rig_test(test_board_life SOURCES test_board_life.c LINKS folder_board test_support)
endif()
