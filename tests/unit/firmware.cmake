# SPDX-License-Identifier: MIT
rig_test(test_firmware_check SOURCES test_firmware_check.c LINKS folder_fwlogic)
rig_test(test_firmware_queue SOURCES test_firmware_queue.c fw_fake.c LINKS folder_fwlogic)
rig_test(test_firmware_engine SOURCES test_firmware_engine.c fw_fake.c LINKS folder_fwlogic)
rig_test(test_firmware_image SOURCES test_firmware_image.c LINKS folder_fwimage folder_firmware)
