# SPDX-License-Identifier: MIT
# How this project spells its targets. One folder is one target, which exports only its own headers:
# a header of a folder that was not linked is not found.

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(RIG_SANITIZE)
  set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O1 -g1") # half the time of -O2 -g to build, and as good at finding
endif()
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

add_library(rig_options INTERFACE)
target_compile_options(rig_options INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wundef -Wvla -Wmissing-prototypes -Wstrict-prototypes
  $<$<BOOL:${RIG_WERROR}>:-Werror>
  -fno-strict-aliasing)
target_compile_definitions(rig_options INTERFACE _GNU_SOURCE)
if(RIG_FUZZ AND NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "RIG_FUZZ needs clang (libFuzzer): configure with -DCMAKE_C_COMPILER=clang")
endif()
if(RIG_FUZZ)
  target_compile_options(rig_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(RIG_SANITIZE)
  target_compile_options(rig_options INTERFACE -fsanitize=${RIG_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(rig_options INTERFACE -fsanitize=${RIG_SANITIZE})
endif()

# The public headers (include/), which every folder may read.
add_library(rig_headers INTERFACE)
target_include_directories(rig_headers INTERFACE
  "$<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>" "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")

# rig_folder(NAME SOURCES ... [LINKS ...]): the code of the calling folder as static library folder_NAME.
# Its own folder is its include path, handed on to whoever links it.
function(rig_folder name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  add_library(folder_${name} STATIC ${ARG_SOURCES})
  target_include_directories(folder_${name} PUBLIC "${CMAKE_CURRENT_SOURCE_DIR}")
  target_link_libraries(folder_${name} PUBLIC rig_headers ${ARG_LINKS} PRIVATE rig_options)
endfunction()

# rig_program(NAME SOURCES ... [LINKS ...]): a program built from the calling folder.
function(rig_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE rig_headers rig_options ${ARG_LINKS})
endfunction()

# rig_include_areas(): includes every *.cmake of the calling folder, in name order.
macro(rig_include_areas)
  file(GLOB rig_areas CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cmake")
  foreach(rig_area IN LISTS rig_areas)
    include("${rig_area}")
  endforeach()
endmacro()
