# SPDX-License-Identifier: MIT
rig_test(test_remote_control SOURCES test_remote_control.c LINKS folder_remote_control LABEL unit)
