/* SPDX-License-Identifier: MIT */
/* The edu port through the contract, on a device written from edu's specification. */
#include "test.h"
#include <errno.h>
#include <string.h>

#include "allocs.h"
#include "fake_edu.h"
#include "rig_edu.h"

#define MOST_PARTS    4u
#define SECOND_MS     1000u
#define MOST_FAILURES 150u /* more than a life has accesses */

static struct fake_edu t;
static uint8_t scratch[MOST_PARTS * RIG_SCRATCH] __attribute__((aligned(16)));
static uint64_t submitted;

static void make(const struct fake_edu_options *options)
{
	submitted = options ? options->start : 0;
	if (fake_edu_make(&t, options))
		fail_msg("%s", t.why);
}

static struct rig_region *alloc(enum rig_memory kind, uint64_t bytes)
{
	const char *fault;
	void *region;

	assert_int_equal(rig_driver_module.alloc(t.device, kind, bytes, &region, &fault), 0);
	return region;
}

static void give(struct rig_region *region)
{
	const char *fault;

	assert_int_equal(rig_driver_module.free(t.device, region, &fault), 0);
}

static int room(const struct rig_part *parts, uint32_t nparts)
{
	const struct rig_run run = {0};

	return rig_driver_of(t.device)->room(t.device, parts, nparts, 0, &run, scratch);
}

static void submit(const struct rig_part *parts, uint32_t nparts)
{
	const struct rig_run run = {0};
	const char *failure = "";

	if (room(parts, nparts) != RIG_FITS)
		fail_msg("room: %s", rig_error());
	if (rig_driver_of(t.device)->submit(t.device, ++submitted, parts, nparts, NULL, 0, &run, scratch,
	            NULL, &failure) != RIG_COMMITTED)
		fail_msg("submit: %s", failure);
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

static struct rig_part copy(struct rig_region *dst, uint64_t dst_offset, struct rig_region *src,
        uint64_t src_offset, uint64_t bytes)
{
	return (struct rig_part){.kind = RIG_COPY,
	        .u.copy = {.dst = {.slot = RIG_FIXED,
	                           .handle = (uintptr_t)dst,
	                           .offset = dst_offset,
	                           .pitch = bytes},
	                .src = {.slot = RIG_FIXED,
	                        .handle = (uintptr_t)src,
	                        .offset = src_offset,
	                        .pitch = bytes},
	                .row_bytes = bytes,
	                .rows = 1}};
}

static void put_pattern(uint8_t *at, size_t bytes, unsigned seed)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		at[i] = (uint8_t)(i * 7 + i / 256 + seed);
}

/* ---- Boot ---- */

static void an_identification_of_another_revision_is_refused_and_shown(void **state)
{
	(void)state;
	assert_int_equal(fake_edu_make(&t, &(struct fake_edu_options){.id = 0x020000ED}), -ENODEV);
	assert_non_null(strstr(t.why, "boot stage identification"));
	assert_non_null(strstr(t.why, "0x020000ed"));
	fake_edu_close(&t);
}

static void a_device_that_does_not_answer_the_liveness_check_is_refused(void **state)
{
	(void)state;
	assert_int_equal(fake_edu_make(&t, &(struct fake_edu_options){.deaf = true}), -EIO);
	assert_non_null(strstr(t.why, "liveness"));
	fake_edu_close(&t);
}

/* The device counts a breach if a register of the engine is written before. */
static void a_transfer_that_a_process_before_left_is_waited_for(void **state)
{
	struct rig_region *pinned, *device;
	struct rig_part part;

	(void)state;
	make(&(struct fake_edu_options){.running = true, .no_reset = true});
	pinned = alloc(RIG_PINNED, 8);
	device = alloc(RIG_DEVICE, 8);
	part = copy(device, 0, pinned, 0, 8);
	submit(&part, 1);
	assert_null(await(submitted));
	fake_edu_close(&t);
}

static void facts_name_one_queue_that_copies_and_runs_words(void **state)
{
	struct rig_facts facts = {.version = RIG_EDGE_VERSION};
	const char *fault;

	(void)state;
	make(NULL);
	assert_int_equal(rig_driver_module.facts(t.device, &facts, &fault), 0);
	assert_string_equal(facts.arch, "edu");
	assert_int_equal(facts.nqueues, 1);
	assert_string_equal(facts.queues[0].name, "EDU:0");
	assert_int_equal(facts.queues[0].runs, RIG_RUNS(RIG_WORDS) | RIG_RUNS(RIG_COPY));
	assert_true(facts.has_copy_engine && facts.copy_engine == 0);
	assert_int_equal(facts.budget, FAKE_EDU_BUFFER);
	assert_int_equal(facts.completion, RIG_HOST);
	assert_true(facts.waits.stores && facts.waits.hosts && facts.may_block);
	fake_edu_close(&t);
}

/* ---- Memory ---- */

static void device_memory_is_the_4096_byte_buffer_and_no_more(void **state)
{
	struct rig_region *buffer;
	const char *fault;
	void *more;

	(void)state;
	make(NULL);
	buffer = alloc(RIG_DEVICE, FAKE_EDU_BUFFER);
	assert_int_equal(buffer->pa, 0x40000);
	assert_int_equal(rig_driver_module.alloc(t.device, RIG_DEVICE, 1, &more, &fault), -ENOMEM);
	assert_int_equal(rig_driver_module.alloc(t.device, RIG_MAPPED, 1, &more, &fault), -ENOMEM);
	give(buffer);
	give(alloc(RIG_DEVICE, 1));
	fake_edu_close(&t);
}

static void pinned_memory_lies_below_28_bits_until_there_is_none(void **state)
{
	enum { PIECE = 4 << 20, MOST = (1 << 28) / PIECE + 1 };
	struct rig_region *regions[MOST];
	const char *fault;
	unsigned n = 0, i;
	void *region;
	int err;

	(void)state;
	make(NULL);
	while (!(err = rig_driver_module.alloc(t.device, RIG_PINNED, PIECE, &region, &fault))) {
		assert_true(n < MOST);
		regions[n++] = region;
		assert_true(regions[n - 1]->address + PIECE <= 1u << 28);
	}
	assert_int_equal(err, -ENOMEM);
	assert_true(n >= MOST / 2);
	for (i = 0; i < n; i++)
		give(regions[i]);
	fake_edu_close(&t);
}

/* ---- Copies ---- */

static void bytes_cross_the_buffer_both_ways_at_any_offset_and_length(void **state)
{
	static const uint32_t lengths[] = {1, 2, 3, 63, 64, 100, 1000, 4095, 4096};
	struct rig_region *pinned, *device;
	unsigned i;

	(void)state;
	make(NULL);
	pinned = alloc(RIG_PINNED, 3 * FAKE_EDU_BUFFER);
	device = alloc(RIG_DEVICE, FAKE_EDU_BUFFER);
	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		uint32_t bytes = lengths[i], at = (FAKE_EDU_BUFFER - bytes) / 2;
		struct rig_part parts[] = {copy(device, at, pinned, 5, bytes),
		        copy(pinned, 2 * FAKE_EDU_BUFFER, device, at, bytes)};

		put_pattern(pinned->host + 5, bytes, i);
		memset(pinned->host + 2 * FAKE_EDU_BUFFER, 0xEE, FAKE_EDU_BUFFER);
		submit(parts, 2);
		assert_null(await(submitted));
		assert_memory_equal(pinned->host + 2 * FAKE_EDU_BUFFER, pinned->host + 5, bytes);
		assert_memory_equal(t.buffer + at, pinned->host + 5, bytes);
		if (bytes < FAKE_EDU_BUFFER)
			assert_int_equal(pinned->host[2 * FAKE_EDU_BUFFER + bytes], 0xEE);
	}
	fake_edu_close(&t);
}

static void rows_are_copied_each_at_its_pitch(void **state)
{
	struct rig_region *pinned, *device;
	struct rig_part part;
	uint32_t row;

	(void)state;
	make(&(struct fake_edu_options){.reads = 2});
	pinned = alloc(RIG_PINNED, FAKE_EDU_BUFFER);
	device = alloc(RIG_DEVICE, FAKE_EDU_BUFFER);
	put_pattern(pinned->host, FAKE_EDU_BUFFER, 3);
	part = copy(device, 16, pinned, 1, 10);
	part.u.copy.rows = 5;
	part.u.copy.dst.pitch = 32;
	part.u.copy.src.pitch = 100;
	submit(&part, 1);
	assert_null(await(submitted));
	for (row = 0; row < 5; row++)
		assert_memory_equal(t.buffer + 16 + row * 32, pinned->host + 1 + row * 100, 10);
	fake_edu_close(&t);
}

static void copies_that_the_engine_does_not_do_are_never(void **state)
{
	struct rig_region *pinned, *device;
	struct rig_part part;

	(void)state;
	make(NULL);
	pinned = alloc(RIG_PINNED, 2 * FAKE_EDU_BUFFER);
	device = alloc(RIG_DEVICE, FAKE_EDU_BUFFER);
	part = copy(device, 0, device, 100, 10);
	assert_int_equal(room(&part, 1), RIG_NEVER);
	assert_non_null(strstr(rig_error(), "edu copies between its buffer and host memory"));
	part = copy(pinned, 0, pinned, 100, 10);
	assert_int_equal(room(&part, 1), RIG_NEVER);
	part = copy(device, 1, pinned, 0, FAKE_EDU_BUFFER);
	assert_int_equal(room(&part, 1), RIG_NEVER);
	part = copy(device, 0, pinned, 0, 1);
	part.u.copy.rows = 65;
	assert_int_equal(room(&part, 1), RIG_NEVER);
	part.u.copy.rows = 64;
	part.u.copy.dst.pitch = 65; /* 63 * 65 + 1 = 4096 */
	assert_int_equal(room(&part, 1), RIG_FITS);
	part.u.copy.dst.pitch = 66;
	assert_int_equal(room(&part, 1), RIG_NEVER);
	part.u.copy.dst.pitch = UINT64_MAX;
	assert_int_equal(room(&part, 1), RIG_NEVER);
	part = copy(device, 0, pinned, 0, 0);
	assert_int_equal(room(&part, 1), RIG_NEVER);
	part = copy(device, 0, pinned, 0, 1);
	part.u.copy.fill = true;
	assert_int_equal(room(&part, 1), RIG_NEVER);
	fake_edu_close(&t);
}

/* ---- Factorials ---- */

static uint32_t factorial(uint32_t n)
{
	uint32_t product = 1;

	for (; n; n--)
		product *= n;
	return product;
}

static void factorials_reach_pinned_memory(void **state)
{
	enum { COUNT = 40 };
	struct rig_edu_request requests[COUNT];
	struct rig_region *pinned;
	struct rig_part part = {.kind = RIG_WORDS,
	        .u.words = {(const uint32_t *)(const void *)requests, COUNT * RIG_EDU_REQUEST_WORDS}};
	uint32_t n, result;

	(void)state;
	make(&(struct fake_edu_options){.reads = 1});
	pinned = alloc(RIG_PINNED, COUNT * sizeof(uint32_t));
	for (n = 0; n < COUNT; n++)
		requests[n] = (struct rig_edu_request){RIG_EDU_FACTORIAL, n,
		        (uint32_t)pinned->address + n * 4, (uint32_t)(pinned->address >> 32)};
	submit(&part, 1);
	memset(requests, 0xFF, sizeof(requests)); /* the caller's again */
	assert_null(await(submitted));
	for (n = 0; n < COUNT; n++) {
		memcpy(&result, pinned->host + n * 4, sizeof(result));
		assert_int_equal(result, factorial(n));
	}
	fake_edu_close(&t);
}

static void words_that_are_no_requests_are_never(void **state)
{
	uint32_t words[RIG_EDU_REQUEST_WORDS] = {RIG_EDU_FACTORIAL, 5, 0x1000, 0};
	struct rig_part part = {.kind = RIG_WORDS, .u.words = {words, RIG_EDU_REQUEST_WORDS}};

	(void)state;
	make(NULL);
	assert_int_equal(room(&part, 1), RIG_FITS);
	part.u.words.count = 3;
	assert_int_equal(room(&part, 1), RIG_NEVER);
	part.u.words.count = 0;
	assert_int_equal(room(&part, 1), RIG_NEVER);
	part.u.words.count = 4;
	words[0] = 2;
	assert_int_equal(room(&part, 1), RIG_NEVER);
	words[0] = RIG_EDU_FACTORIAL;
	words[2] = 0x1002;
	assert_int_equal(room(&part, 1), RIG_NEVER);
	words[2] = 1u << 28;
	assert_int_equal(room(&part, 1), RIG_NEVER);
	words[2] = (1u << 28) - 4;
	assert_int_equal(room(&part, 1), RIG_FITS);
	words[3] = 1;
	assert_int_equal(room(&part, 1), RIG_NEVER);
	part.kind = RIG_LAUNCH;
	assert_int_equal(room(&part, 1), RIG_NEVER);
	fake_edu_close(&t);
}

static void a_factorial_for_memory_that_is_not_mapped_is_a_fault_that_names_it(void **state)
{
	static const uint32_t words[] = {RIG_EDU_FACTORIAL, 5, 0x0FFFFFF0, 0};
	const struct rig_part part = {.kind = RIG_WORDS, .u.words = {words, RIG_EDU_REQUEST_WORDS}};
	const char *fault;

	(void)state;
	make(NULL);
	submit(&part, 1);
	fault = await(submitted);
	assert_non_null(fault);
	assert_non_null(strstr(fault, "0xffffff0"));
	assert_int_equal(rig_word_load(t.word), submitted - 1);
	fake_edu_close(&t);
}

/* ---- Completion ---- */

/* The operation ends long after it was started: only the interrupt, or a look from time to time, tells. */
static void completes_by(enum fake_edu_irq irq)
{
	static const uint32_t none[] = {RIG_EDU_FACTORIAL, 4, 0, 0};
	uint32_t words[RIG_EDU_REQUEST_WORDS];
	struct rig_part parts[] = {{.kind = RIG_WORDS, .u.words = {words, RIG_EDU_REQUEST_WORDS}}, {0}};
	struct rig_region *pinned, *device;
	unsigned round, n = 0;

	make(&(struct fake_edu_options){.irq = irq, .held = true});
	pinned = alloc(RIG_PINNED, 64);
	device = alloc(RIG_DEVICE, 64);
	memcpy(words, none, sizeof(words));
	words[2] = (uint32_t)pinned->address;
	parts[1] = copy(device, 0, pinned, 0, 64);
	for (round = 0; round < 10; round++) {
		submit(parts, 2);
		for (n += 2; rig_word_load(t.word) < submitted;)
			fake_edu_finish(&t);
		assert_int_equal(fake_edu_started(&t), n);
	}
	assert_int_equal(t.interrupts, n);
	assert_int_equal(t.irq_status & 0xFFFFFEFF, 0);
	fake_edu_close(&t);
}

static void operations_complete_by_msi(void **state)
{
	(void)state;
	completes_by(FAKE_EDU_MSI);
}

static void operations_complete_by_intx(void **state)
{
	(void)state;
	completes_by(FAKE_EDU_INTX);
}

static void operations_complete_without_interrupts(void **state)
{
	(void)state;
	completes_by(FAKE_EDU_NO_IRQ);
}

static void a_device_that_leaves_in_mid_operation_is_a_fault(void **state)
{
	struct rig_region *pinned, *device;
	struct rig_part part;
	const char *fault;

	(void)state;
	make(&(struct fake_edu_options){.held = true});
	pinned = alloc(RIG_PINNED, 64);
	device = alloc(RIG_DEVICE, 64);
	part = copy(device, 0, pinned, 0, 64);
	submit(&part, 1);
	while (!fake_edu_started(&t))
		;
	rig_fake_vanish(t.fake);
	fault = await(submitted);
	assert_non_null(fault);
	fake_edu_close(&t);
}

/* ---- Failures ---- */

/* A copy and a factorial: whether both worked. */
static bool work(struct rig_region *pinned, struct rig_region *device)
{
	struct rig_edu_request request = {RIG_EDU_FACTORIAL, 5, (uint32_t)pinned->address, 0};
	const struct rig_part parts[] = {copy(device, 0, pinned, 0, 64),
	        {.kind = RIG_WORDS, .u.words = {(uint32_t *)(void *)&request, RIG_EDU_REQUEST_WORDS}}};
	const struct rig_run run = {0};
	const char *failure;

	return room(parts, 2) == RIG_FITS &&
	       rig_driver_of(t.device)->submit(
	               t.device, 1, parts, 2, NULL, 0, &run, scratch, NULL, &failure) == RIG_COMMITTED &&
	       !await(1);
}

static bool use(void)
{
	void *pinned = NULL, *device = NULL;
	const char *fault;
	bool well = !rig_driver_module.alloc(t.device, RIG_PINNED, 64, &pinned, &fault) &&
	            !rig_driver_module.alloc(t.device, RIG_DEVICE, 64, &device, &fault) &&
	            work(pinned, device);

	rig_driver_module.stop(t.device, well ? NULL : "test");
	rig_driver_module.free(t.device, device, &fault);
	rig_driver_module.free(t.device, pinned, &fault);
	rig_driver_module.release(t.device);
	t.device = NULL;
	return well;
}

/* Everything once: whether all of it worked. */
static bool life(const struct fake_edu_options *options)
{
	unsigned live = test_allocs_live();
	bool well = !fake_edu_make(&t, options) && use();

	rig_fake_fail_at(t.fake, 0);
	test_allocs_fail_at(0);
	if (options->fail_at)
		t.breaches = 0; /* a store that got lost makes others wrong */
	fake_edu_close(&t);
	assert_int_equal(test_allocs_live(), live);
	return well;
}

static void whichever_allocation_fails_nothing_is_left(void **state)
{
	uint64_t k = 1;

	(void)state;
	while (!life(&(struct fake_edu_options){.fail_allocation = k, .no_reset = true}))
		assert_true(++k < MOST_FAILURES);
	assert_true(k > 5);
}

static void whichever_access_fails_nothing_is_left(void **state)
{
	uint64_t k;
	unsigned failures = 0;

	(void)state;
	for (k = 1; k < MOST_FAILURES; k++)
		failures += !life(&(struct fake_edu_options){.fail_at = k});
	assert_true(failures > 20 && failures < MOST_FAILURES - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(an_identification_of_another_revision_is_refused_and_shown),
	        cmocka_unit_test(a_device_that_does_not_answer_the_liveness_check_is_refused),
	        cmocka_unit_test(a_transfer_that_a_process_before_left_is_waited_for),
	        cmocka_unit_test(facts_name_one_queue_that_copies_and_runs_words),
	        cmocka_unit_test(device_memory_is_the_4096_byte_buffer_and_no_more),
	        cmocka_unit_test(pinned_memory_lies_below_28_bits_until_there_is_none),
	        cmocka_unit_test(bytes_cross_the_buffer_both_ways_at_any_offset_and_length),
	        cmocka_unit_test(rows_are_copied_each_at_its_pitch),
	        cmocka_unit_test(copies_that_the_engine_does_not_do_are_never),
	        cmocka_unit_test(factorials_reach_pinned_memory),
	        cmocka_unit_test(words_that_are_no_requests_are_never),
	        cmocka_unit_test(a_factorial_for_memory_that_is_not_mapped_is_a_fault_that_names_it),
	        cmocka_unit_test(operations_complete_by_msi),
	        cmocka_unit_test(operations_complete_by_intx),
	        cmocka_unit_test(operations_complete_without_interrupts),
	        cmocka_unit_test(a_device_that_leaves_in_mid_operation_is_a_fault),
	        cmocka_unit_test(whichever_allocation_fails_nothing_is_left),
	        cmocka_unit_test(whichever_access_fails_nothing_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
