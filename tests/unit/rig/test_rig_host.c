/* SPDX-License-Identifier: MIT */
/* The device of host memory. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "rig_help.h"

#define PAGE  4096u
#define BYTES (4u * PAGE)
#define LARGE (16u << 20)

static struct rig_device *open_host(const char *name)
{
	struct rig_opener opener;
	struct rig_device *d;

	rig_host_opener(name, &opener);
	assert_ok(rig_open(&opener, &d));
	return d;
}

static void close_host(struct rig_device *d)
{
	assert_ok(rig_close(d));
	rig_device_put(d);
}

static void memory_is_the_hosts_page_by_page(void **state)
{
	struct rig_device *d = open_host("HOST");
	const struct rig_facts *facts = rig_device_facts(d);
	static const enum rig_memory kinds[] = {RIG_DEVICE, RIG_PINNED, RIG_MAPPED};
	struct rig_buffer *buffer;
	unsigned i;

	(void)state;
	assert_true(facts->host_addresses && facts->maps_host);
	for (i = 0; i < 3; i++) {
		assert_ok(rig_buffer_create(d, kinds[i], LARGE, &buffer));
		assert_int_equal((uintptr_t)rig_buffer_host(buffer) % PAGE, 0);
		assert_int_equal(rig_buffer_address(buffer), (uintptr_t)rig_buffer_host(buffer));
		memset(rig_buffer_host(buffer), 1, LARGE);
		rig_buffer_put(buffer);
	}
	/* The three were one. */
	assert_int_equal(rig_held_bytes(d, NULL), LARGE);
	close_host(d);
}

static void copies_are_done_when_submit_returns(void **state)
{
	struct rig_device *d = open_host("HOST");
	struct rig_buffer *src = help_buffer(d, BYTES), *dst = help_buffer(d, BYTES);
	struct rig_submission *s = help_copy(d, BYTES);
	struct rig_run_args *run = help_copy_run(s, src, dst);
	struct rig_point point;

	(void)state;
	memset(rig_buffer_host(src), 0x77, BYTES);
	point = help_submit(s, run);
	assert_int_equal(rig_reached(point), 1);
	assert_memory_equal(rig_buffer_host(src), rig_buffer_host(dst), BYTES);
	rig_run_put(run);
	rig_submission_put(s);
	rig_buffer_put(src);
	rig_buffer_put(dst);
	close_host(d);
}

static void rows_and_fills_are_copied_as_described(void **state)
{
	struct rig_device *d = open_host("HOST");
	struct rig_buffer *buffer = help_buffer(d, BYTES);
	struct rig_work parts[2] = {{.kind = RIG_COPY}, {.kind = RIG_COPY}};
	struct rig_description description = {
	        .version = RIG_EDGE_VERSION, .parts = parts, .nparts = 2, .writes = 1};
	struct rig_submission *s;
	struct rig_run_args *run;
	uint8_t *bytes = rig_buffer_host(buffer);

	(void)state;
	memset(bytes, 0, BYTES);
	parts[0].u.copy = (struct rig_copy_work){
	        .dst = {.offset = 1, .pitch = 8}, .row_bytes = 2, .rows = 3, .fill = true, .byte = 9};
	parts[1].u.copy = (struct rig_copy_work){.dst = {.offset = 100, .pitch = 2},
	        .src = {.offset = 1, .pitch = 8},
	        .row_bytes = 2,
	        .rows = 3};
	assert_ok(rig_submission_make(d, &description, &s));
	assert_ok(rig_run_make(s, &run));
	assert_ok(rig_run_buffer(run, 0, buffer));
	assert_ok(rig_wait(help_submit(s, run)));
	assert_memory_equal(bytes, "\0\11\11\0\0\0\0\0\0\11\11\0", 12);
	assert_memory_equal(bytes + 99, "\0\11\11\11\11\11\11\0", 8);
	rig_run_put(run);
	rig_submission_put(s);
	rig_buffer_put(buffer);
	close_host(d);
}

static void a_board_borrows_it_and_waits_for_each_other_are_kept(void **state)
{
	struct polled_options o = help_options();
	struct bench b;
	struct rig_device *d = open_host("HOST");
	struct rig_buffer *buffer = help_buffer(d, BYTES), *borrowed, *src, *copy = help_buffer(d, BYTES);
	struct rig_submission *on_board, *on_host = help_copy(d, BYTES);
	struct rig_run_args *board_run, *host_run = help_copy_run(on_host, buffer, copy);
	struct rig_point point;

	(void)state;
	o.maps_host = true;
	b = help_open(&o);
	src = help_buffer(b.d, BYTES);
	on_board = help_copy(b.d, BYTES);
	memset(rig_buffer_host(copy), 3, BYTES);
	assert_ok(rig_buffer_copy(src, 0, copy, 0, BYTES));
	memset(rig_buffer_host(copy), 0, BYTES);
	assert_ok(rig_buffer_borrow(b.d, buffer, &borrowed));
	board_run = help_copy_run(on_board, src, borrowed);
	point = help_submit(on_board, board_run);
	assert_int_equal(rig_reached(point), 0);
	/* The host's copy reads what the board writes, so its submit waits for that. */
	(void)help_submit(on_host, host_run);
	assert_int_equal(rig_reached(point), 1);
	assert_int_equal(((uint8_t *)rig_buffer_host(copy))[BYTES - 1], 3);
	rig_run_put(board_run);
	rig_run_put(host_run);
	rig_submission_put(on_board);
	rig_submission_put(on_host);
	rig_buffer_put(borrowed);
	rig_buffer_put(src);
	rig_buffer_put(copy);
	rig_buffer_put(buffer);
	help_close(&b);
	close_host(d);
}

static void host_devices_borrow_each_others_memory(void **state)
{
	struct rig_device *d = open_host("HOST"), *e = open_host("HOST:1");
	struct rig_buffer *buffer = help_buffer(d, BYTES), *borrowed;

	(void)state;
	assert_ok(rig_buffer_borrow(e, buffer, &borrowed));
	assert_ptr_equal(rig_buffer_host(borrowed), rig_buffer_host(buffer));
	assert_int_equal(rig_buffer_address(borrowed), rig_buffer_address(buffer));
	rig_buffer_put(buffer);
	memset(rig_buffer_host(borrowed), 1, BYTES);
	rig_buffer_put(borrowed);
	close_host(e);
	close_host(d);
}

static void memory_of_the_program_is_taken_unless_it_is_read_only(void **state)
{
	struct rig_device *d = open_host("HOST");
	uint8_t *pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rig_buffer *buffer;

	(void)state;
	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_ok(rig_buffer_of_host(d, pages, 3 * PAGE, &buffer));
	assert_ptr_equal(rig_buffer_host(buffer), pages);
	rig_buffer_put(buffer);
	assert_int_equal(mprotect(pages + PAGE, PAGE, PROT_READ), 0);
	assert_int_equal(rig_buffer_of_host(d, pages, 3 * PAGE, &buffer), -ENOTSUP);
	assert_int_equal(munmap(pages + 2 * PAGE, PAGE), 0);
	assert_int_equal(rig_buffer_of_host(d, pages + 2 * PAGE, PAGE, &buffer), -ENOTSUP);
	assert_ok(rig_buffer_of_host(d, pages, PAGE, &buffer));
	rig_buffer_put(buffer);
	assert_int_equal(munmap(pages, 2 * PAGE), 0);
	close_host(d);
}

static void its_copies_are_timed(void **state)
{
	struct rig_device *d = open_host("HOST");
	struct rig_buffer *src = help_buffer(d, LARGE), *dst = help_buffer(d, LARGE);
	struct rig_submission *s = help_copy(d, LARGE);
	struct rig_run_args *run = help_copy_run(s, src, dst);
	struct rig_profile *profile;
	const struct rig_event *events;
	size_t n, i, spans = 0;

	(void)state;
	assert_ok(rig_profile_start(&d, 1, &profile));
	(void)help_submit(s, run);
	assert_ok(rig_profile_stop(profile));
	assert_ok(rig_profile_events(profile, &events, &n));
	for (i = 0; i < n; i++)
		if (events[i].kind == RIG_EVENT_SPAN) {
			assert_true(events[i].start >= events[i].handed && events[i].end > events[i].start);
			assert_int_equal(events[i].bytes, LARGE);
			spans++;
		}
	assert_int_equal(spans, 1);
	rig_profile_put(profile);
	rig_run_put(run);
	rig_submission_put(s);
	rig_buffer_put(src);
	rig_buffer_put(dst);
	close_host(d);
}

static void other_work_is_refused(void **state)
{
	struct rig_device *d = open_host("HOST");
	static const uint32_t word = 1;
	struct rig_work part = {.kind = RIG_WORDS, .u.words = {&word, 1}};
	struct rig_description description = {.version = RIG_EDGE_VERSION, .parts = &part, .nparts = 1};
	struct rig_submission *s;
	struct rig_image *image;

	(void)state;
	assert_int_equal(rig_submission_make(d, &description, &s), -ENOTSUP);
	assert_int_equal(rig_image_load(d, "x", 1, &image), -ENOEXEC);
	close_host(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(memory_is_the_hosts_page_by_page),
	        cmocka_unit_test(copies_are_done_when_submit_returns),
	        cmocka_unit_test(rows_and_fills_are_copied_as_described),
	        cmocka_unit_test(a_board_borrows_it_and_waits_for_each_other_are_kept),
	        cmocka_unit_test(host_devices_borrow_each_others_memory),
	        cmocka_unit_test(memory_of_the_program_is_taken_unless_it_is_read_only),
	        cmocka_unit_test(its_copies_are_timed),
	        cmocka_unit_test(other_work_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
