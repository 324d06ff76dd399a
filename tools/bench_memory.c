/* SPDX-License-Identifier: MIT */
/* Host work: what a wait for a reached point, memory and mappings cost the host. */
#include <stdatomic.h>

#include "bench.h"
#include "bench_hand.h"
#include "clock.h"
#include "tlsf.h"

#define KIB        UINT64_C(1024)
#define MIB        (1024 * KIB)
#define PAGE       4096u
#define WAITS      1000u
#define ALLOCS     100u
#define LARGE_POOL (256 * MIB)
#define TLSF       "the bare allocator"
#define ARENA      "memfd, filled, DMA map and unmap of it"
#define MAPPING    "DMA map and unmap, and 8 bytes a page stored"
#define LOAD       "a load and a comparison"

static int make_reached(struct bench *bench, const struct bench_row *row)
{
	const struct rig_description description = {.version = RIG_EDGE_VERSION};
	int err = rig_submission_make(bench->device, &description, &bench->submission);

	(void)row;
	if (!err)
		err = rig_submit(bench->submission, NULL, NULL, 0, &bench->point);
	return err ? err : rig_wait(bench->point);
}

static int ours_reached(struct bench *bench, const struct bench_row *row, uint64_t *ns)
{
	uint64_t start = rig_clock_ns();
	uint32_t i;
	int err = 0;

	for (i = 0; i < row->batch && !err; i++)
		err = rig_wait(bench->point);
	*ns = rig_clock_ns() - start;
	return err;
}

static int floor_reached(struct bench *bench, const struct bench_row *row, uint64_t *ns)
{
	const rig_atomic_u64 *word = &rig_words()[rig_point_slot(bench->point)];
	uint64_t start = rig_clock_ns();
	uint32_t i;

	for (i = 0; i < row->batch; i++)
		if (atomic_load_explicit(word, memory_order_acquire) < rig_point_value(bench->point))
			break;
	*ns = rig_clock_ns() - start;
	return i == row->batch ? 0 : rig_error_set(-1, "the word shows less than a reached value");
}

static int ours_alloc(struct bench *bench, const struct bench_row *row, uint64_t *ns)
{
	struct rig_buffer *buffer;
	uint64_t start = rig_clock_ns();
	uint32_t i = 0;
	int err = 0;

	do {
		err = rig_buffer_create(bench->device, row->kind, row->bytes, &buffer);
		if (!err)
			rig_buffer_put(buffer);
		if (row->trimmed)
			rig_cache_trim(bench->device, 0);
	} while (++i < row->batch && !err);
	*ns = rig_clock_ns() - start;
	return err;
}

static int floor_alloc(struct bench *bench, const struct bench_row *row, uint64_t *ns)
{
	struct rig_tlsf *tlsf;
	uint64_t start, at;
	uint32_t i;
	int err = rig_tlsf_open(&tlsf, 0, LARGE_POOL, PAGE);

	(void)bench;
	if (err)
		return rig_error_set(err, "an allocator");
	start = rig_clock_ns();
	for (i = 0; i < row->batch && !err; i++) {
		err = rig_tlsf_alloc(tlsf, row->bytes, PAGE, &at);
		if (!err)
			err = rig_tlsf_free(tlsf, at);
	}
	*ns = rig_clock_ns() - start;
	rig_tlsf_close(tlsf);
	return err;
}

static int floor_arena(struct bench *bench, const struct bench_row *row, uint64_t *ns)
{
	uint64_t start = rig_clock_ns();
	int err = bench_hand_map_fresh(bench->hand, row->bytes);

	*ns = rig_clock_ns() - start;
	return err;
}

static int make_host(struct bench *bench, const struct bench_row *row)
{
	return bench_host_memory(row, &bench->host);
}

static int ours_map(struct bench *bench, const struct bench_row *row, uint64_t *ns)
{
	struct rig_buffer *buffer;
	uint64_t start = rig_clock_ns();
	int err = rig_buffer_of_host(bench->device, bench->host, row->bytes, &buffer);

	if (!err)
		rig_buffer_put(buffer);
	*ns = rig_clock_ns() - start;
	return err;
}

/* A page-table entry a page is the least that makes it reachable for work. */
static int floor_map(struct bench *bench, const struct bench_row *row, uint64_t *ns)
{
	uint64_t *entries = (uint64_t *)(void *)bench_hand_window(bench->hand);
	uint64_t i, start = rig_clock_ns();
	int err = bench_hand_map(bench->hand, bench->host, row->bytes);

	for (i = 0; i < row->bytes / PAGE; i++)
		entries[i % PAGE] = i;
	*ns = rig_clock_ns() - start;
	return err;
}

#define ALLOC_(name_, kind_, bytes_, trimmed_)                                                               \
	{                                                                                                    \
		.name = "allocate and free " name_, .group = BENCH_MEMORY, .unit = "allocation and free",    \
		.batch = ALLOCS, .warm = 1, .bytes = (bytes_), .kind = (kind_), .trimmed = (trimmed_),       \
		.ours = ours_alloc, .floor = {                                                               \
			{.what = TLSF, .sample = floor_alloc}                                                \
		}                                                                                            \
	}
#define KIND_(name, kind)                                                                                    \
	ALLOC_("64 KiB " name ", cached", kind, 64 * KIB, false),                                            \
	        ALLOC_("64 KiB " name ", cache trimmed", kind, 64 * KIB, true),                              \
	        ALLOC_("64 MiB " name ", cached", kind, 64 * MIB, false),                                    \
	        ALLOC_("64 MiB " name ", cache trimmed", kind, 64 * MIB, true)

const struct bench_row bench_memory[] = {
        {.name = "wait for a reached point",
                .group = BENCH_MEMORY,
                .unit = "wait",
                .batch = WAITS,
                .warm = 1,
                .silent = true,
                .prepare = make_reached,
                .ours = ours_reached,
                .floor = {{.what = LOAD, .sample = floor_reached}}},
        KIND_("device", RIG_DEVICE),
        KIND_("pinned", RIG_PINNED),
        KIND_("mapped", RIG_MAPPED),
        /* Larger than the step by which arenas grow, so it is mapped for it alone, and unmapped after it. */
        {.name = "allocate and free 72 MiB pinned, new arena",
                .group = BENCH_MEMORY,
                .unit = "allocation and free",
                .bytes = 72 * MIB,
                .kind = RIG_PINNED,
                .trimmed = true,
                .ours = ours_alloc,
                .floor = {{.what = ARENA, .sample = floor_arena, .by_hand = true}}},
        {.name = "map and unmap 64 MiB of host memory",
                .group = BENCH_MEMORY,
                .unit = "map and unmap",
                .bytes = 64 * MIB,
                .warm = 1,
                .prepare = make_host,
                .ours = ours_map,
                .floor = {{.what = MAPPING, .sample = floor_map, .by_hand = true}}},
        {.name = NULL},
};
