# SPDX-License-Identifier: MIT
# The function as its users see it runs on the fake; what is particular to vfio-user runs against fake_peer.
foreach(file IN ITEMS parse maps pci window irq dma)
  rig_test(test_vfio_${file} SOURCES "${CMAKE_CURRENT_LIST_DIR}/test_vfio_${file}.c"
    LINKS folder_vfio_fake folder_vfio test_support)
endforeach()
foreach(file IN ITEMS user hostile)
  rig_test(test_vfio_${file} SOURCES "${CMAKE_CURRENT_LIST_DIR}/test_vfio_${file}.c"
    LINKS folder_vfio test_fake_peer test_support)
endforeach()
