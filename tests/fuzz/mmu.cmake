# SPDX-License-Identifier: MIT
foreach(target IN ITEMS mmu_walk_fuzz mmu_map_fuzz)
  rig_fuzz(${target} SOURCES ${target}.c LINKS folder_mmu CORPUS corpus/${target})
  target_include_directories(${target}_corpus PRIVATE "${CMAKE_SOURCE_DIR}/tests/unit/mmu")
  if(TARGET ${target})
    target_include_directories(${target} PRIVATE "${CMAKE_SOURCE_DIR}/tests/unit/mmu")
  endif()
endforeach()
