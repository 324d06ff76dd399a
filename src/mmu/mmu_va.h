/* SPDX-License-Identifier: MIT */
/*
 * Virtual addresses for mappings whose physical address is given: host and peer memory.
 *
 * Large pages need va and pa to be congruent, so the addresses handed out agree with the pa in as many low
 * bits as a page of the format that fits into the mapping has. Address space is spent for that (up to one
 * such page a mapping); memory is not. Constant time (tlsf.h). Not thread-safe.
 */
#ifndef RIG_MMU_VA_H
#define RIG_MMU_VA_H

#include <stdint.h>

#include "mmu_format.h"

struct rig_mmu_va;

/* Hand out [first, first + bytes), multiples of the smallest page. `format` is borrowed until close. -EINVAL,
 * -ENOMEM. */
int rig_mmu_va_open(
        struct rig_mmu_va **out, const struct rig_mmu_format *format, uint64_t first, uint64_t bytes);

void rig_mmu_va_close(struct rig_mmu_va *va);

/* Addresses for `bytes` bytes at `pa`, both multiples of the smallest page. -EINVAL, -ENOMEM (no such
 * place). */
int rig_mmu_va_alloc(struct rig_mmu_va *va, uint64_t pa, uint64_t bytes, uint64_t *at);

/* Give back what rig_mmu_va_alloc answered, with the same `bytes`. -ENOENT: that was not handed out. */
int rig_mmu_va_free(struct rig_mmu_va *va, uint64_t at, uint64_t bytes);

#endif
