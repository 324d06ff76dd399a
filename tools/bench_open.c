/* SPDX-License-Identifier: MIT */
/* From nothing to the first completed work: the driver's log says when each of its steps is over. */
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "bench_kernel.h"
#include "clock.h"
#include "rig.h"
#include "rig_vfio.h"
#include "rigctl.h"

#define ROUNDS 5u
#define PHASES 24u
#define NAME   64u
#define STEP   "open: " /* how the log's lines begin that are meant here */

struct phases {
	char name[PHASES][NAME];
	uint64_t ns[PHASES][ROUNDS];
	unsigned count, round;
	uint64_t last_ns;
};

/* The phase `name` ended now. */
static void end_phase(struct phases *p, const char *name)
{
	uint64_t now = rig_clock_ns();
	unsigned i = 0;

	while (i < p->count && strcmp(p->name[i], name))
		i++;
	if (i == PHASES)
		return;
	if (i == p->count)
		snprintf(p->name[p->count++], NAME, "%.*s", (int)NAME - 1, name);
	p->ns[i][p->round] += now - p->last_ns;
	p->last_ns = now;
}

/* Opening is one thread's, and so are these lines of the log. */
static void log_line(void *arg, int level, const char *text)
{
	(void)level;
	if (!strncmp(text, STEP, strlen(STEP)))
		end_phase(arg, text + strlen(STEP));
}

static int first_work(struct phases *p, struct rig_device *device)
{
	struct rig_work part = {.kind = RIG_LAUNCH,
	        .u.launch = {.function = BENCH_KERNEL_NAME, .params = BENCH_KERNEL_PARAMS}};
	const struct rig_description description = {.version = RIG_EDGE_VERSION, .parts = &part, .nparts = 1};
	struct rig_submission *submission = NULL;
	struct rig_run_args *run = NULL;
	struct rig_image *image = NULL;
	struct rig_point point;
	int err = rig_image_load(device, bench_kernel, sizeof(bench_kernel), &image);

	end_phase(p, "loading an image");
	part.u.launch.image = image;
	if (!err)
		err = rig_submission_make(device, &description, &submission);
	if (!err)
		err = rig_run_make(submission, &run);
	end_phase(p, "describing the work");
	if (!err)
		err = rig_submit(submission, run, NULL, 0, &point);
	if (!err)
		err = rig_wait(point);
	end_phase(p, "the first launch: submit, wait");
	rig_run_put(run);
	rig_submission_put(submission);
	rig_image_put(image);
	return err;
}

static int go(struct phases *p, const char *text)
{
	const struct rig_vfio_options options = {
	        .version = RIG_EDGE_VERSION, .guard = true, .log = log_line, .log_arg = p};
	struct rig_opener *opener;
	struct rig_device *device;
	int err = rig_vfio_opener(text, &options, &opener);

	if (err)
		return complain(EXIT_USAGE, "%s", rig_error());
	p->last_ns = rig_clock_ns();
	err = rig_open(opener, &device);
	rig_vfio_opener_free(opener);
	if (err)
		return complain(EXIT_OPEN, "%s", rig_error());
	end_phase(p, "rig.h's own part of opening");
	err = first_work(p, device);
	if (err)
		err = complain(EXIT_FAILED, "%s", rig_error());
	p->last_ns = rig_clock_ns();
	rig_close(device);
	rig_device_put(device);
	end_phase(p, "closing, which is not counted above");
	return err;
}

static uint64_t median(const uint64_t *ns)
{
	uint64_t sorted[ROUNDS];
	unsigned i, j;

	for (i = 0; i < ROUNDS; i++) {
		for (j = i; j && sorted[j - 1] > ns[i]; j--)
			sorted[j] = sorted[j - 1];
		sorted[j] = ns[i];
	}
	return sorted[ROUNDS / 2];
}

static double ms(uint64_t ns)
{
	return (double)ns / (double)RIG_NS_PER_MS;
}

static void print(const struct phases *p)
{
	uint64_t total = 0;
	unsigned i;

	for (i = 0; i + 1 < p->count; i++)
		total += median(p->ns[i]);
	for (i = 0; i < p->count; i++) {
		if (i + 1 == p->count)
			printf("%-40s %10.3f ms\n", "open to first completed work", ms(total));
		printf("%-40s %10.3f ms\n", p->name[i], ms(median(p->ns[i])));
	}
}

int bench_open_phases(const char *text)
{
	static struct phases p;
	int err = 0;

	for (p.round = 0; p.round < ROUNDS && !err; p.round++)
		err = go(&p, text);
	if (err)
		return err;
	printf("%s: medians of %u opens\n", text, ROUNDS);
	print(&p);
	return 0;
}
