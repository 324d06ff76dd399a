/* SPDX-License-Identifier: MIT */
#ifndef REMOTE_SUPPORT_H
#define REMOTE_SUPPORT_H

/* Agents as processes on this machine, and jobs with them. Functions fail the running cmocka test. */

#include "rig_remote.h"
#include "system_device.h"

enum { REMOTE_MOST = 24 }; /* agents of a job */

struct agent_process {
	struct sys_process process;
	char name[64]; /* HOST:PORT */
};

/* The key of the tests' jobs, made on first use. */
const char *remote_key(void);
/* Starts an agent with these devices and options, waits until it listens. */
void remote_agent(struct agent_process *a, const char *arguments);
/* The whole command, and what is called before it starts (NULL: nothing). */
void remote_agent_before(struct agent_process *a, const char *command, const struct sys_before *before);
/* Ends it by SIGTERM: it exits with 0, its devices stopped. */
void remote_agent_end(struct agent_process *a);

/* Group fixtures: an agent for each row of devices, and its end. */
int remote_start(void **state, struct agent_process *agents, const char *const *devices, uint32_t n);
int remote_end(void **state, struct agent_process *agents, uint32_t n);

/* A job with the agents; NULL options: the tests' own, with short bounds. */
struct rig_remote_job *remote_connect(
        struct agent_process *agents, uint32_t n, const struct rig_remote_options *options);
struct rig_device *remote_open(struct rig_remote_job *job, const char *device, const struct agent_process *a);
/* Short bounds: 600 ms of silence, 3 s of a step, 20 s of an answer. */
extern const struct rig_remote_options remote_quick;
/* The device, or the job, is lost for a reason that has this in it. */
void remote_assert_reason(struct rig_device *d, const char *has);
void remote_assert_failed(struct rig_remote_job *job, const char *has);
/* For sys_await: uses the device, as a loss is noticed by who does, and says whether it is lost. */
bool remote_is_lost(void *device);
/* What a proxy of a machine's host memory says of that machine. */
const struct rig_remote_host *remote_host(struct rig_device *d);

#endif
