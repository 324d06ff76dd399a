/* SPDX-License-Identifier: MIT */
#ifndef TEST_MMU_MODEL_H
#define TEST_MMU_MODEL_H

/*
 * A space of FAKE_PAGES pages beside a flat map of what it should hold. Changes are decoded from bytes, so
 * random tests and the fuzzer share it. After every single store all pages are walked as a device would: each
 * must translate as before the change or as after it.
 *
 * The includer defines MODEL_CHECK(condition).
 */
#include "mmu_fake.h"

struct model_page {
	bool mapped;
	uint64_t pa;
	uint64_t flags;
};

struct model {
	const struct rig_mmu_format *format;
	struct rig_mmu_space *space;
	struct fake_memory *memory;
	unsigned limit;
	struct model_page before[FAKE_PAGES], after[FAKE_PAGES];
};

enum { MODEL_OP_BYTES = 6 };

static inline uint64_t model_va(const struct model *m, unsigned page)
{
	uint64_t va = (uint64_t)page << FAKE_PAGE_SHIFT;

	return m->format->sign_extended && page >= FAKE_PAGES / 2 ? va | ~rig_mask64(m->format->va_bits) : va;
}

static inline bool model_same(const struct model_page *page, int rc, const struct mmu_walked *w)
{
	if (!page->mapped)
		return rc == -ENOENT;
	return rc == 0 && w->pa == page->pa && w->flags == page->flags;
}

static inline int model_walk(const struct model *m, unsigned page, struct mmu_walked *w)
{
	return mmu_walk(m->format, rig_mmu_root(m->space), model_va(m, page), fake_load, m->memory, w);
}

static inline void model_after_store(void *arg)
{
	const struct model *m = arg;
	struct mmu_walked w;

	if (!m->space) /* the root is being cleared */
		return;
	for (unsigned i = 0; i < FAKE_PAGES; i++) {
		int rc = model_walk(m, i, &w);

		MODEL_CHECK(model_same(&m->before[i], rc, &w) || model_same(&m->after[i], rc, &w));
	}
}

/* The page of `page`, with the block it says it is in, holds what the block promises. Answers its log2 in
 * bytes. */
static inline unsigned model_unit(const struct model *m, unsigned page)
{
	struct mmu_walked w, other;
	unsigned unit, pages, first;

	MODEL_CHECK(model_walk(m, page, &w) == 0);
	unit = w.page_shift + w.fragment;
	pages = 1u << (unit - FAKE_PAGE_SHIFT);
	first = page & ~(pages - 1);
	for (unsigned i = first; i < first + pages; i++) {
		MODEL_CHECK(model_walk(m, i, &other) == 0);
		MODEL_CHECK(other.page_shift == w.page_shift && other.fragment == w.fragment);
		MODEL_CHECK(other.flags == w.flags);
		MODEL_CHECK(other.pa - w.pa == ((uint64_t)i - page) << FAKE_PAGE_SHIFT);
	}
	MODEL_CHECK(model_walk(m, first, &other) == 0 && rig_is_aligned(other.pa, RIG_BIT64(unit)));
	return unit;
}

/* A page or block lies across the beginning of `page`. */
static inline bool model_cut(const struct model *m, unsigned page)
{
	if (page >= FAKE_PAGES || !m->before[page].mapped)
		return false;
	return !rig_is_aligned((uint64_t)page << FAKE_PAGE_SHIFT, RIG_BIT64(model_unit(m, page)));
}

static inline void model_check(struct model *m)
{
	struct rig_mmu_stats stats;
	struct mmu_walked w;
	uint64_t bytes = 0, counted = 0;

	fake_flush(m->memory);
	memcpy(m->before, m->after, sizeof(m->before));
	for (unsigned i = 0; i < FAKE_PAGES; i++) {
		int rc = model_walk(m, i, &w);

		MODEL_CHECK(model_same(&m->after[i], rc, &w));
		bytes += m->after[i].mapped ? RIG_BIT64(FAKE_PAGE_SHIFT) : 0;
	}
	rig_mmu_stats(m->space, &stats);
	for (unsigned n = 0; n < m->format->levels; n++)
		counted += stats.pages[n] << m->format->level[n].shift;
	MODEL_CHECK(stats.bytes == bytes && counted == bytes);
	MODEL_CHECK(stats.tables + stats.waiting == m->memory->in_use);
	MODEL_CHECK(!m->memory->broken);
}

/* The largest aligned piece around `page` of at most 2^most bytes that the map covers, in log2 of bytes. */
static inline unsigned model_largest(
        unsigned page, unsigned first, unsigned count, uint64_t pa, unsigned least, unsigned most)
{
	unsigned best = least;

	for (unsigned shift = least; shift <= most; shift++) {
		unsigned pages = 1u << (shift - FAKE_PAGE_SHIFT), start = page & ~(pages - 1);

		if (start >= first && start + pages <= first + count &&
		        rig_is_aligned(pa + ((uint64_t)start - first) * 4096, RIG_BIT64(shift)))
			best = shift;
	}
	return best;
}

/* Every page of a map is as large as alignment and the limit allow, and so is every block. */
static inline void model_check_largest(const struct model *m, unsigned first, unsigned count, uint64_t pa)
{
	for (unsigned page = first; page < first + count; page++) {
		struct mmu_walked w;
		unsigned want = m->format->levels - 1;

		MODEL_CHECK(model_walk(m, page, &w) == 0);
		for (unsigned n = m->format->levels; n-- > 0;) {
			unsigned shift = m->format->level[n].shift;

			if ((!m->limit || shift <= m->limit) &&
			        model_largest(page, first, count, pa, FAKE_PAGE_SHIFT, shift) == shift)
				want = n;
		}
		MODEL_CHECK(w.level == want);
		MODEL_CHECK(w.page_shift + w.fragment ==
		            model_largest(page, first, count, pa, w.page_shift,
		                    w.page_shift + m->format->level[want].fragments));
	}
}

static inline bool model_valid(const struct model *m, unsigned first, unsigned count)
{
	if (count == 0 || first + count > FAKE_PAGES)
		return false;
	return !m->format->sign_extended || first / 64 == (first + count - 1) / 64;
}

static inline void model_map(struct model *m, unsigned first, unsigned count, uint64_t pa, uint64_t flags)
{
	bool overlap = false, valid = model_valid(m, first, count);
	int rc;

	for (unsigned i = first; valid && i < first + count; i++) {
		overlap |= m->before[i].mapped;
		m->after[i] = (struct model_page){true, pa + (i - first) * UINT64_C(4096), flags};
	}
	rc = rig_mmu_map(m->space, model_va(m, first), pa, (uint64_t)count << FAKE_PAGE_SHIFT, flags);
	if (rc) {
		memcpy(m->after, m->before, sizeof(m->after));
		MODEL_CHECK(rc == (!valid ? -EINVAL : overlap ? -EEXIST : -ENOBUFS));
		MODEL_CHECK(rc != -ENOBUFS || m->memory->failed);
		return;
	}
	MODEL_CHECK(valid && !overlap && !m->memory->failed);
	fake_flush(m->memory);
	model_check_largest(m, first, count, pa);
}

static inline void model_unmap(struct model *m, unsigned first, unsigned count)
{
	bool hole = false, valid = model_valid(m, first, count);
	bool cut = valid && (model_cut(m, first) || model_cut(m, first + count));
	int rc;

	for (unsigned i = first; valid && i < first + count; i++) {
		hole |= !m->before[i].mapped;
		m->after[i] = (struct model_page){0};
	}
	rc = rig_mmu_unmap(m->space, model_va(m, first), (uint64_t)count << FAKE_PAGE_SHIFT);
	if (rc) {
		memcpy(m->after, m->before, sizeof(m->after));
		MODEL_CHECK(rc == -EINVAL ? !valid || cut : rc == -ENOENT && hole);
		return;
	}
	MODEL_CHECK(valid && !hole && !cut);
}

static inline void model_open(
        struct model *m, const struct rig_mmu_format *format, struct fake_memory *memory, bool lazy)
{
	struct rig_mmu_memory ops = fake_ops(memory);

	memset(m, 0, sizeof(*m));
	m->format = format;
	m->memory = memory;
	memset(memory->used, 0, sizeof(memory->used));
	memory->in_use = 0;
	memory->fail_at = 0;
	memory->broken = false;
	memory->lazy = lazy;
	memory->pending = 0;
	memory->after_store = model_after_store;
	memory->after_arg = m;
	MODEL_CHECK(rig_mmu_open(&m->space, format, &ops) == 0);
	model_check(m);
}

static inline void model_close(struct model *m)
{
	m->memory->after_store = NULL;
	rig_mmu_close(m->space);
	MODEL_CHECK(m->memory->in_use == 0 && !m->memory->broken);
}

/* One change from MODEL_OP_BYTES bytes. */
static inline void model_step(struct model *m, const uint8_t *op)
{
	unsigned first = op[1] % FAKE_PAGES;
	unsigned count = op[0] & 0x10 ? op[2] % (FAKE_PAGES + 2) : op[2] % 20;
	uint64_t pa = (uint64_t)(op[3] % 8) * FAKE_PAGES + first + (op[0] & 0x20 ? op[4] % 16 : 0);
	uint64_t flags = (op[5] & FAKE_FLAGS) | (op[5] & 0x20 ? FAKE_FORMAT_BIT : 0);
	static const unsigned limits[] = {0, 17, 15, 12};

	m->memory->failed = false;
	m->memory->fail_at = op[0] & 0x08 ? op[4] % 4 + 1u : 0;
	switch (op[0] & 7) {
	case 0:
	case 1:
	case 2:
		model_map(m, first, count, pa << FAKE_PAGE_SHIFT, flags);
		break;
	case 3:
	case 4:
		model_unmap(m, first, count);
		break;
	case 5:
	case 6:
		rig_mmu_reap(m->space, rig_mmu_stamp(m->space) - op[1] % 3);
		break;
	default:
		m->limit = limits[op[1] % 4];
		rig_mmu_limit_pages(m->space, m->limit);
	}
	model_check(m);
}

#endif
