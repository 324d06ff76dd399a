# SPDX-License-Identifier: MIT
# The whole stack: rigctl, librig, driver, firmware and model (tests/support/system.h).
foreach(part IN ITEMS input loss reopen ends socket many hot copies memory work)
  rig_test(test_system_${part} SOURCES test_system_${part}.c LINKS test_system m LABEL model
    DEPENDS rigctl rvx1-model firmware test_kernels)
endforeach()
# Measures processor time.
rig_test(test_system_idle SOURCES test_system_idle.c LINKS test_system LABEL model SERIAL
  DEPENDS rigctl rvx1-model firmware test_kernels)
