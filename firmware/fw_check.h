/* SPDX-License-Identifier: MIT */
/*
 * Which packets and rings are well formed (docs/rvx1.md, section 7). Pure functions of their arguments:
 * nothing is read but the packet, which must be a copy that the host cannot change. memory_bytes is the
 * board's MEMORY_BYTES.
 */
#ifndef FW_CHECK_H
#define FW_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include <rvx1/packet.h>

#define FW_PACKET_WORDS (RVX1_PACKET_BYTES / 8)

/* A packet and its 64-bit words: the first holds opcode, flags and arg. */
union fw_packet {
	struct rvx1_packet packet;
	uint64_t words[FW_PACKET_WORDS];
};

/* Whether [address, address + bytes) is board memory or system memory. bytes > 0. */
bool fw_check_range(uint64_t address, uint64_t bytes, uint64_t memory_bytes);

bool fw_check_ring(uint64_t address, uint32_t entries, uint64_t memory_bytes);

/* Whether the packet keeps every rule that needs no state. (That a RELEASE exceeds VALUE does; what a COPY,
 * FILL or LAUNCH reaches is the engines' to check.) */
bool fw_check_packet(const union fw_packet *p, uint64_t memory_bytes);

#endif
