/* SPDX-License-Identifier: MIT */
/* The tables of a device's regions and images. What a controller names in a message is held while work, a
   copy for another agent or another device's mapping of it is under way: no message gives it back before. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent_device.h"
#include "agent_memory.h"
#include "agent_queue.h"

enum { FIRST_REGIONS = 64 };

/* With the lock. */
static struct kept_region *find_region(const struct device *d, uint32_t id)
{
	return id && id <= d->nregions && d->regions[id - 1].region ? &d->regions[id - 1] : NULL;
}

static struct image *find_image(const struct device *d, uint32_t id)
{
	return id && id <= d->nimages && d->images[id - 1].image ? &d->images[id - 1] : NULL;
}

/* What is borrowed is lent to nobody. */
static void *hold(struct device *d, uint32_t id, bool lends, uint64_t *bytes)
{
	struct kept_region *kept;
	void *region = NULL;

	(void)pthread_mutex_lock(&d->lock);
	kept = find_region(d, id);
	if (kept && !kept->leaving && !(lends && kept->lender)) {
		kept->holds++;
		d->loans += lends;
		region = kept->region;
		if (bytes)
			*bytes = kept->bytes;
	}
	(void)pthread_mutex_unlock(&d->lock);
	return region;
}

void *region_hold(struct device *d, uint32_t id, uint64_t *bytes)
{
	return hold(d, id, false, bytes);
}

void *region_lend(struct device *d, uint32_t id, uint64_t *bytes)
{
	return hold(d, id, true, bytes);
}

/* The lender may have been given back meanwhile, with the session's other devices. */
void region_return(struct device *d, uint32_t id)
{
	struct kept_region *kept;

	(void)pthread_mutex_lock(&d->lock);
	kept = find_region(d, id);
	if (kept)
		kept->holds--;
	d->loans--;
	if (!d->loans && d->halted && d->drop_item) {
		queue_put(&d->cold_queue, d->drop_item);
		d->drop_item = NULL;
	}
	(void)pthread_cond_broadcast(&d->changed);
	(void)pthread_mutex_unlock(&d->lock);
}

/* With the lock. */
static void let(struct device *d, bool image, uint32_t id)
{
	if (image)
		d->images[id - 1].holds--;
	else
		d->regions[id - 1].holds--;
}

void region_let(struct device *d, uint32_t id)
{
	(void)pthread_mutex_lock(&d->lock);
	let(d, false, id);
	(void)pthread_cond_broadcast(&d->changed);
	(void)pthread_mutex_unlock(&d->lock);
}

void image_hold(struct device *d, uint32_t id)
{
	(void)pthread_mutex_lock(&d->lock);
	d->images[id - 1].holds++;
	(void)pthread_mutex_unlock(&d->lock);
}

int region_add(struct device *d, const struct kept_region *region, uint32_t *id)
{
	uint32_t i;
	int err = 0;

	(void)pthread_mutex_lock(&d->lock);
	for (i = 0; i < d->nregions && d->regions[i].region; i++)
		;
	if (i == d->regions_size) {
		uint32_t size = d->regions_size ? 2 * d->regions_size : FIRST_REGIONS;
		struct kept_region *grown = realloc(d->regions, size * sizeof(*grown));

		if (grown) {
			d->regions = grown;
			d->regions_size = size;
		} else {
			err = -ENOMEM;
		}
	}
	if (!err) {
		d->regions[i] = *region;
		if (i == d->nregions)
			d->nregions++;
		*id = i + 1;
	}
	(void)pthread_mutex_unlock(&d->lock);
	return err;
}

int region_leave(struct device *d, uint32_t id)
{
	struct kept_region *kept;
	bool leaves;

	(void)pthread_mutex_lock(&d->lock);
	kept = find_region(d, id);
	leaves = kept && !kept->leaving;
	if (leaves) {
		kept->leaving = true;
		d->nleaving++;
	}
	(void)pthread_mutex_unlock(&d->lock);
	return leaves ? 0 : -ENOENT;
}

int image_leave(struct device *d, uint32_t id)
{
	struct image *kept;
	bool leaves;

	(void)pthread_mutex_lock(&d->lock);
	kept = find_image(d, id);
	leaves = kept && !kept->leaving;
	if (leaves) {
		kept->leaving = true;
		d->nleaving++;
	}
	(void)pthread_mutex_unlock(&d->lock);
	return leaves ? 0 : -ENOENT;
}

bool region_left(struct device *d, struct kept_region *region)
{
	bool left = false;
	uint32_t i;

	(void)pthread_mutex_lock(&d->lock);
	for (i = 0; d->nleaving && i < d->nregions && !left; i++) {
		left = d->regions[i].leaving && !d->regions[i].holds;
		if (!left)
			continue;
		*region = d->regions[i];
		memset(&d->regions[i], 0, sizeof(*region));
		d->nleaving--;
	}
	(void)pthread_mutex_unlock(&d->lock);
	return left;
}

bool image_left(struct device *d, struct image *image)
{
	bool left = false;
	uint32_t i;

	(void)pthread_mutex_lock(&d->lock);
	for (i = 0; d->nleaving && i < d->nimages && !left; i++) {
		left = d->images[i].leaving && !d->images[i].holds;
		if (!left)
			continue;
		*image = d->images[i];
		memset(&d->images[i], 0, sizeof(*image));
		d->nleaving--;
	}
	(void)pthread_mutex_unlock(&d->lock);
	return left;
}

int uses_make(struct uses *uses, uint32_t most)
{
	uses->n = 0;
	uses->at = malloc((most ? most : 1) * sizeof(*uses->at));
	return uses->at ? 0 : -ENOMEM;
}

void uses_add(struct uses *uses, bool image, uint32_t id)
{
	uses->at[uses->n++] = (struct use){image, id};
}

void uses_let(struct device *d, struct uses *uses)
{
	uint32_t i;

	if (uses->n) {
		(void)pthread_mutex_lock(&d->lock);
		for (i = 0; i < uses->n; i++)
			let(d, uses->at[i].image, uses->at[i].id);
		(void)pthread_cond_broadcast(&d->changed);
		(void)pthread_mutex_unlock(&d->lock);
	}
	free(uses->at);
	*uses = (struct uses){0};
}
