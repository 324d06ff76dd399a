/* SPDX-License-Identifier: MIT */
/* Jobs of several machines come to be: at the same time, with beats meanwhile, or not at all. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "counters.h"
#include "remote_relay.h"
#include "remote_support.h"

enum { AGENTS = 5, MANY = 20, SILENCE_MS = 1500, LONG_MS = 3 * SILENCE_MS, BYTES = 3000 };

static struct agent_process agents[AGENTS];
static unsigned idle_descriptors[AGENTS];

static unsigned descriptors_of(pid_t pid)
{
	char path[64];
	unsigned n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	assert_non_null(dir);
	while (readdir(dir))
		n++;
	(void)closedir(dir);
	return n;
}

static int start(void **state)
{
	static const char *const devices[AGENTS] = {"", "", "", "", ""};
	unsigned i;

	if (remote_start(state, agents, devices, AGENTS))
		return -1;
	for (i = 0; i < AGENTS; i++)
		idle_descriptors[i] = descriptors_of(agents[i].process.pid);
	return 0;
}

static int end(void **state)
{
	return remote_end(state, agents, AGENTS);
}

/* ---- Linked machines ---- */

static void copy_between(struct rig_device *a, struct rig_device *b, uint64_t seed)
{
	struct rig_buffer *from = sys_buffer(a, RIG_DEVICE, BYTES), *to = sys_buffer(b, RIG_DEVICE, BYTES);
	uint8_t sent[BYTES], got[BYTES] = {0};

	sys_fill(sent, sizeof(sent), seed);
	sys_ok(rig_buffer_write(from, 0, sent, sizeof(sent)));
	sys_ok(rig_buffer_copy(to, 0, from, 0, sizeof(sent)));
	sys_ok(rig_buffer_read(to, 0, got, sizeof(got)));
	assert_memory_equal(sent, got, sizeof(sent));
	rig_buffer_put(from);
	rig_buffer_put(to);
}

/* Bytes go from each machine to each other. */
static void check_links(struct rig_remote_job *job, struct agent_process *machines, unsigned n)
{
	struct rig_device *devices[AGENTS];
	unsigned i, k;

	for (i = 0; i < n; i++)
		devices[i] = remote_open(job, "CPU", &machines[i]);
	for (i = 0; i < n; i++)
		for (k = 0; k < n; k++)
			if (i != k)
				copy_between(devices[i], devices[k], 10 * i + k);
	for (i = 0; i < n; i++)
		sys_close(devices[i]);
}

static void each_two_machines_of_a_job_are_linked(void **state)
{
	unsigned n;

	(void)state;
	for (n = 1; n <= AGENTS; n++) {
		struct rig_remote_job *job = remote_connect(agents, n, NULL);

		check_links(job, agents, n);
		rig_remote_close(job);
	}
}

/* More than an agent takes jobs: connections of other agents are none. The last one copies from the first. */
static void a_job_has_more_machines_than_an_agent_has_jobs(void **state)
{
	struct agent_process *many = calloc(MANY, sizeof(*many));
	struct rig_remote_job *job;
	struct rig_device *first, *last;
	unsigned i;

	(void)state;
	for (i = 0; i < MANY; i++)
		remote_agent(&many[i], "");
	job = remote_connect(many, MANY, NULL);
	first = remote_open(job, "CPU", &many[0]);
	last = remote_open(job, "CPU", &many[MANY - 1]);
	copy_between(first, last, 1);
	sys_close(first);
	sys_close(last);
	rig_remote_close(job);
	for (i = 0; i < MANY; i++)
		remote_agent_end(&many[i]);
	free(many);
}

/* ---- At the same time ---- */

/* Holds the first connections of all relays until each has one. */
struct gate {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned there, all;
};

static void hold_for_all(void *arg, unsigned connection)
{
	struct gate *g = arg;

	if (connection)
		return;
	(void)pthread_mutex_lock(&g->lock);
	g->there++;
	(void)pthread_cond_broadcast(&g->changed);
	while (g->there < g->all)
		(void)pthread_cond_wait(&g->changed, &g->lock);
	(void)pthread_mutex_unlock(&g->lock);
}

static void start_relays(struct relay *relays, struct agent_process *behind, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		relay_start(&relays[i], agents[i].name);
		memcpy(behind[i].name, relays[i].name, sizeof(behind[i].name));
	}
}

static void end_relays(struct relay *relays, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		relay_end(&relays[i]);
}

static void machines_are_dialled_at_the_same_time(void **state)
{
	struct gate gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, AGENTS};
	struct relay relays[AGENTS] = {0};
	struct agent_process behind[AGENTS] = {0};
	struct rig_remote_job *job;
	unsigned i;

	(void)state;
	for (i = 0; i < AGENTS; i++) {
		relays[i].before = hold_for_all;
		relays[i].arg = &gate;
	}
	start_relays(relays, behind, AGENTS);
	job = remote_connect(behind, AGENTS, NULL);
	check_links(job, behind, AGENTS);
	rig_remote_close(job);
	end_relays(relays, AGENTS);
}

static void hold_long(void *arg, unsigned connection)
{
	(void)arg;
	if (!connection)
		(void)usleep(LONG_MS * 1000);
}

/* The agents that joined early would end the job for the controller's silence. */
static void a_connect_may_take_longer_than_the_silence_that_ends_a_job(void **state)
{
	const struct rig_remote_options options = {
	        .version = RIG_EDGE_VERSION, .step_ms = SYS_DEADLINE_MS, .silence_ms = SILENCE_MS};
	struct relay relays[AGENTS] = {0};
	struct agent_process behind[AGENTS] = {0};
	struct rig_remote_job *job;

	(void)state;
	relays[AGENTS - 1].before = hold_long;
	start_relays(relays, behind, AGENTS);
	job = remote_connect(behind, AGENTS, &options);
	check_links(job, behind, AGENTS);
	assert_false(rig_remote_failed(job, NULL));
	rig_remote_close(job);
	end_relays(relays, AGENTS);
}

/* ---- One that fails ---- */

static bool is_idle(void *arg)
{
	const struct agent_process *a = arg;

	return descriptors_of(a->process.pid) == idle_descriptors[a - agents];
}

/* A name that nobody listens at, as long as the descriptor lives. */
static int take_port(char *name, size_t bytes)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&at, n), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
	snprintf(name, bytes, "127.0.0.1:%u", ntohs(at.sin_port));
	return fd;
}

static void fail_to_connect(const char *const *names, uint32_t n, const char *missing)
{
	struct rig_remote_job *job = NULL;

	assert_int_equal(rig_remote_connect(names, n, remote_key(), NULL, &job), -ECONNREFUSED);
	assert_non_null(strstr(rig_error(), missing));
	assert_null(job);
}

static void a_machine_that_is_not_there_is_named_and_nothing_is_left(void **state)
{
	const char *names[AGENTS + 1];
	struct test_counts counts;
	char missing[64];
	int fd = take_port(missing, sizeof(missing));
	unsigned at, i;

	(void)state;
	for (at = 0; at <= AGENTS; at++) {
		for (i = 0; i <= AGENTS; i++)
			names[i] = i == at ? missing : agents[i - (i > at)].name;
		if (at < 2)
			test_counts_take(&counts);
		fail_to_connect(names, AGENTS + 1, missing);
		if (at)
			test_counts_same(&counts);
	}
	for (i = 0; i < AGENTS; i++)
		sys_await(is_idle, &agents[i], "an agent without jobs");
	(void)close(fd);
}

static void a_machine_with_another_key_fails_the_connect(void **state)
{
	struct agent_process other = {0};
	const char *names[] = {agents[0].name, other.name, agents[1].name};
	struct rig_remote_job *job;
	char command[1024], key[512];

	(void)state;
	snprintf(key, sizeof(key), "%s", sys_path("other_key"));
	sys_ok(rig_remote_make_key(key));
	snprintf(
	        command, sizeof(command), SYS_BUILD "/tools/rig-agent -v --key %s --listen 127.0.0.1:0", key);
	remote_agent_before(&other, command, NULL);
	assert_int_equal(rig_remote_connect(names, 3, remote_key(), NULL, &job), -EACCES);
	assert_non_null(strstr(rig_error(), other.name));
	remote_agent_end(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(each_two_machines_of_a_job_are_linked),
	        cmocka_unit_test(a_job_has_more_machines_than_an_agent_has_jobs),
	        cmocka_unit_test(machines_are_dialled_at_the_same_time),
	        cmocka_unit_test(a_connect_may_take_longer_than_the_silence_that_ends_a_job),
	        cmocka_unit_test(a_machine_that_is_not_there_is_named_and_nothing_is_left),
	        cmocka_unit_test(a_machine_with_another_key_fails_the_connect),
	};

	/* Relays write to connections that are ended. */
	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, start, end);
}
