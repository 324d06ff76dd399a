# SPDX-License-Identifier: MIT
rig_test(test_remote_control SOURCES test_remote_control.c LINKS folder_remote_control LABEL unit)
rig_test(test_remote_job SOURCES test_remote_job.c LINKS folder_remote LABEL unit)
target_link_options(test_remote_job PRIVATE -Wl,--wrap=malloc)
