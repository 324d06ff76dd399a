# SPDX-License-Identifier: MIT
rig_test(test_driver_times_clock SOURCES test_driver_times_clock.c LINKS folder_driver)
rig_test(test_driver_times SOURCES test_driver_times.c LINKS test_passive)
