# SPDX-License-Identifier: MIT
# Devices of other machines, run by bench/remote.sh beside libfabric's own ping-pong.
rig_program(bench-remote SOURCES remote.c LINKS folder_rig folder_remote)
