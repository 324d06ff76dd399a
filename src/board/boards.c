/* SPDX-License-Identifier: MIT */
#include "boards.h"

extern const struct rig_board edu_board, rvx1_board;

static const struct rig_board *const boards[] = {
        &rvx1_board,
        &edu_board,
};

const struct rig_board *rig_board_at(unsigned index)
{
	return index < sizeof(boards) / sizeof(boards[0]) ? boards[index] : NULL;
}

static bool drives(const struct rig_board *board, uint16_t vendor, uint16_t device)
{
	uint32_t i;

	for (i = 0; i < board->nids; i++)
		if (board->ids[i].vendor == vendor && board->ids[i].device == device)
			return true;
	return false;
}

const struct rig_board *rig_board_find(uint16_t vendor, uint16_t device)
{
	unsigned i;

	for (i = 0; rig_board_at(i); i++)
		if (drives(rig_board_at(i), vendor, device))
			return rig_board_at(i);
	return NULL;
}
