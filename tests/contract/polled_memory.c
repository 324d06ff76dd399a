/* SPDX-License-Identifier: MIT */
#include "polled_state.h"

static struct region *add_region(struct polled *p, enum rig_memory kind, uint8_t *bytes, uint64_t size)
{
	struct region *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->kind = kind;
	r->bytes = r->block = bytes;
	r->size = size;
	lock(p);
	r->next = p->regions;
	p->regions = r;
	p->nregions++;
	if (kind == RIG_DEVICE || kind == RIG_MAPPED)
		p->held += size;
	if (kind == RIG_PINNED)
		p->pinned += size;
	unlock(p);
	return r;
}

/* Lies. Whether an allocation shall fail, and how. */
static int spoil(struct polled *p, uint64_t *bytes)
{
	static _Atomic int racing;
	struct timespec nap = {.tv_nsec = 100000};
	int others;

	p->nallocs++;
	if (lies(p, wears_out) && p->nallocs > 1000)
		return -ENOMEM;
	if (lies(p, wraps) && *bytes > UINT64_C(1) << 59)
		*bytes = PAGE;
	if (!lies(p, alloc_races))
		return 0;
	others = atomic_fetch_add(&racing, 1);
	(void)nanosleep(&nap, NULL);
	atomic_fetch_sub(&racing, 1);
	return others ? RIG_FAULT : 0;
}

static void misplace(struct polled *p, struct region *r)
{
	const struct region *other;

	if (lies(p, misaligns))
		r->bytes += 8;
	if (!lies(p, overlaps))
		return;
	lock(p);
	for (other = r->next; other && !other->size; other = other->next)
		;
	if (other)
		r->bytes = other->bytes;
	unlock(p);
}

static bool has_left(struct polled *p, enum rig_memory kind, uint64_t bytes)
{
	uint64_t all = kind == RIG_PINNED ? p->o.pinned : p->o.memory, held;

	lock(p);
	held = kind == RIG_PINNED ? p->pinned : p->held;
	unlock(p);
	return !all || (bytes <= all && held <= all - bytes);
}

int polled_d_alloc(void *device, enum rig_memory kind, uint64_t bytes, void **region, const char **text)
{
	struct device *d = device;
	struct polled *p = d->p;
	struct region *r;
	uint8_t *at;
	int spoilt;

	if (enter(d, POLLED_ALLOC, true))
		return faults(p) ? fault(d, text) : leave(d, -ENOMEM);
	spoilt = spoil(p, &bytes);
	if (spoilt)
		return spoilt == RIG_FAULT ? fault(d, text) : leave(d, spoilt);
	if (!bytes)
		polled_break(p, "alloc of 0 bytes");
	if (kind == RIG_PINNED && p->o.host_addresses)
		polled_break(p, "E-182: RIG_PINNED asked although host_addresses");
	if (kind == RIG_PINNED && p->o.pinned_none)
		return leave(d, -ENOMEM);
	if (kind == RIG_MAPPED && p->o.mapped_none)
		return leave(d, -ENOMEM);
	if (!has_left(p, kind, bytes))
		return leave(d, -ENOMEM);
	if (bytes > UINT64_C(1) << 30)
		return leave(d, -ENOMEM);
	at = aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE + PAGE);
	r = at ? add_region(p, kind, at, bytes) : NULL;
	if (!r) {
		free(at);
		return leave(d, -ENOMEM);
	}
	r->visible = kind != RIG_DEVICE || p->o.host_addresses;
	misplace(p, r);
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
		if ((r->kind == RIG_DEVICE || r->kind == RIG_MAPPED) && !lies(p, keeps_memory))
			p->held -= r->size;
		if (r->kind == RIG_PINNED && !lies(p, keeps_pinned))
			p->pinned -= r->size;
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
		if (!d->stopped || !(d->p->o.own_word || lies(d->p, other_word)))
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
		free(r->block);
	free(r);
	return fails ? fault(d, text) : leave(d, 0);
}

/* Where the lie shadows has the host write. */
static _Alignas(PAGE) uint8_t shadow[1u << 17];

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
	if (lies(d->p, moves))
		location->handle += ++d->p->nlocates;
	if (lies(d->p, moves_at_stop) && d->stopped)
		location->address += PAGE;
	if (lies(d->p, shadows) && location->has_host && r != &d->word_region)
		location->host = shadow;
}

bool polled_d_peer(void *device, void *other)
{
	struct device *a = device, *b = other;

	if (a == b)
		polled_break(a->p, "peer of a device with itself");
	return a->p->o.peers && b->p->o.peers;
}

/* Whether the pages are there to be mapped. */
static bool is_there(const struct polled *p, const void *host, uint64_t bytes)
{
	unsigned char pages[PAGE];
	uint64_t at;

	for (at = 0; at < bytes && !lies(p, maps_holes); at += (uint64_t)PAGE * PAGE)
		if (mincore((uint8_t *)(uintptr_t)host + at,
		            bytes - at < (uint64_t)PAGE * PAGE ? bytes - at : (uint64_t)PAGE * PAGE, pages))
			return false;
	return true;
}

static uint8_t *copy_of(const uint8_t *bytes, uint64_t size)
{
	uint8_t *copy = malloc(size);

	if (copy)
		memcpy(copy, bytes, size);
	return copy;
}

static int map(struct device *d, uint8_t *bytes, uint64_t size, bool visible, void **region)
{
	struct region *r;

	if (lies(d->p, keeps_maps) && ++d->p->nmaps > 50)
		return leave(d, rig_error_set(RIG_NO_ROOM, "no room any more"));
	if (lies(d->p, maps_copies) || lies(d->p, peer_copies))
		bytes = copy_of(bytes, size);
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
	if (d->p->o.never_maps || !is_there(d->p, host, bytes))
		return leave(d, rig_error_set(RIG_NEVER_MAPS, "read-only pages"));
	return map(d, host, bytes, true, region);
}

/* Each address is given out once. */
static struct bus *give_bus(struct polled *p, struct region *r)
{
	struct bus *bus = r->bus;

	lock(p);
	if (!bus)
		bus = calloc(1, sizeof(*bus));
	if (bus && bus != r->bus) {
		bus->range.address = BUS_BASE + (lies(p, bus_again) ? 0 : (uint64_t)p->nbuses++ << 30) +
		                     (lies(p, odd_bus_range) ? 1 : 0);
		bus->range.bytes = (r->size + PAGE - 1) / PAGE * PAGE;
		bus->next = p->buses;
		p->buses = r->bus = bus;
	}
	unlock(p);
	return bus;
}

int polled_d_dma(void *device, void *region, struct rig_dma_answer *answer, const char **text)
{
	struct device *d = device;

	struct bus *bus;

	if (enter(d, POLLED_DMA, true) && faults(d->p))
		return fault(d, text);
	if (d->p->o.has_bus) {
		bus = give_bus(d->p, region);
		if (!bus)
			return fault(d, text);
		answer->kind = RIG_BUS;
		answer->ranges = &bus->range;
		answer->nranges = 1;
		return leave(d, RIG_BUS);
	}
	answer->kind = RIG_NO_DMA;
	answer->reason = "host memory of a test";
	return leave(d, RIG_NO_DMA);
}
