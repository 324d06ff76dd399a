/* SPDX-License-Identifier: MIT */
/* What ends a device, a job, a connection: each within its bound, with the first cause as the reason. */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "remote_support.h"

/* An endless kernel, so that a wait is under way. */
static struct rig_point submit_endless(struct rig_device *d, struct sys_launch *l, struct rig_image **image)
{
	static const uint64_t none[2] = {0};

	*image = sys_image(d, "loop_forever");
	sys_launch_make(l, *image, "loop_forever",
	        &(struct sys_params){.device = d, .bytes = none, .count = 8}, 1, 1);
	return sys_launch_submit(l);
}

/* ---- Keys ---- */

static void another_key_is_refused_by_either_side(void **state)
{
	struct agent_process a;
	struct rig_remote_job *job;
	const char *names[] = {a.name};
	char key[512];

	(void)state;
	snprintf(key, sizeof(key), "%s", sys_path("other"));
	sys_ok(rig_remote_make_key(key));
	remote_agent(&a, "");
	assert_int_equal(rig_remote_connect(names, 1, key, &remote_quick, &job), -EACCES);
	assert_non_null(strstr(rig_error(), "the keys differ"));
	sys_ok(rig_remote_connect(names, 1, remote_key(), &remote_quick, &job));
	rig_remote_close(job);
	remote_agent_end(&a);
}

static void a_key_that_others_may_read_is_refused_by_either_side(void **state)
{
	struct rig_remote_job *job;
	const char *names[] = {"127.0.0.1:1"};
	struct sys_result result;
	char key[512], command[1024];

	(void)state;
	snprintf(key, sizeof(key), "%s", sys_path("open-key"));
	sys_ok(rig_remote_make_key(key));
	assert_int_equal(rig_remote_make_key(key), -EEXIST);
	assert_int_equal(chmod(key, 0640), 0);
	assert_int_equal(rig_remote_connect(names, 1, key, &remote_quick, &job), -EPERM);
	snprintf(command, sizeof(command), SYS_BUILD "/tools/rig-agent --key %s", key);
	sys_run(&result, command);
	sys_assert_failed(&result, 1, "chmod 600");
}

/* ---- Strangers ---- */

static int dial(const char *name)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	to.sin_port = htons((uint16_t)atoi(strchr(name, ':') + 1));
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static void a_strangers_bytes_end_its_own_connection_alone(void **state)
{
	static const char texts[][32] = {"GET / HTTP/1.1\r\n\r\n", "RIGR\1\0\0\0", "RIGR\2\0\0\0"};
	struct agent_process a;
	struct rig_remote_job *job;
	uint8_t bytes[4096];
	unsigned i;

	(void)state;
	remote_agent(&a, "sim:mem=64M");
	job = remote_connect(&a, 1, &remote_quick);
	for (i = 0; i < 3; i++) {
		int fd = dial(a.name);

		/* A hello of another protocol, version, or one whose proof is none. */
		sys_fill(bytes, sizeof(bytes), i);
		memcpy(bytes, texts[i], 8);
		(void)!write(fd, bytes, sizeof(bytes));
		while (read(fd, bytes, sizeof(bytes)) > 0)
			;
		(void)close(fd);
	}
	sys_close(remote_open(job, "RVX1:0", &a));
	rig_remote_close(job);
	remote_agent_end(&a);
}

/* ---- Agents and devices that end ---- */

static void a_killed_agent_fails_the_job_and_no_wait_hangs(void **state)
{
	struct agent_process a, b;
	struct agent_process two[2];
	struct rig_remote_job *job;
	struct rig_device *d, *other;
	struct sys_result result;
	struct sys_launch launch;
	struct rig_image *image;
	struct rig_point point;

	(void)state;
	remote_agent(&a, "sim:mem=64M,hang=60s");
	remote_agent(&b, "sim:mem=64M");
	two[0] = a;
	two[1] = b;
	job = remote_connect(two, 2, &remote_quick);
	d = remote_open(job, "RVX1:0", &a);
	other = remote_open(job, "RVX1:0", &b);
	point = submit_endless(d, &launch, &image);
	assert_int_equal(kill(a.process.pid, SIGKILL), 0);
	assert_int_equal(rig_wait(point), RIG_LOST);
	sys_await(remote_is_lost, other, "the loss of the other machine's device");
	remote_assert_failed(job, a.name);
	remote_assert_reason(d, a.name);
	remote_assert_reason(other, a.name);
	sys_launch_end(&launch);
	rig_image_put(image);
	rig_device_put(d);
	rig_device_put(other);
	rig_remote_close(job);
	sys_finish(&a.process, &result);
	/* The other agent stopped its part and serves the next job. */
	job = remote_connect(&b, 1, &remote_quick);
	other = remote_open(job, "RVX1:0", &b);
	sys_device_works(other);
	sys_close(other);
	rig_remote_close(job);
	remote_agent_end(&b);
}

static bool is_lost(void *device)
{
	return rig_lost(device, NULL);
}

/* The machine's memory has no hang bound, and so nobody who looks at it. */
static void idle_devices_are_lost_with_their_job_though_nobody_waits(void **state)
{
	struct agent_process a;
	struct rig_remote_job *job;
	struct rig_device *d, *host;
	struct sys_result result;

	(void)state;
	remote_agent(&a, "sim:mem=64M,hang=600s");
	job = remote_connect(&a, 1, &remote_quick);
	d = remote_open(job, "RVX1:0", &a);
	host = remote_open(job, "CPU", &a);
	assert_false(rig_lost(d, NULL));
	assert_int_equal(kill(a.process.pid, SIGKILL), 0);
	sys_await(is_lost, d, "the loss of an idle board");
	sys_await(is_lost, host, "the loss of idle host memory");
	remote_assert_reason(d, a.name);
	remote_assert_reason(host, a.name);
	rig_device_put(d);
	rig_device_put(host);
	rig_remote_close(job);
	sys_finish(&a.process, &result);
}

static void a_stopped_agent_is_silent_and_fails_the_job(void **state)
{
	struct agent_process a;
	struct rig_remote_job *job;
	struct rig_device *d;
	struct sys_launch launch;
	struct rig_image *image;
	struct rig_point point;

	(void)state;
	remote_agent(&a, "sim:mem=64M,hang=60s");
	job = remote_connect(&a, 1, &remote_quick);
	d = remote_open(job, "RVX1:0", &a);
	point = submit_endless(d, &launch, &image);
	assert_int_equal(kill(a.process.pid, SIGSTOP), 0);
	assert_int_equal(rig_wait(point), RIG_LOST);
	remote_assert_failed(job, "was silent for 600 ms");
	remote_assert_reason(d, "was silent for 600 ms");
	assert_int_equal(kill(a.process.pid, SIGCONT), 0);
	sys_launch_end(&launch);
	rig_image_put(image);
	rig_device_put(d);
	rig_remote_close(job);
	remote_agent_end(&a);
}

static void a_lost_device_is_its_own_loss(void **state)
{
	struct agent_process a;
	struct rig_remote_job *job;
	struct rig_device *d, *other;
	struct sys_launch launch;
	struct rig_image *image;

	(void)state;
	remote_agent(&a, "sim:mem=64M,fault=hang,hang=300ms sim:mem=64M");
	job = remote_connect(&a, 1, &remote_quick);
	d = remote_open(job, "RVX1:0", &a);
	other = remote_open(job, "RVX1:1", &a);
	assert_int_equal(rig_wait(submit_endless(d, &launch, &image)), RIG_LOST);
	remote_assert_reason(d, "no progress");
	sys_device_works(other);
	assert_false(rig_remote_failed(job, NULL));
	sys_launch_end(&launch);
	rig_image_put(image);
	rig_device_put(d);
	/* Its name is free again. */
	d = remote_open(job, "RVX1:0", &a);
	sys_close(d);
	sys_close(other);
	rig_remote_close(job);
	remote_agent_end(&a);
}

static void a_fault_there_is_the_reason_here(void **state)
{
	struct agent_process a;
	struct rig_remote_job *job;
	struct rig_device *d;
	pid_t model;

	(void)state;
	remote_agent(&a, "sim:mem=64M");
	job = remote_connect(&a, 1, &remote_quick);
	d = remote_open(job, "RVX1:0", &a);
	assert_int_equal(sys_find("rvx1-model", &model, 1), 1);
	assert_int_equal(kill(model, SIGKILL), 0);
	sys_await(remote_is_lost, d, "the loss of a device whose model was killed");
	assert_false(rig_remote_failed(job, NULL));
	rig_device_put(d);
	d = remote_open(job, "RVX1:0", &a);
	sys_device_works(d);
	sys_close(d);
	rig_remote_close(job);
	remote_agent_end(&a);
}

static bool has_failed(void *job)
{
	return rig_remote_failed(job, NULL);
}

static void an_agent_that_is_told_to_end_says_so(void **state)
{
	struct agent_process a;
	struct rig_remote_job *job;
	struct rig_device *d;
	const char *why;

	(void)state;
	remote_agent(&a, "sim:mem=64M");
	job = remote_connect(&a, 1, NULL);
	d = remote_open(job, "RVX1:0", &a);
	remote_agent_end(&a);
	sys_await(has_failed, job, "the job to fail");
	assert_true(rig_remote_failed(job, &why));
	assert_non_null(strstr(why, "the agent ends"));
	rig_device_put(d);
	rig_remote_close(job);
}

static void a_closed_job_loses_its_devices(void **state)
{
	struct agent_process a;
	struct rig_remote_job *job;
	struct rig_device *d;

	(void)state;
	remote_agent(&a, "sim:mem=64M");
	job = remote_connect(&a, 1, &remote_quick);
	d = remote_open(job, "RVX1:0", &a);
	rig_remote_close(job);
	sys_await(remote_is_lost, d, "the loss of a closed job's device");
	remote_assert_reason(d, "the job was closed");
	rig_device_put(d);
	remote_agent_end(&a);
}

/* ---- Controllers that vanish ---- */

/* In a child, which does not return. */
static void be_killed(struct agent_process *a, int ready)
{
	struct rig_remote_job *job = remote_connect(a, 1, &remote_quick);
	struct rig_device *d = remote_open(job, "RVX1:0", a);
	struct sys_launch launch;
	struct rig_image *image;

	(void)submit_endless(d, &launch, &image);
	(void)!write(ready, "!", 1);
	(void)rig_wait_device(d, 1);
	_exit(1);
}

static void an_agent_serves_on_when_its_controller_was_killed(void **state)
{
	struct agent_process a;
	struct rig_remote_job *job;
	struct rig_device *d;
	unsigned i;

	(void)state;
	remote_agent(&a, "sim:mem=64M,hang=60s");
	for (i = 0; i < 3; i++) {
		int ready[2], status;
		char byte;
		pid_t child;

		assert_int_equal(pipe(ready), 0);
		child = fork();
		if (!child)
			be_killed(&a, ready[1]);
		assert_int_equal(read(ready[0], &byte, 1), 1);
		assert_int_equal(kill(child, SIGKILL), 0);
		assert_int_equal(waitpid(child, &status, 0), child);
		(void)close(ready[0]);
		(void)close(ready[1]);
		job = remote_connect(&a, 1, &remote_quick);
		d = remote_open(job, "RVX1:0", &a);
		sys_device_works(d);
		sys_close(d);
		rig_remote_close(job);
	}
	remote_agent_end(&a);
}

/* The child would keep the connection, and with it the devices, beyond the parent's end. */
static void a_child_of_fork_has_no_job(void **state)
{
	struct agent_process a;
	struct rig_remote_job *job;
	struct rig_device *d, *again;
	struct rig_remote_listed listed;
	char name[128];
	int status;
	pid_t child;

	(void)state;
	remote_agent(&a, "sim:mem=64M");
	job = remote_connect(&a, 1, &remote_quick);
	d = remote_open(job, "RVX1:0", &a);
	child = fork();
	if (!child) {
		struct rig_buffer *b;
		bool refused = rig_remote_list(job, 0, &listed, 1) == -ECONNABORTED &&
		               rig_buffer_create(d, RIG_DEVICE, 64, &b) == RIG_LOST;

		snprintf(name, sizeof(name), "RVX1:0@%s", a.name);
		refused = refused && rig_remote_open(job, name, &again) < 0;
		rig_remote_close(job);
		_exit(refused ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	sys_device_works(d);
	sys_close(d);
	rig_remote_close(job);
	remote_agent_end(&a);
}

/* ---- No descriptors ---- */

enum { FEW = 24 };

static int set_few(void *arg)
{
	const struct rlimit few = {FEW, FEW};

	(void)arg;
	return setrlimit(RLIMIT_NOFILE, &few) ? errno : 0;
}

static void an_agent_without_descriptors_says_so_and_serves_when_it_has_some(void **state)
{
	const struct sys_before before = {set_few, NULL};
	struct agent_process a;
	struct rig_remote_job *job;
	const char *names[] = {a.name};
	char command[1024];
	int strangers[FEW];
	unsigned i;

	(void)state;
	snprintf(command, sizeof(command), SYS_BUILD "/tools/rig-agent -v --key %s --listen 127.0.0.1:0",
	        remote_key());
	remote_agent_before(&a, command, &before);
	for (i = 0; i < FEW; i++)
		strangers[i] = dial(a.name);
	assert_true(rig_remote_connect(names, 1, remote_key(), &remote_quick, &job) < 0);
	for (i = 0; i < FEW; i++)
		(void)close(strangers[i]);
	while (rig_remote_connect(names, 1, remote_key(), &remote_quick, &job))
		sys_nap();
	rig_remote_close(job);
	remote_agent_end(&a);
}

static void a_controller_without_descriptors_is_told(void **state)
{
	struct agent_process a;
	int status;
	pid_t child;

	(void)state;
	remote_agent(&a, "");
	child = fork();
	if (!child) {
		const struct rlimit none = {3, 3};
		struct rig_remote_job *job;
		const char *names[] = {a.name};

		(void)setrlimit(RLIMIT_NOFILE, &none);
		_exit(rig_remote_connect(names, 1, sys_path("key"), &remote_quick, &job) == -EMFILE ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	remote_agent_end(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(another_key_is_refused_by_either_side),
	        cmocka_unit_test(a_key_that_others_may_read_is_refused_by_either_side),
	        cmocka_unit_test(a_strangers_bytes_end_its_own_connection_alone),
	        cmocka_unit_test(a_killed_agent_fails_the_job_and_no_wait_hangs),
	        cmocka_unit_test(an_agent_that_is_told_to_end_says_so),
	        cmocka_unit_test(idle_devices_are_lost_with_their_job_though_nobody_waits),
	        cmocka_unit_test(a_stopped_agent_is_silent_and_fails_the_job),
	        cmocka_unit_test(a_lost_device_is_its_own_loss),
	        cmocka_unit_test(a_fault_there_is_the_reason_here),
	        cmocka_unit_test(a_closed_job_loses_its_devices),
	        cmocka_unit_test(an_agent_serves_on_when_its_controller_was_killed),
	        cmocka_unit_test(a_child_of_fork_has_no_job),
	        cmocka_unit_test(an_agent_without_descriptors_says_so_and_serves_when_it_has_some),
	        cmocka_unit_test(a_controller_without_descriptors_is_told),
	};

	/* Relays and strangers write to connections that are ended. */
	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, sys_setup, sys_teardown);
}
