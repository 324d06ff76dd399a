/* SPDX-License-Identifier: MIT */
/* Nothing of one job reaches the next: of a board whose memory outlives its opens, of one that is made anew,
   of the machine's own memory. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "remote_support.h"

enum { PATTERN = 0xa5, MOST = 64, CHUNK = 4 << 20, HOST_CHUNKS = 4 };

struct all {
	struct rig_buffer *buffer[MOST];
	unsigned n;
};

/* As much as the device gives, at most so many pieces. */
static struct all take_all(struct rig_device *d, enum rig_memory kind, unsigned most)
{
	struct all all = {0};

	while (all.n < most && !rig_buffer_create(d, kind, CHUNK, &all.buffer[all.n]))
		all.n++;
	assert_true(all.n > 0);
	return all;
}

static void put_all(struct all *all)
{
	while (all->n)
		rig_buffer_put(all->buffer[--all->n]);
}

static void write_all(struct all *all)
{
	uint8_t *bytes = malloc(CHUNK);
	unsigned i;

	memset(bytes, PATTERN, CHUNK);
	for (i = 0; i < all->n; i++)
		sys_ok(rig_buffer_write(all->buffer[i], 0, bytes, CHUNK));
	free(bytes);
}

/* Bytes of the pattern, in runs of a word as nothing else leaves them. */
static uint64_t count_pattern(struct all *all)
{
	uint64_t found = 0, word;
	uint8_t *bytes = malloc(CHUNK);
	unsigned i;
	size_t at;

	for (i = 0; i < all->n; i++) {
		sys_ok(rig_buffer_read(all->buffer[i], 0, bytes, CHUNK));
		for (at = 0; at < CHUNK; at += sizeof(word)) {
			memcpy(&word, bytes + at, sizeof(word));
			found += word == UINT64_C(0x0101010101010101) * PATTERN;
		}
	}
	free(bytes);
	return found;
}

/* What the second job finds of what the first left. */
static uint64_t leave_and_look(
        const struct agent_process *a, const char *name, enum rig_memory kind, unsigned most)
{
	uint64_t found = 0;
	unsigned i, n = 0;

	for (i = 0; i < 2; i++) {
		struct rig_remote_job *job = remote_connect((struct agent_process *)a, 1, NULL);
		struct rig_device *d = remote_open(job, name, a);
		struct all all = take_all(d, kind, most);

		if (i)
			found = count_pattern(&all);
		else
			write_all(&all);
		assert_true(!i || all.n == n);
		n = all.n;
		put_all(&all);
		sys_close(d);
		rig_remote_close(job);
	}
	return found;
}

static void serve_board(struct sys_process *model, struct agent_process *a, const char *options)
{
	char arguments[512];

	sys_serve(model, "--memory 64M");
	snprintf(arguments, sizeof(arguments), "BOARD=%s sim:mem=64M%s", sys_served(), options);
	remote_agent(a, arguments);
}

static void a_job_finds_nothing_of_the_one_before(void **state)
{
	struct sys_process model;
	struct agent_process a;

	(void)state;
	serve_board(&model, &a, "");
	assert_int_equal(leave_and_look(&a, "BOARD", RIG_DEVICE, MOST), 0);
	assert_int_equal(leave_and_look(&a, "RVX1:0", RIG_DEVICE, MOST), 0);
	assert_int_equal(leave_and_look(&a, "BOARD", RIG_PINNED, HOST_CHUNKS), 0);
	assert_int_equal(leave_and_look(&a, "CPU", RIG_DEVICE, HOST_CHUNKS), 0);
	remote_agent_end(&a);
	sys_serve_end(&model);
}

/* Who had it before an agent began, nobody knows. */
static void a_job_finds_nothing_of_an_earlier_agents(void **state)
{
	struct sys_process model;
	struct agent_process a;
	struct rig_remote_job *job;
	struct rig_device *d;
	struct all all;
	unsigned i;

	(void)state;
	sys_serve(&model, "--memory 64M");
	for (i = 0; i < 2; i++) {
		char arguments[512];

		snprintf(arguments, sizeof(arguments), "BOARD=%s%s", sys_served(), i ? "" : " --keep-memory");
		remote_agent(&a, arguments);
		job = remote_connect(&a, 1, NULL);
		d = remote_open(job, "BOARD", &a);
		all = take_all(d, RIG_DEVICE, MOST);
		if (i)
			assert_int_equal(count_pattern(&all), 0);
		else
			write_all(&all);
		put_all(&all);
		sys_close(d);
		rig_remote_close(job);
		remote_agent_end(&a);
	}
	sys_serve_end(&model);
}

/* And a test that finds nothing would find it. */
static void memory_that_is_kept_has_what_the_job_before_left(void **state)
{
	struct sys_process model;
	struct agent_process a;

	(void)state;
	serve_board(&model, &a, " --keep-memory");
	assert_true(leave_and_look(&a, "BOARD", RIG_DEVICE, MOST) > 0);
	remote_agent_end(&a);
	sys_serve_end(&model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_job_finds_nothing_of_the_one_before),
	        cmocka_unit_test(a_job_finds_nothing_of_an_earlier_agents),
	        cmocka_unit_test(memory_that_is_kept_has_what_the_job_before_left),
	};

	return cmocka_run_group_tests(tests, sys_setup, sys_teardown);
}
