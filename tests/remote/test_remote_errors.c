/* SPDX-License-Identifier: MIT */
/* What an agent's driver answers is what the program gets: the same errno and text, of the one call alone. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "polled.h"
#include "remote_support.h"

enum { PINNED = 128 << 10, SMALL = 4096, LARGE = 1 << 20 };

static struct agent_process agent;

static int start(void **state)
{
	char command[1024];

	if (sys_setup(state))
		return -1;
	snprintf(command, sizeof(command),
	        SYS_BUILD "/tests/remote/polled-agent %s pinned=%d room_code=%d,load_code=%d load_code=%d",
	        remote_key(), PINNED, -ENOSPC, -EPROTO, -EIO);
	remote_agent_before(&agent, command, NULL);
	return 0;
}

static int end(void **state)
{
	remote_agent_end(&agent);
	return sys_teardown(state);
}

static void a_copy_without_memory_there_is_refused_and_its_device_works_on(void **state)
{
	struct rig_remote_job *job = remote_connect(&agent, 1, NULL);
	struct rig_device *d = remote_open(job, "P0", &agent);
	struct rig_buffer *b = sys_buffer(d, RIG_DEVICE, LARGE);
	uint8_t *sent = malloc(LARGE), *got = calloc(1, LARGE);
	unsigned i;

	(void)state;
	sys_fill(sent, LARGE, 1);
	/* Also once small copies have left memory of other sizes about. */
	for (i = 0; i < 2; i++) {
		assert_int_equal(rig_buffer_write(b, 0, sent, LARGE), -ENOMEM);
		assert_non_null(strstr(rig_error(), "no pinned memory"));
		assert_int_equal(rig_buffer_read(b, 0, got, LARGE), -ENOMEM);
		sys_ok(rig_buffer_write(b, 0, sent, SMALL));
		sys_ok(rig_buffer_read(b, 0, got, SMALL));
		assert_memory_equal(sent, got, SMALL);
	}
	assert_false(rig_lost(d, NULL));
	free(sent);
	free(got);
	rig_buffer_put(b);
	sys_close(d);
	rig_remote_close(job);
}

static int submit_words(struct rig_device *d)
{
	static const uint32_t word = 7;
	const struct rig_work part = {.kind = RIG_WORDS, .u.words = {&word, 1}};
	const struct rig_description what = {.version = RIG_EDGE_VERSION, .parts = &part, .nparts = 1};
	struct rig_submission *s;
	int err;

	sys_ok(rig_submission_make(d, &what, &s));
	err = rig_submit(s, NULL, NULL, 0, NULL);
	rig_submission_put(s);
	return err;
}

static void an_errno_of_room_there_is_the_submits(void **state)
{
	struct rig_remote_job *job = remote_connect(&agent, 1, NULL);
	struct rig_device *d = remote_open(job, "P1", &agent);

	(void)state;
	assert_int_equal(submit_words(d), -ENOSPC);
	assert_string_equal(rig_error(), "injected errno of room");
	assert_false(rig_lost(d, NULL));
	sys_ok(rig_wait_device(d, rig_submitted(d)));
	sys_close(d);
	rig_remote_close(job);
}

/* -EPROTO and -EIO are also what a broken message and a fault are told by. */
static void an_errno_of_load_there_is_the_loads(void **state)
{
	static const int codes[] = {0, -EPROTO, -EIO};
	struct rig_remote_job *job = remote_connect(&agent, 1, NULL);
	unsigned i;

	(void)state;
	for (i = 1; i < 3; i++) {
		char name[8];
		struct rig_device *d;
		struct rig_image *image;

		snprintf(name, sizeof(name), "P%u", i);
		d = remote_open(job, name, &agent);
		assert_int_equal(rig_image_load(d, POLLED_BINARY, sizeof(POLLED_BINARY), &image), codes[i]);
		assert_non_null(strstr(rig_error(), "injected errno of load"));
		assert_false(rig_lost(d, NULL));
		sys_close(d);
	}
	assert_false(rig_remote_failed(job, NULL));
	rig_remote_close(job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_copy_without_memory_there_is_refused_and_its_device_works_on),
	        cmocka_unit_test(an_errno_of_room_there_is_the_submits),
	        cmocka_unit_test(an_errno_of_load_there_is_the_loads),
	};

	return cmocka_run_group_tests(tests, start, end);
}
