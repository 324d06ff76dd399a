# SPDX-License-Identifier: MIT
foreach(file IN ITEMS atomic bus csr fp mem run)
  rig_test(test_riscv_${file} SOURCES test_riscv_${file}.c riscv_machine.c LINKS folder_riscv Threads::Threads)
endforeach()
