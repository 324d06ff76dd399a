/* SPDX-License-Identifier: MIT */
/*
 * How one kind of device spells its page tables.
 *
 * A format is a table of levels, root first, and functions that turn an address and flags into an entry and
 * back. The rest of src/mmu knows entries only through it. All of it is constant data and pure functions:
 * any thread.
 *
 * Addresses: a virtual address (va) is the device's; a physical address (pa) is what an entry holds, which is
 * an address in the device's memory or, with RIG_MMU_SYSTEM, on the bus.
 */
#ifndef RIG_MMU_FORMAT_H
#define RIG_MMU_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

/* What a page allows and where it lies. Bits from RIG_MMU_FORMAT_BITS up mean what the format says. */
#define RIG_MMU_READ        (UINT64_C(1) << 0)
#define RIG_MMU_WRITE       (UINT64_C(1) << 1)
#define RIG_MMU_EXEC        (UINT64_C(1) << 2)
#define RIG_MMU_USER        (UINT64_C(1) << 3)
#define RIG_MMU_SYSTEM      (UINT64_C(1) << 4) /* the pa is a bus address of memory outside the device */
#define RIG_MMU_FORMAT_BITS 32

enum {
	RIG_MMU_MAX_LEVELS = 6,
	RIG_MMU_MAX_BITS = 16, /* of one level's index */
	RIG_MMU_MAX_VA_BITS = 63,
};

enum rig_mmu_kind {
	RIG_MMU_NONE,
	RIG_MMU_TABLE, /* pa is the next level's table */
	RIG_MMU_LEAF,  /* pa is a page of this level's size */
	RIG_MMU_BAD,   /* reserved bits or a combination the device rejects */
};

/* An entry, decoded. */
struct rig_mmu_entry {
	enum rig_mmu_kind kind;
	unsigned fragment; /* leaf: log2 of the entries in the contiguous block this one says it is in */
	uint64_t pa;
	uint64_t flags; /* leaf: RIG_MMU_* and format bits, exactly those the leaf was encoded from */
};

struct rig_mmu_level {
	uint8_t shift;     /* log2 of the bytes one entry covers */
	uint8_t bits;      /* log2 of a table's entries */
	bool leaf;         /* an entry may be a page; true on the last level */
	uint8_t fragments; /* log2 of the largest contiguous block the format can name here; 0: it cannot */
};

struct rig_mmu_format {
	const char *name;
	unsigned levels;
	struct rig_mmu_level level[RIG_MMU_MAX_LEVELS]; /* root first; shift = next shift + next bits */
	unsigned entry_bytes;                           /* 4 or 8 */
	unsigned va_bits;                               /* at most the root's shift + bits */
	bool sign_extended; /* bits above va_bits repeat the highest; else they are 0 */
	unsigned pa_bits;
	uint64_t flags; /* every flag a page may have */
	uint64_t none;  /* the entry that maps nothing */

	/* A page of `level` at `pa`. Linear: at pa + k pages it is k times a constant more. `fragment`: this
	 * entry is one of 2^fragment whose va and pa go up together, aligned to that; 0 where the level has
	 * no fragments. */
	uint64_t (*leaf)(uint64_t pa, uint64_t flags, unsigned level, unsigned fragment);
	/* A pointer in a table of `level` to a table of level + 1. */
	uint64_t (*table)(uint64_t pa, unsigned level);
	/* The reverse of both, for any 64 bits (hostile included): never fails, may answer RIG_MMU_BAD. */
	struct rig_mmu_entry (*decode)(uint64_t entry, unsigned level);
	/* Optional: whether this combination of flags can be encoded at all. */
	bool (*accepts)(uint64_t flags);
};

/* 0, or -EINVAL for a format that breaks a rule above. */
int rig_mmu_format_check(const struct rig_mmu_format *format);

/* Bytes of one table of `level`; tables are aligned to their size. */
uint64_t rig_mmu_table_bytes(const struct rig_mmu_format *format, unsigned level);

/* Bytes of the smallest page. */
uint64_t rig_mmu_page_bytes(const struct rig_mmu_format *format);

/*
 * [va, va + bytes) as an offset into the root's reach. -EINVAL: empty, outside va_bits, not canonical, or
 * across the canonical hole. The last page of 2^64 is allowed where addresses are sign-extended.
 */
int rig_mmu_offset(const struct rig_mmu_format *format, uint64_t va, uint64_t bytes, uint64_t *offset);

#endif
