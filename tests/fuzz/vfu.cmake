# SPDX-License-Identifier: MIT
if(TARGET folder_vfu)
  rig_fuzz(vfu_server_fuzz SOURCES vfu_server_fuzz.c LINKS folder_vfu)
endif()
