/* SPDX-License-Identifier: MIT */
#include "mmu_format.h"

#include <errno.h>

#include "bits.h"

static bool level_ok(const struct rig_mmu_format *f, unsigned n)
{
	const struct rig_mmu_level *level = &f->level[n];
	bool last = n + 1 == f->levels;

	if (level->bits == 0 || level->bits > RIG_MMU_MAX_BITS)
		return false;
	if (level->shift + level->bits > RIG_MMU_MAX_VA_BITS || level->fragments > level->bits)
		return false;
	if (last)
		return level->leaf;
	return level->shift == f->level[n + 1].shift + f->level[n + 1].bits;
}

int rig_mmu_format_check(const struct rig_mmu_format *f)
{
	if (f->levels == 0 || f->levels > RIG_MMU_MAX_LEVELS)
		return -EINVAL;
	if (f->entry_bytes != sizeof(uint32_t) && f->entry_bytes != sizeof(uint64_t))
		return -EINVAL;
	if (!f->leaf || !f->table || !f->decode)
		return -EINVAL;
	for (unsigned n = 0; n < f->levels; n++)
		if (!level_ok(f, n))
			return -EINVAL;
	if (f->va_bits > (unsigned)f->level[0].shift + f->level[0].bits || f->va_bits <= f->level[0].shift)
		return -EINVAL;
	if (f->pa_bits < f->level[f->levels - 1].shift || f->pa_bits > RIG_BITS_U64)
		return -EINVAL;
	return 0;
}

uint64_t rig_mmu_table_bytes(const struct rig_mmu_format *f, unsigned level)
{
	return (uint64_t)f->entry_bytes << f->level[level].bits;
}

uint64_t rig_mmu_page_bytes(const struct rig_mmu_format *f)
{
	return RIG_BIT64(f->level[f->levels - 1].shift);
}

int rig_mmu_offset(const struct rig_mmu_format *f, uint64_t va, uint64_t bytes, uint64_t *offset)
{
	uint64_t reach = RIG_BIT64(f->va_bits), half = reach >> 1;
	uint64_t at = va & (reach - 1), above = va & ~(reach - 1);

	if (bytes == 0 || bytes > reach - at)
		return -EINVAL;
	if (!f->sign_extended && above)
		return -EINVAL;
	if (f->sign_extended) {
		if (above != ((at & half) ? ~(reach - 1) : 0))
			return -EINVAL;
		if ((at ^ (at + (bytes - 1))) & half)
			return -EINVAL;
	}
	*offset = at;
	return 0;
}
