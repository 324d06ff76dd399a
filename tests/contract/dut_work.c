/* SPDX-License-Identifier: MIT */
/* Work and code of a device under test. */
#include <stdlib.h>
#include <string.h>

#include "dut.h"

#define MS 1000000u

#define BEHIND 64u /* a place that writes behind its bytes is a law's to find */

bool dut_has_queue(const struct dut *d, enum rig_kind kind, uint32_t *queue)
{
	for (*queue = 0; *queue < d->facts.nqueues; ++*queue)
		if (d->facts.queues[*queue].runs & RIG_RUNS(kind))
			return true;
	return false;
}

uint32_t dut_queue(struct dut *d, enum rig_kind kind)
{
	uint32_t queue;

	if (!dut_has_queue(d, kind, &queue))
		conform_skip(d->c, "no queue of the device runs work of kind %d", (int)kind);
	return queue;
}

static struct rig_copy_side side(struct dut *d, void *region, uint64_t at, uint64_t pitch)
{
	return (struct rig_copy_side){
	        .slot = RIG_FIXED, .handle = dut_locate(d, region).handle, .offset = at, .pitch = pitch};
}

struct rig_part dut_copy(
        struct dut *d, void *dst, uint64_t dst_at, void *src, uint64_t src_at, uint64_t bytes)
{
	struct rig_part part = {.kind = RIG_COPY};

	if (!d->facts.has_copy_engine)
		conform_skip(d->c, "the device has no copy engine");
	part.queue = (uint32_t)d->facts.copy_engine;
	part.u.copy.dst = side(d, dst, dst_at, bytes);
	if (src)
		part.u.copy.src = side(d, src, src_at, bytes);
	part.u.copy.row_bytes = bytes;
	part.u.copy.rows = 1;
	return part;
}

struct rig_part dut_fill(struct dut *d, void *dst, uint64_t at, uint64_t bytes, uint8_t byte)
{
	struct rig_part part = dut_copy(d, dst, at, NULL, 0, bytes);

	part.u.copy.fill = true;
	part.u.copy.byte = byte;
	return part;
}

static const struct rig_run *run_of(const struct dut_work *work)
{
	static const struct rig_run none;

	return work->run ? work->run : &none;
}

int dut_room(struct dut *d, const struct dut_work *work)
{
	int answer = d->hot->room(
	        d->facts.edge, work->parts, work->nparts, work->nwaits, run_of(work), d->scratch);

	conform_check(d->c, answer >= RIG_FITS && answer <= RIG_NEVER, "room answered %d, no enum rig_room",
	        answer);
	return answer;
}

static void commit(struct dut *d, uint64_t value)
{
	const char *failure = NULL;
	int answer;

	conform_check(d->c, d->hot->commit, "submit answered RIG_OK and there is no commit");
	answer = d->hot->commit(d->facts.edge, value, &failure);
	conform_check(d->c, answer == RIG_OK, "commit of %llu answered %d: %s", (unsigned long long)value,
	        answer, failure ? failure : "no text");
}

int dut_submit_raw(struct dut *d, const struct dut_work *work, bool committed)
{
	const char *failure = NULL;
	int answer = d->hot->submit(d->facts.edge, d->last + 1, work->parts, work->nparts, work->waits,
	        work->nwaits, run_of(work), d->scratch, work->times, &failure);

	conform_check(d->c, answer == RIG_OK || answer == RIG_COMMITTED, "submit of %llu answered %d: %s",
	        (unsigned long long)(d->last + 1), answer, failure ? failure : "no text");
	d->last++;
	if (answer == RIG_OK && committed)
		commit(d, d->last);
	return answer;
}

uint64_t dut_submit_now(struct dut *d, const struct dut_work *work)
{
	(void)dut_submit_raw(d, work, true);
	return d->last;
}

void dut_grow(struct dut *d, const struct dut_work *work)
{
	const char *fault = NULL;
	uint64_t missing = 0;
	int answer = d->m->grow(d->device, work->parts, work->nparts, work->nwaits, &missing, &fault);

	conform_check(d->c, answer == RIG_GROWN || answer == RIG_SHORT, "grow answered %d: %s", answer,
	        fault ? fault : "no text");
	if (answer == RIG_SHORT)
		conform_skip(
		        d->c, "the queues cannot grow: %llu bytes are missing", (unsigned long long)missing);
}

void dut_more_scratch(struct dut *d, uint32_t parts)
{
	free(d->scratch);
	d->scratch = aligned_alloc(16, (size_t)parts * RIG_SCRATCH);
	conform_check(d->c, d->scratch, "no host memory");
}

uint64_t dut_submit(struct dut *d, const struct dut_work *work)
{
	uint64_t end = rig_now_ns() + dut_wait_ms(d->c) * MS;

	for (;;) {
		bool idle = dut_shown(d) == d->last;
		int answer = dut_room(d, work);

		if (answer == RIG_FITS)
			return dut_submit_now(d, work);
		if (answer == RIG_NEVER)
			conform_skip(d->c, "the device runs no such work: %s", rig_error());
		if (answer == RIG_GROW)
			dut_grow(d, work);
		else
			conform_check(d->c, !idle, "room answers RIG_LATER while all values are reached");
		conform_check(d->c, rig_now_ns() < end, "room answers %d for %llu ms", answer,
		        (unsigned long long)dut_wait_ms(d->c));
		dut_nap();
	}
}

uint64_t dut_run(struct dut *d, const struct rig_part *parts, uint32_t nparts)
{
	struct dut_work work = {.parts = parts, .nparts = nparts};

	return dut_submit(d, &work);
}

uint64_t dut_copy_after(struct dut *d, const struct rig_part *copy, const struct rig_wait *wait)
{
	struct dut_work work = {.parts = copy, .nparts = 1, .waits = wait, .nwaits = wait ? 1 : 0};

	return dut_submit(d, &work);
}

uint64_t dut_shown(struct dut *d)
{
	const char *fault = NULL;
	uint64_t value = 0;

	if (!d->own_word)
		return rig_word_load(d->word);
	conform_check(d->c, d->m->signaled, "a word of the driver's own without signaled");
	conform_check(d->c, !d->m->signaled(d->device, &value, &fault), "signaled faulted: %s", fault);
	rig_word_raise(d->word, value); /* as a runtime does */
	return value;
}

/* Patience ends dut_wait_ms after the word last moved. */
struct patience {
	uint64_t seen, end;
};

static bool is_over(struct dut *d, struct patience *p, uint64_t seen)
{
	if (!p->end || seen != p->seen)
		*p = (struct patience){seen, rig_now_ns() + dut_wait_ms(d->c) * MS};
	return rig_now_ns() >= p->end;
}

void dut_wait(struct dut *d, uint64_t value)
{
	struct patience patience = {0};
	const char *fault = NULL;
	uint64_t seen;

	while ((seen = dut_shown(d)) < value) {
		conform_check(d->c, !is_over(d, &patience, seen),
		        "value %llu is not reached: the word stands at %llu for %llu ms",
		        (unsigned long long)value, (unsigned long long)seen,
		        (unsigned long long)dut_wait_ms(d->c));
		conform_check(d->c, !d->m->sleep(d->device, seen, 100, &fault), "sleep faulted: %s",
		        fault ? fault : "no text");
	}
}

bool dut_await(struct dut *d, uint64_t value)
{
	struct patience patience = {0};
	uint64_t seen;

	while ((seen = dut_shown(d)) < value) {
		if (is_over(d, &patience, seen))
			return false;
		dut_nap();
	}
	return true;
}

struct rig_wait dut_gate(struct dut *d, unsigned index)
{
	if (!d->facts.waits.hosts && !d->facts.waits.stores)
		conform_skip(d->c, "the device's queues wait for no word");
	return (struct rig_wait){.word = rig_words() + DUT_GATE + index, .value = 1};
}

void dut_open_gate(const struct rig_wait *gate)
{
	rig_word_raise((rig_atomic_u64 *)(uintptr_t)gate->word, gate->value);
}

static void place(struct dut *d, const struct rig_conform_code *code, const struct rig_code *answer)
{
	uint8_t *buffer = calloc(1, answer->bytes + BEHIND);
	struct rig_part copy;
	uint8_t *host;
	void *staging;
	int err;

	conform_check(d->c, buffer && answer->bytes && answer->place, "RIG_PLACE of %llu bytes",
	        (unsigned long long)answer->bytes);
	d->image_region = dut_alloc(d, RIG_DEVICE, answer->bytes);
	staging = dut_alloc_host(d, answer->bytes, &host);
	err = answer->place(d->device, code->binary, code->bytes, d->image_region, buffer, &d->image);
	conform_check(d->c, !err && d->image, "place answered %d and image %p", err, d->image);
	memcpy(host, buffer, answer->bytes);
	copy = dut_copy(d, d->image_region, 0, staging, 0, answer->bytes);
	dut_wait(d, dut_run(d, &copy, 1));
	dut_free(d, staging);
	free(buffer);
}

const struct rig_conform_code *dut_load(struct dut *d)
{
	const struct rig_conform_code *code = NULL;
	struct rig_code answer = {.version = RIG_EDGE_VERSION};
	const char *fault = NULL;
	uint32_t queue;
	int err;

	if (!dut_has_queue(d, RIG_LAUNCH, &queue))
		conform_skip(d->c, "no queue of the device runs launches");
	if (d->c->source->code)
		code = d->c->source->code(d->c->source, d->facts.arch);
	if (!code)
		conform_skip(d->c, "no code of the laws for architecture %s", d->facts.arch);
	err = d->m->load(d->device, code->binary, code->bytes, &answer, &fault);
	conform_check(d->c, !err, "load answered %d: %s", err, fault ? fault : rig_error());
	if (answer.kind == RIG_PLACE)
		place(d, code, &answer);
	else
		d->image = answer.image;
	conform_check(d->c, d->image, "load made no image");
	return code;
}

struct rig_entry dut_entry(struct dut *d, const char *name)
{
	struct rig_entry entry = {.version = RIG_EDGE_VERSION};
	const char *fault = NULL;
	uint64_t missing = 0;
	int answer = d->m->entry(d->device, d->image, name, &entry, &missing, &fault);

	conform_check(d->c, answer == RIG_ENTRY, "entry of %s answered %d: %s", name, answer,
	        fault ? fault : rig_error());
	return entry;
}

void dut_unload(struct dut *d)
{
	const char *fault = NULL;
	void *image = d->image;

	d->image = NULL;
	conform_check(d->c, !d->m->unload(d->device, image, &fault), "unload faulted: %s",
	        fault ? fault : "no text");
	if (d->image_region && !d->stopped)
		dut_free(d, d->image_region);
	d->image_region = NULL;
}

void dut_launch(struct dut *d, struct dut_launch *l, const char *function, const void *params, uint32_t bytes,
        uint32_t groups, uint32_t threads)
{
	struct rig_entry entry = dut_entry(d, function);

	memset(l, 0, sizeof(*l));
	l->part.queue = dut_queue(d, RIG_LAUNCH);
	l->part.kind = RIG_LAUNCH;
	l->part.u.launch.code = entry.code;
	l->part.u.launch.launch = entry.launch;
	l->part.u.launch.params = bytes;
	*dut_block(l) = (struct rig_block){.groups = {groups, 1, 1}, .threads = {threads, 1, 1}};
	memcpy(l->args + sizeof(struct rig_block), params, bytes);
	l->run.args = l->args;
	l->run.args_bytes = sizeof(struct rig_block) + bytes;
}

struct rig_block *dut_block(struct dut_launch *l)
{
	return (struct rig_block *)(void *)l->args;
}

uint64_t dut_run_launch(struct dut *d, struct dut_launch *l)
{
	struct dut_work work = {.parts = &l->part, .nparts = 1, .run = &l->run};

	return dut_submit(d, &work);
}
