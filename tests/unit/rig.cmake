# SPDX-License-Identifier: MIT
foreach(name IN ITEMS open submit buffer image)
  rig_test(test_rig_${name} SOURCES test_rig_${name}.c LINKS test_polled LABEL unit)
endforeach()
