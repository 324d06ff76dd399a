/* SPDX-License-Identifier: MIT */
/* Round trips: something is handed to the live board, and seen to be complete. Their floor is the board
 * driven by hand. */
#include <time.h>

#include "bench.h"
#include "bench_hand.h"
#include "bench_kernel.h"
#include "clock.h"

#define FLIGHT     100u
#define LAUNCHES   64u
#define SMALL_COPY 16u
#define IDLE_NS    (5 * RIG_NS_PER_MS)
#define JITTER_NS  RIG_NS_PER_MS /* the model's longest nap: samples meet it at every phase */
#define GOLDEN_NS  618034u       /* of it: steps of this never settle into a few phases */
#define WARM       200u
#define BY_HAND    "the same packets by hand, on a model of its own"

static int make_empty(struct bench *bench, const struct bench_row *row)
{
	const struct rig_description description = {.version = RIG_EDGE_VERSION};

	(void)row;
	return rig_submission_make(bench->device, &description, &bench->submission);
}

/* A submission of that many launches of the empty kernel, and a run of it. */
static int make_launches(struct bench *bench, uint32_t count)
{
	struct rig_work work[LAUNCHES];
	const struct rig_description description = {
	        .version = RIG_EDGE_VERSION, .parts = work, .nparts = count};
	uint32_t i;
	int err = rig_image_load(bench->device, bench_kernel, sizeof(bench_kernel), &bench->image);

	for (i = 0; i < count; i++)
		work[i] = (struct rig_work){.kind = RIG_LAUNCH,
		        .u.launch = {.image = bench->image,
		                .function = BENCH_KERNEL_NAME,
		                .params = BENCH_KERNEL_PARAMS}};
	if (!err)
		err = rig_submission_make(bench->device, &description, &bench->submission);
	if (!err)
		err = rig_run_make(bench->submission, &bench->run);
	if (!err && bench->hand)
		err = bench_hand_load(bench->hand, bench_kernel, sizeof(bench_kernel), BENCH_KERNEL_NAME);
	return err;
}

static int make_launch(struct bench *bench, const struct bench_row *row)
{
	(void)row;
	return make_launches(bench, 1);
}

static int make_many(struct bench *bench, const struct bench_row *row)
{
	(void)row;
	return make_launches(bench, LAUNCHES);
}

static int make_pair(struct bench *bench, const struct bench_row *row)
{
	int err = rig_buffer_create(bench->device, RIG_DEVICE, row->bytes, &bench->a);

	return err ? err : rig_buffer_create(bench->device, RIG_DEVICE, row->bytes, &bench->b);
}

/* `count` submits, and a wait for the last. */
static int submit(struct bench *bench, unsigned count, uint64_t *ns)
{
	uint64_t start = rig_clock_ns();
	struct rig_point point = {0};
	int err = 0;

	while (count-- && !err)
		err = rig_submit(bench->submission, bench->run, NULL, 0, &point);
	if (!err)
		err = rig_wait(point);
	*ns = rig_clock_ns() - start;
	return err;
}

static int ours_one(struct bench *bench, const struct bench_row *row, uint64_t *ns)
{
	(void)row;
	return submit(bench, 1, ns);
}

static int ours_64(struct bench *bench, const struct bench_row *row, uint64_t *ns)
{
	(void)row;
	return submit(bench, LAUNCHES, ns);
}

static int ours_100(struct bench *bench, const struct bench_row *row, uint64_t *ns)
{
	(void)row;
	return submit(bench, FLIGHT, ns);
}

static void idle(void)
{
	static uint64_t jitter;
	struct timespec time = {0};

	jitter = (jitter + GOLDEN_NS) % JITTER_NS;
	time.tv_nsec = (long)(IDLE_NS + jitter);
	nanosleep(&time, NULL);
}

static int ours_idle(struct bench *bench, const struct bench_row *row, uint64_t *ns)
{
	(void)row;
	idle();
	return submit(bench, 1, ns);
}

static int ours_copy(struct bench *bench, const struct bench_row *row, uint64_t *ns)
{
	uint64_t start = rig_clock_ns();
	int err = rig_buffer_copy(bench->b, 0, bench->a, 0, row->bytes);

	*ns = rig_clock_ns() - start;
	return err;
}

static int hand_empty(struct bench *bench, unsigned count, uint64_t *ns)
{
	uint64_t start = rig_clock_ns(), value = 0;
	int err;

	while (count--)
		value = bench_hand_empty(bench->hand);
	err = bench_hand_wait(bench->hand, value);
	*ns = rig_clock_ns() - start;
	return err;
}

static int hand_one(struct bench *bench, const struct bench_row *row, uint64_t *ns)
{
	(void)row;
	return hand_empty(bench, 1, ns);
}

static int hand_100(struct bench *bench, const struct bench_row *row, uint64_t *ns)
{
	(void)row;
	return hand_empty(bench, FLIGHT, ns);
}

static int hand_idle(struct bench *bench, const struct bench_row *row, uint64_t *ns)
{
	(void)row;
	idle();
	return hand_empty(bench, 1, ns);
}

/* `count` doorbells with `launches` launches each. */
static int hand_launches(struct bench *bench, unsigned count, unsigned launches, uint64_t *ns)
{
	uint64_t start = rig_clock_ns(), value = 0;
	int err;

	while (count--)
		value = bench_hand_launch(bench->hand, launches);
	err = bench_hand_wait(bench->hand, value);
	*ns = rig_clock_ns() - start;
	return err;
}

static int hand_launch(struct bench *bench, const struct bench_row *row, uint64_t *ns)
{
	(void)row;
	return hand_launches(bench, 1, 1, ns);
}

static int hand_64_parts(struct bench *bench, const struct bench_row *row, uint64_t *ns)
{
	(void)row;
	return hand_launches(bench, 1, LAUNCHES, ns);
}

static int hand_64_values(struct bench *bench, const struct bench_row *row, uint64_t *ns)
{
	(void)row;
	return hand_launches(bench, LAUNCHES, 1, ns);
}

static int hand_copy(struct bench *bench, const struct bench_row *row, uint64_t *ns)
{
	uint64_t address, start;
	int err = bench_hand_board(bench->hand, 2 * row->bytes, &address);

	if (err)
		return err;
	start = rig_clock_ns();
	err = bench_hand_wait(
	        bench->hand, bench_hand_copy(bench->hand, address + row->bytes, address, row->bytes));
	*ns = rig_clock_ns() - start;
	return err;
}

#define FLOOR_(sample_) .floor = {{.what = BY_HAND, .sample = (sample_), .by_hand = true}}

const struct bench_row bench_trips[] = {
        {.name = "empty submission",
                .unit = "submit and wait",
                .warm = WARM,
                .silent = true,
                .prepare = make_empty,
                .ours = ours_one,
                FLOOR_(hand_one)},
        {.name = "empty submission after 5 ms idle",
                .unit = "submit and wait",
                .patient = 5,
                .silent = true,
                .prepare = make_empty,
                .ours = ours_idle,
                FLOOR_(hand_idle)},
        {.name = "100 empty submissions, one wait",
                .unit = "100 submits and a wait",
                .warm = WARM / 10,
                .silent = true,
                .prepare = make_empty,
                .ours = ours_100,
                FLOOR_(hand_100)},
        {.name = "one launch",
                .unit = "submit and wait",
                .warm = WARM,
                .silent = true,
                .prepare = make_launch,
                .ours = ours_one,
                FLOOR_(hand_launch)},
        {.name = "64 launches, one submission",
                .unit = "submit and wait",
                .warm = WARM / 10,
                .silent = true,
                .prepare = make_many,
                .ours = ours_one,
                FLOOR_(hand_64_parts)},
        {.name = "64 launches, 64 submissions",
                .unit = "64 submits and a wait",
                .warm = WARM / 10,
                .silent = true,
                .prepare = make_launch,
                .ours = ours_64,
                FLOOR_(hand_64_values)},
        {.name = "copy 16 B within the device",
                .unit = "copy and wait",
                .warm = WARM,
                .bytes = SMALL_COPY,
                .silent = true,
                .prepare = make_pair,
                .ours = ours_copy,
                FLOOR_(hand_copy)},
        {.name = NULL},
};
