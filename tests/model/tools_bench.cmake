# SPDX-License-Identifier: MIT
rig_test(test_tools_bench SOURCES test_tools_bench.c LINKS test_system PkgConfig::JSONC LABEL model
  DEPENDS rigctl rvx1-model firmware test_kernels)
rig_test(test_driver_remap SOURCES test_driver_remap.c LINKS test_system LABEL model
  DEPENDS rvx1-model firmware test_kernels)
