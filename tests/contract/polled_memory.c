/* SPDX-License-Identifier: MIT */
#include "polled_state.h"

static struct region *add_region(struct polled *p, enum rig_memory kind, uint8_t *bytes, uint64_t size)
{
	struct region *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->kind = kind;
	r->bytes = bytes;
	r->size = size;
	lock(p);
	r->next = p->regions;
	p->regions = r;
	p->nregions++;
	if (kind == RIG_DEVICE || kind == RIG_MAPPED)
		p->held += size;
	unlock(p);
	return r;
}

int polled_d_alloc(void *device, enum rig_memory kind, uint64_t bytes, void **region, const char **text)
{
	struct device *d = device;
	struct polled *p = d->p;
	struct region *r;
	uint8_t *at;

	if (enter(d, POLLED_ALLOC, true))
		return faults(p) ? fault(d, text) : leave(d, -ENOMEM);
	if (!bytes)
		polled_break(p, "alloc of 0 bytes");
	if (kind == RIG_PINNED && p->o.host_addresses)
		polled_break(p, "E-182: RIG_PINNED asked although host_addresses");
	if (kind == RIG_PINNED && p->o.pinned_none)
		return leave(d, -ENOMEM);
	if (kind == RIG_MAPPED && p->o.mapped_none)
		return leave(d, -ENOMEM);
	if (p->o.memory && kind != RIG_PINNED && (bytes > p->o.memory || p->held > p->o.memory - bytes))
		return leave(d, -ENOMEM);
	if (bytes > UINT64_C(1) << 30)
		return leave(d, -ENOMEM);
	at = aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE);
	r = at ? add_region(p, kind, at, bytes) : NULL;
	if (!r) {
		free(at);
		return leave(d, -ENOMEM);
	}
	r->visible = kind != RIG_DEVICE || p->o.host_addresses;
	*region = r;
	return leave(d, 0);
}

/* Unlinks it; NULL if it is none of this device's. */
static struct region *remove_region(struct polled *p, void *region)
{
	struct region **at, *r;

	lock(p);
	for (at = &p->regions; *at && *at != region; at = &(*at)->next)
		;
	r = *at;
	if (r) {
		*at = r->next;
		p->nregions--;
		if (r->kind == RIG_DEVICE || r->kind == RIG_MAPPED)
			p->held -= r->size;
	}
	unlock(p);
	return r;
}

int polled_d_free(void *device, void *region, const char **text)
{
	struct device *d = device;
	struct region *r;
	bool fails;

	atomic_fetch_add(&d->cold_calls, 1);
	fails = begin(d->p, POLLED_FREE, !d->stopped && faults(d->p));
	check_late(d, "free");
	if (region == &d->word_region) {
		if (!d->stopped || !d->p->o.own_word)
			polled_break(d->p, "E-023, E-025: the word was freed");
		d->word_region.own_word = false;
		return leave(d, 0);
	}
	r = remove_region(d->p, region);
	if (!r) {
		polled_break(d->p, "a region freed twice or never made");
		return leave(d, 0);
	}
	if (r->kind)
		free(r->bytes);
	free(r);
	return fails ? fault(d, text) : leave(d, 0);
}

void polled_d_locate(void *device, void *region, struct rig_location *location)
{
	struct device *d = device;
	struct region *r = region;

	memset(location, 0, sizeof(*location));
	if (d->released)
		polled_break(d->p, "locate after release");
	location->has_host = r->visible;
	location->host = r->visible ? r->bytes : NULL;
	location->has_address = true;
	location->address = (uint64_t)(uintptr_t)r->bytes;
	location->handle = (uintptr_t)r;
}

bool polled_d_peer(void *device, void *other)
{
	struct device *a = device, *b = other;

	if (a == b)
		polled_break(a->p, "peer of a device with itself");
	return a->p->o.peers && b->p->o.peers;
}

static int map(struct device *d, uint8_t *bytes, uint64_t size, bool visible, void **region)
{
	struct region *r;

	if (d->p->no_room) {
		d->p->no_room--;
		return leave(d, rig_error_set(RIG_NO_ROOM, "no room, as told"));
	}
	r = add_region(d->p, (enum rig_memory)0, bytes, size);
	if (!r)
		return leave(d, RIG_NO_ROOM);
	r->visible = visible;
	*region = r;
	return leave(d, RIG_MAPS);
}

int polled_d_map_peer(void *device, void *other, void *region, void **mapped, const char **text)
{
	struct device *d = device, *o = other;
	struct region *r = region;

	if (enter(d, POLLED_MAP_PEER, true))
		return faults(d->p) ? fault(d, text) : leave(d, RIG_NO_ROOM);
	if (!polled_d_peer(d, o))
		polled_break(d->p, "map_peer of no peer");
	return map(d, r->bytes, r->size, false, mapped);
}

int polled_d_map_host(void *device, void *host, uint64_t bytes, void **region, const char **text)
{
	struct device *d = device;

	if (enter(d, POLLED_MAP_HOST, true))
		return faults(d->p) ? fault(d, text) : leave(d, RIG_NO_ROOM);
	if (!d->p->o.maps_host)
		polled_break(d->p, "E-193: map_host asked");
	if ((uintptr_t)host % PAGE || !bytes)
		polled_break(d->p, "E-194: map_host off a page");
	if (d->p->o.never_maps)
		return leave(d, rig_error_set(RIG_NEVER_MAPS, "read-only pages"));
	return map(d, host, bytes, true, region);
}

int polled_d_dma(void *device, void *region, struct rig_dma_answer *answer, const char **text)
{
	struct device *d = device;

	static const struct rig_bus_range range = {.address = 1ull << 40, .bytes = 1ull << 20};

	(void)region;
	if (enter(d, POLLED_DMA, true) && faults(d->p))
		return fault(d, text);
	if (d->p->o.has_bus) {
		answer->kind = RIG_BUS;
		answer->ranges = &range;
		answer->nranges = 1;
		return leave(d, RIG_BUS);
	}
	answer->kind = RIG_NO_DMA;
	answer->reason = "host memory of a test";
	return leave(d, RIG_NO_DMA);
}
