/* SPDX-License-Identifier: MIT */
/* The trace event format that Perfetto and Chrome's viewer read: one object, an event a line, times in
   microseconds. */
#include <inttypes.h>
#include <stdio.h>

#include "profile.h"
#include "text.h"

/* Lanes of a device: the host's is 0, queue i's is i + 1. */
#define HOST_LANE  0u
#define NS_PER_US  UINT64_C(1000)
#define FIRST_TEXT 0x20
#define KEY_BYTES  100u

struct out {
	FILE *file;
	struct rig_profile *profile;
	bool some; /* an event was written */
};

static void put_string(FILE *file, const char *text)
{
	(void)fputc('"', file);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			(void)fprintf(file, "\\%c", *text);
		else if ((unsigned char)*text < FIRST_TEXT)
			(void)fprintf(file, "\\u%04x", (unsigned)(unsigned char)*text);
		else
			(void)fputc(*text, file);
	}
	(void)fputc('"', file);
}

/* An event up to its arguments' opening brace. Processes are numbered from 1. */
static void begin(struct out *o, char phase, const char *name, uint32_t device, uint32_t lane)
{
	(void)fprintf(o->file, "%s{\"ph\":\"%c\",\"name\":", o->some ? ",\n" : "", phase);
	o->some = true;
	put_string(o->file, name);
	(void)fprintf(o->file, ",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32, device + 1, lane);
}

static void put_time(struct out *o, const char *key, uint64_t ns)
{
	(void)fprintf(o->file, ",\"%s\":%" PRIu64 ".%03" PRIu64, key, ns / NS_PER_US, ns % NS_PER_US);
}

static void put_label(struct out *o, const char *what, uint32_t device, uint32_t lane, const char *text)
{
	begin(o, 'M', what, device, lane);
	(void)fputs(",\"args\":{\"name\":", o->file);
	put_string(o->file, text);
	(void)fputs("}}", o->file);
}

static void put_order(struct out *o, uint32_t device, uint32_t lane)
{
	begin(o, 'M', "thread_sort_index", device, lane);
	(void)fprintf(o->file, ",\"args\":{\"sort_index\":%" PRIu32 "}}", lane);
}

static void put_device(struct out *o, uint32_t index)
{
	const struct rig_device *d = o->profile->devices[index].device;
	uint32_t i;

	put_label(o, "process_name", index, HOST_LANE, d->name);
	begin(o, 'M', "process_labels", index, HOST_LANE);
	(void)fputs(",\"args\":{\"labels\":", o->file);
	put_string(o->file, d->facts.bus ? d->facts.bus : d->facts.arch ? d->facts.arch : "");
	(void)fputs("}}", o->file);
	put_label(o, "thread_name", index, HOST_LANE, "host");
	put_order(o, index, HOST_LANE);
	for (i = 0; i < d->facts.nqueues; i++) {
		put_label(o, "thread_name", index, i + 1, d->facts.queues[i].name);
		put_order(o, index, i + 1);
	}
}

static uint64_t span_of(const struct rig_event *e)
{
	return e->end > e->start ? e->end - e->start : 0;
}

static void put_span(struct out *o, const struct rig_event *e)
{
	begin(o, 'X', e->name, e->device, e->queue + 1);
	put_time(o, "ts", e->start);
	put_time(o, "dur", span_of(e));
	(void)fprintf(o->file, ",\"args\":{\"value\":%" PRIu64 ",\"parts\":%" PRIu32, e->value, e->parts);
	if (e->bytes)
		(void)fprintf(o->file, ",\"bytes\":%" PRIu64, e->bytes);
	put_time(o, "handed_us", e->handed);
	(void)fputs("}}", o->file);
}

static void put_counter(FILE *file, const struct rig_counter *counter, uint32_t index, uint64_t value)
{
	char key[KEY_BYTES];
	struct rig_text text;

	rig_text_init(&text, key, sizeof(key));
	rig_text_add_key(&text, counter->name);
	if (counter->values > 1)
		(void)fprintf(file, ",\"%s_%" PRIu32 "\":%" PRIu64, key, index, value);
	else
		(void)fprintf(file, ",\"%s\":%" PRIu64, key, value);
}

/* A counter of several values has one entry a value. */
static void put_counters(struct out *o, const struct rig_event *e)
{
	const struct rig_facts *facts = &o->profile->devices[e->device].device->facts;
	uint32_t c, v, at = 0;

	for (c = 0; c < facts->ncounters; c++)
		for (v = 0; v < facts->counters[c].values && at < e->ncounters; v++, at++)
			put_counter(o->file, &facts->counters[c], v, e->counters[at]);
}

static void put_launch(struct out *o, const struct rig_event *e)
{
	begin(o, 'X', e->name, e->device, e->queue + 1);
	put_time(o, "ts", e->start);
	put_time(o, "dur", span_of(e));
	(void)fprintf(o->file, ",\"args\":{\"value\":%" PRIu64 ",\"part\":%" PRIu32, e->value, e->part);
	put_counters(o, e);
	(void)fputs("}}", o->file);
}

/* Threads of the host overlap, which one lane of complete events cannot show: a pair with an id can. */
static void put_host(struct out *o, const struct rig_event *e, size_t id)
{
	begin(o, 'b', e->name, e->device, HOST_LANE);
	put_time(o, "ts", e->start);
	(void)fprintf(
	        o->file, ",\"cat\":\"host\",\"id\":\"%zu\",\"args\":{\"bytes\":%" PRIu64 "}}", id, e->bytes);
	begin(o, 'e', e->name, e->device, HOST_LANE);
	put_time(o, "ts", e->end);
	(void)fprintf(o->file, ",\"cat\":\"host\",\"id\":\"%zu\"}", id);
}

static void put_memory(struct out *o, const struct rig_event *e)
{
	begin(o, 'C', e->name, e->device, HOST_LANE);
	put_time(o, "ts", e->start);
	(void)fprintf(o->file, ",\"args\":{\"in_use\":%" PRIu64 ",\"cached\":%" PRIu64 "}}",
	        e->bytes > e->cached ? e->bytes - e->cached : 0, e->cached);
}

static void put_event(struct out *o, size_t id)
{
	const struct rig_event *e = &o->profile->events[id];

	switch (e->kind) {
	case RIG_EVENT_SPAN:
		put_span(o, e);
		break;
	case RIG_EVENT_LAUNCH:
		put_launch(o, e);
		break;
	case RIG_EVENT_MEMORY:
		put_memory(o, e);
		break;
	case RIG_EVENT_COPY:
	case RIG_EVENT_IMAGE:
		put_host(o, e, id);
		break;
	}
}

static void put_all(struct out *o)
{
	const struct rig_profile_summary *s = &o->profile->summary;
	uint32_t device;
	size_t i;

	(void)fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", o->file);
	for (device = 0; device < o->profile->ndevices; device++)
		put_device(o, device);
	for (i = 0; i < o->profile->nevents; i++)
		put_event(o, i);
	(void)fprintf(o->file,
	        "\n],\"otherData\":{\"clock\":\"CLOCK_MONOTONIC\",\"values\":%" PRIu64 ",\"untimed\":%" PRIu64
	        ",\"lost\":%" PRIu64 ",\"dropped\":%" PRIu64 "}}\n",
	        s->values, s->untimed, s->lost, s->dropped);
}

int rig_profile_save(struct rig_profile *profile, const char *path)
{
	struct rig_profile_summary summary;
	struct out o = {.profile = profile};
	int code = rig_rt_given(path, "path");

	if (!code)
		code = rig_profile_summary(profile, &summary);
	if (code)
		return code;
	o.file = fopen(path, "we");
	if (!o.file)
		return rig_error_set(-errno, "%s: %s", path, strerror(errno));
	put_all(&o);
	if (ferror(o.file))
		code = -EIO;
	if (fclose(o.file) && !code)
		code = -errno;
	return code ? rig_error_set(code, "%s: %s", path, strerror(-code)) : 0;
}
