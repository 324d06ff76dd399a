# SPDX-License-Identifier: MIT
foreach(name IN ITEMS open submit buffer image order loss fork threads io host staging turn)
  rig_test(test_rig_${name} SOURCES test_rig_${name}.c LINKS test_polled LABEL unit)
endforeach()
rig_test(test_rig_profile SOURCES test_rig_profile.c LINKS test_polled PkgConfig::JSONC LABEL unit)
rig_test(test_io_file SOURCES test_io_file.c LINKS test_polled folder_io LABEL unit)
