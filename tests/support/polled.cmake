# SPDX-License-Identifier: MIT
# The runtime's test driver.
set(polled_sources)
foreach(part IN ITEMS polled polled_memory polled_code polled_work polled_hot polled_cold)
  list(APPEND polled_sources ${CMAKE_CURRENT_LIST_DIR}/${part}.c)
endforeach()
add_library(test_polled STATIC ${polled_sources} ${CMAKE_CURRENT_LIST_DIR}/rig_help.c)
target_link_libraries(test_polled PUBLIC test_support folder_rig PRIVATE rig_options)
