# SPDX-License-Identifier: MIT
# A vfio-user device process for tests of the client.
add_library(test_fake_peer STATIC ${CMAKE_CURRENT_LIST_DIR}/fake_peer.c)
target_link_libraries(test_fake_peer PUBLIC test_support PRIVATE rig_options)
