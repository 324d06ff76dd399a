# SPDX-License-Identifier: MIT
rig_fuzz(vfio_client_fuzz SOURCES "${CMAKE_CURRENT_LIST_DIR}/vfio_client_fuzz.c" LINKS folder_vfio_user
  CORPUS "${CMAKE_CURRENT_LIST_DIR}/corpus/vfio_client_fuzz")
