# SPDX-License-Identifier: MIT
# Jobs with real agents, on loopback.
foreach(part IN ITEMS work)
  rig_test(test_remote_${part} SOURCES test_remote_${part}.c remote_support.c LINKS test_system folder_remote
    LABEL remote TIMEOUT 600 DEPENDS rig-agent rvx1-model firmware test_kernels)
endforeach()
