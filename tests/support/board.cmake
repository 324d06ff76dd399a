# SPDX-License-Identifier: MIT
# A client of the reference board, for its tests.
if(TARGET folder_board)
  add_library(test_rvx_client STATIC ${CMAKE_CURRENT_LIST_DIR}/rvx_client.c ${CMAKE_CURRENT_LIST_DIR}/rvx_client_work.c)
  target_include_directories(test_rvx_client PUBLIC "${CMAKE_CURRENT_LIST_DIR}")
  target_compile_definitions(test_rvx_client PRIVATE RVX_MODEL_PROGRAM="$<TARGET_FILE:rvx1-model>")
  target_link_libraries(test_rvx_client PUBLIC folder_board PkgConfig::CMOCKA Threads::Threads PRIVATE rig_options)
  add_dependencies(test_rvx_client rvx1-model)
endif()
