# SPDX-License-Identifier: MIT
foreach(name IN ITEMS open submit buffer image order needs loss fork threads io host staging turn reopen follow host_order)
  rig_test(test_rig_${name} SOURCES test_rig_${name}.c LINKS test_polled LABEL unit)
endforeach()
rig_test(test_rig_profile SOURCES test_rig_profile.c LINKS test_polled PkgConfig::JSONC LABEL unit)
rig_test(test_io_file SOURCES test_io_file.c LINKS test_polled folder_io LABEL unit)
add_library(host_module MODULE host_module.c "${CMAKE_SOURCE_DIR}/src/rig/host_device.c")
target_include_directories(host_module PRIVATE "${CMAKE_SOURCE_DIR}/src/rig" "${CMAKE_SOURCE_DIR}/src/base")
target_link_libraries(host_module PRIVATE rig_headers rig_options $<TARGET_FILE:folder_base>)
add_dependencies(host_module folder_base)
rig_test(test_rig_host_laws SOURCES test_rig_host_laws.c LABEL unit DEPENDS rig-conform host_module)
target_compile_definitions(test_rig_host_laws PRIVATE
  RIG_CONFORM="$<TARGET_FILE:rig-conform>" HOST_MODULE="$<TARGET_FILE:host_module>")
