/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <sys/mman.h>

#include "rt.h"

/*
 * A device has two staging slots, so that two copies of it run at a time; a third waits. A slot is two
 * halves of pinned memory: one is filled while the other drains. Halves are as large as the copies that
 * came by asked for, an eighth of a copy, so that little of it is not overlapped, and at most 32 MiB:
 * smaller where pinned memory is short.
 */
#define HALF_BYTES  (UINT64_C(32) << 20)
#define FIRST_BYTES (UINT64_C(1) << 20)
#define LEAST_BYTES (UINT64_C(64) << 10)
#define PIECES      8u

/* ---- Slots ---- */

static void put_halves(struct rig_rt_stage *s)
{
	unsigned i;

	for (i = 0; i < RT_HALVES; i++) {
		rig_buffer_put(s->half[i]);
		s->half[i] = NULL;
	}
	s->bytes = 0;
}

/* Of memory of the host's that the device maps, where it has none of its own. */
static int make_mapped(struct rig_device *d, uint64_t bytes, struct rig_buffer **half)
{
	void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int code;

	if (pages == MAP_FAILED)
		return rig_error_set(-ENOMEM, "no host memory to stage copies in");
	code = rig_buffer_of_host(d, pages, bytes, half);
	if (code)
		(void)munmap(pages, bytes);
	else
		(*half)->mem->pages = pages;
	return code;
}

static int make_half(struct rig_device *d, uint64_t bytes, struct rig_buffer **half)
{
	int code = rig_buffer_create(d, RIG_PINNED, bytes, half);

	return code == -ENOMEM && d->facts.maps_host ? make_mapped(d, bytes, half) : code;
}

static int make_halves(struct rig_device *d, struct rig_rt_stage *s)
{
	int code = 0;
	unsigned i;

	for (i = 0; i < RT_HALVES && !code; i++)
		code = make_half(d, s->bytes, &s->half[i]);
	if (!code && !s->half[0]->host)
		code = rig_error_set(
		        -ENOTSUP, "%s: its pinned memory has no host address to stage copies in", d->name);
	return code;
}

/* Halves of `bytes`, or of less where pinned memory is short, but of more than `least`. */
static int make(struct rig_device *d, uint64_t bytes, uint64_t least, struct rig_rt_stage *made)
{
	int code;

	memset(made, 0, sizeof(*made));
	for (;;) {
		made->bytes = bytes;
		code = make_halves(d, made);
		if (!code)
			return 0;
		put_halves(made);
		bytes /= 2;
		if (code != -ENOMEM || bytes < LEAST_BYTES || bytes <= least)
			return code;
	}
}

static uint64_t wanted(uint64_t bytes)
{
	uint64_t half = FIRST_BYTES;

	while (half < HALF_BYTES && half < bytes / PIECES)
		half *= 2;
	return half;
}

/* A free slot, the larger of two, or NULL. With the lock. */
static struct rig_rt_stage *find_free(struct rig_device *d)
{
	struct rig_rt_stage *best = NULL;
	unsigned i;

	for (i = 0; i < RT_STAGES; i++)
		if (!d->stage[i].busy && (!best || d->stage[i].bytes > best->bytes))
			best = &d->stage[i];
	return best;
}

static struct rig_rt_stage *take(struct rig_device *d)
{
	struct rig_rt_stage *s;

	rig_rt_lock(&d->staging_lock);
	while (!(s = find_free(d)))
		rig_rt_await(&d->staging_freed, &d->staging_lock, 0);
	s->busy = true;
	rig_rt_unlock(&d->staging_lock);
	return s;
}

static void give(struct rig_device *d, struct rig_rt_stage *s)
{
	rig_rt_lock(&d->staging_lock);
	s->busy = false;
	rig_rt_notify(&d->staging_freed);
	rig_rt_unlock(&d->staging_lock);
	if (!rig_rt_is_live(d))
		rig_rt_staging_drop(d);
}

void rig_rt_staging_drop(struct rig_device *d)
{
	struct rig_rt_stage old;
	unsigned i;

	for (i = 0; i < RT_STAGES; i++) {
		memset(&old, 0, sizeof(old));
		rig_rt_lock(&d->staging_lock);
		/* A busy one is its copy's, which drops it when it ends: it finds the device lost. */
		if (!d->stage[i].busy) {
			old = d->stage[i];
			memset(&d->stage[i], 0, sizeof(d->stage[i]));
		}
		rig_rt_unlock(&d->staging_lock);
		put_halves(&old);
	}
}

/* Puts larger halves into a free slot; those that were there, or for which no slot was free, go. Holding no
   slot: memory that is made or dropped may run what programs keep with submissions, which may copy. */
static void install(struct rig_device *d, const struct rig_rt_stage *made)
{
	struct rig_rt_stage old = *made, *s;

	rig_rt_lock(&d->staging_lock);
	s = find_free(d);
	if (s && s->bytes < made->bytes) {
		old = *s;
		*s = *made;
	}
	rig_rt_unlock(&d->staging_lock);
	put_halves(&old);
}

/* A slot of halves fit for a copy of so many bytes. Waits for one. */
static int begin(struct rig_device *d, uint64_t bytes, struct rig_rt_stage **s)
{
	struct rig_rt_stage made;
	bool tried = false;
	uint64_t have;
	int code;

	for (;;) {
		*s = take(d);
		have = (*s)->bytes;
		if (have >= wanted(bytes) || (have && tried))
			return 0;
		give(d, *s);
		tried = true;
		code = make(d, wanted(bytes), have, &made);
		if (!code)
			install(d, &made);
		else if (code != -ENOMEM || !have)
			return code;
	}
}

/* ---- Copies ---- */

static uint64_t chunk_of(const struct rig_rt_stage *s, uint64_t done, uint64_t bytes)
{
	uint64_t most = wanted(bytes) < s->bytes ? wanted(bytes) : s->bytes;

	return bytes - done < most ? bytes - done : most;
}

/* Out of a half once it is free again. */
static int drain(
        struct rig_rt_stage *s, unsigned half, struct rig_buffer *buffer, uint64_t offset, uint64_t n)
{
	return rig_rt_copy_submit(buffer->device, buffer, offset, s->half[half], 0, n, &s->point[half]);
}

static int drained(struct rig_rt_stage *s)
{
	int code = rig_wait(s->point[0]);

	return code ? code : rig_wait(s->point[1]);
}

static int write_all(struct rig_rt_stage *s, struct rig_buffer *buffer, uint64_t offset,
        const struct rig_rt_host_side *src, uint64_t bytes)
{
	uint64_t done, n;
	unsigned half = 0;
	int code = 0;

	for (done = 0; done < bytes && !code; done += n, half ^= 1) {
		n = chunk_of(s, done, bytes);
		if (src->io)
			rig_rt_io_prefetch(src->io, src->offset + done + n, chunk_of(s, done + n, bytes));
		code = rig_wait(s->point[half]);
		if (!code)
			code = rig_rt_side_get(src, done, s->half[half]->host, n);
		if (!code)
			code = drain(s, half, buffer, offset + done, n);
	}
	return code ? code : drained(s);
}

int rig_rt_stage_write(
        struct rig_buffer *buffer, uint64_t offset, const struct rig_rt_host_side *src, uint64_t bytes)
{
	struct rig_device *d = buffer->device;
	struct rig_rt_stage *s;
	int code = begin(d, bytes, &s);

	if (code)
		return code;
	code = write_all(s, buffer, offset, src, bytes);
	give(d, s);
	return code;
}

static int fetch(
        struct rig_rt_stage *s, unsigned half, struct rig_buffer *buffer, uint64_t offset, uint64_t n)
{
	int code = rig_wait(s->point[half]);

	return code ? code
	            : rig_rt_copy_submit(
	                      buffer->device, s->half[half], 0, buffer, offset, n, &s->point[half]);
}

/* The next chunk is under way while one is taken out. */
static int read_all(struct rig_rt_stage *s, struct rig_buffer *buffer, uint64_t offset,
        const struct rig_rt_host_side *dst, uint64_t bytes)
{
	uint64_t done, n = chunk_of(s, 0, bytes), next;
	unsigned half = 0;
	int code = fetch(s, half, buffer, offset, n);

	for (done = 0; done < bytes && !code; done += n, n = next, half ^= 1) {
		next = chunk_of(s, done + n, bytes);
		if (next)
			code = fetch(s, half ^ 1, buffer, offset + done + n, next);
		if (!code)
			code = rig_wait(s->point[half]);
		if (!code)
			code = rig_rt_side_put(dst, done, s->half[half]->host, n);
	}
	return code;
}

int rig_rt_stage_read(
        struct rig_buffer *buffer, uint64_t offset, const struct rig_rt_host_side *dst, uint64_t bytes)
{
	struct rig_device *d = buffer->device;
	struct rig_rt_stage *s;
	int code = begin(d, bytes, &s);

	if (code)
		return code;
	code = read_all(s, buffer, offset, dst, bytes);
	give(d, s);
	return code;
}

/* Both devices work at a time, on different chunks; the host moves a third between their halves. */
static int copy_all(struct rig_rt_stage *to, struct rig_buffer *dst, uint64_t dst_offset,
        struct rig_rt_stage *from, struct rig_buffer *src, uint64_t src_offset, uint64_t bytes)
{
	const struct rig_rt_stage *least = to->bytes < from->bytes ? to : from;
	uint64_t done, n = chunk_of(least, 0, bytes), next;
	unsigned half = 0;
	int code = fetch(from, half, src, src_offset, n);

	for (done = 0; done < bytes && !code; done += n, n = next, half ^= 1) {
		next = chunk_of(least, done + n, bytes);
		if (next)
			code = fetch(from, half ^ 1, src, src_offset + done + n, next);
		if (!code)
			code = rig_wait(from->point[half]);
		if (!code)
			code = rig_wait(to->point[half]);
		if (code)
			break;
		memcpy(to->half[half]->host, from->half[half]->host, n);
		code = drain(to, half, dst, dst_offset + done, n);
	}
	return code ? code : drained(to);
}

/* Slots are taken in one order, so that two copies in opposite directions do not wait for each other. */
static int begin_both(struct rig_device *a, struct rig_device *b, uint64_t bytes, struct rig_rt_stage **of_a,
        struct rig_rt_stage **of_b)
{
	int code;

	if (a->slot > b->slot)
		return begin_both(b, a, bytes, of_b, of_a);
	code = begin(a, bytes, of_a);
	if (code)
		return code;
	code = begin(b, bytes, of_b);
	if (code)
		give(a, *of_a);
	return code;
}

/* Between devices that do not reach each other, through host memory. */
int rig_rt_stage_copy(struct rig_buffer *dst, uint64_t dst_offset, struct rig_buffer *src,
        uint64_t src_offset, uint64_t bytes)
{
	struct rig_rt_stage *to, *from;
	int code;

	/* One device whose engine cannot copy within it: a slot for each direction could wait for itself. */
	if (dst->device == src->device)
		return rig_error_set(-ENOTSUP, "%s cannot copy within its memory", dst->device->name);
	code = begin_both(dst->device, src->device, bytes, &to, &from);
	if (code)
		return code;
	code = copy_all(to, dst, dst_offset, from, src, src_offset, bytes);
	give(dst->device, to);
	give(src->device, from);
	return code;
}
