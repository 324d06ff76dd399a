/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "rt.h"

/* Asks once more after memory was given back, and never a third time. */
#define ASKS 2u

struct request {
	struct rig_device *device, *owner;
	void *host; /* NULL: a peer's region */
	uint64_t bytes;
	void *region; /* the peer's */
};

static int ask(const struct request *r, void **mapped)
{
	struct rig_device *d = r->device;
	const char *fault = NULL;
	int answer, code = rig_rt_enter(d);

	if (code)
		return code;
	if (r->host)
		answer = d->module->map_host(d->handle, r->host, r->bytes, mapped, &fault);
	else
		answer = d->module->map_peer(d->handle, r->owner->handle, r->region, mapped, &fault);
	return rig_rt_leave_with(d, answer, &fault);
}

/* An enum rig_mapping or RIG_LOST. */
static int ask_twice(const struct request *r, void **mapped)
{
	unsigned i;
	int answer = RIG_NO_ROOM;

	for (i = 0; i < ASKS && answer == RIG_NO_ROOM; i++) {
		if (i)
			(void)rig_rt_reclaim(r->device, 0, RT_SHORT_HOST);
		answer = ask(r, mapped);
	}
	return answer;
}

static int refuse(const struct rig_device *d, int answer)
{
	if (answer == RIG_NEVER_MAPS)
		return rig_error_set(-ENOTSUP, "%s does not map this memory: %s", d->name, rig_error());
	if (answer == RIG_NO_ROOM)
		return rig_error_set(-ENOMEM, "%s has no room for the mapping: %s", d->name, rig_error());
	return answer < 0 ? answer : rig_error_set(-EIO, "%s: map answered %d", d->name, answer);
}

static bool is_page_start(const void *host)
{
	return ((uintptr_t)host & (uintptr_t)(sysconf(_SC_PAGESIZE) - 1)) == 0;
}

int rig_rt_map_host(struct rig_device *d, void *host, uint64_t bytes, void **region)
{
	struct request r = {.device = d, .host = host, .bytes = bytes};
	int answer;

	if (!d->facts.maps_host)
		return rig_error_set(-ENOTSUP, "%s maps no host memory", d->name);
	if (!is_page_start(host))
		return rig_error_set(-EINVAL, "host %p does not start on a page", host);
	(void)rig_error_set(0, "%s", "");
	answer = ask_twice(&r, region);
	return answer == RIG_MAPS ? 0 : refuse(d, answer);
}

/* Board memory of a device of the same driver. */
static bool is_kin(const struct rig_device *d, const struct rig_rt_mem *mem)
{
	return d->module->key == mem->owner->module->key && d->module->map_peer && mem->kind != RIG_PINNED &&
	       !mem->host_owned;
}

/* The owner's stop waits for the call too: its region is named in it. */
static int map_peer(struct rig_rt_mem *mem, struct rig_device *d, void **region)
{
	struct request r = {.device = d, .owner = mem->owner, .region = mem->region};
	int answer = rig_rt_enter(mem->owner);

	if (answer)
		return answer;
	(void)rig_error_set(0, "%s", "");
	answer = ask_twice(&r, region);
	rig_rt_leave(mem->owner, NULL);
	return answer == RIG_MAPS ? 0 : refuse(d, answer);
}

static int no_path(const struct rig_rt_mem *mem, const struct rig_device *d, const char *why)
{
	return rig_error_set(
	        -ENOTSUP, "%s reaches no memory of %s%s%s", d->name, mem->owner->name, *why ? ": " : "", why);
}

/* The pages of an Io device's memory, where it has any. */
static int map_pages(struct rig_rt_mem *mem, struct rig_device *d, void **region)
{
	void *pages;
	int code = rig_rt_io_pages(mem, &pages);

	if (code)
		return code == RIG_LOST
		               ? code
		               : rig_error_set(code, "%s: its memory has no pages now: %s", mem->owner->name,
		                         *rig_error() ? rig_error() : strerror(-code));
	if (!pages)
		return rig_error_set(-ENOTSUP, "%s: its memory has no pages to borrow", mem->owner->name);
	return rig_rt_map_host(d, pages, mem->bytes, region);
}

static int make_region(struct rig_rt_mem *mem, struct rig_device *d, void **region)
{
	char why[RT_REASON_BYTES];
	int code;

	if (rig_rt_is_io(mem->owner))
		return map_pages(mem, d, region);
	(void)rig_error_set(0, "%s", "");
	if (is_kin(d, mem) && d->module->peer(d->handle, mem->owner->handle))
		return map_peer(mem, d, region);
	/* Why there is no path, peer may have said. */
	snprintf(why, sizeof(why), "%s", rig_error());
	/* The driver maps from page starts. */
	if (!mem->at.has_host || !is_page_start(mem->at.host))
		return no_path(mem, d, why);
	code = rig_rt_map_host(d, mem->at.host, mem->bytes, region);
	return code == -ENOTSUP && *why ? no_path(mem, d, why) : code;
}

static struct rig_rt_map *find(struct rig_rt_mem *mem, const struct rig_device *d)
{
	struct rig_rt_map *map;

	rig_rt_lock(&mem->maps_lock);
	for (map = mem->maps; map && map->device != d; map = map->next)
		;
	rig_rt_unlock(&mem->maps_lock);
	return map;
}

/* Keeps one of two that threads made at the same time; answers the one kept. */
static struct rig_rt_map *insert(struct rig_rt_mem *mem, struct rig_rt_map *made)
{
	struct rig_rt_map *map;

	rig_rt_lock(&mem->maps_lock);
	for (map = mem->maps; map && map->device != made->device; map = map->next)
		;
	if (!map) {
		made->next = mem->maps;
		mem->maps = made;
	}
	rig_rt_unlock(&mem->maps_lock);
	return map ? map : made;
}

static void unmake(struct rig_rt_map *map)
{
	if (map->region)
		(void)rig_rt_region_free(map->device, map->region);
	rig_device_put(map->device);
	free(map);
}

int rig_rt_map_on(struct rig_rt_mem *mem, struct rig_device *d, const struct rig_rt_map **map)
{
	struct rig_rt_map *made = find(mem, d), *kept;
	int code = -EALREADY;

	if (!made) {
		made = calloc(1, sizeof(*made));
		if (!made)
			return rig_error_set(-ENOMEM, "no host memory for a mapping");
		code = make_region(mem, d, &made->region);
		/* Only the driver's "never" is remembered: the rest may change. */
		if (code && code != -ENOTSUP) {
			free(made);
			return code;
		}
		made->device = rig_device_get(d);
		if (!code)
			d->module->locate(d->handle, made->region, &made->at);
		/* Before anyone can use it there: a run that finds the count unchanged may skip the memory.
		   */
		atomic_store_explicit(&mem->shared, true, memory_order_relaxed);
		atomic_fetch_add_explicit(&mem->owner->shares, 1, memory_order_release);
		kept = insert(mem, made);
		if (kept != made)
			unmake(made);
		made = kept;
	}
	*map = made;
	if (made->region)
		return 0;
	/* The first answer has the driver's reason. */
	return code == -ENOTSUP ? code : rig_error_set(-ENOTSUP, "%s does not map this memory", d->name);
}

bool rig_rt_maps_destroy(struct rig_rt_mem *mem)
{
	while (mem->maps) {
		struct rig_rt_map *map = mem->maps;

		if (map->region && !rig_rt_region_free(map->device, map->region))
			return false;
		map->region = NULL;
		mem->maps = map->next;
		unmake(map);
	}
	return true;
}
