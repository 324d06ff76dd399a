# SPDX-License-Identifier: MIT
# Rails over libfabric, which is loaded on first use: its headers are needed here, not its library.
rig_folder(remote_rail SOURCES fabric.c fabric_bell.c fabric_conn.c fabric_link.c fabric_load.c fabric_meet.c fabric_strangers.c
  rail.c rail_blob.c rail_end.c rail_flow.c rail_land.c rail_link.c rail_parcel.c rail_registry.c rail_send.c rail_thread.c
  LINKS folder_base folder_edge folder_remote_abi Threads::Threads ${CMAKE_DL_LIBS})
target_include_directories(folder_remote_rail PRIVATE ${LIBFABRIC_INCLUDE_DIRS})
