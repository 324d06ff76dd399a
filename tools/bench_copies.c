/* SPDX-License-Identifier: MIT */
/* Bulk: bytes between host and device, and within the device. Floors: memcpy, and the copy engine driven by
 * hand. */
#include <string.h>

#include "bench.h"
#include "bench_hand.h"
#include "clock.h"

#define KIB    UINT64_C(1024)
#define MIB    (1024 * KIB)
#define PIECE  (4 * MIB) /* of a copy by hand: one is under way while the next is filled */
#define HALVES 2u
#define MEMCPY "memcpy between host memory"
#define STAGED "through DMA memory by hand, on a model of its own"
#define PLAIN  "one COPY packet by hand, on a model of its own"
#define LARGE  MIB

static int make_buffer(struct bench *bench, const struct bench_row *row)
{
	int err = rig_buffer_create(bench->device, row->kind, row->bytes, &bench->a);

	if (!err)
		err = bench_host_memory(row, &bench->host);
	if (!err)
		err = bench_host_memory(row, &bench->host2);
	return err ? err : rig_buffer_write(bench->a, 0, bench->host, row->bytes);
}

static int make_two(struct bench *bench, const struct bench_row *row)
{
	int err = make_buffer(bench, row);

	return err ? err : rig_buffer_create(bench->device, row->kind, row->bytes, &bench->b);
}

static int ours_write(struct bench *bench, const struct bench_row *row, uint64_t *ns)
{
	uint64_t start = rig_clock_ns();
	int err = rig_buffer_write(bench->a, 0, bench->host, row->bytes);

	*ns = rig_clock_ns() - start;
	return err;
}

static int ours_read(struct bench *bench, const struct bench_row *row, uint64_t *ns)
{
	uint64_t start = rig_clock_ns();
	int err = rig_buffer_read(bench->a, 0, bench->host, row->bytes);

	*ns = rig_clock_ns() - start;
	return err;
}

static int ours_within(struct bench *bench, const struct bench_row *row, uint64_t *ns)
{
	uint64_t start = rig_clock_ns();
	int err = rig_buffer_copy(bench->b, 0, bench->a, 0, row->bytes);

	*ns = rig_clock_ns() - start;
	return err;
}

static int floor_memcpy(struct bench *bench, const struct bench_row *row, uint64_t *ns)
{
	uint64_t start = rig_clock_ns();

	memcpy(bench->host2, bench->host, row->bytes);
	*ns = rig_clock_ns() - start;
	return 0;
}

/* A copy by hand through two pieces of DMA memory. */
struct staged {
	struct bench_hand *hand;
	uint64_t board, dma;
	uint8_t *pieces, *host;
	uint64_t piece, bytes;
};

static int stage(struct bench *bench, const struct bench_row *row, struct staged *s)
{
	int err;

	*s = (struct staged){.hand = bench->hand,
	        .host = bench->host,
	        .bytes = row->bytes,
	        .piece = row->bytes < PIECE ? row->bytes : PIECE};
	err = bench_hand_board(s->hand, row->bytes, &s->board);
	return err ? err : bench_hand_dma(s->hand, HALVES * s->piece, &s->dma, &s->pieces);
}

static uint64_t length(const struct staged *s, uint64_t done)
{
	return s->bytes - done < s->piece ? s->bytes - done : s->piece;
}

static int stage_write(struct staged *s)
{
	uint64_t done, value[HALVES] = {0};
	unsigned half = 0;
	int err = 0;

	for (done = 0; done < s->bytes && !err; done += s->piece, half ^= 1) {
		uint64_t at = half * s->piece, n = length(s, done);

		err = bench_hand_wait(s->hand, value[half]);
		memcpy(s->pieces + at, s->host + done, n);
		value[half] = bench_hand_copy(s->hand, s->board + done, s->dma + at, n);
	}
	return err ? err : bench_hand_wait(s->hand, value[half ^ 1]);
}

static int stage_read(struct staged *s)
{
	uint64_t done, value[HALVES] = {0};
	unsigned half = 0;
	int err = 0;

	value[0] = bench_hand_copy(s->hand, s->dma, s->board, length(s, 0));
	for (done = 0; done < s->bytes && !err; done += s->piece, half ^= 1) {
		uint64_t next = done + s->piece;

		if (next < s->bytes)
			value[half ^ 1] = bench_hand_copy(
			        s->hand, s->dma + (half ^ 1) * s->piece, s->board + next, length(s, next));
		err = bench_hand_wait(s->hand, value[half]);
		memcpy(s->host + done, s->pieces + half * s->piece, length(s, done));
	}
	return err;
}

static int floor_write(struct bench *bench, const struct bench_row *row, uint64_t *ns)
{
	struct staged s;
	int err = stage(bench, row, &s);
	uint64_t start = rig_clock_ns();

	if (!err)
		err = stage_write(&s);
	*ns = rig_clock_ns() - start;
	return err;
}

static int floor_read(struct bench *bench, const struct bench_row *row, uint64_t *ns)
{
	struct staged s;
	int err = stage(bench, row, &s);
	uint64_t start = rig_clock_ns();

	if (!err)
		err = stage_read(&s);
	*ns = rig_clock_ns() - start;
	return err;
}

static int floor_within(struct bench *bench, const struct bench_row *row, uint64_t *ns)
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

#define COPY_(name_, kind_, bytes_, make, ours_, ...)                                                        \
	{                                                                                                    \
		.name = (name_), .group = BENCH_BULK, .unit = "copy", .warm = (bytes_) < LARGE ? 50 : 1,     \
		.bytes = (bytes_), .kind = (kind_), .prepare = (make), .ours = (ours_), .floor = {           \
			{.what = MEMCPY, .sample = floor_memcpy},                                            \
			__VA_ARGS__                                                                          \
		}                                                                                            \
	}
#define WRITE_(size, bytes)                                                                                  \
	COPY_("copy " size " host to device", RIG_DEVICE, bytes, make_buffer, ours_write,                    \
	        {.what = STAGED, .sample = floor_write, .by_hand = true})
#define READ_(size, bytes)                                                                                   \
	COPY_("copy " size " device to host", RIG_DEVICE, bytes, make_buffer, ours_read,                     \
	        {.what = STAGED, .sample = floor_read, .by_hand = true})

const struct bench_row bench_copies[] = {
        WRITE_("4 KiB", 4 * KIB),
        WRITE_("64 KiB", 64 * KIB),
        WRITE_("1 MiB", MIB),
        WRITE_("16 MiB", 16 * MIB),
        WRITE_("64 MiB", 64 * MIB),
        READ_("4 KiB", 4 * KIB),
        READ_("64 KiB", 64 * KIB),
        READ_("1 MiB", MIB),
        READ_("16 MiB", 16 * MIB),
        READ_("64 MiB", 64 * MIB),
        COPY_("copy 64 MiB host to mapped", RIG_MAPPED, 64 * MIB, make_buffer, ours_write, {.what = NULL}),
        COPY_("copy 64 MiB mapped to host", RIG_MAPPED, 64 * MIB, make_buffer, ours_read, {.what = NULL}),
        COPY_("copy 64 MiB within the device", RIG_DEVICE, 64 * MIB, make_two, ours_within,
                {.what = PLAIN, .sample = floor_within, .by_hand = true}),
        {.name = NULL},
};
