/* SPDX-License-Identifier: MIT */
/* Memory of a proxy: the device's there, this process's, other proxies', and areas of rails. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "pages.h"
#include "rmt_proxy.h"
#include "writable.h"

static struct region *make_region(enum region_kind kind)
{
	struct region *region = calloc(1, sizeof(*region));

	if (region)
		region->kind = kind;
	else
		(void)rig_error_set(-ENOMEM, "no host memory for a region's record");
	return region;
}

static int alloc_local(uint64_t bytes, void **region)
{
	struct region *r = make_region(REGION_LOCAL);

	if (!r || bytes > SIZE_MAX / 2) {
		free(r);
		return -ENOMEM;
	}
	r->host = rig_pages_map(bytes);
	if (!r->host) {
		free(r);
		return -ENOMEM;
	}
	r->mapped = bytes;
	*region = r;
	return 0;
}

/* The region of an answer; takes the payload. */
static int read_region(struct proxy *p, struct rig_rmt_out *payload, void **region, const char **fault)
{
	struct rig_rmt_in in = rig_rmt_in_of(payload->at, payload->used);
	struct rig_rmt_region r;
	struct region *made;
	int err = rig_rmt_region_parse(&in, &r);

	rig_rmt_out_free(payload);
	if (err)
		return rig_rmt_proxy_malformed(p, fault);
	made = make_region(REGION_REMOTE);
	if (!made) {
		rig_rmt_proxy_tell(p, RIG_RMT_FREE, r.region);
		return -ENOMEM;
	}
	made->id = r.region;
	made->has_address = r.has_address;
	made->address = r.address;
	*region = made;
	return 0;
}

int rig_rmt_alloc(void *device, enum rig_memory kind, uint64_t bytes, void **region, const char **fault)
{
	struct proxy *p = device;
	struct rig_rmt_out body = {0}, payload;
	int err;

	if (rig_rmt_proxy_faulted(p))
		return rig_rmt_proxy_fault(p, fault);
	if (kind == RIG_MAPPED)
		return rig_error_set(-ENOMEM, "no memory of another machine is mapped here");
	if (kind == RIG_PINNED)
		return alloc_local(bytes, region);
	rig_rmt_put32(&body, RIG_DEVICE);
	rig_rmt_put64(&body, bytes);
	err = rig_rmt_proxy_ask(p, RIG_RMT_ALLOC, &body, &payload, fault);
	rig_rmt_out_free(&body);
	return err ? err : read_region(p, &payload, region, fault);
}

int rig_rmt_free(void *device, void *region, const char **fault)
{
	struct proxy *p = device;
	struct region *r = region;
	bool gone;

	(void)fault;
	(void)pthread_mutex_lock(&p->lock);
	gone = p->stopped || p->faulted;
	(void)pthread_mutex_unlock(&p->lock);
	if (r->kind == REGION_REMOTE && !gone)
		rig_rmt_proxy_tell(p, RIG_RMT_FREE, r->id);
	if (r->mapped)
		rig_pages_unmap(r->host, r->mapped);
	free(r);
	return 0;
}

void rig_rmt_locate(void *device, void *region, struct rig_location *location)
{
	const struct region *r = region;

	(void)device;
	memset(location, 0, sizeof(*location));
	location->has_address = r->has_address;
	location->address = r->address;
	location->has_host = r->host != NULL;
	location->host = r->host;
	location->handle = (uintptr_t)region;
}

bool rig_rmt_peer(void *device, void *other)
{
	const struct proxy *p = device, *o = other;

	if (p->m->job == o->m->job)
		return true;
	(void)rig_error_set(-EXDEV, "devices of two jobs reach no memory of each other");
	return false;
}

/* A region of another machine, or of a device here that this one does not reach: copies fetch from it. */
static int map_foreign(const struct proxy *owner, const struct region *region, void **mapped)
{
	struct region *r = make_region(REGION_FOREIGN);

	if (!r)
		return RIG_NO_ROOM;
	r->id = region->id;
	r->machine = owner->m;
	r->device = owner->id;
	*mapped = r;
	return RIG_MAPS;
}

int rig_rmt_map_peer(void *device, void *other, void *region, void **mapped, const char **fault)
{
	struct proxy *p = device, *o = other;
	const struct region *r = region;
	struct rig_rmt_out body = {0}, payload;
	int err;

	if (r->kind != REGION_REMOTE)
		return rig_error_set(RIG_NEVER_MAPS, "only a device's own memory is reached by another");
	if (p->m != o->m)
		return map_foreign(o, r, mapped);
	rig_rmt_put32(&body, o->id);
	rig_rmt_put32(&body, r->id);
	err = rig_rmt_proxy_ask(p, RIG_RMT_MAP_PEER, &body, &payload, fault);
	rig_rmt_out_free(&body);
	if (err == RIG_FAULT)
		return err;
	/* What the device there does not reach is fetched. */
	if (err == -ENOTSUP)
		return map_foreign(o, r, mapped);
	if (err)
		return RIG_NO_ROOM;
	err = read_region(p, &payload, mapped, fault);
	return err == RIG_FAULT ? err : err ? RIG_NO_ROOM : RIG_MAPS;
}

/* An area of a rail's end on the proxy's machine. */
static int map_rail(struct proxy *p, uint64_t rail, enum rig_rmt_area area, void **region, const char **fault)
{
	struct rig_rmt_out body = {0}, payload;
	int err;

	rig_rmt_put64(&body, rail);
	rig_rmt_put8(&body, (uint8_t)area);
	err = rig_rmt_proxy_ask(p, RIG_RMT_MAP_RAIL, &body, &payload, fault);
	rig_rmt_out_free(&body);
	if (!err)
		err = read_region(p, &payload, region, fault);
	return err == RIG_FAULT ? err : err == -ENOTSUP ? RIG_NEVER_MAPS : err ? RIG_NO_ROOM : RIG_MAPS;
}

int rig_rmt_map_host(void *device, void *host, uint64_t bytes, void **region, const char **fault)
{
	struct proxy *p = device;
	struct region *r;
	uint64_t rail;
	enum rig_rmt_area area;

	if (rig_rmt_proxy_faulted(p))
		return rig_rmt_proxy_fault(p, fault);
	if (rig_rmt_rails_window(p->m, host, bytes, &rail, &area))
		return map_rail(p, rail, area, region, fault);
	if (!rig_is_writable(host, bytes))
		return rig_error_set(RIG_NEVER_MAPS,
		        "%" PRIu64 " bytes from %p are not all memory that the process may write", bytes,
		        host);
	r = make_region(REGION_LOCAL);
	if (!r)
		return RIG_NO_ROOM;
	r->host = host;
	*region = r;
	return RIG_MAPS;
}

int rig_rmt_dma(void *device, void *region, struct rig_dma_answer *answer, const char **fault)
{
	struct proxy *p = device;

	(void)region;
	if (rig_rmt_proxy_faulted(p))
		return rig_rmt_proxy_fault(p, fault);
	answer->kind = RIG_NO_DMA;
	answer->reason = "memory of another machine has no bus addresses here";
	return RIG_NO_DMA;
}
