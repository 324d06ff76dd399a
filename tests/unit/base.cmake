# SPDX-License-Identifier: MIT
foreach(file IN ITEMS bdf bits clock cond range text thread tlsf writable)
  rig_test(test_base_${file} SOURCES test_base_${file}.c LINKS folder_base test_support)
endforeach()
