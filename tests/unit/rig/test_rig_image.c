/* SPDX-License-Identifier: MIT */
/* Images: loading, placing, entries and when they are unloaded. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "rig_help.h"

static struct rig_submission *launch(struct rig_device *d, struct rig_image *image)
{
	struct rig_work part = {.kind = RIG_LAUNCH};
	struct rig_description description = {.version = RIG_EDGE_VERSION, .parts = &part, .nparts = 1};
	struct rig_submission *s;

	part.u.launch.image = image;
	part.u.launch.function = "free";
	assert_ok(rig_submission_make(d, &description, &s));
	return s;
}

static void a_loaded_image_answers_its_functions(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct rig_image *image = help_image(b.d);
	struct rig_entry entry;

	(void)state;
	assert_ok(rig_image_entry(image, "limited", &entry));
	assert_true(entry.has_threads);
	assert_int_equal(entry.threads, 16);
	assert_int_equal(rig_image_entry(image, "none", &entry), -ENOENT);
	assert_non_null(strstr(rig_error(), "none"));
	rig_image_put(image);
	assert_int_equal(polled_count(b.p, POLLED_UNLOAD), 1);
	help_close(&b);
}

/* E-211 to E-213 */
static void placed_code_lies_in_the_devices_memory(void **state)
{
	struct polled_options o = help_options();
	struct bench b;
	struct rig_image *image;
	struct rig_entry entry;

	(void)state;
	o.place = true;
	b = help_open(&o);
	image = help_image(b.d);
	assert_int_equal(polled_count(b.p, POLLED_PLACE), 1);
	assert_int_equal(polled_check_placed(b.p), 1);
	assert_true(rig_held_bytes(b.d, NULL) > 0);
	assert_ok(rig_image_entry(image, "free", &entry));
	rig_image_put(image);
	help_close(&b);
}

/* E-214: the allocation after Place is refused: nothing was made. */
static void a_place_without_memory_makes_nothing(void **state)
{
	struct polled_options o = help_options();
	struct bench b;
	struct rig_image *image;

	(void)state;
	o.place = true;
	o.memory = 50;
	b = help_open(&o);
	assert_int_equal(rig_image_load(b.d, POLLED_BINARY, sizeof(POLLED_BINARY), &image), -ENOMEM);
	assert_int_equal(polled_count(b.p, POLLED_PLACE), 0);
	assert_int_equal(polled_left(b.p), 1);
	assert_false(rig_lost(b.d, NULL));
	help_close(&b);
}

/* E-058: code is memory like any other; it comes back with the image. */
static void placed_code_counts_in_the_budget(void **state)
{
	enum { BUDGET = 3 * 4096 };
	struct polled_options o = help_options();
	struct bench b;
	struct rig_image *image, *other;
	struct rig_buffer *rest, *more;

	(void)state;
	o.place = true;
	o.budget = BUDGET;
	b = help_open(&o);
	image = help_image(b.d);
	assert_int_equal(rig_held_bytes(b.d, NULL), 4096);
	rest = help_buffer(b.d, BUDGET - 4096);
	assert_int_equal(rig_image_load(b.d, POLLED_BINARY, sizeof(POLLED_BINARY), &other), -ENOMEM);
	assert_int_equal(rig_buffer_create(b.d, RIG_DEVICE, 1, &more), -ENOMEM);
	assert_int_equal(polled_held(b.p), rig_held_bytes(b.d, NULL));
	rig_image_put(image);
	more = help_buffer(b.d, 4096);
	rig_buffer_put(more);
	rig_buffer_put(rest);
	help_close(&b);
}

static void what_is_no_image_is_refused_with_the_drivers_reason(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct rig_image *image;
	char path[] = "/tmp/rig-image-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_int_equal(rig_image_load(b.d, "x", 1, &image), -ENOEXEC);
	assert_string_equal(rig_error(), "P0: not a polled image");
	assert_int_equal(rig_image_load_file(b.d, "/nonexistent/k.elf", &image), -ENOENT);
	assert_non_null(strstr(rig_error(), "/nonexistent/k.elf"));
	assert_int_equal(rig_image_load_file(b.d, "/tmp", &image), -EISDIR);
	assert_int_equal(rig_image_load_file(b.d, path, &image), -ENOEXEC);
	assert_int_equal(write(fd, POLLED_BINARY, sizeof(POLLED_BINARY)), sizeof(POLLED_BINARY));
	assert_ok(rig_image_load_file(b.d, path, &image));
	(void)close(fd);
	(void)unlink(path);
	rig_image_put(image);
	help_close(&b);
}

/* E-228 */
static void an_entry_short_of_memory_is_asked_again(void **state)
{
	struct polled_options o = help_options();
	struct bench b;
	struct rig_image *image;
	struct rig_entry entry;

	(void)state;
	o.short_entries = 2;
	b = help_open(&o);
	image = help_image(b.d);
	assert_ok(rig_image_entry(image, "free", &entry));
	assert_int_equal(polled_count(b.p, POLLED_ENTRY), 3);
	rig_image_put(image);
	help_close(&b);
	o.short_entries = 1000;
	b = help_open(&o);
	image = help_image(b.d);
	assert_int_equal(rig_image_entry(image, "free", &entry), -ENOMEM);
	assert_non_null(strstr(rig_error(), "4096"));
	assert_false(rig_lost(b.d, NULL));
	rig_image_put(image);
	help_close(&b);
}

/* E-219: the driver fails the test on an unload beside work. */
static void an_image_is_unloaded_once_the_work_that_uses_it_is_done(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct rig_image *image = help_image(b.d);
	struct rig_submission *s = launch(b.d, image);
	struct rig_run_args *run;
	struct rig_point point;

	(void)state;
	assert_ok(rig_run_make(s, &run));
	point = help_submit(s, run);
	rig_image_put(image);
	rig_run_put(run);
	rig_submission_put(s);
	assert_int_equal(polled_count(b.p, POLLED_UNLOAD), 0);
	assert_ok(rig_wait(point));
	rig_cache_trim(b.d, 0);
	assert_int_equal(polled_count(b.p, POLLED_UNLOAD), 1);
	help_close(&b);
}

/* Words and other kernels may name its code without saying so. */
static void an_image_stays_while_any_work_before_its_last_put_is_under_way(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct rig_image *image = help_image(b.d);
	struct rig_submission *s = help_empty(b.d);
	struct rig_point point = help_submit(s, NULL);

	(void)state;
	rig_image_put(image);
	rig_cache_trim(b.d, 0);
	assert_int_equal(polled_count(b.p, POLLED_UNLOAD), 0);
	assert_ok(rig_wait(point));
	rig_cache_trim(b.d, 0);
	assert_int_equal(polled_count(b.p, POLLED_UNLOAD), 1);
	rig_submission_put(s);
	help_close(&b);
}

/* E-012: a lost device's images go once its word shows the last value. */
static void a_lost_devices_image_is_unloaded_once_the_word_is_there(void **state)
{
	struct polled_options o = help_options();
	struct bench b;
	struct rig_image *image;
	struct rig_submission *s;
	struct rig_buffer *buffer;
	struct rig_point point;

	(void)state;
	o.stop_short = true;
	b = help_open(&o);
	image = help_image(b.d);
	buffer = help_buffer(b.d, 64);
	s = help_empty(b.d);
	polled_gate(b.p, 0);
	point = help_submit(s, NULL);
	polled_fail(b.p, POLLED_SLEEP, 1, POLLED_FAULTS);
	assert_int_equal(rig_wait(point), RIG_LOST);
	rig_image_put(image);
	rig_buffer_put(buffer);
	rig_submission_put(s);
	rig_cache_trim(b.d, 0);
	assert_int_equal(polled_count(b.p, POLLED_UNLOAD), 0);
	assert_int_equal(polled_count(b.p, POLLED_FREE), 0);
	polled_drain(b.p);
	assert_ok(rig_close(b.d));
	assert_int_equal(polled_count(b.p, POLLED_UNLOAD), 1);
	assert_int_equal(polled_count(b.p, POLLED_FREE), 1);
	assert_int_equal(rig_wait(point), RIG_LOST);
	help_end(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_loaded_image_answers_its_functions),
	        cmocka_unit_test(placed_code_lies_in_the_devices_memory),
	        cmocka_unit_test(a_place_without_memory_makes_nothing),
	        cmocka_unit_test(placed_code_counts_in_the_budget),
	        cmocka_unit_test(what_is_no_image_is_refused_with_the_drivers_reason),
	        cmocka_unit_test(an_entry_short_of_memory_is_asked_again),
	        cmocka_unit_test(an_image_is_unloaded_once_the_work_that_uses_it_is_done),
	        cmocka_unit_test(an_image_stays_while_any_work_before_its_last_put_is_under_way),
	        cmocka_unit_test(a_lost_devices_image_is_unloaded_once_the_word_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
