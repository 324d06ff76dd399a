# SPDX-License-Identifier: MIT
foreach(name IN ITEMS error words)
  rig_test(test_edge_${name} SOURCES test_edge_${name}.c LINKS test_support folder_edge LABEL unit)
endforeach()
