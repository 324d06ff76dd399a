/* SPDX-License-Identifier: MIT */
/* Times of work on another machine, told in this one's clock; and a network that is slow. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "remote_relay.h"
#include "remote_support.h"

static struct agent_process agent;

static int start(void **state)
{
	static const char *const devices[] = {"sim:mem=64M"};

	return remote_start(state, &agent, devices, 1);
}

static int end(void **state)
{
	return remote_end(state, &agent, 1);
}

/* ---- Profiles ---- */

static void profile_one(struct rig_remote_job *job, struct rig_device *d)
{
	struct rig_profile *profile;
	struct rig_profile_summary summary;
	const struct rig_event *events;
	uint64_t from, to, error;
	unsigned spans = 0, launches = 0;
	int64_t ahead;
	size_t n, i;

	sys_ok(rig_profile_start(&d, 1, &profile));
	from = rig_now_ns();
	sys_device_works(d);
	to = rig_now_ns();
	sys_ok(rig_profile_stop(profile));
	sys_ok(rig_profile_summary(profile, &summary));
	sys_ok(rig_profile_events(profile, &events, &n));
	sys_ok(rig_remote_clock(job, 0, &ahead, &error));
	assert_int_equal(summary.lost, 0);
	for (i = 0; i < n; i++) {
		if (events[i].kind != RIG_EVENT_SPAN && events[i].kind != RIG_EVENT_LAUNCH)
			continue;
		spans += events[i].kind == RIG_EVENT_SPAN;
		launches += events[i].kind == RIG_EVENT_LAUNCH;
		assert_true(events[i].start <= events[i].end);
		assert_true(events[i].start + error >= from && events[i].end <= to + error);
		if (events[i].kind == RIG_EVENT_LAUNCH) {
			assert_int_equal(events[i].ncounters, 4);
			assert_true(events[i].counters[0] > 0);
		}
	}
	assert_true(spans > 0 && launches > 0);
	rig_profile_put(profile);
}

static void spans_and_launches_of_another_machine_are_told_in_this_ones_clock(void **state)
{
	struct rig_remote_job *job = remote_connect(&agent, 1, NULL);
	struct rig_device *d = remote_open(job, "RVX1:0", &agent);

	(void)state;
	profile_one(job, d);
	profile_one(job, d);
	sys_close(d);
	rig_remote_close(job);
}

static void the_clocks_offset_is_within_its_bound(void **state)
{
	struct rig_remote_job *job = remote_connect(&agent, 1, NULL);
	int64_t ahead;
	uint64_t error;
	unsigned i;

	(void)state;
	/* Both read one clock. */
	for (i = 0; i < 20; i++) {
		sys_ok(rig_remote_clock(job, 0, &ahead, &error));
		assert_true((uint64_t)llabs(ahead) <= error);
		sys_nap();
	}
	rig_remote_close(job);
}

/* ---- A slow network ---- */

enum { DELAY_MS = 3 };

static void work_over_a_slow_network_is_the_same(void **state)
{
	struct agent_process behind = {0};
	struct rig_remote_job *job;
	struct rig_remote_stats stats;
	struct rig_device *d;
	uint8_t *sent = malloc(400000), *got = malloc(400000);
	struct rig_buffer *b;
	struct relay r = {.delay_ms = DELAY_MS};

	(void)state;
	relay_start(&r, agent.name);
	snprintf(behind.name, sizeof(behind.name), "%s", r.name);
	job = remote_connect(&behind, 1, NULL);
	d = remote_open(job, "RVX1:0", &behind);
	sys_device_works(d);
	b = sys_buffer(d, RIG_DEVICE, 400000);
	sys_fill(sent, 400000, 9);
	sys_ok(rig_buffer_write(b, 0, sent, 400000));
	sys_ok(rig_buffer_read(b, 0, got, 400000));
	assert_memory_equal(sent, got, 400000);
	profile_one(job, d);
	sys_ok(rig_remote_stats(job, 0, &stats));
	assert_true(stats.round_trip_ns >= UINT64_C(2000000) * DELAY_MS);
	rig_buffer_put(b);
	free(sent);
	free(got);
	sys_close(d);
	rig_remote_close(job);
	relay_end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(spans_and_launches_of_another_machine_are_told_in_this_ones_clock),
	        cmocka_unit_test(the_clocks_offset_is_within_its_bound),
	        cmocka_unit_test(work_over_a_slow_network_is_the_same),
	};

	/* Relays and strangers write to connections that are ended. */
	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, start, end);
}
