# SPDX-License-Identifier: MIT
rig_test(test_rig_held SOURCES test_rig_held.c LINKS test_held LABEL unit)
rig_test(test_rig_held_life SOURCES test_rig_held_life.c LINKS test_held LABEL unit)
rig_test(test_rig_crowd SOURCES test_rig_crowd.c crowd.c crowd_check.c crowd_memory.c crowd_work.c crowd_life.c
  LINKS test_polled LABEL unit)
