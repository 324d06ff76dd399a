# SPDX-License-Identifier: MIT
# The whole stack from outside (system.h) and through librig (system_device.h).
add_library(test_system STATIC ${CMAKE_CURRENT_LIST_DIR}/system.c ${CMAKE_CURRENT_LIST_DIR}/system_device.c)
target_compile_definitions(test_system PUBLIC
  SYS_RIGCTL="$<TARGET_FILE:rigctl>" SYS_MODEL="$<TARGET_FILE:rvx1-model>" SYS_BUILD="${CMAKE_BINARY_DIR}" SYS_SOURCE="${CMAKE_SOURCE_DIR}"
  SYS_KERNELS="${CMAKE_BINARY_DIR}/tests/kernels" SYS_FIRMWARE="${CMAKE_BINARY_DIR}/firmware/rvx1-firmware.bin")
target_link_libraries(test_system PUBLIC test_support folder_open folder_rig PRIVATE rig_options)
