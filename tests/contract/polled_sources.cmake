# SPDX-License-Identifier: MIT
# The test driver's files; whoever includes this compiles them for itself.
set(polled_sources)
foreach(part IN ITEMS polled polled_memory polled_code polled_work polled_hot polled_cold polled_times polled_parse)
  list(APPEND polled_sources ${CMAKE_CURRENT_LIST_DIR}/${part}.c)
endforeach()
