# SPDX-License-Identifier: MIT
rig_fuzz(fw_image_fuzz SOURCES fw_image_fuzz.c LINKS folder_fwimage)
rig_fuzz(fw_check_fuzz SOURCES fw_check_fuzz.c LINKS folder_fwlogic)
