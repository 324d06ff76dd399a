# SPDX-License-Identifier: MIT
rig_test(test_kernel_cc SOURCES test_kernel_cc.c LINKS PkgConfig::LIBELF ENV "RVX1_CC_SCRIPT=${CMAKE_SOURCE_DIR}/scripts/rvx1-cc")
