# SPDX-License-Identifier: MIT
add_library(test_elf_image STATIC ${CMAKE_CURRENT_LIST_DIR}/elf_image.c)
target_include_directories(test_elf_image PUBLIC ${CMAKE_CURRENT_LIST_DIR})
target_link_libraries(test_elf_image PUBLIC rig_headers PRIVATE rig_options)
