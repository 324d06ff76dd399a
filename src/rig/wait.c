/* SPDX-License-Identifier: MIT */
#include "rt.h"

/* A wait reads the word so long before it asks the driver to sleep: about a round trip to a device. */
#define SPIN_NS 4000u
/* Reads of the word between two looks at the clock. */
#define SPIN_READS 32u
/* A device that left moves its word no more, so that few questions are answered by its progress instead. */
#define ASKS 16u
/* Of a program that polls for one point: looks between two at the clock, and until the driver is asked. */
#define POLLS_A_CLOCK 8u
#define POLLED_NS     (100 * RT_NS_PER_MS)

bool rig_rt_turn_take_slow(struct rig_device *d)
{
	while (d->turn && rig_rt_life_of(d) == RT_LIVE) {
		rig_rt_hook(RT_HOOK_TURN_WAITS, d);
		rig_rt_await(&d->changed, &d->lock, 0);
	}
	if (rig_rt_life_of(d) != RT_LIVE)
		return false;
	if (d->facts.may_block) {
		d->turn = true;
		d->inflight++;
	}
	return true;
}

/* Also after a loss meanwhile: the counted call ends, so a stop that is owed runs at the caller's leave. */
void rig_rt_turn_give_slow(struct rig_device *d)
{
	d->turn = false;
	rig_rt_notify(&d->changed);
	rig_rt_leave_locked(d);
}

static uint64_t committed_of(const struct rig_device *d)
{
	return atomic_load_explicit(&rig_rt_slot(d)->committed, memory_order_acquire);
}

/* With the turn. True: the device was lost by it. */
static bool commit_now(struct rig_device *d, uint64_t value)
{
	const char *failure = NULL;
	int answer;

	rig_rt_hook(RT_HOOK_COMMIT, d);
	rig_rt_hot_begin(d);
	answer = d->hot->commit(d->edge, value, &failure);
	rig_rt_hot_end(d);
	if (answer == RIG_OK) {
		if (committed_of(d) < value)
			atomic_store_explicit(&rig_rt_slot(d)->committed, value, memory_order_release);
		return false;
	}
	if (answer != RIG_FAILED || !failure)
		failure = "the driver's commit gave no answer of the contract";
	return rig_rt_lose_locked(d, failure, true);
}

int rig_rt_commit(struct rig_device *d, uint64_t value)
{
	bool lost;

	if (committed_of(d) >= value)
		return 0;
	if (rig_rt_forked())
		return rig_rt_lost_error(d);
	rig_rt_lock(&d->lock);
	if (!rig_rt_turn_take(d)) {
		rig_rt_unlock(&d->lock);
		return rig_rt_lost_error(d);
	}
	lost = rig_rt_life_of(d) == RT_LIVE && committed_of(d) < value && commit_now(d, value);
	rig_rt_turn_give(d);
	if (!lost)
		return 0;
	rig_rt_failure_note(d->name, d->dead->reason);
	rig_rt_lose_finish(d);
	return rig_rt_lost_error(d);
}

uint64_t rig_rt_progress(struct rig_device *d)
{
	const char *fault = NULL;
	uint64_t value = 0;
	int answer;

	if (!d->own_word || rig_rt_enter(d))
		return rig_rt_word(d->slot);
	answer = d->module->signaled(d->handle, &value, &fault);
	if (answer == 0)
		rig_word_raise(&rig_rt_words[d->slot], value);
	(void)rig_rt_leave_with(d, answer, &fault);
	return rig_rt_word(d->slot);
}

/* Only where work writes the word by itself: a driver that must run to write it gets the time instead. */
static bool spin_for(const struct rig_device *d, uint64_t value)
{
	uint64_t end;
	unsigned i;

	if (d->facts.completion != RIG_STORE || d->own_word)
		return false;
	end = rig_now_ns() + SPIN_NS;
	do {
		for (i = 0; i < SPIN_READS; i++) {
			if (rig_rt_word(d->slot) >= value)
				return true;
			rig_rt_pause();
		}
	} while (rig_now_ns() < end);
	return false;
}

/* A driver asked to wait for nothing tells a fault, unless the word moved meanwhile. */
int rig_rt_ask(struct rig_device *d)
{
	const char *fault = NULL;
	unsigned i;
	int code = 0;

	for (i = 0; i < ASKS && !code; i++) {
		uint64_t seen = rig_rt_word(d->slot);

		code = rig_rt_enter(d);
		if (!code)
			code = rig_rt_leave_with(d, d->module->sleep(d->handle, seen, 0, &fault), &fault);
		if (rig_rt_word(d->slot) == seen)
			break;
	}
	return code;
}

/* One sleep in the driver. An answer but 0 means a lost device, which the caller's next look tells. */
static int sleep_once(struct rig_device *d, uint64_t seen)
{
	const char *fault = NULL;
	uint64_t still = rig_rt_hang_check(d);
	int code = rig_rt_enter(d);

	if (code)
		return code;
	return rig_rt_leave_with(d, d->module->sleep(d->handle, seen, still, &fault), &fault);
}

/* Where the work is: a queue that waits for another device stands still until that one's word moves, and
   only its own driver tells that it never will. */
static void sleep_at_holder(struct rig_device *d, uint64_t seen, uint64_t turn)
{
	struct rig_device *holder = rig_rt_holder(d, turn, &seen);

	(void)sleep_once(holder ? holder : d, seen);
	rig_rt_visit_end(holder);
}

int rig_rt_wait_value(struct rig_device *d, uint64_t value)
{
	uint64_t bits = rig_rt_bits(d->slot, value), seen, turn = 0;
	bool spun = false;

	/* Not this device's, but of an earlier one in its slot, which may have been lost. */
	if (value <= d->base)
		return 0;
	for (;;) {
		seen = rig_rt_progress(d);
		switch (rig_rt_point_state(bits)) {
		case RT_REACHED:
			return 0;
		case RT_LOST:
			return rig_rt_point_lost(bits);
		case RT_NO_POINT:
			return rig_error_set(-EINVAL,
			        "value %llu of %s was never submitted; the last one is %llu",
			        (unsigned long long)value, d->name, (unsigned long long)rig_rt_submitted(d));
		case RT_PENDING:
			break;
		}
		if (rig_rt_forked())
			return rig_rt_lost_error(d);
		if (rig_rt_commit(d, value))
			continue;
		if (!spun && spin_for(d, value))
			continue;
		spun = true;
		sleep_at_holder(d, seen, turn++);
	}
}

int rig_rt_wait_slow(uint64_t bits)
{
	struct rig_device *d;
	int code;

	switch (rig_rt_point_state(bits)) {
	case RT_REACHED:
		return 0;
	case RT_LOST:
		return rig_rt_point_lost(bits);
	case RT_NO_POINT:
		return rig_error_set(-EINVAL, "no such point: slot %u, value %llu", rig_rt_slot_of(bits),
		        (unsigned long long)rig_rt_value_of(bits));
	case RT_PENDING:
		break;
	}
	d = rig_rt_point_device(bits);
	/* It stopped meanwhile, so the point is judged now. */
	if (!d)
		return rig_rt_point_state(bits) == RT_REACHED ? 0 : rig_rt_point_lost(bits);
	code = rig_rt_wait_value(d, rig_rt_value_of(bits));
	rig_rt_visit_end(d);
	return code;
}

int rig_wait(struct rig_point point)
{
	return rig_rt_wait_bits(point.bits);
}

int rig_wait_device(struct rig_device *device, uint64_t value)
{
	int code = rig_rt_given(device, "device");

	if (code)
		return code;
	if (value > rig_rt_submitted(device))
		return rig_error_set(-EINVAL, "value %llu of %s was never submitted; the last one is %llu",
		        (unsigned long long)value, device->name,
		        (unsigned long long)rig_rt_submitted(device));
	return rig_rt_wait_value(device, value);
}

/* Whether this thread has polled for the same point so long that the device may have faulted: a word that
   stands still does not tell. */
static bool polled_long(uint64_t bits)
{
	static _Thread_local uint64_t of, since;
	static _Thread_local unsigned looks;
	uint64_t now;

	if (of == bits && ++looks % POLLS_A_CLOCK)
		return false;
	now = rig_now_ns();
	if (of == bits && now - since < POLLED_NS)
		return false;
	since = now;
	if (of == bits)
		return true;
	of = bits;
	return false;
}

/* Who polls is told what who waits is told, later. */
static void ask_at_holder(struct rig_device *d)
{
	static _Thread_local uint64_t turn;
	uint64_t seen;
	struct rig_device *holder = rig_rt_holder(d, turn++, &seen);

	(void)rig_rt_ask(holder ? holder : d);
	rig_rt_visit_end(holder);
}

static void ask_for(uint64_t bits)
{
	const bool own =
	        atomic_load_explicit(&rig_rt_slots[rig_rt_slot_of(bits)].flags, memory_order_relaxed) &
	        RT_SLOT_OWN;
	const bool asks = polled_long(bits);
	struct rig_device *d;

	if (!own && !asks)
		return;
	d = rig_rt_point_device(bits);
	if (d && own)
		(void)rig_rt_progress(d);
	if (d && asks)
		ask_at_holder(d);
	rig_rt_visit_end(d);
}

int rig_reached(struct rig_point point)
{
	enum rig_rt_state state = rig_rt_point_state(point.bits);

	if (state == RT_PENDING) {
		ask_for(point.bits);
		state = rig_rt_point_state(point.bits);
	}
	if (state == RT_LOST)
		return rig_rt_point_lost(point.bits);
	if (state == RT_NO_POINT)
		return rig_error_set(-EINVAL, "no such point: slot %u, value %llu",
		        rig_rt_slot_of(point.bits), (unsigned long long)rig_rt_value_of(point.bits));
	return state == RT_REACHED;
}

uint64_t rig_signaled(struct rig_device *device)
{
	uint64_t word;

	if (!rig_rt_is_live(device)) {
		word = rig_rt_life_of(device) == RT_LIVE ? rig_rt_word(device->slot) : device->dead->reached;
		return word;
	}
	(void)rig_rt_commit(device, rig_rt_submitted(device));
	word = rig_rt_progress(device);
	return rig_rt_is_live(device) ? word : device->dead->reached;
}
