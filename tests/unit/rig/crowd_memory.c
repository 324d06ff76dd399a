/* SPDX-License-Identifier: MIT */
/* Memory: what a crowd's thread does to its own buffers. */
#include <stdlib.h>
#include <unistd.h>

#include "crowd.h"

#define ALL   ((1u << CROWD_SEATS) - 1)
#define BOARD (1u << CROWD_PLAIN | 1u << CROWD_BLOCK | 1u << CROWD_LOST)

struct range {
	uint32_t from, n;
};

static struct range some(struct crowd *t)
{
	uint32_t from = crowd_random(t, CROWD_BYTES);

	return (struct range){from, 1 + crowd_random(t, CROWD_BYTES - from)};
}

/* Of `bytes` at `at` of a buffer of the cell's memory, whose byte 0 is the cell's byte `base`. */
static void write_some(struct crowd *t, struct cell *cell, struct rig_buffer *buffer, struct range r)
{
	uint8_t bytes[CROWD_BYTES];

	crowd_bytes(t, bytes, r.n);
	if (crowd_cell_ok(t, cell, rig_buffer_write(buffer, r.from, bytes, r.n), "rig_buffer_write"))
		memcpy(cell->bytes + r.from, bytes, r.n);
}

static void read_some(struct crowd *t, struct cell *cell, struct rig_buffer *buffer, struct range r)
{
	uint8_t bytes[CROWD_BYTES];

	if (crowd_cell_ok(t, cell, rig_buffer_read(buffer, r.from, bytes, r.n), "rig_buffer_read"))
		crowd_compare(t, cell, bytes, r.from, r.n);
}

static void op_write(struct crowd *t)
{
	struct cell *cell = crowd_cell(t, ALL);

	if (cell)
		write_some(t, cell, cell->buffer, some(t));
}

static void op_read(struct crowd *t)
{
	struct cell *cell = crowd_cell(t, ALL);

	if (cell)
		read_some(t, cell, cell->buffer, some(t));
}

static void op_view(struct crowd *t)
{
	struct cell *cell = crowd_cell(t, ALL);
	struct range r = some(t);
	uint8_t bytes[CROWD_BYTES];
	struct rig_buffer *view;

	if (!cell ||
	        !crowd_cell_ok(t, cell, rig_buffer_view(cell->buffer, r.from, r.n, &view), "rig_buffer_view"))
		return;
	if (rig_buffer_bytes(view) != r.n || rig_buffer_device(view) != rig_buffer_device(cell->buffer))
		(void)crowd_wrong(t, "a view of %u bytes is another", r.n);
	if (rig_buffer_address(view) && rig_buffer_address(view) != rig_buffer_address(cell->buffer) + r.from)
		(void)crowd_wrong(t, "a view is elsewhere");
	/* The view alone keeps the memory meanwhile. */
	rig_buffer_put(rig_buffer_get(cell->buffer));
	if (crowd_cell_ok(t, cell, rig_buffer_read(view, 0, bytes, r.n), "a view's read"))
		crowd_compare(t, cell, bytes, r.from, r.n);
	rig_buffer_put(view);
}

/* What the host addresses, once it may be touched. */
static void op_touch(struct crowd *t)
{
	struct cell *cell = crowd_cell(t, ALL & ~(1u << CROWD_IO));
	enum rig_access access = crowd_random(t, 2) ? RIG_WRITE : RIG_READ;
	uint8_t *host;

	if (!cell || !crowd_cell_ok(t, cell, rig_buffer_wait(cell->buffer, access), "rig_buffer_wait"))
		return;
	host = rig_buffer_host(cell->buffer);
	if (!host)
		return;
	crowd_compare(t, cell, host, 0, CROWD_BYTES);
	if (access == RIG_WRITE) {
		crowd_bytes(t, cell->bytes, CROWD_BYTES);
		memcpy(host, cell->bytes, CROWD_BYTES);
	}
}

/* Two cells of the thread's; false: there are none. */
static bool two_cells(struct crowd *t, struct cell **dst, struct cell **src)
{
	*dst = crowd_cell(t, ALL);
	*src = crowd_cell(t, ALL);
	return *dst && *src && *dst != *src && (*dst)->buffer && (*src)->buffer;
}

/* Both depend on what either does, and on who may have copied. */
static bool tie(struct crowd *t, struct cell *dst, struct cell *src)
{
	return crowd_depend(t, dst, src->deps, src->ndeps) && dst->buffer &&
	       crowd_depend(t, src, dst->deps, dst->ndeps) && src->buffer;
}

static bool copied(struct crowd *t, struct cell *dst, struct cell *src, int code, const char *what)
{
	if (crowd_ok(t, code, what, dst->deps, dst->ndeps))
		return true;
	crowd_cell_drop(dst);
	crowd_cell_drop(src);
	return false;
}

static void op_copy(struct crowd *t)
{
	struct cell *dst, *src;
	struct range r = some(t);

	if (!two_cells(t, &dst, &src) || !tie(t, dst, src))
		return;
	if (copied(t, dst, src, rig_buffer_copy(dst->buffer, r.from, src->buffer, r.from, r.n),
	            "rig_buffer_copy"))
		memcpy(dst->bytes + r.from, src->bytes + r.from, r.n);
}

static void op_copy_async(struct crowd *t)
{
	struct cell *dst, *src;
	struct range r = some(t);
	struct rig_point point;

	if (!two_cells(t, &dst, &src) || !tie(t, dst, src))
		return;
	if (!copied(t, dst, src, rig_buffer_copy_async(dst->buffer, r.from, src->buffer, r.from, r.n, &point),
	            "rig_buffer_copy_async"))
		return;
	memcpy(dst->bytes + r.from, src->bytes + r.from, r.n);
	if (point.bits)
		crowd_mark(t, point, dst->deps, dst->ndeps);
}

/* Memory of one device used by another. */
static void op_borrow(struct crowd *t)
{
	struct cell *cell = crowd_cell(t, ALL);
	struct rig_buffer *borrowed;
	struct rig_device *d;
	struct opening *o = crowd_take(t, (enum crowd_seat)crowd_random(t, CROWD_IO), &d);
	int code;

	if (cell && crowd_depend(t, cell, &o, 1) && cell->buffer) {
		code = rig_buffer_borrow(d, cell->buffer, &borrowed);
		if (code != -ENOTSUP && crowd_cell_ok(t, cell, code, "rig_buffer_borrow")) {
			if (crowd_random(t, 2))
				write_some(t, cell, borrowed, some(t));
			else
				read_some(t, cell, borrowed, some(t));
			rig_buffer_put(borrowed);
		}
	}
	rig_device_put(d);
}

/* The thread's page is its own again once nothing uses it. */
static void op_of_host(struct crowd *t)
{
	struct rig_device *d;
	struct opening *o = crowd_take(t, crowd_random(t, 2) ? CROWD_PLAIN : CROWD_HOST, &d);
	struct cell cell = {.deps = {o}, .ndeps = 1};
	bool was_over = atomic_load(&o->ended);
	int code = rig_buffer_of_host(d, t->page, CROWD_PAGE, &cell.buffer);

	if (crowd_live(t, code, "rig_buffer_of_host", o, was_over)) {
		memcpy(cell.bytes, t->page, CROWD_BYTES);
		write_some(t, &cell, cell.buffer, some(t));
		if (cell.buffer && crowd_cell_ok(t, &cell, rig_buffer_wait(cell.buffer, RIG_WRITE), "wait"))
			crowd_compare(t, &cell, t->page, 0, CROWD_BYTES);
		crowd_cell_drop(&cell);
	}
	rig_device_put(d);
}

static void op_dma(struct crowd *t)
{
	struct cell *cell = crowd_cell(t, BOARD);
	struct rig_dma_answer answer;
	int code;

	if (!cell)
		return;
	code = rig_buffer_dma(cell->buffer, &answer);
	if (crowd_cell_ok(t, cell, code, "rig_buffer_dma") && code == RIG_DMABUF)
		(void)close(answer.fd);
}

static void op_empty(struct crowd *t)
{
	struct rig_device *d;
	struct opening *o = crowd_take(t, (enum crowd_seat)crowd_random(t, CROWD_SEATS), &d);
	bool was_over = atomic_load(&o->ended);
	struct rig_buffer *buffer;

	if (crowd_live(t, rig_buffer_create(d, RIG_DEVICE, 0, &buffer), "an empty create", o, was_over)) {
		if (rig_buffer_address(buffer) || rig_buffer_host(buffer))
			(void)crowd_wrong(t, "a buffer without memory is somewhere");
		rig_buffer_put(buffer);
	}
	rig_device_put(d);
}

static void op_drop(struct crowd *t)
{
	crowd_cell_drop(&t->cells[crowd_random(t, CROWD_CELLS)]);
	rig_buffer_put(NULL);
}

const struct crowd_named crowd_memory_ops[] = {
        {"write", op_write},
        {"read", op_read},
        {"view", op_view},
        {"touch", op_touch},
        {"copy", op_copy},
        {"copy_async", op_copy_async},
        {"borrow", op_borrow},
        {"of_host", op_of_host},
        {"dma", op_dma},
        {"empty", op_empty},
        {"drop", op_drop},
};
const unsigned crowd_memory_nops = sizeof(crowd_memory_ops) / sizeof(crowd_memory_ops[0]);
