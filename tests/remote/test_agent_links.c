/* SPDX-License-Identifier: MIT */
/* Who is let in: jobs, and other agents of jobs. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent_inside.h"

enum { SILENCE_MS = 60000, LINK_MS = 60000, SHORT_MS = 50, JOB = 1, SELF = 0, OTHER = 1 };

static const char *const plain[INSIDE_DRIVERS] = {"", ""};

static struct rig_rmt_join join_of(uint32_t role, uint8_t job, uint32_t machine, uint32_t to)
{
	struct rig_rmt_join join = {.role = role, .token = {job}, .silence_ms = SILENCE_MS, .to = to};

	(void)snprintf(join.machine, sizeof(join.machine), "%u", machine);
	return join;
}

/* Another agent's connection: the status of the answer. */
static int link_as(struct talk *t, struct inside *in, uint8_t job, uint32_t machine, uint32_t to)
{
	const struct rig_rmt_join join = join_of(RIG_RMT_AGENT, job, machine, to);

	talk_join(t, in, &join);
	return talk_await(t, 0);
}

static void agents_link_beside_as_many_jobs_as_may_be(void **state)
{
	struct talk jobs[AGENT_SESSIONS], more, agent;
	struct inside *in = inside_start(plain, NULL);
	unsigned i;

	(void)state;
	for (i = 0; i < AGENT_SESSIONS; i++) {
		talk_begin(&jobs[i], in, (uint8_t)(JOB + i));
		talk_ping(&jobs[i]);
	}
	talk_begin(&more, in, JOB + AGENT_SESSIONS);
	talk_await_over(&more);
	assert_int_equal(link_as(&agent, in, JOB + AGENT_SESSIONS - 1, OTHER, SELF), 0);
	talk_end(&agent);
	talk_end(&more);
	for (i = 0; i < AGENT_SESSIONS; i++)
		talk_end(&jobs[i]);
	inside_end(in);
}

static void an_agent_that_reached_another_machine_than_it_dialled_is_told_so(void **state)
{
	struct inside *in = inside_start(plain, NULL);
	struct talk t, agent;

	(void)state;
	talk_begin(&t, in, JOB);
	talk_open(&t, "P0");
	assert_int_equal(link_as(&agent, in, JOB, OTHER, 2), -EREMCHG);
	assert_non_null(
	        strstr(agent.answers[0].text, "machine 2 of the job was dialled, and machine 0 answers"));
	talk_await_over(&agent);
	talk_end(&agent);
	talk_end(&t);
	inside_end(in);
}

static void an_agent_of_no_job_here_is_told_so(void **state)
{
	struct inside *in = inside_start(plain, NULL);
	struct talk t, agent;

	(void)state;
	talk_begin(&t, in, JOB);
	talk_open(&t, "P0");
	assert_int_equal(link_as(&agent, in, JOB + 1, OTHER, SELF), -ENOENT);
	assert_non_null(strstr(agent.answers[0].text, "serves no such job"));
	talk_end(&agent);
	talk_end(&t);
	inside_end(in);
}

static uint32_t begin_link(struct talk *t, uint32_t machine, const char *name, uint32_t ms)
{
	struct rig_rmt_out out = {0};

	rig_rmt_put32(&out, machine);
	rig_rmt_put_text(&out, name);
	rig_rmt_put32(&out, ms);
	return talk_ask(t, RIG_RMT_LINK, &out);
}

/* What the controller hears of it: the status of its LINK. */
static int ask_link(struct talk *t, uint32_t machine, const char *name)
{
	return talk_await(t, begin_link(t, machine, name, LINK_MS));
}

static void a_link_that_leads_elsewhere_is_no_link(void **state)
{
	const struct rig_rmt_join second = join_of(RIG_RMT_CONTROLLER, JOB, 2, 0);
	struct inside *a = inside_start(plain, NULL), *b = inside_start(plain, NULL);
	struct talk to_a, to_b;

	(void)state;
	talk_begin(&to_a, a, JOB);
	talk_join(&to_b, b, &second);
	talk_open(&to_b, "P0");
	assert_int_equal(ask_link(&to_a, 1, b->name), -EREMCHG);
	assert_non_null(strstr(to_a.answers[to_a.next].text, "machine 2 answers"));
	assert_int_equal(ask_link(&to_a, 2, b->name), 0);
	talk_end(&to_a);
	talk_end(&to_b);
	inside_end(a);
	inside_end(b);
}

/* ---- A machine that takes connections and says nothing ---- */

static int listen_mute(char *name, size_t bytes)
{
	int fd = agent_listen("127.0.0.1:0");

	assert_true(fd >= 0);
	assert_int_equal(agent_where(fd, name, bytes), 0);
	return fd;
}

/* The agent's, once it dials. */
static int take_dial(int listener)
{
	struct pollfd p = {.fd = listener, .events = POLLIN};
	int fd;

	assert_int_equal(poll(&p, 1, INSIDE_SECONDS * 1000), 1);
	fd = accept(listener, NULL, NULL);
	assert_true(fd >= 0);
	return fd;
}

/* Whether the agent has given the connection up. */
static bool is_left(int fd)
{
	uint8_t bytes[512];
	ssize_t n;

	do
		n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	while (n > 0);
	return !n || errno != EAGAIN;
}

static void an_agent_dials_no_longer_than_its_controller_allows(void **state)
{
	struct inside *in = inside_start(plain, NULL);
	char name[RIG_RMT_NAME];
	int listener = listen_mute(name, sizeof(name));
	struct talk t;

	(void)state;
	talk_begin(&t, in, JOB);
	assert_int_equal(talk_await(&t, begin_link(&t, OTHER, name, SHORT_MS)), -ETIMEDOUT);
	/* For no time at all is malformed. */
	(void)begin_link(&t, OTHER, name, 0);
	talk_await_failed(&t);
	rig_rmt_chan_shut(t.chan);
	talk_await_over(&t);
	talk_end(&t);
	(void)close(listener);
	inside_end(in);
}

static void the_devices_of_a_controller_that_is_gone_are_stopped_while_its_agent_dials(void **state)
{
	struct inside *in = inside_start(plain, NULL);
	char name[RIG_RMT_NAME];
	int listener = listen_mute(name, sizeof(name)), dialled;
	struct talk t;

	(void)state;
	talk_begin(&t, in, JOB);
	talk_open(&t, "P0");
	talk_open(&t, "P1");
	(void)begin_link(&t, OTHER, name, LINK_MS);
	dialled = take_dial(listener);
	rig_rmt_chan_shut(t.chan);
	inside_await(in, 0, POLLED_STOP, 1);
	inside_await(in, 1, POLLED_STOP, 1);
	assert_false(is_left(dialled));
	(void)close(dialled);
	(void)close(listener);
	talk_await_over(&t);
	talk_end(&t);
	inside_end(in);
}

/* The exit status of the program says so. */
static void an_end_with_a_device_that_does_not_stop_is_told(void **state)
{
	struct inside *in = inside_start(plain, NULL);
	struct talk t;

	(void)state;
	talk_begin(&t, in, JOB);
	talk_open(&t, "P0");
	inside_stop(in, 0, POLLED_STOP);
	assert_false(agent_end(&in->agent, 1));
	inside_await_stopped(in, 0);
	inside_go(in, 0);
	talk_await_over(&t);
	talk_end(&t);
	inside_end(in);
}

/* Whose data connections then end after it has the reason, however fast they are. */
static void a_job_that_failed_at_the_agent_is_the_controllers_to_end(void **state)
{
	static const uint8_t none = 250; /* no kind of message */
	const struct rig_rmt_join join = {
	        .role = RIG_RMT_CONTROLLER, .token = {JOB}, .silence_ms = 2000, .machine = "0"};
	struct inside *in = inside_start(plain, NULL);
	const uint8_t *bytes;
	uint8_t kind = 0;
	struct talk t;
	size_t n;

	(void)state;
	talk_join(&t, in, &join);
	assert_int_equal(rig_rmt_chan_send(t.chan, none, NULL, 0, NULL, 0), 0);
	while (kind != RIG_RMT_FAILED)
		assert_int_equal(rig_rmt_chan_recv(t.chan, &kind, &bytes, &n), 0);
	assert_int_equal(rig_rmt_chan_recv(t.chan, &kind, &bytes, &n), 0);
	assert_int_equal(kind, RIG_RMT_BEAT);
	/* But not for ever. */
	talk_await_over(&t);
	talk_end(&t);
	inside_end(in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(agents_link_beside_as_many_jobs_as_may_be),
	        cmocka_unit_test(an_agent_that_reached_another_machine_than_it_dialled_is_told_so),
	        cmocka_unit_test(an_agent_of_no_job_here_is_told_so),
	        cmocka_unit_test(a_link_that_leads_elsewhere_is_no_link),
	        cmocka_unit_test(an_agent_dials_no_longer_than_its_controller_allows),
	        cmocka_unit_test(the_devices_of_a_controller_that_is_gone_are_stopped_while_its_agent_dials),
	        cmocka_unit_test(an_end_with_a_device_that_does_not_stop_is_told),
	        cmocka_unit_test(a_job_that_failed_at_the_agent_is_the_controllers_to_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
