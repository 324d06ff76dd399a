/* SPDX-License-Identifier: MIT */
/*
 * A device's memory and code, as its session's controller numbers them (agent_uses.c), and the agent's own
 * for bytes on their way (agent_stage.c). What a message names is held while something uses it: nothing gives
 * it back before.
 */
#ifndef AGENT_MEMORY_H
#define AGENT_MEMORY_H

#include "rig_remote_abi.h"
#include "rig_vfio.h"

struct device;

/* Memory that both the device and this process reach, for bytes on their way. */
struct staging {
	struct staging *next;
	void *region;
	uint8_t *host;
	uintptr_t handle;
	uint64_t bytes;
};

/* NULL: no memory now. */
struct staging *staging_take(struct device *d, uint64_t bytes);
/* The same, once what is taken beside `held` has come back, for a while. */
struct staging *staging_await(struct device *d, uint64_t bytes, uint32_t held);
void staging_give(struct device *d, struct staging *s);
void staging_drop(struct device *d);

/* ---- Regions and images, and who uses them ---- */

struct image {
	void *image, *region;
	uint32_t holds;
	bool leaving; /* nobody gets a hold any more, and with the last one it goes */
};

struct function {
	uint32_t image; /* its number; 0: it is unloaded */
	struct rig_entry entry;
};

struct kept_region {
	void *region; /* NULL: the number is free */
	uint64_t bytes;
	const struct rig_remote_end *end; /* whose area it is, or NULL */
	struct device *lender;            /* whose region it maps, or NULL */
	uint32_t lent;                    /* the number of that */
	uint32_t holds;
	bool leaving; /* as an image's */
};

/* A region or an image, by its number, that work names. */
struct use {
	bool image;
	uint32_t id;
};

/* They are held, so that nothing gives them back, until the work is complete or was not handed over. */
struct uses {
	struct use *at;
	uint32_t n;
};

/* NULL: there is none of that number, or it is on its way back. *bytes, if not NULL, are its bytes. */
void *region_hold(struct device *d, uint32_t id, uint64_t *bytes);
void region_let(struct device *d, uint32_t id);
/* For another device to map, which holds it until region_return. NULL: none, on its way back, or borrowed. */
void *region_lend(struct device *d, uint32_t id, uint64_t *bytes);
void region_return(struct device *d, uint32_t id);
/* Of one that does not leave. */
void image_hold(struct device *d, uint32_t id);
/* 0 and its number, or -ENOMEM. */
int region_add(struct device *d, const struct kept_region *region, uint32_t *id);
/* Nobody gets a hold of it any more. -ENOENT: there is none, or it leaves already. */
int region_leave(struct device *d, uint32_t id);
int image_leave(struct device *d, uint32_t id);
/* Takes one off the table that leaves and that nothing holds any more; false: there is none. The cold
   thread's, which so waits for no work: what holds it may never end. */
bool region_left(struct device *d, struct kept_region *region);
bool image_left(struct device *d, struct image *image);
/* Room for as many uses; -ENOMEM. */
int uses_make(struct uses *uses, uint32_t most);
void uses_add(struct uses *uses, bool image, uint32_t id);
/* Gives up the holds, and the record. */
void uses_let(struct device *d, struct uses *uses);

#endif
