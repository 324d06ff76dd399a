/* SPDX-License-Identifier: MIT */
/* Devices that begin and end. */
#include <linux/vfio.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lab_device.h"
#include "raw.h"

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

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* The command, from a shell; then polls until the work is no longer pending. Prints how long that took. */
static void lose(const char *command, struct rig_point point)
{
	uint64_t since;
	int reached;

	if (system(command) != 0)
		lab_fail("%s: failed", command);
	since = now_ms();
	do
		reached = rig_reached(point);
	while (!reached);
	printf("noticed after %llu ms\n", (unsigned long long)(now_ms() - since));
	if (reached != RIG_LOST)
		lab_fail("polling for the launch answered %d, not RIG_LOST", reached);
	lab_check(rig_wait(point) == RIG_LOST, "the wait for the launch answers RIG_LOST");
}

/* words: what the reason must say; NULL: anything. */
static void check_reason(struct rig_device *device, const char *words)
{
	const char *reason = "";

	lab_check(rig_lost(device, &reason), "the device is lost");
	printf("lost: %s\n", reason);
	if (words && !strstr(reason, words))
		lab_fail("the reason does not say \"%s\"", words);
}

/* The library's descriptor of a function that it drives: one that is called so. */
static int device_of_library(void)
{
	int fd = lab_descriptor("anon_inode:[vfio-device]");

	return fd < 0 ? lab_descriptor("/dev/vfio/devices/") : fd;
}

/* The device leaves while it works: polling ends with a reason. What this process holds stays until it is
 * killed, a descriptor of the function too: with the last one the kernel lets go of it, and QEMU 11.1 ends by
 * an assertion of its own as it unplugs, perhaps before anybody has read the verdict. */
void check_leaves(char **argument)
{
	struct rig_device *device = lab_open(argument[0]);
	struct lab_work work;
	struct rig_point point = lab_endless(&work, device);

	lab_check(dup(device_of_library()) >= 0, "a descriptor of the function");
	lose(argument[1], point);
	check_reason(device, argument[2]);
	pause();
}

/* Something ends the device while a launch runs: polling ends, with a reason, and everything comes back. */
void check_lost(char **argument)
{
	const bool again = !strcmp(argument[1], "again");
	struct lab_counts before, after;
	struct rig_device *device;
	struct lab_work work;
	struct rig_point point;
	struct rig_buffer *kept;

	check_works(argument);
	before = lab_count();
	device = lab_open(argument[0]);
	lab_must(rig_buffer_create(device, RIG_PINNED, 1 << 20, &kept), "buffer");
	point = lab_endless(&work, device);
	lose(argument[2], point);
	check_reason(device, argument[3]);
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

/* The kernel's two messages about a function, by the kernel's own way to try them. */
void check_signalled(char **argument)
{
	const bool error = !strcmp(argument[1], "error");
	struct rig_device *device = lab_open(argument[0]);
	struct raw raw = {.device = device_of_library()};
	struct lab_work work;
	struct rig_point point = lab_endless(&work, device);

	lab_check(raw.device >= 0, "the library has a descriptor of the function");
	raw_signal(&raw, error ? VFIO_PCI_ERR_IRQ_INDEX : VFIO_PCI_REQ_IRQ_INDEX);
	lose("true", point);
	check_reason(device, error ? "it reported an error" : "the system asks for it back");
	lab_work_end(&work);
	lab_close(device);
	check_works(argument);
}

struct churn {
	const char *text;
	unsigned long n;
};

static void *open_and_close(void *arg)
{
	const struct churn *churn = arg;
	unsigned long i;

	for (i = 0; i < churn->n; i++)
		lab_close(lab_open(churn->text));
	return NULL;
}

/* Two threads, a function each, argument[2] times: who opens finds free what the other, or it itself, has
 * just closed. */
void check_churn(char **argument)
{
	struct churn churn[2];
	pthread_t thread[2];
	unsigned i;

	for (i = 0; i < 2; i++) {
		churn[i] = (struct churn){argument[i], lab_number(argument[2])};
		lab_check(!pthread_create(&thread[i], NULL, open_and_close, &churn[i]), "a thread starts");
	}
	for (i = 0; i < 2; i++)
		lab_check(!pthread_join(thread[i], NULL), "and ends");
	printf("%lu opens of each\n", churn[0].n);
}

/* Two functions whose only reset is one of their bus: opening and closing the second leaves the first
 * alone. */
void check_spares(char **argument)
{
	struct rig_device *one = lab_open(argument[0]), *other;
	const char *reason = "";

	lab_edu_copies(one, 0);
	lab_must(lab_try_open(argument[1], &other), "opening the other");
	if (rig_lost(one, &reason))
		lab_fail("opening the other lost the first: %s", reason);
	lab_edu_copies(one, 1);
	lab_edu_copies(other, 2);
	lab_close(other);
	if (rig_lost(one, &reason))
		lab_fail("closing the other lost the first: %s", reason);
	lab_edu_copies(one, 3);
	lab_close(one);
}
