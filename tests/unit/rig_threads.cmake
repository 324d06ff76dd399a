# SPDX-License-Identifier: MIT
rig_test(test_rig_held SOURCES test_rig_held.c LINKS test_held LABEL unit)
rig_test(test_rig_held_life SOURCES test_rig_held_life.c LINKS test_held LABEL unit)
