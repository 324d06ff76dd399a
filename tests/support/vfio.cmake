# SPDX-License-Identifier: MIT
# A function of plain memory in this process.
add_library(test_fake STATIC ${CMAKE_CURRENT_LIST_DIR}/fake.c)
target_include_directories(test_fake PUBLIC ${CMAKE_CURRENT_LIST_DIR})
target_link_libraries(test_fake PUBLIC folder_vfio PRIVATE rig_options)

# A vfio-user device process for tests of the client.
add_library(test_fake_peer STATIC ${CMAKE_CURRENT_LIST_DIR}/fake_peer.c)
target_link_libraries(test_fake_peer PUBLIC test_support folder_vfio_user PRIVATE rig_options)
