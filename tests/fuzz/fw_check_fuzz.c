/* SPDX-License-Identifier: MIT */
/* Any bytes as a packet: what the firmware accepts names no word and no ring outside board and system
 * memory. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rvx1/regs.h>

#include "fw_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

#define MEMORY RVX1_MIN_MEMORY

/* The same rule, told another way: the last byte decides. */
static void demand_in_memory(uint64_t address, uint64_t bytes)
{
	uint64_t last = address + bytes - 1;

	if (last < address || address >> 62 != last >> 62)
		abort();
	if (address >> 62 == 0 ? last >= MEMORY : address >> 62 != 1 || (last & ~RVX1_SYSTEM) > RVX1_BUS_MASK)
		abort();
}

static void demand_packet(const struct rvx1_packet *p)
{
	uint64_t address = p->u.word.address;

	switch (p->opcode) {
	case RVX1_OP_WAIT:
	case RVX1_OP_STORE:
	case RVX1_OP_STAMP:
		demand_in_memory(address, 8);
		break;
	case RVX1_OP_RELEASE:
		if (p->flags)
			demand_in_memory(address, 8);
		break;
	case RVX1_OP_COUNTERS:
		demand_in_memory(address, 8 * RVX1_COUNTERS);
		break;
	case RVX1_OP_RING:
		demand_in_memory(address, (uint64_t)p->arg * RVX1_PACKET_BYTES);
		break;
	case RVX1_OP_SIGNAL:
	case RVX1_OP_SEMAPHORE:
		if (p->arg >= RVX1_SEMAPHORES)
			abort();
		break;
	default:
		if (p->opcode == RVX1_OP_INVALID || p->opcode >= RVX1_OPCODES)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	union fw_packet p;

	for (; length >= sizeof(p); bytes += sizeof(p), length -= sizeof(p)) {
		memcpy(&p, bytes, sizeof(p));
		if (fw_check_packet(&p, MEMORY))
			demand_packet(&p.packet);
	}
	return 0;
}
