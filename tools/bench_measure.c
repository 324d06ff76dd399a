/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "clock.h"

#define BLOCKS 4u
#define SIDES  (1u + BENCH_FLOORS)

/* Ours or a floor while a row is measured. */
struct side {
	bench_sample *sample; /* NULL: not there, or given up */
	char *why;            /* where a floor's failure is told; NULL: ours, whose failure is the row's */
	struct bench_samples samples;
	uint64_t operations, messages; /* ours: of every operation, warm-up too */
};

static uint32_t batch_of(const struct bench_row *row)
{
	return row->batch ? row->batch : 1;
}

static uint64_t messages_of(const struct bench *bench)
{
	struct rig_vfio_stats stats;

	if (!bench->record)
		return bench->open_messages;
	bench->record->stats(bench->record, &stats);
	return stats.messages + bench->open_messages;
}

/* At least one sample, and as many as `ns` allow. */
static int take_block(struct bench *bench, const struct bench_row *row, struct side *side, uint64_t ns)
{
	uint64_t sample, end;
	uint32_t i;
	int err = 0;

	for (i = 0; i < row->warm && !err; i++, side->operations += batch_of(row))
		err = side->sample(bench, row, &sample);
	end = rig_clock_ns() + ns;
	while (!err) {
		err = side->sample(bench, row, &sample);
		side->operations += batch_of(row);
		if (!err)
			bench_samples_add(&side->samples, sample);
		if (rig_clock_ns() >= end)
			break;
	}
	return err;
}

static int take_turn(struct bench *bench, const struct bench_row *row, struct side *side, uint64_t ns)
{
	uint64_t before = messages_of(bench);
	int err;

	if (!side->sample)
		return 0;
	err = take_block(bench, row, side, ns);
	side->messages += messages_of(bench) - before;
	if (!err || !side->why)
		return err;
	snprintf(side->why, BENCH_TEXT, "%s", rig_error());
	side->sample = NULL;
	side->samples.count = 0;
	return 0;
}

static void set_sides(const struct bench *bench, struct bench_result *result, struct side *sides)
{
	const struct bench_row *row = result->row;
	unsigned i;

	sides[0].sample = row->ours;
	for (i = 0; i < BENCH_FLOORS; i++) {
		sides[1 + i].why = result->floor_why[i];
		if (row->floor[i].by_hand && !bench->hand)
			snprintf(result->floor_why[i], BENCH_TEXT, "%s", bench->hand_why);
		else
			sides[1 + i].sample = row->floor[i].sample;
	}
}

static int take_blocks(struct bench *bench, struct bench_result *result, unsigned ms)
{
	uint64_t ns = ms * RIG_NS_PER_MS / BLOCKS * (result->row->patient ? result->row->patient : 1);
	struct side sides[SIDES] = {{0}};
	unsigned block, i;
	int err = 0;

	set_sides(bench, result, sides);
	for (block = 0; block < BLOCKS && !err; block++)
		for (i = 0; i < SIDES && !err; i++)
			err = take_turn(bench, result->row, &sides[i], ns);
	result->ours = bench_samples_times(&sides[0].samples, batch_of(result->row));
	if (!result->row->uncounted && sides[0].operations)
		result->messages = (double)sides[0].messages / (double)sides[0].operations;
	for (i = 0; i < BENCH_FLOORS; i++)
		result->floor[i] = bench_samples_times(&sides[1 + i].samples, batch_of(result->row));
	for (i = 0; i < SIDES; i++)
		bench_samples_free(&sides[i].samples);
	return err;
}

int bench_measure(struct bench *bench, const struct bench_row *row, unsigned ms, struct bench_result *result)
{
	int err = row->prepare ? row->prepare(bench, row) : 0;

	*result = (struct bench_result){.row = row, .messages = -1};
	if (!err)
		err = take_blocks(bench, result, ms);
	if (err == -ENOMEM || err == -ENOTSUP) {
		snprintf(result->skipped, sizeof(result->skipped), "%s", rig_error());
		err = 0;
	}
	bench_clear(bench);
	return err;
}

int bench_host_memory(const struct bench_row *row, uint8_t **memory)
{
	long page = sysconf(_SC_PAGESIZE);

	*memory = aligned_alloc((size_t)page, (row->bytes + (size_t)page - 1) / (size_t)page * (size_t)page);
	if (!*memory)
		return rig_error_set(-ENOMEM, "no %llu bytes of host memory", (unsigned long long)row->bytes);
	memset(*memory, 0x5A, row->bytes);
	return 0;
}

void bench_clear(struct bench *bench)
{
	rig_run_put(bench->run);
	bench->run = NULL;
	rig_submission_put(bench->submission);
	rig_image_put(bench->image);
	rig_buffer_put(bench->a);
	rig_buffer_put(bench->b);
	free(bench->host);
	free(bench->host2);
	bench->submission = NULL;
	bench->image = NULL;
	bench->a = bench->b = NULL;
	bench->host = bench->host2 = NULL;
	/* The next row finds the device's memory whole. */
	if (bench->device)
		rig_cache_trim(bench->device, 0);
}
