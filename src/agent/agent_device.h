/* SPDX-License-Identifier: MIT */
/*
 * A device that a session has opened: what its three threads share, and its life. Who is not one of them
 * holds it (device_hold) while it uses the handle.
 */
#ifndef AGENT_DEVICE_H
#define AGENT_DEVICE_H

#include <stdatomic.h>

#include "agent_memory.h"
#include "agent_queue.h"
#include "rmt_frames.h"

struct session;

/* Bytes that a value brings to the controller's memory, in its staging memory. */
struct outgoing {
	uint64_t at, bytes;
	bool parcel; /* else by messages */
	bool begun;  /* or voided: the ticket is no concern any more */
	struct rig_rmt_ticket ticket;
};

/* A value handed over that is not known to be reached. */
struct pending {
	struct pending *next;
	bool own;              /* the agent's, or a part of the controller's value that is not its last */
	uint64_t value, shown; /* the controller's, and the device's */
	bool timed;
	struct rig_times times;
	uint32_t nlaunches;
	struct staging *in, *out;
	struct uses uses;
	struct rig_rmt_wait *waits; /* that its work had for other devices */
	uint32_t nwaits;
	uint64_t out_bytes;
	struct outgoing *outgoing;
	uint32_t noutgoing;
	bool fetched; /* `out` goes to an agent */
	bool parcel;  /* which says where to */
	uint32_t fetch, machine;
};

/* Tickets of which nothing was sent are void. */
void pending_void(struct device *d, struct pending *p);
/* The same, and frees it with its memory. NULL is allowed. */
void pending_free(struct device *d, struct pending *p);

/* Items of the agent's own. */
enum {
	ITEM_DROP = RIG_RMT_KINDS, /* the last loan has returned */
	ITEM_UPLOAD,               /* code, on its way into the device's memory */
};

struct device {
	struct session *session;
	uint32_t id;
	char name[RIG_RMT_NAME];
	const struct rig_opener *opener;
	const struct rig_driver_module *m;
	void *handle;
	struct rig_facts facts;
	const struct rig_driver *hot;
	rig_atomic_u64 *word;
	bool own_word;
	bool host; /* the machine's memory, whose queue also takes steps of rails */
	uint32_t slot;

	struct queue hot_queue, cold_queue;
	struct item *close_item, *lost_item, *drop_item;
	pthread_t hot_thread, cold_thread, done_thread;
	bool running; /* hot and done threads */

	pthread_mutex_t turn; /* of the hot functions */
	uint64_t last;        /* the device's last value; under turn */

	pthread_mutex_t lock;   /* of what follows */
	pthread_cond_t changed; /* a value is handed over or reached, a hold let go, or it is ending */
	struct pending *head, **tail;
	uint64_t handed;     /* the controller's last value handed over */
	uint64_t told;       /* and the last that it was told is reached */
	struct taken *taken; /* agent_wipe.c's, while it opens */
	struct staging *free;
	uint64_t free_bytes;
	uint32_t nstaged; /* of its staging memory, what is taken */
	uint32_t nflying; /* parcels of its staging memory that are under way; under the session's lock */
	atomic_bool ending;
	uint32_t holds; /* of other devices' threads that use the handle, and let go before the stop */
	uint32_t loans; /* mappings by other devices: no region is given back before them */
	bool halted;    /* stopped, and not yet given back */
	bool over;      /* its work is, once it was stopped */
	bool open, lost;
	char reason[RIG_RMT_REASON];

	/* Changed by the cold thread alone, but for the holds. */
	struct kept_region *regions;
	uint32_t nregions, regions_size;
	struct image *images;
	uint32_t nimages;
	struct function *functions;
	uint32_t nfunctions;
	uint32_t nleaving; /* regions and images that are */
	struct rig_rmt_out code;
};

/* ---- Its life ---- */

struct device *device_make(struct session *session, uint32_t id, const char *name);
/* Ends it as the session ends; and waits for that. Memory is given back once all devices of the session are
   stopped, as they may have each other's mapped. */
void device_close(struct device *d);
void device_join(struct device *d);
void device_free(struct device *d);
uint64_t device_shown(struct device *d);
void device_lose(struct device *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool device_is_ending(const struct device *d);
/* For threads of other devices: while it is held it is neither stopped nor given back. False: it is not open,
   or ending. Nobody waits for the other device's cold thread with it. */
bool device_hold(struct device *d);
void device_let(struct device *d);
/* cold.c's: opens, ends. */
int device_open(struct device *d, struct rig_rmt_facts *facts);
void device_stop(struct device *d, const char *reason);
/* The two halves of it: no work runs any more, and what it borrowed is returned; memory, names and words are
   given back. Either may come twice. device_stop leaves the second to the last loan's return. */
void device_halt(struct device *d, const char *reason);
void device_drop(struct device *d);

/* agent_wipe.c: before a device is open */
/* All that it gives of its own memory becomes 0. A negative errno with rig_error(); then what was taken for
   it is given back by device_wipe_end, once the device is stopped. */
int device_wipe(struct device *d);
void device_wipe_end(struct device *d);

/* ---- Its threads ---- */

/* agent_hot.c */
void *hot_run(void *device);
/* Copies staging memory, which it takes, to the image's region, in the order of the device's work: what names
   the image comes behind it, so nobody waits for it. -ENOMEM with rig_error(). */
int hot_upload(struct device *d, struct staging *from, uint32_t image, uintptr_t to, uint64_t bytes);
/* One that is in the queue as the device ends. */
void upload_give_up(struct device *d, const struct item *item);
/* Whether the device could take the work, its bytes too: 0, or a negative errno with rig_error(), which of
   what it never takes is -EINVAL. */
int hot_check(struct device *d, const struct rig_rmt_work *work);

/* agent_done.c */
void *done_run(void *device);

/* agent_cold.c */
void *cold_run(void *device);

#endif
