/* SPDX-License-Identifier: MIT */
#include "polled_state.h"

static uint8_t *side_at(const struct polled *p, const struct value *v, const struct rig_copy_side *side)
{
	const struct region *r;
	uint64_t offset = side->offset;

	if (side->slot == RIG_FIXED) {
		r = (const struct region *)side->handle;
	} else {
		r = (const struct region *)v->slots[side->slot].handle;
		offset += lies(p, no_slot_offset) ? 0 : v->slots[side->slot].offset;
	}
	return r->bytes + offset;
}

static void run_copy(const struct polled *p, const struct value *v, const struct rig_copy_part *copy)
{
	uint8_t *dst = side_at(p, v, &copy->dst);
	const uint8_t *src = copy->fill ? NULL : side_at(p, v, &copy->src);
	uint64_t row, bytes = copy->row_bytes - (lies(p, copies_short) ? 1 : 0);
	bool packed = lies(p, no_pitch);

	for (row = 0; row < copy->rows; row++) {
		if (copy->fill)
			memset(dst + row * copy->dst.pitch, copy->byte,
			        copy->row_bytes + (lies(p, fills_long) ? 1 : 0));
		else
			memmove(dst + row * (packed ? bytes : copy->dst.pitch),
			        src + row * (packed ? bytes : copy->src.pitch), bytes);
	}
}

static void run_launch(struct polled *p, const struct value *v, const struct rig_launch_part *launch)
{
	const struct function *f = (const struct function *)launch->launch;
	struct rig_run run = {v->args, sizeof(v->args), v->slots, v->nslots};
	struct rig_launch_part plain = *launch;
	_Alignas(16) uint8_t params[RIG_PARAMS];

	if (lies(p, no_refs))
		plain.nrefs = 0;
	rig_launch_params(params, &run, &plain);
	f->run(p, rig_launch_block(&run, launch), params);
}

static void run_part(struct device *d, const struct value *v, const struct rig_part *part)
{
	uint32_t i;

	switch (part->kind) {
	case RIG_WORDS:
		for (i = 0; i < part->u.words.count; i++)
			d->p->words[d->p->nwords++ % WORDS_KEPT] = part->u.words.words[i];
		break;
	case RIG_COPY:
		run_copy(d->p, v, &part->u.copy);
		break;
	case RIG_LAUNCH:
		run_launch(d->p, v, &part->u.launch);
		break;
	default:
		break;
	}
}

void polled_run_parts(struct device *d, const struct value *v)
{
	const struct rig_part *parts = lies(d->p, keeps_pointers) ? v->live : v->parts;
	uint32_t i;

	for (i = 0; i < v->nparts; i++)
		run_part(d, v, &parts[lies(d->p, parts_reversed) ? v->nparts - 1 - i : i]);
}

static bool waits_over(const struct polled *p, const struct value *v)
{
	uint32_t i, n = lies(p, no_waits) ? 0 : lies(p, first_wait) && v->nwaits ? 1 : v->nwaits;

	if (lies(p, deaf) && v->nwaits)
		return false;
	for (i = lies(p, last_wait) && n ? n - 1 : 0; i < n; i++)
		if (rig_word_load(v->waits[i].word) < v->waits[i].value)
			return false;
	return true;
}

/* Whether all launches of a value return. One that faults ends the device. */
static bool returns(struct device *d, const struct value *v)
{
	uint32_t i;

	for (i = 0; i < v->nparts; i++) {
		const struct function *f;

		if (v->parts[i].kind != RIG_LAUNCH)
			continue;
		f = (const struct function *)v->parts[i].u.launch.launch;
		if (f->kind == ENDLESS && !lies(d->p, endless_ends))
			return false;
		if (f->kind != FAULTS || lies(d->p, swallows))
			continue;
		d->faulted = true;
		(void)snprintf(d->fault, sizeof(d->fault), "function %s faulted", f->name);
		(void)pthread_cond_broadcast(&d->p->moved);
		return false;
	}
	return true;
}

/* The lie defers: a copy is made after the value behind it. */
static void run_deferred(struct device *d, uint64_t value, const struct value *v)
{
	if (!d->deferred && v->nparts && v->parts[0].kind == RIG_COPY) {
		d->deferred = value;
		return;
	}
	polled_run_parts(d, v);
	if (d->deferred)
		polled_run_parts(d, &d->ring[d->deferred % d->p->o.capacity]);
	d->deferred = 0;
}

/* The copy engine does not wait for a launch that the copies do not follow. */
static void copy_beside(struct device *d, uint64_t value, const struct value *v)
{
	uint32_t i;

	if (d->beside == value || d->faulted || lies(d->p, one_engine))
		return;
	d->beside = value;
	for (i = 0; i < v->nparts; i++)
		if (v->parts[i].kind == RIG_COPY && !v->parts[i].nafter)
			run_part(d, v, &v->parts[i]);
}

static void run_value(struct device *d, uint64_t value, const struct value *v)
{
	uint64_t start = v->times ? rig_now_ns() : 0;

	if (lies(d->p, defers))
		run_deferred(d, value, v);
	else if (!lies(d->p, drops) || (value - d->base) % 50)
		polled_run_parts(d, v);
	if (v->times)
		polled_stamp(d, value, v, start, rig_now_ns());
}

static void show(struct device *d, uint64_t value)
{
	struct timespec moment = {.tv_nsec = 200000};

	atomic_store(&d->raised, value);

	rig_word_raise(d->shown, lies(d->p, truncates) ? (uint32_t)value
	                         : lies(d->p, ahead)   ? value + 1
	                                               : value);
	if (lies(d->p, back)) {
		(void)nanosleep(&moment, NULL);
		__atomic_store_n((uint64_t *)(void *)d->shown, value - 1, __ATOMIC_RELEASE);
		(void)nanosleep(&moment, NULL);
		rig_word_raise(d->shown, value);
	}
}

/* With the lock. One value, if it may run. */
bool polled_run_one(struct device *d)
{
	struct timespec late = {.tv_nsec = 3000000};
	uint64_t next = d->done + 1;
	const struct value *v;

	if ((d->stopped && !lies(d->p, runs_on)) || d->faulted || next > d->last || next > d->committed ||
	        next > d->p->gate)
		return false;
	v = &d->ring[next % d->p->o.capacity];
	if (!waits_over(d->p, v))
		return false;
	if (!returns(d, v)) {
		copy_beside(d, next, v);
		return false;
	}
	if (lies(d->p, early_word)) {
		show(d, next);
		(void)nanosleep(&late, NULL);
	}
	run_value(d, next, v);
	d->done = next;
	show(d, next);
	(void)pthread_cond_broadcast(&d->p->moved);
	return true;
}

unsigned polled_run(struct polled *p, unsigned n)
{
	unsigned ran = 0;

	lock(p);
	while (ran < n && p->device && polled_run_one(p->device))
		ran++;
	unlock(p);
	return ran;
}

/* Foreign words move without telling it, so it looks again each millisecond. */
void polled_nap(struct polled *p, uint64_t ms)
{
	struct timespec end;

	(void)clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_nsec += (long)(ms % 1000) * 1000000L;
	end.tv_sec += (time_t)(ms / 1000) + end.tv_nsec / 1000000000L;
	end.tv_nsec %= 1000000000L;
	(void)pthread_cond_clockwait(&p->moved, &p->lock, CLOCK_MONOTONIC, &end);
}

void *polled_work(void *arg)
{
	struct device *d = arg;

	lock(d->p);
	while (!d->stop_thread)
		if (!polled_run_one(d))
			polled_nap(d->p, 1);
	unlock(d->p);
	return NULL;
}
