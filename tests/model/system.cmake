# SPDX-License-Identifier: MIT
# The whole stack: rigctl, librig, driver, firmware and model (tests/support/system.h).
foreach(part IN ITEMS input loss reopen poller ends socket many hot locked copies memory work load)
  rig_test(test_system_${part} SOURCES test_system_${part}.c LINKS test_system m LABEL model
    DEPENDS rigctl rvx1-model firmware test_kernels)
endforeach()
rig_test(test_system_rigctl SOURCES test_system_rigctl.c LINKS test_system PkgConfig::JSONC LABEL model
  DEPENDS rigctl rvx1-model firmware test_kernels)
rig_test(test_system_examples SOURCES test_system_examples.c LINKS test_system PkgConfig::LIBPNG LABEL model
  DEPENDS rvx1-model firmware example_hello example_filter example_matmul example_timelines
    example_files)
rig_test(test_system_idle SOURCES test_system_idle.c LINKS test_system LABEL model
  DEPENDS rvx1-model firmware test_kernels)
