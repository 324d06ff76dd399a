/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "rt.h"

/* Two halves of this size, or of less where pinned memory is short: one fills while the other drains. */
#define HALF_BYTES  (UINT64_C(4) << 20)
#define LEAST_BYTES (UINT64_C(64) << 10)
#define HALVES      2u

struct rig_rt_staging {
	struct rig_buffer *half[HALVES];
	struct rig_point point[HALVES]; /* the last copy that used it */
	uint64_t bytes;
};

static void put_halves(struct rig_rt_staging *s)
{
	unsigned i;

	for (i = 0; i < HALVES; i++) {
		rig_buffer_put(s->half[i]);
		s->half[i] = NULL;
	}
}

static int make_halves(struct rig_device *d, struct rig_rt_staging *s)
{
	int code = 0;
	unsigned i;

	for (i = 0; i < HALVES && !code; i++)
		code = rig_buffer_create(d, RIG_PINNED, s->bytes, &s->half[i]);
	if (!code && !s->half[0]->host)
		code = rig_error_set(
		        -ENOTSUP, "%s: its pinned memory has no host address to stage copies in", d->name);
	if (code)
		put_halves(s);
	return code;
}

static void drop(struct rig_rt_staging *s)
{
	if (s)
		put_halves(s);
	free(s);
}

static int make(struct rig_device *d, struct rig_rt_staging **made)
{
	struct rig_rt_staging *s = calloc(1, sizeof(*s));
	int code;

	if (!s)
		return rig_error_set(-ENOMEM, "no host memory for staging");
	s->bytes = HALF_BYTES;
	while ((code = make_halves(d, s)) == -ENOMEM && s->bytes > LEAST_BYTES)
		s->bytes /= 2;
	if (code) {
		free(s);
		return code;
	}
	*made = s;
	return 0;
}

void rig_rt_staging_drop(struct rig_device *d)
{
	struct rig_rt_staging *s;

	/* A copy in flight drops it when it ends: it finds the device lost. */
	if (pthread_mutex_trylock(&d->staging_lock))
		return;
	s = d->staging;
	d->staging = NULL;
	(void)pthread_mutex_unlock(&d->staging_lock);
	drop(s);
}

/* Without the lock: memory that is made or dropped may run what programs keep with submissions, which may
 * copy. */
static int provide(struct rig_device *d)
{
	struct rig_rt_staging *made = NULL;
	int code = make(d, &made);

	if (code)
		return code;
	(void)pthread_mutex_lock(&d->staging_lock);
	if (!d->staging) {
		d->staging = made;
		made = NULL;
	}
	(void)pthread_mutex_unlock(&d->staging_lock);
	drop(made);
	return 0;
}

static int begin(struct rig_device *d, struct rig_rt_staging **s)
{
	int code;

	(void)pthread_mutex_lock(&d->staging_lock);
	while (!d->staging) {
		(void)pthread_mutex_unlock(&d->staging_lock);
		code = provide(d);
		if (code)
			return code;
		(void)pthread_mutex_lock(&d->staging_lock);
	}
	*s = d->staging;
	return 0;
}

static void end(struct rig_device *d)
{
	(void)pthread_mutex_unlock(&d->staging_lock);
	if (!rig_rt_is_live(d))
		rig_rt_staging_drop(d);
}

static uint64_t chunk_of(const struct rig_rt_staging *s, uint64_t done, uint64_t bytes)
{
	return bytes - done < s->bytes ? bytes - done : s->bytes;
}

static int write_all(
        struct rig_rt_staging *s, struct rig_buffer *buffer, uint64_t offset, const char *src, uint64_t bytes)
{
	uint64_t done, n;
	unsigned half = 0, i;
	int code = 0;

	for (done = 0; done < bytes && !code; done += n, half ^= 1) {
		n = chunk_of(s, done, bytes);
		code = rig_wait(s->point[half]);
		if (code)
			break;
		memcpy(s->half[half]->host, src + done, n);
		code = rig_rt_copy_submit(
		        buffer->device, buffer, offset + done, s->half[half], 0, n, &s->point[half]);
	}
	for (i = 0; i < HALVES && !code; i++)
		code = rig_wait(s->point[i]);
	return code;
}

int rig_rt_stage_write(struct rig_buffer *buffer, uint64_t offset, const void *src, uint64_t bytes)
{
	struct rig_device *d = buffer->device;
	struct rig_rt_staging *s;
	int code = begin(d, &s);

	if (code)
		return code;
	code = write_all(s, buffer, offset, src, bytes);
	end(d);
	return code;
}

static int fetch(
        struct rig_rt_staging *s, unsigned half, struct rig_buffer *buffer, uint64_t offset, uint64_t n)
{
	int code = rig_wait(s->point[half]);

	return code ? code
	            : rig_rt_copy_submit(
	                      buffer->device, s->half[half], 0, buffer, offset, n, &s->point[half]);
}

/* The next chunk is under way while one is taken out. */
static int read_all(
        struct rig_rt_staging *s, struct rig_buffer *buffer, uint64_t offset, char *dst, uint64_t bytes)
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
			memcpy(dst + done, s->half[half]->host, n);
	}
	return code;
}

int rig_rt_stage_read(struct rig_buffer *buffer, uint64_t offset, void *dst, uint64_t bytes)
{
	struct rig_device *d = buffer->device;
	struct rig_rt_staging *s;
	int code = begin(d, &s);

	if (code)
		return code;
	code = read_all(s, buffer, offset, dst, bytes);
	end(d);
	return code;
}

/* Between devices that do not reach each other: through host memory, a half at a time. */
int rig_rt_stage_copy(struct rig_buffer *dst, uint64_t dst_offset, struct rig_buffer *src,
        uint64_t src_offset, uint64_t bytes)
{
	uint64_t size = bytes < HALF_BYTES ? bytes : HALF_BYTES, done, n;
	char *bounce = malloc(size);
	int code = 0;

	if (!bounce)
		return rig_error_set(-ENOMEM, "no host memory to copy through");
	for (done = 0; done < bytes && !code; done += n) {
		n = bytes - done < size ? bytes - done : size;
		code = rig_rt_stage_read(src, src_offset + done, bounce, n);
		if (!code)
			code = rig_rt_stage_write(dst, dst_offset + done, bounce, n);
	}
	free(bounce);
	return code;
}
