/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>

#include "rt.h"

/* Takes over the reference of `mem` (which may be NULL). */
static struct rig_buffer *make(struct rig_device *d, struct rig_rt_mem *mem, void *region,
        const struct rig_location *at, uint64_t bytes)
{
	struct rig_buffer *buffer = calloc(1, sizeof(*buffer));

	if (!buffer) {
		rig_rt_mem_put(mem);
		return NULL;
	}
	atomic_init(&buffer->refs, 1);
	buffer->device = rig_device_get(d);
	buffer->mem = mem;
	buffer->region = region;
	if (at)
		buffer->at = *at;
	/* The memory's host address, also where the device it is borrowed on names none. */
	if (mem && mem->at.has_host)
		buffer->host = mem->at.host;
	buffer->bytes = bytes;
	return buffer;
}

static int no_host_memory(void)
{
	return rig_error_set(-ENOMEM, "no host memory for a buffer object");
}

int rig_rt_buffer_over(struct rig_rt_mem *mem, void *region, struct rig_buffer **buffer)
{
	*buffer = make(mem->owner, mem, region, &mem->at, mem->bytes);
	return *buffer ? 0 : no_host_memory();
}

static inline struct rig_buffer *hand_out(struct rig_rt_mem *mem, uint64_t bytes)
{
	mem->whole.bytes = bytes;
	atomic_store_explicit(&mem->whole.refs, 1, memory_order_relaxed);
	return &mem->whole;
}

/* What is not in the cache at once. */
__attribute__((noinline)) static int create(
        struct rig_device *device, enum rig_memory kind, uint64_t bytes, struct rig_buffer **buffer)
{
	struct rig_rt_mem *mem;
	int code;

	if (kind != RIG_DEVICE && kind != RIG_PINNED && kind != RIG_MAPPED)
		return rig_error_set(-EINVAL, "kind %d is no kind of memory", (int)kind);
	if (!rig_rt_is_live(device))
		return rig_rt_lost_error(device);
	if (!bytes) {
		*buffer = make(device, NULL, NULL, NULL, 0);
		return *buffer ? 0 : no_host_memory();
	}
	code = rig_rt_mem_alloc(device, kind, bytes, &mem);
	/* A window may be smaller than the memory behind it. */
	if (code == -ENOMEM && kind == RIG_MAPPED)
		code = rig_rt_mem_alloc(device, RIG_PINNED, bytes, &mem);
	if (!code)
		*buffer = hand_out(mem, bytes);
	return code;
}

int rig_buffer_create(
        struct rig_device *device, enum rig_memory kind, uint64_t bytes, struct rig_buffer **buffer)
{
	struct rig_rt_mem *mem;
	int code = rig_rt_given2(device, "device", buffer, "buffer");

	if (code)
		return code;
	mem = rig_rt_mem_cached(device, kind, bytes);
	if (__builtin_expect(!mem, 0))
		return create(device, kind, bytes, buffer);
	*buffer = hand_out(mem, bytes);
	return 0;
}

int rig_buffer_of_host(struct rig_device *device, void *host, uint64_t bytes, struct rig_buffer **buffer)
{
	struct rig_rt_mem *mem;
	void *region;
	int code = rig_rt_given2(device, "device", buffer, "buffer");

	if (code)
		return code;
	if (!host || !bytes)
		return rig_error_set(-EINVAL, "host memory must not be NULL or empty");
	mem = rig_rt_mem_make(device);
	if (!mem)
		return no_host_memory();
	mem->host_owned = true;
	mem->bytes = bytes;
	code = rig_rt_map_host(device, host, bytes, &region);
	if (code) {
		(void)rig_rt_mem_destroy(mem);
		return code;
	}
	mem->region = region;
	device->module->locate(device->handle, region, &mem->at);
	/* Pages that stand for another machine's memory are none of the host's, and the driver says so. */
	if (mem->at.has_host || !mem->at.has_address) {
		mem->at.has_host = true;
		mem->at.host = host;
	}
	*buffer = make(device, mem, region, &mem->at, bytes);
	return *buffer ? 0 : no_host_memory();
}

int rig_buffer_borrow(struct rig_device *device, struct rig_buffer *buffer, struct rig_buffer **borrowed)
{
	const struct rig_rt_map *map;
	struct rig_buffer *made;
	int code = rig_rt_given2(device, "device", buffer, "buffer");

	if (!code)
		code = rig_rt_given(borrowed, "borrowed");
	if (!code)
		code = rig_rt_buffer_usable(buffer);
	if (code)
		return code;
	if (!buffer->mem)
		return rig_buffer_create(device, RIG_DEVICE, 0, borrowed);
	if (device == buffer->mem->owner) {
		rig_rt_mem_get(buffer->mem);
		made = make(device, buffer->mem, buffer->mem->region, &buffer->mem->at, buffer->bytes);
	} else {
		code = rig_rt_map_on(buffer->mem, device, &map);
		if (code)
			return code;
		rig_rt_mem_get(buffer->mem);
		made = make(device, buffer->mem, map->region, &map->at, buffer->bytes);
	}
	if (!made)
		return no_host_memory();
	made->offset = buffer->offset;
	made->host = buffer->host;
	*borrowed = made;
	return 0;
}

int rig_rt_buffer_bounds(const struct rig_buffer *buffer, const char *name, uint64_t offset, uint64_t bytes)
{
	if (offset <= buffer->bytes && bytes <= buffer->bytes - offset)
		return 0;
	return rig_error_set(-EINVAL, "%s: %" PRIu64 " bytes from %" PRIu64 " exceed the buffer's %" PRIu64,
	        name, bytes, offset, buffer->bytes);
}

int rig_rt_buffer_usable(const struct rig_buffer *buffer)
{
	if (!rig_rt_is_live(buffer->device))
		return rig_rt_lost_error(buffer->device);
	if (buffer->mem && !rig_rt_is_live(buffer->mem->owner))
		return rig_rt_lost_error(buffer->mem->owner);
	return 0;
}

int rig_buffer_view(struct rig_buffer *buffer, uint64_t offset, uint64_t bytes, struct rig_buffer **view)
{
	struct rig_buffer *made;
	int code = rig_rt_given2(buffer, "buffer", view, "view");

	if (!code)
		code = rig_rt_buffer_bounds(buffer, "view", offset, bytes);
	if (code)
		return code;
	rig_rt_mem_get(buffer->mem);
	made = make(buffer->device, buffer->mem, buffer->region, &buffer->at, bytes);
	if (!made)
		return no_host_memory();
	made->offset = buffer->offset + offset;
	made->host = buffer->host ? (char *)buffer->host + offset : NULL;
	*view = made;
	return 0;
}

struct rig_buffer *rig_buffer_get(struct rig_buffer *buffer)
{
	if (buffer)
		atomic_fetch_add_explicit(&buffer->refs, 1, memory_order_relaxed);
	return buffer;
}

__attribute__((noinline)) static void put_made(struct rig_buffer *buffer)
{
	rig_rt_mem_put(buffer->mem);
	rig_device_put(buffer->device);
	free(buffer);
}

void rig_buffer_put(struct rig_buffer *buffer)
{
	struct rig_rt_mem *mem;

	if (!buffer)
		return;
	/* Who holds the last reference is alone with it. */
	if (atomic_load_explicit(&buffer->refs, memory_order_acquire) != 1 &&
	        atomic_fetch_sub_explicit(&buffer->refs, 1, memory_order_acq_rel) != 1)
		return;
	mem = buffer->mem;
	if (mem && buffer == &mem->whole)
		rig_rt_mem_put(mem);
	else
		put_made(buffer);
}

struct rig_device *rig_buffer_device(const struct rig_buffer *buffer)
{
	return buffer->device;
}

uint64_t rig_buffer_bytes(const struct rig_buffer *buffer)
{
	return buffer->bytes;
}

uint64_t rig_buffer_address(const struct rig_buffer *buffer)
{
	return buffer->mem && buffer->at.has_address ? buffer->at.address + buffer->offset : 0;
}

void *rig_buffer_host(const struct rig_buffer *buffer)
{
	return buffer->host;
}

int rig_buffer_wait(struct rig_buffer *buffer, enum rig_access access)
{
	int code = rig_rt_given(buffer, "buffer");

	return code || !buffer->mem ? code : rig_rt_mem_wait(buffer->mem, access);
}

int rig_buffer_dma(struct rig_buffer *buffer, struct rig_dma_answer *answer)
{
	const char *fault = NULL;
	struct rig_device *d;
	int code = rig_rt_given2(buffer, "buffer", answer, "answer");

	if (!code)
		code = rig_rt_buffer_usable(buffer);
	if (code)
		return code;
	if (!buffer->mem)
		return rig_error_set(-EINVAL, "a buffer of 0 bytes has no memory to reach");
	d = buffer->device;
	code = rig_rt_enter(d);
	if (code)
		return code;
	memset(answer, 0, sizeof(*answer));
	answer->version = RIG_EDGE_VERSION;
	answer->fd = -1;
	code = rig_rt_leave_with(d, d->module->dma(d->handle, buffer->region, answer, &fault), &fault);
	if (code == RIG_BUS || code == RIG_DMABUF)
		atomic_store_explicit(&buffer->mem->exported, true, memory_order_relaxed);
	if (code >= 0)
		answer->offset += buffer->offset;
	return code;
}
