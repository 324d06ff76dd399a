/* SPDX-License-Identifier: MIT */
/* A device's own memory is cleared before another job gets it: all that the driver gives is taken, filled by
   the device's copy engine and given back. Host memory comes cleared from the system. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "agent_device.h"
#include "agent_hot.h"
#include "clock.h"

#define LEAST_BYTES UINT64_C(4096)
#define LOOK_MS     50
#define STILL_MS    UINT64_C(60000) /* without progress, where the device has no bound of its own */

/* A region, until it is given back. */
struct taken {
	struct taken *next;
	void *region;
	uint64_t bytes;
};

static int faulted(const char *fault)
{
	return rig_error_set(-EIO, "%s", fault ? fault : "the driver faulted without a reason");
}

/* As large as they come; no more in all than twice what the device says that it has. */
static int take_kind(struct device *d, enum rig_memory kind, uint64_t *left)
{
	uint64_t bytes = *left;
	const char *fault = NULL;

	while (bytes >= LEAST_BYTES && bytes <= *left) {
		struct taken *t = calloc(1, sizeof(*t));
		int err = t ? d->m->alloc(d->handle, kind, bytes, &t->region, &fault) : -ENOMEM;

		if (err) {
			free(t);
			if (err == RIG_FAULT)
				return faulted(fault);
			bytes /= 2;
			continue;
		}
		t->bytes = bytes;
		t->next = d->taken;
		d->taken = t;
		*left -= bytes;
	}
	return 0;
}

/* Waits until the device shows the value. */
static int await_value(struct device *d, uint64_t value)
{
	uint64_t ms = d->facts.has_hang_ms ? (uint64_t)d->facts.hang_ms : STILL_MS;
	struct rig_deadline deadline = rig_deadline_in(NULL, ms * RIG_NS_PER_MS);
	const char *fault = NULL;
	uint64_t seen;

	while ((seen = device_shown(d)) < value) {
		if (d->m->sleep(d->handle, seen, LOOK_MS, &fault) == RIG_FAULT)
			return faulted(fault);
		if (device_shown(d) == seen && rig_deadline_passed(&deadline))
			return rig_error_set(-ETIMEDOUT, "no progress for %" PRIu64 " ms", ms);
	}
	return 0;
}

static int submit(struct device *d, struct built *b)
{
	const char *failure = "the driver's room does not take a fill";
	uint64_t missing = 0, value = d->last + 1;
	int room = d->hot->room(d->facts.edge, b->parts, 1, 0, &b->run, b->scratch);
	int answer = RIG_FAILED;

	if (room == RIG_GROW && d->m->grow(d->handle, b->parts, 1, 0, &missing, &failure) == RIG_GROWN)
		room = d->hot->room(d->facts.edge, b->parts, 1, 0, &b->run, b->scratch);
	if (room == RIG_FITS) {
		d->last = value;
		answer = d->hot->submit(
		        d->facts.edge, value, b->parts, 1, NULL, 0, &b->run, b->scratch, NULL, &failure);
	}
	if (answer == RIG_OK)
		answer = d->hot->commit(d->facts.edge, value, &failure);
	if (answer != RIG_OK && answer != RIG_COMMITTED)
		return faulted(failure);
	return await_value(d, value);
}

static int clear(struct device *d, const struct taken *t)
{
	struct rig_copy_part fill = {.dst = {.slot = RIG_FIXED, .pitch = t->bytes},
	        .row_bytes = t->bytes,
	        .rows = 1,
	        .fill = true};
	struct rig_location at;
	struct built b = {0};
	int err;

	d->m->locate(d->handle, t->region, &at);
	if (!d->facts.has_copy_engine && !at.has_host)
		return rig_error_set(-ENOTSUP, "it has no engine that fills");
	if (!d->facts.has_copy_engine) {
		memset(at.host, 0, t->bytes);
		return 0;
	}
	fill.dst.handle = at.handle;
	err = copy_build(&b, &fill, d);
	if (!err)
		err = submit(d, &b);
	work_unbuild(d, &b);
	return err;
}

static int take_all(struct device *d)
{
	uint64_t left = d->facts.budget < UINT64_MAX / 2 ? 2 * d->facts.budget : UINT64_MAX;
	int err = take_kind(d, RIG_DEVICE, &left);

	return err ? err : take_kind(d, RIG_MAPPED, &left);
}

void device_wipe_end(struct device *d)
{
	const char *fault = NULL;

	while (d->taken) {
		struct taken *t = d->taken;

		d->taken = t->next;
		(void)d->m->free(d->handle, t->region, &fault);
		free(t);
	}
}

int device_wipe(struct device *d)
{
	uint64_t start = rig_now_ns(), bytes = 0;
	int err = take_all(d);
	struct taken *t;

	for (t = d->taken; t && !err; t = t->next) {
		err = clear(d, t);
		bytes += t->bytes;
	}
	if (err)
		return rig_error_set(err, "%s: its memory could not be cleared of another job's: %.*s",
		        d->name, RIG_RMT_REASON / 2, rig_error());
	device_wipe_end(d);
	agent_log(d->session->agent, "%s: %" PRIu64 " bytes cleared in %.1f ms", d->name, bytes,
	        (double)(rig_now_ns() - start) / 1e6);
	return 0;
}
