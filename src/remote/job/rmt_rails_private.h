/* SPDX-License-Identifier: MIT */
/*
 * A job's rails, inside. `lock` is held while rails and links are made, and so while agents are asked;
 * `list_lock` and `use_lock` for a moment. With `use_lock`, proxies' locks are taken by what parcels tell.
 */
#ifndef RMT_RAILS_PRIVATE_H
#define RMT_RAILS_PRIVATE_H

#include "rail.h"
#include "rmt_job.h"
#include "rmt_rails.h"

/* Pages without memory that stand for an area elsewhere. */
struct window {
	struct window *next;
	uint64_t rail;
	uint32_t machine;
	enum rig_rmt_area area;
	void *at;
	size_t bytes;
};

/* A rail that was made; kept until the job's end, for its windows. */
struct made {
	struct made *next;
	struct rig_remote_job *job;
	uint64_t id;
	const struct rig_remote_end *end; /* the one that is here, until it is over; NULL: none */
	uint32_t uses;                    /* by work under way */
	bool released;                    /* by who made it: with the last use it is over */
	uint32_t machine[2];
	size_t outbound[2], inbound[2]; /* bytes of the areas of each */
};

struct rig_rmt_rails {
	pthread_mutex_t lock; /* of making: held while agents are asked */
	struct rig_rails *_Atomic engine;
	struct rig_rail_link *_Atomic *links; /* to each machine; NULL: none yet */
	atomic_bool *linked;                  /* machine by machine */
	atomic_bool *tried;                   /* for parcels, likewise */
	bool used;                            /* there is, or was to be, a link */
	uint64_t next;

	pthread_mutex_t use_lock; /* of calls about parcels */
	bool ended;               /* the links go */

	pthread_mutex_t list_lock;
	struct made *made;
	struct window *windows;
};

/* rmt_rail_links.c */
/* Asks an agent; the blob of the answer is put into *blob, if not NULL. */
int rig_rmt_rail_ask(struct rig_rmt_machine *m, const struct rig_rmt_rail *r,
        const struct rig_remote_transfer *send, const struct rig_remote_transfer *receive,
        struct rig_rail_blob *blob);
void rig_rmt_rail_set_blob(struct rig_rmt_rail *r, const struct rig_rail_blob *blob);
/* Between two machines; and between this process and one. Made on first use. With `lock`. */
int rig_rmt_rails_link_machines(
        struct rig_rmt_rails *rails, struct rig_rmt_machine *a, struct rig_rmt_machine *b);
int rig_rmt_rails_link_here(struct rig_rmt_rails *rails, struct rig_rmt_machine *m);

/* rmt_rails.c: with the list's lock; NULL: none of that number. */
struct made *rig_rmt_rails_find(const struct rig_rmt_rails *rails, uint64_t id);

/* rmt_rail_windows.c */
void rig_rmt_rails_free_windows(struct rig_rmt_rails *rails);

#endif
