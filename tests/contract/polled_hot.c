/* SPDX-License-Identifier: MIT */
#include "polled_state.h"

static void hot_enter(struct device *d, enum polled_call call)
{
	if (atomic_fetch_add(&d->hot_calls, 1) != 0)
		polled_break(d->p, "E-103: two hot calls at a time");
	if (d->stopped)
		polled_break(d->p, "hot call %d after stop", (int)call);
	else if (d != d->self)
		polled_break(d->p, "E-101: self is not the facts' edge");
	if (d->p->o.lie == POLLED_HONEST && rig_word_load(d->word) > atomic_load(&d->raised))
		polled_break(d->p, "E-005: somebody else raised the word");
}

static int hot_leave(struct device *d, int answer)
{
	atomic_fetch_sub(&d->hot_calls, 1);
	return answer;
}

static bool is_runnable(const struct device *d, const struct rig_part *part, uint32_t index)
{
	const struct rig_queue *queues = d->p->o.queues;
	uint32_t i;

	if (part->queue >= d->p->o.nqueues) {
		polled_break(d->p, "E-082: part %u on queue %u", index, part->queue);
		return false;
	}
	for (i = 0; i < part->nafter; i++)
		if (part->after[i] >= index)
			polled_break(d->p, "E-083: part %u after %u", index, part->after[i]);
	if (part->kind < RIG_WORDS || part->kind > RIG_LAUNCH)
		return lies(d->p, takes_any_kind);
	return lies(d->p, takes_unlisted) || queues[part->queue].runs & RIG_RUNS(part->kind);
}

static bool is_short(const struct device *d, const struct rig_part *part)
{
	if (lies(d->p, takes_huge))
		return true;
	if (part->kind == RIG_WORDS)
		return part->u.words.count <= MOST_WORDS;
	if (part->kind == RIG_FILL)
		return part->u.fill.ring_units <= MOST_WORDS && part->u.fill.segment_bytes <= MOST_WORDS;
	return true;
}

/* The product, at most UINT64_MAX >> 1. */
static uint64_t volume(const uint32_t *sizes)
{
	uint64_t v = (uint64_t)sizes[0] * sizes[1];

	return sizes[2] && v > (UINT64_MAX >> 1) / sizes[2] ? UINT64_MAX >> 1 : v * sizes[2];
}

static bool is_in_limits(const struct device *d, const struct rig_part *part, const struct rig_run *run)
{
	const struct function *f = (const struct function *)part->u.launch.launch;
	const struct rig_block *block = rig_launch_block(run, &part->u.launch);
	uint64_t threads = volume(block->threads);

	if (!volume(block->groups) || !threads)
		return lies(d->p, takes_empty);
	if (threads > MOST_GROUP)
		return lies(d->p, takes_wide);
	if (f && f->has_threads && threads > f->threads)
		return lies(d->p, takes_more);
	return block->shared <= PAGE || lies(d->p, takes_shared);
}

static bool fits_ever(struct device *d, const struct rig_part *parts, uint32_t nparts, uint32_t nwaits,
        const struct rig_run *run)
{
	uint32_t i;

	if (nparts > MOST_PARTS || nwaits > MOST_WAITS || run->nslots > MOST_SLOTS ||
	        run->args_bytes > ARGS_BYTES)
		return false;
	for (i = 0; i < nparts; i++) {
		const struct rig_part *part = &parts[i];

		if (!is_runnable(d, part, i) || !is_short(d, part))
			return false;
		if (part->kind == RIG_LAUNCH && !is_in_limits(d, part, run))
			return false;
	}
	return true;
}

static int answer_room(struct device *d, const struct rig_part *parts, uint32_t nparts, uint32_t nwaits,
        const struct rig_run *run)
{
	uint64_t shown = rig_word_load(d->shown);

	if (!fits_ever(d, parts, nparts, nwaits, run))
		return rig_error_set(RIG_NEVER, "more than %u parts, or work of no kind", MOST_PARTS);
	if (nparts > d->p->parts_now) {
		d->grow_due = true;
		return RIG_GROW;
	}
	if (d->p->o.always_later)
		return RIG_LATER;
	if (d->last - shown >= d->p->o.capacity)
		d->full = true;
	else if (!lies(d->p, stays_full) || shown == d->last)
		d->full = false;
	return d->full && !lies(d->p, overfull) ? RIG_LATER : RIG_FITS;
}

static int d_room(void *self, const struct rig_part *parts, uint32_t nparts, uint32_t nwaits,
        const struct rig_run *run, void *scratch)
{
	struct device *d = self;
	int answer;

	hot_enter(d, POLLED_ROOM);
	if (begin(d->p, POLLED_ROOM, d->p->failure == POLLED_REFUSES))
		return hot_leave(d, rig_error_set(RIG_NEVER, "injected refusal of room"));
	d->room_parts = parts;
	d->room_nparts = nparts;
	d->room_nwaits = nwaits;
	if (nparts)
		d->room_part = parts[0];
	answer = d->p->o.room_code && nparts && parts[0].kind == RIG_WORDS
	                 ? rig_error_set(d->p->o.room_code, "injected errno of room")
	                 : answer_room(d, parts, nparts, nwaits, run);
	d->room_fits = answer == RIG_FITS;
	d->stamp++;
	if (nparts && ((uintptr_t)scratch % 16))
		polled_break(d->p, "the scratch is not aligned");
	if (nparts)
		memset(scratch, (int)(d->stamp & 0xff), (size_t)nparts * RIG_SCRATCH);
	return hot_leave(d, answer);
}

static void check_submit(struct device *d, uint64_t value, const struct rig_part *parts, uint32_t nparts,
        const struct rig_wait *waits, uint32_t nwaits, const uint8_t *scratch)
{
	rig_atomic_u64 *words = rig_words();
	uint32_t i;

	if (value != d->last + 1)
		polled_break(d->p, "E-125: value %llu after %llu", (unsigned long long)value,
		        (unsigned long long)d->last);
	if (!d->room_fits || parts != d->room_parts || nparts != d->room_nparts || nwaits != d->room_nwaits)
		polled_break(d->p, "E-104, E-114: submit without a room that fits");
	d->room_fits = false;
	for (i = 0; i < nparts * RIG_SCRATCH; i++)
		if (scratch[i] != (uint8_t)(d->stamp & 0xff))
			polled_break(d->p, "E-111, E-112: the scratch changed");
	for (i = 0; i < nwaits; i++)
		if (waits[i].word < words || waits[i].word >= words + RIG_WORD_COUNT ||
		        waits[i].word == d->word)
			polled_break(d->p, "a wait for no word of another device");
}

static void keep(struct device *d, uint64_t value, const struct rig_part *parts, uint32_t nparts,
        const struct rig_wait *waits, uint32_t nwaits, const struct rig_run *run)
{
	struct value *v = &d->ring[value % d->p->o.capacity];

	v->nparts = nparts;
	v->nwaits = nwaits;
	v->live = parts;
	v->nslots = run->nslots;
	v->args_bytes = run->args_bytes;
	if (nparts)
		memcpy(v->parts, lies(d->p, room_decides) ? &d->room_part : parts, nparts * sizeof(*parts));
	if (nwaits)
		memcpy(v->waits, waits, nwaits * sizeof(*waits));
	if (run->nslots)
		memcpy(v->slots, run->slots, run->nslots * sizeof(*run->slots));
	if (run->args_bytes)
		memcpy(v->args, run->args, run->args_bytes);
	if (nparts)
		memcpy(d->p->last_parts, parts, nparts * sizeof(*parts));
	d->p->last_nparts = nparts;
	d->p->last_nwaits = nwaits;
}

/* Fills run at once: what they write is the test's own. */
static int run_fills(struct device *d, uint64_t value, const struct rig_part *parts, uint32_t nparts)
{
	uint32_t i;

	for (i = 0; i < nparts; i++)
		if (parts[i].kind == RIG_FILL && parts[i].u.fill.fill(d, parts[i].u.fill.arg, value))
			return -1;
	return 0;
}

/* Lies that make submit fail, and a fault, which does so honestly. */
static const char *why_not(struct device *d, uint64_t value)
{
	if (d->faulted)
		return lies(d->p, mute) ? "" : d->fault;
	if (lies(d->p, fails))
		return "a submit that always fails";
	if (lies(d->p, counts_from_0) && value > d->last - d->base + 1)
		return "values start at 1";
	if (lies(d->p, overfull) && d->last - rig_word_load(d->shown) >= d->p->o.capacity)
		return "the ring is full";
	if (lies(d->p, one_thread) && !pthread_equal(d->maker, pthread_self()))
		return "another thread";
	if (lies(d->p, one_device) && atomic_load(&polled_open) > 1)
		return "another device is open";
	return NULL;
}

static int d_submit(void *self, uint64_t value, const struct rig_part *parts, uint32_t nparts,
        const struct rig_wait *waits, uint32_t nwaits, const struct rig_run *run, void *scratch,
        struct rig_times *times, const char **failure)
{
	struct device *d = self;
	const char *why;
	bool fails;

	hot_enter(d, POLLED_SUBMIT);
	why = why_not(d, value);
	if (why) {
		__atomic_store_n(&d->last, value, __ATOMIC_RELAXED);
		*failure = why[0] ? why : NULL;
		return hot_leave(d, RIG_FAILED);
	}
	fails = begin(d->p, POLLED_SUBMIT, faults(d->p));
	check_submit(d, value, parts, nparts, waits, nwaits, scratch);
	if (times && !d->p->o.times && !d->p->o.settle)
		polled_break(d->p, "E-133: times without a profile");
	lock(d->p);
	while (lies(d->p, blocks) && d->done < d->last)
		polled_nap(d->p, 1);
	if (times && d->p->o.settle)
		polled_keep_stamp(d, value, times);
	keep(d, value, parts, nparts, waits, nwaits, run);
	d->ring[value % d->p->o.capacity].times = times;
	__atomic_store_n(&d->last, value, __ATOMIC_RELAXED); /* tests look without the lock */
	if (!fails && run_fills(d, value, parts, nparts))
		fails = true;
	if (!fails &&
	        (!d->p->o.batch || (value - d->committed >= COMMIT_EVERY && !lies(d->p, never_commits))))
		d->committed = value;
	(void)pthread_cond_broadcast(&d->p->moved);
	unlock(d->p);
	if (fails) {
		*failure = "injected failure of submit";
		return hot_leave(d, RIG_FAILED);
	}
	return hot_leave(d, d->p->o.batch ? RIG_OK : RIG_COMMITTED);
}

static int d_commit(void *self, uint64_t value, const char **failure)
{
	struct device *d = self;

	hot_enter(d, POLLED_COMMIT);
	if (begin(d->p, POLLED_COMMIT, faults(d->p))) {
		*failure = "injected failure of commit";
		return hot_leave(d, RIG_FAILED);
	}
	if (!d->p->o.batch)
		polled_break(d->p, "E-145: commit asked of a driver that always commits");
	if (value > d->last)
		polled_break(d->p, "E-139: commit of %llu past %llu", (unsigned long long)value,
		        (unsigned long long)d->last);
	lock(d->p);
	if (lies(d->p, recommits) && value <= d->done && d->done - value < d->p->o.capacity)
		polled_run_parts(d, &d->ring[value % d->p->o.capacity]);
	if (d->committed < value && !lies(d->p, commits_nothing) &&
	        !(lies(d->p, commits_one) && value != d->committed + 1))
		d->committed = value;
	(void)pthread_cond_broadcast(&d->p->moved);
	unlock(d->p);
	return hot_leave(d, RIG_OK);
}

const struct rig_driver polled_hot = {RIG_EDGE_VERSION, d_room, d_submit, d_commit, NULL, NULL};
