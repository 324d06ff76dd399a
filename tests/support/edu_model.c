/* SPDX-License-Identifier: MIT */
/*
 * edu-model PATH: QEMU's edu device as a vfio-user server, after its specification (docs/specs/edu.rst of
 * QEMU). Serves one client after the other until it is killed. Transfers and factorials take no time.
 */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <signal.h>

#include "vfu.h"

enum {
	ID = 0x00,
	LIVENESS = 0x04,
	FACTORIAL = 0x08,
	STATUS = 0x20,
	IRQ_STATUS = 0x24,
	IRQ_RAISE = 0x60,
	IRQ_ACK = 0x64,
	SOURCE = 0x80,
	TARGET = 0x88,
	COUNT = 0x90,
	COMMAND = 0x98,
};
#define ID_VALUE      0x010000edu
#define WHEN_COMPUTED 0x80u /* of STATUS: interrupt then */
#define COMPUTED      0x1u  /* of IRQ_STATUS */
#define MOVED         0x100u
#define RUN           1u
#define TO_MEMORY     2u
#define WHEN_MOVED    4u
#define BUFFER        0x40000u
#define BUFFER_BYTES  4096u
#define BAR_BYTES     (1u << 20)
#define WIDE_FROM     0x80u /* registers from here on also take 64 bits */
#define DMA_MASK      ((UINT64_C(1) << 28) - 1)

struct edu {
	struct vfu_device *dev;
	uint32_t liveness, factorial, status, irq;
	uint64_t source, target, count;
	uint8_t buffer[BUFFER_BYTES];
	uint32_t pending; /* a command, until the main loop: no DMA inside an access */
};

static void raise_irq(struct edu *e, uint32_t why)
{
	e->irq |= why;
	(void)vfu_irq(e->dev, 0);
}

static void move(struct edu *e)
{
	uint32_t command = e->pending;
	uint64_t inside = command & TO_MEMORY ? e->source : e->target;
	uint64_t bus = (command & TO_MEMORY ? e->target : e->source) & DMA_MASK;

	e->pending = 0;
	if (inside < BUFFER || e->count > BUFFER_BYTES || inside - BUFFER > BUFFER_BYTES - e->count)
		fprintf(stderr, "edu-model: a transfer outside of the buffer\n");
	else if (command & TO_MEMORY)
		(void)vfu_dma_write(e->dev, bus, e->buffer + (inside - BUFFER), e->count);
	else
		(void)vfu_dma_read(e->dev, bus, e->buffer + (inside - BUFFER), e->count);
	if (command & WHEN_MOVED)
		raise_irq(e, MOVED);
}

static uint64_t load(const struct edu *e, uint64_t off)
{
	switch (off) {
	case ID:
		return ID_VALUE;
	case LIVENESS:
		return ~e->liveness;
	case FACTORIAL:
		return e->factorial;
	case STATUS:
		return e->status;
	case IRQ_STATUS:
		return e->irq;
	case SOURCE:
		return e->source;
	case TARGET:
		return e->target;
	case COUNT:
		return e->count;
	case COMMAND:
		return e->pending;
	default:
		return UINT64_MAX;
	}
}

static bool takes(uint64_t off, size_t len)
{
	return (len == 4 && off % 4 == 0) || (len == 8 && off >= WIDE_FROM && off % 8 == 0);
}

static int read_bar(void *ctx, uint64_t off, void *buf, size_t len)
{
	uint64_t value = takes(off, len) ? load(ctx, off) : UINT64_MAX;

	memset(buf, 0xff, len);
	memcpy(buf, &value, len < sizeof(value) ? len : sizeof(value));
	return 0;
}

static void compute(struct edu *e, uint32_t n)
{
	for (e->factorial = 1; n > 1; n--)
		e->factorial *= n;
	if (e->status & WHEN_COMPUTED)
		raise_irq(e, COMPUTED);
}

static int write_bar(void *ctx, uint64_t off, const void *buf, size_t len)
{
	struct edu *e = ctx;
	uint64_t value = 0;

	if (!takes(off, len))
		return 0;
	memcpy(&value, buf, len);
	switch (off) {
	case LIVENESS:
		e->liveness = (uint32_t)value;
		break;
	case FACTORIAL:
		compute(e, (uint32_t)value);
		break;
	case STATUS:
		e->status = (uint32_t)value & WHEN_COMPUTED;
		break;
	case IRQ_RAISE:
		raise_irq(e, (uint32_t)value);
		break;
	case IRQ_ACK:
		e->irq &= ~(uint32_t)value;
		if (!e->irq)
			vfu_irq_clear(e->dev);
		break;
	case SOURCE:
		e->source = value;
		break;
	case TARGET:
		e->target = value;
		break;
	case COUNT:
		e->count = value;
		break;
	case COMMAND:
		e->pending = (uint32_t)value & RUN ? (uint32_t)value : 0;
		break;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct edu edu;
	const struct vfu_config config = {.vendor = 0x1234,
	        .device = 0x11e8,
	        .class_code = 0x00ff00,
	        .revision = 0x10,
	        .intx = true,
	        .msi_vectors = 1,
	        .bars[0] = {.size = BAR_BYTES, .read = read_bar, .write = write_bar},
	        .ctx = &edu};
	struct pollfd fds[VFU_MAX_FDS];
	int err;

	if (argc != 2) {
		fprintf(stderr, "usage: edu-model PATH\n");
		return 2;
	}
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	err = vfu_open(&config, &edu.dev);
	if (!err)
		err = vfu_listen(edu.dev, argv[1]);
	if (err) {
		fprintf(stderr, "edu-model: %s: %s\n", argv[1], strerror(-err));
		return 1;
	}
	for (;;) {
		if (!vfu_poll(edu.dev))
			(void)poll(fds, vfu_fds(edu.dev, fds, VFU_MAX_FDS), vfu_timeout(edu.dev));
		if (edu.pending)
			move(&edu);
	}
}
