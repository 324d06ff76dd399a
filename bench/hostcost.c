/* SPDX-License-Identifier: MIT */
/*
 * hostcost OPERATION COUNT: runs one operation of the runtime at least COUNT times over the polled driver,
 * whose rings are passive memory, and prints how often it ran and the nanoseconds each.
 * scripts/bench-hostcost runs it under callgrind, which counts only what lies below the functions named op_
 * and floor_; the device's side runs between them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hostcost.h"

static const struct operation {
	const char *name;
	int (*prepare)(struct bench *b);
	int (*run)(struct bench *b);
	unsigned per; /* operations a run */
} operations[] = {
        {"empty", make_empty, op_submit, BATCH},
        {"empty-floor", floor_empty, floor_submit, BATCH},
        {"profiled", make_profiled, op_submit, BATCH},
        {"launch", make_launch, op_submit, BATCH},
        {"launch-floor", floor_launch, floor_submit, BATCH},
        {"copy", make_copy, op_submit, BATCH},
        {"copy-floor", floor_copy, floor_submit, BATCH},
        {"wait", make_wait, op_wait, BATCH},
        {"wait-floor", make_wait, floor_wait, BATCH},
        {"alloc-device", make_device, op_alloc, BATCH},
        {"alloc-device-floor", make_device, floor_alloc, BATCH},
        {"alloc-pinned", make_pinned, op_alloc, BATCH},
        {"alloc-pinned-floor", make_pinned, floor_alloc, BATCH},
        {"buffers", make_buffers, op_submit, BATCH},
        {"buffers-shared", make_shared, op_submit, BATCH},
        {"buffers-floor", floor_buffers, floor_submit, BATCH},
        {"waits", make_waits, op_waits, BATCH},
        {"waits-floor", make_waits, floor_waits, BATCH},
        {"wait-buffer", make_used, op_wait_buffer, BATCH},
        {"wait-buffer-floor", make_used, floor_wait_buffer, BATCH},
        {"replay-1", make_copy, replay_1, BATCH},
        {"replay-100", make_copy, replay_100, BATCH *PIPELINED},
        {"drain", make_dropped, drain_own, DROPPED},
        {"drain-foreign", make_dropped, drain_foreign, DROPPED},
        {"submit-10", make_live_10, op_submit, BATCH},
        {"submit-1000", make_live_1000, op_submit, BATCH},
        {"submit-100000", make_live_100000, op_submit, BATCH},
        {"alloc-10", make_live_10, op_alloc, BATCH},
        {"alloc-1000", make_live_1000, op_alloc, BATCH},
        {"alloc-100000", make_live_100000, op_alloc, BATCH},
        {"devices-10", make_devices_10, op_submit, BATCH},
        {"devices-1000", make_devices_1000, op_submit, BATCH},
        {"devices-alloc-10", make_devices_10, op_alloc, BATCH},
        {"devices-alloc-1000", make_devices_1000, op_alloc, BATCH},
        {"launch-10", make_images_10, op_submit, BATCH},
        {"launch-1000", make_images_1000, op_submit, BATCH},
        {"launch-100000", make_images_100000, op_submit, BATCH},
};

static int open_bench(struct bench *b)
{
	static const struct polled_options options = {.name = "P0",
	        .capacity = 1024,
	        .peers = true,
	        .times = true,
	        .waits = {true, true},
	        .completion = RIG_STORE};

	b->p = polled_new(&options);
	return rig_open(polled_opener(b->p), &b->d);
}

static int run(const struct operation *op, unsigned long count)
{
	static struct bench b;
	unsigned long done;
	uint64_t start, spent = 0;
	int code = open_bench(&b);

	if (!code)
		code = op->prepare(&b);
	for (done = 0; done < count && !code; done += op->per) {
		start = rig_now_ns();
		code = op->run(&b);
		spent += rig_now_ns() - start;
		(void)polled_run(b.p, BATCH);
	}
	if (code || polled_breach(b.p)) {
		(void)fprintf(
		        stderr, "%s: %s\n", op->name, polled_breach(b.p) ? polled_breach(b.p) : rig_error());
		return 1;
	}
	(void)printf("%lu %.1f\n", done, (double)spent / (double)done);
	return 0;
}

int main(int argc, char **argv)
{
	size_t i;

	if (argc == 2 && strcmp(argv[1], "threads") == 0)
		return hostcost_threads();
	if (argc != 3) {
		(void)fprintf(stderr, "usage: %s OPERATION COUNT, or %s threads\n", argv[0], argv[0]);
		return 2;
	}
	for (i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (strcmp(operations[i].name, argv[1]) == 0)
			return run(&operations[i], strtoul(argv[2], NULL, 10));
	(void)fprintf(stderr, "%s: no such operation\n", argv[1]);
	return 2;
}
