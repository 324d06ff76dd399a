/* SPDX-License-Identifier: MIT */
#include "mmu_va.h"

#include <errno.h>
#include <stdlib.h>

#include "bits.h"
#include "tlsf.h"

struct rig_mmu_va {
	const struct rig_mmu_format *format;
	struct rig_tlsf *space;
};

int rig_mmu_va_open(
        struct rig_mmu_va **out, const struct rig_mmu_format *format, uint64_t first, uint64_t bytes)
{
	struct rig_mmu_va *va;
	uint64_t page = rig_mmu_page_bytes(format);
	int rc;

	if (!rig_is_aligned(bytes, page))
		return -EINVAL;
	va = calloc(1, sizeof(*va));
	if (!va)
		return -ENOMEM;
	va->format = format;
	rc = rig_tlsf_open(&va->space, first, bytes, page);
	if (rc) {
		free(va);
		return rc;
	}
	*out = va;
	return 0;
}

void rig_mmu_va_close(struct rig_mmu_va *va)
{
	if (!va)
		return;
	rig_tlsf_close(va->space);
	free(va);
}

/* The page size whose low bits va and pa share. */
static uint64_t colour_of(const struct rig_mmu_va *va, uint64_t bytes)
{
	return RIG_BIT64(rig_mmu_page_shift(va->format, bytes));
}

int rig_mmu_va_alloc(struct rig_mmu_va *va, uint64_t pa, uint64_t bytes, uint64_t *at)
{
	uint64_t colour = colour_of(va, bytes);
	uint64_t lead = pa & (colour - 1);
	uint64_t whole, start;
	int rc;

	if (bytes == 0 || !rig_is_aligned(pa | bytes, rig_mmu_page_bytes(va->format)))
		return -EINVAL;
	if (!rig_add_u64(bytes, lead, &whole))
		return -ENOMEM;
	rc = rig_tlsf_alloc(va->space, whole, colour, &start);
	if (rc)
		return rc;
	*at = start + lead;
	return 0;
}

int rig_mmu_va_free(struct rig_mmu_va *va, uint64_t at, uint64_t bytes)
{
	return rig_tlsf_free(va->space, rig_align_down(at, colour_of(va, bytes)));
}
