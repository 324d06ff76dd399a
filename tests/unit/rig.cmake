# SPDX-License-Identifier: MIT
foreach(name IN ITEMS open submit buffer image order loss fork threads)
  rig_test(test_rig_${name} SOURCES test_rig_${name}.c LINKS test_polled LABEL unit)
endforeach()
