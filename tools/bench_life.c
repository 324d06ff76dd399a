/* SPDX-License-Identifier: MIT */
/* Set-up: images, opening, closing. */
#include "bench.h"
#include "bench_hand.h"
#include "bench_kernel.h"
#include "clock.h"

#define PLACE "placed in DMA memory and copied by hand"
#define SPAWN "starting the model and the protocol's handshake"
#define REAP  "ending the session and the model"

static int ours_load(struct bench *bench, const struct bench_row *row, uint64_t *ns)
{
	struct rig_image *image;
	uint64_t start = rig_clock_ns();
	int err = rig_image_load(bench->device, bench_kernel, sizeof(bench_kernel), &image);

	(void)row;
	*ns = rig_clock_ns() - start;
	if (!err)
		rig_image_put(image);
	return err;
}

static int floor_load(struct bench *bench, const struct bench_row *row, uint64_t *ns)
{
	uint64_t start = rig_clock_ns();
	int err = bench_hand_place(bench->hand, bench_kernel, sizeof(bench_kernel));

	(void)row;
	*ns = rig_clock_ns() - start;
	return err;
}

static int open_and_close(struct bench *bench, uint64_t *open_ns, uint64_t *close_ns)
{
	const struct rig_vfio_record *record;
	struct rig_vfio_stats stats;
	struct rig_device *device;
	uint64_t start = rig_clock_ns();
	int err = bench_open(bench, &device);

	*open_ns = rig_clock_ns() - start;
	if (err)
		return err;
	record = rig_capability(device, &rig_vfio_key);
	record->stats(record, &stats);
	bench->open_messages += stats.messages;
	start = rig_clock_ns();
	err = rig_close(device);
	rig_device_put(device);
	*close_ns = rig_clock_ns() - start;
	return err;
}

static int ours_open(struct bench *bench, const struct bench_row *row, uint64_t *ns)
{
	uint64_t other;

	(void)row;
	return open_and_close(bench, ns, &other);
}

static int ours_close(struct bench *bench, const struct bench_row *row, uint64_t *ns)
{
	uint64_t other;

	(void)row;
	return open_and_close(bench, &other, ns);
}

static int floor_open(struct bench *bench, const struct bench_row *row, uint64_t *ns)
{
	uint64_t other;

	(void)row;
	return bench_hand_start_and_end(bench->device_text, ns, &other);
}

static int floor_close(struct bench *bench, const struct bench_row *row, uint64_t *ns)
{
	uint64_t other;

	(void)row;
	return bench_hand_start_and_end(bench->device_text, &other, ns);
}

const struct bench_row bench_life[] = {
        {.name = "load an image",
                .group = BENCH_LIFE,
                .unit = "load",
                .warm = 5,
                .ours = ours_load,
                .floor = {{.what = PLACE, .sample = floor_load, .by_hand = true}}},
        {.name = "open",
                .group = BENCH_LIFE,
                .unit = "open",
                .opens = true,
                .ours = ours_open,
                .floor = {{.what = SPAWN, .sample = floor_open}}},
        {.name = "close",
                .group = BENCH_LIFE,
                .unit = "close",
                .opens = true,
                .uncounted = true,
                .ours = ours_close,
                .floor = {{.what = REAP, .sample = floor_close}}},
        {.name = NULL},
};
