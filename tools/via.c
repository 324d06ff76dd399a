/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bdf.h"
#include "via.h"

enum { LISTED = 64, NAME = 256 };

#define MOST_COPY (UINT64_C(4) << 30)

struct via via;

const char *via_key(void)
{
	return via.key ? via.key : getenv("RIG_KEY");
}

int via_connect(void)
{
	const char *key = via_key();

	if (via.job)
		return 0;
	if (!key)
		return complain(EXIT_USAGE, "--via needs --key FILE, or RIG_KEY in the environment");
	if (rig_remote_connect(&via.machine, 1, key, NULL, &via.job))
		return complain(EXIT_OPEN, "%s", rig_error());
	return 0;
}

void via_close(void)
{
	rig_remote_close(via.job);
	via.job = NULL;
}

int via_open(const char *text, struct rig_device **device)
{
	char name[NAME], address[RIG_BDF_TEXT];
	int err = via_connect();

	if (err)
		return err;
	/* Where no other was given, the agent's names are the device strings up to their options. */
	snprintf(name, sizeof(name), "%s@%s", rig_bdf_name(text, address) ? address : text, via.machine);
	if (rig_remote_open(via.job, name, device))
		return complain(EXIT_OPEN, "cannot open %s", rig_error());
	return 0;
}

/* ---- list ---- */

static int list(int argc, char **argv)
{
	static struct rig_remote_listed listed[LISTED];
	int err = argc > 1 ? complain(EXIT_USAGE, "%s: list takes nothing with --via", argv[1])
	                   : via_connect(),
	    n, i;

	if (err)
		return err;
	n = rig_remote_list(via.job, 0, listed, LISTED);
	if (n < 0)
		return complain(EXIT_FAILED, "%s", rig_error());
	printf("%-16s %-8s %s\n", "DEVICE", "KIND", "STATE");
	for (i = 0; i < n && i < LISTED; i++)
		printf("%-16s %-8s %s\n", listed[i].name, listed[i].host ? "memory" : "device",
		        listed[i].busy ? "open" : "free");
	return EXIT_DONE;
}

/* ---- info ---- */

static int info(int argc, char **argv)
{
	struct rig_device *device;
	struct rig_remote_stats stats;
	int64_t ahead = 0;
	uint64_t error = 0;
	const struct rig_facts *facts;
	const struct rig_queue *queues;
	uint32_t i, n;
	int err = argc == 2 ? via_open(argv[1], &device)
	                    : complain(EXIT_USAGE,
	                              "with --via it takes a DEVICE, which list names, and nothing else");

	if (err)
		return err;
	facts = rig_device_facts(device);
	queues = rig_queues(device, &n);
	(void)rig_remote_clock(via.job, 0, &ahead, &error);
	(void)rig_remote_stats(via.job, 0, &stats);
	printf("device      %s, %s\n", rig_name(device), rig_arch(device));
	printf("bus         %s\n", rig_bus(device) ? rig_bus(device) : "none");
	printf("memory      %" PRIu64 " bytes at most\n", facts->budget);
	if (facts->has_hang_ms)
		printf("hang bound  %" PRId64 " ms\n", facts->hang_ms);
	for (i = 0; i < n; i++)
		printf("queue       %s%s\n", queues[i].name,
		        facts->has_copy_engine && facts->copy_engine == (int32_t)i ? " (copy engine)" : "");
	printf("connection  %.1f us there and back, its clock %+.6f s from here, to %.1f us\n",
	        (double)stats.round_trip_ns / 1e3, (double)ahead / 1e9, (double)error / 1e3);
	close_device(device);
	return EXIT_DONE;
}

/* ---- copy ---- */

static void fill(uint64_t *words, uint64_t n)
{
	uint64_t i, x = UINT64_C(88172645463325252);

	for (i = 0; i < n; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		words[i] = x;
	}
}

static double rate(uint64_t bytes, uint64_t ns)
{
	return (double)bytes / (double)(ns ? ns : 1);
}

/* There and back, and whether they are the same. */
static int copy_bytes(struct rig_device *device, uint64_t bytes)
{
	uint64_t *sent = malloc(bytes), *got = malloc(bytes), t[3];
	struct rig_buffer *buffer = NULL;
	int status = EXIT_FAILED;

	if (!sent || !got || rig_buffer_create(device, RIG_DEVICE, bytes, &buffer)) {
		complain(EXIT_FAILED, "%s", sent && got ? rig_error() : "no memory");
		goto out;
	}
	fill(sent, bytes / sizeof(*sent));
	t[0] = rig_now_ns();
	if (rig_buffer_write(buffer, 0, sent, bytes))
		goto failed;
	t[1] = rig_now_ns();
	if (rig_buffer_read(buffer, 0, got, bytes))
		goto failed;
	t[2] = rig_now_ns();
	printf("there       %" PRIu64 " bytes, %.3f GB/s\nback        %.3f GB/s\n", bytes,
	        rate(bytes, t[1] - t[0]), rate(bytes, t[2] - t[1]));
	status = memcmp(sent, got, bytes) ? complain(EXIT_FAILED, "what came back is not what was sent")
	                                  : EXIT_DONE;
	goto out;
failed:
	complain(EXIT_FAILED, "%s", rig_error());
out:
	rig_buffer_put(buffer);
	free(sent);
	free(got);
	return status;
}

static int copy(int argc, char **argv)
{
	struct rig_device *device;
	char *end = NULL;
	uint64_t bytes = argc == 3 ? strtoull(argv[2], &end, 0) : 0;
	int err;

	if (argc != 3 || !end || *end || bytes < sizeof(uint64_t) || bytes > MOST_COPY ||
	        bytes % sizeof(uint64_t))
		return complain(
		        EXIT_USAGE, "copy takes DEVICE BYTES, BYTES a multiple of 8, 8 to 4294967296");
	err = via_open(argv[1], &device);
	if (err)
		return err;
	err = copy_bytes(device, bytes);
	close_device(device);
	return err;
}

/* ---- bench ---- */

enum { ROUNDS = 200, BIG_ROUNDS = 5 };

#define SMALL UINT64_C(4096)
#define BIG   (UINT64_C(64) << 20)

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

struct bench {
	struct rig_device *device;
	struct rig_buffer *buffer;
	struct rig_submission *empty;
	uint8_t *bytes;
};

static int bench_alloc(struct bench *b)
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

static int bench_empty(struct bench *b)
{
	struct rig_point point;
	int err = rig_submit(b->empty, NULL, NULL, 0, &point);

	return err ? err : rig_wait(point);
}

static int bench_write_small(struct bench *b)
{
	return rig_buffer_write(b->buffer, 0, b->bytes, SMALL);
}

static int bench_read_small(struct bench *b)
{
	return rig_buffer_read(b->buffer, 0, b->bytes, SMALL);
}

static int bench_write_big(struct bench *b)
{
	return rig_buffer_write(b->buffer, 0, b->bytes, BIG);
}

static int bench_read_big(struct bench *b)
{
	return rig_buffer_read(b->buffer, 0, b->bytes, BIG);
}

static const struct row {
	const char *name;
	int (*run)(struct bench *);
	unsigned rounds;
	uint64_t bytes;
} rows[] = {
        {"allocation of 4 KiB", bench_alloc, ROUNDS, 0},
        {"empty submission, to its wait", bench_empty, ROUNDS, 0},
        {"4 KiB there", bench_write_small, ROUNDS, SMALL},
        {"4 KiB back", bench_read_small, ROUNDS, SMALL},
        {"64 MiB there", bench_write_big, BIG_ROUNDS, BIG},
        {"64 MiB back", bench_read_big, BIG_ROUNDS, BIG},
};

/* The median of a row, 0 after a failure. */
static uint64_t measure(struct bench *b, const struct row *row)
{
	static uint64_t times[ROUNDS];
	unsigned i;

	if (row->run(b))
		return 0;
	for (i = 0; i < row->rounds; i++) {
		uint64_t start = rig_now_ns();

		if (row->run(b))
			return 0;
		times[i] = rig_now_ns() - start;
	}
	qsort(times, row->rounds, sizeof(times[0]), compare);
	return times[row->rounds / 2];
}

static int print_rows(struct bench *b)
{
	struct rig_remote_stats stats;
	unsigned i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t ns = measure(b, &rows[i]);

		if (!ns)
			return complain(EXIT_FAILED, "%s: %s", rows[i].name, rig_error());
		printf("%-32s %12.1f us", rows[i].name, (double)ns / 1e3);
		printf(rows[i].bytes ? "  %8.3f GB/s\n" : "\n", rate(rows[i].bytes, ns));
	}
	(void)rig_remote_stats(via.job, 0, &stats);
	printf("%-32s %12.1f us\n", "round trip of the connection", (double)stats.round_trip_ns / 1e3);
	return EXIT_DONE;
}

static int bench(int argc, char **argv)
{
	const struct rig_description none = {.version = RIG_EDGE_VERSION};
	struct bench b = {0};
	int err = argc == 2 ? via_open(argv[1], &b.device)
	                    : complain(EXIT_USAGE,
	                              "with --via it takes a DEVICE, which list names, and nothing else");

	if (err)
		return err;
	b.bytes = calloc(1, BIG);
	if (!b.bytes || rig_buffer_create(b.device, RIG_DEVICE, BIG, &b.buffer) ||
	        rig_submission_make(b.device, &none, &b.empty))
		err = complain(EXIT_FAILED, "%s", b.bytes ? rig_error() : "no memory");
	else
		err = print_rows(&b);
	rig_submission_put(b.empty);
	rig_buffer_put(b.buffer);
	free(b.bytes);
	close_device(b.device);
	return err;
}

/* ---- Dispatch ---- */

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} there[] = {{"list", list}, {"info", info}, {"copy", copy}, {"bench", bench}};

int via_dispatch(const struct command *command, int argc, char **argv)
{
	unsigned i;
	int status = -1;

	for (i = 0; i < sizeof(there) / sizeof(there[0]) && status < 0; i++)
		if (!strcmp(argv[0], there[i].name))
			status = there[i].run(argc, argv);
	if (status < 0)
		status = command && !strcmp(command->name, "run")
		                 ? command->run(argc, argv)
		                 : complain(EXIT_USAGE,
		                           "no command \"%s\" with --via: list, info, run, copy or bench",
		                           argv[0]);
	via_close();
	return status;
}
