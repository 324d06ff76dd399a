/* SPDX-License-Identifier: MIT */
#include "profile.h"

/* A driver that answers RIG_GROW again and again after growth breaks the contract. */
#define MOST_GROWTHS 16u

/* The points of other devices that a submit follows, at most one a producer. */
struct follow {
	uint32_t n;
	struct rig_wait waits[RT_WAITS];
	uint64_t bits[RT_WAITS];
};

/* Whether the device's queues wait for the producer (rig-behaviour 1.5). */
static bool waits_in_queue(const struct rig_device *d, uint32_t flags)
{
	if (flags & RT_SLOT_OWN)
		return false;
	return flags & RT_SLOT_STORE ? d->facts.waits.stores : d->facts.waits.hosts;
}

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

static bool add(struct follow *f, uint64_t bits)
{
	uint32_t slot = rig_rt_slot_of(bits), i;

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
static int follow_pending(struct follow *f, const struct rig_device *d, uint64_t bits)
{
	uint32_t flags =
	        atomic_load_explicit(&rig_rt_slots[rig_rt_slot_of(bits)].flags, memory_order_acquire);
	int code;

	if (!waits_in_queue(d, flags))
		return rig_rt_wait_bits(bits);
	code = commit_producer(bits);
	if (code)
		return code;
	return add(f, bits) ? 0 : rig_rt_wait_bits(bits);
}

static int follow_point(struct follow *f, const struct rig_device *d, uint64_t bits)
{
	if (!rig_rt_value_of(bits))
		return 0;
	switch (rig_rt_point_state(bits)) {
	case RT_REACHED:
		return 0;
	case RT_PENDING:
		/* The device's own order covers its earlier work. */
		return rig_rt_slot_of(bits) == d->slot ? 0 : follow_pending(f, d, bits);
	case RT_LOST:
		return rig_rt_point_lost(bits);
	case RT_NO_POINT:
		break;
	}
	return rig_error_set(-EINVAL, "no such point: slot %u, value %llu", rig_rt_slot_of(bits),
	        (unsigned long long)rig_rt_value_of(bits));
}

/* No point, or earlier work of the device itself, which its own order covers. */
static inline bool is_own(const struct rig_device *d, uint64_t bits)
{
	return !bits || (rig_rt_slot_of(bits) == d->slot && rig_rt_value_of(bits) > d->base);
}

static inline int follow_stamp(struct follow *f, const struct rig_device *d, uint64_t bits)
{
	if (is_own(d, bits) || rig_rt_is_reached(rig_rt_words_now(), bits))
		return 0;
	return follow_point(f, d, bits);
}

static int follow_uses(struct follow *f, const struct rig_device *d, const struct rig_rt_mem *mem)
{
	const struct rig_rt_uses *uses = &mem->uses;
	unsigned i;
	int code;

	for (; uses; uses = atomic_load_explicit(&uses->next, memory_order_acquire))
		for (i = 0; i < RT_USES; i++) {
			uint64_t bits = atomic_load_explicit(&uses->word[i], memory_order_acquire);

			if (!bits)
				return 0;
			code = follow_stamp(f, d, bits);
			if (code)
				return code;
		}
	return 0;
}

/* A read follows the last write, a write every use. */
static int follow_memory(
        struct follow *f, const struct rig_device *d, const struct rig_rt_use *uses, uint32_t n)
{
	uint32_t i;
	int code = 0;

	for (i = 0; i < n && !code; i++) {
		const struct rig_rt_mem *mem = uses[i].mem;

		if (!mem)
			continue;
		if (mem->owner != d && !rig_rt_is_live(mem->owner))
			return rig_rt_lost_error(mem->owner);
		code = follow_stamp(f, d, atomic_load_explicit(&mem->write, memory_order_acquire));
		if (!code && uses[i].write)
			code = follow_uses(f, d, mem);
	}
	return code;
}

static bool are_private(const struct rig_device *d, const struct rig_rt_use *uses, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		const struct rig_rt_mem *mem = uses[i].mem;

		if (mem && (mem->owner != d || atomic_load_explicit(&mem->shared, memory_order_relaxed)))
			return false;
	}
	return true;
}

/* Memory that no other device ever mapped has been used by this one alone, whose order covers it. */
static int follow_job(struct follow *f, const struct rig_rt_job *job, uint64_t shares)
{
	const struct rig_device *d = job->device;
	int code;

	if (job->private_at && are_private(d, job->fixed, job->nfixed) &&
	        are_private(d, job->uses, job->nuses)) {
		atomic_store_explicit(job->private_at, shares + 1, memory_order_relaxed);
		return 0;
	}
	code = follow_memory(f, d, job->fixed, job->nfixed);
	return code ? code : follow_memory(f, d, job->uses, job->nuses);
}

static int follow_points(
        struct follow *f, const struct rig_device *d, const struct rig_point *waits, uint32_t nwaits)
{
	rig_atomic_u64 *words = rig_rt_words_now();
	const struct rig_point *end = waits + nwaits;
	int code;

	for (; waits < end; waits++) {
		if (__builtin_expect(rig_rt_is_reached(words, waits->bits), 1))
			continue;
		code = follow_point(f, d, waits->bits);
		if (code)
			return code;
	}
	return 0;
}

static inline int collect(
        struct follow *f, const struct rig_rt_job *job, const struct rig_point *waits, uint32_t nwaits)
{
	uint64_t shares = atomic_load_explicit(&job->device->shares, memory_order_acquire);
	int code;

	f->n = 0;
	if (nwaits) {
		code = follow_points(f, job->device, waits, nwaits);
		if (code)
			return code;
	}
	if (job->private_at && atomic_load_explicit(job->private_at, memory_order_relaxed) == shares + 1)
		return 0;
	return follow_job(f, job, shares);
}

/* What needs no turn: `plain` is the device's, a constant where these functions are inlined. */

__attribute__((always_inline)) static inline int ask_room(
        struct rig_device *d, const struct rig_rt_job *job, uint32_t nwaits, bool plain)
{
	int answer;

	if (!plain)
		rig_rt_hot_begin(d);
	answer = d->hot->room(d->edge, job->parts, job->nparts, nwaits, job->run, job->scratch);
	if (!plain)
		rig_rt_hot_end(d);
	return answer;
}

static inline void stamp_uses(const struct rig_rt_use *uses, uint32_t n, uint64_t bits)
{
	for (; n; n--, uses++) {
		atomic_store_explicit(uses->stamp, bits, memory_order_release);
		atomic_store_explicit(uses->last, bits, memory_order_release);
	}
}

/* What a value leaves behind, whatever submit answered: it was handed over, or the device is lost. */
static inline void stamp(const struct rig_rt_job *job, uint64_t bits)
{
	stamp_uses(job->fixed, job->nfixed, bits);
	stamp_uses(job->uses, job->nuses, bits);
	if (job->last)
		atomic_store_explicit(job->last, rig_rt_value_of(bits), memory_order_release);
}

/* With the lock. Answers true: the device was lost. */
static bool lose_submit(struct rig_device *d, int answer, const char *failure)
{
	return rig_rt_lose_locked(d,
	        answer == RIG_FAILED && failure ? failure
	                                        : "the driver's submit gave no answer of the contract",
	        true);
}

/* Nothing between the value and the end of the turn can fail without losing the device. */
__attribute__((always_inline)) static inline bool hand_over(struct rig_device *d,
        const struct rig_rt_job *job, const struct follow *f, uint64_t *bits, bool plain)
{
	struct rig_rt_slot *slot = rig_rt_slot(d);
	uint64_t value = atomic_load_explicit(&slot->submitted, memory_order_relaxed) + 1;
	struct rig_rt_record *record = plain ? NULL : rig_rt_record_make(d, job, value);
	const char *failure = NULL;
	bool lost = false;
	int answer;

	rig_rt_hook(RT_HOOK_RECORDED, d);
	*bits = rig_rt_bits(d->slot, value);
	/* Before the call, so that memory is never seen unused while its work is under way. */
	stamp(job, *bits);
	atomic_store_explicit(&slot->submitted, value, memory_order_release);
	if (!plain)
		rig_rt_hot_begin(d);
	answer = d->hot->submit(d->edge, value, job->parts, job->nparts, f->waits, f->n, job->run,
	        job->scratch, record ? &record->times : NULL, &failure);
	if (!plain)
		rig_rt_hot_end(d);
	if (answer == RIG_COMMITTED)
		atomic_store_explicit(&slot->committed, value, memory_order_release);
	else if (answer != RIG_OK)
		lost = lose_submit(d, answer, failure);
	return record && rig_rt_record_handed(d, record) ? true : lost;
}

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

__attribute__((cold)) static int never(struct rig_device *d)
{
	const char *why = rig_error();

	return rig_error_set(
	        -EINVAL, "%s never runs this: %s", d->name, why[0] ? why : "it exceeds its queues");
}

enum step {
	STEP_DONE,
	STEP_LATER,
	STEP_GROW,
	STEP_HOST, /* wait for the producers on the host */
	STEP_FAIL,
};

struct turn {
	const struct rig_rt_job *job;
	const struct follow *follow;
	uint64_t bits; /* STEP_DONE: the point */
	uint64_t seen; /* STEP_LATER: the word before room was asked */
	int code;      /* STEP_FAIL */
	bool lost;     /* this turn lost the device */
};

/* The rest of a turn in which the work does not fit now. */
static enum step not_now(struct turn *t, int answer)
{
	struct rig_device *d = t->job->device;

	switch (answer) {
	case RIG_LATER:
		return STEP_LATER;
	case RIG_GROW:
		return STEP_GROW;
	case RIG_NEVER:
		t->code = never(d);
		break;
	default:
		t->lost = rig_rt_lose_locked(d, "the driver's room gave no answer of the contract", true);
		t->code = RIG_LOST;
	}
	return STEP_FAIL;
}

static enum step end_turn(struct turn *t, enum step step)
{
	struct rig_device *d = t->job->device;

	if (step == STEP_DONE && rig_rt_life_of(d) != RT_LIVE) {
		step = STEP_FAIL;
		t->code = RIG_LOST;
	}
	rig_rt_turn_give(d);
	if (t->lost) {
		rig_rt_failure_note(d->name, d->dead->reason);
		rig_rt_lose_finish(d);
	}
	if (step == STEP_FAIL && t->code == RIG_LOST && !rig_rt_is_live(d))
		(void)rig_rt_lost_error(d);
	return step;
}

/* A turn of a driver that may block, under a profile, or of a device that is lost. */
__attribute__((noinline)) static enum step take_full_turn(struct turn *t)
{
	struct rig_device *d = t->job->device;
	enum step step = STEP_FAIL;
	int answer;

	if (!rig_rt_turn_take(d)) {
		rig_rt_unlock(&d->lock);
		t->code = rig_rt_lost_error(d);
		return STEP_FAIL;
	}
	rig_rt_hook(RT_HOOK_TURN, d);
	t->seen = rig_rt_word(d->slot);
	answer = ask_room(d, t->job, t->follow->n, false);
	if (answer != RIG_FITS)
		return end_turn(t, not_now(t, answer));
	t->code = rig_rt_life_of(d) == RT_LIVE ? rig_rt_needs_add(d, t->follow->bits, t->follow->n)
	                                       : rig_rt_lost_error(d);
	if (t->code == -EAGAIN)
		step = STEP_HOST;
	if (!t->code) {
		t->lost = hand_over(d, t->job, t->follow, &t->bits, false);
		step = STEP_DONE;
	}
	return end_turn(t, step);
}

static inline enum step take_turn(struct turn *t)
{
	struct rig_device *d = t->job->device;
	int answer;

	rig_rt_lock(&d->lock);
	if (__builtin_expect(!d->plain, 0))
		return take_full_turn(t);
	rig_rt_hook(RT_HOOK_TURN, d);
	t->seen = rig_rt_word(d->slot);
	answer = ask_room(d, t->job, t->follow->n, true);
	if (__builtin_expect(answer != RIG_FITS, 0))
		return end_turn(t, not_now(t, answer));
	if (t->follow->n) {
		t->code = rig_rt_needs_add(d, t->follow->bits, t->follow->n);
		if (t->code)
			return end_turn(t, t->code == -EAGAIN ? STEP_HOST : STEP_FAIL);
	}
	t->lost = hand_over(d, t->job, t->follow, &t->bits, true);
	if (__builtin_expect(t->lost, 0))
		return end_turn(t, STEP_DONE);
	rig_rt_unlock(&d->lock);
	return STEP_DONE;
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

/* What keeps the work from being handed over now: 0 to try again. */
static int overcome(struct turn *t, struct follow *follow, enum step step, unsigned *growths)
{
	struct rig_device *d = t->job->device;

	switch (step) {
	case STEP_LATER:
		return await_room(d, t->seen);
	case STEP_GROW:
		if ((*growths)++ == MOST_GROWTHS)
			rig_rt_lose(d, "room asks for growth again and again", true);
		return grow(d, t->job, follow->n);
	case STEP_HOST:
		return wait_on_host(follow);
	default:
		return t->code;
	}
}

int rig_rt_submit(
        const struct rig_rt_job *job, const struct rig_point *waits, uint32_t nwaits, struct rig_point *point)
{
	struct follow follow;
	struct turn turn;
	unsigned growths = 0;
	enum step step;
	int code;

	if (rig_rt_forked())
		return rig_rt_lost_error(job->device);
	turn.job = job;
	turn.follow = &follow;
	turn.code = 0;
	turn.lost = false;
	code = collect(&follow, job, waits, nwaits);
	while (!code) {
		step = take_turn(&turn);
		if (__builtin_expect(step == STEP_DONE, 1)) {
			if (point)
				point->bits = turn.bits;
			return 0;
		}
		code = overcome(&turn, &follow, step, &growths);
	}
	return code;
}
