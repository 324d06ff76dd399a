# SPDX-License-Identifier: MIT
# The kernel's VFIO, on a scripted kernel and a tree of sysfs files.
foreach(file IN ITEMS open explain dma irq sysfs)
  rig_test(test_vfio_kernel_${file} SOURCES "${CMAKE_CURRENT_LIST_DIR}/test_vfio_kernel_${file}.c"
    "${CMAKE_CURRENT_LIST_DIR}/vfio_kernel_fake.c" "${CMAKE_CURRENT_LIST_DIR}/vfio_kernel_bench.c" LINKS folder_vfio test_support)
endforeach()
rig_test(test_vfio_kernel_parse SOURCES "${CMAKE_CURRENT_LIST_DIR}/test_vfio_kernel_parse.c" LINKS folder_vfio)
