/* SPDX-License-Identifier: MIT */
/*
 * Devices of other machines: bench-remote KEY DEVICE HOST:PORT [HOST:PORT]
 * Prints microseconds of each row, the least of its rounds. With two machines, copies between their devices
 * too.
 * bench/remote.sh runs it beside the floor.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "rig.h"
#include "rig_remote.h"

#define SMALL UINT64_C(4096)
#define BIG   (UINT64_C(64) << 20)

enum { SMALL_ROUNDS = 500, BIG_ROUNDS = 8 };

struct bench {
	struct rig_device *device;
	struct rig_buffer *buffer, *borrowed, *other;
	void *bytes;
};

static void die(const char *what)
{
	fprintf(stderr, "bench-remote: %s: %s\n", what, rig_error());
	exit(1);
}

static int allocate(struct bench *b)
{
	struct rig_buffer *buffer;
	int err = rig_buffer_create(b->device, RIG_DEVICE, SMALL, &buffer);

	if (err)
		return err;
	rig_buffer_put(buffer);
	/* Or the next one comes from the cache. */
	rig_cache_trim(b->device, 0);
	return 0;
}

static int write_big(struct bench *b)
{
	return rig_buffer_write(b->buffer, 0, b->bytes, BIG);
}

static int read_big(struct bench *b)
{
	return rig_buffer_read(b->buffer, 0, b->bytes, BIG);
}

static int copy_there(struct bench *b)
{
	return rig_buffer_copy(b->buffer, 0, b->borrowed, 0, BIG);
}

static int copy_back(struct bench *b)
{
	return rig_buffer_copy(b->borrowed, 0, b->buffer, 0, BIG);
}

static int copy_between(struct bench *b)
{
	return rig_buffer_copy(b->other, 0, b->buffer, 0, BIG);
}

static void measure(struct bench *b, const char *name, int (*run)(struct bench *), unsigned rounds)
{
	uint64_t least = UINT64_MAX;
	unsigned i;

	for (i = 0; i <= rounds; i++) {
		uint64_t start = rig_clock_ns(), took;

		if (run(b))
			die(name);
		took = rig_clock_ns() - start;
		/* The first makes what the others find. */
		if (i && took < least)
			least = took;
	}
	printf("%s %.1f\n", name, (double)least / 1e3);
}

static struct rig_device *open_device(struct rig_remote_job *job, const char *device, const char *machine)
{
	struct rig_device *opened;
	char name[256];

	(void)snprintf(name, sizeof(name), "%s@%s", device, machine);
	if (rig_remote_open(job, name, &opened))
		die(name);
	return opened;
}

static struct rig_buffer *make_buffer(struct rig_device *device)
{
	struct rig_buffer *buffer;

	if (rig_buffer_create(device, RIG_DEVICE, BIG, &buffer))
		die("a buffer");
	return buffer;
}

int main(int argc, char **argv)
{
	struct rig_remote_stats stats;
	struct rig_remote_job *job;
	struct bench b = {0};

	if (argc < 4 || argc > 5) {
		fprintf(stderr, "usage: bench-remote KEY DEVICE HOST:PORT [HOST:PORT]\n");
		return 2;
	}
	if (rig_remote_connect((const char *const *)argv + 3, (uint32_t)argc - 3, argv[1], NULL, &job))
		die("connect");
	b.device = open_device(job, argv[2], argv[3]);
	b.buffer = make_buffer(b.device);
	b.bytes = aligned_alloc(SMALL, BIG);
	if (!b.bytes || rig_buffer_of_host(b.device, b.bytes, BIG, &b.borrowed))
		die("memory of the program's");
	memset(b.bytes, 1, BIG);
	measure(&b, "allocate", allocate, SMALL_ROUNDS);
	(void)rig_remote_stats(job, 0, &stats);
	printf("round-trip %.1f\n", (double)stats.round_trip_ns / 1e3);
	measure(&b, "there", write_big, BIG_ROUNDS);
	measure(&b, "back", read_big, BIG_ROUNDS);
	measure(&b, "there-borrowed", copy_there, BIG_ROUNDS);
	measure(&b, "back-borrowed", copy_back, BIG_ROUNDS);
	if (argc == 5) {
		struct rig_device *other = open_device(job, argv[2], argv[4]);

		b.other = make_buffer(other);
		measure(&b, "between", copy_between, BIG_ROUNDS);
	}
	rig_remote_close(job);
	return 0;
}
