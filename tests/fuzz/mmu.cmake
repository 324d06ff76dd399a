# SPDX-License-Identifier: MIT
rig_fuzz(mmu_map_fuzz SOURCES mmu_map_fuzz.c LINKS folder_mmu)
foreach(target IN ITEMS mmu_map_fuzz mmu_map_fuzz_corpus)
  if(TARGET ${target})
    target_include_directories(${target} PRIVATE "${CMAKE_SOURCE_DIR}/tests/unit/mmu")
  endif()
endforeach()
