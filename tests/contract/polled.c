/* SPDX-License-Identifier: MIT */
#include "polled_state.h"

const struct rig_key polled_key = {"polled"};

static const struct rig_queue default_queues[] = {
        {"COMPUTE:0", RIG_RUNS(RIG_LAUNCH) | RIG_RUNS(RIG_WORDS) | RIG_RUNS(RIG_FILL)},
        {"COPY:0", RIG_RUNS(RIG_COPY)},
};

void polled_break(struct polled *p, const char *format, ...)
{
	va_list args;

	if (atomic_exchange(&p->broken, true))
		return;
	va_start(args, format);
	(void)vsnprintf(p->breach, sizeof(p->breach), format, args);
	va_end(args);
}

struct polled *polled_new(const struct polled_options *options)
{
	struct polled *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->o = *options;
	p->o.always_later |= lies(p, idle_later);
	p->o.stop_short |= lies(p, stop_short);
	if (lies(p, lazy))
		p->o.thread = false;
	if (!p->o.capacity)
		p->o.capacity = CAPACITY;
	if (!p->o.budget)
		p->o.budget = UINT64_MAX / 2;
	if (!p->o.queues) {
		p->o.queues = default_queues;
		p->o.nqueues = 2;
		p->o.copy_engine = 1;
	}
	p->parts_now = p->o.parts ? p->o.parts : MOST_PARTS;
	p->short_entries = p->o.short_entries;
	p->short_grows = p->o.short_grows;
	p->no_room = p->o.no_room;
	p->gate = UINT64_MAX;
	(void)pthread_mutex_init(&p->lock, NULL);
	(void)pthread_cond_init(&p->moved, NULL);
	p->opener.version = RIG_EDGE_VERSION;
	p->opener.name = p->o.name;
	p->opener.module = &polled_module;
	p->table = polled_hot;
	if (lies(p, old_table))
		p->table.version = 0;
	if (p->o.settle) {
		p->table.settle = polled_d_settle;
		p->table.measures = polled_d_measures;
	}
	p->module = polled_module;
	p->module.grow = NULL;
	if (lies(p, no_grow))
		p->opener.module = &p->module;
	p->opener.make = polled_make;
	p->opener.arg = p;
	return p;
}

void polled_free(struct polled *p)
{
	if (!p)
		return;
	(void)pthread_mutex_destroy(&p->lock);
	(void)pthread_cond_destroy(&p->moved);
	while (p->buses) {
		struct bus *next = p->buses->next;

		free(p->buses);
		p->buses = next;
	}
	while (p->unloaded) {
		struct image *next = p->unloaded->next;

		free(p->unloaded);
		p->unloaded = next;
	}
	free(p->kept);
	free(p);
}

const struct rig_opener *polled_opener(struct polled *p)
{
	return &p->opener;
}

void polled_edit_facts(struct polled *p, void (*edit)(struct rig_facts *facts))
{
	p->edit = edit;
}

void polled_gate(struct polled *p, uint64_t value)
{
	lock(p);
	p->gate = value;
	(void)pthread_cond_broadcast(&p->moved);
	unlock(p);
}

void polled_drain(struct polled *p)
{
	lock(p);
	if (p->device)
		rig_word_raise(p->device->shown, p->device->last);
	unlock(p);
}

void polled_fail(struct polled *p, enum polled_call call, uint64_t n, enum polled_failure failure)
{
	p->fail_call = call;
	p->failure = failure;
	atomic_store(&p->failed, false);
	atomic_store(&p->fail_in, n);
}

bool polled_failed(struct polled *p)
{
	return atomic_load(&p->failed);
}

void polled_hook(struct polled *p, void (*hook)(void *arg, enum polled_call call), void *arg)
{
	p->hook_arg = arg;
	p->hook = hook;
}

unsigned polled_count(struct polled *p, enum polled_call call)
{
	return atomic_load(&p->counts[call]);
}

unsigned polled_left(struct polled *p)
{
	unsigned n;

	lock(p);
	n = p->nregions + p->nimages + p->handles;
	unlock(p);
	return n;
}

uint64_t polled_held(struct polled *p)
{
	uint64_t held;

	lock(p);
	held = p->held;
	unlock(p);
	return held;
}

uint64_t polled_word(struct polled *p)
{
	return rig_word_load(p->device->shown);
}

void polled_set_word(struct polled *p, uint64_t value)
{
	__atomic_store_n((uint64_t *)(void *)p->device->shown, value, __ATOMIC_RELEASE);
}

uint64_t polled_last(struct polled *p)
{
	return __atomic_load_n(&p->device->last, __ATOMIC_RELAXED);
}

const char *polled_stop_reason(struct polled *p)
{
	return p->has_stop_reason ? p->stop_reason : NULL;
}

uint32_t polled_nwaits(struct polled *p)
{
	return p->last_nwaits;
}

const struct rig_part *polled_parts(struct polled *p, uint32_t *n)
{
	*n = p->last_nparts;
	return p->last_parts;
}

void polled_last_run(struct polled *p, struct rig_run *run)
{
	const struct value *v = &p->device->ring[p->device->last % p->o.capacity];

	/* Kept for the test's life: the ring goes with the device. */
	if (!p->kept)
		p->kept = calloc(1, sizeof(*p->kept));
	memset(run, 0, sizeof(*run));
	if (!p->kept)
		return;
	*p->kept = *v;
	run->args = p->kept->args;
	run->args_bytes = p->kept->args_bytes;
	run->slots = p->kept->slots;
	run->nslots = p->kept->nslots;
}

uint32_t polled_words(struct polled *p, uint32_t *words, uint32_t n)
{
	uint32_t count = p->nwords < n ? p->nwords : n;

	memcpy(words, p->words, count * sizeof(*words));
	return count;
}

static bool is_placed(const struct region *r)
{
	uint32_t i;

	if (r->kind != RIG_DEVICE || r->size < PLACE_BYTES)
		return false;
	for (i = 0; i < PLACE_BYTES; i++)
		if (r->bytes[i] != PLACE_BYTE)
			return false;
	return true;
}

unsigned polled_check_placed(struct polled *p)
{
	const struct region *r;
	unsigned n = 0;

	lock(p);
	for (r = p->regions; r; r = r->next)
		n += is_placed(r);
	unlock(p);
	return n;
}

const char *polled_breach(struct polled *p)
{
	return atomic_load(&p->broken) ? p->breach : NULL;
}
