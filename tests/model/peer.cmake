# SPDX-License-Identifier: MIT
rig_test(test_system_peer SOURCES test_system_peer.c LINKS test_system LABEL model
  DEPENDS rvx1-model firmware test_kernels)
