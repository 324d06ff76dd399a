# SPDX-License-Identifier: MIT
# The interpreter against qemu-riscv64.
rig_test(test_model_riscv_differential
  SOURCES riscv/test_model_riscv_differential.c riscv/rvgen.c riscv/rvprogram.c riscv/rvprogram_interpreter.c
    riscv/rvprogram_qemu.c riscv/rvvalue.c
  LINKS folder_riscv
  LABEL model)
rig_test(test_model_riscv_traps
  SOURCES riscv/test_model_riscv_traps.c riscv/rvprogram.c riscv/rvprogram_qemu.c riscv/rvvalue.c
  LINKS folder_riscv
  LABEL model)
