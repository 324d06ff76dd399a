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
	remote_agent_end(&agent);
	/* Models of agents that the example has killed take their leave. */
	sys_assert_no_process();
	return sys_teardown(state);
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

static void agents_shows_each_and_who_does_not_answer(void **state)
{
	struct sys_result r;
	struct rig_remote_job *job;
	struct rig_device *d;
	char command[1024];

	(void)state;
	job = remote_connect(&agent, 1, NULL);
	d = remote_open(job, "BIG", &agent);
	snprintf(command, sizeof(command), "rigctl --key %s agents %s", remote_key(), agent.name);
	sys_run(&r, command);
	sys_assert_done(&r);
	assert_non_null(strstr(r.out, agent.name));
	assert_non_null(strstr(r.out, "  rig-agent "));
	assert_non_null(strstr(r.out, "BIG              device   open"));
	assert_non_null(strstr(r.out, "RVX1:0           device   free"));
	snprintf(command, sizeof(command), "rigctl --key %s agents 127.0.0.1:1 %s --json", remote_key(),
	        agent.name);
	sys_run(&r, command);
	assert_int_equal(r.status, 3);
	assert_non_null(strstr(r.out, "\"error\":\"127.0.0.1:1"));
	assert_non_null(strstr(r.out, "\"state\":\"open\""));
	assert_null(strstr(r.out, "\"version\":\"\""));
	sys_run(&r, "rigctl agents");
	sys_assert_failed(&r, 2, "HOST:PORT");
	snprintf(command, sizeof(command), "rigctl agents %s", agent.name);
	sys_run(&r, command);
	sys_assert_failed(&r, 2, "--key FILE");
	sys_close(d);
	rig_remote_close(job);
}

static void help_of_each_command_that_goes_to_another_machine_says_so(void **state)
{
	static const char *const names[] = {"list", "info", "run", "bench"};
	struct sys_result r;
	char command[64];
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(command, sizeof(command), "rigctl help %s", names[i]);
		sys_run(&r, command);
		sys_assert_done(&r);
		assert_non_null(strstr(r.out, "--via HOST:PORT"));
	}
	sys_run(&r, "rigctl help reset");
	assert_null(strstr(r.out, "--via"));
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
	assert_non_null(strstr(r.out, "by an end of its own"));
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
	        cmocka_unit_test(agents_shows_each_and_who_does_not_answer),
	        cmocka_unit_test(help_of_each_command_that_goes_to_another_machine_says_so),
	        cmocka_unit_test(info_copy_and_run_work_there),
	        cmocka_unit_test(what_is_wrong_is_said),
	        cmocka_unit_test(a_node_that_is_not_this_machines_is_said_at_start),
	        cmocka_unit_test(a_name_may_be_any_and_have_colons),
	        cmocka_unit_test(two_agents_on_loopback_compute_what_one_board_does),
	        cmocka_unit_test(two_namespaces_compute_what_one_board_does),
	};

	return cmocka_run_group_tests(tests, start, end);
}
