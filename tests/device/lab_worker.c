/* SPDX-License-Identifier: MIT */
/*
 * lab_worker ADDRESS TRANSPORT: a parent with rights opens the function's descriptors, and a worker that has
 * none, and may open no node, works by them (docs/porting.md, "A worker without rights").
 */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab_device.h"
#include "raw.h"

#define NOBODY       65534u
#define MEMLOCK      (UINT64_C(256) << 20) /* the device's first arena, four times */
#define DEVICE_BYTES 64

/* For good: a process that was root has no capability after it. */
static void drop_rights(void)
{
	const struct rlimit limit = {.rlim_cur = MEMLOCK, .rlim_max = MEMLOCK};

	lab_check(setrlimit(RLIMIT_MEMLOCK, &limit) == 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0,
	        "the worker gives up its rights");
}

static void work(const char *address, const char *transport, const struct raw *raw)
{
	const bool by_group = raw->transport == RAW_TYPE1;
	const struct rig_vfio_fds fds = {.device = raw->device,
	        .group = raw->group,
	        .container = by_group ? raw->container : -1,
	        .iommufd = by_group ? -1 : raw->container};
	const struct rig_vfio_options options = {.version = RIG_EDGE_VERSION, .fds = &fds};
	char text[DEVICE_BYTES];
	struct rig_opener *opener;
	struct rig_device *device;

	snprintf(text, sizeof(text), "%s,transport=%s", address, transport);
	drop_rights();
	lab_check(lab_try_open(text, &device) < 0, "the worker may not open the function itself");
	printf("without descriptors: %s\n", rig_error());
	lab_must(rig_vfio_opener(address, &options, &opener), "opener");
	lab_must(rig_open(opener, &device), "open by descriptors");
	rig_vfio_opener_free(opener);
	lab_works(device);
	lab_close(device);
}

int main(int argc, char **argv)
{
	struct raw raw;
	int status;
	pid_t child;

	raw_check(argc == 3, "lab_worker ADDRESS TRANSPORT");
	raw_open(&raw, argv[1], raw_transport_of(argv[2]));
	raw_detach(&raw);
	child = fork();
	raw_check(child >= 0, "there is a worker");
	if (child == 0) {
		work(argv[1], argv[2], &raw);
		return 0;
	}
	raw_close(&raw);
	raw_check(waitpid(child, &status, 0) == child && status == 0, "the worker worked");
	return 0;
}
