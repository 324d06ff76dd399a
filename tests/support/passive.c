/* SPDX-License-Identifier: MIT */
#include "test.h"
#include <stdio.h>
#include <string.h>

#include "allocs.h"
#include "boards.h"
#include "passive.h"
#include "rvx1_firmware_manifest.h"

#define CONFIG_BAR2       0x18u
#define BAR_WIDE_PREFETCH 0x0Cu
#define DOORBELL_BYTES    (RVX1_MAX_QUEUES * RVX1_DOORBELL_PITCH)

#define NS_PER_S 1000000000u

static void put32(uint8_t *regs, uint64_t at, uint32_t value)
{
	memcpy(regs + at, &value, sizeof(value));
}

static void put64(uint8_t *regs, uint64_t at, uint64_t value)
{
	memcpy(regs + at, &value, sizeof(value));
}

static void acknowledge(struct passive *p)
{
	memcpy(p->regs + RVX1_INV_ACK, p->regs + RVX1_INV_REQUEST, sizeof(uint32_t));
}

/* FW_STATE follows CP_CTRL. */
static void hook(void *arg, struct rig_fake_access *a)
{
	struct passive *p = arg;
	uint64_t clock;
	uint32_t value;

	if (a->region == RIG_VFIO_BAR0 && !a->write && a->offset == RVX1_CLOCK && a->len == sizeof(clock)) {
		clock = passive_clock(p);
		memcpy(a->data, &clock, sizeof(clock));
	}

	if (a->region == RIG_VFIO_BAR0 && !a->write && a->offset == RVX1_INV_ACK && p->late_ack &&
	        ++p->ack_reads == p->late_ack)
		acknowledge(p);
	if (a->write && p->word)
		__atomic_store_n(&p->word_at_write, rig_word_load(p->word), __ATOMIC_RELAXED);
	if (a->region != RIG_VFIO_BAR0 || !a->write || a->len != sizeof(value))
		return;
	memcpy(&value, a->data, sizeof(value));
	if (a->offset == RVX1_INV_REQUEST) {
		put32(p->regs, RVX1_INV_REQUEST, value);
		p->ack_reads = 0;
		if (!p->late_ack)
			acknowledge(p);
	}
	if (a->offset == RVX1_CP_CTRL) {
		put32(p->regs, RVX1_CP_STATE, value & RVX1_CP_CTRL_RUN ? RVX1_CP_RUNNING : RVX1_CP_RESET);
		put32(p->regs, RVX1_STATUS + RVX1_STATUS_CP,
		        value & RVX1_CP_CTRL_RUN ? RVX1_CP_RUNNING : RVX1_CP_RESET);
		put32(p->regs, RVX1_FW_STATE, value & RVX1_CP_CTRL_RUN ? RVX1_FW_READY : RVX1_FW_NONE);
		put32(p->regs, RVX1_FW_VERSION, RVX1_FIRMWARE_VERSION);
	}
}

static void fill_registers(struct passive *p, const struct passive_options *options)
{
	put32(p->regs, RVX1_ID, RVX1_ID_VALUE);
	put32(p->regs, RVX1_REVISION, RVX1_REVISION_VALUE);
	put32(p->regs, RVX1_QUEUES, options->queues ? options->queues : 2);
	put64(p->regs, RVX1_CLOCK_HZ, options->clock_hz);
	p->clock_hz = options->clock_hz;
	p->epoch_ns = rig_now_ns();
	put64(p->regs, RVX1_MEMORY_BYTES, PASSIVE_MEMORY);
	put64(p->regs, RVX1_APERTURE_BYTES, options->aperture ? options->aperture : PASSIVE_MEMORY);
	put32(p->regs, RVX1_GROUP_THREADS, RVX1_MAX_GROUP_THREADS);
	put32(p->regs, RVX1_GROUP_SHARED, RVX1_MAX_SHARED);
	put32(p->regs, RVX1_STACK_SLOTS, RVX1_MAX_GROUP_THREADS);
	put64(p->regs, RVX1_STATUS + RVX1_STATUS_VALUE, options->start);
}

static void make_fake(struct passive *p, const struct passive_options *options)
{
	uint64_t aperture = options->aperture ? options->aperture : PASSIVE_MEMORY;
	struct rig_fake_options o = {.vendor = RVX1_PCI_VENDOR,
	        .device = RVX1_PCI_DEVICE,
	        .class_code = RVX1_PCI_CLASS,
	        .bar_bytes = {[RVX1_BAR_REGS] = RVX1_BAR_REGS_BYTES,
	                [RVX1_BAR_MEMORY] = aperture,
	                [RVX1_BAR_DOORBELL] = DOORBELL_BYTES},
	        .irqs = {[RIG_IRQ_MSIX] = RVX1_VECTORS},
	        .irqs_taken = options->irqs_taken,
	        .bdf = options->bdf,
	        .bus = {[RVX1_BAR_MEMORY] = options->bus},
	        .exports = options->exports,
	        .dma_maps = options->dma_maps,
	        .peers = options->exports ? RIG_VFIO_PEERS_DMABUF : RIG_VFIO_PEERS_NONE,
	        .hook = hook,
	        .hook_arg = p};

	if (!options->unmapped) {
		o.areas[RVX1_BAR_REGS] = o.areas[RVX1_BAR_MEMORY] = o.areas[RVX1_BAR_DOORBELL] = 1;
		o.area[RVX1_BAR_REGS][0] = (struct rig_vfio_area){RVX1_STATUS, RVX1_STATUS_BYTES};
		o.area[RVX1_BAR_MEMORY][0] = (struct rig_vfio_area){0, aperture};
		o.area[RVX1_BAR_DOORBELL][0] = (struct rig_vfio_area){0, DOORBELL_BYTES};
	}
	assert_int_equal(rig_fake_make(&p->fake, &o), 0);
	p->regs = rig_fake_memory(p->fake, RVX1_BAR_REGS);
	p->memory = rig_fake_memory(p->fake, RVX1_BAR_MEMORY);
	p->doorbells = rig_fake_memory(p->fake, RVX1_BAR_DOORBELL);
	if (options->dirty)
		memset(p->memory, PASSIVE_DIRT, PASSIVE_MEMORY);
	p->late_ack = options->late_ack;
	put32(rig_fake_memory(p->fake, RIG_VFIO_CONFIG), CONFIG_BAR2, BAR_WIDE_PREFETCH);
	fill_registers(p, options);
}

static void released(void *arg)
{
	((struct passive *)arg)->released++;
}

int passive_make(struct passive *p, const struct passive_options *options, uint64_t fail_at)
{
	static const struct passive_options none;
	static struct rig_vfio_ops ops;
	struct rig_driver_options driver = {.boot_ms = 1000};
	struct rig_pci_taking taken = {.ops = &ops, .ended = released, .ended_arg = p};
	struct rig_pci *pci;
	int err;

	if (!options)
		options = &none;
	memset(p, 0, sizeof(*p));
	make_fake(p, options);
	ops = rig_fake_ops;
	ops.tells = options->tells;
	driver.store = options->store;
	driver.dmabuf = options->dmabuf;
	driver.pinned = options->pinned;
	driver.log = options->log;
	driver.firmware_dir = options->firmware_dir;
	p->word = rig_words() + 1 + options->word;
	__atomic_store_n((uint64_t *)p->word, options->start, __ATOMIC_RELEASE);
	rig_fake_fail_at(p->fake, fail_at);
	test_allocs_fail_at(options->fail_allocation);
	taken.transport = p->fake;
	err = rig_pci_take(&pci, &taken);
	if (err)
		snprintf(p->why, sizeof(p->why), "%s", rig_error());
	else
		err = rig_driver_make(pci,
		        options->board ? options->board : rig_board_find(RVX1_PCI_VENDOR, RVX1_PCI_DEVICE),
		        &driver, p->word, &p->device, p->why, sizeof(p->why));
	p->dev = p->device;
	return err;
}

void passive_close(struct passive *p)
{
	if (p->device) {
		rig_driver_module.stop(p->device, NULL);
		rig_driver_module.release(p->device);
		assert_int_equal(p->released, 1);
	}
	assert_int_equal(rig_fake_maps(p->fake), 0);
	assert_int_equal(rig_fake_connected(p->fake), 0);
	assert_int_equal(rig_fake_open_count(p->fake), 0);
	rig_fake_free(p->fake);
	memset(p, 0, sizeof(*p));
}

uint64_t passive_written(const struct passive *p, uint32_t q)
{
	return __atomic_load_n(
	        (uint64_t *)(void *)(p->doorbells + q * RVX1_DOORBELL_PITCH), __ATOMIC_ACQUIRE);
}

uint64_t passive_clock(const struct passive *p)
{
	return (uint64_t)((unsigned __int128)(rig_now_ns() - p->epoch_ns) * p->clock_hz / NS_PER_S);
}

void passive_complete(struct passive *p, uint64_t value)
{
	__atomic_store_n(
	        (uint64_t *)(void *)(p->regs + RVX1_STATUS + RVX1_STATUS_VALUE), value, __ATOMIC_RELEASE);
}
