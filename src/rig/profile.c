/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "profile.h"

/* ---- Records: the times of one value ---- */

static uint64_t bytes_of(const struct rig_part *part)
{
	return part->kind == RIG_COPY ? part->u.copy.row_bytes * part->u.copy.rows : 0;
}

static const char *function_of(const struct rig_rt_job *job, uint32_t part)
{
	return job->parts[part].kind == RIG_LAUNCH && job->launches ? job->launches[part].function : "";
}

static size_t record_bytes(const struct rig_rt_job *job)
{
	size_t bytes = sizeof(struct rig_rt_record) + job->nparts * sizeof(struct rig_rt_record_part);
	uint32_t i;

	for (i = 0; i < job->nparts; i++)
		bytes += strlen(function_of(job, i)) + 1;
	return bytes;
}

static void fill_parts(struct rig_rt_record *record, const struct rig_rt_job *job)
{
	char *text = (char *)&record->parts[job->nparts];
	uint32_t i;

	for (i = 0; i < job->nparts; i++) {
		const struct rig_part *part = &job->parts[i];
		struct rig_rt_record_part *kept = &record->parts[i];

		kept->queue = part->queue;
		kept->kind = part->kind;
		kept->fill = part->kind == RIG_COPY && part->u.copy.fill;
		kept->bytes = bytes_of(part);
		kept->function = text;
		text = stpcpy(text, function_of(job, i)) + 1;
		record->nlaunches += part->kind == RIG_LAUNCH;
	}
}

struct rig_rt_record *rig_rt_record_make(const struct rig_rt_job *job, uint64_t value)
{
	struct rig_rt_record *record = calloc(1, record_bytes(job));

	if (!record)
		return NULL;
	record->value = value;
	record->handed = rig_now_ns();
	record->nparts = job->nparts;
	fill_parts(record, job);
	return record;
}

static void pop_record(struct rig_device *d)
{
	struct rig_rt_record *record = d->records;

	d->records = record->next;
	if (!d->records)
		d->last_record = NULL;
	d->nrecords--;
	free(record);
}

void rig_rt_records_drop(struct rig_device *d)
{
	while (d->records)
		pop_record(d);
}

/* ---- Collecting: with the lock and the turn ---- */

static void deliver(struct rig_device *d, const uint64_t *rows, uint32_t row_words)
{
	const struct rig_rt_record *record = d->records;
	const struct rig_rt_attached *to;

	for (to = d->attached; to; to = to->next)
		if (record->value > to->first && record->value <= to->last)
			rig_rt_events_of(to, record, rows, row_words);
}

/* The words of a row: measured, start, end and each counter's values. */
static uint32_t row_words_of(const struct rig_device *d)
{
	uint32_t words = 3, i;

	for (i = 0; i < d->facts.ncounters; i++)
		words += d->facts.counters[i].values;
	return words;
}

static const char *call_settle(struct rig_device *d, uint64_t value)
{
	const char *failure = NULL;
	int answer = RIG_OK;

	if (d->hot->settle) {
		rig_rt_hot_begin(d);
		answer = d->hot->settle(d->edge, value, &failure);
		rig_rt_hot_end(d);
	}
	if (answer == RIG_OK)
		return NULL;
	return answer == RIG_FAILED && failure ? failure
	                                       : "the driver's settle gave no answer of the contract";
}

static const char *call_measures(struct rig_device *d, uint64_t value, uint64_t *out)
{
	const char *failure = NULL;
	int answer;

	rig_rt_hot_begin(d);
	answer = d->hot->measures(d->edge, value, out, &failure);
	rig_rt_hot_end(d);
	if (answer == RIG_OK)
		return NULL;
	return answer == RIG_FAILED && failure ? failure
	                                       : "the driver's measures gave no answer of the contract";
}

/* The record's times and rows are there, or the failure that loses the device. Measures are read at most
   once and then freed in the driver, whether there is memory for them or not. */
static const char *collect_one(struct rig_device *d)
{
	const struct rig_rt_record *record = d->records;
	uint32_t words = row_words_of(d);
	const char *failure = call_settle(d, record->value);
	bool measured = record->nlaunches && d->hot->measures;
	uint64_t *rows = measured ? calloc((size_t)record->nlaunches * words, sizeof(*rows)) : NULL;

	if (!failure && rows)
		failure = call_measures(d, record->value, rows);
	if (!failure && measured && rig_rt_life_of(d) == RT_LIVE)
		failure = call_measures(d, record->value, NULL);
	if (!failure)
		deliver(d, rows, words);
	free(rows);
	return failure;
}

/* Every record whose value the word shows, in value order. True: it lost the device. */
static bool collect(struct rig_device *d)
{
	const char *failure;

	while (d->records && rig_rt_life_of(d) == RT_LIVE && rig_rt_word(d->slot) >= d->records->value) {
		failure = collect_one(d);
		/* Its pair may still be written where it failed. */
		if (failure)
			return rig_rt_lose_locked(d, failure, true);
		pop_record(d);
	}
	return false;
}

bool rig_rt_record_handed(struct rig_device *d, struct rig_rt_record *record)
{
	if (d->last_record)
		d->last_record->next = record;
	else
		d->records = record;
	d->last_record = record;
	return ++d->nrecords >= RT_COLLECT_AT && collect(d);
}

/* What a lost device's driver wrote before the word showed it. The rest may still be written to, until the
   work is over: the records stay. With the lock. */
static void collect_lost(struct rig_device *d, const struct rig_rt_attached *to)
{
	const struct rig_rt_record *record;

	for (record = d->records; record; record = record->next) {
		if (record->value <= to->first || record->value > to->last)
			continue;
		if (d->hot->settle || record->value > d->dead->reached)
			to->profile->summary.lost++;
		else
			rig_rt_events_of(to, record, NULL, 0);
	}
}

/* ---- Attaching ---- */

static void note_attached(struct rig_device *d)
{
	atomic_store_explicit(&d->profiled, d->attached != NULL, memory_order_relaxed);
}

static int attach(struct rig_rt_attached *to)
{
	struct rig_device *d = to->device;

	if (rig_rt_forked())
		return rig_rt_lost_error(d);
	rig_rt_lock(&d->lock);
	if (!rig_rt_turn_take(d)) {
		rig_rt_unlock(&d->lock);
		return rig_rt_lost_error(d);
	}
	to->first = rig_rt_submitted(d);
	to->last = UINT64_MAX;
	to->next = d->attached;
	d->attached = to;
	note_attached(d);
	rig_rt_turn_give(d);
	return 0;
}

static void unlink_from(struct rig_device *d, struct rig_rt_attached *to)
{
	struct rig_rt_attached **at = &d->attached;

	while (*at && *at != to)
		at = &(*at)->next;
	if (*at)
		*at = to->next;
	note_attached(d);
}

/* Its last value is the last submitted one: later values are not its own. */
static void close_range(struct rig_rt_attached *to)
{
	struct rig_device *d = to->device;

	rig_rt_lock(&d->lock);
	to->last = rig_rt_submitted(d);
	rig_rt_unlock(&d->lock);
}

/* Collects what is reached and takes the profile off the device. */
static void detach(struct rig_rt_attached *to)
{
	struct rig_device *d = to->device;
	bool lost = false, turn;

	if (rig_rt_forked() || rig_rt_life_of(d) == RT_ORPHANED)
		return;
	rig_rt_lock(&d->lock);
	turn = rig_rt_turn_take(d);
	if (turn)
		lost = collect(d);
	if (rig_rt_life_of(d) != RT_LIVE)
		collect_lost(d, to);
	unlink_from(d, to);
	if (turn)
		rig_rt_turn_give(d);
	else
		rig_rt_unlock(&d->lock);
	if (!lost)
		return;
	rig_rt_failure_note(d->name, d->dead->reason);
	rig_rt_lose_finish(d);
}

/* ---- Profiles ---- */

static int no_memory(void)
{
	return rig_error_set(-ENOMEM, "no host memory for a profile");
}

static struct rig_profile *make(uint32_t n)
{
	struct rig_profile *profile = calloc(1, sizeof(*profile));

	if (!profile)
		return NULL;
	profile->devices = calloc(n + 1u, sizeof(*profile->devices));
	if (!profile->devices) {
		free(profile);
		return NULL;
	}
	return profile;
}

static int add_device(struct rig_profile *profile, struct rig_device *d)
{
	struct rig_rt_attached *to = &profile->devices[profile->ndevices];
	uint32_t i;
	int code = rig_rt_given(d, "device");

	for (i = 0; i < profile->ndevices && !code; i++)
		if (profile->devices[i].device == d)
			code = rig_error_set(-EINVAL, "%s is named twice", d->name);
	if (code)
		return code;
	to->profile = profile;
	to->device = rig_device_get(d);
	code = attach(to);
	if (code)
		rig_device_put(d);
	else
		profile->ndevices++;
	return code;
}

static void drop(struct rig_profile *profile)
{
	size_t i;

	for (i = 0; i < profile->ndevices; i++)
		rig_device_put(profile->devices[i].device);
	while (profile->words) {
		struct rig_rt_word *word = profile->words;

		profile->words = word->next;
		free(word);
	}
	for (i = 0; i < profile->nevents; i++)
		free((void *)(uintptr_t)profile->events[i].counters);
	free(profile->events);
	free(profile->devices);
	free(profile);
}

static int start(struct rig_device *const *devices, uint32_t n, struct rig_profile **made)
{
	struct rig_profile *profile = make(n);
	uint32_t i;
	int code = 0;

	if (!profile)
		return no_memory();
	for (i = 0; i < n && !code; i++)
		code = add_device(profile, devices[i]);
	if (code) {
		for (i = 0; i < profile->ndevices; i++)
			detach(&profile->devices[i]);
		drop(profile);
		return code;
	}
	*made = profile;
	return 0;
}

/* Of every open device; those opened or closed meanwhile are left out. */
static int start_all(struct rig_profile **profile)
{
	size_t n = rig_devices(NULL, 0), found, i;
	struct rig_device **all = calloc(n + 1, sizeof(struct rig_device *));
	int code;

	if (!all)
		return no_memory();
	found = rig_devices(all, n);
	found = found < n ? found : n;
	code = start(all, (uint32_t)found, profile);
	for (i = 0; i < found; i++)
		rig_device_put(all[i]);
	free(all);
	return code;
}

int rig_profile_start(struct rig_device *const *devices, uint32_t n, struct rig_profile **profile)
{
	int code = rig_rt_given(profile, "profile");

	if (!code && n)
		code = rig_rt_given(devices, "devices");
	if (code)
		return code;
	return n ? start(devices, n, profile) : start_all(profile);
}

static bool stop_once(struct rig_profile *profile)
{
	return !atomic_exchange_explicit(&profile->stopping, true, memory_order_acq_rel);
}

int rig_profile_stop(struct rig_profile *profile)
{
	uint32_t i;
	int code = rig_rt_given(profile, "profile");

	if (code || !stop_once(profile))
		return code;
	for (i = 0; i < profile->ndevices; i++)
		close_range(&profile->devices[i]);
	for (i = 0; i < profile->ndevices; i++) {
		struct rig_rt_attached *to = &profile->devices[i];

		/* A loss ends the wait too. */
		(void)rig_rt_wait_value(to->device, to->last);
		detach(to);
		profile->summary.values += to->last - to->first;
	}
	profile->summary.untimed = profile->summary.values - profile->timed - profile->summary.lost;
	atomic_store_explicit(&profile->stopped, true, memory_order_release);
	return 0;
}

void rig_profile_put(struct rig_profile *profile)
{
	uint32_t i;

	if (!profile)
		return;
	if (stop_once(profile))
		for (i = 0; i < profile->ndevices; i++) {
			close_range(&profile->devices[i]);
			detach(&profile->devices[i]);
		}
	drop(profile);
}
