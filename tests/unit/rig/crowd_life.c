/* SPDX-License-Identifier: MIT */
/* Devices: what a crowd's thread asks of them, opens and profiles. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "crowd.h"

/* ---- Facts, which any device answers ---- */

static void check_facts(struct crowd *t, struct rig_device *d, enum crowd_seat seat)
{
	const struct rig_facts *facts = rig_device_facts(d);
	const struct rig_queue *queues;
	uint32_t n;

	queues = rig_queues(d, &n);
	if (!rig_name(d)[0] || !rig_arch(d) || queues != facts->queues || n != facts->nqueues ||
	        (n == 0) != (seat == CROWD_IO))
		(void)crowd_wrong(t, "the facts of %s are others", rig_name(d));
	if (facts->bus != rig_bus(d) || rig_cache_bytes(d) < 0)
		(void)crowd_wrong(t, "%s has another bus or cache", rig_name(d));
	if (rig_capability(d, &t->w->other_key))
		(void)crowd_wrong(t, "%s has a record under a key of nobody's", rig_name(d));
}

static void op_facts(struct crowd *t)
{
	enum crowd_seat seat = (enum crowd_seat)crowd_random(t, CROWD_SEATS);
	struct rig_device *d;
	struct opening *o = crowd_take(t, seat, &d);
	bool ended = atomic_load(&o->ended), ending;
	const char *reason = NULL, *failure = rig_failure();
	bool lost = rig_lost(d, &reason);

	ending = atomic_load(&o->ending);
	check_facts(t, d, seat);
	if ((lost && !ending) || (ended && !lost) || (lost && !reason[0]))
		(void)crowd_wrong(t, "%s: lost %d, closing %d, closed %d", rig_name(d), lost, ending, ended);
	/* The first failure stays the failure. */
	if (failure && rig_failure() != failure)
		(void)crowd_wrong(t, "the failure became another");
	rig_device_put(d);
}

static void op_values(struct crowd *t)
{
	struct rig_device *d;
	struct opening *o = crowd_take(t, (enum crowd_seat)crowd_random(t, CROWD_SEATS), &d);
	uint64_t latest = atomic_load(&o->latest), signaled = rig_signaled(d), submitted = rig_submitted(d);

	if (signaled > submitted || submitted < latest)
		(void)crowd_wrong(t, "%s: signaled %" PRIu64 ", submitted %" PRIu64 ", latest %" PRIu64,
		        rig_name(d), signaled, submitted, latest);
	if (rig_submitted(d) < submitted || (!rig_lost(d, NULL) && rig_signaled(d) < signaled))
		(void)crowd_wrong(t, "%s: values go back", rig_name(d));
	rig_device_put(d);
}

/* The budget is one that all fits in, so that no thread is refused. */
static void op_memory(struct crowd *t)
{
	struct rig_device *d;
	uint64_t cached, held;

	(void)crowd_take(t, (enum crowd_seat)crowd_random(t, CROWD_SEATS), &d);
	held = rig_held_bytes(d, &cached);
	if (cached > held)
		(void)crowd_wrong(t, "%s: %" PRIu64 " cached of %" PRIu64, rig_name(d), cached, held);
	if (crowd_random(t, 2))
		rig_set_budget(d, rig_budget(d));
	else
		rig_cache_trim(d, crowd_random(t, 4) * CROWD_PAGE);
	rig_device_put(d);
}

static void op_devices(struct crowd *t)
{
	struct rig_device *all[4 * CROWD_SEATS];
	size_t i, n = rig_devices(all, 4 * CROWD_SEATS);

	if (!t->w->fails && n < CROWD_SEATS - 2)
		(void)crowd_wrong(t, "only %zu devices are open", n);
	for (i = 0; i < n && i < 4 * CROWD_SEATS; i++)
		rig_device_put(all[i]);
	rig_code_sync();
}

/* ---- Io ---- */

static void use_io(struct crowd *t, struct cell *cell, void *region)
{
	const struct rig_key *key = t->w->io.module->key;
	uint8_t bytes[CROWD_BYTES];

	if (rig_buffer_io_region(cell->buffer, key) != region ||
	        rig_buffer_io_region(cell->buffer, &t->w->other_key))
		(void)crowd_wrong(t, "the region of a buffer is another");
	crowd_bytes(t, cell->bytes, CROWD_BYTES);
	(void)rig_buffer_prefetch(cell->buffer, 0, CROWD_BYTES);
	if (crowd_cell_ok(t, cell, rig_buffer_write(cell->buffer, 0, cell->bytes, CROWD_BYTES), "write") &&
	        crowd_cell_ok(t, cell, rig_buffer_read(cell->buffer, 0, bytes, CROWD_BYTES), "read"))
		crowd_compare(t, cell, bytes, 0, CROWD_BYTES);
	crowd_cell_drop(cell);
}

/* An open file of the library's, so to speak. */
static void op_of_io(struct crowd *t)
{
	const struct rig_io_module *module = t->w->io.module;
	struct rig_device *d;
	struct opening *o = crowd_take(t, CROWD_IO, &d);
	struct cell cell = {.deps = {o}, .ndeps = 1};
	const char *fault = NULL;
	void *region;

	(void)module->alloc(NULL, CROWD_BYTES, &region, &fault);
	if (rig_buffer_of_io(d, &t->w->other_key, region, CROWD_BYTES, &cell.buffer) != -EINVAL)
		(void)crowd_wrong(t, "a region of another library's became a buffer");
	if (crowd_ok(t, rig_buffer_of_io(d, module->key, region, CROWD_BYTES, &cell.buffer),
	            "rig_buffer_of_io", &o, 1))
		use_io(t, &cell, region);
	else
		(void)module->free(NULL, region, &fault);
	rig_device_put(d);
}

/* ---- Opening ---- */

static void use_opened(struct crowd *t, struct rig_device *d)
{
	struct rig_description description = {.version = RIG_EDGE_VERSION};
	struct rig_submission *s = NULL;
	struct rig_buffer *buffer = NULL;
	struct rig_point point;
	int code = rig_submission_make(d, &description, &s);

	if (!code)
		code = rig_submit(s, NULL, NULL, 0, &point);
	if (!code)
		code = rig_wait(point);
	if (!code)
		code = rig_buffer_create(d, RIG_DEVICE, CROWD_BYTES, &buffer);
	if (code && !(t->w->fails && code == RIG_LOST))
		(void)crowd_wrong(t, "a device just opened: %d, %s", code, rig_error());
	rig_submission_put(s);
	rig_buffer_put(buffer);
	if (rig_close(d) || !rig_lost(d, NULL))
		(void)crowd_wrong(t, "a device does not close");
	if (!code && rig_wait(point))
		(void)crowd_wrong(t, "a point that was reached is no more");
	rig_device_put(d);
}

static void try_open(struct crowd *t, const struct rig_opener *opener, bool busy)
{
	struct rig_open_options options = {.version = RIG_EDGE_VERSION, .hang_ms = -1};
	struct rig_device *d;
	int code = crowd_random(t, 2) ? rig_open(opener, &d) : rig_open_with(opener, &options, &d);

	if (!code)
		use_opened(t, d);
	else if (!(busy && code == -EBUSY) && !(t->w->fails && (code == -ECANCELED || code == RIG_LOST)))
		(void)crowd_wrong(t, "an open of %s answered %d: %s", opener->name, code, rig_error());
}

static void op_open(struct crowd *t)
{
	struct rig_opener opener;

	switch (crowd_random(t, 3)) {
	case 0:
		try_open(t, polled_opener(t->w->own[t->index]), false);
		break;
	case 1:
		/* All open and close this name. */
		try_open(t, polled_opener(t->w->common), true);
		break;
	default:
		rig_host_opener(t->w->host_names[t->index], &opener);
		try_open(t, &opener, false);
	}
}

/* ---- Profiles ---- */

static bool is_in_order(const struct rig_event *events, size_t n)
{
	size_t i, k;

	for (i = 0; i < n; i++) {
		if (events[i].kind == RIG_EVENT_SPAN && events[i].start > events[i].end)
			return false;
		/* The one before of the device's queue. */
		for (k = i; events[i].kind == RIG_EVENT_SPAN && k-- > 0;)
			if (events[k].kind == RIG_EVENT_SPAN && events[k].device == events[i].device &&
			        events[k].queue == events[i].queue)
				break;
		if (k < i && events[k].value > events[i].value)
			return false;
	}
	return true;
}

static void check_profile(struct crowd *t, struct rig_profile *profile)
{
	struct rig_profile_summary summary;
	const struct rig_event *events;
	size_t n;

	if (rig_profile_stop(profile) || rig_profile_events(profile, &events, &n) ||
	        rig_profile_summary(profile, &summary)) {
		(void)crowd_wrong(t, "a stopped profile: %s", rig_error());
		return;
	}
	if (!is_in_order(events, n))
		(void)crowd_wrong(t, "events are out of order");
	if (summary.lost + summary.untimed > summary.values)
		(void)crowd_wrong(t, "more values without times than values");
	if (!rig_profile_device(profile, 0) || rig_profile_device(profile, 1000))
		(void)crowd_wrong(t, "the devices of a profile are others");
	if (crowd_random(t, 4) == 0 && rig_profile_save(profile, t->w->trace))
		(void)crowd_wrong(t, "save: %s", rig_error());
}

void crowd_profile(struct crowd *t)
{
	struct rig_device *d[2];
	struct opening *o[2] = {crowd_take(t, CROWD_PLAIN, &d[0]), crowd_take(t, CROWD_LOST, &d[1])};
	struct rig_profile *profile, *all;
	bool was_over = atomic_load(&o[1]->ended);
	int code = rig_profile_start(d, 2, &profile);

	t->op = "profile";
	if (!code && was_over)
		(void)crowd_wrong(t, "a profile of a closed device started");
	if (crowd_ok(t, code, "rig_profile_start", o, 2)) {
		/* One that overlaps, of all that are open. */
		if (!rig_profile_start(NULL, 0, &all)) {
			if (rig_profile_events(all, NULL, NULL) == 0)
				(void)crowd_wrong(t, "events before the stop");
			rig_profile_put(all);
		}
		check_profile(t, profile);
		rig_profile_put(profile);
	}
	rig_device_put(d[0]);
	rig_device_put(d[1]);
}

const struct crowd_named crowd_life_ops[] = {
        {"facts", op_facts},
        {"values", op_values},
        {"memory", op_memory},
        {"devices", op_devices},
        {"of_io", op_of_io},
        {"open", op_open},
};
const unsigned crowd_life_nops = sizeof(crowd_life_ops) / sizeof(crowd_life_ops[0]);
