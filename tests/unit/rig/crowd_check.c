/* SPDX-License-Identifier: MIT */
/* What a crowd's thread knows of the answers it gets. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "crowd.h"
#include "draw.h"

uint32_t crowd_random(struct crowd *t, uint32_t n)
{
	return test_draw(&t->random, n);
}

void crowd_bytes(struct crowd *t, uint8_t *bytes, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		bytes[i] = (uint8_t)crowd_random(t, 256);
}

bool crowd_wrong(struct crowd *t, const char *format, ...)
{
	va_list args;
	int n;

	if (t->wrong)
		return false;
	t->wrong = true;
	n = snprintf(t->text, sizeof(t->text), "seed %" PRIu64 ", thread %u, step %u, %s: ", t->w->seed,
	        t->index, t->step, t->op);
	va_start(args, format);
	(void)vsnprintf(t->text + n, sizeof(t->text) - (size_t)n, format, args);
	va_end(args);
	atomic_store(&t->w->failed, true);
	return false;
}

struct opening *crowd_take(struct crowd *t, enum crowd_seat seat, struct rig_device **d)
{
	struct opening *o;

	(void)pthread_mutex_lock(&t->w->lock);
	o = t->w->seats[seat];
	*d = rig_device_get(o->d);
	(void)pthread_mutex_unlock(&t->w->lock);
	return o;
}

bool crowd_ok(struct crowd *t, int code, const char *what, struct opening *const *deps, unsigned n)
{
	unsigned i;

	if (code >= 0)
		return true;
	for (i = 0; i < n && code == RIG_LOST; i++)
		if (atomic_load(&deps[i]->ending))
			return false;
	return crowd_wrong(t, "%s answered %d: %s", what, code, rig_error());
}

bool crowd_live(struct crowd *t, int code, const char *what, struct opening *o, bool was_over)
{
	if (code >= 0 && was_over)
		return crowd_wrong(t, "%s answered %d on a device that was closed", what, code);
	return crowd_ok(t, code, what, &o, 1);
}

bool crowd_value(struct crowd *t, struct opening *o, uint64_t before, struct rig_point point)
{
	uint64_t value = rig_point_value(point), latest = atomic_load(&o->latest);

	if (value <= before)
		return crowd_wrong(t, "value %" PRIu64 " after %" PRIu64, value, before);
	if (atomic_exchange(&o->values[value % CROWD_VALUES], value) == value)
		return crowd_wrong(t, "value %" PRIu64 " was given twice", value);
	while (latest < value && !atomic_compare_exchange_weak(&o->latest, &latest, value))
		;
	return true;
}

void crowd_mark(struct crowd *t, struct rig_point point, struct opening *const *deps, unsigned n)
{
	struct mark *mark = &t->marks[t->nmarks < CROWD_MARKS ? t->nmarks++ : crowd_random(t, CROWD_MARKS)];

	*mark = (struct mark){.point = point, .ndeps = n};
	memcpy(mark->deps, deps, n * sizeof(*deps));
}

void crowd_look(struct crowd *t, struct mark *mark, bool waits)
{
	int code = waits ? rig_wait(mark->point) : rig_reached(mark->point);

	if (waits && !code)
		code = 1;
	if (!crowd_ok(t, code, waits ? "rig_wait" : "rig_reached", mark->deps, mark->ndeps) && t->wrong)
		return;
	if (mark->state && code != mark->state)
		(void)crowd_wrong(t, "the point of value %" PRIu64 " was %d and is %d",
		        rig_point_value(mark->point), mark->state, code);
	mark->state = code;
}

void crowd_cell_drop(struct cell *cell)
{
	rig_buffer_put(cell->buffer);
	cell->buffer = NULL;
	cell->ndeps = 0;
}

/* New memory that the host addresses may be stored to at once, whoever had it before. */
static void fill_cell(struct crowd *t, struct cell *cell)
{
	void *host = rig_buffer_host(cell->buffer);

	crowd_bytes(t, cell->bytes, CROWD_BYTES);
	if (host && crowd_random(t, 2)) {
		memcpy(host, cell->bytes, CROWD_BYTES);
		return;
	}
	(void)crowd_cell_ok(t, cell, rig_buffer_write(cell->buffer, 0, cell->bytes, CROWD_BYTES), "write");
}

static void make_cell(struct crowd *t, struct cell *cell, enum crowd_seat seat)
{
	static const enum rig_memory kinds[] = {RIG_DEVICE, RIG_PINNED, RIG_MAPPED};
	struct rig_device *d;
	struct opening *o = crowd_take(t, seat, &d);
	bool was_over = atomic_load(&o->ended);
	int code = rig_buffer_create(d, kinds[crowd_random(t, 3)], CROWD_BYTES, &cell->buffer);

	if (crowd_live(t, code, "rig_buffer_create", o, was_over)) {
		cell->deps[0] = o;
		cell->ndeps = 1;
		fill_cell(t, cell);
	} else {
		cell->buffer = NULL;
	}
	rig_device_put(d);
}

struct cell *crowd_cell(struct crowd *t, unsigned seats)
{
	struct cell *cell = &t->cells[crowd_random(t, CROWD_CELLS)];
	uint32_t seat;

	if (cell->buffer && !(seats & 1u << cell->deps[0]->seat))
		crowd_cell_drop(cell);
	if (!cell->buffer) {
		do
			seat = crowd_random(t, CROWD_SEATS);
		while (!(seats & 1u << seat));
		make_cell(t, cell, (enum crowd_seat)seat);
	}
	return cell->buffer ? cell : NULL;
}

static bool depends(const struct cell *cell, const struct opening *o)
{
	unsigned i;

	for (i = 0; i < cell->ndeps; i++)
		if (cell->deps[i] == o)
			return true;
	return false;
}

/* Once it may be written nothing uses it, so that others' losses are none of its. */
static bool settle(struct crowd *t, struct cell *cell)
{
	if (!crowd_cell_ok(t, cell, rig_buffer_wait(cell->buffer, RIG_WRITE), "rig_buffer_wait"))
		return false;
	cell->ndeps = 1;
	return true;
}

bool crowd_depend(struct crowd *t, struct cell *cell, struct opening *const *deps, unsigned n)
{
	unsigned i;

	if (cell->ndeps + n > CROWD_DEPS && !settle(t, cell))
		return false;
	for (i = 0; i < n && cell->ndeps < CROWD_DEPS; i++)
		if (!depends(cell, deps[i]))
			cell->deps[cell->ndeps++] = deps[i];
	return true;
}

bool crowd_cell_ok(struct crowd *t, struct cell *cell, int code, const char *what)
{
	if (crowd_ok(t, code, what, cell->deps, cell->ndeps))
		return true;
	crowd_cell_drop(cell);
	return false;
}

void crowd_compare(struct crowd *t, struct cell *cell, const uint8_t *got, uint32_t from, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (got[i] != cell->bytes[from + i]) {
			(void)crowd_wrong(t, "byte %u of a cell of seat %d is 0x%02x instead of 0x%02x",
			        from + i, (int)cell->deps[0]->seat, got[i], cell->bytes[from + i]);
			return;
		}
}
