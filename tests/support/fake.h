/* SPDX-License-Identifier: MIT */
#ifndef RIG_FAKE_H
#define RIG_FAKE_H

/*
 * A transport for tests: a PCI function made of plain memory in this process, behind the same table as the
 * real ones. Link test_fake.
 *
 * The test owns the fake and may look into it before, while and after a function is open on it; rig_pci_open
 * is given {.ops = &rig_fake_ops, .transport = fake} and closing the function leaves the
 * fake for the test to free. One function at a time, one after another.
 *
 * Threads: the table's rules (vfio_ops.h). The functions here are for the thread that drives the function,
 * except rig_fake_die, rig_fake_fire and the DMA ones, which may come from any.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vfio_ops.h"

struct rig_fake;

struct rig_fake_access {
	unsigned region; /* RIG_VFIO_BAR0 ... RIG_VFIO_CONFIG */
	bool write;
	uint64_t offset, len;
	void *data; /* what is about to be stored, or what was loaded: the hook may change it */
};

struct rig_fake_options {
	uint16_t vendor, device; /* 0: 0x1234, 0x5258 */
	uint32_t class_code;
	uint64_t bar_bytes[RIG_VFIO_BARS]; /* 0: no such BAR; at most RIG_FAKE_BAR_MOST */
	/* Mappable parts of BAR i: none at all if areas[i] is 0. */
	unsigned areas[RIG_VFIO_BARS];
	struct rig_vfio_area area[RIG_VFIO_BARS][4];
	unsigned irqs[5];    /* vectors by enum rig_irq_kind */
	unsigned irqs_taken; /* of each kind's vectors the last so many cannot be had: -ENOSPC */
	bool no_reset;
	const char *resets_too; /* the address of a function that a reset of this one says it hits; NULL */
	const char *bdf;        /* NULL: none. Lives as long as the fake */
	uint64_t bus[RIG_VFIO_BARS]; /* bus addresses of the BARs */
	enum rig_vfio_peers peers;   /* NONE: FILE, as the fake's regions are memfds */
	bool exports;                /* BARs as dma-bufs: a descriptor, no real one */
	uint64_t dma_maps;           /* 0: 64 */
	/* Sees every access that goes through the table, not those of mapped areas. May be NULL. */
	void (*hook)(void *arg, struct rig_fake_access *access);
	void *hook_arg;
};

#define RIG_FAKE_BAR_MOST (UINT64_C(1) << 30)

extern const struct rig_vfio_ops rig_fake_ops;

/* -EINVAL, -ENOMEM. The options are copied. */
int rig_fake_make(struct rig_fake **out, const struct rig_fake_options *options);
/* No function is open on it. NULL is allowed. */
void rig_fake_free(struct rig_fake *fake);

/* The k-th call of the table from now on (k >= 1) that can fail answers -EIO and does nothing; 0: none
 * does. */
void rig_fake_fail_at(struct rig_fake *fake, uint64_t k);
/* Whether that call came. */
bool rig_fake_failed(const struct rig_fake *fake);

/* The memory behind a region, shared with mapped areas. NULL: no such region. */
void *rig_fake_memory(const struct rig_fake *fake, unsigned region);

/* DMA mappings that exist; i < count, in no order. */
unsigned rig_fake_maps(const struct rig_fake *fake);
struct rig_vfio_map rig_fake_map(const struct rig_fake *fake, unsigned i);

/* DMA by the device: through the mappings as recorded, minding their protection. -EFAULT, -EACCES. */
int rig_fake_dma_read(struct rig_fake *fake, uint64_t iova, void *buf, uint64_t len);
int rig_fake_dma_write(struct rig_fake *fake, uint64_t iova, const void *buf, uint64_t len);
/* A read by asking for it, as a device process does that was given no descriptor. The same errors. */
int rig_fake_dma_ask(struct rig_fake *fake, uint64_t iova, void *buf, uint64_t len);

/* Raises a vector. false: not connected. */
bool rig_fake_fire(struct rig_fake *fake, unsigned kind, unsigned vector);

/* Vectors connected now, of all kinds. */
unsigned rig_fake_connected(const struct rig_fake *fake);

/* The function leaves: tells the library, answers -ENODEV from now on. */
void rig_fake_die(struct rig_fake *fake, const char *why);
/* The same unannounced: configuration space and BARs read all ones. */
void rig_fake_vanish(struct rig_fake *fake);

/* After the next reset the vendor id reads all ones this many times before it is back. */
void rig_fake_slow_reset(struct rig_fake *fake, unsigned reads);

/* Resets do nothing but answer this (-EBUSY); 0: they work. */
void rig_fake_refuse_reset(struct rig_fake *fake, int err);

/* As a kernel with iommufd at the end of a dma-buf: the mapping is out of reach, though listed, until it is
 * unmapped. */
void rig_fake_revoke(struct rig_fake *fake, uint64_t iova);

unsigned rig_fake_resets(const struct rig_fake *fake);
/* Functions that are open on it: 0 or 1. */
unsigned rig_fake_open_count(const struct rig_fake *fake);

#endif
