# SPDX-License-Identifier: MIT
# The driver, the RVX-1 port, and openers.
rig_test(test_driver_submit SOURCES test_driver_submit.c LINKS test_passive)
rig_test(test_driver_life SOURCES test_driver_life.c LINKS test_passive)
rig_test(test_driver_code SOURCES test_driver_code.c LINKS test_passive test_elf_image)
rig_test(test_rvx1_image SOURCES test_rvx1_image.c LINKS folder_rvx1 folder_driver test_elf_image)
rig_test(test_rvx1_packets SOURCES test_rvx1_packets.c LINKS folder_rvx1 folder_driver)
rig_test(test_open_spec SOURCES test_open_spec.c LINKS folder_open)
rig_test(test_open_opener SOURCES test_open_opener.c LINKS folder_open test_support)
rig_test(test_open_fds SOURCES test_open_fds.c vfio_kernel_fake.c LINKS folder_open folder_rig test_support)
