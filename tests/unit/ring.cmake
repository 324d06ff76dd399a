# SPDX-License-Identifier: MIT
foreach(file IN ITEMS ring segment)
  rig_test(test_ring_${file} SOURCES test_ring_${file}.c LINKS folder_ring test_support)
endforeach()
rig_test(test_ring_threads SOURCES test_ring_threads.c LINKS folder_ring test_support)
