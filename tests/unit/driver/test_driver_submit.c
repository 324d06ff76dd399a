/* SPDX-License-Identifier: MIT */
/*
 * What the driver places on the rings, judged by running it: a small executor of packets, whose queues take
 * turns at random, stands for the device and logs what each part did.
 */
#include "test.h"
#include <stdlib.h>
#include <string.h>

#include "allocs.h"
#include "boards.h"
#include "draw.h"
#include "passive.h"

#define QUEUES    2u
#define COMPUTE   0u
#define COPIER    1u
#define MAX_PARTS 12u
#define LOG       65536u
#define TAG_PARTS 16u /* tags of a value's parts: value * TAG_PARTS + part */

static struct passive t;
static uint8_t scratch[MAX_PARTS * RIG_SCRATCH] __attribute__((aligned(16)));
static uint64_t seed;

static uint32_t draw(uint32_t below)
{
	return test_draw(&seed, below);
}

/* ---- The executor ---- */

static struct executor {
	uint64_t read[QUEUES];
	uint64_t ring[QUEUES]; /* processor address */
	uint64_t entries[QUEUES];
	uint64_t semaphore[RVX1_SEMAPHORES];
	uint64_t value;
	uint64_t log[LOG];
	unsigned logged;
} x;

static void executor_init(uint64_t start)
{
	uint32_t q;

	memset(&x, 0, sizeof(x));
	for (q = 0; q < QUEUES; q++) {
		const uint8_t *regs = t.regs + RVX1_QUEUE_BASE + q * RVX1_QUEUE_PITCH;
		uint32_t entries;

		memcpy(&x.ring[q], regs + RVX1_QUEUE_RING, 8);
		memcpy(&entries, regs + RVX1_QUEUE_ENTRIES, 4);
		x.entries[q] = entries;
	}
	x.value = start;
}

static struct rvx1_packet packet_at(uint32_t q, uint64_t index)
{
	struct rvx1_packet packet;

	memcpy(&packet, t.memory + x.ring[q] + index % x.entries[q] * RVX1_PACKET_BYTES, sizeof(packet));
	return packet;
}

static uint64_t word_at(uint64_t address)
{
	uint64_t value;

	assert_true(address & RVX1_SYSTEM);
	assert_int_equal(rig_fake_dma_read(t.fake, address & RVX1_BUS_MASK, &value, sizeof(value)), 0);
	return value;
}

static void log_tag(uint64_t tag)
{
	assert_true(x.logged < LOG);
	x.log[x.logged++] = tag;
}

/* Runs the queue's next packet: false if it waits or there is none. */
static bool execute(uint32_t q)
{
	struct rvx1_packet p;

	if (x.read[q] == passive_written(&t, q))
		return false;
	p = packet_at(q, x.read[q]);
	switch (p.opcode) {
	case RVX1_OP_NOP:
		break;
	case RVX1_OP_WAIT:
		if (word_at(p.u.word.address) < p.u.word.value)
			return false;
		break;
	case RVX1_OP_STORE: /* what the tests' words parts are */
		log_tag(p.u.word.value);
		break;
	case RVX1_OP_FILL: /* what the tests' copy parts are */
		log_tag(p.u.copy.row_bytes);
		break;
	case RVX1_OP_SIGNAL:
		assert_true(p.u.word.value > x.semaphore[p.arg]);
		x.semaphore[p.arg] = p.u.word.value;
		break;
	case RVX1_OP_SEMAPHORE:
		if (x.semaphore[p.arg] < p.u.word.value)
			return false;
		break;
	case RVX1_OP_WAIT_VALUE:
		if (x.value < p.u.word.value)
			return false;
		break;
	case RVX1_OP_RELEASE:
		assert_int_equal(p.u.word.value, x.value + 1);
		x.value = p.u.word.value;
		passive_complete(&t, x.value);
		break;
	case RVX1_OP_RING:
		x.ring[q] = p.u.word.address;
		x.entries[q] = p.arg;
		break;
	default:
		fail_msg("opcode %u on queue %u", p.opcode, q);
	}
	x.read[q]++;
	return true;
}

/* Everything that can run, in a random interleaving of the queues. */
static void execute_all(void)
{
	unsigned idle = 0;

	while (idle < 64)
		idle = execute(draw(QUEUES)) ? 0 : idle + 1;
}

/* ---- Submissions ---- */

static struct rig_region *buffer;
static struct rvx1_packet words[MAX_PARTS];
static uint32_t after[MAX_PARTS][MAX_PARTS];
static struct rig_part parts[MAX_PARTS];

/* Part i of a value, on the queue that runs it; its tag is logged when it runs. */
static void make_part(uint32_t i, uint32_t queue, uint64_t tag)
{
	parts[i] = (struct rig_part){.queue = queue, .after = after[i]};
	if (queue == COMPUTE) {
		words[i] = (struct rvx1_packet){.opcode = RVX1_OP_STORE, .u.word = {.value = tag}};
		parts[i].kind = RIG_WORDS;
		parts[i].u.words = (struct rig_words_part){.words = (const uint32_t *)&words[i], .count = 16};
		return;
	}
	parts[i].kind = RIG_COPY;
	parts[i].u.copy = (struct rig_copy_part){.dst = {.slot = RIG_FIXED, .handle = (uintptr_t)buffer},
	        .row_bytes = tag,
	        .rows = 1,
	        .fill = true};
}

static int room(uint32_t n, uint32_t nwaits)
{
	return t.dev->hot->room(t.device, parts, n, nwaits, NULL, scratch);
}

static void submit(uint64_t value, uint32_t n, const struct rig_wait *waits, uint32_t nwaits)
{
	const char *failure;

	assert_int_equal(room(n, nwaits), RIG_FITS);
	assert_int_equal(
	        t.dev->hot->submit(t.device, value, parts, n, waits, nwaits, NULL, scratch, NULL, &failure),
	        RIG_COMMITTED);
}

static void open_with(const struct passive_options *options)
{
	const char *fault;
	void *region;

	seed = 1;
	assert_int_equal(passive_make(&t, options, 0), 0);
	executor_init(options ? options->start : 0);
	assert_int_equal(rig_driver_module.alloc(t.device, RIG_DEVICE, 1 << 20, &region, &fault), 0);
	buffer = region;
}

static int setup(void **state)
{
	(void)state;
	open_with(NULL);
	return 0;
}

static int teardown(void **state)
{
	const char *fault;

	(void)state;
	rig_driver_module.free(t.device, buffer, &fault);
	passive_close(&t);
	return 0;
}

static unsigned position(uint64_t tag)
{
	unsigned i;

	for (i = 0; i < x.logged; i++)
		if (x.log[i] == tag)
			return i;
	fail_msg("part %llu of value %llu never ran", (unsigned long long)(tag % TAG_PARTS),
	        (unsigned long long)(tag / TAG_PARTS));
	return 0;
}

static void an_empty_submission_is_one_release_on_the_first_queue(void **state)
{
	struct rvx1_packet p;

	(void)state;
	submit(1, 0, NULL, 0);
	assert_int_equal(passive_written(&t, 0), 1);
	assert_int_equal(passive_written(&t, 1), 0);
	p = packet_at(0, 0);
	assert_int_equal(p.opcode, RVX1_OP_RELEASE);
	assert_int_equal(p.flags, 0);
	assert_int_equal(p.u.word.value, 1);
}

static void values_go_on_after_what_the_word_held(void **state)
{
	struct passive_options options = {.start = 41};

	(void)state;
	teardown(NULL);
	open_with(&options);
	submit(42, 0, NULL, 0);
	execute_all();
	assert_int_equal(x.value, 42);
}

static void store_completion_stores_the_value_into_the_own_word_and_nothing_else(void **state)
{
	struct passive_options options = {.store = true};
	struct rvx1_packet p;
	uint64_t value = 1, last = 0;

	(void)state;
	teardown(NULL);
	open_with(&options);
	submit(1, 0, NULL, 0);
	p = packet_at(0, 0);
	assert_int_equal(p.flags, RVX1_RELEASE_STORE);
	assert_int_equal(
	        rig_fake_dma_write(t.fake, p.u.word.address & RVX1_BUS_MASK, &value, sizeof(value)), 0);
	assert_int_equal(rig_word_load(t.word), 1);
	/* The array itself is mapped read-only, whole: the last word is 65,534 words on. */
	assert_true(rig_fake_dma_write(t.fake,
	                    rig_dev_word_address(t.dev, rig_words() + RIG_WORD_COUNT - 1) & RVX1_BUS_MASK,
	                    &value, sizeof(value)) < 0);
	assert_int_equal(
	        rig_fake_dma_read(t.fake,
	                rig_dev_word_address(t.dev, rig_words() + RIG_WORD_COUNT - 1) & RVX1_BUS_MASK, &last,
	                sizeof(last)),
	        0);
	passive_complete(&t, 1);
}

static void a_random_submission(uint64_t value)
{
	uint32_t i, j, n = draw(MAX_PARTS + 1);

	for (i = 0; i < n; i++) {
		make_part(i, draw(QUEUES), value * TAG_PARTS + i);
		for (j = 0; j < i; j++)
			if (parts[j].queue != parts[i].queue && !draw(3))
				after[i][parts[i].nafter++] = j;
	}
	submit(value, n, NULL, 0);
	/* Interleave submission and execution differently each time. */
	if (draw(2))
		execute(draw(QUEUES));
	/* Judged at the end: remember the edges in the tags' order now. */
	execute_all();
	for (i = 0; i < n; i++) {
		unsigned at = position(value * TAG_PARTS + i);

		for (j = 0; j < parts[i].nafter; j++)
			assert_true(position(value * TAG_PARTS + after[i][j]) < at);
		for (j = 0; j < i; j++)
			if (parts[j].queue == parts[i].queue)
				assert_true(position(value * TAG_PARTS + j) < at);
	}
	assert_int_equal(x.logged, n);
	x.logged = 0;
}

static void parts_run_in_queue_order_and_after_what_they_follow(void **state)
{
	uint64_t value;

	(void)state;
	for (value = 1; value <= 3000; value++)
		a_random_submission(value);
	assert_int_equal(x.value, 3000);
}

static const struct rig_board *rvx1(void)
{
	return rig_board_find(RVX1_PCI_VENDOR, RVX1_PCI_DEVICE);
}

/* Two packets a step, and one a part: what is left before the ring's end may be smaller than a step. */
static void step_of_two(struct rig_port *port, void *units, const struct rig_step *step)
{
	const struct rig_step nop = {.kind = RIG_STEP_NOP, .value = 1};
	const uint64_t n = step->kind == RIG_STEP_NOP ? step->value : 2;
	uint64_t i;

	for (i = 0; i < n; i++)
		rvx1()->step(port, (uint8_t *)units + i * RVX1_PACKET_BYTES, i + 1 < n ? &nop : step);
}

static void no_unit_of_an_earlier_lap_runs_again_where_a_step_does_not_fit_the_end(void **state)
{
	struct rig_board board = *rvx1();
	const struct passive_options options = {.board = &board};
	uint64_t value;

	(void)state;
	teardown(NULL);
	board.step_units = 2;
	board.step = step_of_two;
	open_with(&options);
	for (value = 1; value <= 3000; value++)
		a_random_submission(value);
	assert_int_equal(x.value, 3000);
	teardown(NULL); /* before the table ends */
	open_with(NULL);
}

static void no_part_of_a_value_runs_before_all_of_the_previous_one(void **state)
{
	uint64_t value, next = 1;
	unsigned i, round;

	(void)state;
	for (round = 0; round < 200; round++) {
		for (value = next; value < next + 8; value++) {
			uint32_t p, n = draw(5);

			for (p = 0; p < n; p++)
				make_part(p, draw(QUEUES), value * TAG_PARTS + p);
			submit(value, n, NULL, 0);
			execute(draw(QUEUES));
		}
		execute_all();
		for (i = 1; i < x.logged; i++)
			assert_true(x.log[i] / TAG_PARTS >= x.log[i - 1] / TAG_PARTS);
		next = value;
		assert_int_equal(x.value, next - 1);
		x.logged = 0;
	}
}

static void work_starts_after_the_words_it_waits_for(void **state)
{
	rig_atomic_u64 *other = rig_words() + 7;
	struct rig_wait wait = {.word = other, .value = 5};

	(void)state;
	__atomic_store_n((uint64_t *)other, 4, __ATOMIC_RELEASE);
	make_part(0, COMPUTE, TAG_PARTS);
	make_part(1, COPIER, TAG_PARTS + 1);
	submit(1, 2, &wait, 1);
	execute_all();
	assert_int_equal(x.logged, 0);
	__atomic_store_n((uint64_t *)other, 5, __ATOMIC_RELEASE);
	execute_all();
	assert_int_equal(x.logged, 2);
	assert_int_equal(x.value, 1);
}

static void work_of_several_waits_starts_after_the_last_of_them_whichever_that_is(void **state)
{
	enum { WAITS = 3, ORDERS = 6 };
	static const uint8_t orders[ORDERS][WAITS] = {
	        {0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
	struct rig_wait waits[WAITS];
	uint64_t value;
	unsigned i;

	(void)state;
	for (value = 1; value <= ORDERS; value++) {
		for (i = 0; i < WAITS; i++)
			waits[i] = (struct rig_wait){.word = rig_words() + 7 + i, .value = value};
		make_part(0, COMPUTE, value * TAG_PARTS);
		make_part(1, COPIER, value * TAG_PARTS + 1);
		submit(value, 2, waits, WAITS);
		for (i = 0; i < WAITS; i++) {
			execute_all();
			assert_int_equal(x.logged, 0);
			__atomic_store_n((uint64_t *)(rig_words() + 7 + orders[value - 1][i]), value,
			        __ATOMIC_RELEASE);
		}
		execute_all();
		assert_int_equal(x.logged, 2);
		assert_int_equal(x.value, value);
		x.logged = 0;
	}
}

/* ---- Room ---- */

static void room_says_later_until_a_value_is_reached_and_never_runs_out_after_fits(void **state)
{
	uint64_t value = 1;
	unsigned laters = 0;

	(void)state;
	while (laters < 50) {
		uint32_t i, n = draw(MAX_PARTS + 1);
		int answer;

		for (i = 0; i < n; i++)
			make_part(i, draw(QUEUES), value * TAG_PARTS + i);
		answer = room(n, 0);
		if (answer == RIG_FITS) {
			submit(value++, n, NULL, 0);
			continue;
		}
		assert_int_equal(answer, RIG_LATER);
		laters++;
		/* One value more at a time: FITS comes. */
		while (room(n, 0) == RIG_LATER) {
			uint64_t before = x.value;

			while (x.value == before)
				execute(draw(QUEUES));
		}
		assert_int_equal(room(n, 0), RIG_FITS);
		x.logged = 0;
	}
}

static uint32_t many[65536u * 16u];

static void long_words(uint32_t packets)
{
	uint32_t i;

	for (i = 0; i < packets; i++)
		((struct rvx1_packet *)(void *)many)[i].opcode = RVX1_OP_NOP;
	parts[0] = (struct rig_part){.queue = COMPUTE, .kind = RIG_WORDS};
	parts[0].u.words = (struct rig_words_part){.words = many, .count = packets * 16};
}

static int grow_for(uint32_t nwaits, uint64_t *short_bytes)
{
	const char *fault;

	return rig_driver_module.grow(t.device, parts, 1, nwaits, short_bytes, &fault);
}

static int grow(uint64_t *short_bytes)
{
	return grow_for(0, short_bytes);
}

static void rings_grow_with_work_in_flight_and_nothing_is_lost(void **state)
{
	uint64_t value, missing = 0;

	(void)state;
	for (value = 1; value <= 3; value++)
		submit(value, 0, NULL, 0);
	long_words(2000);
	assert_int_equal(room(1, 0), RIG_GROW);
	assert_int_equal(grow(&missing), RIG_GROWN);
	assert_int_equal(room(1, 0), RIG_FITS);
	submit(4, 1, NULL, 0);
	execute_all();
	assert_int_equal(x.value, 4);
	for (value = 5; value < 5000; value++) {
		submit(value, 0, NULL, 0);
		execute_all();
	}
	/* And once more, over the ring that replaced the first. */
	long_words(6000);
	assert_int_equal(room(1, 0), RIG_GROW);
	rig_dev_progress(t.dev);
	assert_int_equal(grow(&missing), RIG_GROWN);
	submit(5000, 1, NULL, 0);
	execute_all();
	assert_int_equal(x.value, 5000);
}

/* It is the packet there that leads to the larger one. */
static void a_full_ring_with_a_larger_one_waiting_has_room_later(void **state)
{
	uint64_t missing = 0, value;

	(void)state;
	for (value = 1; value <= 3; value++) { /* each with a RELEASE: 5 are left of 1,024 */
		long_words(value < 3 ? 400 : 216);
		submit(value, 1, NULL, 0);
	}
	make_part(0, COPIER, 4);
	submit(4, 1, NULL, 0);
	make_part(0, COMPUTE, 5); /* behind ORDER, because the copier released value 4 */
	submit(5, 1, NULL, 0);
	make_part(0, COPIER, 6);
	submit(6, 1, NULL, 0);
	submit(7, 0, NULL, 0);
	assert_int_equal(rig_ring_free(&t.dev->queues[COMPUTE].ring), 0);
	long_words(2000);
	assert_int_equal(room(1, 0), RIG_GROW);
	assert_int_equal(grow(&missing), RIG_GROWN);
	assert_int_equal(room(1, 0), RIG_LATER);
	execute_all();
	assert_int_equal(room(1, 0), RIG_FITS);
	submit(8, 1, NULL, 0);
	execute_all();
	assert_int_equal(x.value, 8);
}

static void a_larger_growth_replaces_one_that_is_still_waiting(void **state)
{
	uint64_t missing = 0, free_bytes;

	(void)state;
	long_words(2000);
	assert_int_equal(room(1, 0), RIG_GROW);
	assert_int_equal(grow(&missing), RIG_GROWN);
	free_bytes = rig_tlsf_free_bytes(t.dev->pools[0]);
	/* A submission that room let through and that never came: the growth still waits. */
	assert_int_equal(room(1, 0), RIG_FITS);
	long_words(5000);
	assert_int_equal(room(1, 0), RIG_GROW);
	assert_int_equal(grow(&missing), RIG_GROWN);
	assert_int_equal(rig_tlsf_free_bytes(t.dev->pools[0]),
	        free_bytes + 4096 * RVX1_PACKET_BYTES - 16384 * RVX1_PACKET_BYTES);
	/* And once it is there, growth changes nothing. */
	assert_int_equal(grow(&missing), RIG_GROWN);
	assert_int_equal(rig_tlsf_free_bytes(t.dev->pools[0]),
	        free_bytes + 4096 * RVX1_PACKET_BYTES - 16384 * RVX1_PACKET_BYTES);
	submit(1, 1, NULL, 0);
	execute_all();
	assert_int_equal(x.value, 1);
}

static void growth_without_memory_says_how_many_bytes_are_short(void **state)
{
	uint64_t missing = 0, pa;

	(void)state;
	while (!rig_dev_take(t.dev, RIG_POOL_BOOT, RIG_PAGE, RIG_PAGE, &pa))
		;
	long_words(2000);
	assert_int_equal(room(1, 0), RIG_GROW);
	assert_int_equal(grow(&missing), RIG_SHORT);
	assert_int_equal(missing, 4096u * RVX1_PACKET_BYTES);
}

/* Of words beside ORDER and RELEASE, wherever they start in a ring of ring_units_max. */
static uint32_t longest_words(void)
{
	return (uint32_t)((t.dev->facts.ring_units_max + 1 - 2) / 2);
}

static uint64_t boot_free(void)
{
	return rig_tlsf_free_bytes(t.dev->pools[0]);
}

/* Moves COMPUTE to a larger ring, with the packets of `value`. */
static void move_to_larger(uint64_t value, uint32_t packets)
{
	uint64_t missing = 0;

	long_words(packets);
	assert_int_equal(room(1, 0), RIG_GROW);
	assert_int_equal(grow(&missing), RIG_GROWN);
	submit(value, 1, NULL, 0);
}

/* A ring holds the packet that leads to the one that replaced it. */
static void rings_are_freed_once_the_device_has_left_them_however_many_wait_for_that(void **state)
{
	const uint64_t first = 1024, second = 4096, third = 16384, all = boot_free();
	uint64_t missing = 0;

	(void)state;
	submit(1, 0, NULL, 0);
	move_to_larger(2, 2000);
	move_to_larger(3, 6000);
	assert_int_equal(grow(&missing), RIG_GROWN);
	assert_int_equal(all - boot_free(), (second + third) * RVX1_PACKET_BYTES);
	while (x.value < 2)
		execute(COMPUTE);
	rig_dev_progress(t.dev);
	assert_int_equal(grow(&missing), RIG_GROWN);
	assert_int_equal(all - boot_free(), (second + third - first) * RVX1_PACKET_BYTES);
	execute_all();
	rig_dev_progress(t.dev);
	assert_int_equal(grow(&missing), RIG_GROWN);
	assert_int_equal(all - boot_free(), (third - first) * RVX1_PACKET_BYTES);
	assert_int_equal(x.value, 3);
}

/* As a port whose parts take as many units as the addresses say. */
static int check_with_addresses(
        struct rig_port *port, const struct rig_part *part, const struct rig_run *run, struct rig_need *need)
{
	uint64_t address = 0;
	int answer = rvx1()->check(port, part, run, need);

	if (answer == RIG_FITS && part->kind == RIG_COPY)
		assert_int_equal(
		        rig_side_address(&part->u.copy.dst, run, part->u.copy.row_bytes, &address), 0);
	if (address == 2)
		need->units = 1500;
	return answer;
}

static void queues_grow_for_parts_whose_units_depend_on_the_runs_buffers(void **state)
{
	struct rig_board board = *rvx1();
	const struct passive_options options = {.board = &board};
	const struct rig_slot slot = {.address = 2};
	const struct rig_run run = {.slots = &slot, .nslots = 1};
	uint64_t missing = 0;

	(void)state;
	teardown(NULL);
	board.check = check_with_addresses;
	open_with(&options);
	make_part(0, COPIER, 16);
	parts[0].u.copy.dst = (struct rig_copy_side){.slot = 0};
	assert_int_equal(t.dev->hot->room(t.device, parts, 1, 0, &run, scratch), RIG_GROW);
	assert_int_equal(grow(&missing), RIG_GROWN);
	assert_int_equal(t.dev->hot->room(t.device, parts, 1, 0, &run, scratch), RIG_FITS);
	teardown(NULL); /* before the table ends */
	open_with(NULL);
}

static void both_rings_grow_to_the_most_that_room_promises(void **state)
{
	uint32_t waits = (uint32_t)t.dev->facts.ring_units_max - 3;
	uint64_t missing = 0, value = 1;

	(void)state;
	for (; longest_words() >> value > 1000; value++)
		;
	/* Each growth over a ring that the next one frees. */
	while (value--) {
		long_words(longest_words() >> value);
		assert_int_equal(room(1, 0), RIG_GROW);
		assert_int_equal(grow(&missing), RIG_GROWN);
		submit(x.value + 1, 1, NULL, 0);
		execute_all();
		rig_dev_progress(t.dev);
	}
	assert_int_equal(room(1, 0), RIG_FITS);
	make_part(0, COPIER, 1);
	assert_int_equal(room(1, waits), RIG_GROW);
	assert_int_equal(grow_for(waits, &missing), RIG_GROWN);
	assert_int_equal(room(1, waits), RIG_FITS);
	assert_int_equal(room(1, waits + 1), RIG_NEVER);
}

static void room_says_never_to_what_no_ring_holds(void **state)
{
	(void)state;
	long_words(longest_words());
	assert_int_equal(room(1, 0), RIG_GROW);
	parts[0].u.words.count += 16;
	assert_int_equal(room(1, 0), RIG_NEVER);
	parts[0].u.words.count = UINT32_MAX - 15u;
	assert_int_equal(room(1, 0), RIG_NEVER);
	make_part(0, COMPUTE, 1);
	assert_int_equal(room(1, UINT32_MAX), RIG_NEVER);
}

static void room_says_never_to_work_a_queue_does_not_run(void **state)
{
	uint32_t kind;

	(void)state;
	for (kind = 0; kind < 8; kind++) {
		make_part(0, COMPUTE, 1);
		parts[0].kind = kind;
		if (kind == RIG_WORDS || kind == RIG_FILL || kind == RIG_LAUNCH)
			continue;
		assert_int_equal(room(1, 0), RIG_NEVER);
		assert_non_null(strstr(rig_error(), "COMPUTE:0"));
	}
	make_part(0, COPIER, 1);
	parts[0].kind = RIG_WORDS;
	assert_int_equal(room(1, 0), RIG_NEVER);
	make_part(0, COMPUTE, 1);
	parts[0].queue = 2;
	assert_int_equal(room(1, 0), RIG_NEVER);
}

static void room_and_submit_allocate_nothing_and_send_no_message(void **state)
{
	const struct passive_options options = {.tells = true};
	uint64_t value, allocations, messages;

	(void)state;
	teardown(NULL);
	open_with(&options); /* the poller, in its own time, asks no questions then */
	submit(1, 0, NULL, 0);
	execute_all();
	allocations = test_allocs();
	messages = rig_pci_messages(t.dev->pci);
	for (value = 2; value < 5000; value++) {
		make_part(0, COMPUTE, value);
		make_part(1, COPIER, value);
		if (room(2, 0) == RIG_LATER) {
			execute_all();
			x.logged = 0;
		}
		submit(value, 2, NULL, 0);
	}
	assert_int_equal(test_allocs() - allocations, 0);
	assert_int_equal(rig_pci_messages(t.dev->pci) - messages, 0);
	execute_all();
}

/* ---- Fills ---- */

struct fill_seen {
	struct rig_fill_context context;
	uint64_t value;
	int answer;
};

static int fill(void *queue_context, const void *arg, uint64_t value)
{
	struct fill_seen *seen = (struct fill_seen *)(uintptr_t)arg;

	seen->context = *(struct rig_fill_context *)queue_context;
	seen->value = value;
	return seen->answer;
}

static void a_fill_is_called_with_its_units_and_what_it_leaves_are_no_ops(void **state)
{
	struct fill_seen seen = {0};

	(void)state;
	parts[0] = (struct rig_part){.queue = COMPUTE, .kind = RIG_FILL};
	parts[0].u.fill =
	        (struct rig_fill_part){.fill = fill, .arg = &seen, .ring_units = 3, .segment_bytes = 40};
	submit(1, 1, NULL, 0);
	assert_int_equal(seen.value, 1);
	assert_int_equal(seen.context.ring_units, 3);
	assert_int_equal(seen.context.segment_bytes, 40);
	assert_int_equal(seen.context.segment_address % RIG_PART_ALIGN, 0);
	execute_all();
	assert_int_equal(x.value, 1);
}

static void the_argument_segment_serves_again_once_its_values_are_reached_and_not_before(void **state)
{
	enum { FILLS = 8, LAPS = 5 };
	const uint64_t values = t.dev->segment.bytes / (FILLS * RIG_PARAMS);
	struct fill_seen *seen = calloc(values, sizeof(*seen));
	uint64_t value, i;

	(void)state;
	assert_non_null(seen);
	for (value = 1; value <= values * LAPS; value++) {
		struct fill_seen *own = &seen[value % values], before = *own;

		for (i = 0; i < FILLS; i++) {
			parts[i] = (struct rig_part){.queue = COMPUTE, .kind = RIG_FILL};
			parts[i].u.fill =
			        (struct rig_fill_part){.fill = fill, .arg = own, .segment_bytes = RIG_PARAMS};
		}
		if (value > values) {
			assert_int_equal(room(FILLS, 0), RIG_LATER);
			while (x.value < value - values)
				execute(COMPUTE);
		}
		submit(value, FILLS, NULL, 0);
		if (value > values)
			assert_int_equal(own->context.segment_address, before.context.segment_address);
	}
	for (i = 1; i < values; i++)
		assert_int_not_equal(seen[i].context.segment_address, seen[i - 1].context.segment_address);
	free(seen);
	execute_all();
}

static void a_fill_that_fails_loses_the_device_and_rings_nothing(void **state)
{
	struct fill_seen seen = {.answer = 1};
	const char *failure = NULL;

	(void)state;
	parts[0] = (struct rig_part){.queue = COMPUTE, .kind = RIG_FILL};
	parts[0].u.fill = (struct rig_fill_part){.fill = fill, .arg = &seen, .ring_units = 1};
	assert_int_equal(room(1, 0), RIG_FITS);
	assert_int_equal(t.dev->hot->submit(t.device, 1, parts, 1, NULL, 0, NULL, scratch, NULL, &failure),
	        RIG_FAILED);
	assert_non_null(failure);
	assert_non_null(strstr(failure, "fill function answered 1"));
	assert_int_equal(passive_written(&t, 0), 0);
}

static void stop_raises_the_word_to_a_value_whose_submit_failed(void **state)
{
	struct fill_seen seen = {.answer = 1};
	const char *failure = NULL, *fault;

	(void)state;
	parts[0] = (struct rig_part){.queue = COMPUTE, .kind = RIG_FILL};
	parts[0].u.fill = (struct rig_fill_part){.fill = fill, .arg = &seen, .ring_units = 1};
	assert_int_equal(room(1, 0), RIG_FITS);
	assert_int_equal(t.dev->hot->submit(t.device, 1, parts, 1, NULL, 0, NULL, scratch, NULL, &failure),
	        RIG_FAILED);
	/* And one whose submit fails because the device is lost already. */
	assert_int_equal(room(1, 0), RIG_FITS);
	assert_int_equal(t.dev->hot->submit(t.device, 2, parts, 1, NULL, 0, NULL, scratch, NULL, &failure),
	        RIG_FAILED);
	rig_driver_module.stop(t.device, failure);
	assert_int_equal(rig_word_load(t.word), 2);
	rig_driver_module.free(t.device, buffer, &fault);
	rig_driver_module.release(t.device);
	t.device = buffer = NULL;
}

static void a_copy_that_leaves_its_region_is_refused_with_the_bounds(void **state)
{
	const char *failure = NULL;

	(void)state;
	make_part(0, COPIER, 1 << 20);
	parts[0].u.copy.dst.offset = 1;
	assert_int_equal(room(1, 0), RIG_FITS);
	assert_int_equal(t.dev->hot->submit(t.device, 1, parts, 1, NULL, 0, NULL, scratch, NULL, &failure),
	        RIG_FAILED);
	assert_non_null(strstr(failure, "1048576"));
}

static void a_copy_is_decided_again_at_submit(void **state)
{
	const char *failure;

	(void)state;
	make_part(0, COPIER, 16);
	assert_int_equal(room(1, 0), RIG_FITS);
	parts[0].u.copy.row_bytes = 4096; /* another run's buffers */
	assert_int_equal(t.dev->hot->submit(t.device, 1, parts, 1, NULL, 0, NULL, scratch, NULL, &failure),
	        RIG_COMMITTED);
	execute_all();
	assert_int_equal(x.log[0], 4096);
}

/* ---- The word ---- */

static void a_value_never_submitted_is_a_fault_and_not_believed(void **state)
{
	const char *fault = NULL;

	(void)state;
	submit(1, 0, NULL, 0);
	passive_complete(&t, 7);
	while (rig_driver_module.sleep(t.device, 0, 1000, &fault) == 0)
		;
	assert_non_null(strstr(fault, "value 7"));
	assert_int_equal(rig_word_load(t.word), 0);
}

static void committing_what_is_committed_changes_nothing(void **state)
{
	const char *failure;

	(void)state;
	submit(1, 0, NULL, 0);
	assert_int_equal(t.dev->hot->commit(t.device, 1, &failure), RIG_OK);
	assert_int_equal(t.dev->hot->commit(t.device, 0, &failure), RIG_OK);
	assert_int_equal(passive_written(&t, 0), 1);
	assert_int_equal(rig_word_load(t.word), 0);
}

static struct {
	pthread_t thread;
	atomic_bool end, backwards;
} sampler;

static void *sample(void *arg)
{
	uint64_t last = 0;

	(void)arg;
	while (!atomic_load(&sampler.end)) {
		uint64_t word = rig_word_load(t.word);

		if (word < last)
			atomic_store(&sampler.backwards, true);
		last = word;
	}
	return NULL;
}

/* The waiter here and the poller both raise it. */
static void the_word_never_moves_backwards_nor_beyond_what_completed(void **state)
{
	struct passive_options options = {.start = UINT32_MAX - 1000ull};
	uint64_t value = options.start;
	const char *fault;

	(void)state;
	teardown(NULL);
	open_with(&options);
	atomic_store(&sampler.end, false);
	assert_int_equal(pthread_create(&sampler.thread, NULL, sample, NULL), 0);
	while (value < options.start + 2000) {
		submit(++value, 0, NULL, 0);
		execute_all();
		while (rig_word_load(t.word) != value) {
			assert_true(rig_word_load(t.word) <= value);
			assert_int_equal(rig_driver_module.sleep(t.device, value - 1, 1000, &fault), 0);
		}
	}
	atomic_store(&sampler.end, true);
	pthread_join(sampler.thread, NULL);
	assert_false(atomic_load(&sampler.backwards));
}

static void the_poller_raises_the_word_with_nobody_waiting(void **state)
{
	uint64_t spins = 0;

	(void)state;
	submit(1, 0, NULL, 0);
	execute_all();
	while (rig_word_load(t.word) != 1 && ++spins < UINT32_MAX)
		rig_pause();
	assert_int_equal(rig_word_load(t.word), 1);
}

static void a_board_without_mapped_bars_says_it_may_block_and_works(void **state)
{
	struct passive_options options = {.unmapped = true};
	struct rig_facts facts = {.version = RIG_EDGE_VERSION};
	const char *fault;

	(void)state;
	teardown(NULL);
	seed = 1;
	assert_int_equal(passive_make(&t, &options, 0), 0);
	buffer = NULL;
	assert_int_equal(rig_driver_module.facts(t.device, &facts, &fault), 0);
	assert_true(facts.may_block);
	submit(1, 0, NULL, 0);
	assert_int_equal(passive_written(&t, 0), 1);
	passive_complete(&t, 1);
	while (rig_word_load(t.word) != 1)
		assert_int_equal(rig_driver_module.sleep(t.device, 0, 1000, &fault), 0);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        CASE(an_empty_submission_is_one_release_on_the_first_queue),
	        CASE(values_go_on_after_what_the_word_held),
	        CASE(store_completion_stores_the_value_into_the_own_word_and_nothing_else),
	        CASE(parts_run_in_queue_order_and_after_what_they_follow),
	        CASE(no_unit_of_an_earlier_lap_runs_again_where_a_step_does_not_fit_the_end),
	        CASE(no_part_of_a_value_runs_before_all_of_the_previous_one),
	        CASE(work_starts_after_the_words_it_waits_for),
	        CASE(work_of_several_waits_starts_after_the_last_of_them_whichever_that_is),
	        CASE(room_says_later_until_a_value_is_reached_and_never_runs_out_after_fits),
	        CASE(rings_grow_with_work_in_flight_and_nothing_is_lost),
	        CASE(a_full_ring_with_a_larger_one_waiting_has_room_later),
	        CASE(a_larger_growth_replaces_one_that_is_still_waiting),
	        CASE(growth_without_memory_says_how_many_bytes_are_short),
	        CASE(rings_are_freed_once_the_device_has_left_them_however_many_wait_for_that),
	        CASE(queues_grow_for_parts_whose_units_depend_on_the_runs_buffers),
	        CASE(both_rings_grow_to_the_most_that_room_promises),
	        CASE(room_says_never_to_what_no_ring_holds),
	        CASE(room_says_never_to_work_a_queue_does_not_run),
	        CASE(room_and_submit_allocate_nothing_and_send_no_message),
	        CASE(a_fill_is_called_with_its_units_and_what_it_leaves_are_no_ops),
	        CASE(the_argument_segment_serves_again_once_its_values_are_reached_and_not_before),
	        CASE(a_fill_that_fails_loses_the_device_and_rings_nothing),
	        CASE(stop_raises_the_word_to_a_value_whose_submit_failed),
	        CASE(a_copy_that_leaves_its_region_is_refused_with_the_bounds),
	        CASE(a_copy_is_decided_again_at_submit),
	        CASE(a_value_never_submitted_is_a_fault_and_not_believed),
	        CASE(committing_what_is_committed_changes_nothing),
	        CASE(the_word_never_moves_backwards_nor_beyond_what_completed),
	        CASE(the_poller_raises_the_word_with_nobody_waiting),
	        CASE(a_board_without_mapped_bars_says_it_may_block_and_works),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
