/* SPDX-License-Identifier: MIT */
#include "rvx1.h"

static const struct rig_board_id ids[] = {{RVX1_PCI_VENDOR, RVX1_PCI_DEVICE}};

const struct rig_board rvx1_board = {
        .version = RIG_BOARD_VERSION,
        .arch = "rvx1",
        .ids = ids,
        .nids = sizeof(ids) / sizeof(ids[0]),
        .dma_bits = RVX1_SYSTEM_BITS,
        .state_bytes = sizeof(struct rvx1),
        .stages = rvx1_stages,
        .nstages = RVX1_STAGES,
        .step_units = 1,
        .describe = rvx1_describe,
        .poke = rvx1_poke,
        .root = rvx1_root,
        .invalidate = rvx1_invalidate,
        .start_value = rvx1_start_value,
        .enable = rvx1_enable,
        .check = rvx1_check,
        .step = rvx1_step,
        .part = rvx1_part,
        .ring = rvx1_ring,
        .completed = rvx1_completed,
        .failed = rvx1_failed,
        .fault = rvx1_fault,
        .alive = rvx1_alive,
        .arm = rvx1_arm,
        .clock = rvx1_clock,
        .image_bytes = rvx1_image_bytes,
        .image_place = rvx1_image_place,
        .image_find = rvx1_image_find,
        .halt = rvx1_halt,
        .registers = rvx1_registers,
        .nregisters = RVX1_REGISTERS,
};
