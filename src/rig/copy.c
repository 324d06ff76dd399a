/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>

#include "rig_wide.h"
#include "rt.h"

static void set_side(
        struct rig_copy_side *side, const struct rig_buffer *buffer, uint64_t offset, uint64_t bytes)
{
	side->slot = RIG_FIXED;
	side->handle = buffer->at.handle;
	side->offset = buffer->offset + offset;
	side->pitch = bytes;
}

int rig_rt_copy_submit(struct rig_device *d, const struct rig_buffer *dst, uint64_t dst_offset,
        const struct rig_buffer *src, uint64_t src_offset, uint64_t bytes, struct rig_point *point)
{
	_Alignas(16) uint8_t scratch[RIG_SCRATCH] = {0};
	struct rig_rt_use uses[2];
	struct rig_part part = {.queue = (uint32_t)d->facts.copy_engine, .kind = RIG_COPY};
	struct rig_run run = {0};
	struct rig_rt_job job = {.device = d, .parts = &part, .nparts = 1, .scratch = scratch, .run = &run};
	int code;

	if (!d->facts.has_copy_engine)
		return rig_error_set(-ENOTSUP, "%s has no copy engine", d->name);
	set_side(&part.u.copy.dst, dst, dst_offset, bytes);
	set_side(&part.u.copy.src, src, src_offset, bytes);
	part.u.copy.row_bytes = bytes;
	part.u.copy.rows = 1;
	code = rig_rt_use_set(&uses[0], dst->mem, d, true);
	if (!code)
		code = rig_rt_use_set(&uses[1], src->mem, d, false);
	if (code)
		return code;
	job.uses = uses;
	job.nuses = 2;
	return rig_rt_submit(&job, NULL, 0, point);
}

/* ---- The host's side of a copy ---- */

int rig_rt_side_get(const struct rig_rt_host_side *side, uint64_t at, void *dst, uint64_t bytes)
{
	if (side->io)
		return rig_rt_io_read(side->io, side->offset + at, dst, bytes);
	if (side->mapped)
		rig_wide_get(dst, side->memory + at, bytes);
	else /* two devices may map overlapping pages of the caller's */
		memmove(dst, side->memory + at, bytes);
	return 0;
}

int rig_rt_side_put(const struct rig_rt_host_side *side, uint64_t at, const void *src, uint64_t bytes)
{
	if (side->io)
		return rig_rt_io_write(side->io, side->offset + at, src, bytes);
	if (!side->mapped) {
		memcpy(side->memory + at, src, bytes);
		return 0;
	}
	rig_wide_put(side->memory + at, src, bytes);
	/* The host's stores to the device's window are complete before any later doorbell. */
	atomic_thread_fence(memory_order_seq_cst);
	return 0;
}

static struct rig_rt_host_side side_of(struct rig_buffer *buffer, uint64_t offset)
{
	if (!buffer->host)
		return (struct rig_rt_host_side){.io = buffer, .offset = offset};
	return (struct rig_rt_host_side){
	        .memory = (char *)buffer->host + offset, .mapped = buffer->mem->kind == RIG_MAPPED};
}

/* Whether the calling thread moves the buffer's bytes itself. */
static bool is_reached(const struct rig_buffer *buffer)
{
	return buffer->host || rig_rt_is_io(buffer->device);
}

static bool is_plain(const struct rig_rt_host_side *side)
{
	return side->memory && !side->mapped;
}

#define PIECE_BYTES (UINT64_C(1) << 20)

/* Between sides that are each reached in their own way: through ordinary memory. */
static int move_through(
        const struct rig_rt_host_side *dst, const struct rig_rt_host_side *src, uint64_t bytes)
{
	uint64_t piece = bytes < PIECE_BYTES ? bytes : PIECE_BYTES, done, n;
	char *bounce = malloc(piece);
	int code = 0;

	if (!bounce)
		return rig_error_set(-ENOMEM, "no host memory to copy through");
	for (done = 0; done < bytes && !code; done += n) {
		n = bytes - done < piece ? bytes - done : piece;
		code = rig_rt_side_get(src, done, bounce, n);
		if (!code)
			code = rig_rt_side_put(dst, done, bounce, n);
	}
	free(bounce);
	return code;
}

static int move(const struct rig_rt_host_side *dst, const struct rig_rt_host_side *src, uint64_t bytes)
{
	if (is_plain(dst))
		return rig_rt_side_get(src, 0, dst->memory, bytes);
	if (is_plain(src))
		return rig_rt_side_put(dst, 0, src->memory, bytes);
	return move_through(dst, src, bytes);
}

/* ---- What a window's bytes are worth ---- */

/* Bytes that are looked through rather than asked about: asking takes microseconds. */
#define LOOKED_THROUGH (UINT64_C(1) << 20)

static bool has_ones(const unsigned char *at, uint64_t bytes)
{
	uint64_t word, i;

	if (bytes < sizeof(word))
		return memchr(at, UINT8_MAX, bytes) != NULL;
	for (i = 0; i <= bytes - sizeof(word); i += sizeof(word)) {
		memcpy(&word, at + i, sizeof(word));
		if (word == UINT64_MAX)
			return true;
	}
	memcpy(&word, at + bytes - sizeof(word), sizeof(word));
	return word == UINT64_MAX;
}

/* The window of a device that left reads as ones, and nothing but the device itself tells: it is asked before
   bytes are believed. `copy` is what was read, or NULL where that is not to be read again. */
static int check_read(const struct rig_buffer *src, const void *copy, uint64_t bytes)
{
	if (src->mem->kind != RIG_MAPPED || (copy && bytes <= LOOKED_THROUGH && !has_ones(copy, bytes)))
		return 0;
	return rig_rt_ask(src->mem->owner);
}

static int check_memory(const struct rig_buffer *buffer, const void *memory, uint64_t bytes)
{
	int code = rig_rt_given(buffer, "buffer");

	return code || !bytes ? code : rig_rt_given(memory, "the caller's memory");
}

static int write_bytes(struct rig_buffer *buffer, uint64_t offset, const void *src, uint64_t bytes)
{
	struct rig_rt_host_side from = {.memory = (char *)(uintptr_t)src}, to;
	int code;

	if (!is_reached(buffer))
		return rig_rt_stage_write(buffer, offset, &from, bytes);
	code = rig_rt_mem_wait(buffer->mem, RIG_WRITE);
	to = side_of(buffer, offset);
	return code ? code : rig_rt_side_put(&to, 0, src, bytes);
}

int rig_buffer_write(struct rig_buffer *buffer, uint64_t offset, const void *src, uint64_t bytes)
{
	uint64_t start;
	int code = check_memory(buffer, src, bytes);

	if (!code)
		code = rig_rt_buffer_bounds(buffer, "write", offset, bytes);
	if (!code)
		code = rig_rt_buffer_usable(buffer);
	if (code || !bytes)
		return code;
	start = rig_rt_note_start(buffer->device);
	code = write_bytes(buffer, offset, src, bytes);
	if (!code)
		rig_rt_note(buffer->device, RIG_EVENT_COPY, start, bytes);
	return code;
}

static int read_bytes(struct rig_buffer *buffer, uint64_t offset, void *dst, uint64_t bytes)
{
	struct rig_rt_host_side to = {.memory = dst}, from;
	int code;

	if (!is_reached(buffer))
		return rig_rt_stage_read(buffer, offset, &to, bytes);
	code = rig_rt_mem_wait(buffer->mem, RIG_READ);
	from = side_of(buffer, offset);
	if (!code)
		code = rig_rt_side_get(&from, 0, dst, bytes);
	return code ? code : check_read(buffer, dst, bytes);
}

int rig_buffer_read(struct rig_buffer *buffer, uint64_t offset, void *dst, uint64_t bytes)
{
	uint64_t start;
	int code = check_memory(buffer, dst, bytes);

	if (!code)
		code = rig_rt_buffer_bounds(buffer, "read", offset, bytes);
	if (!code)
		code = rig_rt_buffer_usable(buffer);
	if (code || !bytes)
		return code;
	start = rig_rt_note_start(buffer->device);
	code = read_bytes(buffer, offset, dst, bytes);
	if (!code)
		rig_rt_note(buffer->device, RIG_EVENT_COPY, start, bytes);
	return code;
}

struct copy {
	struct rig_buffer *dst, *src;
	uint64_t dst_offset, src_offset, bytes;
};

/* By the host, which reaches both sides. */
static int copy_by_host(const struct copy *c)
{
	struct rig_rt_host_side dst = side_of(c->dst, c->dst_offset), src = side_of(c->src, c->src_offset);
	int code = rig_rt_mem_wait(c->src->mem, RIG_READ);

	if (!code)
		code = rig_rt_mem_wait(c->dst->mem, RIG_WRITE);
	if (!code)
		code = move(&dst, &src, c->bytes);
	return code ? code : check_read(c->src, is_plain(&dst) ? dst.memory : NULL, c->bytes);
}

/* By the copy engine of `d`, where it reaches both sides. -ENOTSUP where it does not. */
static int copy_by(struct rig_device *d, const struct copy *c, struct rig_point *point)
{
	struct rig_buffer *dst, *src;
	int code;

	if (!d->facts.has_copy_engine)
		return -ENOTSUP;
	if (c->dst->device == d && c->src->device == d)
		return rig_rt_copy_submit(d, c->dst, c->dst_offset, c->src, c->src_offset, c->bytes, point);
	code = rig_buffer_borrow(d, c->dst, &dst);
	if (code)
		return code;
	code = rig_buffer_borrow(d, c->src, &src);
	if (!code) {
		code = rig_rt_copy_submit(d, dst, c->dst_offset, src, c->src_offset, c->bytes, point);
		rig_buffer_put(src);
	}
	rig_buffer_put(dst);
	return code;
}

/* -ENOTSUP or -ENOMEM (no room for a mapping) where no engine reaches both sides. */
static int copy_direct(const struct copy *c, struct rig_point *point)
{
	/* The device whose memory the host cannot reach does the work. */
	struct rig_device *first = c->dst->host ? c->src->device : c->dst->device;
	struct rig_device *second = c->dst->host ? c->dst->device : c->src->device;
	int code = copy_by(first, c, point);

	if (second != first && (code == -ENOTSUP || code == -ENOMEM))
		code = copy_by(second, c, point);
	return code;
}

/* Through staging memory: the host reaches one side, or neither. */
static int copy_staged(const struct copy *c)
{
	struct rig_rt_host_side side;
	int code;

	if (is_reached(c->src)) {
		side = side_of(c->src, c->src_offset);
		code = rig_rt_mem_wait(c->src->mem, RIG_READ);
		if (!code)
			code = rig_rt_stage_write(c->dst, c->dst_offset, &side, c->bytes);
		return code ? code : check_read(c->src, NULL, c->bytes);
	}
	if (is_reached(c->dst)) {
		side = side_of(c->dst, c->dst_offset);
		code = rig_rt_mem_wait(c->dst->mem, RIG_WRITE);
		return code ? code : rig_rt_stage_read(c->src, c->src_offset, &side, c->bytes);
	}
	return rig_rt_stage_copy(c->dst, c->dst_offset, c->src, c->src_offset, c->bytes);
}

/* Ranges of one memory, by whichever buffers; bounds were checked. */
static int check_overlap(const struct copy *c)
{
	uint64_t dst = c->dst->offset + c->dst_offset, src = c->src->offset + c->src_offset;

	if (c->dst->mem != c->src->mem || dst == src || dst >= src + c->bytes || src >= dst + c->bytes)
		return 0;
	return rig_error_set(-EINVAL,
	        "a copy of %" PRIu64 " bytes within one memory from %" PRIu64 " to %" PRIu64
	        ": the ranges overlap; they must be disjoint or equal",
	        c->bytes, src, dst);
}

static int check(const struct copy *c)
{
	int code = rig_rt_given2(c->dst, "dst", c->src, "src");

	if (!code)
		code = rig_rt_buffer_bounds(c->dst, "copy to", c->dst_offset, c->bytes);
	if (!code)
		code = rig_rt_buffer_bounds(c->src, "copy from", c->src_offset, c->bytes);
	if (!code)
		code = check_overlap(c);
	if (!code)
		code = rig_rt_buffer_usable(c->dst);
	return code ? code : rig_rt_buffer_usable(c->src);
}

/* What the calling thread moved, on the lane of each device that it moved bytes of. */
static void note_both(const struct copy *c, uint64_t dst_start, uint64_t src_start)
{
	rig_rt_note(c->dst->device, RIG_EVENT_COPY, dst_start, c->bytes);
	if (c->src->device != c->dst->device)
		rig_rt_note(c->src->device, RIG_EVENT_COPY, src_start, c->bytes);
}

/* A read into the pages that it fills from could wait for itself in the kernel. */
static int check_borrow(const struct copy *c)
{
	if (c->dst->mem != c->src->mem || rig_rt_is_io(c->dst->device) == rig_rt_is_io(c->src->device))
		return 0;
	return rig_error_set(
	        -EINVAL, "a copy between memory of %s and a borrow of it", c->dst->mem->owner->name);
}

/* By the calling thread, with the devices' engines where memory is staged. */
static int copy_here(const struct copy *c)
{
	uint64_t dst_start = rig_rt_note_start(c->dst->device), src_start = rig_rt_note_start(c->src->device);
	int code;

	code = check_borrow(c);
	if (!code)
		code = is_reached(c->dst) && is_reached(c->src) ? copy_by_host(c) : copy_staged(c);
	if (!code)
		note_both(c, dst_start, src_start);
	return code;
}

/* On 0, *point is no point if the bytes have moved. */
static int copy(const struct copy *c, struct rig_point *point)
{
	int code;

	point->bits = 0;
	if (rig_rt_is_io(c->dst->device) || rig_rt_is_io(c->src->device) || (c->dst->host && c->src->host))
		return copy_here(c);
	/* Pages of an Io device that the engine reads through. */
	if (rig_rt_is_io(c->src->mem->owner))
		rig_rt_io_prefetch(c->src, c->src_offset, c->bytes);
	code = copy_direct(c, point);
	return code == -ENOTSUP || code == -ENOMEM ? copy_here(c) : code;
}

int rig_buffer_copy(struct rig_buffer *dst, uint64_t dst_offset, struct rig_buffer *src, uint64_t src_offset,
        uint64_t bytes)
{
	struct rig_point point;
	int code = rig_buffer_copy_async(dst, dst_offset, src, src_offset, bytes, &point);

	return code ? code : rig_wait(point);
}

int rig_buffer_copy_async(struct rig_buffer *dst, uint64_t dst_offset, struct rig_buffer *src,
        uint64_t src_offset, uint64_t bytes, struct rig_point *point)
{
	struct copy c = {dst, src, dst_offset, src_offset, bytes};
	int code = rig_rt_given(point, "point");

	if (code)
		return code;
	point->bits = 0;
	code = check(&c);
	return code || !bytes ? code : copy(&c, point);
}
