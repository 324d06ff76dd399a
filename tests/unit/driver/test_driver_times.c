/* SPDX-License-Identifier: MIT */
/*
 * Times of values on eight queues, judged by running their packets: a small executor, whose queues take turns
 * at random, stands for the device, and its clock is the host's at another frequency.
 */
#include "test.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "allocs.h"
#include "draw.h"
#include "passive.h"

#define QUEUES    8u
#define HZ        62500000u
#define MAX_PARTS 12u
#define MANY      2700u /* launches that are measured */
#define MOST      2800u /* so many are not */
#define VALUES    6000u
#define ROW       7u

static struct passive t;
static uint8_t scratch[MOST * RIG_SCRATCH] __attribute__((aligned(16)));
static struct rvx1_packet words[MAX_PARTS];
static uint32_t after[MAX_PARTS][MAX_PARTS];
static struct rig_part parts[MOST];
static struct rig_times times[VALUES + 1];
static struct rig_region *buffer;
static struct rig_launch function;
static struct rig_block block = {.groups = {1, 1, 1}, .threads = {1, 1, 1}};
static uint64_t seed;

static uint32_t draw(uint32_t below)
{
	return test_draw(&seed, below);
}

/* ---- The executor ---- */

static struct executor {
	uint64_t read[QUEUES], ring[QUEUES], entries[QUEUES];
	uint64_t semaphore[RVX1_SEMAPHORES], value;
	uint64_t stamps, skip_stamp; /* the skip_stamp-th is not stored; 0: all are */
	uint64_t launched[QUEUES];   /* clock of its last launch */
	uint64_t counters;           /* stored so far */
	uint64_t ran;                /* parts of the value that is not complete */
	uint8_t log[64];             /* opcodes of queue 0 */
	unsigned logged;
} x;

static void store(uint64_t address, uint64_t value)
{
	assert_true(address % 8 == 0 && address < PASSIVE_MEMORY);
	memcpy(t.memory + address, &value, sizeof(value));
}

static void store_counters(uint32_t q, uint64_t address)
{
	const uint64_t counters[RVX1_COUNTERS] = {x.launched[q], x.launched[q], 10 + x.counters, 5, 6, 7};
	unsigned i;

	for (i = 0; i < RVX1_COUNTERS; i++)
		store(address + 8 * i, counters[i]);
	x.counters++;
}

static void stamp(uint64_t address)
{
	if (++x.stamps != x.skip_stamp)
		store(address, passive_clock(&t));
}

/* Whether the packet is complete. */
static bool run(uint32_t q, const struct rvx1_packet *p)
{
	switch (p->opcode) {
	case RVX1_OP_SIGNAL:
		x.semaphore[p->arg] = p->u.word.value;
		return true;
	case RVX1_OP_SEMAPHORE:
		return x.semaphore[p->arg] >= p->u.word.value;
	case RVX1_OP_WAIT_VALUE:
		return x.value >= p->u.word.value;
	case RVX1_OP_STAMP:
		stamp(p->u.word.address);
		return true;
	case RVX1_OP_COUNTERS:
		store_counters(q, p->u.word.address);
		return true;
	case RVX1_OP_STORE: /* the tests' parts: of which value */
	case RVX1_OP_FILL:
	case RVX1_OP_LAUNCH:
		x.launched[q] = passive_clock(&t);
		if (p->opcode != RVX1_OP_LAUNCH)
			assert_int_equal(p->opcode == RVX1_OP_STORE ? p->u.word.value : p->u.copy.row_bytes,
			        x.value + 1);
		x.ran++;
		return true;
	case RVX1_OP_RELEASE:
		assert_int_equal(p->u.word.value, x.value + 1);
		x.value++;
		x.ran = 0;
		passive_complete(&t, x.value);
		return true;
	case RVX1_OP_RING:
		x.ring[q] = p->u.word.address;
		x.entries[q] = p->arg;
		return true;
	case RVX1_OP_NOP:
		return true;
	default:
		fail_msg("opcode %u on queue %u", p->opcode, q);
		return false;
	}
}

static bool execute(uint32_t q)
{
	struct rvx1_packet p;

	if (x.read[q] == passive_written(&t, q))
		return false;
	memcpy(&p, t.memory + x.ring[q] + x.read[q] % x.entries[q] * RVX1_PACKET_BYTES, sizeof(p));
	if (!run(q, &p))
		return false;
	x.read[q]++;
	if (q == 0 && x.logged < sizeof(x.log))
		x.log[x.logged++] = p.opcode;
	return true;
}

static void execute_all(void)
{
	unsigned idle = 0;

	while (idle < 200)
		idle = execute(draw(QUEUES)) ? 0 : idle + 1;
	rig_dev_progress(t.dev);
}

/* ---- Submissions ---- */

static void make_part(uint32_t i, uint32_t queue, uint64_t value)
{
	parts[i] = (struct rig_part){.queue = queue, .after = after[i]};
	if (queue % 2) {
		parts[i].kind = RIG_COPY;
		parts[i].u.copy =
		        (struct rig_copy_part){.dst = {.slot = RIG_FIXED, .handle = (uintptr_t)buffer},
		                .row_bytes = value,
		                .rows = 1,
		                .fill = true};
		return;
	}
	words[i] = (struct rvx1_packet){.opcode = RVX1_OP_STORE, .u.word = {.value = value}};
	parts[i].kind = RIG_WORDS;
	parts[i].u.words = (struct rig_words_part){.words = (const uint32_t *)&words[i], .count = 16};
}

static void make_launch(uint32_t i, uint32_t queue)
{
	parts[i] = (struct rig_part){.queue = queue, .kind = RIG_LAUNCH};
	parts[i].u.launch.launch = (uintptr_t)&function;
}

static const struct rig_run launches_run = {.args = &block, .args_bytes = sizeof(block)};

static int room(uint32_t n)
{
	return t.dev->hot->room(t.device, parts, n, 0, &launches_run, scratch);
}

static void submit(uint64_t value, uint32_t n, struct rig_times *pair)
{
	const char *failure = "";
	int answer;

	while (room(n) == RIG_LATER)
		execute_all();
	assert_int_equal(room(n), RIG_FITS);
	answer = t.dev->hot->submit(
	        t.device, value, parts, n, NULL, 0, &launches_run, scratch, pair, &failure);
	if (answer != RIG_COMMITTED)
		fail_msg("submit answered %d: %s", answer, failure);
}

static int settle(uint64_t value, const char **failure)
{
	*failure = NULL;
	return t.dev->hot->settle(t.device, value, failure);
}

static void settled(uint64_t value)
{
	const char *failure;

	if (settle(value, &failure) != RIG_OK)
		fail_msg("settle of %llu: %s", (unsigned long long)value, failure);
}

static void open_with(uint32_t queues)
{
	const struct passive_options options = {.queues = queues, .clock_hz = HZ, .tells = true};
	const char *fault;
	uint32_t q, entries;
	void *region;

	seed = 1;
	memset(&x, 0, sizeof(x));
	memset(times, 0, sizeof(times));
	assert_int_equal(passive_make(&t, &options, 0), 0);
	for (q = 0; q < QUEUES; q++) {
		const uint8_t *regs = t.regs + RVX1_QUEUE_BASE + q * RVX1_QUEUE_PITCH;

		memcpy(&x.ring[q], regs + RVX1_QUEUE_RING, 8);
		memcpy(&entries, regs + RVX1_QUEUE_ENTRIES, 4);
		x.entries[q] = entries;
	}
	assert_int_equal(rig_driver_module.alloc(t.device, RIG_DEVICE, 1 << 20, &region, &fault), 0);
	buffer = region;
}

static int setup(void **state)
{
	(void)state;
	open_with(QUEUES);
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

/* ---- Packets ---- */

static void assert_logged(const uint8_t *opcodes, unsigned n)
{
	assert_int_equal(x.logged, n);
	assert_memory_equal(x.log, opcodes, n);
	x.logged = 0;
}

static void an_untimed_value_has_no_packet_more_also_after_timed_ones(void **state)
{
	static const uint8_t plain[] = {RVX1_OP_STORE, RVX1_OP_LAUNCH, RVX1_OP_RELEASE};
	static const uint8_t timed[] = {RVX1_OP_STAMP, RVX1_OP_STORE, RVX1_OP_LAUNCH, RVX1_OP_COUNTERS,
	        RVX1_OP_STAMP, RVX1_OP_RELEASE};
	uint64_t value;

	(void)state;
	for (value = 1; value <= 6; value++) {
		make_part(0, 0, value);
		make_launch(1, 0);
		submit(value, 2, value % 2 ? NULL : &times[value]);
		execute_all();
		if (value % 2)
			assert_logged(plain, sizeof(plain));
		else
			assert_logged(timed, sizeof(timed));
	}
}

static void every_queue_of_a_value_stamps_its_start_and_the_last_to_finish_its_end(void **state)
{
	uint32_t q;

	(void)state;
	for (q = 0; q < QUEUES; q++)
		make_part(q, q, 1);
	submit(1, QUEUES, &times[1]);
	execute_all();
	assert_int_equal(x.stamps, QUEUES + 1);
	assert_int_equal(x.value, 1);
}

static void parts_keep_their_order_on_eight_queues_timed_or_not(void **state)
{
	uint64_t value;
	uint32_t i, j;

	(void)state;
	for (value = 1; value <= 1500; value++) {
		uint32_t n = draw(MAX_PARTS + 1);

		for (i = 0; i < n; i++) {
			make_part(i, draw(QUEUES), value);
			for (j = 0; j < i; j++)
				if (parts[j].queue != parts[i].queue && !draw(3))
					after[i][parts[i].nafter++] = j;
		}
		/* That no part runs before the value before is complete is what `run` checks. */
		submit(value, n, draw(2) ? &times[value] : NULL);
		if (draw(2))
			execute(draw(QUEUES));
	}
	execute_all();
	assert_int_equal(x.value, 1500);
	settled(1500);
}

static void the_rings_of_eight_queues_grow_to_the_most_that_room_promises(void **state)
{
	const uint32_t most = (uint32_t)t.dev->facts.ring_units_max, waits = most - 3;
	uint64_t missing;
	const char *fault;
	uint32_t q;

	(void)state;
	assert_true(most > t.dev->facts.ring_units);
	for (q = 0; q < QUEUES; q++) {
		make_part(0, q, 1);
		assert_int_equal(
		        t.dev->hot->room(t.device, parts, 1, waits, &launches_run, scratch), RIG_GROW);
		assert_int_equal(
		        rig_driver_module.grow(t.device, parts, 1, waits, &missing, &fault), RIG_GROWN);
		assert_int_equal(
		        t.dev->hot->room(t.device, parts, 1, waits, &launches_run, scratch), RIG_FITS);
		assert_int_equal(
		        t.dev->hot->room(t.device, parts, 1, waits + 1, &launches_run, scratch), RIG_NEVER);
	}
}

/* ---- Times ---- */

static void check_times(uint64_t first, uint64_t last, uint64_t before, uint64_t now)
{
	uint64_t i, end = 0, untimed = 0, error = t.dev->times.worst;

	for (i = first; i <= last; i++) {
		if (!times[i].end) {
			untimed++;
			continue;
		}
		assert_true(times[i].start >= end && times[i].end >= times[i].start);
		assert_true(times[i].start + error >= before && times[i].end <= now + error);
		end = times[i].end;
	}
	assert_true(untimed <= 1); /* the first, if it found the queues full */
}

static void stamps_are_used_again_only_once_they_were_converted(void **state)
{
	uint64_t value, before = rig_now_ns();

	(void)state;
	for (value = 1; value <= VALUES; value++) {
		make_part(0, draw(QUEUES), value);
		make_launch(1, 2 * draw(QUEUES / 2));
		submit(value, 2, &times[value]);
		if (!draw(50))
			execute_all();
	}
	execute_all();
	settled(VALUES);
	check_times(1, VALUES, before, rig_now_ns());
}

static void the_pair_is_written_by_settle_or_a_later_submit_and_then_left_alone(void **state)
{
	struct rig_times pair;

	(void)state;
	make_part(0, 0, 1);
	times[1] = (struct rig_times){7, 7};
	submit(1, 1, &times[1]);
	assert_int_equal(times[1].start, 0);
	execute_all();
	assert_int_equal(times[1].end, 0);
	settled(1);
	assert_true(times[1].start && times[1].end >= times[1].start);
	pair = times[1];
	settled(1);
	make_part(0, 0, 2);
	submit(2, 1, &times[2]);
	execute_all();
	settled(2);
	assert_memory_equal(&pair, &times[1], sizeof(pair));
}

/* Beside the poller, which reads the clock in its own time. */
/* Readings of the clock that came meanwhile may put a stamp before the end that was converted with others. */
static void no_start_is_put_before_the_end_converted_before_it(void **state)
{
	uint64_t end = rig_now_ns() + UINT64_C(3600000000000);

	(void)state;
	make_part(0, 0, 1);
	submit(1, 1, &times[1]);
	execute_all();
	t.dev->times.end = end;
	settled(1);
	assert_true(times[1].start >= end && times[1].end >= times[1].start);
}

static void a_stamp_below_the_one_that_ended_the_value_before_fails_settle(void **state)
{
	const char *failure;

	(void)state;
	make_part(0, 0, 1);
	submit(1, 1, &times[1]);
	execute_all();
	t.dev->times.end_ticks = passive_clock(&t) + 1;
	assert_int_equal(settle(1, &failure), RIG_FAILED);
	assert_non_null(strstr(failure, "out of order"));
	assert_int_equal(times[1].end, 0);
}

static void settle_reads_one_register_and_the_hot_path_none_and_nothing_allocates(void **state)
{
	uint64_t value, allocations = test_allocs(), messages, least = UINT64_MAX;

	(void)state;
	for (value = 1; value < 200; value++) {
		make_part(0, 0, value);
		make_launch(1, 2);
		messages = rig_pci_messages(t.dev->pci);
		submit(value, 2, value % 2 ? NULL : &times[value]);
		if (value % 2 == 1)
			continue;
		execute_all();
		settled(value);
		messages = rig_pci_messages(t.dev->pci) - messages;
		if (messages < least)
			least = messages;
	}
	assert_int_equal(least, 1);
	assert_int_equal(test_allocs(), allocations);
}

static void a_stamp_that_the_work_never_wrote_fails_settle_with_the_value(void **state)
{
	const char *failure;

	(void)state;
	for (x.skip_stamp = 1; x.skip_stamp <= 2;) {
		uint64_t skip = x.skip_stamp;

		make_part(0, 0, 1);
		submit(1, 1, &times[1]);
		execute_all();
		assert_int_equal(settle(1, &failure), RIG_FAILED);
		assert_non_null(strstr(failure, "the times of value 1"));
		assert_int_equal(times[1].end, 0);
		teardown(NULL);
		setup(NULL);
		x.skip_stamp = skip + 1;
	}
}

static void measures_come_in_part_order_and_not_after_they_were_given_up(void **state)
{
	uint64_t rows[3 * ROW + 1] = {0}, i;
	const char *failure;

	(void)state;
	make_launch(0, 4);
	make_part(1, 1, 1);
	make_launch(2, 4);
	make_launch(3, 4);
	submit(1, 4, &times[1]);
	rows[3 * ROW] = 99;
	execute_all();
	settled(1);
	assert_int_equal(t.dev->hot->measures(t.device, 1, rows, &failure), RIG_OK);
	for (i = 0; i < 3; i++) {
		assert_int_equal(rows[i * ROW], 1);
		assert_true(rows[i * ROW + 1] >= times[1].start && rows[i * ROW + 2] <= times[1].end);
		assert_int_equal(rows[i * ROW + 3], 10 + i);
		assert_int_equal(rows[i * ROW + 4], 5);
		assert_int_equal(rows[i * ROW + 5], 6);
		assert_int_equal(rows[i * ROW + 6], 7);
	}
	assert_int_equal(rows[3 * ROW], 99);
	assert_int_equal(t.dev->hot->measures(t.device, 1, NULL, &failure), RIG_OK);
	memset(rows, 0, sizeof(rows));
	assert_int_equal(t.dev->hot->measures(t.device, 1, rows, &failure), RIG_OK);
	assert_int_equal(rows[0], 0);
}

/* As the runtime does. */
static void submit_launches(uint64_t value, uint32_t n)
{
	uint64_t missing;
	const char *fault;
	uint32_t i;

	for (i = 0; i < n; i++)
		make_launch(i, 0);
	while (room(n) == RIG_GROW)
		assert_int_equal(rig_driver_module.grow(t.device, parts, n, 0, &missing, &fault), RIG_GROWN);
	submit(value, n, &times[value]);
	execute_all();
	assert_int_equal(x.value, value);
	settled(value);
}

static void values_of_up_to_2700_launches_are_timed_and_measured_from_the_first_on(void **state)
{
	static const uint32_t launches[] = {512, 1000, 1, 300, MANY, MANY};
	static uint64_t rows[MANY * ROW];
	const char *failure;
	uint64_t value;
	uint32_t i;

	(void)state;
	teardown(NULL);
	open_with(2);
	for (value = 1; value <= sizeof(launches) / sizeof(launches[0]); value++) {
		const uint32_t n = launches[value - 1];

		submit_launches(value, n);
		assert_true(times[value].end >= times[value].start && times[value].start > 0);
		memset(rows, 0, sizeof(rows));
		assert_int_equal(t.dev->hot->measures(t.device, value, rows, &failure), RIG_OK);
		for (i = 0; i < n; i++)
			assert_int_equal(rows[i * ROW], 1);
		assert_int_equal(t.dev->hot->measures(t.device, value, NULL, &failure), RIG_OK);
	}
	submit_launches(value, MOST); /* too many to measure: timed alone */
	assert_true(times[value].start > 0);
	memset(rows, 0, sizeof(rows));
	assert_int_equal(t.dev->hot->measures(t.device, value, rows, &failure), RIG_OK);
	assert_int_equal(rows[0], 0);
}

static void launches_run_untimed_where_no_memory_is_left_for_their_stamps(void **state)
{
	uint64_t pa;

	(void)state;
	while (!rig_dev_take(t.dev, RIG_POOL_BOOT, RIG_PAGE, RIG_PAGE, &pa))
		;
	submit_launches(1, 900);
	assert_true(times[1].start == 0 && times[1].end == 0);
	submit_launches(2, 900);
	submit_launches(3, 1);
	assert_true(times[3].end > 0);
}

#if defined(__x86_64__)
/* Loads of the stamps' memory, each seen by a fault of a page that is shut but for one instruction. */
static struct {
	uint8_t *at;
	uint64_t bytes;
	uint16_t loads[4096];
} shut;

static void on_load(int sig, siginfo_t *info, void *context)
{
	uint64_t offset = (uint64_t)((uint8_t *)info->si_addr - shut.at);
	ucontext_t *uc = context;

	if (sig == SIGSEGV && offset >= shut.bytes)
		abort();
	if (sig == SIGSEGV)
		shut.loads[offset / sizeof(uint64_t) % 4096]++;
	mprotect(shut.at, shut.bytes, sig == SIGSEGV ? PROT_READ | PROT_WRITE : PROT_NONE);
	uc->uc_mcontext.gregs[REG_EFL] ^= 0x100; /* to SIGTRAP after the next instruction, and back */
}
#endif

/* Who could change one between a check and a use could have anything believed. */
static void each_stamp_is_loaded_once(void **state)
{
#if defined(__x86_64__)
	const struct sigaction seen = {.sa_sigaction = on_load, .sa_flags = SA_SIGINFO | SA_NODEFER};
	struct sigaction segv, trap;
	const char *failure;
	unsigned i, loaded = 0;
	int answer;

	(void)state;
	for (i = 0; i < QUEUES; i++)
		make_launch(i, i & ~1u);
	submit(1, QUEUES, &times[1]);
	submit(2, 1, &times[2]);
	execute_all();
	memset(&shut, 0, sizeof(shut));
	shut.at = t.dev->stamps.host;
	shut.bytes = t.dev->stamps.bytes;
	sigaction(SIGSEGV, &seen, &segv);
	sigaction(SIGTRAP, &seen, &trap);
	mprotect(shut.at, shut.bytes, PROT_NONE);
	answer = settle(2, &failure);
	mprotect(shut.at, shut.bytes, PROT_READ | PROT_WRITE);
	sigaction(SIGSEGV, &segv, NULL);
	sigaction(SIGTRAP, &trap, NULL);
	assert_int_equal(answer, RIG_OK);
	for (i = 0; i < 4096; i++) {
		loaded += shut.loads[i];
		assert_true(shut.loads[i] <= 1);
	}
	assert_int_equal(loaded, 1 + QUEUES / 2 + QUEUES * 6 + 1 + 1 + 6);
#else
	(void)state;
	skip();
#endif
}

static void values_without_launches_keep_nothing(void **state)
{
	uint64_t value;

	(void)state;
	for (value = 1; value <= 1000; value++) {
		make_part(0, 1, value);
		submit(value, 1, &times[value]);
		execute_all();
		settled(value);
	}
	assert_int_equal(t.dev->times.kept_first, t.dev->times.kept_last);
	assert_int_equal(t.dev->times.first, t.dev->times.last);
}

static void a_board_without_a_clock_has_no_settle_and_leaves_the_pair_zero(void **state)
{
	const struct passive_options options = {.queues = 0};
	struct rig_facts facts = {.version = RIG_EDGE_VERSION};
	struct passive plain;
	const char *fault;

	(void)state;
	assert_int_equal(passive_make(&plain, &options, 0), 0);
	assert_int_equal(rig_driver_module.facts(plain.device, &facts, &fault), 0);
	assert_int_equal(facts.ncounters, 0);
	assert_null(plain.dev->hot->settle);
	assert_null(plain.dev->hot->measures);
	times[1] = (struct rig_times){3, 4};
	assert_int_equal(plain.dev->hot->room(plain.device, NULL, 0, 0, NULL, scratch), RIG_FITS);
	assert_int_equal(
	        plain.dev->hot->submit(plain.device, 1, NULL, 0, NULL, 0, NULL, scratch, &times[1], &fault),
	        RIG_COMMITTED);
	assert_true(times[1].start == 0 && times[1].end == 0);
	passive_close(&plain);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(an_untimed_value_has_no_packet_more_also_after_timed_ones),
	        TEST(every_queue_of_a_value_stamps_its_start_and_the_last_to_finish_its_end),
	        TEST(parts_keep_their_order_on_eight_queues_timed_or_not),
	        TEST(the_rings_of_eight_queues_grow_to_the_most_that_room_promises),
	        TEST(stamps_are_used_again_only_once_they_were_converted),
	        TEST(the_pair_is_written_by_settle_or_a_later_submit_and_then_left_alone),
	        TEST(no_start_is_put_before_the_end_converted_before_it),
	        TEST(a_stamp_below_the_one_that_ended_the_value_before_fails_settle),
	        TEST(settle_reads_one_register_and_the_hot_path_none_and_nothing_allocates),
	        TEST(a_stamp_that_the_work_never_wrote_fails_settle_with_the_value),
	        TEST(measures_come_in_part_order_and_not_after_they_were_given_up),
	        TEST(values_of_up_to_2700_launches_are_timed_and_measured_from_the_first_on),
	        TEST(launches_run_untimed_where_no_memory_is_left_for_their_stamps),
	        TEST(each_stamp_is_loaded_once),
	        TEST(values_without_launches_keep_nothing),
	        cmocka_unit_test(a_board_without_a_clock_has_no_settle_and_leaves_the_pair_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
