# SPDX-License-Identifier: MIT
# Two rail engines in one process.
add_library(test_rail_pair STATIC ${CMAKE_CURRENT_LIST_DIR}/rail_pair.c)
target_include_directories(test_rail_pair PUBLIC "${CMAKE_CURRENT_LIST_DIR}" PRIVATE ${LIBFABRIC_INCLUDE_DIRS})
target_link_libraries(test_rail_pair PUBLIC rig_headers folder_remote_rail PkgConfig::CMOCKA PRIVATE rig_options)

# The same over a provider that is late (rail_delay.h). A source and no library: what wraps is named by what it wraps.
add_library(test_rail_delay INTERFACE)
target_sources(test_rail_delay INTERFACE ${CMAKE_CURRENT_LIST_DIR}/rail_delay.c)
target_include_directories(test_rail_delay INTERFACE "${CMAKE_CURRENT_LIST_DIR}" ${LIBFABRIC_INCLUDE_DIRS})
target_link_libraries(test_rail_delay INTERFACE test_rail_pair)
target_compile_definitions(test_rail_delay INTERFACE RAIL_LATE)
foreach(call IN ITEMS rig_conn_write rig_conn_read rig_conn_sleep rig_conn_close rig_rail_raise)
  target_link_options(test_rail_delay INTERFACE "LINKER:--wrap=${call}")
endforeach()
