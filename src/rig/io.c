/* SPDX-License-Identifier: MIT */
/* Io devices: a driver that runs no work, in front of an Io library. */
#include <stdio.h>
#include <stdlib.h>

#include "plain.h"
#include "rt.h"

/* The C state of such a device, and its handle. The word shows what make found: it has no values. */
struct io {
	const struct rig_driver *hot; /* first: facts.edge */
	const struct rig_io_module *module;
	void *handle;
	rig_atomic_u64 *word;
};

static struct io *io_of(const struct rig_device *d)
{
	return d->handle;
}

/* ---- No work ---- */

static int hot_room(void *self, const struct rig_part *parts, uint32_t nparts, uint32_t nwaits,
        const struct rig_run *run, void *scratch)
{
	(void)self;
	(void)parts;
	(void)nparts;
	(void)nwaits;
	(void)run;
	(void)scratch;
	return rig_error_set(RIG_NEVER, "an Io device runs no work");
}

static int hot_submit(void *self, uint64_t value, const struct rig_part *parts, uint32_t nparts,
        const struct rig_wait *waits, uint32_t nwaits, const struct rig_run *run, void *scratch,
        struct rig_times *times, const char **failure)
{
	(void)self;
	(void)value;
	(void)parts;
	(void)nparts;
	(void)waits;
	(void)nwaits;
	(void)run;
	(void)scratch;
	(void)times;
	*failure = "an Io device runs no work";
	return RIG_FAILED;
}

static const struct rig_driver io_hot = {
        RIG_EDGE_VERSION, hot_room, hot_submit, rig_plain_commit, NULL, NULL};

/* ---- Memory ---- */

static int cold_facts(void *device, struct rig_facts *facts, const char **fault)
{
	struct io *io = device;

	(void)fault;
	if (facts->version != RIG_EDGE_VERSION)
		return rig_error_set(
		        -EINVAL, "facts of version %u, this driver %u", facts->version, RIG_EDGE_VERSION);
	facts->arch = "io";
	facts->budget = io->module->budget(io->handle);
	facts->completion = RIG_HOST;
	facts->alignment = 1;
	facts->word = io;
	facts->edge = io;
	return 0;
}

static int cold_alloc(void *device, enum rig_memory kind, uint64_t bytes, void **region, const char **fault)
{
	struct io *io = device;

	(void)kind;
	return io->module->alloc(io->handle, bytes, region, fault);
}

static int cold_free(void *device, void *region, const char **fault)
{
	struct io *io = device;

	return io->module->free(io->handle, region, fault);
}

/* The word's region is the device itself; all other memory is named by its handle only. */
static void cold_locate(void *device, void *region, struct rig_location *location)
{
	struct io *io = device;

	memset(location, 0, sizeof(*location));
	location->handle = (uintptr_t)region;
	location->has_host = region == device;
	location->host = region == device ? (void *)(uintptr_t)io->word : NULL;
}

static bool cold_peer(void *device, void *other)
{
	(void)device;
	(void)other;
	return false;
}

static int cold_map_host(void *device, void *host, uint64_t bytes, void **region, const char **fault)
{
	(void)device;
	(void)host;
	(void)bytes;
	(void)region;
	(void)fault;
	return rig_error_set(RIG_NEVER_MAPS, "an Io device maps no memory");
}

static int cold_dma(void *device, void *region, struct rig_dma_answer *answer, const char **fault)
{
	(void)device;
	(void)region;
	(void)fault;
	answer->kind = RIG_NO_DMA;
	answer->reason = "the bytes of an Io device are reached by its calls alone";
	return RIG_NO_DMA;
}

static int cold_load(
        void *device, const void *binary, size_t bytes, struct rig_code *code, const char **fault)
{
	(void)device;
	(void)binary;
	(void)bytes;
	(void)code;
	(void)fault;
	return rig_error_set(-ENOTSUP, "an Io device runs no code");
}

/* ---- Its life ---- */

static int cold_sleep(void *device, uint64_t seen, uint64_t still_ms, const char **fault)
{
	(void)device;
	(void)seen;
	(void)still_ms;
	(void)fault;
	return 0;
}

static void cold_stop(void *device, const char *reason)
{
	struct io *io = device;

	(void)reason;
	io->module->stop(io->handle);
}

static void cold_release(void *device)
{
	struct io *io = device;

	io->module->release(io->handle);
	free(io);
}

/* What is NULL is never asked: the word is the array's, nothing is loaded, nothing fits. */
const struct rig_driver_module rig_rt_io_module = {
        .version = RIG_EDGE_VERSION,
        .facts = cold_facts,
        .alloc = cold_alloc,
        .free = cold_free,
        .locate = cold_locate,
        .peer = cold_peer,
        .map_host = cold_map_host,
        .dma = cold_dma,
        .load = cold_load,
        .sleep = cold_sleep,
        .stop = cold_stop,
        .release = cold_release,
};

static int make(void *arg, rig_atomic_u64 *word, void **device, char *why, size_t why_bytes)
{
	const struct rig_io_opener *opener = arg;
	struct io *io = calloc(1, sizeof(*io));
	int code;

	if (!io) {
		(void)snprintf(why, why_bytes, "no host memory for a device");
		return -ENOMEM;
	}
	io->hot = &io_hot;
	io->module = opener->module;
	io->word = word;
	code = opener->make(opener->arg, &io->handle, why, why_bytes);
	if (code) {
		free(io);
		return code;
	}
	*device = io;
	return 0;
}

static int check(const struct rig_io_opener *opener)
{
	const struct rig_io_module *m;
	int code = rig_rt_given(opener, "opener");

	if (!code)
		code = rig_rt_version_check("opener", opener->version);
	if (code)
		return code;
	m = opener->module;
	if (!m || !opener->make)
		return rig_error_set(-EINVAL, "the opener's module or make is NULL");
	code = rig_rt_version_check("Io library", m->version);
	if (code)
		return code;
	if (!m->budget || !m->alloc || !m->free || !m->read || !m->write || !m->pages || !m->stop ||
	        !m->release)
		return rig_error_set(
		        -EINVAL, "a function of the opener's module, other than prefetch, is NULL");
	return 0;
}

int rig_open_io(const struct rig_io_opener *opener, struct rig_device **device)
{
	struct rig_opener wrapped = {.version = RIG_EDGE_VERSION, .module = &rig_rt_io_module, .make = make};
	int code = check(opener);

	if (code)
		return code;
	wrapped.name = opener->name;
	wrapped.arg = (void *)(uintptr_t)opener;
	return rig_open(&wrapped, device);
}

/* ---- Buffers ---- */

int rig_buffer_of_io(struct rig_device *device, const struct rig_key *key, void *region, uint64_t bytes,
        struct rig_buffer **buffer)
{
	struct rig_rt_mem *mem;
	int code = rig_rt_given2(device, "device", buffer, "buffer");

	if (!code)
		code = rig_rt_given(region, "region");
	if (code)
		return code;
	if (!rig_rt_is_io(device) || !key || io_of(device)->module->key != key)
		return rig_error_set(-EINVAL, "%s is no device of the Io library %s", device->name,
		        key && key->name ? key->name : "(no key)");
	if (!bytes)
		return rig_error_set(-EINVAL, "%s: a region of 0 bytes", device->name);
	if (!rig_rt_is_live(device))
		return rig_rt_lost_error(device);
	mem = rig_rt_mem_make(device);
	if (!mem)
		return rig_error_set(-ENOMEM, "no host memory for a buffer");
	mem->host_owned = true;
	mem->kind = RIG_DEVICE;
	mem->bytes = bytes;
	device->module->locate(device->handle, region, &mem->at);
	code = rig_rt_buffer_over(mem, region, buffer);
	/* On success only: a region that did not become a buffer is still the caller's. */
	if (!code)
		mem->region = region;
	return code;
}

void *rig_buffer_io_region(const struct rig_buffer *buffer, const struct rig_key *key)
{
	if (!buffer || !buffer->mem || !rig_rt_is_io(buffer->device))
		return NULL;
	return key && io_of(buffer->device)->module->key == key ? buffer->region : NULL;
}

/* The answer of a call to the driver, with the device and the call before the driver's words. */
static int say(const struct rig_device *d, const char *call, int code)
{
	if (code >= 0 || code == RIG_LOST)
		return code;
	return rig_error_set(code, "%s: %s: %s", d->name, call, *rig_error() ? rig_error() : strerror(-code));
}

int rig_rt_io_read(struct rig_buffer *buffer, uint64_t offset, void *dst, uint64_t bytes)
{
	struct rig_device *d = buffer->device;
	struct io *io = io_of(d);
	const char *fault = NULL;
	int code = rig_rt_enter(d);

	if (code)
		return code;
	(void)rig_error_set(0, "%s", "");
	code = rig_rt_leave_with(d,
	        io->module->read(io->handle, buffer->region, buffer->offset + offset, dst, bytes, &fault),
	        &fault);
	return say(d, "read", code);
}

int rig_rt_io_write(struct rig_buffer *buffer, uint64_t offset, const void *src, uint64_t bytes)
{
	struct rig_device *d = buffer->device;
	struct io *io = io_of(d);
	const char *fault = NULL;
	int code = rig_rt_enter(d);

	if (code)
		return code;
	(void)rig_error_set(0, "%s", "");
	code = rig_rt_leave_with(d,
	        io->module->write(io->handle, buffer->region, buffer->offset + offset, src, bytes, &fault),
	        &fault);
	return say(d, "write", code);
}

static void prefetch(struct rig_device *d, void *region, uint64_t at, uint64_t bytes)
{
	struct io *io = io_of(d);

	if (!bytes || !io->module->prefetch || rig_rt_enter(d))
		return;
	io->module->prefetch(io->handle, region, at, bytes);
	rig_rt_leave(d, NULL);
}

void rig_rt_io_prefetch(struct rig_buffer *buffer, uint64_t offset, uint64_t bytes)
{
	prefetch(buffer->mem->owner, buffer->mem->region, buffer->offset + offset, bytes);
}

int rig_buffer_prefetch(struct rig_buffer *buffer, uint64_t offset, uint64_t bytes)
{
	int code = rig_rt_given(buffer, "buffer");

	if (!code)
		code = rig_rt_buffer_bounds(buffer, "prefetch", offset, bytes);
	if (!code)
		code = rig_rt_buffer_usable(buffer);
	if (!code && buffer->mem && rig_rt_is_io(buffer->mem->owner))
		rig_rt_io_prefetch(buffer, offset, bytes);
	return code;
}

int rig_rt_io_pages(struct rig_rt_mem *mem, void **pages)
{
	struct rig_device *d = mem->owner;
	struct io *io = io_of(d);
	const char *fault = NULL;
	int code = rig_rt_enter(d);

	if (code)
		return code;
	*pages = NULL;
	(void)rig_error_set(0, "%s", "");
	return rig_rt_leave_with(d, io->module->pages(io->handle, mem->region, pages, &fault), &fault);
}
