/* SPDX-License-Identifier: MIT */
/*
 * The walker over hostile tables: the input is the table memory, whose first 16 bytes are a root and an
 * address. A walk loads only where the memory is or is told -EFAULT, loads at most once a level, and what it
 * answers agrees with what it loaded.
 */
#include "mmu_fake.h"

#define CHECK(condition)                                                                                     \
	do {                                                                                                 \
		if (!(condition))                                                                            \
			abort();                                                                             \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

enum { HEADER_BYTES = 16 };

struct input {
	const uint8_t *tables;
	size_t length;
	unsigned loads;
};

static int load(void *arg, uint64_t pa, uint64_t *entry)
{
	struct input *input = arg;

	input->loads++;
	if (!rig_span_fits(pa, sizeof(*entry), input->length))
		return -EFAULT;
	*entry = rig_get_le64(input->tables + pa);
	return 0;
}

static void check_page(const struct rig_mmu_format *f, uint64_t va, const struct rig_mmu_walked *w)
{
	const struct rig_mmu_level *level = &f->level[w->level];
	struct rig_mmu_entry leaf = f->decode(w->raw[w->level], w->level);
	uint64_t page = RIG_BIT64(level->shift);

	CHECK(level->leaf && w->page_shift == level->shift);
	CHECK(leaf.kind == RIG_MMU_LEAF && rig_is_aligned(leaf.pa, page));
	CHECK(w->pa == (leaf.pa | (va & (page - 1))));
	CHECK(w->flags == leaf.flags);
}

static void walk(const struct rig_mmu_format *f, uint64_t root, uint64_t va, struct input *input)
{
	struct rig_mmu_walked w;
	int rc;

	input->loads = 0;
	rc = rig_mmu_walk(f, root, va, load, input, &w);
	CHECK(rc == 0 || rc == -EINVAL || rc == -ENOENT || rc == -EILSEQ || rc == -EFAULT);
	CHECK(input->loads <= f->levels && w.reads == input->loads - (rc == -EFAULT));
	for (unsigned n = 0; n < w.reads; n++) {
		CHECK(rig_is_aligned(w.table[n], rig_mmu_table_bytes(f, n)));
		if (n)
			CHECK(f->decode(w.raw[n - 1], n - 1).pa == w.table[n]);
	}
	if (rc == 0)
		check_page(f, va, &w);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct input input;
	uint64_t root, va;

	if (length < HEADER_BYTES)
		return 0;
	input = (struct input){.tables = bytes + HEADER_BYTES, .length = length - HEADER_BYTES};
	root = rig_get_le64(bytes);
	va = rig_get_le64(bytes + sizeof(uint64_t));
	walk(&fake_sv48, root, va, &input);
	walk(&fake_tiny, root, va & rig_mask64(fake_tiny.va_bits), &input);
	walk(&fake_blocks, root, va, &input);
	return 0;
}
