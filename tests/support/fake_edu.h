/* SPDX-License-Identifier: MIT */
#ifndef TEST_FAKE_EDU_H
#define TEST_FAKE_EDU_H

/*
 * QEMU's edu device in this process, over rig_fake: registers by the hook, DMA through the function's
 * mappings. Written from the device's specification (docs/specs/edu.rst of QEMU), not from the port. What the
 * specification forbids a driver is counted, and the first such thing told.
 */

#include <pthread.h>

#include "device.h"
#include "fake.h"

#define FAKE_EDU_BUFFER 4096u

enum fake_edu_irq { FAKE_EDU_MSI, FAKE_EDU_INTX, FAKE_EDU_NO_IRQ };

struct fake_edu_options {
	enum fake_edu_irq irq;
	bool held;      /* an operation ends when fake_edu_finish says so */
	unsigned reads; /* else after so many reads of its register; 0: at once */
	bool running;   /* a transfer of a process before is under way: it ends at the third look */
	bool no_reset;
	uint32_t id;    /* 0: what the specification says */
	bool deaf;      /* the liveness register reads what was written */
	uint64_t start; /* what the word holds */
	uint64_t fail_at, fail_allocation;
};

struct fake_edu {
	struct rig_fake *fake;
	struct rig_dev *dev; /* NULL if making it failed */
	void *device;        /* the same, for the contract */
	rig_atomic_u64 *word;
	char why[512];
	int released;

	pthread_mutex_t lock; /* of what follows */
	struct fake_edu_options o;
	uint8_t buffer[FAKE_EDU_BUFFER];
	uint32_t live, factorial, status, irq_status;
	uint64_t source, target, count, command;
	unsigned left;    /* reads until the operation ends */
	bool stale;       /* the transfer under way is not the driver's */
	uint64_t highest; /* bus address that a transfer touched */
	unsigned operations, interrupts, breaches;
	char breach[160];
};

/* The device alone, for who opens it in another way: then fake_edu_free. */
void fake_edu_init(struct fake_edu *e, const struct fake_edu_options *options);
void fake_edu_free(struct fake_edu *e);

/* Makes a driver on it: what rig_driver_make answered. */
int fake_edu_make(struct fake_edu *e, const struct fake_edu_options *options);
/* Stops and releases, and checks that nothing is left and that the specification was kept. */
void fake_edu_close(struct fake_edu *e);

/* An opener's make, for librig: arg is a struct fake_edu after fake_edu_init. */
int fake_edu_open(void *arg, rig_atomic_u64 *word, void **device, char *why, size_t why_bytes);

/* Ends the operation under way, if any. */
bool fake_edu_finish(struct fake_edu *e);
/* Operations started so far. */
unsigned fake_edu_started(struct fake_edu *e);

#endif
