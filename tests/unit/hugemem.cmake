# SPDX-License-Identifier: MIT
rig_test(test_vfio_hugemem SOURCES test_vfio_hugemem.c LINKS folder_vfio LABEL unit)
target_link_options(test_vfio_hugemem PRIVATE -Wl,--wrap=mmap)
