# SPDX-License-Identifier: MIT
rig_test(test_remote_rail_law SOURCES test_remote_rail_law.c LINKS test_rail_pair LABEL model)
# The same where the kernel lets no process write to another's memory, as in many containers.
rig_test(test_remote_rail_copied SOURCES test_remote_rail_law.c LINKS test_rail_pair LABEL model
  ENV FI_SHM_DISABLE_CMA=1)
# And over a provider that is late.
rig_test(test_remote_rail_delayed SOURCES test_remote_rail_law.c LINKS test_rail_delay LABEL model)
target_compile_definitions(test_remote_rail_delayed PRIVATE RAIL_DELAYED)
