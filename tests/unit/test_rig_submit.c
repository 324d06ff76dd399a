/* SPDX-License-Identifier: MIT */
/* The main path: buffers, copies, launches, waits, and what a submit may not do. */
#include "allocs.h"
#include "rig_help.h"

#define BYTES 1000u

static void a_copy_submission_moves_the_bytes(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct rig_buffer *src = help_buffer(b.d, BYTES), *dst = help_buffer(b.d, BYTES);
	struct rig_submission *s = help_copy(b.d, BYTES);
	struct rig_run_args *run = help_copy_run(s, src, dst);
	uint8_t in[BYTES], out[BYTES] = {0};
	struct rig_point point;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)(i * 7);
	assert_ok(rig_buffer_write(src, 0, in, sizeof(in)));
	point = help_submit(s, run);
	assert_int_equal(rig_reached(point), 0);
	assert_ok(rig_wait(point));
	assert_int_equal(rig_reached(point), 1);
	assert_ok(rig_buffer_read(dst, 0, out, sizeof(out)));
	assert_memory_equal(in, out, sizeof(in));
	rig_run_put(run);
	rig_submission_put(s);
	rig_buffer_put(src);
	rig_buffer_put(dst);
	help_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_copy_submission_moves_the_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
