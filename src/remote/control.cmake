# SPDX-License-Identifier: MIT
# The control connection, jobs and the proxy driver.
rig_folder(remote_control SOURCES rmt_wire.c LINKS folder_base folder_edge Threads::Threads PkgConfig::SODIUM)
