# SPDX-License-Identifier: MIT
rig_fuzz(rvx1_image_fuzz SOURCES rvx1_image_fuzz.c LINKS folder_rvx1 folder_driver test_elf_image)
