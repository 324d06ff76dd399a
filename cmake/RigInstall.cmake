# SPDX-License-Identifier: MIT
# Shared libraries and what is installed. Programs of the build link the folders themselves, statically; the shared
# libraries are for others. What a library exports is the list in cmake/exports/NAME.map and nothing else.

set(RIG_EXPORTS "${CMAKE_CURRENT_LIST_DIR}/exports")
set(RIG_LIBEXECDIR "${CMAKE_INSTALL_LIBEXECDIR}/rig-vfio")

# rig_library(NAME FOLDERS folder ... [PARTS folder ...] [LINKS ...] [REQUIRES ...] HEADERS file ... DESCRIPTION text):
# shared library libNAME.so of the folders named in FOLDERS, whole, and what they need from those named in PARTS.
# LINKS: libraries linked, given one by one, never inherited from the folders: librig_edge must be in a process once.
# REQUIRES: what NAME.pc asks for. Does nothing until all folders exist.
function(rig_library name)
  cmake_parse_arguments(ARG "" "DESCRIPTION" "FOLDERS;PARTS;LINKS;REQUIRES;HEADERS" ${ARGN})
  foreach(folder IN LISTS ARG_FOLDERS ARG_PARTS)
    if(NOT TARGET folder_${folder})
      message(STATUS "${name}: no folder ${folder} yet, not built")
      return()
    endif()
  endforeach()
  set(whole ${ARG_FOLDERS})
  list(TRANSFORM whole REPLACE "(.+)" "$<TARGET_FILE:folder_\\1>")
  set(parts ${ARG_PARTS})
  list(TRANSFORM parts REPLACE "(.+)" "$<TARGET_FILE:folder_\\1>")
  set(targets ${ARG_FOLDERS} ${ARG_PARTS})
  list(TRANSFORM targets PREPEND folder_)

  file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/empty/${name}.c" CONTENT "") # written once, for builds without change
  add_library(${name} SHARED "${CMAKE_BINARY_DIR}/empty/${name}.c")
  add_dependencies(${name} ${targets})
  target_link_libraries(${name} PRIVATE rig_options PUBLIC rig_headers
    PRIVATE -Wl,--whole-archive ${whole} -Wl,--no-whole-archive -Wl,--start-group ${parts} -Wl,--end-group
    ${ARG_LINKS})
  target_link_options(${name} PRIVATE "LINKER:--version-script=${RIG_EXPORTS}/${name}.map")
  if(NOT RIG_SANITIZE)
    target_link_options(${name} PRIVATE "LINKER:-z,defs")
  endif()
  set_target_properties(${name} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0
    LINK_DEPENDS "${RIG_EXPORTS}/${name}.map;${whole};${parts}")
  install(TARGETS ${name} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(FILES ${ARG_HEADERS} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")

  string(JOIN " " requires ${ARG_REQUIRES})
  set(library ${name})
  set(description "${ARG_DESCRIPTION}")
  # From the .pc file's folder, so that cmake --install --prefix and a moved installation work.
  file(RELATIVE_PATH up "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
  configure_file("${CMAKE_SOURCE_DIR}/cmake/library.pc.in" "${CMAKE_BINARY_DIR}/pkgconfig/${name}.pc" @ONLY)
  install(FILES "${CMAKE_BINARY_DIR}/pkgconfig/${name}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
  set_property(GLOBAL APPEND PROPERTY RIG_LIBRARIES ${name})
endfunction()

function(rig_install_libraries)
  set(include "${CMAKE_SOURCE_DIR}/include")
  rig_library(rig_edge FOLDERS edge PARTS base LINKS Threads::Threads
    HEADERS "${include}/rig_edge.h" "${include}/rig_wide.h" DESCRIPTION "The contract between the rig runtime and drivers: shared state")
  rig_library(rig FOLDERS rig PARTS base LINKS rig_edge Threads::Threads REQUIRES rig_edge
    HEADERS "${include}/rig.h" DESCRIPTION "Runtime over drivers of the rig contract")
  rig_library(rig_file FOLDERS io LINKS rig rig_edge Threads::Threads REQUIRES rig
    HEADERS "${include}/rig_file.h" DESCRIPTION "Files as buffers of the rig runtime")
  rig_library(rig_remote_abi FOLDERS remote_abi LINKS rig_edge REQUIRES rig_edge
    HEADERS "${include}/rig_remote_abi.h" DESCRIPTION "What compiled code needs from another machine's devices")
  rig_library(rig_remote FOLDERS remote remote_job PARTS remote_control remote_rail remote_fabric base
    LINKS rig_remote_abi rig_edge PkgConfig::SODIUM PkgConfig::CRYPTO Threads::Threads ${CMAKE_DL_LIBS} REQUIRES rig_remote_abi rig
    HEADERS "${include}/rig_remote.h" DESCRIPTION "Devices of other machines: jobs, proxies and rails")
  rig_library(rig_pci FOLDERS vfio vfio_kernel vfio_user pci PARTS base doctor
    LINKS rig_edge PkgConfig::JSONC ${HUGETLBFS_LIBRARY} Threads::Threads ${CMAKE_DL_LIBS} REQUIRES rig_edge
    HEADERS "${include}/rig_pci.h" "${include}/rig_win.h" "${include}/rig_barrier.h"
    DESCRIPTION "PCI functions through VFIO and vfio-user, with no driver and no runtime")
  rig_library(rig_vfio FOLDERS ring mmu driver boards edu rvx1 open PARTS base fwimage
    LINKS rig_pci rig_edge PkgConfig::SODIUM PkgConfig::LIBELF Threads::Threads ${CMAKE_DL_LIBS}
    REQUIRES rig_pci rig_edge
    HEADERS "${include}/rig_vfio.h" "${include}/rig_edu.h" "${include}/rig_board.h"
    DESCRIPTION "Drivers of PCI functions through VFIO and vfio-user")
endfunction()

# Programs and images, each where it is looked for: programs in bin, what they start or load in libexec/rig-vfio.
function(rig_install_programs)
  if(TARGET rigctl)
    install(TARGETS rigctl RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  endif()
  if(TARGET rvx1-model)
    install(TARGETS rvx1-model RUNTIME DESTINATION "${RIG_LIBEXECDIR}")
  endif()
  if(EXISTS "${CMAKE_SOURCE_DIR}/scripts/rvx1-cc")
    install(PROGRAMS "${CMAKE_SOURCE_DIR}/scripts/rvx1-cc" DESTINATION "${CMAKE_INSTALL_BINDIR}")
  endif()
  if(EXISTS "${CMAKE_SOURCE_DIR}/include/rvx1")
    install(DIRECTORY "${CMAKE_SOURCE_DIR}/include/rvx1" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
      FILES_MATCHING PATTERN "*.h")
  endif()
  foreach(section IN ITEMS 1 3 7)
    file(GLOB pages CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/docs/man/*.${section}")
    install(FILES ${pages} DESTINATION "${CMAKE_INSTALL_MANDIR}/man${section}")
  endforeach()
endfunction()
