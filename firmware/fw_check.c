/* SPDX-License-Identifier: MIT */
#include "fw_check.h"

#include <rvx1/regs.h>

#define WORD_BYTES   8u
#define BUS_END      (RVX1_BUS_MASK + 1)
#define FILL_MOST    0xFFu
#define USES(n)      (1u << (n)) /* word n of the packet's body may be other than zero */
#define USES_ADDRESS USES(0)
#define USES_VALUE   USES(1)
#define USES_COPY    (USES(0) | USES(1) | USES(2) | USES(3) | USES(4) | USES(5))
#define USES_FILL    (USES(0) | USES(2) | USES(3) | USES(4))
#define USES_ALL     0x7Fu

struct rule {
	uint32_t most_arg;
	uint8_t uses;
	uint8_t flags;    /* those that may be set */
	uint8_t at_words; /* words of memory at the address; 0: it is not checked here */
	bool known;
};

static const struct rule rules[RVX1_OPCODES] = {
        [RVX1_OP_NOP] = {.known = true},
        [RVX1_OP_WAIT] = {.known = true, .uses = USES_ADDRESS | USES_VALUE, .at_words = 1},
        [RVX1_OP_STORE] = {.known = true, .uses = USES_ADDRESS | USES_VALUE, .at_words = 1},
        [RVX1_OP_STAMP] = {.known = true, .uses = USES_ADDRESS, .at_words = 1},
        [RVX1_OP_COPY] = {.known = true, .uses = USES_COPY},
        [RVX1_OP_FILL] = {.known = true, .uses = USES_FILL, .most_arg = FILL_MOST},
        [RVX1_OP_LAUNCH] = {.known = true, .uses = USES_ALL},
        [RVX1_OP_SIGNAL] = {.known = true, .uses = USES_VALUE, .most_arg = RVX1_SEMAPHORES - 1},
        [RVX1_OP_SEMAPHORE] = {.known = true, .uses = USES_VALUE, .most_arg = RVX1_SEMAPHORES - 1},
        [RVX1_OP_WAIT_VALUE] = {.known = true, .uses = USES_VALUE},
        [RVX1_OP_RELEASE] = {.known = true, .uses = USES_ADDRESS | USES_VALUE, .flags = RVX1_RELEASE_STORE},
        [RVX1_OP_COUNTERS] = {.known = true, .uses = USES_ADDRESS, .at_words = RVX1_COUNTERS},
        [RVX1_OP_RING] = {.known = true, .uses = USES_ADDRESS, .most_arg = RVX1_MAX_RING_ENTRIES},
};

bool fw_check_range(uint64_t address, uint64_t bytes, uint64_t memory_bytes)
{
	uint64_t end = memory_bytes;

	if (address & RVX1_SYSTEM) {
		address &= ~RVX1_SYSTEM;
		end = BUS_END;
	}
	return address < end && bytes <= end - address;
}

bool fw_check_ring(uint64_t address, uint32_t entries, uint64_t memory_bytes)
{
	return entries >= RVX1_MIN_RING_ENTRIES && entries <= RVX1_MAX_RING_ENTRIES &&
	       !(entries & (entries - 1)) && address % RVX1_PACKET_BYTES == 0 &&
	       fw_check_range(address, (uint64_t)entries * RVX1_PACKET_BYTES, memory_bytes);
}

static bool check_words(uint64_t address, unsigned words, uint64_t memory_bytes)
{
	return address % WORD_BYTES == 0 && fw_check_range(address, words * WORD_BYTES, memory_bytes);
}

static bool unused_are_zero(const union fw_packet *p, unsigned uses)
{
	uint64_t others = 0;

#pragma GCC unroll 7
	for (unsigned i = 0; i < FW_PACKET_WORDS - 1; i++)
		others |= p->words[1 + i] & ((uint64_t)(uses >> i & 1) - 1);
	return !others;
}

/* RELEASE has an address with its flag only, RING a whole ring. */
static bool check_address(const union fw_packet *p, const struct rule *rule, uint64_t memory_bytes)
{
	uint64_t address = p->packet.u.word.address;

	if (rule->at_words)
		return check_words(address, rule->at_words, memory_bytes);
	if (p->packet.opcode == RVX1_OP_RELEASE)
		return p->packet.flags & RVX1_RELEASE_STORE ? check_words(address, 1, memory_bytes)
		                                            : !address;
	if (p->packet.opcode == RVX1_OP_RING)
		return fw_check_ring(address, p->packet.arg, memory_bytes);
	return true;
}

bool fw_check_packet(const union fw_packet *p, uint64_t memory_bytes)
{
	if (p->packet.opcode >= RVX1_OPCODES)
		return false;
	const struct rule *rule = &rules[p->packet.opcode];

	return rule->known && !p->packet.zero && !(p->packet.flags & ~rule->flags) &&
	       p->packet.arg <= rule->most_arg && unused_are_zero(p, rule->uses) &&
	       check_address(p, rule, memory_bytes);
}
