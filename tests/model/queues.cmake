# SPDX-License-Identifier: MIT
# Queues, times and faults through the driver's own functions.
foreach(part IN ITEMS queues times)
  rig_test(test_system_${part} SOURCES test_system_${part}.c LINKS test_raw_sim LABEL model
    DEPENDS rigctl rvx1-model firmware test_kernels)
endforeach()
