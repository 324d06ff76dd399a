/* SPDX-License-Identifier: MIT */
/*
 * A board's address space without a client: board memory, and system memory of which the first half is
 * reached by address, the second by transfers.
 */
#ifndef BOARD_FAKE_H
#define BOARD_FAKE_H

#include "rvx_mmu.h"
#include "rvx_space.h"

#include <errno.h>
#include <string.h>

#define FAKE_BYTES     (64ull << 20)
#define FAKE_BUS       0x4000000000ull
#define FAKE_BUS_BYTES 0x40000ull /* each half */
#define FAKE_TABLES    0x100000ull
#define FAKE_VA        0x5000000000ull /* board memory */
#define FAKE_VA_BUS    0x6000000000ull /* both halves, and a page behind them that nothing answers */
#define FAKE_ALL       (RVX1_PTE_R | RVX1_PTE_W | RVX1_PTE_X | RVX1_PTE_U)

struct fake {
	struct rvx_memory memory;
	struct rvx_dma dma;
	struct rvx_space space;
	uint8_t bus[2 * FAKE_BUS_BYTES];
	unsigned transfers;
	uint64_t tables;
};

static inline void *fake_at(void *ctx, uint64_t bus, uint64_t len, bool readable, bool writable)
{
	struct fake *fake = ctx;

	(void)readable;
	(void)writable;
	if (bus - FAKE_BUS >= FAKE_BUS_BYTES || len > FAKE_BUS_BYTES - (bus - FAKE_BUS))
		return NULL;
	return fake->bus + (bus - FAKE_BUS);
}

static inline uint8_t *fake_bytes(struct fake *fake, uint64_t bus, uint64_t len)
{
	if (bus - FAKE_BUS >= sizeof(fake->bus) || len > sizeof(fake->bus) - (bus - FAKE_BUS))
		return NULL;
	fake->transfers++;
	return fake->bus + (bus - FAKE_BUS);
}

static inline int fake_read(void *ctx, uint64_t bus, void *to, uint64_t len)
{
	uint8_t *at = fake_bytes(ctx, bus, len);

	if (at)
		memcpy(to, at, len);
	return at ? 0 : -EFAULT;
}

static inline int fake_write(void *ctx, uint64_t bus, const void *from, uint64_t len)
{
	uint8_t *at = fake_bytes(ctx, bus, len);

	if (at)
		memcpy(at, from, len);
	return at ? 0 : -EFAULT;
}

/* A leaf; tables are made as needed. bits 0 takes the leaf away. */
static inline void fake_leaf(struct fake *fake, uint64_t va, uint64_t address, uint64_t bits, unsigned level)
{
	uint64_t table = FAKE_TABLES, pte;

	for (unsigned at = 3; at > level; at--) {
		uint8_t *entry = fake->memory.host + table + (va >> (12 + 9 * at) & 511) * 8;
		pte = rvx_load64(entry);
		if (!pte) {
			fake->tables += 4096;
			pte = fake->tables >> 12 << RVX1_PTE_PPN_SHIFT | RVX1_PTE_V;
			rvx_store64(entry, pte);
		}
		table = pte >> RVX1_PTE_PPN_SHIFT << 12;
	}
	pte = bits ? address >> 12 << RVX1_PTE_PPN_SHIFT | bits | RVX1_PTE_V : 0;
	rvx_store64(fake->memory.host + table + (va >> (12 + 9 * level) & 511) * 8, pte);
}

/* Board memory in 2 MiB pages, the bus in 4 KiB pages. */
static inline int fake_open(struct fake *fake)
{
	memset(fake, 0, sizeof(*fake));
	int err = rvx_memory_open(&fake->memory, "fake", FAKE_BYTES);
	if (err)
		return err;
	fake->dma = (struct rvx_dma){fake, fake_at, fake_read, fake_write};
	fake->space = (struct rvx_space){&fake->memory, &fake->dma, FAKE_TABLES};
	fake->tables = FAKE_TABLES;
	for (uint64_t at = 0; at < FAKE_BYTES; at += 2 << 20)
		fake_leaf(fake, FAKE_VA + at, at, FAKE_ALL, 1);
	for (uint64_t at = 0; at <= sizeof(fake->bus); at += 4096)
		fake_leaf(fake, FAKE_VA_BUS + at, FAKE_BUS + at, FAKE_ALL | RVX1_PTE_SYSTEM, 0);
	return 0;
}

static inline void fake_close(struct fake *fake)
{
	rvx_memory_close(&fake->memory);
}

#endif
