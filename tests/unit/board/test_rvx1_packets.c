/* SPDX-License-Identifier: MIT */
/* What the RVX-1 port judges and encodes: launches at, under and over each limit, and packets field by
 * field. */
#include "test.h"
#include <errno.h>
#include <string.h>

#include "rvx1.h"

#define PARAMS 24u

static struct rvx1 rvx1;
static struct rig_port port;
static struct rig_launch launch;
static struct {
	struct rig_block block;
	uint8_t params[PARAMS];
} args __attribute__((aligned(16)));
static struct rig_slot slots[2];
static struct rig_run run;
static struct rig_part part;

static int setup(void **state)
{
	(void)state;
	rvx1 = (struct rvx1){.group_threads = 1024, .group_shared = 65536};
	port = (struct rig_port){.state = &rvx1};
	memset(&launch, 0, sizeof(launch));
	memset(&args, 0, sizeof(args));
	args.block = (struct rig_block){.groups = {1, 1, 1}, .threads = {1, 1, 1}};
	slots[0] = (struct rig_slot){.address = 0x10000100000};
	slots[1] = (struct rig_slot){.address = 0x10000200000};
	run = (struct rig_run){.args = &args, .args_bytes = sizeof(args), .slots = slots, .nslots = 2};
	part = (struct rig_part){.kind = RIG_LAUNCH};
	part.u.launch = (struct rig_launch_part){
	        .code = 0x10000900004, .launch = (uintptr_t)&launch, .params = PARAMS};
	return 0;
}

static int check(void)
{
	struct rig_need need;

	return rvx1_check(&port, &part, &run, &need);
}

static void a_launch_at_every_limit_fits(void **state)
{
	(void)state;
	args.block =
	        (struct rig_block){.groups = {UINT32_MAX, 1, 1}, .threads = {1024, 1, 1}, .shared = 65536};
	assert_int_equal(check(), RIG_FITS);
	args.block = (struct rig_block){.groups = {1, UINT32_MAX, 1}, .threads = {8, 8, 16}};
	assert_int_equal(check(), RIG_FITS);
}

static void an_empty_grid_or_group_never_runs(void **state)
{
	unsigned d;

	(void)state;
	for (d = 0; d < 3; d++) {
		args.block.groups[d] = 0;
		assert_int_equal(check(), RIG_NEVER);
		args.block.groups[d] = 1;
		args.block.threads[d] = 0;
		assert_int_equal(check(), RIG_NEVER);
		args.block.threads[d] = 1;
	}
	assert_int_equal(check(), RIG_FITS);
}

static void a_group_over_the_boards_limit_never_runs(void **state)
{
	unsigned d;

	(void)state;
	for (d = 0; d < 3; d++) {
		args.block.threads[d] = 1025;
		assert_int_equal(check(), RIG_NEVER);
		assert_non_null(strstr(rig_error(), "1024"));
		args.block.threads[d] = 1;
	}
	args.block = (struct rig_block){.groups = {1, 1, 1}, .threads = {5, 5, 41}};
	assert_int_equal(check(), RIG_NEVER);
	/* A product that wraps 32 and 64 bits is no small group. */
	args.block = (struct rig_block){.groups = {1, 1, 1}, .threads = {1u << 31, 1u << 31, 4}};
	assert_int_equal(check(), RIG_NEVER);
}

static void the_functions_own_limits_bind(void **state)
{
	(void)state;
	launch.function = (struct rig_board_function){
	        .has_threads = true, .threads = 64, .has_shared = true, .shared = 512};
	args.block.threads[0] = 64;
	args.block.shared = 512;
	assert_int_equal(check(), RIG_FITS);
	args.block.threads[0] = 65;
	assert_int_equal(check(), RIG_NEVER);
	assert_non_null(strstr(rig_error(), "64"));
	args.block.threads[0] = 64;
	args.block.shared = 513;
	assert_int_equal(check(), RIG_NEVER);
	assert_non_null(strstr(rig_error(), "512"));
}

static void shared_memory_over_the_boards_never_runs(void **state)
{
	(void)state;
	args.block.shared = 65537;
	assert_int_equal(check(), RIG_NEVER);
	assert_non_null(strstr(rig_error(), "65536"));
}

static void a_launch_packet_carries_everything_and_slot_addresses(void **state)
{
	const struct rig_ref refs[] = {{0, 1}, {16, 0}};
	uint64_t offset = 8, segment[PARAMS / 8];
	struct rig_place place;
	_Alignas(RVX1_PACKET_BYTES) struct rvx1_packet p; /* as in a ring */
	struct rig_need need;

	(void)state;
	memcpy(args.params + 16, &offset, sizeof(offset));
	args.block = (struct rig_block){.groups = {3, 4, 5}, .threads = {8, 4, 2}, .shared = 100};
	launch.stacks = RVX1_STACK_VA;
	part.u.launch.refs = refs;
	part.u.launch.nrefs = 2;
	assert_int_equal(rvx1_check(&port, &part, &run, &need), RIG_FITS);
	assert_int_equal(need.units, 1);
	assert_int_equal(need.segment_bytes, PARAMS);
	place = (struct rig_place){
	        .units = &p, .segment = segment, .segment_address = 0x10000300000, .value = 1};
	assert_int_equal(rvx1_part(&port, &part, &run, &need, &place), 0);
	assert_int_equal(p.opcode, RVX1_OP_LAUNCH);
	assert_int_equal(p.u.launch.entry, 0x10000900004);
	assert_int_equal(p.u.launch.params, 0x10000300000);
	assert_int_equal(p.u.launch.stacks, RVX1_STACK_VA);
	assert_memory_equal(p.u.launch.grid, args.block.groups, sizeof(p.u.launch.grid));
	assert_memory_equal(p.u.launch.group, args.block.threads, sizeof(p.u.launch.group));
	assert_int_equal(p.u.launch.shared, 100);
	assert_int_equal(p.u.launch.slots, 1024);
	assert_int_equal(segment[0], slots[1].address);
	assert_int_equal(segment[1], 0);
	assert_int_equal(segment[2], slots[0].address + offset);
	/* The caller's bytes stay as they were. */
	assert_int_equal(*(uint64_t *)(void *)args.params, 0);
}

static void a_copy_packet_carries_rows_and_pitches_of_slots(void **state)
{
	struct rig_place place;
	_Alignas(RVX1_PACKET_BYTES) struct rvx1_packet p; /* as in a ring */
	struct rig_need need;

	(void)state;
	part = (struct rig_part){.queue = 1, .kind = RIG_COPY};
	part.u.copy = (struct rig_copy_part){.dst = {.slot = 0, .offset = 5, .pitch = 100},
	        .src = {.slot = 1, .offset = 7, .pitch = 200},
	        .row_bytes = 50,
	        .rows = 3};
	assert_int_equal(rvx1_check(&port, &part, &run, &need), RIG_FITS);
	place = (struct rig_place){.units = &p};
	assert_int_equal(rvx1_part(&port, &part, &run, &need, &place), 0);
	assert_int_equal(p.opcode, RVX1_OP_COPY);
	assert_int_equal(p.u.copy.dst, slots[0].address + 5);
	assert_int_equal(p.u.copy.src, slots[1].address + 7);
	assert_int_equal(p.u.copy.dst_pitch, 100);
	assert_int_equal(p.u.copy.src_pitch, 200);
	assert_int_equal(p.u.copy.row_bytes, 50);
	assert_int_equal(p.u.copy.rows, 3);
}

static void a_copy_whose_rows_wrap_is_refused(void **state)
{
	struct rig_place place;
	_Alignas(RVX1_PACKET_BYTES) struct rvx1_packet p; /* as in a ring */
	struct rig_need need = {.units = 1};

	(void)state;
	part = (struct rig_part){.queue = 1, .kind = RIG_COPY};
	part.u.copy = (struct rig_copy_part){
	        .dst = {.slot = 0, .pitch = 1ull << 40}, .row_bytes = 1, .rows = 1ull << 40, .fill = true};
	place = (struct rig_place){.units = &p};
	assert_int_equal(rvx1_part(&port, &part, &run, &need, &place), -EINVAL);
}

static void words_are_whole_packets_placed_as_given(void **state)
{
	uint32_t words[32], out[32];
	struct rig_place place = {.units = out};
	struct rig_need need;
	unsigned i;

	(void)state;
	for (i = 0; i < 32; i++)
		words[i] = i * 3;
	part = (struct rig_part){.kind = RIG_WORDS};
	part.u.words = (struct rig_words_part){.words = words, .count = 32};
	assert_int_equal(rvx1_check(&port, &part, &run, &need), RIG_FITS);
	assert_int_equal(need.units, 2);
	assert_int_equal(rvx1_part(&port, &part, &run, &need, &place), 0);
	assert_memory_equal(out, words, sizeof(words));
	part.u.words.count = 31;
	assert_int_equal(check(), RIG_NEVER);
	part.u.words.count = 0;
	assert_int_equal(check(), RIG_NEVER);
}

static void steps_become_the_manuals_packets(void **state)
{
	static const struct {
		struct rig_step step;
		struct rvx1_packet packet;
	} cases[] = {
	        {{RIG_STEP_WAIT, 0, 64, 5}, {.opcode = RVX1_OP_WAIT, .u.word = {64, 5, {0}}}},
	        {{RIG_STEP_ORDER, 0, 0, 5}, {.opcode = RVX1_OP_WAIT_VALUE, .u.word = {0, 5, {0}}}},
	        {{RIG_STEP_SIGNAL, 3, 0, 9}, {.opcode = RVX1_OP_SIGNAL, .arg = 3, .u.word = {0, 9, {0}}}},
	        {{RIG_STEP_SEMAPHORE, 3, 0, 9},
	                {.opcode = RVX1_OP_SEMAPHORE, .arg = 3, .u.word = {0, 9, {0}}}},
	        {{RIG_STEP_RELEASE, 0, 0, 7}, {.opcode = RVX1_OP_RELEASE, .u.word = {0, 7, {0}}}},
	        {{RIG_STEP_RELEASE, 0, 128, 7},
	                {.opcode = RVX1_OP_RELEASE, .flags = RVX1_RELEASE_STORE, .u.word = {128, 7, {0}}}},
	        {{RIG_STEP_RING, 0, 4096, 64}, {.opcode = RVX1_OP_RING, .arg = 64, .u.word = {4096, 0, {0}}}},
	        {{RIG_STEP_STAMP, 0, 4096, 0}, {.opcode = RVX1_OP_STAMP, .u.word = {4096, 0, {0}}}},
	        {{RIG_STEP_COUNTERS, 0, 4096, 0}, {.opcode = RVX1_OP_COUNTERS, .u.word = {4096, 0, {0}}}},
	        {{RIG_STEP_NOP, 0, 0, 0}, {.opcode = RVX1_OP_NOP}},
	};
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_Alignas(RVX1_PACKET_BYTES) struct rvx1_packet p; /* as in a ring */

		memset(&p, 0xA5, sizeof(p));
		rvx1_step(&port, &p, &cases[i].step);
		assert_memory_equal(&p, &cases[i].packet, sizeof(p));
	}
}

#define CASE(test) cmocka_unit_test_setup(test, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        CASE(a_launch_at_every_limit_fits),
	        CASE(an_empty_grid_or_group_never_runs),
	        CASE(a_group_over_the_boards_limit_never_runs),
	        CASE(the_functions_own_limits_bind),
	        CASE(shared_memory_over_the_boards_never_runs),
	        CASE(a_launch_packet_carries_everything_and_slot_addresses),
	        CASE(a_copy_packet_carries_rows_and_pitches_of_slots),
	        CASE(a_copy_whose_rows_wrap_is_refused),
	        CASE(words_are_whole_packets_placed_as_given),
	        CASE(steps_become_the_manuals_packets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
