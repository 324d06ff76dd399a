/* SPDX-License-Identifier: MIT */
/* The operations. */
#include <stdatomic.h>
#include <stdlib.h>

#include "hostcost.h"

#define ALLOC UINT64_C(65536)

/* So that the pair is not removed as useless. */
static void *_Atomic kept_object;

static void keep_object(void *object)
{
	atomic_store_explicit(&kept_object, object, memory_order_relaxed);
}

#define OPERATION     __attribute__((noinline)) int
#define OWN_OPERATION __attribute__((noinline)) static int

OPERATION op_submit(struct bench *b)
{
	unsigned i;
	int code = 0;

	for (i = 0; i < BATCH; i++)
		code |= rig_submit(b->s, b->run, NULL, 0, &b->point);
	return code;
}

OPERATION floor_submit(struct bench *b)
{
	_Alignas(16) uint8_t scratch[RIG_SCRATCH];
	const char *failure = NULL;
	unsigned i;

	for (i = 0; i < BATCH; i++) {
		if (b->hot->room(b->edge, b->parts, b->nparts, 0, &b->direct, scratch) != RIG_FITS)
			return 1;
		if (b->hot->submit(b->edge, ++b->value, b->parts, b->nparts, NULL, 0, &b->direct, scratch,
		            NULL, &failure) != RIG_COMMITTED)
			return 1;
	}
	return 0;
}

OPERATION op_wait(struct bench *b)
{
	unsigned i;
	int code = 0;

	for (i = 0; i < BATCH; i++)
		code |= rig_wait(b->point);
	return code;
}

/* One acquire load and a compare. */
OPERATION floor_wait(struct bench *b)
{
	const rig_atomic_u64 *word = &rig_words()[rig_point_slot(b->point)];
	unsigned i;
	int code = 0;

	for (i = 0; i < BATCH; i++)
		code |= rig_word_load(word) < rig_point_value(b->point);
	return code;
}

OPERATION op_alloc(struct bench *b)
{
	struct rig_buffer *buffer;
	unsigned i;
	int code = 0;

	for (i = 0; i < BATCH && !code; i++) {
		code = rig_buffer_create(b->d, b->kind, ALLOC, &buffer);
		rig_buffer_put(buffer);
	}
	return code;
}

/* An object of the same size from the heap. */
OPERATION floor_alloc(struct bench *b)
{
	unsigned i;

	(void)b;
	for (i = 0; i < BATCH; i++) {
		void *object = calloc(1, 96);

		keep_object(object);
		free(object);
	}
	return 0;
}

/* ---- What grows: run buffers, points ---- */

OPERATION op_waits(struct bench *b)
{
	unsigned i;
	int code = 0;

	for (i = 0; i < BATCH; i++)
		code |= rig_submit(b->s, NULL, b->points, POINTS, &b->point);
	return code;
}

/* The same submission, the words looked at by hand. */
OPERATION floor_waits(struct bench *b)
{
	rig_atomic_u64 *words = rig_words();
	unsigned i, k;
	int code = 0;

	for (i = 0; i < BATCH; i++) {
		for (k = 0; k < POINTS; k++)
			code |= rig_word_load(&words[rig_point_slot(b->points[k])]) <
			        rig_point_value(b->points[k]);
		code |= rig_submit(b->s, NULL, NULL, 0, &b->point);
	}
	return code;
}

OPERATION op_wait_buffer(struct bench *b)
{
	unsigned i;
	int code = 0;

	for (i = 0; i < BATCH; i++)
		code |= rig_buffer_wait(b->buffer, RIG_WRITE);
	return code;
}

OPERATION floor_wait_buffer(struct bench *b)
{
	rig_atomic_u64 *words = rig_words();
	unsigned i, k;
	int code = 0;

	for (i = 0; i < BATCH; i++)
		for (k = 0; k < POINTS; k++)
			code |= rig_word_load(&words[rig_point_slot(b->points[k])]) <
			        rig_point_value(b->points[k]);
	return code;
}

/* One value after the other, the device's side between them. */
OWN_OPERATION op_replay(struct bench *b)
{
	return rig_submit(b->s, b->run, NULL, 0, &b->point);
}

static int replay(struct bench *b, unsigned pipelined)
{
	unsigned done, i;
	int code = 0;

	for (done = 0; done < BATCH * pipelined && !code; done += pipelined) {
		for (i = 0; i < pipelined && !code; i++)
			code = op_replay(b);
		(void)polled_run(b->p, pipelined);
	}
	return code;
}

int replay_1(struct bench *b)
{
	return replay(b, 1);
}

int replay_100(struct bench *b)
{
	return replay(b, PIPELINED);
}

/* Puts of buffers that work under way uses, and what takes them back once it is done. */
OWN_OPERATION op_put_all(struct bench *b)
{
	unsigned i;

	for (i = 0; i < DROPPED; i++)
		rig_buffer_put(b->dropped[i]);
	return 0;
}

OWN_OPERATION op_take_back(struct bench *b)
{
	rig_cache_trim(b->d, UINT64_MAX);
	return 0;
}

/* Each buffer is read by the device itself and, with `foreign`, through a mapping by another. */
static int use_one(struct bench *b, unsigned i, bool foreign)
{
	struct rig_buffer *borrowed = NULL;
	int code = rig_buffer_create(b->d, RIG_DEVICE, BYTES, &b->dropped[i]);

	if (!code)
		code = rig_run_buffer(b->run, 0, b->dropped[i]);
	if (!code)
		code = rig_submit(b->s, b->run, NULL, 0, &b->point);
	if (!code)
		code = rig_run_buffer(b->run, 0, NULL);
	(void)polled_run(b->p, foreign);
	if (code || !foreign)
		return code;
	code = rig_buffer_borrow(b->others[0].d, b->dropped[i], &borrowed);
	if (!code)
		code = rig_run_buffer(b->other_run, 0, borrowed);
	if (!code)
		code = rig_submit(b->other_s, b->other_run, NULL, 0, &b->point);
	if (!code)
		code = rig_run_buffer(b->other_run, 0, NULL);
	rig_buffer_put(borrowed);
	return code;
}

static int drain(struct bench *b, bool foreign)
{
	unsigned i;
	int code = 0;

	for (i = 0; i < DROPPED && !code; i++)
		code = use_one(b, i, foreign);
	if (!code)
		code = op_put_all(b);
	(void)polled_run(b->p, DROPPED);
	if (foreign)
		(void)polled_run(b->others[0].p, DROPPED);
	return code ? code : op_take_back(b);
}

int drain_own(struct bench *b)
{
	return drain(b, false);
}

int drain_foreign(struct bench *b)
{
	return drain(b, true);
}
