# SPDX-License-Identifier: MIT
rig_test(test_driver_times_walk SOURCES test_driver_times_walk.c LINKS test_passive LABEL fault)
