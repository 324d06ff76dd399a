# SPDX-License-Identifier: MIT
# librig_pci and its example on edu, over vfio-user.
rig_test(test_pci_edu SOURCES test_pci_edu.c LINKS test_system folder_pci LABEL model DEPENDS edu-model example_function)
target_compile_definitions(test_pci_edu PRIVATE "EDU_MODEL=\"$<TARGET_FILE:edu-model>\"" "EXAMPLE=\"$<TARGET_FILE:example_function>\"")
