/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "remote_support.h"

#define SAYS "listening at "

const char *remote_key(void)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s", sys_path("key"));
	if (access(path, F_OK))
		sys_ok(rig_remote_make_key(path));
	return path;
}

/* Whether the agent's first line is there. */
static bool has_line(void *arg)
{
	struct agent_process *a = arg;
	char text[256] = "";
	ssize_t n = pread(a->process.out, text, sizeof(text) - 1, 0);
	char *end = n > 0 ? strchr(text, '\n') : NULL;

	if (!end || strncmp(text, SAYS, strlen(SAYS)) != 0)
		return false;
	*end = 0;
	snprintf(a->name, sizeof(a->name), "%.63s", text + strlen(SAYS));
	return true;
}

void remote_agent(struct agent_process *a, const char *arguments)
{
	char command[2048];

	snprintf(command, sizeof(command), SYS_BUILD "/tools/rig-agent -v --key %s --listen 127.0.0.1:0%s%s",
	        remote_key(), *arguments ? " " : "", arguments);
	remote_agent_before(a, command, NULL);
}

void remote_agent_before(struct agent_process *a, const char *command, const struct sys_before *before)
{
	if (before)
		sys_start_before(&a->process, command, before);
	else
		sys_start(&a->process, command);
	sys_await(has_line, a, "an agent that listens");
}

void remote_agent_end(struct agent_process *a)
{
	struct sys_result result;

	(void)kill(a->process.pid, SIGTERM);
	sys_finish(&a->process, &result);
	if (result.status)
		print_message("agent:\n%s\n", result.err);
	assert_int_equal(result.status, 0);
}

int remote_start(void **state, struct agent_process *agents, const char *const *devices, uint32_t n)
{
	uint32_t i;

	if (sys_setup(state))
		return -1;
	for (i = 0; i < n; i++)
		remote_agent(&agents[i], devices[i]);
	return 0;
}

int remote_end(void **state, struct agent_process *agents, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		remote_agent_end(&agents[i]);
	return sys_teardown(state);
}

struct rig_remote_job *remote_connect(
        struct agent_process *agents, uint32_t n, const struct rig_remote_options *options)
{
	const char *names[REMOTE_MOST];
	struct rig_remote_job *job;
	uint32_t i;

	for (i = 0; i < n; i++)
		names[i] = agents[i].name;
	sys_ok(rig_remote_connect(names, n, remote_key(), options, &job));
	return job;
}

struct rig_device *remote_open(struct rig_remote_job *job, const char *device, const struct agent_process *a)
{
	struct rig_device *opened;
	char name[128];

	snprintf(name, sizeof(name), "%s@%s", device, a->name);
	sys_ok(rig_remote_open(job, name, &opened));
	assert_string_equal(rig_name(opened), name);
	return opened;
}

const struct rig_remote_host *remote_host(struct rig_device *d)
{
	const struct rig_remote_record *record = rig_capability(d, &rig_remote_key);

	assert_non_null(record);
	assert_int_equal(record->kind, RIG_REMOTE_HOST);
	return &record->u.host;
}

const struct rig_remote_options remote_quick = {
        .version = RIG_EDGE_VERSION, .step_ms = 3000, .silence_ms = 600, .answer_ms = 20000};

void remote_assert_reason(struct rig_device *d, const char *has)
{
	const char *why = "";

	if (!rig_lost(d, &why) || !strstr(why, has))
		fail_msg("%s: the reason is \"%s\", without \"%s\"", rig_name(d), why, has);
}

void remote_assert_failed(struct rig_remote_job *job, const char *has)
{
	const char *why = "";

	if (!rig_remote_failed(job, &why) || !strstr(why, has))
		fail_msg("the job's reason is \"%s\", without \"%s\"", why, has);
}

bool remote_is_lost(void *device)
{
	/* A loss is noticed by who uses the device. */
	uint8_t byte = 0;
	struct rig_buffer *b;

	if (!rig_buffer_create(device, RIG_DEVICE, 64, &b)) {
		(void)rig_buffer_write(b, 0, &byte, 1);
		rig_buffer_put(b);
	}
	return rig_lost(device, NULL);
}
