# SPDX-License-Identifier: MIT
rig_test(test_driver_submit SOURCES test_driver_submit.c LINKS test_passive)
