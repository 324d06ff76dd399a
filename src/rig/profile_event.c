/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "profile.h"

#define FIRST_EVENTS 64u
#define NAME_BYTES   256u

/* The words of a row before the counters. */
enum { ROW_MEASURED, ROW_START, ROW_END, ROW_COUNTERS };

/* With the profile's lock. The text, kept once; NULL without memory. */
static const char *name_of(struct rig_profile *profile, const char *text)
{
	struct rig_rt_word *word;

	for (word = profile->words; word && strcmp(word->text, text) != 0; word = word->next)
		;
	if (word)
		return word->text;
	word = malloc(sizeof(*word) + strlen(text) + 1);
	if (!word)
		return NULL;
	(void)strcpy(word->text, text);
	word->next = profile->words;
	profile->words = word;
	return word->text;
}

static bool provide(struct rig_profile *profile)
{
	size_t capacity = profile->capacity ? 2 * profile->capacity : FIRST_EVENTS;
	struct rig_event *events;

	if (profile->nevents < profile->capacity)
		return true;
	events = realloc(profile->events, capacity * sizeof(*events));
	if (!events)
		return false;
	profile->events = events;
	profile->capacity = capacity;
	return true;
}

/* Takes over the counters' memory. */
static void add(struct rig_profile *profile, const struct rig_event *event, const char *text)
{
	const char *name;

	rig_rt_lock(&profile->lock);
	name = name_of(profile, text);
	if (name && provide(profile)) {
		profile->events[profile->nevents] = *event;
		profile->events[profile->nevents++].name = name;
	} else {
		profile->summary.dropped++;
		free((void *)(uintptr_t)event->counters);
	}
	rig_rt_unlock(&profile->lock);
}

static uint32_t index_of(const struct rig_rt_attached *to)
{
	return (uint32_t)(to - to->profile->devices);
}

/* ---- What a value did ---- */

static const char *part_name(const struct rig_rt_record_part *part)
{
	switch (part->kind) {
	case RIG_WORDS:
		return "words";
	case RIG_FILL:
		return "packets";
	case RIG_COPY:
		return part->fill ? "fill" : "copy";
	default:
		return part->function[0] ? part->function : "launch";
	}
}

/* Of the parts on a queue: one's name, the name that all have, or how many they are. */
static void span_name(const struct rig_rt_record *record, uint32_t queue, uint32_t n, char text[NAME_BYTES])
{
	const char *name = NULL;
	bool same = true;
	uint32_t i;

	for (i = 0; i < record->nparts; i++) {
		const char *next = part_name(&record->parts[i]);

		if (record->parts[i].queue != queue)
			continue;
		same = same && (!name || strcmp(name, next) == 0);
		name = next;
	}
	if (!name)
		(void)snprintf(text, NAME_BYTES, "empty");
	else if (n == 1)
		(void)snprintf(text, NAME_BYTES, "%s", name);
	else if (same)
		(void)snprintf(text, NAME_BYTES, "%" PRIu32 " x %s", n, name);
	else
		(void)snprintf(text, NAME_BYTES, "%" PRIu32 " parts", n);
}

static void add_span(
        const struct rig_rt_attached *to, const struct rig_rt_record *record, uint32_t queue, uint32_t n)
{
	struct rig_event event = {.kind = RIG_EVENT_SPAN,
	        .device = index_of(to),
	        .queue = queue,
	        .parts = n,
	        .value = record->value,
	        .handed = record->handed,
	        .start = record->times.start,
	        .end = record->times.end};
	char text[NAME_BYTES];
	uint32_t i;

	for (i = 0; i < record->nparts; i++)
		if (record->parts[i].queue == queue)
			event.bytes += record->parts[i].bytes;
	span_name(record, queue, n, text);
	add(to->profile, &event, text);
}

static void add_spans(const struct rig_rt_attached *to, const struct rig_rt_record *record)
{
	uint32_t queue, i, n;

	if (!record->nparts)
		add_span(to, record, 0, 0);
	for (queue = 0; queue < to->device->facts.nqueues; queue++) {
		n = 0;
		for (i = 0; i < record->nparts; i++)
			n += record->parts[i].queue == queue;
		if (n)
			add_span(to, record, queue, n);
	}
}

static void add_launch(const struct rig_rt_attached *to, const struct rig_rt_record *record, uint32_t part,
        const uint64_t *row, uint32_t ncounters)
{
	struct rig_event event = {.kind = RIG_EVENT_LAUNCH,
	        .device = index_of(to),
	        .queue = record->parts[part].queue,
	        .part = part,
	        .value = record->value,
	        .start = row[ROW_START],
	        .end = row[ROW_END],
	        .ncounters = ncounters};
	uint64_t *counters = calloc(ncounters + 1u, sizeof(*counters));

	if (counters)
		memcpy(counters, row + ROW_COUNTERS, ncounters * sizeof(*counters));
	else
		event.ncounters = 0;
	event.counters = counters;
	add(to->profile, &event, part_name(&record->parts[part]));
}

void rig_rt_events_of(const struct rig_rt_attached *to, const struct rig_rt_record *record,
        const uint64_t *rows, uint32_t row_words)
{
	uint32_t i;

	if (record->times.start || record->times.end) {
		rig_rt_lock(&to->profile->lock);
		to->profile->timed++;
		rig_rt_unlock(&to->profile->lock);
		add_spans(to, record);
	}
	for (i = 0; rows && i < record->nparts; i++) {
		if (record->parts[i].kind != RIG_LAUNCH)
			continue;
		if (rows[ROW_MEASURED] == 1)
			add_launch(to, record, i, rows, row_words - ROW_COUNTERS);
		rows += row_words;
	}
}

/* ---- What the host did ---- */

static const char *const host_names[] = {
        [RIG_EVENT_COPY] = "host copy", [RIG_EVENT_IMAGE] = "load image", [RIG_EVENT_MEMORY] = "memory"};

void rig_rt_note_slow(struct rig_device *d, enum rig_event_kind kind, uint64_t start, uint64_t bytes)
{
	struct rig_event event = {.kind = kind, .queue = RIG_NO_QUEUE, .start = start, .end = rig_now_ns()};
	const struct rig_rt_attached *to;

	if (rig_rt_forked() || rig_rt_life_of(d) == RT_ORPHANED)
		return;
	event.bytes = bytes;
	if (kind == RIG_EVENT_MEMORY) {
		event.start = event.end;
		event.bytes = rig_held_bytes(d, &event.cached);
	}
	rig_rt_lock(&d->lock);
	for (to = d->attached; to; to = to->next) {
		event.device = index_of(to);
		add(to->profile, &event, host_names[kind]);
	}
	rig_rt_unlock(&d->lock);
}

/* ---- What a program reads ---- */

static int check_stopped(struct rig_profile *profile)
{
	int code = rig_rt_given(profile, "profile");

	if (!code && !atomic_load_explicit(&profile->stopped, memory_order_acquire))
		code = rig_error_set(-EBUSY, "the profile is still taken: rig_profile_stop ends it");
	return code;
}

int rig_profile_events(struct rig_profile *profile, const struct rig_event **events, size_t *n)
{
	int code = rig_rt_given2(events, "events", n, "n");

	if (!code)
		code = check_stopped(profile);
	if (code)
		return code;
	*events = profile->events;
	*n = profile->nevents;
	return 0;
}

int rig_profile_summary(struct rig_profile *profile, struct rig_profile_summary *summary)
{
	int code = rig_rt_given(summary, "summary");

	if (!code)
		code = check_stopped(profile);
	if (!code)
		*summary = profile->summary;
	return code;
}

struct rig_device *rig_profile_device(struct rig_profile *profile, uint32_t index)
{
	return profile && index < profile->ndevices ? profile->devices[index].device : NULL;
}
