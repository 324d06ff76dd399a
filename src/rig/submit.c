/* SPDX-License-Identifier: MIT */
/*
 * From a job to the driver's submit: collect what the work follows, then, in a turn, ask for room, note what
 * the queue waits for, take the value, stamp the memory, hand over. What keeps it back is overcome outside
 * the turn.
 */
#include "profile.h"

/* A driver that answers RIG_GROW again and again after growth breaks the contract. */
#define MOST_GROWTHS 16u

/* ---- What the work follows ---- */

/* The points of other devices that the queue will wait for, at most one a producer. */
struct follow {
	uint32_t n;
	struct rig_wait waits[RT_WAITS];
	uint64_t bits[RT_WAITS];
};

/* Every wait for a value first commits its producer. */
static int commit_producer(uint64_t bits)
{
	struct rig_device *producer;
	int code;

	if (atomic_load_explicit(&rig_rt_slots[rig_rt_slot_of(bits)].committed, memory_order_acquire) >=
	        rig_rt_value_of(bits))
		return 0;
	producer = rig_rt_point_device(bits);
	if (!producer)
		return 0;
	code = rig_rt_commit(producer, rig_rt_value_of(bits));
	rig_rt_visit_end(producer);
	return code;
}

/* False: the device's queue waits for no such producer, or for no more of them. */
static bool add(struct follow *f, const struct rig_device *d, uint64_t bits)
{
	uint32_t slot = rig_rt_slot_of(bits), i;
	uint32_t flags = atomic_load_explicit(&rig_rt_slots[slot].flags, memory_order_acquire);

	if (flags & RT_SLOT_OWN || !(flags & RT_SLOT_STORE ? d->facts.waits.stores : d->facts.waits.hosts))
		return false;
	for (i = 0; i < f->n && rig_rt_slot_of(f->bits[i]) != slot; i++)
		;
	if (i == RT_WAITS)
		return false;
	if (i == f->n)
		f->bits[f->n++] = 0;
	if (f->bits[i] < bits)
		f->bits[i] = bits;
	f->waits[i].word = &rig_rt_words[slot];
	f->waits[i].value = rig_rt_value_of(f->bits[i]);
	return true;
}

/* A point that is not known to be reached: in the queue, or waited for here, holding no lock. */
static int follow(struct follow *f, const struct rig_device *d, uint64_t bits)
{
	int code;

	switch (rig_rt_point_state(bits)) {
	case RT_REACHED:
		return 0;
	case RT_PENDING:
		/* The device's own order covers its earlier work. */
		if (rig_rt_slot_of(bits) == d->slot)
			return 0;
		code = commit_producer(bits);
		return code || add(f, d, bits) ? code : rig_rt_wait_bits(bits);
	case RT_LOST:
		return rig_rt_point_lost(bits);
	case RT_NO_POINT:
		break;
	}
	return rig_error_set(-EINVAL, "no such point: slot %u, value %llu", rig_rt_slot_of(bits),
	        (unsigned long long)rig_rt_value_of(bits));
}

/* A stamp is a point; most are of work of the device itself. */
static inline int follow_stamp(struct follow *f, const struct rig_device *d, uint64_t bits)
{
	if (rig_rt_slot_of(bits) == d->slot && rig_rt_value_of(bits) > d->base)
		return 0;
	return rig_rt_is_reached(rig_rt_words_now(), bits) ? 0 : follow(f, d, bits);
}

/* A read follows the last write, a write every use. */
static int follow_memory(
        struct follow *f, const struct rig_device *d, const struct rig_rt_mem *mem, bool write)
{
	const struct rig_rt_uses *uses = write ? &mem->uses : NULL;
	uint64_t bits;
	unsigned i;
	int code;

	if (mem->owner != d && !rig_rt_is_live(mem->owner))
		return rig_rt_lost_error(mem->owner);
	code = follow_stamp(f, d, atomic_load_explicit(&mem->write, memory_order_acquire));
	for (; uses && !code; uses = atomic_load_explicit(&uses->next, memory_order_acquire))
		for (i = 0; i < RT_USES && !code; i++) {
			/* Words are claimed in their order. */
			bits = atomic_load_explicit(&uses->word[i], memory_order_acquire);
			if (!bits)
				return 0;
			code = follow_stamp(f, d, bits);
		}
	return code;
}

/* Memory that no other device ever mapped has been used by this one alone, whose order covers it. */
static int follow_uses(struct follow *f, const struct rig_device *d, const struct rig_rt_use *uses,
        uint32_t n, bool *private)
{
	uint32_t i;
	int code = 0;

	for (i = 0; i < n && !code; i++) {
		const struct rig_rt_mem *mem = uses[i].mem;

		if (!mem || (mem->owner == d && !atomic_load_explicit(&mem->shared, memory_order_relaxed)))
			continue;
		*private = false;
		code = follow_memory(f, d, mem, uses[i].write);
	}
	return code;
}

static inline int collect(
        struct follow *f, const struct rig_rt_job *job, const struct rig_point *waits, uint32_t nwaits)
{
	const struct rig_device *d = job->device;
	rig_atomic_u64 *words = rig_rt_words_now();
	uint64_t shares = atomic_load_explicit(&d->shares, memory_order_acquire);
	bool private = true;
	int code = 0;

	f->n = 0;
	for (; nwaits && !code; nwaits--, waits++)
		if (__builtin_expect(!rig_rt_is_reached(words, waits->bits), 0))
			code = follow(f, d, waits->bits);
	if (code || (job->private_at &&
	                    atomic_load_explicit(job->private_at, memory_order_relaxed) == shares + 1))
		return code;
	code = follow_uses(f, d, job->fixed, job->nfixed, &private);
	if (!code)
		code = follow_uses(f, d, job->uses, job->nuses, &private);
	if (!code && private && job->private_at)
		atomic_store_explicit(job->private_at, shares + 1, memory_order_relaxed);
	return code;
}

/* ---- A turn ---- */

enum step {
	STEP_DONE,
	STEP_LATER,
	STEP_GROW,
	STEP_HOST, /* wait for the producers on the host */
	STEP_FAIL,
};

struct turn {
	const struct rig_rt_job *job;
	struct follow follow;
	uint64_t bits; /* STEP_DONE: the point */
	uint64_t seen; /* STEP_LATER: the word before room was asked */
	int code;      /* STEP_FAIL */
	bool lost;     /* this turn lost the device */
};

static inline void stamp(const struct rig_rt_use *uses, uint32_t n, uint64_t bits)
{
	for (; n; n--, uses++) {
		atomic_store_explicit(uses->stamp, bits, memory_order_release);
		atomic_store_explicit(uses->last, bits, memory_order_release);
	}
}

/* Nothing between the value and the end of the turn can fail without losing the device. */
static inline enum step hand_over(struct turn *t, bool blocks)
{
	const struct rig_rt_job *job = t->job;
	struct rig_device *d = job->device;
	struct rig_rt_slot *slot = rig_rt_slot(d);
	uint64_t value = atomic_load_explicit(&slot->submitted, memory_order_relaxed) + 1;
	struct rig_rt_record *record = d->attached ? rig_rt_record_make(job, value) : NULL;
	const char *failure = NULL;
	int answer;

	rig_rt_hook(RT_HOOK_RECORDED, d);
	t->bits = rig_rt_bits(d->slot, value);
	/* What the value leaves behind, whatever submit answers: before the call, so that memory is never
	   seen unused while its work is under way. */
	stamp(job->fixed, job->nfixed, t->bits);
	stamp(job->uses, job->nuses, t->bits);
	if (job->last)
		atomic_store_explicit(job->last, value, memory_order_release);
	atomic_store_explicit(&slot->submitted, value, memory_order_release);
	if (blocks)
		rig_rt_hot_begin(d);
	answer = d->hot->submit(d->edge, value, job->parts, job->nparts, t->follow.waits, t->follow.n,
	        job->run, job->scratch, record ? &record->times : NULL, &failure);
	if (blocks)
		rig_rt_hot_end(d);
	if (answer == RIG_COMMITTED)
		atomic_store_explicit(&slot->committed, value, memory_order_release);
	else if (answer != RIG_OK)
		t->lost = rig_rt_lose_locked(d,
		        answer == RIG_FAILED && failure
		                ? failure
		                : "the driver's submit gave no answer of the contract",
		        true);
	if (record)
		t->lost |= rig_rt_record_handed(d, record);
	return !t->lost && (!blocks || rig_rt_life_of(d) == RT_LIVE) ? STEP_DONE : STEP_FAIL;
}

/* The work does not fit now. */
__attribute__((cold)) static enum step not_now(struct turn *t, int answer)
{
	struct rig_device *d = t->job->device;
	const char *why = rig_error();

	if (answer == RIG_LATER)
		return STEP_LATER;
	if (answer == RIG_GROW)
		return STEP_GROW;
	if (answer == RIG_NEVER)
		t->code = rig_error_set(
		        -EINVAL, "%s never runs this: %s", d->name, why[0] ? why : "it exceeds its queues");
	else if (answer < 0 && answer > RIG_FAULT)
		t->code = answer; /* an error of this work alone, with its text */
	else
		t->lost = rig_rt_lose_locked(d, "the driver's room gave no answer of the contract", true);
	return STEP_FAIL;
}

static enum step take_turn(struct turn *t)
{
	const struct rig_rt_job *job = t->job;
	struct rig_device *d = job->device;
	const bool blocks = d->facts.may_block; /* else the device is not lost beside the turn */
	enum step step = STEP_FAIL;
	int answer;

	rig_rt_lock(&d->lock);
	if (__builtin_expect(!rig_rt_turn_take(d), 0)) {
		rig_rt_unlock(&d->lock);
		return STEP_FAIL;
	}
	rig_rt_hook(RT_HOOK_TURN, d);
	t->seen = rig_rt_word(d->slot);
	if (blocks)
		rig_rt_hot_begin(d);
	answer = d->hot->room(d->edge, job->parts, job->nparts, t->follow.n, job->run, job->scratch);
	if (blocks)
		rig_rt_hot_end(d);
	if (__builtin_expect(answer != RIG_FITS, 0)) {
		step = not_now(t, answer);
	} else if (!blocks || rig_rt_life_of(d) == RT_LIVE) {
		if (t->follow.n)
			t->code = rig_rt_needs_add(d, t->follow.bits, t->follow.n);
		if (__builtin_expect(!t->code, 1))
			step = hand_over(t, blocks);
		else if (t->code == -EAGAIN)
			step = STEP_HOST;
	}
	rig_rt_turn_give(d);
	return step;
}

/* ---- What keeps it back ---- */

static int grow(struct rig_device *d, const struct rig_rt_job *job, uint32_t nwaits)
{
	const char *fault = NULL;
	uint64_t missing = 0;
	unsigned round;
	int code;

	for (round = 0; round < RT_ROUNDS; round++) {
		code = rig_rt_enter(d);
		if (code)
			return code;
		code = rig_rt_leave_with(d,
		        d->module->grow(d->handle, job->parts, job->nparts, nwaits, &missing, &fault),
		        &fault);
		if (code == RIG_GROWN || code < 0)
			return code;
		code = rig_rt_reclaim(d, round, RT_SHORT_QUEUES);
		if (code && code != -ENOMEM)
			return code;
	}
	return rig_error_set(-ENOMEM, "%s: its queues need %llu bytes more to take this submission", d->name,
	        (unsigned long long)missing);
}

/* Waits, without the lock and the turn, until one more value than `seen` is reached. */
static int await_room(struct rig_device *d, uint64_t seen)
{
	rig_rt_hook(RT_HOOK_LATER, d);
	if (seen >= rig_rt_submitted(d)) {
		rig_rt_lose(d, "room answered RIG_LATER while no work was under way", true);
		return rig_rt_lost_error(d);
	}
	return rig_rt_wait_value(d, seen + 1);
}

static int wait_on_host(struct follow *f)
{
	uint32_t i;
	int code = 0;

	for (i = 0; i < f->n && !code; i++)
		code = rig_rt_wait_bits(f->bits[i]);
	f->n = 0;
	return code;
}

static int fail(struct turn *t)
{
	struct rig_device *d = t->job->device;

	if (t->lost) {
		rig_rt_failure_note(d->name, d->dead->reason);
		rig_rt_lose_finish(d);
	}
	/* Its own loss, unless the turn said something else. */
	return (t->code == RIG_LOST || !t->code) && !rig_rt_is_live(d) ? rig_rt_lost_error(d) : t->code;
}

/* 0 to try again. */
static int overcome(struct turn *t, enum step step, unsigned *growths)
{
	struct rig_device *d = t->job->device;

	switch (step) {
	case STEP_LATER:
		return await_room(d, t->seen);
	case STEP_GROW:
		if ((*growths)++ == MOST_GROWTHS)
			rig_rt_lose(d, "room asks for growth again and again", true);
		return grow(d, t->job, t->follow.n);
	case STEP_HOST:
		t->code = 0;
		return wait_on_host(&t->follow);
	default:
		return fail(t);
	}
}

int rig_rt_submit(
        const struct rig_rt_job *job, const struct rig_point *waits, uint32_t nwaits, struct rig_point *point)
{
	struct turn turn;
	unsigned growths = 0;
	enum step step;
	int code;

	if (rig_rt_forked())
		return rig_rt_lost_error(job->device);
	turn.job = job;
	turn.code = 0;
	turn.lost = false;
	code = collect(&turn.follow, job, waits, nwaits);
	while (!code) {
		step = take_turn(&turn);
		if (__builtin_expect(step == STEP_DONE, 1)) {
			if (point)
				point->bits = turn.bits;
			return 0;
		}
		code = overcome(&turn, step, &growths);
	}
	return code;
}
