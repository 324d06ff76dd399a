/* SPDX-License-Identifier: MIT */
/* A forked child owns nothing of its parent's devices, and may open its own. */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig_help.h"

struct inherited {
	struct bench b;
	struct rig_buffer *buffer;
	struct rig_submission *s;
	struct rig_image *image;
	struct rig_point reached, open;
	unsigned calls;
};

static unsigned count_calls(struct polled *p)
{
	unsigned n = 0;
	int i;

	for (i = 0; i < POLLED_CALLS; i++)
		n += polled_count(p, (enum polled_call)i);
	return n;
}

/* 0, or the number of the step that failed: a child asserts nothing. Only calls that answer. */
static int use_inherited(struct inherited *x)
{
	struct rig_buffer *buffer;
	char byte = 0;

	if (rig_submit(x->s, NULL, NULL, 0, NULL) != RIG_LOST)
		return 1;
	if (rig_buffer_create(x->b.d, RIG_DEVICE, 64, &buffer) != RIG_LOST)
		return 2;
	if (rig_buffer_write(x->buffer, 0, &byte, 1) != RIG_LOST)
		return 3;
	if (rig_wait(x->open) != RIG_LOST)
		return 4;
	if (!rig_lost(x->b.d, NULL))
		return 5;
	if (rig_close(x->b.d) != 0)
		return 6;
	if (rig_devices(NULL, 0) != 0)
		return 7;
	if (count_calls(x->b.p) != x->calls)
		return 8;
	return 0;
}

static int drop_inherited(struct inherited *x)
{
	rig_buffer_put(x->buffer);
	rig_image_put(x->image);
	rig_submission_put(x->s);
	rig_device_put(x->b.d);
	return count_calls(x->b.p) == x->calls ? 0 : 20;
}

/* The same name, a slot of its own, values that are right. */
static int open_own(const struct inherited *x)
{
	struct polled_options o = help_options();
	struct polled *p = polled_new(&o);
	struct rig_description description = {.version = RIG_EDGE_VERSION};
	struct rig_submission *s;
	struct rig_point point;
	struct rig_device *d;

	if (rig_open(polled_opener(p), &d))
		return 30;
	if (rig_submission_make(d, &description, &s) || rig_submit(s, NULL, NULL, 0, &point) ||
	        rig_wait(point))
		return 31;
	if (rig_point_slot(point) == rig_point_slot(x->open))
		return 32;
	rig_submission_put(s);
	if (rig_close(d))
		return 33;
	rig_device_put(d);
	return polled_breach(p) || polled_left(p) ? 34 : 0;
}

static struct inherited prepare(void)
{
	struct polled_options o = help_options();
	struct inherited x = {.b = help_open(&o)};

	x.buffer = help_buffer(x.b.d, 64);
	x.image = help_image(x.b.d);
	x.s = help_empty(x.b.d);
	x.reached = help_submit(x.s, NULL);
	assert_ok(rig_wait(x.reached));
	x.open = help_submit(x.s, NULL);
	x.calls = count_calls(x.b.p);
	return x;
}

/* Its work goes on as if nothing had happened. */
static void finish(struct inherited *x)
{
	assert_ok(rig_wait(x->open));
	assert_ok(rig_wait(help_submit(x->s, NULL)));
	rig_buffer_put(x->buffer);
	rig_image_put(x->image);
	rig_submission_put(x->s);
	help_close(&x->b);
}

static void expect_child(pid_t child)
{
	int status;

	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* E-237, E-241 */
static void a_childs_inherited_device_is_lost_and_its_driver_never_called(void **state)
{
	struct inherited x = prepare();
	pid_t child = fork();
	int step;

	(void)state;
	if (child == 0) {
		step = use_inherited(&x);
		_exit(step ? step : drop_inherited(&x));
	}
	expect_child(child);
	finish(&x);
}

static void a_child_opens_devices_of_its_own(void **state)
{
	struct inherited x = prepare();
	pid_t child = fork();
	int step;

	(void)state;
	if (child == 0) {
		step = open_own(&x);
		_exit(step ? step : use_inherited(&x));
	}
	expect_child(child);
	finish(&x);
}

/* No fork handler runs: the wiped page tells. */
static void a_bare_clone_notices_too(void **state)
{
	struct inherited x = prepare();
	pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);

	(void)state;
	if (child == 0)
		_exit(use_inherited(&x));
	expect_child(child);
	finish(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_childs_inherited_device_is_lost_and_its_driver_never_called),
	        cmocka_unit_test(a_child_opens_devices_of_its_own),
	        cmocka_unit_test(a_bare_clone_notices_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
