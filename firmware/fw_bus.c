/* SPDX-License-Identifier: MIT */
#include "fw.h"
#include "fw_io.h"

#define BUS_ERROR   (RVX1_CP_ENGINES + RVX1_BUS_ERROR)
#define BUS_ADDRESS (RVX1_CP_ENGINES + RVX1_BUS_ADDRESS)

/* Whether system memory answered since the last call (section 5.4). */
static bool answered(struct fw *fw, const struct fw_queue *q)
{
	uint32_t access = fw_load32(BUS_ERROR);

	if (!access)
		return true;
	fw_report_packet_fault(fw, q, RVX1_FAULT_BUS, fw_load64(BUS_ADDRESS), access);
	fw_store32(BUS_ERROR, 0);
	return false;
}

bool fw_bus_load(struct fw *fw, const struct fw_queue *q, uint64_t address, uint64_t *word)
{
	*word = fw_load64(address);
	return !(address & RVX1_SYSTEM) || answered(fw, q);
}

bool fw_bus_load_packet(struct fw *fw, struct fw_queue *q, uint64_t address)
{
#pragma GCC unroll 8
	for (unsigned i = 0; i < FW_PACKET_WORDS; i++)
		q->packet.words[i] = fw_load64(address + 8 * i);
	return !(address & RVX1_SYSTEM) || answered(fw, q);
}

bool fw_bus_store(
        struct fw *fw, const struct fw_queue *q, uint64_t address, const uint64_t *words, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		fw_store64(address + 8 * i, words[i]);
	fw->stirred = true;
	return !(address & RVX1_SYSTEM) || answered(fw, q);
}
