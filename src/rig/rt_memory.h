/* SPDX-License-Identifier: MIT */
/* Memory of a device, buffers over it, and copies that go through the host. */
#ifndef RT_MEMORY_H
#define RT_MEMORY_H

#include "rt_device.h"

/* Tries of an allocation, the first included, before it is refused where no work was waited for. */
#define RT_ROUNDS 4u

/* ---- Memory (stamp.c, memory.c, mapping.c, reclaim.c) ---- */

typedef _Atomic uint64_t rig_rt_stamp;

#define RT_USES 4u

/* The point of each device's last use. A word belongs to one slot for the memory's life. */
struct rig_rt_uses {
	rig_rt_stamp word[RT_USES];
	_Atomic(struct rig_rt_uses *) next;
};

/* A region on another device over the memory. */
struct rig_rt_map {
	struct rig_rt_map *next;
	struct rig_device *device; /* a reference */
	void *region;              /* NULL: the device never maps it */
	struct rig_location at;
};

struct rig_buffer {
	_Atomic uint32_t refs;
	struct rig_device *device; /* a reference; the owner or the one mapped on */
	struct rig_rt_mem *mem;    /* NULL: no bytes */
	void *region;              /* on `device` */
	struct rig_location at;    /* of the region on `device` */
	void *host;                /* the buffer's first byte, or NULL */
	uint64_t offset, bytes;
};

struct rig_rt_mem {
	_Atomic uint32_t refs;
	enum rig_memory kind;
	bool host_owned;          /* the program's or an Io library's making: neither cached nor counted */
	bool counted;             /* in the device's budget */
	atomic_bool exported;     /* its bus addresses or a dma-buf were given out, so it is not cached */
	struct rig_device *owner; /* a reference */
	void *region;
	struct rig_location at;
	uint64_t bytes;
	void *pages;             /* host memory that goes with it, or NULL */
	struct rig_rt_mem *next; /* in a cache or waiting list */
	struct rig_rt_lock maps_lock;
	struct rig_rt_map *maps;
	rig_rt_stamp write;
	struct rig_rt_uses uses;
	atomic_bool shared; /* another device maps it, or did */
	/* Of all of it, on the owner: what rig_buffer_create hands out, so that cached memory costs no
	   allocation. Its device is the memory's reference, and it is free once its count is 0. */
	struct rig_buffer whole;
};

/* The stamp word of a slot, claimed if it has none; NULL without memory. */
rig_rt_stamp *rig_rt_stamp_claim(struct rig_rt_mem *mem, uint32_t slot);
/* Whether no use by other devices than `slot`'s can still run (slot 0: by any device). */
bool rig_rt_uses_over(struct rig_rt_mem *mem, uint32_t slot);
/* A use that is not reached, or 0. */
uint64_t rig_rt_uses_pending(struct rig_rt_mem *mem);
/* Blocks until the host may access it. 0 or RIG_LOST. */
int rig_rt_mem_wait(struct rig_rt_mem *mem, enum rig_access access);
/* Whether rig_rt_uses_over, and then forgets every use but those of `slot`; the memory is no buffer's. */
bool rig_rt_uses_settle(struct rig_rt_mem *mem, uint32_t slot);
void rig_rt_uses_fini(struct rig_rt_mem *mem);

int rig_rt_mem_alloc(struct rig_device *d, enum rig_memory kind, uint64_t bytes, struct rig_rt_mem **mem);
/* A memory of the program's: `region` from map_host. */
struct rig_rt_mem *rig_rt_mem_make(struct rig_device *d);
void rig_rt_mem_get(struct rig_rt_mem *mem);
void rig_rt_mem_put(struct rig_rt_mem *mem);
/* Gives the regions back and frees it; no work may use it. False: a device is being stopped, ask again. */
bool rig_rt_mem_destroy(struct rig_rt_mem *mem);
/* Frees a driver's region by the rules of the device's life. False: not while it is being stopped. */
bool rig_rt_region_free(struct rig_device *d, void *region);
/* The mapping on `d`, made at the first call. 0, -ENOTSUP, -ENOMEM, RIG_LOST. */
int rig_rt_map_on(struct rig_rt_mem *mem, struct rig_device *d, const struct rig_rt_map **map);
/* map_host with one retry after memory was given back. 0, -ENOTSUP, -ENOMEM, RIG_LOST. */
int rig_rt_map_host(struct rig_device *d, void *host, uint64_t bytes, void **region);
bool rig_rt_maps_destroy(struct rig_rt_mem *mem);

/* Takes due memory and deferred work back; never waits for work. */
void rig_rt_drain(struct rig_device *d);
void rig_rt_drain_all(void);
/* Runs it when due, at once if it is. */
void rig_rt_defer(struct rig_device *d, struct rig_rt_deferred *deferred);
enum rig_rt_shortage {
	RT_SHORT_DEVICE,
	RT_SHORT_HOST, /* memory of the host, or room to map it: what other devices cached of that goes too */
	RT_SHORT_QUEUES, /* any work may hold back what queues need to grow */
};

/* Gives memory back for the try after `round` (0, 1, ...): later rounds wait for work that holds some back, a
   value each. 0, -ENOMEM (there is none, so another try would be as this one) or RIG_LOST. */
int rig_rt_reclaim(struct rig_device *d, unsigned round, enum rig_rt_shortage what);
/* Whether so many bytes of what the budget counts may fit once all work is done. */
bool rig_rt_may_fit(struct rig_device *d, uint64_t bytes);
/* Gives cached memory without uses to the driver until at most `keep` bytes are cached. */
void rig_rt_trim(struct rig_device *d, uint64_t keep);
#define RT_PAGE UINT64_C(4096)
/* Up to here sizes are rounded to pages; above, to an eighth of the power of two below. */
#define RT_SMALL      UINT64_C(65536)
#define RT_SIZE_PARTS 8u

/* Sizes close to each other share a class, so that the cache finds memory for them. 0: overflow. */
static inline uint64_t rig_rt_class_of(uint64_t bytes)
{
	uint64_t unit = RT_PAGE;

	if (bytes > RT_SMALL)
		unit = (UINT64_C(1) << (63 - __builtin_clzll(bytes))) / RT_SIZE_PARTS;
	if (bytes > UINT64_MAX - unit)
		return 0;
	return (bytes + unit - 1) & ~(unit - 1);
}

/* Memory for so many bytes if it is there at once: a live device, and the last that its cache was given of
   that size. NULL: rig_rt_mem_alloc, which also says what is wrong. */
struct rig_rt_mem *rig_rt_mem_cached(struct rig_device *d, enum rig_memory kind, uint64_t bytes);
/* Takes a memory of that size and kind out of the cache, or NULL. */
struct rig_rt_mem *rig_rt_cache_take(struct rig_device *d, enum rig_memory kind, uint64_t bytes);
void rig_rt_cache_give(struct rig_rt_mem *mem);

/* A buffer of all of it, which takes over the reference, on failure too. */
int rig_rt_buffer_over(struct rig_rt_mem *mem, void *region, struct rig_buffer **buffer);
/* -EINVAL unless offset + bytes lies in the buffer. */
int rig_rt_buffer_bounds(const struct rig_buffer *buffer, const char *name, uint64_t offset, uint64_t bytes);
/* RIG_LOST if the buffer's device or its memory's owner is lost. */
int rig_rt_buffer_usable(const struct rig_buffer *buffer);

/* ---- Copies (copy.c, staging.c) ---- */

/* A copy of one row on the device's copy engine between regions it addresses (copy.c). */
int rig_rt_copy_submit(struct rig_device *d, const struct rig_buffer *dst, uint64_t dst_offset,
        const struct rig_buffer *src, uint64_t src_offset, uint64_t bytes, struct rig_point *point);
/* What the host moves bytes from or to: memory, which is a device's window where `mapped`, or a buffer of an
   Io device from `offset`. */
struct rig_rt_host_side {
	char *memory;
	bool mapped;
	struct rig_buffer *io;
	uint64_t offset;
};

/* Moves bytes out of a side, from its byte `at` on, into ordinary memory, and into it; a window only by wide
   accesses (rig_wide.h). 0, or what rig_rt_io_read and rig_rt_io_write answer (copy.c). */
int rig_rt_side_get(const struct rig_rt_host_side *side, uint64_t at, void *dst, uint64_t bytes);
int rig_rt_side_put(const struct rig_rt_host_side *side, uint64_t at, const void *src, uint64_t bytes);

/* Copies through the device's staging memory (staging.c). */
int rig_rt_stage_write(
        struct rig_buffer *buffer, uint64_t offset, const struct rig_rt_host_side *src, uint64_t bytes);
int rig_rt_stage_read(
        struct rig_buffer *buffer, uint64_t offset, const struct rig_rt_host_side *dst, uint64_t bytes);
int rig_rt_stage_copy(struct rig_buffer *dst, uint64_t dst_offset, struct rig_buffer *src,
        uint64_t src_offset, uint64_t bytes);
/* Puts the staging memory; what a copy in flight uses goes when that ends. */
void rig_rt_staging_drop(struct rig_device *d);

/* ---- Io devices (io.c) ---- */

/* The driver that librig puts before an Io library, so that its devices are devices. */
extern const struct rig_driver_module rig_rt_io_module;

static inline bool rig_rt_is_io(const struct rig_device *d)
{
	return d->module == &rig_rt_io_module;
}

/* Bytes of a buffer of an Io device, in the calling thread; the buffer's bounds were checked. They do not
   wait for the work of others (rig_rt_mem_wait). 0, the library's errno or RIG_LOST. */
int rig_rt_io_read(struct rig_buffer *buffer, uint64_t offset, void *dst, uint64_t bytes);
int rig_rt_io_write(struct rig_buffer *buffer, uint64_t offset, const void *src, uint64_t bytes);
void rig_rt_io_prefetch(struct rig_buffer *buffer, uint64_t offset, uint64_t bytes);
/* The memory's bytes as host memory: 0 with *pages, which may be NULL for ever, an errno or RIG_LOST. */
int rig_rt_io_pages(struct rig_rt_mem *mem, void **pages);

#endif
