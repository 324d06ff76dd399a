/* SPDX-License-Identifier: MIT */
/* Every board that this library drives. */
#ifndef RIG_BOARDS_H
#define RIG_BOARDS_H

#include "rig_board.h"

/* The board that drives functions of this vendor and device; NULL: none. */
const struct rig_board *rig_board_find(uint16_t vendor, uint16_t device);

/* The boards in turn: NULL at the end. */
const struct rig_board *rig_board_at(unsigned index);

#endif
