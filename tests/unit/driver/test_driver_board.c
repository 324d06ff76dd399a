/* SPDX-License-Identifier: MIT */
/* What the driver asks of a board's port: a table that is whole, and calls in the order that a device
   needs. */
#include "test.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bits.h"
#include "boards.h"
#include "passive.h"
#include "rvx1_firmware_manifest.h"

static const struct rig_driver_module *const m = &rig_driver_module;
static struct passive t;
static struct rig_board board; /* RVX-1's, with what a test changes */
static const char *fault;

static const struct rig_board *rvx1(void)
{
	return rig_board_find(RVX1_PCI_VENDOR, RVX1_PCI_DEVICE);
}

static int make(const struct passive_options *given)
{
	struct passive_options options = given ? *given : (struct passive_options){0};

	options.board = &board;
	return passive_make(&t, &options, 0);
}

static int setup(void **state)
{
	(void)state;
	board = *rvx1();
	memset(&t, 0, sizeof(t));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (t.fake)
		passive_close(&t);
	return 0;
}

static void submit_empty(uint64_t value)
{
	uint8_t scratch[RIG_SCRATCH] __attribute__((aligned(16)));
	const char *failure;

	assert_int_equal(t.dev->hot->room(t.device, NULL, 0, 0, NULL, scratch), RIG_FITS);
	assert_int_equal(t.dev->hot->submit(t.device, value, NULL, 0, NULL, 0, NULL, scratch, NULL, &failure),
	        RIG_COMMITTED);
}

/* ---- The table ---- */

static void assert_refused(const char *field, const char *expected)
{
	assert_int_equal(make(NULL), -EINVAL);
	if (!strstr(t.why, field) || !strstr(t.why, expected) || !strstr(t.why, "rvx1"))
		fail_msg("%s: the reason is: %s", field, t.why);
	passive_close(&t);
}

static void a_function_that_a_port_left_out_is_named_when_a_device_is_made(void **state)
{
#define LEFT_OUT(member)                                                                                     \
	{                                                                                                    \
#member, offsetof(struct rig_board, member)                                                  \
	}
	static const struct {
		const char *name;
		size_t offset;
	} members[] = {LEFT_OUT(describe), LEFT_OUT(poke), LEFT_OUT(root), LEFT_OUT(invalidate),
	        LEFT_OUT(start_value), LEFT_OUT(enable), LEFT_OUT(check), LEFT_OUT(step), LEFT_OUT(part),
	        LEFT_OUT(ring), LEFT_OUT(completed), LEFT_OUT(failed), LEFT_OUT(fault), LEFT_OUT(arm),
	        LEFT_OUT(image_place), LEFT_OUT(image_find), LEFT_OUT(halt)};
	void (*const none)(void) = NULL;

	(void)state;
	for (unsigned i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		board = *rvx1();
		memcpy((uint8_t *)&board + members[i].offset, &none, sizeof(none));
		assert_refused(members[i].name, "is NULL");
	}
}

static struct rig_board_facts wrong; /* what is not 0 in it is described */
static bool unnamed;

static int describe(struct rig_port *port, struct rig_board_facts *facts)
{
	int err = rvx1()->describe(port, facts);

#define TAKE(field)                                                                                          \
	if (wrong.field)                                                                                     \
	facts->field = wrong.field == 99999 ? 0 : wrong.field
	TAKE(memory_bar);
	TAKE(memory_bar_bytes);
	TAKE(nqueues);
	TAKE(npools);
	TAKE(unit_bytes);
	TAKE(ring_units);
	TAKE(ring_units_max);
	TAKE(segment_bytes);
	TAKE(stack_pitch);
	TAKE(copy_engine);
	TAKE(clock_hz);
	if (unnamed)
		facts->queues[1].name = "";
	return err;
}

/* Writes two units whatever it is asked. */
static void step_of_two(struct rig_port *port, void *units, const struct rig_step *step)
{
	rvx1()->step(port, units, step);
	rvx1()->step(port, (uint8_t *)units + RVX1_PACKET_BYTES, step);
}

static void a_fact_out_of_range_is_named_with_what_it_must_be(void **state)
{
	enum { ZERO = 99999 };
	static const struct {
		struct rig_board_facts facts;
		const char *field, *expected;
	} cases[] = {
	        {{.memory_bar = 6}, "memory_bar is 6", "from 0 to 5"},
	        {{.memory_bar_bytes = ZERO}, "memory_bar_bytes is 0", "from 1 to 67108864"},
	        {{.memory_bar_bytes = PASSIVE_MEMORY + 1}, "memory_bar_bytes is 67108865", "to 67108864"},
	        {{.nqueues = ZERO}, "nqueues is 0", "from 1 to 8"},
	        {{.nqueues = 9}, "nqueues is 9", "from 1 to 8"},
	        {{.npools = 5}, "npools is 5", "from 0 to 4"},
	        {{.unit_bytes = ZERO}, "unit_bytes is 0", "a power of two from 1"},
	        {{.unit_bytes = 48}, "unit_bytes is 48", "a power of two from 1"},
	        {{.ring_units = ZERO}, "ring_units is 0", "a power of two from 4"},
	        {{.ring_units = 1000}, "ring_units is 1000", "a power of two from 4"},
	        {{.ring_units = 1 << 20}, "ring_units is 1048576", "a power of two from 4 to 16384"},
	        {{.ring_units_max = 3000}, "ring_units_max is 3000", "a power of two"},
	        {{.segment_bytes = 3000}, "segment_bytes is 3000", "a power of two"},
	        {{.stack_pitch = 1}, "stack_bytes is", "to 1"},
	        {{.copy_engine = 2}, "copy_engine is 2", "RIG_COPY"},
	        {{.copy_engine = ZERO}, "copy_engine is 0", "RIG_COPY"},
	};

	(void)state;
	board.describe = describe;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		wrong = cases[i].facts;
		assert_refused(cases[i].field, cases[i].expected);
	}
	wrong = (struct rig_board_facts){0};
	unnamed = true;
	assert_refused("queues[1]", "name");
	unnamed = false;
	board.step_units = 0;
	assert_refused("step_units is 0", "from 1 to 256");
	board.step_units = 2;
	board.step = step_of_two;
	assert_refused("step wrote unit 1", "RIG_STEP_NOP of 1 unit");
}

/* ---- Calls ---- */

/* What the poller asked, one letter a call: A arm, C completed, F failed. */
static struct {
	atomic_bool on;
	atomic_uint n;
	char log[64];
} asked;

static void note(char call)
{
	unsigned n = atomic_load(&asked.n);

	if (!atomic_load(&asked.on) || !pthread_equal(pthread_self(), t.dev->progress.poller))
		return;
	if (n < sizeof(asked.log))
		asked.log[n] = call;
	atomic_store(&asked.n, n + 1);
}

static void note_arm(struct rig_port *port, uint64_t seen)
{
	note('A');
	rvx1()->arm(port, seen);
}

static uint64_t note_completed(struct rig_port *port)
{
	note('C');
	return rvx1()->completed(port);
}

static bool note_failed(struct rig_port *port)
{
	note('F');
	return rvx1()->failed(port);
}

/* What completes between a look and the arming would raise no interrupt. */
static void the_poller_looks_for_completions_after_it_armed_and_before_anything_else(void **state)
{
	unsigned i, arms = 0;

	(void)state;
	board.arm = note_arm;
	board.completed = note_completed;
	board.failed = note_failed;
	asked.n = 0;
	assert_int_equal(make(NULL), 0);
	atomic_store(&asked.on, true);
	while (atomic_load(&asked.n) < sizeof(asked.log))
		rig_pause();
	atomic_store(&asked.on, false);
	for (i = 0; i + 1 < sizeof(asked.log); i++)
		if (asked.log[i] == 'A') {
			assert_int_equal(asked.log[i + 1], 'C');
			arms++;
		}
	assert_true(arms > 2);
}

static atomic_bool fails;

/* Completes value 1 and fails, at once, after a look that saw neither. */
static bool complete_and_fail(struct rig_port *port)
{
	const uint32_t code = RVX1_FAULT_PACKET;

	if (atomic_exchange(&fails, false)) {
		passive_complete(&t, 1);
		__atomic_store_n((uint32_t *)(void *)(t.regs + RVX1_STATUS + RVX1_STATUS_FAULT), code,
		        __ATOMIC_RELEASE);
	}
	return rvx1()->failed(port);
}

static void assert_raised(void)
{
	uint64_t spins = 0;

	while (rig_word_load(t.word) != 1 && ++spins < 1 << 28)
		rig_pause();
	assert_int_equal(rig_word_load(t.word), 1);
}

static void what_completed_before_a_fault_is_raised_by_the_poller(void **state)
{
	const struct passive_options pinned = {.pinned = true};

	(void)state;
	board.failed = complete_and_fail;
	assert_int_equal(make(NULL), 0);
	submit_empty(1);
	submit_empty(2);
	atomic_store(&fails, true);
	assert_raised();
	passive_close(&t);
	assert_int_equal(make(&pinned), 0);
	submit_empty(1);
	submit_empty(2);
	atomic_store(&fails, true);
	assert_raised();
}

static void rings_begin_as_zeros_whatever_the_boards_memory_held(void **state)
{
	const struct passive_options options = {.dirty = true};
	uint64_t i;
	uint32_t q;

	(void)state;
	assert_int_equal(make(&options), 0);
	for (q = 0; q < t.dev->facts.nqueues; q++) {
		const struct rig_shared *ring = &t.dev->queues[q].memory;

		for (i = 0; i < ring->bytes; i++)
			assert_int_equal(t.memory[ring->pa + i], 0);
	}
	assert_int_equal(t.memory[PASSIVE_MEMORY - 1], PASSIVE_DIRT);
}

static void *sleep_an_hour(void *seen)
{
	const char *why;

	return m->sleep(t.device, *(uint64_t *)seen, 3600000, &why) ? seen : NULL;
}

/* The runtime blocks for as long as the device may be still. */
static void a_blocked_sleeper_is_woken_by_a_completion_and_by_a_fault(void **state)
{
	const uint32_t code = RVX1_FAULT_PACKET;
	pthread_t thread;
	uint64_t seen;
	void *answer;

	(void)state;
	assert_int_equal(make(NULL), 0);
	for (seen = 0; seen < 2; seen++) {
		submit_empty(seen + 1);
		assert_int_equal(pthread_create(&thread, NULL, sleep_an_hour, &seen), 0);
		while (!atomic_load(&t.dev->progress.sleepers))
			rig_pause();
		if (!seen)
			passive_complete(&t, 1);
		else
			__atomic_store_n((uint32_t *)(void *)(t.regs + RVX1_STATUS + RVX1_STATUS_FAULT), code,
			        __ATOMIC_RELEASE);
		pthread_join(thread, &answer);
		assert_ptr_equal(answer, seen ? &seen : NULL);
	}
}

static void the_first_fault_is_the_reason_and_no_later_one(void **state)
{
	(void)state;
	assert_int_equal(make(NULL), 0);
	rig_dev_set_fault(t.dev, "the %s", "first");
	rig_dev_set_fault(t.dev, "another");
	assert_int_equal(rig_dev_fault(t.dev, &fault), RIG_FAULT);
	assert_string_equal(fault, "the first");
}

static void a_processor_that_halts_is_a_fault(void **state)
{
	const uint32_t state_halted = RVX1_CP_HALTED;

	(void)state;
	assert_int_equal(make(NULL), 0);
	submit_empty(1);
	memcpy(t.regs + RVX1_CP_STATE, &state_halted, sizeof(state_halted));
	__atomic_store_n(
	        (uint32_t *)(void *)(t.regs + RVX1_STATUS + RVX1_STATUS_CP), state_halted, __ATOMIC_RELEASE);
	assert_true(rig_dev_check_fault(t.dev));
	assert_int_equal(rig_dev_fault(t.dev, &fault), RIG_FAULT);
	assert_non_null(strstr(fault, "command processor halted"));
}

static void the_board_is_told_the_value_that_the_word_holds(void **state)
{
	const struct passive_options options = {.start = 41};
	uint64_t value;

	(void)state;
	assert_int_equal(make(&options), 0);
	memcpy(&value, t.regs + RVX1_VALUE_SET, sizeof(value));
	assert_int_equal(value, 41);
}

/* The image that was built, in another folder, with a byte changed: `at`, or its last. */
static void write_image(const char *folder, size_t at)
{
	struct rig_firmware image;
	char path[128];
	FILE *file;

	assert_int_equal(make(NULL), 0);
	assert_int_equal(rig_port_firmware(&t.dev->port, RVX1_FIRMWARE_FILE, &image), 0);
	passive_close(&t);
	image.bytes[rig_min_u64(at, image.count - 1)] ^= 1;
	snprintf(path, sizeof(path), "%s/%s", folder, RVX1_FIRMWARE_FILE);
	file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(image.bytes, 1, image.count, file), image.count);
	fclose(file);
	free(image.bytes);
}

static void firmware_with_one_bit_changed_is_not_started(void **state)
{
	static const size_t places[] = {0, 100, SIZE_MAX};
	char folder[] = "/tmp/rig-firmware-XXXXXX", path[128];
	const struct passive_options options = {.firmware_dir = folder};
	uint32_t control;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/%s", folder, RVX1_FIRMWARE_FILE);
	for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		write_image(folder, places[i]);
		assert_true(make(&options) < 0);
		assert_non_null(strstr(t.why, "digest is not the one"));
		memcpy(&control, t.regs + RVX1_CP_CTRL, sizeof(control));
		assert_int_equal(control & RVX1_CP_CTRL_RUN, 0);
		passive_close(&t);
	}
	unlink(path);
	rmdir(folder);
}

static void a_board_out_of_its_manuals_limits_is_refused(void **state)
{
	static const struct passive_options cases[] = {
	        {.aperture = 4 << 20}, {.aperture = 128 << 20}, {.queues = 1}, {.queues = 9}};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(make(&cases[i]), -EPROTO);
		assert_non_null(strstr(t.why, "not a board of manual revision 1"));
		passive_close(&t);
	}
}

static struct {
	uint64_t iova;
	unsigned calls;
	bool reached; /* the device reaches the memory still */
} at_invalidate;

static int invalidate(struct rig_port *port, uint64_t va, uint64_t bytes)
{
	uint8_t byte;

	at_invalidate.calls++;
	at_invalidate.reached = rig_fake_dma_read(t.fake, at_invalidate.iova, &byte, 1) == 0;
	return rvx1()->invalidate(port, va, bytes);
}

static struct rig_region *map_page(void *page)
{
	void *region;

	assert_int_equal(m->map_host(t.device, page, 4096, &region, &fault), RIG_MAPS);
	at_invalidate.iova = ((struct rig_region *)region)->dma.iova;
	at_invalidate.calls = 0;
	return region;
}

/* The device may use a translation until it is invalidated, and must reach memory as long as it may. */
static void memory_is_unmapped_only_after_the_tables_that_lead_to_it_were_invalidated(void **state)
{
	const struct passive_options options = {.late_ack = 5};
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rig_region *region;
	uint32_t request, ack;
	uint8_t byte;

	(void)state;
	board.invalidate = invalidate;
	assert_int_equal(make(&options), 0);
	region = map_page(page);
	assert_int_equal(m->free(t.device, region, &fault), 0);
	assert_int_equal(at_invalidate.calls, 1);
	assert_true(at_invalidate.reached);
	assert_true(rig_fake_dma_read(t.fake, at_invalidate.iova, &byte, 1) < 0);
	/* The board says so late. */
	memcpy(&request, t.regs + RVX1_INV_REQUEST, sizeof(request));
	memcpy(&ack, t.regs + RVX1_INV_ACK, sizeof(ack));
	assert_true(request > 0);
	assert_int_equal(ack, request);
	munmap(page, 4096);
}

static void complete_at_once(struct rig_port *port, uint32_t queue, uint64_t position)
{
	rvx1()->ring(port, queue, position);
	passive_complete(&t, position);
	assert_int_equal(rig_dev_progress(t.dev), position);
}

static void a_value_that_completes_within_its_doorbell_is_believed(void **state)
{
	uint64_t value;

	(void)state;
	board.ring = complete_at_once;
	assert_int_equal(make(NULL), 0);
	for (value = 1; value <= 10; value++) /* one packet each */
		submit_empty(value);
	assert_false(rig_dev_faulted(t.dev));
	assert_int_equal(rig_word_load(t.word), 10);
}

static uint64_t word_at_deny;

void __real_rig_dma_deny(struct rig_pci *f);
void __wrap_rig_dma_deny(struct rig_pci *f);

void __wrap_rig_dma_deny(struct rig_pci *f)
{
	word_at_deny = rig_word_load(t.word);
	__real_rig_dma_deny(f);
}

static unsigned windows[RIG_PCI_BARS];

int __real_rig_port_window(struct rig_port *port, unsigned bar, uint64_t offset, uint64_t bytes,
        unsigned flags, struct rig_win *win);
int __wrap_rig_port_window(struct rig_port *port, unsigned bar, uint64_t offset, uint64_t bytes,
        unsigned flags, struct rig_win *win);

int __wrap_rig_port_window(struct rig_port *port, unsigned bar, uint64_t offset, uint64_t bytes,
        unsigned flags, struct rig_win *win)
{
	windows[bar]++;
	return __real_rig_port_window(port, bar, offset, bytes, flags, win);
}

/* But the status page, which is mapped, and the registers around it, which are not. */
static void an_open_makes_one_window_on_a_bar(void **state)
{
	static const unsigned expected[RIG_PCI_BARS] = {
	        [RVX1_BAR_REGS] = 2, [RVX1_BAR_MEMORY] = 1, [RVX1_BAR_DOORBELL] = 1};

	(void)state;
	memset(windows, 0, sizeof(windows));
	assert_int_equal(make(NULL), 0);
	assert_memory_equal(windows, expected, sizeof(windows));
}

/* Memory is given back once the word shows the last value. */
static void what_a_device_asks_for_is_refused_before_stop_raises_the_word(void **state)
{
	(void)state;
	assert_int_equal(make(NULL), 0);
	submit_empty(1);
	word_at_deny = UINT64_MAX;
	m->stop(t.device, "no progress for 10000 ms");
	assert_int_equal(word_at_deny, 0);
	assert_int_equal(rig_word_load(t.word), 1);
	m->release(t.device);
	t.device = NULL;
}

static void a_device_that_refuses_its_reset_is_halted_and_keeps_its_memory(void **state)
{
	uint32_t running;

	(void)state;
	assert_int_equal(make(NULL), 0);
	submit_empty(1);
	rig_fake_refuse_reset(t.fake, -EBUSY);
	m->stop(t.device, "no progress for 10000 ms");
	memcpy(&running, t.regs + RVX1_CP_STATE, sizeof(running));
	assert_int_equal(running, RVX1_CP_RESET);
	assert_int_equal(rig_word_load(t.word), 0);
	m->release(t.device);
	t.device = NULL;
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        CASE(a_function_that_a_port_left_out_is_named_when_a_device_is_made),
	        CASE(a_fact_out_of_range_is_named_with_what_it_must_be),
	        CASE(the_poller_looks_for_completions_after_it_armed_and_before_anything_else),
	        CASE(what_completed_before_a_fault_is_raised_by_the_poller),
	        CASE(rings_begin_as_zeros_whatever_the_boards_memory_held),
	        CASE(memory_is_unmapped_only_after_the_tables_that_lead_to_it_were_invalidated),
	        CASE(a_blocked_sleeper_is_woken_by_a_completion_and_by_a_fault),
	        CASE(the_first_fault_is_the_reason_and_no_later_one),
	        CASE(a_processor_that_halts_is_a_fault),
	        CASE(the_board_is_told_the_value_that_the_word_holds),
	        CASE(firmware_with_one_bit_changed_is_not_started),
	        CASE(a_board_out_of_its_manuals_limits_is_refused),
	        CASE(a_value_that_completes_within_its_doorbell_is_believed),
	        CASE(an_open_makes_one_window_on_a_bar),
	        CASE(what_a_device_asks_for_is_refused_before_stop_raises_the_word),
	        CASE(a_device_that_refuses_its_reset_is_halted_and_keeps_its_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
