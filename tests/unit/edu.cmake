# SPDX-License-Identifier: MIT
# Boards without rings, and the first of them.
rig_test(test_edu_port SOURCES test_edu_port.c LINKS test_fake_edu)
rig_test(test_driver_serial SOURCES test_driver_serial.c LINKS test_support folder_driver folder_vfio_fake)
rig_test(test_edu_rig SOURCES test_edu_rig.c LINKS test_fake_edu folder_rig)
