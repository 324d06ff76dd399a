/* SPDX-License-Identifier: MIT */
/* What the order of work rests on beyond two devices and a fresh run: stamps in further chunks, runs whose
   buffers change, memory that was only written, devices that are lost; and what is given back before a
   driver is asked again. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "rig_help.h"

#define BYTES 64u
#define PAGE  4096u
#define MIB   (UINT64_C(1) << 20)

static struct bench open_named(const char *name, bool waits)
{
	struct polled_options o = help_options();

	o.name = name;
	o.peers = true;
	o.completion = RIG_HOST;
	o.waits.hosts = waits;
	return help_open(&o);
}

/* Writes all of the buffer and reads nothing. */
static struct rig_point write_only(struct rig_device *d, struct rig_buffer *buffer, uint64_t bytes)
{
	struct rig_work part = {.kind = RIG_COPY};
	struct rig_description description = {
	        .version = RIG_EDGE_VERSION, .parts = &part, .nparts = 1, .writes = 1};
	struct rig_submission *s;
	struct rig_run_args *run;
	struct rig_point point;

	part.u.copy.row_bytes = bytes;
	part.u.copy.rows = 1;
	part.u.copy.fill = true;
	assert_ok(rig_submission_make(d, &description, &s));
	assert_ok(rig_run_make(s, &run));
	assert_ok(rig_run_buffer(run, 0, buffer));
	point = help_submit(s, run);
	rig_run_put(run);
	rig_submission_put(s);
	return point;
}

/* A chunk of a memory's stamps has four words. */
static void a_write_follows_the_reads_of_any_number_of_devices(void **state)
{
	enum { READERS = 11 };
	static char names[READERS][8];
	struct bench writer = open_named("W", true), readers[READERS];
	struct rig_buffer *memory = help_buffer(writer.d, BYTES), *there[READERS], *local[READERS];
	struct rig_point point;
	int i;

	(void)state;
	for (i = 0; i < READERS; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "R%d", i);
		readers[i] = open_named(names[i], false);
		local[i] = help_buffer(readers[i].d, BYTES);
		assert_ok(rig_buffer_borrow(readers[i].d, memory, &there[i]));
		assert_ok(rig_buffer_copy_async(local[i], 0, there[i], 0, BYTES, &point));
	}
	point = write_only(writer.d, memory, BYTES);
	assert_int_equal(polled_nwaits(writer.p), READERS);
	for (i = 0; i < READERS; i++) {
		assert_int_equal(polled_run(writer.p, 1), 0);
		assert_int_equal(polled_run(readers[i].p, 1), 1);
	}
	assert_int_equal(polled_run(writer.p, 1), 1);
	for (i = 0; i < READERS; i++) {
		rig_buffer_put(there[i]);
		rig_buffer_put(local[i]);
	}
	rig_buffer_put(memory);
	for (i = 0; i < READERS; i++)
		help_close(&readers[i]);
	help_close(&writer);
}

/* The host follows them too. */
static void the_host_waits_for_the_reads_of_any_number_of_devices(void **state)
{
	enum { READERS = 6 };
	static char names[READERS][8];
	struct bench owner = open_named("W", true), readers[READERS];
	struct rig_buffer *memory = help_buffer(owner.d, BYTES), *there[READERS], *local[READERS];
	struct rig_point points[READERS];
	int i;

	(void)state;
	for (i = 0; i < READERS; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "R%d", i);
		readers[i] = open_named(names[i], false);
		local[i] = help_buffer(readers[i].d, BYTES);
		assert_ok(rig_buffer_borrow(readers[i].d, memory, &there[i]));
		assert_ok(rig_buffer_copy_async(local[i], 0, there[i], 0, BYTES, &points[i]));
	}
	assert_ok(rig_buffer_wait(memory, RIG_READ));
	for (i = 0; i < READERS; i++)
		assert_int_equal(rig_reached(points[i]), 0);
	assert_ok(rig_buffer_wait(memory, RIG_WRITE));
	for (i = 0; i < READERS; i++) {
		assert_int_equal(rig_reached(points[i]), 1);
		rig_buffer_put(there[i]);
		rig_buffer_put(local[i]);
	}
	rig_buffer_put(memory);
	for (i = 0; i < READERS; i++)
		help_close(&readers[i]);
	help_close(&owner);
}

/* A run that was submitted with memory of the device's alone, then given memory that another device has. */
static void a_runs_new_buffer_is_followed(void **state)
{
	struct bench a = open_named("A", true), b = open_named("B", true);
	struct rig_buffer *mine = help_buffer(a.d, BYTES), *theirs;
	struct rig_buffer *src = help_buffer(b.d, BYTES), *dst = help_buffer(b.d, BYTES);
	struct rig_submission *s = help_copy(b.d, BYTES);
	struct rig_run_args *run = help_copy_run(s, src, dst);

	(void)state;
	assert_ok(rig_buffer_borrow(b.d, mine, &theirs));
	(void)help_submit(s, run);
	(void)help_submit(s, run);
	(void)write_only(a.d, mine, BYTES);
	assert_ok(rig_run_buffer(run, 0, theirs));
	(void)help_submit(s, run);
	assert_int_equal(polled_nwaits(b.p), 1);
	assert_int_equal(polled_run(a.p, 1), 1);
	rig_run_put(run);
	rig_submission_put(s);
	rig_buffer_put(theirs);
	rig_buffer_put(mine);
	rig_buffer_put(src);
	rig_buffer_put(dst);
	help_close(&b);
	help_close(&a);
}

/* A use that writes is a use. */
static void memory_that_work_only_writes_stays_until_the_work_is_done(void **state)
{
	struct bench b = open_named("P0", false);
	struct rig_buffer *buffer = help_buffer(b.d, MIB);
	struct rig_point point = write_only(b.d, buffer, MIB);

	(void)state;
	rig_buffer_put(buffer);
	rig_cache_trim(b.d, 0);
	assert_int_equal(rig_reached(point), 0);
	assert_int_equal(polled_held(b.p), MIB);
	assert_ok(rig_wait(point));
	rig_cache_trim(b.d, 0);
	assert_int_equal(polled_held(b.p), 0);
	help_close(&b);
}

/* Points of a device before it in its slot are not its own. */
static void a_device_does_not_take_the_points_of_the_one_before_in_its_slot_for_its_own(void **state)
{
	struct bench a = open_named("A", true), b = open_named("B", true);
	struct rig_buffer *mine = help_buffer(a.d, BYTES), *there, *local;
	struct rig_device *again;
	struct rig_submission *s;
	struct rig_run_args *run;
	struct rig_point dropped, point;

	(void)state;
	assert_ok(rig_buffer_borrow(b.d, mine, &there));
	polled_gate(b.p, polled_last(b.p));
	dropped = write_only(b.d, there, BYTES);
	rig_buffer_put(there);
	polled_fail(b.p, POLLED_SLEEP, 1, POLLED_FAULTS);
	assert_int_equal(rig_wait(dropped), RIG_LOST);
	polled_gate(b.p, UINT64_MAX);
	assert_ok(rig_open(polled_opener(b.p), &again));
	assert_ok(rig_buffer_borrow(again, mine, &there));
	local = help_buffer(again, BYTES);
	s = help_copy(again, BYTES);
	run = help_copy_run(s, there, local);
	/* The bytes that it would read were never written. */
	assert_int_equal(rig_submit(s, run, NULL, 0, &point), RIG_LOST);
	assert_false(rig_lost(again, NULL));
	rig_run_put(run);
	rig_submission_put(s);
	s = help_empty(again);
	assert_int_equal(rig_point_slot(help_submit(s, NULL)), rig_point_slot(dropped));
	rig_submission_put(s);
	rig_buffer_put(local);
	rig_buffer_put(there);
	rig_buffer_put(mine);
	assert_ok(rig_close(again));
	rig_device_put(again);
	help_end(&b);
	help_close(&a);
}

/* What is in the cache has forgotten who used it, lost or not. */
static void memory_that_a_lost_device_wrote_serves_the_next_buffer(void **state)
{
	struct bench a = open_named("A", true), b = open_named("B", true);
	struct rig_buffer *mine = help_buffer(a.d, BYTES), *there;
	uint64_t address = rig_buffer_address(mine);
	struct rig_point dropped;
	uint8_t bytes[BYTES];

	(void)state;
	assert_ok(rig_buffer_borrow(b.d, mine, &there));
	polled_gate(b.p, polled_last(b.p));
	dropped = write_only(b.d, there, BYTES);
	polled_fail(b.p, POLLED_SLEEP, 1, POLLED_FAULTS);
	assert_int_equal(rig_wait(dropped), RIG_LOST);
	assert_int_equal(rig_buffer_wait(mine, RIG_READ), RIG_LOST);
	rig_buffer_put(there);
	rig_buffer_put(mine);
	mine = help_buffer(a.d, BYTES);
	assert_int_equal(rig_buffer_address(mine), address);
	assert_ok(rig_buffer_wait(mine, RIG_READ));
	assert_ok(rig_buffer_wait(mine, RIG_WRITE));
	assert_ok(rig_wait(write_only(a.d, mine, BYTES)));
	assert_ok(rig_buffer_read(mine, 0, bytes, BYTES));
	rig_buffer_put(mine);
	help_end(&b);
	help_close(&a);
}

static void a_submit_with_memory_of_a_lost_device_answers_lost(void **state)
{
	struct bench a = open_named("A", true), b = open_named("B", true);
	struct rig_buffer *mine = help_buffer(a.d, BYTES), *there, *local = help_buffer(b.d, BYTES);
	struct rig_submission *s = help_copy(b.d, BYTES);
	struct rig_run_args *run;
	uint64_t last;

	(void)state;
	assert_ok(rig_buffer_borrow(b.d, mine, &there));
	run = help_copy_run(s, there, local);
	assert_ok(rig_wait(help_submit(s, run)));
	last = polled_last(b.p);
	assert_ok(rig_close(a.d));
	assert_int_equal(rig_submit(s, run, NULL, 0, NULL), RIG_LOST);
	assert_non_null(strstr(rig_error(), "A lost: closed"));
	assert_int_equal(polled_last(b.p), last);
	assert_false(rig_lost(b.d, NULL));
	rig_run_put(run);
	rig_submission_put(s);
	rig_buffer_put(there);
	rig_buffer_put(mine);
	rig_buffer_put(local);
	help_close(&b);
	help_end(&a);
}

static void fill_the_cache(struct bench *b)
{
	rig_buffer_put(help_buffer(b->d, MIB));
	assert_int_equal(polled_held(b->p), MIB);
}

static void the_cache_is_given_back_before_a_mapping_is_asked_for_again(void **state)
{
	struct polled_options o = help_options();
	struct rig_buffer *host;
	struct bench b;
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	o.maps_host = true;
	o.no_room = 1;
	b = help_open(&o);
	fill_the_cache(&b);
	assert_ok(rig_buffer_of_host(b.d, page, PAGE, &host));
	assert_int_equal(polled_held(b.p), 0);
	rig_buffer_put(host);
	help_close(&b);
	(void)munmap(page, PAGE);
}

static void the_cache_is_given_back_before_queues_are_asked_to_grow_again(void **state)
{
	static const uint32_t word = 1;
	struct rig_work parts[3];
	struct rig_description description = {.version = RIG_EDGE_VERSION, .parts = parts, .nparts = 3};
	struct polled_options o = help_options();
	struct rig_submission *s;
	struct bench b;
	uint32_t i;

	(void)state;
	o.parts = 2;
	o.short_grows = 1;
	b = help_open(&o);
	for (i = 0; i < 3; i++)
		parts[i] = (struct rig_work){.kind = RIG_WORDS, .u.words = {&word, 1}};
	assert_ok(rig_submission_make(b.d, &description, &s));
	fill_the_cache(&b);
	assert_ok(rig_wait(help_submit(s, NULL)));
	assert_int_equal(polled_held(b.p), 0);
	rig_submission_put(s);
	help_close(&b);
}

static void the_cache_is_given_back_before_an_entry_is_asked_for_again(void **state)
{
	struct polled_options o = help_options();
	struct rig_image *image;
	struct rig_entry entry;
	struct bench b;

	(void)state;
	o.short_entries = 1;
	b = help_open(&o);
	image = help_image(b.d);
	fill_the_cache(&b);
	assert_ok(rig_image_entry(image, "free", &entry));
	assert_int_equal(polled_held(b.p), 0);
	rig_image_put(image);
	help_close(&b);
}

/* Pinned memory of every device is the host's, cached or in a staging slot that nobody uses. */
static void what_others_cached_of_host_memory_is_given_back_too(void **state)
{
	static const uint8_t bytes[PAGE];
	struct bench a = open_named("A", false), b = open_named("B", false);
	struct rig_buffer *own = help_buffer(a.d, PAGE), *pinned;
	unsigned left = polled_left(a.p);

	(void)state;
	rig_buffer_put(help_buffer(a.d, MIB)); /* board memory, which does not help */
	assert_ok(rig_buffer_create(a.d, RIG_PINNED, MIB, &pinned));
	rig_buffer_put(pinned);
	assert_ok(rig_buffer_write(own, 0, bytes, PAGE)); /* staged */
	assert_true(polled_left(a.p) > left + 2);
	polled_fail(b.p, POLLED_ALLOC, 1, POLLED_REFUSES);
	assert_ok(rig_buffer_create(b.d, RIG_PINNED, MIB, &pinned));
	assert_int_equal(polled_left(a.p), left + 1);
	assert_ok(rig_buffer_write(own, 0, bytes, PAGE));
	rig_buffer_put(pinned);
	rig_buffer_put(own);
	help_close(&b);
	help_close(&a);
}

/* Refuses an allocation and the one after it. */
static void refuse_twice(void *arg, enum polled_call call)
{
	struct bench *b = arg;

	if (call == POLLED_ALLOC && polled_count(b->p, POLLED_ALLOC) <= 2)
		polled_fail(b->p, POLLED_ALLOC, 1, POLLED_REFUSES);
}

/* What another device's work holds of the host's memory is waited for, once what is idle did not suffice. */
static void work_that_holds_host_memory_is_waited_for_on_any_device(void **state)
{
	struct bench a = open_named("A", false), b = open_named("B", false);
	struct rig_buffer *local = help_buffer(a.d, PAGE), *pinned;
	struct rig_point point;

	(void)state;
	assert_ok(rig_buffer_create(a.d, RIG_PINNED, MIB, &pinned));
	assert_ok(rig_buffer_copy_async(local, 0, pinned, 0, PAGE, &point));
	rig_buffer_put(pinned);
	assert_int_equal(rig_reached(point), 0);
	polled_hook(b.p, refuse_twice, &b);
	assert_ok(rig_buffer_create(b.d, RIG_PINNED, MIB, &pinned));
	assert_int_equal(rig_reached(point), 1);
	polled_hook(b.p, NULL, NULL);
	rig_buffer_put(pinned);
	rig_buffer_put(local);
	help_close(&b);
	help_close(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_write_follows_the_reads_of_any_number_of_devices),
	        cmocka_unit_test(the_host_waits_for_the_reads_of_any_number_of_devices),
	        cmocka_unit_test(a_runs_new_buffer_is_followed),
	        cmocka_unit_test(memory_that_work_only_writes_stays_until_the_work_is_done),
	        cmocka_unit_test(a_device_does_not_take_the_points_of_the_one_before_in_its_slot_for_its_own),
	        cmocka_unit_test(memory_that_a_lost_device_wrote_serves_the_next_buffer),
	        cmocka_unit_test(a_submit_with_memory_of_a_lost_device_answers_lost),
	        cmocka_unit_test(the_cache_is_given_back_before_a_mapping_is_asked_for_again),
	        cmocka_unit_test(the_cache_is_given_back_before_queues_are_asked_to_grow_again),
	        cmocka_unit_test(the_cache_is_given_back_before_an_entry_is_asked_for_again),
	        cmocka_unit_test(what_others_cached_of_host_memory_is_given_back_too),
	        cmocka_unit_test(work_that_holds_host_memory_is_waited_for_on_any_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
