/* SPDX-License-Identifier: MIT */
#ifndef TEST_PASSIVE_H
#define TEST_PASSIVE_H

/*
 * The driver over a passive RVX-1: registers, memory and doorbells are plain memory (rig_fake), nothing runs
 * behind them, and the test is the device: it reads packets from the rings and raises VALUE. Boots with the
 * real firmware image.
 */

#include "device.h"
#include "fake.h"
#include "rvx1/packet.h"
#include "rvx1/regs.h"

#define PASSIVE_MEMORY (64ull << 20)
#define PASSIVE_DIRT   0xA5

struct passive_options {
	uint64_t aperture; /* 0: all of the memory */
	bool store;        /* completion by store */
	bool unmapped;     /* no BAR can be mapped */
	bool tells;        /* nobody need ask whether the function is there */
	uint64_t start;    /* what the word holds when the device is made */
	const char *firmware_dir;
	const char *bdf;     /* of a function on a bus; NULL: a simulated one */
	uint64_t bus;        /* of its memory */
	bool exports;        /* its BARs as dma-bufs */
	bool dmabuf;         /* the driver's option */
	uint32_t word;       /* beside the one of other devices */
	bool dirty;          /* its memory is full of PASSIVE_DIRT */
	bool pinned;         /* the poller never sleeps */
	unsigned late_ack;   /* an invalidation is complete at so many reads of INV_ACK; 0: at once */
	unsigned irqs_taken; /* of RVX1_VECTORS the last so many cannot be had */
	struct rig_log log;
	uint64_t dma_maps;             /* that the fake takes; 0: 64 */
	uint32_t queues;               /* 0: 2 */
	uint64_t clock_hz;             /* 0: the board has no clock; else passive_clock shows it */
	const struct rig_board *board; /* another port of it; NULL: RVX-1's */
	uint64_t fail_allocation;      /* the k-th allocation of taking and making fails; 0: none */
};

struct passive {
	struct rig_fake *fake;
	struct rig_dev *dev; /* NULL if making it failed */
	void *device;        /* the same, for the contract */
	rig_atomic_u64 *word;
	uint8_t *regs, *memory, *doorbells;
	char why[512];
	int released;
	uint64_t clock_hz, epoch_ns;
	unsigned late_ack, ack_reads;
	uint64_t word_at_write; /* what the word showed at the last store to the function */
};

/* Makes the device: what rig_driver_make answered. `fail_at`: the k-th access of the fake fails; 0: none. */
int passive_make(struct passive *p, const struct passive_options *options, uint64_t fail_at);
/* Stops and releases it, and checks that the fake holds no mapping, vector or function any more. */
void passive_close(struct passive *p);

/* The doorbell of queue q: packets written. */
uint64_t passive_written(const struct passive *p, uint32_t q);
/* CLOCK now: the host's, from when it was made, at clock_hz. */
uint64_t passive_clock(const struct passive *p);
/* Raises VALUE, as a device that completed it. */
void passive_complete(struct passive *p, uint64_t value);

#endif
