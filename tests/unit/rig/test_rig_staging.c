/* SPDX-License-Identifier: MIT */
/* Copies of memory that the host does not address, through a device's two staging slots. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "rig_help.h"
#include "rt.h"

#define BYTES   4096u
#define LARGE   (40u << 20)
#define WRITERS 3u

static uint8_t *pattern(uint64_t bytes)
{
	uint8_t *made = malloc(bytes);
	uint64_t i;

	assert_non_null(made);
	for (i = 0; i < bytes; i++)
		made[i] = (uint8_t)(i * 13 + i / 4093);
	return made;
}

struct writer {
	pthread_t thread;
	struct rig_buffer *buffer;
	int code;
};

static void *write_once(void *arg)
{
	struct writer *w = arg;
	static const uint8_t bytes[BYTES];

	w->code = rig_buffer_write(w->buffer, 0, bytes, sizeof(bytes));
	return NULL;
}

static unsigned sleepers(struct rig_device *d)
{
	unsigned n;

	rig_rt_lock(&d->staging_lock);
	n = d->staging_freed.waiters;
	rig_rt_unlock(&d->staging_lock);
	return n;
}

static void two_staged_copies_of_a_device_run_at_a_time_and_a_third_waits(void **state)
{
	struct polled_options o = help_options();
	struct bench b;
	struct writer writers[WRITERS];
	unsigned i, before;

	(void)state;
	o.thread = true;
	b = help_open(&o);
	for (i = 0; i < WRITERS; i++)
		writers[i].buffer = help_buffer(b.d, BYTES);
	polled_gate(b.p, polled_last(b.p));
	before = polled_count(b.p, POLLED_SUBMIT);
	for (i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_create(&writers[i].thread, NULL, write_once, &writers[i]), 0);
	while (polled_count(b.p, POLLED_SUBMIT) < before + 2 || sleepers(b.d) < 1)
		(void)sched_yield();
	assert_int_equal(polled_count(b.p, POLLED_SUBMIT), before + 2);
	polled_gate(b.p, UINT64_MAX);
	for (i = 0; i < WRITERS; i++) {
		assert_int_equal(pthread_join(writers[i].thread, NULL), 0);
		assert_ok(writers[i].code);
		rig_buffer_put(writers[i].buffer);
	}
	help_close(&b);
}

struct open_values {
	struct polled *p;
	uint64_t most;
};

/* How many values are under way when someone sleeps for one. */
static void count_open(void *arg, enum polled_call call)
{
	struct open_values *open = arg;
	uint64_t now = call == POLLED_SLEEP ? polled_last(open->p) - polled_word(open->p) : 0;

	if (open->most < now)
		open->most = now;
}

/* While the first chunk is on its way out of the device, the next one is handed over. */
static void a_large_copy_has_a_chunk_under_way_while_another_is_moved(void **state)
{
	struct polled_options o = help_options();
	struct bench b;
	struct rig_buffer *buffer;
	uint8_t *bytes = pattern(LARGE), *got = malloc(LARGE);
	struct open_values open = {0};

	(void)state;
	b = help_open(&o);
	buffer = help_buffer(b.d, LARGE);
	open.p = b.p;
	polled_hook(b.p, count_open, &open);
	assert_ok(rig_buffer_write(buffer, 0, bytes, LARGE));
	assert_int_equal(open.most, 2);
	open.most = 0;
	assert_ok(rig_buffer_read(buffer, 0, got, LARGE));
	assert_int_equal(open.most, 2);
	assert_memory_equal(got, bytes, LARGE);
	free(bytes);
	free(got);
	rig_buffer_put(buffer);
	help_close(&b);
}

static void devices_that_do_not_reach_each_other_copy_in_both_directions(void **state)
{
	struct polled_options o = help_options(), other = help_options();
	struct bench a, b;
	struct rig_buffer *on_a, *on_b;
	uint8_t *bytes = pattern(LARGE), *got = malloc(LARGE);

	(void)state;
	other.name = "P1";
	a = help_open(&o);
	b = help_open(&other);
	on_a = help_buffer(a.d, LARGE);
	on_b = help_buffer(b.d, LARGE);
	assert_ok(rig_buffer_write(on_a, 0, bytes, LARGE));
	assert_ok(rig_buffer_copy(on_b, 3, on_a, 3, LARGE - 7));
	assert_ok(rig_buffer_write(on_b, 0, bytes, 3));
	assert_ok(rig_buffer_read(on_b, 0, got, LARGE - 4));
	assert_memory_equal(got, bytes, LARGE - 4);
	assert_ok(rig_buffer_copy(on_a, 1000, on_b, 0, 1000));
	assert_ok(rig_buffer_read(on_a, 1000, got, 1000));
	assert_memory_equal(got, bytes, 1000);
	free(bytes);
	free(got);
	rig_buffer_put(on_a);
	rig_buffer_put(on_b);
	help_close(&a);
	help_close(&b);
}

/* What libc copied from or to the watched memory of a device. */
static struct {
	const char *at;
	uint64_t bytes;
	unsigned copies;
} watched;

static void look(const void *dst, const void *src, size_t bytes)
{
	const char *sides[] = {dst, src};

	for (unsigned i = 0; watched.at && i < 2; i++)
		watched.copies += sides[i] < watched.at + watched.bytes && watched.at < sides[i] + bytes;
}

void *__real_memcpy(void *dst, const void *src, size_t bytes);
void *__wrap_memcpy(void *dst, const void *src, size_t bytes);
void *__real_memmove(void *dst, const void *src, size_t bytes);
void *__wrap_memmove(void *dst, const void *src, size_t bytes);

void *__wrap_memcpy(void *dst, const void *src, size_t bytes)
{
	look(dst, src, bytes);
	return __real_memcpy(dst, src, bytes);
}

void *__wrap_memmove(void *dst, const void *src, size_t bytes)
{
	look(dst, src, bytes);
	return __real_memmove(dst, src, bytes);
}

/* Into the window from `other`, within it, and back. */
static void go_through(struct rig_buffer *window, struct rig_buffer *other, const uint8_t *bytes)
{
	uint8_t got[BYTES];

	assert_ok(rig_buffer_write(other, 0, bytes, BYTES));
	assert_ok(rig_buffer_copy(window, 3, other, 1, BYTES - 8));
	assert_ok(rig_buffer_copy(window, BYTES + 5, window, 3, BYTES - 8));
	assert_ok(rig_buffer_copy(other, 7, window, BYTES + 5, BYTES - 8));
	assert_ok(rig_buffer_read(other, 7, got, BYTES - 8));
	assert_memory_equal(got, bytes + 1, BYTES - 8);
}

/* Whether the other side is memory of the host's, staged through another device, or a window too. */
static void a_mapped_buffer_is_never_copied_by_libc(void **state)
{
	static const enum rig_memory kinds[] = {RIG_PINNED, RIG_DEVICE, RIG_MAPPED};
	struct polled_options o = help_options(), other = help_options();
	struct rig_buffer *window, *buffer;
	uint8_t *bytes = pattern(BYTES);
	struct bench a, b;
	unsigned i;

	(void)state;
	other.name = "P1";
	a = help_open(&o);
	b = help_open(&other);
	assert_ok(rig_buffer_create(b.d, RIG_MAPPED, UINT64_C(2) * BYTES, &window));
	watched.at = rig_buffer_host(window);
	watched.bytes = UINT64_C(2) * BYTES;
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		assert_ok(rig_buffer_create(a.d, kinds[i], BYTES, &buffer));
		go_through(window, buffer, bytes);
		rig_buffer_put(buffer);
	}
	assert_int_equal(watched.copies, 0);
	watched.at = NULL;
	free(bytes);
	rig_buffer_put(window);
	help_close(&a);
	help_close(&b);
}

static unsigned slots_taken(struct rig_device *d)
{
	unsigned i, n = 0;

	rig_rt_lock(&d->staging_lock);
	for (i = 0; i < RT_STAGES; i++)
		n += d->stage[i].busy;
	rig_rt_unlock(&d->staging_lock);
	return n;
}

struct copier {
	pthread_t thread;
	struct rig_buffer *dst, *src;
	int code;
};

static void *copy_once(void *arg)
{
	struct copier *c = arg;

	c->code = rig_buffer_copy(c->dst, 0, c->src, 0, BYTES);
	return NULL;
}

/* Else two copies each way could hold a slot each and wait for each other: while both slots of the second
   device are taken, a copy holds one of the first, whichever way it goes. */
static void copies_in_opposite_directions_take_slots_in_one_order(void **state)
{
	struct polled_options o = help_options(), other = help_options();
	struct writer writers[RT_STAGES];
	struct copier copiers[2];
	struct bench a, b, opened;
	unsigned i;

	(void)state;
	other.name = "P1";
	o.thread = other.thread = true;
	opened = help_open(&o);
	b = help_open(&other);
	a = opened.d->slot < b.d->slot ? opened : b;
	b = opened.d->slot < b.d->slot ? b : opened;
	for (i = 0; i < 2; i++) {
		writers[i].buffer = help_buffer(b.d, BYTES);
		copiers[i].dst = help_buffer(i ? a.d : b.d, BYTES);
		copiers[i].src = help_buffer(i ? b.d : a.d, BYTES);
	}
	polled_gate(b.p, polled_last(b.p));
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&writers[i].thread, NULL, write_once, &writers[i]), 0);
	while (polled_last(b.p) < polled_word(b.p) + 2)
		(void)sched_yield();
	for (i = 0; i < 2; i++) {
		assert_int_equal(pthread_create(&copiers[i].thread, NULL, copy_once, &copiers[i]), 0);
		while (sleepers(b.d) < i + 1)
			(void)sched_yield();
		assert_int_equal(slots_taken(a.d), i + 1);
	}
	polled_gate(b.p, UINT64_MAX);
	for (i = 0; i < 2; i++) {
		assert_int_equal(pthread_join(writers[i].thread, NULL), 0);
		assert_int_equal(pthread_join(copiers[i].thread, NULL), 0);
		assert_ok(writers[i].code);
		assert_ok(copiers[i].code);
		rig_buffer_put(writers[i].buffer);
		rig_buffer_put(copiers[i].dst);
		rig_buffer_put(copiers[i].src);
	}
	help_close(&a);
	help_close(&b);
}

static void a_device_without_pinned_memory_is_staged_through_mapped_host_memory(void **state)
{
	struct polled_options o = help_options();
	struct bench b;
	struct rig_buffer *buffer;
	uint8_t *bytes = pattern(BYTES), got[BYTES];

	(void)state;
	o.pinned_none = o.maps_host = true;
	b = help_open(&o);
	buffer = help_buffer(b.d, BYTES);
	assert_ok(rig_buffer_write(buffer, 0, bytes, BYTES));
	assert_ok(rig_buffer_read(buffer, 0, got, BYTES));
	assert_memory_equal(got, bytes, BYTES);
	assert_true(polled_count(b.p, POLLED_MAP_HOST) > 0);
	free(bytes);
	rig_buffer_put(buffer);
	help_close(&b);
}

static void a_device_that_reaches_no_host_memory_at_all_says_so(void **state)
{
	struct polled_options o = help_options();
	struct bench b;
	struct rig_buffer *buffer;
	uint8_t byte = 0;

	(void)state;
	o.pinned_none = true;
	b = help_open(&o);
	buffer = help_buffer(b.d, BYTES);
	assert_int_equal(rig_buffer_write(buffer, 0, &byte, 1), -ENOMEM);
	assert_false(rig_lost(b.d, NULL));
	rig_buffer_put(buffer);
	help_close(&b);
}

/* What drivers say of what ends while nobody asked. */
static void complain(void *arg, enum polled_call call)
{
	(void)arg;
	if (call == POLLED_FREE || call == POLLED_UNLOAD || call == POLLED_STOP || call == POLLED_RELEASE)
		(void)rig_error_set(0, "the function is gone");
}

/* The slots of a lost device are dropped by the copy that finds the loss. */
static void a_lost_copy_says_so_whatever_the_driver_says_of_what_it_drops(void **state)
{
	static const uint8_t bytes[BYTES];
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct rig_buffer *buffer = help_buffer(b.d, BYTES);
	struct rig_image *image = help_image(b.d);

	(void)state;
	polled_hook(b.p, complain, NULL);
	polled_fail(b.p, POLLED_SLEEP, 1, POLLED_FAULTS);
	assert_int_equal(rig_buffer_write(buffer, 0, bytes, BYTES), RIG_LOST);
	assert_true(polled_count(b.p, POLLED_FREE) > 0);
	assert_non_null(strstr(rig_error(), "lost: injected fault"));
	rig_image_put(image);
	rig_buffer_put(buffer);
	assert_int_equal(polled_count(b.p, POLLED_UNLOAD), 1);
	assert_non_null(strstr(rig_error(), "lost: injected fault"));
	help_end(&b);
	assert_non_null(strstr(rig_error(), "lost: injected fault"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(two_staged_copies_of_a_device_run_at_a_time_and_a_third_waits),
	        cmocka_unit_test(a_large_copy_has_a_chunk_under_way_while_another_is_moved),
	        cmocka_unit_test(devices_that_do_not_reach_each_other_copy_in_both_directions),
	        cmocka_unit_test(a_mapped_buffer_is_never_copied_by_libc),
	        cmocka_unit_test(copies_in_opposite_directions_take_slots_in_one_order),
	        cmocka_unit_test(a_device_without_pinned_memory_is_staged_through_mapped_host_memory),
	        cmocka_unit_test(a_device_that_reaches_no_host_memory_at_all_says_so),
	        cmocka_unit_test(a_lost_copy_says_so_whatever_the_driver_says_of_what_it_drops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
