# SPDX-License-Identifier: MIT
foreach(target IN ITEMS rail_blob_fuzz rail_note_fuzz sealed_record_fuzz)
  rig_fuzz(${target} SOURCES ${target}.c LINKS folder_remote_rail CORPUS corpus/${target})
  target_include_directories(${target}_corpus PRIVATE ${LIBFABRIC_INCLUDE_DIRS})
  if(TARGET ${target})
    target_include_directories(${target} PRIVATE ${LIBFABRIC_INCLUDE_DIRS})
  endif()
endforeach()
