# SPDX-License-Identifier: MIT
rig_test(test_system_profile SOURCES test_system_profile.c LINKS test_system PkgConfig::JSONC LABEL model
  DEPENDS rigctl rvx1-model firmware test_kernels)
