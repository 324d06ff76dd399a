# SPDX-License-Identifier: MIT
foreach(file IN ITEMS format space model va)
  rig_test(test_mmu_${file} SOURCES test_mmu_${file}.c LINKS folder_mmu test_support)
endforeach()
