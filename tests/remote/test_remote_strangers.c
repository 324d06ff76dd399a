/* SPDX-License-Identifier: MIT */
/* Connections that never prove the key: they keep nobody out, and end with the agent. */
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "remote_support.h"

enum { IDLE = 500, ADDRESSES = 50 };

static struct agent_process served;

/* From 127.0.0.FROM, silent. */
static int connect_from(unsigned from)
{
	const char *port = strrchr(served.name, ':') + 1;
	struct sockaddr_in own = {.sin_family = AF_INET,
	                           .sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + from)},
	                   to = {.sin_family = AF_INET,
	                           .sin_port = htons((uint16_t)strtoul(port, NULL, 10)),
	                           .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof(own)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static bool has_ended(int fd)
{
	struct pollfd look = {.fd = fd, .events = POLLIN};
	char byte;

	return poll(&look, 1, 0) == 1 && recv(fd, &byte, 1, MSG_DONTWAIT) <= 0;
}

static void do_a_job(void)
{
	const char *names[] = {served.name};
	struct rig_remote_listed listed[2];
	struct rig_remote_job *job;

	sys_ok(rig_remote_connect(names, 1, remote_key(), NULL, &job));
	assert_int_equal(rig_remote_list(job, 0, listed, 2), 1);
	rig_remote_close(job);
}

struct idle {
	int fd[IDLE];
	unsigned most; /* that may be left */
};

static bool enough_were_ended(void *arg)
{
	struct idle *idle = arg;
	unsigned left = 0;

	for (unsigned i = 0; i < IDLE; i++)
		left += !has_ended(idle->fd[i]);
	return left <= idle->most;
}

static void keep_nobody_out(unsigned addresses, unsigned most)
{
	struct idle idle = {.most = most};

	remote_agent(&served, "");
	for (unsigned i = 0; i < IDLE; i++) {
		idle.fd[i] = connect_from(1 + i % addresses);
		if (i % 100 == 0)
			do_a_job();
	}
	do_a_job();
	sys_await(enough_were_ended, &idle, "the oldest strangers to be sent away");
	do_a_job();
	/* The rest end with the agent, and do not hold it up. */
	remote_agent_end(&served);
	idle.most = 0;
	sys_await(enough_were_ended, &idle, "the last strangers to be sent away");
	for (unsigned i = 0; i < IDLE; i++)
		close(idle.fd[i]);
}

static void strangers_of_one_address_keep_nobody_out(void **state)
{
	(void)state;
	keep_nobody_out(1, 8);
}

static void strangers_of_many_addresses_keep_nobody_out(void **state)
{
	(void)state;
	keep_nobody_out(ADDRESSES, 64);
}

static int start(void **state)
{
	struct rlimit files;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	files.rlim_cur = files.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
	return sys_setup(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(strangers_of_one_address_keep_nobody_out),
	        cmocka_unit_test(strangers_of_many_addresses_keep_nobody_out),
	};

	return cmocka_run_group_tests(tests, start, sys_teardown);
}
