# SPDX-License-Identifier: MIT
foreach(target IN ITEMS rmt_work_fuzz rmt_frames_fuzz)
  rig_fuzz(${target} SOURCES ${target}.c LINKS folder_remote_control CORPUS corpus/${target})
endforeach()
