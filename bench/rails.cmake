# SPDX-License-Identifier: MIT
# A rail between two processes, run by bench/rails.sh beside libfabric's own ping-pong.
rig_program(bench-rails SOURCES rails.c LINKS folder_remote_rail)
