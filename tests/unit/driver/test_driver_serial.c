/* SPDX-License-Identifier: MIT */
/*
 * The driver over a board without rings, a toy: each word of a words part is an operation, whose start logs
 * the word and which completes when the test lets it.
 */
#include "test.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "allocs.h"
#include "bits.h"
#include "device.h"
#include "fake.h"

#define MEMORY     (1u << 20)
#define POOL_START 0x10000u
#define BOARD_VA   0x700000000000ull
#define SYSTEM_VA  0x100000000000ull
#define BITS       32u
#define QUEUE      1024u /* the software queue's units */
#define LOG        16384u
#define ALL        UINT64_MAX
#define SECOND_MS  1000u

/* ---- The board ---- */

static struct toy {
	struct rig_fake *fake;
	void *device;
	rig_atomic_u64 *word;
	char why[512];
	_Atomic uint64_t gate; /* operations that may complete */
	_Atomic uint64_t started, completed;
	uint32_t log[LOG];
	uint32_t refused; /* the word whose operation fails in start */
	uint32_t broken;  /* and in poll */
	uint32_t nqueues, vectors;
	bool no_memory_bar;
	atomic_bool asked; /* poll looked at an operation that is not complete */
} t;
static _Atomic uint64_t submitted;
static uint8_t scratch[4 * RIG_SCRATCH] __attribute__((aligned(16)));

static int describe(struct rig_port *port, struct rig_board_facts *facts)
{
	struct rig_win memory;
	int err = rig_port_window(port, 2, 0, MEMORY, 0, &memory);

	if (err)
		return err;
	facts->nqueues = t.nqueues;
	facts->queues[0] = facts->queues[1] =
	        (struct rig_queue){.name = "TOY:0", .runs = RIG_RUNS(RIG_WORDS)};
	facts->pools[0] = (struct rig_board_pool){
	        .pa = POOL_START, .bytes = MEMORY - POOL_START, .visible = !t.no_memory_bar};
	facts->npools = 1;
	facts->memory_bar = 2;
	facts->memory_bar_bytes = t.no_memory_bar ? 0 : MEMORY;
	facts->memory_host = t.no_memory_bar ? NULL : rig_win_host(&memory);
	facts->board_va = BOARD_VA;
	facts->system_va = SYSTEM_VA;
	facts->system_bits = BITS;
	facts->vectors = t.vectors;
	facts->hang_ms = 1000;
	return 0;
}

static int check(
        struct rig_port *port, const struct rig_part *part, const struct rig_run *run, struct rig_need *need)
{
	(void)port;
	(void)run;
	need->units = part->u.words.count;
	return RIG_FITS;
}

static int part(struct rig_port *port, const struct rig_part *part, const struct rig_run *run,
        const struct rig_need *need, const struct rig_place *place)
{
	uint32_t i;

	(void)port;
	(void)run;
	for (i = 0; i < need->units; i++)
		memcpy((uint8_t *)place->units + i * RIG_SERIAL_OP_BYTES, &part->u.words.words[i],
		        sizeof(uint32_t));
	return 0;
}

static uint32_t word_of(const void *op)
{
	uint32_t word;

	memcpy(&word, op, sizeof(word));
	return word;
}

static int start(struct rig_port *port, const void *op)
{
	uint64_t n = atomic_load(&t.started);

	(void)port;
	assert_int_equal(n, atomic_load(&t.completed)); /* one at a time */
	assert_true(n < LOG);
	t.log[n] = word_of(op);
	atomic_store(&t.started, n + 1);
	return t.refused && word_of(op) == t.refused ? rig_error_set(-EIO, "toy refuses 0x%x", t.refused) : 0;
}

static int poll(struct rig_port *port, const void *op, bool *done)
{
	(void)port;
	if (t.broken && word_of(op) == t.broken)
		return rig_error_set(-EIO, "toy broke at 0x%x", t.broken);
	*done = atomic_load(&t.completed) < atomic_load(&t.gate);
	if (*done)
		atomic_fetch_add(&t.completed, 1);
	else
		atomic_store(&t.asked, true);
	return 0;
}

static void halt(struct rig_port *port)
{
	(void)port;
}

static const struct rig_serial serial = {.start = start, .poll = poll};
static const struct rig_board board = {.version = RIG_BOARD_VERSION,
        .arch = "toy",
        .state_bytes = 1,
        .serial = &serial,
        .describe = describe,
        .check = check,
        .part = part,
        .halt = halt};

/* ---- Help ---- */

static void fresh(bool resets, unsigned irq)
{
	struct rig_fake_options o = {.bar_bytes = {4096, 0, MEMORY},
	        .no_reset = !resets,
	        .areas = {0, 0, 1},
	        .area = {{{0}}, {{0}}, {{0, MEMORY}}}};

	memset(&t, 0, sizeof(t));
	atomic_store(&t.gate, ALL);
	atomic_store(&submitted, 0);
	t.nqueues = 1;
	t.vectors = irq < RIG_IRQ_KINDS;
	if (t.vectors)
		o.irqs[irq] = 1;
	assert_int_equal(rig_fake_make(&t.fake, &o), 0);
	t.word = rig_words() + 1;
	__atomic_store_n((uint64_t *)t.word, 0, __ATOMIC_RELEASE);
}

static int boot(const struct rig_driver_options *options)
{
	struct rig_pci_taking taken = {.ops = &rig_fake_ops, .transport = t.fake};
	struct rig_pci *pci;
	int err = rig_pci_take(&pci, &taken);

	if (err)
		snprintf(t.why, sizeof(t.why), "%s", rig_error());
	return err ? err : rig_driver_make(pci, &board, options, t.word, &t.device, t.why, sizeof(t.why));
}

static void make(bool resets, unsigned irq)
{
	const struct rig_driver_options options = {.boot_ms = 1000};

	fresh(resets, irq);
	if (boot(&options))
		fail_msg("%s", t.why);
}

static void end(void)
{
	assert_int_equal(rig_fake_maps(t.fake), 0);
	assert_int_equal(rig_fake_connected(t.fake), 0);
	assert_int_equal(rig_fake_open_count(t.fake), 0);
	rig_fake_free(t.fake);
}

static void stop_and_end(const char *reason)
{
	rig_driver_module.stop(t.device, reason);
	rig_driver_module.release(t.device);
	end();
}

static struct rig_part words(const uint32_t *at, uint32_t count)
{
	return (struct rig_part){.kind = RIG_WORDS, .u.words = {at, count}};
}

static int room(const struct rig_part *parts, uint32_t nparts, uint32_t nwaits)
{
	static const struct rig_run run;

	return rig_driver_of(t.device)->room(t.device, parts, nparts, nwaits, &run, scratch);
}

static int submit(
        const struct rig_part *parts, uint32_t nparts, const struct rig_wait *waits, uint32_t nwaits)
{
	static const struct rig_run run;
	const char *failure;
	uint64_t value = atomic_load(&submitted) + 1;

	assert_int_equal(room(parts, nparts, nwaits), RIG_FITS);
	atomic_store(&submitted, value);
	return rig_driver_of(t.device)->submit(
	        t.device, value, parts, nparts, waits, nwaits, &run, scratch, NULL, &failure);
}

static void submit_word(uint32_t word)
{
	const struct rig_part one = words(&word, 1);

	assert_int_equal(submit(&one, 1, NULL, 0), RIG_COMMITTED);
}

/* NULL, or the device's fault. */
static const char *await(uint64_t value)
{
	const char *fault = NULL;
	uint64_t seen;

	while ((seen = rig_word_load(t.word)) < value)
		if (rig_driver_module.sleep(t.device, seen, SECOND_MS, &fault))
			return fault;
	return NULL;
}

static void await_started(uint64_t n)
{
	while (atomic_load(&t.started) < n)
		sched_yield();
}

/* ---- Order ---- */

static void operations_run_in_the_order_of_parts_and_submissions(void **state)
{
	uint32_t a[] = {1, 2, 3}, b[] = {4}, c[] = {5, 6};
	const struct rig_part first[] = {words(a, 3), words(b, 1)}, second[] = {words(c, 2)};
	uint32_t i;

	(void)state;
	make(true, RIG_IRQ_MSI);
	assert_int_equal(submit(first, 2, NULL, 0), RIG_COMMITTED);
	memset(a, 0xFF, sizeof(a)); /* the caller's again */
	assert_int_equal(submit(second, 1, NULL, 0), RIG_COMMITTED);
	assert_null(await(2));
	assert_int_equal(atomic_load(&t.started), 6);
	for (i = 0; i < 6; i++)
		assert_int_equal(t.log[i], i + 1);
	stop_and_end(NULL);
	assert_int_equal(rig_word_load(t.word), 2);
}

static void the_word_shows_a_value_when_its_last_operation_is_complete_and_not_before(void **state)
{
	const uint32_t three[] = {1, 2, 3};
	const struct rig_part part_of_three = words(three, 3);

	(void)state;
	make(true, RIG_IRQ_KINDS);
	atomic_store(&t.gate, 2);
	assert_int_equal(submit(&part_of_three, 1, NULL, 0), RIG_COMMITTED);
	await_started(3);
	assert_int_equal(rig_word_load(t.word), 0);
	atomic_store(&t.gate, 3);
	assert_null(await(1));
	stop_and_end(NULL);
}

static void a_value_without_parts_is_reached(void **state)
{
	(void)state;
	make(true, RIG_IRQ_KINDS);
	assert_int_equal(submit(NULL, 0, NULL, 0), RIG_COMMITTED);
	assert_null(await(1));
	stop_and_end(NULL);
}

static void many_submissions_go_round_the_queue_in_order(void **state)
{
	uint32_t run[7], i, n = 0, sent = 0;

	(void)state;
	make(true, RIG_IRQ_KINDS);
	srand(3);
	while (sent + 7 < LOG) {
		uint32_t count = (uint32_t)rand() % 8;
		const struct rig_part one = words(run, count);

		for (i = 0; i < count; i++)
			run[i] = sent + i + 1;
		while (room(&one, 1, 0) == RIG_LATER)
			assert_null(await(rig_min_u64(rig_word_load(t.word) + 1, atomic_load(&submitted))));
		assert_int_equal(submit(&one, 1, NULL, 0), RIG_COMMITTED);
		sent += count;
	}
	assert_null(await(atomic_load(&submitted)));
	assert_int_equal(atomic_load(&t.started), sent);
	for (n = 0; n < sent; n++)
		assert_int_equal(t.log[n], n + 1);
	stop_and_end(NULL);
}

/* ---- Waits ---- */

static void work_starts_once_the_other_devices_words_are_reached(void **state)
{
	const struct rig_wait waits[] = {{rig_words() + 7, 5}, {rig_words() + 8, 1}};
	const uint32_t word = 1;
	const struct rig_part one = words(&word, 1);

	(void)state;
	make(true, RIG_IRQ_KINDS);
	__atomic_store_n((uint64_t *)(rig_words() + 7), 4, __ATOMIC_RELEASE);
	__atomic_store_n((uint64_t *)(rig_words() + 8), 0, __ATOMIC_RELEASE);
	submit_word(9);
	assert_int_equal(submit(&one, 1, waits, 2), RIG_COMMITTED);
	assert_null(await(1));
	rig_word_raise(rig_words() + 7, 5);
	assert_int_equal(atomic_load(&t.started), 1);
	rig_word_raise(rig_words() + 8, 1);
	assert_null(await(2));
	assert_int_equal(atomic_load(&t.started), 2);
	stop_and_end(NULL);
}

static void stop_ends_a_worker_that_waits_for_another_device_and_raises_the_word(void **state)
{
	const struct rig_wait wait = {rig_words() + 9, 1};
	const uint32_t word = 1;
	const struct rig_part one = words(&word, 1);

	(void)state;
	make(false, RIG_IRQ_KINDS); /* no reset, and nothing runs that would need one */
	__atomic_store_n((uint64_t *)(rig_words() + 9), 0, __ATOMIC_RELEASE);
	assert_int_equal(submit(&one, 1, &wait, 1), RIG_COMMITTED);
	rig_driver_module.stop(t.device, NULL);
	assert_int_equal(rig_word_load(t.word), 1);
	assert_int_equal(atomic_load(&t.started), 0);
	rig_driver_module.release(t.device);
	end();
}

/* ---- Room ---- */

static void room_is_later_while_the_queue_is_full_and_fits_when_it_drained(void **state)
{
	uint32_t many[QUEUE / 4] = {0};
	const struct rig_part quarter = words(many, QUEUE / 4);

	(void)state;
	make(true, RIG_IRQ_KINDS);
	atomic_store(&t.gate, 0);
	while (room(&quarter, 1, 0) == RIG_FITS)
		assert_int_equal(submit(&quarter, 1, NULL, 0), RIG_COMMITTED);
	assert_int_equal(room(&quarter, 1, 0), RIG_LATER);
	assert_int_equal(atomic_load(&submitted), 3);
	atomic_store(&t.gate, QUEUE / 4);
	assert_null(await(1));
	assert_int_equal(room(&quarter, 1, 0), RIG_LATER); /* it might have to skip the queue's end */
	atomic_store(&t.gate, QUEUE / 2);
	assert_null(await(2));
	assert_int_equal(room(&quarter, 1, 0), RIG_FITS);
	atomic_store(&t.gate, ALL);
	assert_null(await(3));
	stop_and_end(NULL);
}

static void parts_that_the_empty_queue_cannot_hold_are_never(void **state)
{
	static uint32_t many[QUEUE];
	struct rig_part part_of_many = words(many, QUEUE);

	(void)state;
	make(true, RIG_IRQ_KINDS);
	assert_int_equal(room(&part_of_many, 1, 0), RIG_NEVER);
	part_of_many.u.words.count = UINT32_MAX;
	assert_int_equal(room(&part_of_many, 1, 0), RIG_NEVER);
	part_of_many.u.words.count = QUEUE / 4;
	assert_int_equal(room(&part_of_many, 1, QUEUE), RIG_NEVER);
	part_of_many.kind = RIG_COPY;
	assert_int_equal(room(&part_of_many, 1, 0), RIG_NEVER);
	stop_and_end(NULL);
}

static void room_and_submit_allocate_nothing(void **state)
{
	uint64_t before;
	unsigned i;

	(void)state;
	make(true, RIG_IRQ_KINDS);
	before = test_allocs();
	for (i = 0; i < 100; i++)
		submit_word(i + 1);
	assert_int_equal(test_allocs(), before);
	assert_null(await(100));
	stop_and_end(NULL);
}

/* The fake counts everything that would be a message or a system call of a transport. */
static void submit_sends_the_function_nothing(void **state)
{
	uint64_t before;

	(void)state;
	make(true, RIG_IRQ_KINDS);
	before = rig_fake_ops.messages(t.fake);
	submit_word(1);
	assert_int_equal(rig_fake_ops.messages(t.fake), before);
	assert_null(await(1));
	stop_and_end(NULL);
}

/* ---- Completion ---- */

static void completes_on(unsigned irq)
{
	unsigned i;

	make(true, irq);
	atomic_store(&t.gate, 0);
	for (i = 1; i <= 20; i++) {
		submit_word(i);
		await_started(i);
		atomic_store(&t.gate, i);
		assert_true(rig_fake_fire(t.fake, irq, 0));
		assert_null(await(i));
	}
	stop_and_end(NULL);
}

static void an_interrupt_of_any_kind_completes_an_operation(void **state)
{
	(void)state;
	completes_on(RIG_IRQ_MSIX);
	completes_on(RIG_IRQ_MSI);
	completes_on(RIG_IRQ_INTX);
}

static void a_lost_interrupt_only_delays(void **state)
{
	(void)state;
	make(true, RIG_IRQ_MSI);
	atomic_store(&t.gate, 0);
	submit_word(1);
	while (!atomic_load(&t.asked))
		sched_yield();
	atomic_store(&t.gate, 1);
	assert_null(await(1));
	stop_and_end(NULL);
}

static void a_pinned_worker_runs_work_too(void **state)
{
	const struct rig_driver_options options = {.boot_ms = 1000, .pinned = true, .cpu = sched_getcpu()};
	unsigned i;

	(void)state;
	fresh(true, RIG_IRQ_MSI);
	assert_int_equal(boot(&options), 0);
	for (i = 1; i <= 50; i++) {
		submit_word(i);
		assert_null(await(i));
	}
	stop_and_end(NULL);
}

/* ---- Faults and the end ---- */

static void an_operation_that_does_not_start_is_the_devices_fault(void **state)
{
	const char *fault;

	(void)state;
	make(true, RIG_IRQ_KINDS);
	t.refused = 3;
	atomic_store(&t.gate, 0);
	submit_word(1);
	submit_word(3);
	submit_word(4);
	atomic_store(&t.gate, ALL);
	fault = await(3);
	assert_non_null(fault);
	assert_non_null(strstr(fault, "toy refuses 0x3"));
	assert_int_equal(rig_word_load(t.word), 1);
	assert_int_equal(atomic_load(&t.started), 2); /* and nothing after it */
	stop_and_end(fault);
	assert_int_equal(rig_word_load(t.word), 3);
}

static void an_operation_that_breaks_is_the_devices_fault(void **state)
{
	const char *fault;

	(void)state;
	make(true, RIG_IRQ_KINDS);
	t.broken = 2;
	submit_word(2);
	fault = await(1);
	assert_non_null(fault);
	assert_non_null(strstr(fault, "toy broke at 0x2"));
	stop_and_end(fault);
}

static void submit_after_a_fault_fails_with_its_text(void **state)
{
	static const struct rig_run run;
	const char *failure = NULL, *fault;

	(void)state;
	make(true, RIG_IRQ_KINDS);
	t.refused = 1;
	submit_word(1);
	fault = await(1);
	assert_non_null(fault);
	assert_int_equal(
	        rig_driver_of(t.device)->submit(t.device, 2, NULL, 0, NULL, 0, &run, scratch, NULL, &failure),
	        RIG_FAILED);
	assert_string_equal(failure, fault);
	stop_and_end(fault);
}

static void stop_with_an_operation_under_way_resets_and_raises_the_word(void **state)
{
	(void)state;
	make(true, RIG_IRQ_MSI);
	atomic_store(&t.gate, 0);
	submit_word(1);
	submit_word(2);
	await_started(1);
	rig_driver_module.stop(t.device, NULL);
	assert_int_equal(rig_fake_resets(t.fake), 2); /* before the boot, and now */
	assert_int_equal(rig_word_load(t.word), 2);
	assert_int_equal(atomic_load(&t.started), 1);
	rig_driver_module.release(t.device);
	end();
}

static void stop_with_an_operation_under_way_and_no_reset_keeps_the_memory(void **state)
{
	(void)state;
	make(false, RIG_IRQ_MSI);
	atomic_store(&t.gate, 0);
	submit_word(1);
	await_started(1);
	rig_driver_module.stop(t.device, NULL);
	assert_int_equal(rig_word_load(t.word), 0);
	rig_driver_module.release(t.device);
	end();
}

static void a_device_that_dies_under_an_operation_is_a_fault(void **state)
{
	const char *fault;

	(void)state;
	make(true, RIG_IRQ_MSI);
	atomic_store(&t.gate, 0);
	submit_word(1);
	await_started(1);
	rig_fake_die(t.fake, "pulled out");
	fault = await(1);
	assert_non_null(fault);
	assert_non_null(strstr(fault, "pulled out"));
	stop_and_end(fault);
	assert_int_equal(rig_word_load(t.word), 1);
}

/* ---- Memory and what is not there ---- */

static void regions_have_the_boards_own_addresses(void **state)
{
	static const enum rig_memory kinds[] = {RIG_DEVICE, RIG_PINNED, RIG_MAPPED};
	struct rig_location at[3];
	void *regions[3];
	const char *fault;
	unsigned i;

	(void)state;
	make(true, RIG_IRQ_KINDS);
	for (i = 0; i < 3; i++) {
		assert_int_equal(rig_driver_module.alloc(t.device, kinds[i], 5000, &regions[i], &fault), 0);
		rig_driver_module.locate(t.device, regions[i], &at[i]);
		assert_int_equal(at[i].address % RIG_PAGE, 0);
	}
	assert_in_range(at[0].address, BOARD_VA + POOL_START, BOARD_VA + MEMORY - 8192);
	assert_false(at[0].has_host);
	assert_in_range(at[1].address, SYSTEM_VA, SYSTEM_VA + (1ull << BITS) - 8192);
	memset(at[1].host, 1, 8192);
	memcpy(at[2].host, "seen", 4);
	assert_memory_equal((uint8_t *)rig_fake_memory(t.fake, 2) + (at[2].address - BOARD_VA), "seen", 4);
	for (i = 0; i < 3; i++)
		assert_int_equal(rig_driver_module.free(t.device, regions[i], &fault), 0);
	stop_and_end(NULL);
}

static void host_memory_is_mapped_within_the_boards_reach_and_given_back(void **state)
{
	void *page = mmap(NULL, RIG_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rig_location at;
	const char *fault;
	uint8_t byte = 7;
	void *region;

	(void)state;
	make(true, RIG_IRQ_KINDS);
	assert_int_equal(rig_driver_module.map_host(t.device, page, RIG_PAGE, &region, &fault), RIG_MAPS);
	rig_driver_module.locate(t.device, region, &at);
	assert_int_equal(rig_fake_dma_write(t.fake, at.address - SYSTEM_VA, &byte, 1), 0);
	assert_int_equal(*(uint8_t *)page, 7);
	assert_int_equal(rig_driver_module.free(t.device, region, &fault), 0);
	assert_int_equal(rig_fake_dma_write(t.fake, at.address - SYSTEM_VA, &byte, 1), -EFAULT);
	stop_and_end(NULL);
	munmap(page, RIG_PAGE);
}

static void memory_in_no_bar_has_no_bus_address_and_no_window(void **state)
{
	const struct rig_driver_options options = {.boot_ms = 1000};
	struct rig_dma_answer answer = {.version = RIG_EDGE_VERSION};
	const char *fault;
	void *region;

	(void)state;
	fresh(true, RIG_IRQ_KINDS);
	t.no_memory_bar = true;
	assert_int_equal(boot(&options), 0);
	assert_int_equal(rig_driver_module.alloc(t.device, RIG_MAPPED, 1, &region, &fault), -ENOMEM);
	assert_int_equal(rig_driver_module.alloc(t.device, RIG_DEVICE, 1, &region, &fault), 0);
	assert_int_equal(rig_driver_module.dma(t.device, region, &answer, &fault), RIG_NO_DMA);
	assert_int_equal(rig_driver_module.free(t.device, region, &fault), 0);
	stop_and_end(NULL);
}

static void a_board_that_runs_no_code_refuses_every_binary_and_lives_on(void **state)
{
	struct rig_code code = {.version = RIG_EDGE_VERSION};
	const char *fault;

	(void)state;
	make(true, RIG_IRQ_KINDS);
	assert_int_equal(rig_driver_module.load(t.device, "binary", 6, &code, &fault), -ENOEXEC);
	submit_word(1);
	assert_null(await(1));
	stop_and_end(NULL);
}

static void statistics_of_a_board_without_tables_are_zero_bytes_of_them(void **state)
{
	struct rig_facts facts = {.version = RIG_EDGE_VERSION};
	struct rig_vfio_stats stats;
	const struct rig_vfio_record *record;
	const char *fault;

	(void)state;
	make(true, RIG_IRQ_KINDS);
	assert_int_equal(rig_driver_module.facts(t.device, &facts, &fault), 0);
	assert_true(facts.may_block && facts.waits.stores && facts.waits.hosts);
	assert_int_equal(facts.completion, RIG_HOST);
	record = facts.capability.record;
	record->stats(record, &stats);
	assert_int_equal(stats.table_bytes, 0);
	assert_int_equal(stats.memory_free, MEMORY - POOL_START);
	stop_and_end(NULL);
}

static void what_such_a_board_cannot_be_is_refused_by_name(void **state)
{
	struct rig_driver_options options = {.boot_ms = 1000, .store = true};

	(void)state;
	fresh(true, RIG_IRQ_KINDS);
	assert_int_equal(boot(&options), -ENOTSUP);
	assert_non_null(strstr(t.why, "completion=store"));
	end();
	options.store = false;
	fresh(true, RIG_IRQ_KINDS);
	t.nqueues = 2;
	assert_int_equal(boot(&options), -EINVAL);
	assert_non_null(strstr(t.why, "2 queues"));
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(operations_run_in_the_order_of_parts_and_submissions),
	        cmocka_unit_test(the_word_shows_a_value_when_its_last_operation_is_complete_and_not_before),
	        cmocka_unit_test(a_value_without_parts_is_reached),
	        cmocka_unit_test(many_submissions_go_round_the_queue_in_order),
	        cmocka_unit_test(work_starts_once_the_other_devices_words_are_reached),
	        cmocka_unit_test(stop_ends_a_worker_that_waits_for_another_device_and_raises_the_word),
	        cmocka_unit_test(room_is_later_while_the_queue_is_full_and_fits_when_it_drained),
	        cmocka_unit_test(parts_that_the_empty_queue_cannot_hold_are_never),
	        cmocka_unit_test(room_and_submit_allocate_nothing),
	        cmocka_unit_test(submit_sends_the_function_nothing),
	        cmocka_unit_test(an_interrupt_of_any_kind_completes_an_operation),
	        cmocka_unit_test(a_lost_interrupt_only_delays),
	        cmocka_unit_test(a_pinned_worker_runs_work_too),
	        cmocka_unit_test(an_operation_that_does_not_start_is_the_devices_fault),
	        cmocka_unit_test(an_operation_that_breaks_is_the_devices_fault),
	        cmocka_unit_test(submit_after_a_fault_fails_with_its_text),
	        cmocka_unit_test(stop_with_an_operation_under_way_resets_and_raises_the_word),
	        cmocka_unit_test(stop_with_an_operation_under_way_and_no_reset_keeps_the_memory),
	        cmocka_unit_test(a_device_that_dies_under_an_operation_is_a_fault),
	        cmocka_unit_test(regions_have_the_boards_own_addresses),
	        cmocka_unit_test(host_memory_is_mapped_within_the_boards_reach_and_given_back),
	        cmocka_unit_test(memory_in_no_bar_has_no_bus_address_and_no_window),
	        cmocka_unit_test(a_board_that_runs_no_code_refuses_every_binary_and_lives_on),
	        cmocka_unit_test(statistics_of_a_board_without_tables_are_zero_bytes_of_them),
	        cmocka_unit_test(what_such_a_board_cannot_be_is_refused_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
