/* SPDX-License-Identifier: MIT */
/*
 * SIGKILL of any process of a job at any moment: a controller, an agent, a model, with rails over tcp and
 * over shm. Whoever remains comes to an end with a reason within its bound, the agents serve the next job,
 * and nothing is left over: no process, no descriptor of an agent's, no name of shared memory.
 * RIG_REMOTE_KILLS says how often, RIG_REMOTE_SEED from which numbers.
 */
#include <dirent.h>
#include <limits.h>
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
	KILLS = 8,
	MOST_DELAY_US = 150000,
	BOUND_S = 30,   /* of a controller's end; its own bounds are a second or two */
	LARGE = 700000, /* goes by parcels */
	SMALL = 300000, /* goes by messages */
	MODELS = 8,
	PIECE = 5000, /* of a rail's transfer */
	MOVES = 2,    /* of a job that nothing befalls */
	WORKED = 0,   /* until it was cut short, with a reason */
	WRONG = 3,
	ALL = 4, /* it moved what it was to move */
};

static struct rig_remote_options quick = {
        .version = RIG_EDGE_VERSION, .step_ms = 5000, .silence_ms = 1000, .answer_ms = 10000};

static struct agent_process agents[2];

/* ---- The controller ---- */

/* An error that is the job's or a device's end is what is expected sooner or later. */
#define END_IF(expression)                                                                                   \
	do {                                                                                                 \
		if (expression)                                                                              \
			return *rig_error() ? WORKED : WRONG;                                                \
	} while (0)

/* The next count of the rail, which nothing waits for. */
static void advance(const struct rig_remote_rail *rail)
{
	const struct rig_remote_end *end = rail->local;

	if (rig_remote_load(end, RIG_REMOTE_READY) == rig_remote_load(end, RIG_REMOTE_SENT))
		end->ready(end->ready_arg, rig_remote_load(end, RIG_REMOTE_READY) + 1);
}

static int move(
        struct rig_buffer *from, struct rig_buffer *to, const struct rig_remote_rail *rail, unsigned moves)
{
	static uint8_t sent[LARGE], got[LARGE];
	unsigned i;

	for (i = 0; i < moves; i++) {
		uint64_t bytes = i % 2 ? SMALL : LARGE;

		advance(rail);
		sys_fill(sent, bytes, i);
		END_IF(rig_buffer_write(from, 0, sent, bytes));
		END_IF(rig_buffer_copy(to, 0, from, 0, bytes));
		END_IF(rig_buffer_read(to, 0, got, bytes));
		if (memcmp(sent, got, bytes) != 0)
			return WRONG;
	}
	return ALL;
}

static int make_rail(struct rig_device *cpu, const struct rig_remote_rail **rail)
{
	static const struct rig_remote_transfer t = {0, 0, PIECE};
	const struct rig_remote_host *host =
	        &((const struct rig_remote_record *)rig_capability(cpu, &rig_remote_key))->u.host;

	return host->rail(host->self, NULL, &t, 1, &t, 1, rail);
}

/* The host of the first machine is the third device. */
static int work_in(struct rig_remote_job *job, struct rig_device *d[3], unsigned moves)
{
	const struct rig_remote_rail *rail;
	struct rig_buffer *b[2];
	char name[128];
	unsigned i;
	int status;

	for (i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "RVX1:0@%s", agents[i].name);
		END_IF(rig_remote_open(job, name, &d[i]));
	}
	for (i = 0; i < 2; i++)
		END_IF(rig_buffer_create(d[i], RIG_DEVICE, LARGE, &b[i]));
	snprintf(name, sizeof(name), "CPU@%s", agents[0].name);
	END_IF(rig_remote_open(job, name, &d[2]));
	END_IF(make_rail(d[2], &rail));
	status = move(b[0], b[1], rail, moves);
	rig_remote_rail_put(rail);
	for (i = 0; i < 2; i++)
		rig_buffer_put(b[i]);
	return status;
}

/* Its close comes to an end too, whatever has ended before. */
static int control(unsigned moves)
{
	const char *names[] = {agents[0].name, agents[1].name};
	struct rig_device *d[3] = {NULL, NULL, NULL};
	struct rig_remote_job *job;
	int status;

	END_IF(rig_remote_connect(names, 2, remote_key(), &quick, &job));
	status = work_in(job, d, moves);
	rig_remote_close(job);
	for (unsigned i = 0; i < 3; i++)
		rig_device_put(d[i]);
	return status;
}

/* ---- What is left ---- */

enum { STARTED = 4096 };

static pid_t started[STARTED];
static unsigned nstarted;

static void note_started(pid_t pid)
{
	assert_true(nstarted < STARTED);
	started[nstarted++] = pid;
}

/* The provider has names begin with the number of who made them. */
static bool is_ours(const char *name)
{
	long pid = strtol(name, NULL, 10);
	unsigned i;

	for (i = 0; i < nstarted && started[i] != pid; i++)
		;
	return i < nstarted;
}

static void assert_no_name(void)
{
	DIR *dir = opendir("/dev/shm");
	struct dirent *entry;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		if (is_ours(entry->d_name))
			fail_msg("/dev/shm/%s is left", entry->d_name);
	(void)closedir(dir);
}

static unsigned descriptors(const struct agent_process *a)
{
	struct dirent *entry;
	char path[64];
	unsigned n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)a->process.pid);
	dir = opendir(path);
	assert_non_null(dir);
	while ((entry = readdir(dir)))
		n += entry->d_name[0] != '.';
	(void)closedir(dir);
	return n;
}

static pid_t start_controller(unsigned moves)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child)
		_exit(control(moves));
	note_started(child);
	return child;
}

static void start_agent(struct agent_process *a)
{
	remote_agent(a, "--plain-rails sim:mem=64M");
	note_started(a->process.pid);
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
	start_agent(a);
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

struct left {
	unsigned descriptors, of_new;
};

static bool are_closed(void *arg)
{
	struct left *left = arg;

	left->descriptors = descriptors(&agents[0]);
	return left->descriptors <= left->of_new;
}

/* An agent that has seen the kills has no more of them than one that has seen a whole job alone. */
static void check_descriptors(void)
{
	struct left left;
	pid_t child;

	remote_agent_end(&agents[1]);
	start_agent(&agents[1]);
	child = start_controller(MOVES);
	assert_int_equal(await_end(child, false), ALL);
	sys_await_models(0);
	left.of_new = descriptors(&agents[1]);
	sys_await(are_closed, &left, "the descriptors of jobs that were killed to be closed");
}

static void check_kills(const char *provider)
{
	unsigned kills = setting("RIG_REMOTE_KILLS", KILLS), i;

	quick.provider = provider;
	numbers = UINT64_C(0x9E3779B97F4A7C15) ^ setting("RIG_REMOTE_SEED", 1);
	start_agent(&agents[0]);
	start_agent(&agents[1]);
	for (i = 0; i < kills; i++)
		kill_one(i, start_controller(UINT_MAX));
	check_descriptors();
	remote_agent_end(&agents[0]);
	remote_agent_end(&agents[1]);
	sys_assert_no_process();
	assert_no_name();
}

static void any_process_may_be_killed_at_any_moment(void **state)
{
	(void)state;
	check_kills(NULL);
}

static void any_process_may_be_killed_at_any_moment_over_tcp(void **state)
{
	(void)state;
	check_kills("tcp");
}

static void any_process_may_be_killed_at_any_moment_over_shm(void **state)
{
	(void)state;
	check_kills("shm");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(any_process_may_be_killed_at_any_moment),
	        cmocka_unit_test(any_process_may_be_killed_at_any_moment_over_tcp),
	        cmocka_unit_test(any_process_may_be_killed_at_any_moment_over_shm),
	};

	return cmocka_run_group_tests(tests, sys_setup, sys_teardown);
}
