/* SPDX-License-Identifier: MIT */
/* Devices whose drivers bring words of their own, behind an agent: copies, waits, loss. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "remote_support.h"

enum { BYTES = 100000, ROUNDS = 20 };

static struct agent_process agent;

static int start(void **state)
{
	char command[1024];

	if (sys_setup(state))
		return -1;
	snprintf(command, sizeof(command), SYS_BUILD "/tests/remote/polled-agent %s own_word, own_word,",
	        remote_key());
	remote_agent_before(&agent, command, NULL);
	return 0;
}

/* It says whether its drivers saw a breach of the contract. */
static int end(void **state)
{
	remote_agent_end(&agent);
	return sys_teardown(state);
}

static void values_of_devices_with_their_own_words_are_reached(void **state)
{
	struct rig_remote_job *job = remote_connect(&agent, 1, NULL);
	struct rig_device *a = remote_open(job, "P0", &agent);
	struct rig_buffer *b = sys_buffer(a, RIG_DEVICE, BYTES);
	uint8_t *sent = malloc(BYTES), *got = calloc(1, BYTES);
	unsigned i;

	(void)state;
	for (i = 0; i < ROUNDS; i++) {
		sys_fill(sent, BYTES, i);
		sys_ok(rig_buffer_write(b, 0, sent, BYTES));
		sys_ok(rig_buffer_read(b, 0, got, BYTES));
		assert_memory_equal(sent, got, BYTES);
	}
	free(sent);
	free(got);
	rig_buffer_put(b);
	sys_close(a);
	rig_remote_close(job);
}

/* No queue waits for such a word: the agent does. */
static void devices_with_their_own_words_follow_each_other(void **state)
{
	struct rig_remote_job *job = remote_connect(&agent, 1, NULL);
	struct rig_device *a = remote_open(job, "P0", &agent), *b = remote_open(job, "P1", &agent);
	struct rig_buffer *of_a = sys_buffer(a, RIG_DEVICE, BYTES), *of_b = sys_buffer(b, RIG_DEVICE, BYTES);
	uint8_t *sent = malloc(BYTES), *got = calloc(1, BYTES);
	unsigned i;

	(void)state;
	for (i = 0; i < ROUNDS; i++) {
		sys_fill(sent, BYTES, i);
		sys_ok(rig_buffer_write(of_a, 0, sent, BYTES));
		sys_ok(rig_buffer_copy(of_b, 0, of_a, 0, BYTES));
		sys_ok(rig_buffer_write(of_a, 0, got, BYTES));
		sys_ok(rig_buffer_copy(of_a, 0, of_b, 0, BYTES));
		sys_ok(rig_buffer_read(of_a, 0, got, BYTES));
		assert_memory_equal(sent, got, BYTES);
	}
	free(sent);
	free(got);
	rig_buffer_put(of_a);
	rig_buffer_put(of_b);
	sys_close(a);
	sys_close(b);
	rig_remote_close(job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(values_of_devices_with_their_own_words_are_reached),
	        cmocka_unit_test(devices_with_their_own_words_follow_each_other),
	};

	return cmocka_run_group_tests(tests, start, end);
}
