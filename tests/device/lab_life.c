/* SPDX-License-Identifier: MIT */
/* Devices that begin and end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab_device.h"

#define WARM_UP 2 /* cycles in which libraries may open what they keep */

void check_works(char **argument)
{
	struct rig_device *device = lab_open(argument[0]);

	lab_works(device);
	lab_close(device);
}

void check_cycle(char **argument)
{
	unsigned long i, cycles = lab_number(argument[1]);
	struct lab_counts before = {0}, after;

	for (i = 0; i < WARM_UP + cycles; i++) {
		if (i == WARM_UP)
			before = lab_count();
		check_works(argument);
	}
	after = lab_count();
	lab_same(&before, &after);
	printf("%lu cycles, %lu descriptors, %lu mappings, %lu kB locked, %lu kB pinned before and after\n",
	        cycles, after.fds, after.mappings, after.locked_kb, after.pinned_kb);
}

void check_endless(char **argument)
{
	struct lab_work work;
	struct rig_point point = lab_endless(&work, lab_open(argument[0]));

	puts("running");
	fflush(stdout);
	rig_wait(point);
	lab_fail("a launch that never ends ended: %s", rig_error());
}

/* The device leaves while it works: the wait ends with a reason. What this process holds stays until it is
 * killed. */
void check_leaves(char **argument)
{
	struct rig_device *device = lab_open(argument[0]);
	const char *reason = "";
	struct lab_work work;
	struct rig_point point = lab_endless(&work, device);

	if (system(argument[1]) != 0)
		lab_fail("%s: failed", argument[1]);
	lab_check(rig_wait(point) == RIG_LOST, "the wait for the launch answers RIG_LOST");
	lab_check(rig_lost(device, &reason), "the device is lost");
	printf("lost: %s\n", reason);
	pause();
}

/* Something ends the device while a launch runs: the wait ends, with a reason, and everything comes back. */
void check_lost(char **argument)
{
	const bool again = !strcmp(argument[1], "again");
	struct lab_counts before, after;
	struct rig_device *device;
	struct lab_work work;
	const char *reason = "";
	struct rig_point point;
	struct rig_buffer *kept;
	int err;

	check_works(argument);
	before = lab_count();
	device = lab_open(argument[0]);
	lab_must(rig_buffer_create(device, RIG_PINNED, 1 << 20, &kept), "buffer");
	point = lab_endless(&work, device);
	if (system(argument[2]) != 0)
		lab_fail("%s: failed", argument[2]);
	err = rig_wait(point);
	if (err != RIG_LOST)
		lab_fail("the wait for the launch answered %d, not RIG_LOST", err);
	lab_check(rig_lost(device, &reason), "the device is lost");
	printf("lost: %s\n", reason);
	rig_buffer_put(kept);
	lab_work_end(&work);
	lab_close(device);
	if (again)
		check_works(argument);
	else
		lab_check(lab_try_open(argument[0], &device) < 0, "what is gone does not open");
	printf("opening again: %s\n", again ? "works" : rig_error());
	after = lab_count();
	lab_same(&before, &after);
}
