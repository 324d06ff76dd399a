/* SPDX-License-Identifier: MIT */
/*
 * SIGKILL of any process of a job at any moment: a controller, an agent, a model. Whoever remains comes to an
 * end with a reason within its bound, the agents serve the next job, and nothing is left over.
 * RIG_REMOTE_KILLS says how often, RIG_REMOTE_SEED from which numbers.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "draw.h"
#include "remote_support.h"

enum {
	KILLS = 12,
	MOST_DELAY_US = 150000,
	BOUND_S = 30,   /* of a controller's end; its own bounds are a second or two */
	LARGE = 700000, /* goes by parcels */
	SMALL = 300000, /* goes by messages */
	MODELS = 8,
	WORKED = 0,
	WRONG = 3,
};

static const struct rig_remote_options quick = {
        .version = RIG_EDGE_VERSION, .step_ms = 5000, .silence_ms = 1000, .answer_ms = 10000};

static struct agent_process agents[2];

/* ---- The controller ---- */

/* An error that is the job's or a device's end is what is expected sooner or later. */
#define END_IF(expression)                                                                                   \
	do {                                                                                                 \
		if (expression)                                                                              \
			return *rig_error() ? WORKED : WRONG;                                                \
	} while (0)

static int move(struct rig_buffer *from, struct rig_buffer *to)
{
	static uint8_t sent[LARGE], got[LARGE];
	unsigned i;

	for (i = 0;; i++) {
		uint64_t bytes = i % 2 ? SMALL : LARGE;

		sys_fill(sent, bytes, i);
		END_IF(rig_buffer_write(from, 0, sent, bytes));
		END_IF(rig_buffer_copy(to, 0, from, 0, bytes));
		END_IF(rig_buffer_read(to, 0, got, bytes));
		if (memcmp(sent, got, bytes) != 0)
			return WRONG;
	}
}

static int work_in(struct rig_remote_job *job, struct rig_device *d[2])
{
	struct rig_buffer *b[2];
	unsigned i;

	for (i = 0; i < 2; i++) {
		char name[128];

		snprintf(name, sizeof(name), "RVX1:0@%s", agents[i].name);
		END_IF(rig_remote_open(job, name, &d[i]));
	}
	for (i = 0; i < 2; i++)
		END_IF(rig_buffer_create(d[i], RIG_DEVICE, LARGE, &b[i]));
	return move(b[0], b[1]);
}

/* Its close comes to an end too, whatever has ended before. */
static int control(void)
{
	const char *names[] = {agents[0].name, agents[1].name};
	struct rig_device *d[2] = {NULL, NULL};
	struct rig_remote_job *job;
	int status;

	END_IF(rig_remote_connect(names, 2, remote_key(), &quick, &job));
	status = work_in(job, d);
	rig_remote_close(job);
	rig_device_put(d[0]);
	rig_device_put(d[1]);
	return status;
}

/* ---- The killing ---- */

static uint64_t numbers;

static void kill_models(void)
{
	pid_t models[MODELS];
	unsigned n = sys_find("rvx1-model", models, MODELS), i;

	for (i = 0; i < n && i < MODELS; i++)
		(void)kill(models[i], SIGKILL);
}

/* Its status, or -1 if it does not end in time. A model that was found may have been an earlier job's, on its
   way out. */
static int await_end(pid_t child, bool models)
{
	struct timespec nap = {.tv_nsec = 5000000};
	time_t end = time(NULL) + BOUND_S;
	int status;

	while (time(NULL) < end) {
		if (models)
			kill_models();
		if (waitpid(child, &status, WNOHANG) == child)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		(void)nanosleep(&nap, NULL);
	}
	return -1;
}

static void restart(struct agent_process *a)
{
	struct sys_result result;

	sys_finish(&a->process, &result);
	remote_agent(a, "sim:mem=64M");
}

enum victim { CONTROLLER, AGENT_0, AGENT_1, MODEL, VICTIMS };

static void kill_one(unsigned round, pid_t child)
{
	enum victim victim = test_draw(&numbers, VICTIMS);
	struct timespec delay = {.tv_nsec = (long)test_draw(&numbers, MOST_DELAY_US) * 1000};
	int status;

	(void)nanosleep(&delay, NULL);
	if (victim == CONTROLLER)
		(void)kill(child, SIGKILL);
	else if (victim != MODEL)
		(void)kill(agents[victim - AGENT_0].process.pid, SIGKILL);
	status = await_end(child, victim == MODEL);
	if (status != (victim == CONTROLLER ? 128 + SIGKILL : WORKED)) {
		(void)kill(child, SIGKILL);
		fail_msg("round %u, victim %d after %ld us: the controller ended with %d", round, (int)victim,
		        delay.tv_nsec / 1000, status);
	}
	if (victim == AGENT_0 || victim == AGENT_1)
		restart(&agents[victim - AGENT_0]);
}

static unsigned setting(const char *name, unsigned otherwise)
{
	const char *text = getenv(name);

	return text && *text ? (unsigned)strtoul(text, NULL, 0) : otherwise;
}

static void any_process_may_be_killed_at_any_moment(void **state)
{
	unsigned kills = setting("RIG_REMOTE_KILLS", KILLS), i;

	(void)state;
	numbers = UINT64_C(0x9E3779B97F4A7C15) ^ setting("RIG_REMOTE_SEED", 1);
	remote_agent(&agents[0], "sim:mem=64M");
	remote_agent(&agents[1], "sim:mem=64M");
	for (i = 0; i < kills; i++) {
		pid_t child = fork();

		assert_true(child >= 0);
		if (!child)
			_exit(control());
		kill_one(i, child);
	}
	remote_agent_end(&agents[0]);
	remote_agent_end(&agents[1]);
	sys_assert_no_process();
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(any_process_may_be_killed_at_any_moment)};

	return cmocka_run_group_tests(tests, sys_setup, sys_teardown);
}
