# SPDX-License-Identifier: MIT
# The vfio-user server of the model, against a scripted client.
if(TARGET folder_vfu)
  rig_test(test_vfu_parse SOURCES test_vfu_parse.c LINKS folder_vfu)
  foreach(part IN ITEMS session region irq dma)
    rig_test(test_vfu_${part} SOURCES test_vfu_${part}.c test_vfu_client.c LINKS folder_vfu test_support)
  endforeach()
endif()
