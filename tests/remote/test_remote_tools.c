/* SPDX-License-Identifier: MIT */
/* rig-agent and rigctl --via as a person calls them, and the example of two machines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "remote_support.h"

static struct agent_process agent;

static int start(void **state)
{
	static const char *const devices[] = {"sim:mem=64M BIG=sim:mem=128M"};

	return remote_start(state, &agent, devices, 1);
}

static int end(void **state)
{
	return remote_end(state, &agent, 1);
}

static void via(struct sys_result *result, const char *arguments)
{
	char command[2048];

	snprintf(
	        command, sizeof(command), "rigctl --via %s --key %s %s", agent.name, remote_key(), arguments);
	sys_run(result, command);
}

static void list_shows_what_the_agent_serves(void **state)
{
	struct sys_result r;

	(void)state;
	via(&r, "list");
	sys_assert_done(&r);
	assert_non_null(strstr(r.out, "CPU "));
	assert_non_null(strstr(r.out, "RVX1:0 "));
	assert_non_null(strstr(r.out, "BIG "));
}

static void info_copy_and_run_work_there(void **state)
{
	struct sys_result r;
	uint8_t *bytes;
	size_t n;

	(void)state;
	via(&r, "info RVX1:0");
	sys_assert_done(&r);
	assert_non_null(strstr(r.out, "rvx1"));
	via(&r, "copy BIG 1000000");
	sys_assert_done(&r);
	via(&r, "run RVX1:0 k/ids.elf ids --grid 1 --group 4 out:ids.bin,256 u32:4 u32:0");
	sys_assert_done(&r);
	n = sys_read_file(sys_path("ids.bin"), &bytes);
	assert_int_equal(n, 256);
	free(bytes);
}

static void what_is_wrong_is_said(void **state)
{
	struct sys_result r;
	char command[1024];

	(void)state;
	via(&r, "info NONE");
	sys_assert_failed(&r, 3, "the agent serves no NONE");
	via(&r, "reset RVX1:0");
	sys_assert_failed(&r, 2, "no command \"reset\" with --via: list, info, run, copy or bench");
	via(&r, "info RVX1:0 --json");
	sys_assert_failed(&r, 2, "and nothing else");
	via(&r, "copy RVX1:0 7");
	sys_assert_failed(&r, 2, "a multiple of 8");
	snprintf(command, sizeof(command), "rigctl --via 127.0.0.1:1 --key %s list", remote_key());
	sys_run(&r, command);
	sys_assert_failed(&r, 3, "Connection refused");
	snprintf(command, sizeof(command), "rigctl --via %s list", agent.name);
	sys_run(&r, command);
	sys_assert_failed(&r, 2, "--key FILE");
	sys_run(&r, SYS_BUILD "/tools/rig-agent sim");
	sys_assert_failed(&r, 2, "--key FILE");
	sys_run(&r, SYS_BUILD "/tools/rig-agent --key k sim:mem=1");
	sys_assert_failed(&r, 2, "mem");
}

/* One of a block that is nobody's (RFC 5737). */
static void a_node_that_is_not_this_machines_is_said_at_start(void **state)
{
	struct sys_result r;
	char command[1024];

	(void)state;
	snprintf(command, sizeof(command),
	        SYS_BUILD "/tools/rig-agent --key %s --listen 127.0.0.1:0 --node 203.0.113.7 sim",
	        remote_key());
	sys_run(&r, command);
	sys_assert_failed(&r, 2, "--node 203.0.113.7 is no address of this machine, which has");
	assert_non_null(strstr(r.err, "127.0.0.1"));
}

static void a_name_may_be_any_and_have_colons(void **state)
{
	struct agent_process a;
	struct rig_remote_job *job;

	(void)state;
	remote_agent(&a, "--node 127.0.0.1 GPU:0=sim:mem=64M simple=sim:mem=64M sim:mem=64M");
	job = remote_connect(&a, 1, NULL);
	sys_close(remote_open(job, "GPU:0", &a));
	sys_close(remote_open(job, "simple", &a));
	sys_close(remote_open(job, "RVX1:0", &a));
	rig_remote_close(job);
	remote_agent_end(&a);
}

static void run_example(const char *options)
{
	struct sys_result r;
	char command[1024];

	snprintf(command, sizeof(command),
	        "/bin/sh " SYS_SOURCE "/examples/07-two-machines/run %s" SYS_BUILD " 16", options);
	sys_run(&r, command);
	if (r.status)
		print_message("%s%s", r.out, r.err);
	sys_assert_done(&r);
	assert_non_null(strstr(r.out, "results        equal"));
}

static void two_agents_on_loopback_compute_what_one_board_does(void **state)
{
	(void)state;
	run_example("--loopback ");
}

static void two_namespaces_compute_what_one_board_does(void **state)
{
	(void)state;
	if (geteuid())
		skip();
	run_example("");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(list_shows_what_the_agent_serves),
	        cmocka_unit_test(info_copy_and_run_work_there),
	        cmocka_unit_test(what_is_wrong_is_said),
	        cmocka_unit_test(a_node_that_is_not_this_machines_is_said_at_start),
	        cmocka_unit_test(a_name_may_be_any_and_have_colons),
	        cmocka_unit_test(two_agents_on_loopback_compute_what_one_board_does),
	        cmocka_unit_test(two_namespaces_compute_what_one_board_does),
	};

	return cmocka_run_group_tests(tests, start, end);
}
