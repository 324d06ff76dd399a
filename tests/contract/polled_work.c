/* SPDX-License-Identifier: MIT */
#include "polled_state.h"

static uint8_t *side_at(const struct value *v, const struct rig_copy_side *side)
{
	const struct region *r;
	uint64_t offset = side->offset;

	if (side->slot == RIG_FIXED) {
		r = (const struct region *)side->handle;
	} else {
		r = (const struct region *)v->slots[side->slot].handle;
		offset += v->slots[side->slot].offset;
	}
	return r->bytes + offset;
}

static void run_copy(const struct value *v, const struct rig_copy_part *copy)
{
	uint8_t *dst = side_at(v, &copy->dst);
	const uint8_t *src = copy->fill ? NULL : side_at(v, &copy->src);
	uint64_t row;

	for (row = 0; row < copy->rows; row++) {
		if (copy->fill)
			memset(dst + row * copy->dst.pitch, copy->byte, copy->row_bytes);
		else
			memmove(dst + row * copy->dst.pitch, src + row * copy->src.pitch, copy->row_bytes);
	}
}

static void run_launch(const struct value *v, const struct rig_launch_part *launch)
{
	const struct function *f = (const struct function *)launch->launch;
	struct rig_run run = {v->args, sizeof(v->args), v->slots, v->nslots};
	_Alignas(16) uint8_t params[RIG_PARAMS];

	rig_launch_params(params, &run, launch);
	f->run(rig_launch_block(&run, launch), params);
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
		run_copy(v, &part->u.copy);
		break;
	case RIG_LAUNCH:
		run_launch(v, &part->u.launch);
		break;
	default:
		break;
	}
}

static bool waits_over(const struct value *v)
{
	uint32_t i;

	for (i = 0; i < v->nwaits; i++)
		if (rig_word_load(v->waits[i].word) < v->waits[i].value)
			return false;
	return true;
}

/* With the lock. One value, if it may run. */
bool polled_run_one(struct device *d)
{
	uint64_t next = rig_word_load(d->shown) + 1;
	const struct value *v;
	uint32_t i;

	if (d->stopped || next > d->last || next > d->committed || next > d->p->gate)
		return false;
	v = &d->ring[next % d->p->o.capacity];
	if (!waits_over(v))
		return false;
	for (i = 0; i < v->nparts; i++)
		run_part(d, v, &v->parts[i]);
	rig_word_raise(d->shown, next);
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
