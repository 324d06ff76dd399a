# SPDX-License-Identifier: MIT
rig_test(test_remote_abi SOURCES test_remote_abi.c LINKS folder_remote_abi LABEL unit)
foreach(name IN ITEMS flow blob)
  rig_test(test_remote_rail_${name} SOURCES test_remote_rail_${name}.c LINKS folder_remote_rail LABEL unit)
endforeach()
foreach(name IN ITEMS ready life link failure parcel)
  rig_test(test_remote_rail_${name} SOURCES test_remote_rail_${name}.c LINKS test_rail_pair LABEL unit)
endforeach()
# The same over a provider that is late.
foreach(name IN ITEMS ready life failure)
  rig_test(test_remote_rail_${name}_delayed SOURCES test_remote_rail_${name}.c LINKS test_rail_delay LABEL unit)
endforeach()
