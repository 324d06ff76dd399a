# SPDX-License-Identifier: MIT
# The driver's devices without librig (raw_sim.h).
add_library(test_raw_sim STATIC ${CMAKE_CURRENT_LIST_DIR}/raw_sim.c)
target_link_libraries(test_raw_sim PUBLIC test_system PRIVATE rig_options)
