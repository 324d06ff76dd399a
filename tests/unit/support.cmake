# SPDX-License-Identifier: MIT
rig_test(test_support_allocs SOURCES test_support_allocs.c LINKS test_support)
