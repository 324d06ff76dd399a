/* SPDX-License-Identifier: MIT */
/* What every example needs: a way to end with the library's reason, and a device by its string. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <rig.h>
#include <rig_vfio.h>

/* Ends the program with the library's reason when `answer` is an error. */
static inline void must(int answer, const char *what)
{
	if (answer >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, rig_error());
	exit(1);
}

/* The device that `text` names: sim, vfio-user:PATH, ... */
static inline struct rig_device *open_named(const char *text)
{
	struct rig_opener *opener;
	struct rig_device *device;

	must(rig_vfio_opener(text, NULL, &opener), text);
	must(rig_open(opener, &device), "open");
	rig_vfio_opener_free(opener);
	return device;
}

static inline void close_named(struct rig_device *device)
{
	must(rig_close(device), "close");
	rig_device_put(device);
}

/* A launch of `function` with `params` parameter bytes as the one part of a submission; refs say where the
   addresses of the run's buffers go, the first `reads` of which are only read. */
static inline struct rig_submission *make_launch(struct rig_image *image, struct rig_device *device,
        const char *function, uint32_t params, const struct rig_ref *refs, uint32_t reads, uint32_t writes)
{
	const struct rig_work work = {.kind = RIG_LAUNCH,
	        .u.launch = {.image = image,
	                .function = function,
	                .params = params,
	                .refs = refs,
	                .nrefs = reads + writes}};
	const struct rig_description description = {
	        .version = RIG_EDGE_VERSION, .parts = &work, .nparts = 1, .reads = reads, .writes = writes};
	struct rig_submission *submission;

	must(rig_submission_make(device, &description, &submission), function);
	return submission;
}

#endif
