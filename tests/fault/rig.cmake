# SPDX-License-Identifier: MIT
rig_test(test_rig_walk SOURCES test_rig_walk.c LINKS test_polled LABEL fault)
