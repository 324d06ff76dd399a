/* SPDX-License-Identifier: MIT */
/* The firmware's packet rules: docs/rvx1.md, section 7.1. */
#include "test.h"
#include <string.h>

#include <rvx1/regs.h>

#include "fw_check.h"

#define MEMORY  RVX1_MIN_MEMORY
#define ADDRESS 0x1000u
#define BUS_END (RVX1_BUS_MASK + 1)

/* Each opcode with every field it has set; `may` has ones where another bit pattern may stand (checked
 * elsewhere). */
struct form {
	union fw_packet good;
	uint64_t may[FW_PACKET_WORDS];
};

#define ARG(bits) ((uint64_t)(bits) << 32)
#define FREE      UINT64_MAX
#define WORD(op, arg_, address_, value_)                                                                     \
	{                                                                                                    \
		.packet = {                                                                                  \
			.opcode = (op),                                                                      \
			.arg = (arg_),                                                                       \
			.u.word = {.address = (address_), .value = (value_)}                                 \
		}                                                                                            \
	}

static const struct form forms[] = {
        {WORD(RVX1_OP_NOP, 0, 0, 0), {0}},
        {WORD(RVX1_OP_WAIT, 0, ADDRESS, 1), {0, 0xFF8, FREE}},
        {WORD(RVX1_OP_STORE, 0, ADDRESS, 1), {0, 0xFF8, FREE}},
        {WORD(RVX1_OP_STAMP, 0, ADDRESS, 0), {0, 0xFF8}},
        {WORD(RVX1_OP_COPY, 0, 1, 2), {0, FREE, FREE, FREE, FREE, FREE, FREE}},
        {WORD(RVX1_OP_FILL, 7, 1, 0), {ARG(0xFF), FREE, 0, FREE, FREE, FREE}},
        {WORD(RVX1_OP_LAUNCH, 0, 1, 2), {0, FREE, FREE, FREE, FREE, FREE, FREE, FREE}},
        {WORD(RVX1_OP_SIGNAL, 5, 0, 1), {ARG(0x3F), 0, FREE}},
        {WORD(RVX1_OP_SEMAPHORE, 5, 0, 1), {ARG(0x3F), 0, FREE}},
        {WORD(RVX1_OP_WAIT_VALUE, 0, 0, 1), {0, 0, FREE}},
        {WORD(RVX1_OP_RELEASE, 0, 0, 1), {RVX1_RELEASE_STORE << 8, 0, FREE}},
        {WORD(RVX1_OP_COUNTERS, 0, ADDRESS, 0), {0, 0xFF8}},
        {WORD(RVX1_OP_RING, 64, ADDRESS, 0), {0, 0xFC0}},
};
#define FORMS (sizeof(forms) / sizeof(*forms))

static bool ok(const union fw_packet *p)
{
	return fw_check_packet(p, MEMORY);
}

static void every_opcode_has_a_form_that_passes(void **state)
{
	(void)state;
	assert_int_equal(FORMS, RVX1_OPCODES - 1);
	for (unsigned i = 0; i < FORMS; i++) {
		assert_int_equal(forms[i].good.packet.opcode, i + 1);
		assert_true(ok(&forms[i].good));
	}
}

/* Any bit outside the fields of a packet, flipped, makes it refused; the opcode's own bits aside. */
static void a_bit_in_a_reserved_field_is_refused(void **state)
{
	(void)state;
	for (unsigned i = 0; i < FORMS; i++)
		for (unsigned bit = 8; bit < 8 * RVX1_PACKET_BYTES; bit++) {
			union fw_packet p = forms[i].good;

			if (forms[i].may[bit / 64] >> bit % 64 & 1)
				continue;
			p.words[bit / 64] ^= 1ull << bit % 64;
			if (p.packet.opcode == RVX1_OP_RING && bit / 32 == 1)
				continue; /* arg: rings of other sizes, below */
			if (bit / 64 == 1 && (forms[i].may[1] & 0xF00))
				continue; /* addresses: below */
			if (ok(&p))
				fail_msg("opcode %u passes with bit %u flipped", i + 1, bit);
		}
}

static void unknown_opcodes_are_refused(void **state)
{
	union fw_packet p = {.words = {0}};

	(void)state;
	assert_false(ok(&p));
	for (unsigned opcode = RVX1_OPCODES; opcode < 256; opcode++) {
		p.packet.opcode = (uint8_t)opcode;
		assert_false(ok(&p));
	}
}

static bool at(unsigned opcode, uint64_t address)
{
	union fw_packet p = WORD((uint8_t)opcode, 0, address, 0);

	if (opcode == RVX1_OP_RELEASE)
		p.packet.flags = RVX1_RELEASE_STORE;
	return ok(&p);
}

static void words_lie_in_memory_to_the_last_and_are_aligned(void **state)
{
	const unsigned opcodes[] = {
	        RVX1_OP_WAIT, RVX1_OP_STORE, RVX1_OP_STAMP, RVX1_OP_RELEASE, RVX1_OP_COUNTERS};

	(void)state;
	for (unsigned i = 0; i < sizeof(opcodes) / sizeof(*opcodes); i++) {
		unsigned op = opcodes[i];
		uint64_t bytes = op == RVX1_OP_COUNTERS ? RVX1_COUNTERS * 8 : 8;

		assert_true(at(op, 0));
		assert_true(at(op, MEMORY - bytes));
		assert_false(at(op, MEMORY - bytes + 8));
		assert_false(at(op, MEMORY));
		assert_false(at(op, ADDRESS + 4));
		assert_false(at(op, UINT64_MAX - 7));
		assert_true(at(op, RVX1_SYSTEM));
		assert_true(at(op, RVX1_SYSTEM | (BUS_END - bytes)));
		assert_false(at(op, RVX1_SYSTEM | (BUS_END - bytes + 8)));
		assert_false(at(op, RVX1_SYSTEM | BUS_END));
		assert_false(at(op, RVX1_CP_REGS));
		assert_false(at(op, RVX1_CP_ENGINES));
		assert_false(at(op, RVX1_CP_REGS | RVX1_SYSTEM));
	}
}

static void release_has_an_address_with_its_flag_only(void **state)
{
	union fw_packet p = WORD(RVX1_OP_RELEASE, 0, ADDRESS, 1);

	(void)state;
	assert_false(ok(&p));
	p.packet.flags = RVX1_RELEASE_STORE;
	assert_true(ok(&p));
	p.packet.u.word.address = 4;
	assert_false(ok(&p));
}

static void rings_are_powers_of_two_whole_and_in_memory(void **state)
{
	(void)state;
	assert_true(fw_check_ring(0, RVX1_MIN_RING_ENTRIES, MEMORY));
	assert_true(fw_check_ring(0, RVX1_MAX_RING_ENTRIES, MEMORY));
	assert_false(fw_check_ring(0, RVX1_MIN_RING_ENTRIES / 2, MEMORY));
	assert_false(fw_check_ring(0, RVX1_MAX_RING_ENTRIES * 2, MEMORY));
	assert_false(fw_check_ring(0, 0, MEMORY));
	assert_false(fw_check_ring(0, 48, MEMORY));
	assert_false(fw_check_ring(32, 64, MEMORY));
	assert_true(fw_check_ring(MEMORY - 16 * RVX1_PACKET_BYTES, 16, MEMORY));
	assert_false(fw_check_ring(MEMORY - 15 * RVX1_PACKET_BYTES, 16, MEMORY));
	assert_true(fw_check_ring(RVX1_SYSTEM | (BUS_END - 16 * RVX1_PACKET_BYTES), 16, MEMORY));
	assert_false(fw_check_ring(RVX1_SYSTEM | (BUS_END - 15 * RVX1_PACKET_BYTES), 16, MEMORY));
	assert_false(fw_check_ring(RVX1_CP_REGS, 16, MEMORY));
}

static void arguments_end_at_their_limits(void **state)
{
	union fw_packet fill = WORD(RVX1_OP_FILL, 255, 1, 0), signal = WORD(RVX1_OP_SIGNAL, 63, 0, 1);

	(void)state;
	assert_true(ok(&fill));
	fill.packet.arg = 256;
	assert_false(ok(&fill));
	assert_true(ok(&signal));
	signal.packet.arg = RVX1_SEMAPHORES;
	assert_false(ok(&signal));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_opcode_has_a_form_that_passes),
	        cmocka_unit_test(a_bit_in_a_reserved_field_is_refused),
	        cmocka_unit_test(unknown_opcodes_are_refused),
	        cmocka_unit_test(words_lie_in_memory_to_the_last_and_are_aligned),
	        cmocka_unit_test(release_has_an_address_with_its_flag_only),
	        cmocka_unit_test(rings_are_powers_of_two_whole_and_in_memory),
	        cmocka_unit_test(arguments_end_at_their_limits),
	};

	return cmocka_run_group_tests_name("firmware: packet rules", tests, NULL, NULL);
}
