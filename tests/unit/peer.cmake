# SPDX-License-Identifier: MIT
# Memory that one device lends to others. The kernel's count of a dma-buf's references is the test's.
rig_test(test_driver_peer SOURCES test_driver_peer.c LINKS test_passive test_support)
target_link_options(test_driver_peer PRIVATE -Wl,--wrap=rig_dmabuf_is_shared)
rig_test(test_vfio_peer SOURCES test_vfio_peer.c LINKS folder_vfio_fake folder_vfio test_support)
