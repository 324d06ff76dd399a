/* SPDX-License-Identifier: MIT */
/* How work completes, and what it costs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lab_device.h"

#define LINE_BYTES  4096
#define QUIET_TRIPS 200
#define LONG_LOOPS  20000000u /* some 100 ms of the model: longer than a waiter looks itself */

struct spin_params {
	uint64_t number, loops, add;
};

/* Interrupts that the kernel counted for VFIO's vectors of this function. */
static unsigned long long interrupts(const char *device)
{
	FILE *file = fopen("/proc/interrupts", "re");
	unsigned long long n = 0;
	char line[LINE_BYTES], address[64];

	snprintf(address, sizeof(address), "(%.*s)", (int)strcspn(device, ","), device);
	if (!file)
		lab_skip("/proc/interrupts cannot be read");
	while (fgets(line, sizeof(line), file)) {
		char *at = strchr(line, ':');

		/* A count a CPU: the lab has one. */
		if (at && strstr(line, "vfio-msi") && strstr(line, address))
			n += strtoull(at + 1, NULL, 10);
	}
	fclose(file);
	return n;
}

static void make_spin(
        struct lab_work *work, struct rig_device *device, struct rig_buffer *buffer, uint64_t loops)
{
	const struct spin_params params = {.loops = loops, .add = 1};
	const uint64_t zero = 0;

	lab_must(rig_buffer_write(buffer, 0, &zero, sizeof(zero)), "write");
	lab_work_make(work, device, "spin", &params, sizeof(params), buffer, 1, 1);
}

void check_sleeper(char **argument)
{
	struct rig_device *device = lab_open(argument[0]);
	unsigned long long before, after;
	struct rig_buffer *buffer;
	struct lab_work work;

	lab_must(rig_buffer_create(device, RIG_DEVICE, sizeof(uint64_t), &buffer), "buffer");
	make_spin(&work, device, buffer, LONG_LOOPS);
	before = interrupts(argument[0]);
	lab_must(rig_wait(lab_work_submit(&work)), "wait");
	after = interrupts(argument[0]);
	printf("%llu interrupts before, %llu after\n", before, after);
	lab_check(after > before, "the function's vector interrupted while a program slept for its work");
	lab_work_end(&work);
	rig_buffer_put(buffer);
	lab_close(device);
}

static uint64_t messages(struct rig_device *device)
{
	const struct rig_vfio_record *record = rig_capability(device, &rig_vfio_key);
	struct rig_vfio_stats stats;

	record->stats(record, &stats);
	return stats.messages;
}

/* Where without_calls begins and ends to look. */
static void mark(void)
{
	syscall(SYS_getppid);
}

/* Submit and poll ask nothing of the device process or the kernel. */
void check_quiet(char **argument)
{
	struct rig_device *device = lab_open(argument[0]);
	struct rig_point point = {0};
	struct rig_buffer *buffer;
	struct lab_work work;
	uint64_t before, number;
	int i, reached = 0;

	lab_must(rig_buffer_create(device, RIG_DEVICE, sizeof(uint64_t), &buffer), "buffer");
	make_spin(&work, device, buffer, 1);
	lab_must(rig_wait(lab_work_submit(&work)), "wait");
	before = messages(device);
	mark();
	for (i = 0; i < QUIET_TRIPS; i++) {
		point = lab_work_submit(&work);
		do
			reached = rig_reached(point);
		while (!reached);
		lab_must(reached, "poll");
	}
	mark();
	if (messages(device) != before)
		lab_fail("%d submits and polls made %llu calls or messages", QUIET_TRIPS,
		        (unsigned long long)(messages(device) - before));
	lab_must(rig_buffer_read(buffer, 0, &number, sizeof(number)), "read");
	lab_check(number != 0, "the launches ran");
	lab_work_end(&work);
	rig_buffer_put(buffer);
	lab_close(device);
}

/* Two functions of one process: each works, the work of one waits for the other's, and the loss of one leaves
 * the other. */
void check_pair(char **argument)
{
	struct rig_device *one = lab_open(argument[0]), *other = lab_open(argument[1]);
	struct rig_buffer *slow, *fast;
	struct lab_work first, second;
	struct rig_point begun, done;
	const char *reason = "";

	lab_works(one);
	lab_works(other);
	lab_must(rig_buffer_create(one, RIG_DEVICE, sizeof(uint64_t), &slow), "buffer");
	lab_must(rig_buffer_create(other, RIG_DEVICE, sizeof(uint64_t), &fast), "buffer");
	make_spin(&first, one, slow, LONG_LOOPS);
	make_spin(&second, other, fast, 1);
	begun = lab_work_submit(&first);
	lab_must(rig_submit(second.submission, second.run, &begun, 1, &done), "submit with a wait");
	lab_must(rig_wait(done), "wait");
	lab_check(rig_reached(begun) == 1, "what was waited for came first");
	lab_work_end(&first);
	lab_work_end(&second);
	rig_buffer_put(slow);
	rig_buffer_put(fast);

	if (argument[2]) {
		done = lab_endless(&first, one);
		if (system(argument[2]) != 0)
			lab_fail("%s: failed", argument[2]);
		lab_check(rig_wait(done) == RIG_LOST, "the wait for the lost device's work says so");
		lab_check(rig_lost(one, &reason), "the device is lost");
		printf("lost: %s\n", reason);
		lab_check(!rig_lost(other, NULL), "the other device is not");
		lab_works(other);
		lab_work_end(&first);
	}
	lab_close(one);
	lab_works(other);
	lab_close(other);
}
