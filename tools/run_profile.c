/* SPDX-License-Identifier: MIT */
/* What a profile says of a rigctl run: its file, and the launches' counters. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "rig_vfio.h"
#include "rigctl.h"
#include "run_job.h"
#include "text.h"

enum { COUNTER_TEXT = 128 };

int run_profile_start(struct run_job *job)
{
	int err;

	if (!job->profile_path && !job->counters)
		return 0;
	err = rig_profile_start(&job->device, 1, &job->profile);
	return err ? run_failed(err) : 0;
}

static uint32_t count_values(const struct rig_facts *facts)
{
	uint32_t n = 0, i;

	for (i = 0; i < facts->ncounters; i++)
		n += facts->counters[i].values;
	return n;
}

static void add_launch(struct run_counters *m, const struct rig_event *e)
{
	uint64_t ns = e->end - e->start;
	uint32_t i;

	for (i = 0; i < m->n && i < e->ncounters; i++) {
		m->total[i] += e->counters[i];
		if (!m->launches || e->counters[i] < m->least[i])
			m->least[i] = e->counters[i];
	}
	if (!m->launches || ns < m->fastest_ns)
		m->fastest_ns = ns;
	m->total_ns += ns;
	m->launches++;
}

static int count_launches(struct run_job *job)
{
	struct run_counters *m = &job->measured;
	const struct rig_event *events;
	size_t n, i;
	int err = rig_profile_events(job->profile, &events, &n);

	if (err)
		return run_failed(err);
	m->n = count_values(rig_device_facts(job->device));
	m->least = calloc(m->n + 1u, sizeof(*m->least));
	m->total = calloc(m->n + 1u, sizeof(*m->total));
	if (!m->least || !m->total)
		return complain(EXIT_FAILED, "out of host memory for %u counters", m->n);
	for (i = 0; i < n; i++)
		if (events[i].kind == RIG_EVENT_LAUNCH)
			add_launch(m, &events[i]);
	return 0;
}

int run_profile_end(struct run_job *job)
{
	int err;

	if (!job->profile)
		return 0;
	err = rig_profile_stop(job->profile);
	if (!err && job->profile_path)
		err = rig_profile_save(job->profile, job->profile_path);
	return err ? complain(EXIT_FAILED, "%s", rig_error()) : job->counters ? count_launches(job) : 0;
}

void run_profile_free(struct run_job *job)
{
	rig_profile_put(job->profile);
	free(job->measured.least);
	free(job->measured.total);
}

/* ---- Counters ---- */

static uint64_t mean_of(uint64_t total, uint64_t n)
{
	return n ? total / n : 0;
}

/* Whose the *index-th value of all counters is; *index is then its number among that one's. */
static const struct rig_counter *find_counter(const struct rig_facts *facts, uint32_t *index)
{
	uint32_t c = 0;

	while (c + 1 < facts->ncounters && *index >= facts->counters[c].values)
		*index -= facts->counters[c++].values;
	return &facts->counters[c];
}

/* As people call it. */
static void name_counter(const struct rig_facts *facts, uint32_t index, char *to, size_t bytes)
{
	const struct rig_counter *counter = find_counter(facts, &index);

	if (counter->values > 1)
		(void)snprintf(to, bytes, "%s[%u]", counter->name, index);
	else
		(void)snprintf(to, bytes, "%s", counter->name);
}

/* As programs call it, and a profile's file. */
static void key_counter(const struct rig_facts *facts, uint32_t index, char *to, size_t bytes)
{
	const struct rig_counter *counter = find_counter(facts, &index);
	struct rig_text text;

	rig_text_init(&text, to, bytes);
	rig_text_add_key(&text, counter->name);
	if (counter->values > 1)
		rig_text_addf(&text, "_%u", index);
}

static struct json_object *least_and_mean(uint64_t least, uint64_t mean)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "least", json_object_new_int64((int64_t)least));
	json_object_object_add(o, "mean", json_object_new_int64((int64_t)mean));
	return o;
}

/* By how much the driver says that a time may be off. False: it does not say. */
static bool get_error(const struct run_job *job, uint64_t *ns)
{
	const struct rig_vfio_record *record = rig_capability(job->device, &rig_vfio_key);
	struct rig_vfio_stats stats = {0};

	if (!record)
		return false;
	record->stats(record, &stats);
	*ns = stats.times_error_ns;
	return true;
}

struct json_object *run_counters_json(const struct run_job *job)
{
	const struct run_counters *m = &job->measured;
	struct json_object *o = json_object_new_object();
	char key[COUNTER_TEXT];
	uint64_t error;
	uint32_t i;

	json_object_object_add(o, "launches", json_object_new_int64((int64_t)m->launches));
	if (get_error(job, &error))
		json_object_object_add(o, "time_error_ns", json_object_new_int64((int64_t)error));
	json_object_object_add(
	        o, "time_ns", least_and_mean(m->fastest_ns, mean_of(m->total_ns, m->launches)));
	for (i = 0; i < m->n; i++) {
		key_counter(rig_device_facts(job->device), i, key, sizeof(key));
		json_object_object_add(
		        o, key, least_and_mean(m->least[i], mean_of(m->total[i], m->launches)));
	}
	return o;
}

void run_counters_print(const struct run_job *job)
{
	const struct run_counters *m = &job->measured;
	char name[COUNTER_TEXT];
	uint64_t error;
	uint32_t i;

	if (!m->launches) {
		printf("%s measured none of the launches\n", rig_name(job->device));
		return;
	}
	printf("on the device, of %" PRIu64 " measured:%*sleast %16s\n", m->launches, 6, "", "mean");
	printf("  %-20s %16" PRIu64 " %16" PRIu64 "\n", "time, ns", m->fastest_ns,
	        mean_of(m->total_ns, m->launches));
	for (i = 0; i < m->n; i++) {
		name_counter(rig_device_facts(job->device), i, name, sizeof(name));
		printf("  %-20s %16" PRIu64 " %16" PRIu64 "\n", name, m->least[i],
		        mean_of(m->total[i], m->launches));
	}
	if (get_error(job, &error))
		printf("starts and ends of launches are off by at most %" PRIu64 " ns\n", error);
}
