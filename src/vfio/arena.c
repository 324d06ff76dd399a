/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bits.h"
#include "rig_pci.h"
#include "error.h"
#include "pci_private.h"
#include "tlsf.h"

/* A piece is made of cache lines, so that no two owners share one. */
#define PIECE UINT64_C(64)

/* The first arena is this part of the step: one megabyte, which most functions never outgrow. */
enum { FIRST_PART = 64 };

static uint64_t next_size(const struct rig_arenas *a, uint64_t bytes)
{
	uint64_t grown = rig_max_u64(a->bytes, a->step / FIRST_PART);

	return rig_max_u64(bytes, rig_min_u64(grown, a->step));
}

static int map(struct rig_pci *f, struct rig_arena *arena)
{
	struct rig_map m = {
	        .bytes = arena->mem.bytes, .prot = RIG_DMA_READ | RIG_DMA_WRITE, .host = arena->mem.host};
	uint64_t align = rig_max_u64(arena->mem.page, RIG_HUGEMEM_ALIGN);
	int err = rig_dma_make(f, &m, align, arena->mem.fd, 0);

	arena->iova = m.iova;
	return err;
}

static int open_arena(struct rig_pci *f, uint64_t bytes, struct rig_arena **out)
{
	struct rig_arenas *a = &f->arenas;
	struct rig_arena *arena, **last = &a->first;
	int err;

	if (!rig_align_up(bytes, f->info.dma_page, &bytes))
		return rig_vfio_fail(ENOMEM, NULL, "more DMA memory than there are addresses");
	if (a->limit && (a->bytes > a->limit || bytes > a->limit - a->bytes))
		return rig_vfio_fail(ENOSPC, "raise arena_limit",
		        "%" PRIu64 " bytes of DMA memory exist, the limit is %" PRIu64, a->bytes, a->limit);
	arena = calloc(1, sizeof(*arena));
	if (!arena)
		return rig_vfio_fail(ENOMEM, NULL, "a DMA arena");
	err = rig_hugemem_open(&arena->mem, bytes);
	if (err)
		goto free_arena;
	err = map(f, arena);
	if (err)
		goto close_mem;
	err = rig_tlsf_open(&arena->pieces, arena->iova, arena->mem.bytes, PIECE);
	if (err) {
		err = rig_vfio_fail(err, NULL, "a DMA arena's allocator");
		goto unmap;
	}
	while (*last)
		last = &(*last)->next;
	*last = arena;
	a->bytes += arena->mem.bytes;
	memcpy(a->pages, arena->mem.text, sizeof(a->pages));
	*out = arena;
	return 0;
unmap:
	(void)rig_dma_undo(f, arena->iova, arena->mem.bytes);
close_mem:
	rig_hugemem_close(&arena->mem);
free_arena:
	free(arena);
	return err;
}

/* Unmapped first: the device must not reach memory that is the system's again. If it cannot be asked any
 * more, the memory may go too, because it is shared by descriptor and stays the far side's as long as it
 * holds that. */
static void close_arena(struct rig_pci *f, struct rig_arena *arena)
{
	struct rig_arena **at = &f->arenas.first;

	while (*at != arena)
		at = &(*at)->next;
	*at = arena->next;
	f->arenas.bytes -= arena->mem.bytes;
	(void)rig_dma_undo(f, arena->iova, arena->mem.bytes);
	rig_tlsf_close(arena->pieces);
	rig_hugemem_close(&arena->mem);
	free(arena);
}

static int take(struct rig_arena *arena, uint64_t bytes, uint64_t align, struct rig_dma *out)
{
	uint64_t iova, off;
	int err = rig_tlsf_alloc(arena->pieces, bytes, align, &iova);

	if (err)
		return err;
	off = iova - arena->iova;
	*out = (struct rig_dma){
	        .host = (unsigned char *)arena->mem.host + off,
	        .iova = iova,
	        .bytes = rig_tlsf_bytes(arena->pieces, iova),
	        .fd = arena->mem.fd,
	        .fd_offset = off,
	        .handle = arena,
	        .arena_iova = arena->iova,
	        .arena_bytes = arena->mem.bytes,
	};
	return 0;
}

static int take_new(struct rig_pci *f, uint64_t size, uint64_t bytes, uint64_t align, struct rig_dma *out)
{
	struct rig_arena *arena = NULL; /* else gcc warns, with -fsanitize=thread */
	int err = open_arena(f, size, &arena);

	if (err)
		return err;
	/* Arenas lie on RIG_HUGEMEM_ALIGN, the largest align, so their start fits whatever is asked. */
	err = take(arena, bytes, align, out);
	return err ? rig_vfio_fail(err, NULL, "a piece of a new DMA arena") : 0;
}

int rig_arena_alloc(struct rig_pci *f, uint64_t bytes, uint64_t align, struct rig_dma *out)
{
	struct rig_arena *arena;

	for (arena = f->arenas.first; arena; arena = arena->next) {
		if (!arena->alone && rig_tlsf_free_bytes(arena->pieces) >= bytes &&
		        take(arena, bytes, align, out) == 0)
			return 0;
	}
	return take_new(f, next_size(&f->arenas, bytes), bytes, align, out);
}

int rig_arena_alloc_alone(struct rig_pci *f, uint64_t bytes, struct rig_dma *out)
{
	int err = take_new(f, bytes, bytes, 0, out);

	if (!err)
		((struct rig_arena *)out->handle)->alone = true;
	return err;
}

static bool is_empty(const struct rig_arena *arena)
{
	return rig_tlsf_pieces(arena->pieces) == 0;
}

/* The newest of the empty ones if there are two: one is kept for what is asked next. */
static struct rig_arena *surplus(const struct rig_arenas *a)
{
	struct rig_arena *arena, *last = NULL;
	unsigned n = 0;

	for (arena = a->first; arena; arena = arena->next)
		if (is_empty(arena)) {
			last = arena;
			n++;
		}
	return n > 1 ? last : NULL;
}

void rig_arena_free(struct rig_pci *f, struct rig_dma *dma, bool spare)
{
	struct rig_arena *arena = dma->handle;

	(void)rig_tlsf_free(arena->pieces, dma->iova);
	if (!is_empty(arena))
		return;
	if (spare && !arena->alone && arena->mem.bytes <= f->arenas.step)
		arena = surplus(&f->arenas);
	if (arena)
		close_arena(f, arena);
}

void rig_arenas_fini(struct rig_pci *f)
{
	while (f->arenas.first)
		close_arena(f, f->arenas.first);
}
