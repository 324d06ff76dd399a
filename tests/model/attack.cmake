# SPDX-License-Identifier: MIT
# What a program may do wrong, or have done to it, keeps its devices or loses them in words.
foreach(part IN ITEMS fork gone memory misuse peer)
  rig_test(test_attack_${part} SOURCES test_attack_${part}.c LINKS test_system LABEL model
    DEPENDS rvx1-model firmware test_kernels)
endforeach()
