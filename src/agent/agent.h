/* SPDX-License-Identifier: MIT */
/*
 * rig-agent: a process that opens this machine's devices for controllers elsewhere.
 *
 * A session is one controller's connection: the part of a job that this machine has. It ends with the
 * connection, and with it its devices, which are stopped and whose memory is given back; then the names are
 * free for the next session. Threads of a session:
 *   reader    takes messages off the connection and puts each on a queue; waits for nothing else
 *   control   answers what concerns no device, and beats
 *   of each device
 *     hot     the work, in the order of the messages; may wait for other devices and for room
 *     cold    memory, code, the device's open and end
 *     done    waits for the device, sends what values bring back, and says that they are reached
 * The driver's functions are called here as rig_edge.h has it, without librig's order: that is kept by the
 * controller. The device's values are not the controller's, for copies of the agent's own take values
 * between; struct pending pairs them.
 */
#ifndef AGENT_H
#define AGENT_H

#include <pthread.h>
#include <stdatomic.h>

#include "rig_vfio.h"
#include "rail.h"
#include "rmt_chan.h"
#include "rmt_frames.h"
#include "rmt_post.h"

enum {
	AGENT_DEVICES = 64,   /* that an agent serves, and that a session opens over its life */
	AGENT_MACHINES = 256, /* of a job */
	AGENT_SESSIONS = 16,  /* at a time */
	AGENT_STRANGERS = 16, /* connections whose proof is not done */
};

/* ---- Queues ---- */

struct item {
	struct item *next;
	uint8_t kind;
	size_t bytes;
	uint8_t payload[];
};

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t some;
	struct item *head, **tail;
	size_t bytes;
	bool closed;
};

void queue_init(struct queue *q);
void queue_fini(struct queue *q);
/* False: no memory, closed, or more than a controller may have under way. */
bool queue_push(struct queue *q, uint8_t kind, const void *payload, size_t bytes);
/* For what must not fail: an item is made before it is needed (NULL: no memory), and is the queue's then. */
struct item *queue_item(uint8_t kind);
void queue_put(struct queue *q, struct item *item);
/* The next item, the caller's to free; waits at most `ms`. NULL: closed, or nothing came. */
struct item *queue_pop(struct queue *q, unsigned ms);
/* The same of the next item whose kind does not stay: those that do keep their order. */
struct item *queue_pop_past(struct queue *q, bool (*stays)(uint8_t kind), unsigned ms);
/* No item comes out any more. */
void queue_close(struct queue *q);
bool queue_is_closed(struct queue *q);

/* ---- Devices ---- */

struct session;

/* Memory that both the device and this process reach, for bytes on their way. */
struct staging {
	struct staging *next;
	void *region;
	uint8_t *host;
	uintptr_t handle;
	uint64_t bytes;
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

/* agent_device.c */
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

/* agent_uses.c: regions and images, and who uses them. */
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

/* agent_stage.c */
/* NULL: no memory now. */
struct staging *staging_take(struct device *d, uint64_t bytes);
/* The same, once what is taken beside `held` has come back, for a while. */
struct staging *staging_await(struct device *d, uint64_t bytes, uint32_t held);
void staging_give(struct device *d, struct staging *s);
void staging_drop(struct device *d);
/* Tickets of which nothing was sent are void. */
void pending_void(struct device *d, struct pending *p);
/* The same, and frees it with its memory. NULL is allowed. */
void pending_free(struct device *d, struct pending *p);

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

/* ---- Sessions ---- */

/* Bytes from another device, for a copy that waits for them. */
struct fetch {
	struct fetch *next;
	uint32_t id;
	uint64_t bytes, got;
	uint8_t *data;
	bool failed;   /* the bytes do not come; `data` says why */
	bool unwanted; /* nobody waits: it goes once all of it, or a reason, has come */
};

struct peer {
	struct session *session;
	uint32_t machine;
	bool came; /* it dialled this agent, and is told that it is let in */
	struct rig_rmt_chan *chan;
	struct rig_rmt_post post; /* refusals: a reader's, too */
	pthread_t thread, beat;
};

/*
 * A fetch whose bytes go by a parcel. Both happen once, in any order: its bytes are ready here, or refused;
 * the other agent claims it. The record is there from the first of them until both are done with: until the
 * bytes have gone, or the refusal. The other agent is told of a refusal once, and of none after bytes.
 */
struct claim {
	struct claim *next;
	uint32_t fetch, machine;
	bool claimed, ready, flying;
	bool given_up; /* claimed, and refused since: the bytes go nowhere once they are ready */
	bool refused;  /* not claimed yet */
	struct rig_parcel_ticket ticket;
	struct device *d;
	struct staging *staging;
	uint64_t bytes;
};

struct rails; /* agent_rails.c's */

struct session {
	struct agent *agent;
	struct session *next;
	struct rig_rmt_chan *chan;
	struct rig_rmt_post post; /* the reader's messages */
	struct rig_rmt_join join;
	pthread_t thread;
	pthread_t control_thread, beat_thread;
	struct queue control;
	struct device *devices[AGENT_DEVICES];
	uint32_t ndevices, nhalted;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct fetch *fetches;
	struct claim *claims;
	uint32_t nclaims;
	struct peer *peers;
	uint32_t npeers;
	atomic_bool ended;
	char reason[RIG_RMT_REASON]; /* why the job failed; written once, under lock */
	_Atomic uint64_t failed_at;  /* by rig_now_ns, once the controller was told; 0: it was not */
	struct rails *rails;
};

/* A new thread's function: serves the connection on `fd` until it ends. */
struct served_socket {
	struct agent *agent;
	int fd;
};
void *session_run(void *served_socket);
int session_answer(
        struct session *s, uint32_t request, int status, const char *text, const void *payload, size_t bytes);
int session_send(
        struct session *s, uint8_t kind, const struct rig_rmt_out *out, const void *body, size_t bytes);
/* Whatever other threads wait for, who is at the channel's other end sees that the agent lives, until the
   session ends. By a thread of the channel's. */
void session_beat(struct session *s, struct rig_rmt_chan *chan);
/* A device is stopped: returns once all of the ending session are. */
void session_await_halts(struct session *s);
/* The job failed here; the first reason is told. */
void session_fail(struct session *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same, because of another machine of the job. */
void session_fail_for(struct session *s, uint32_t machine, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
/* The device of that number, or NULL. */
struct device *session_device(struct session *s, uint32_t id);

/* agent_peer.c */
/* Puts arriving bytes down; 0 or -EPROTO, -ENOMEM. */
int fetch_put(struct session *s, const uint8_t *bytes, size_t n);
int fetch_add(struct session *s, uint32_t id, uint64_t all, uint64_t at, const uint8_t *bytes, size_t n);
/* Waits for all of a fetch and copies it to `to`; -ECANCELED: the device is ending, and nobody waits for it
   any more; -EREMOTEIO: its source is lost. */
int fetch_take(struct device *d, uint32_t id, uint8_t *to, uint64_t bytes);
void fetch_drop_all(struct session *s);
/* Sends bytes of a fetch to their agent. */
int fetch_send(struct session *s, uint32_t machine, uint32_t id, const uint8_t *bytes, uint64_t n);
/* Says that they do not come. */
void fetch_refuse(struct session *s, uint32_t machine, uint32_t id, const char *why);
/* Nobody waits for it any more. */
void fetch_forget(struct session *s, uint32_t id);
/* What came by messages: `failed`, with the reason, or, of a malformed peer, all bytes. NULL: neither did. To
   free by fetch_free. With the session's lock. */
struct fetch *fetch_ended(struct session *s, uint32_t id);
void fetch_free(struct fetch *f);
/* To another agent; nothing where there is no connection. */
void peer_send(struct session *s, uint32_t machine, uint8_t kind, const struct rig_rmt_out *out);
/* LINK messages: 0 or a negative errno with rig_error(). */
int peer_link(struct session *s, struct rig_rmt_in *in);
/* Serves a connection of another agent's, or says why not; takes the channel. */
void peer_serve(struct agent *agent, struct rig_rmt_chan *chan, const struct rig_rmt_join *join);
/* Breaks the connections; and, once no device sends any more, frees them. */
void peers_end(struct session *s);
void peers_free(struct session *s);

/* agent_parcel.c: bytes that go by the rails' links (parcels of rail.h) */
/* Waits for a part's bytes from the controller; and for a fetch's from another agent, as fetch_take does.
   Both return only when nothing writes to `to` any more. -ECONNABORTED: the link has ended. */
int parcel_take(struct device *d, uint64_t value, uint32_t part, uint8_t *to, uint64_t bytes);
int parcel_fetch(struct device *d, const struct rig_rmt_side *src, uint8_t *to, uint64_t bytes);
/* Sends the parcels of a value's outgoing bytes, and waits until its staging memory is free again. */
void parcels_send(struct device *d, struct pending *p);
/* What a fetch wants is in p->out, which it takes. */
void parcel_ready(struct device *d, struct pending *p);
/* CLAIM and UNCLAIM messages; -EPROTO. */
int parcel_claim(struct session *s, uint32_t machine, const uint8_t *bytes, size_t n);
int parcel_unclaim(struct session *s, uint32_t machine, const uint8_t *bytes, size_t n);
/* Nothing is sent for the controller's ticket. */
void parcel_give_up(struct session *s, uint32_t number);
/* The bytes of a fetch, by parcel, are ready nowhere: says so to the agent that wants them, once. */
void parcel_refuse(struct session *s, uint32_t machine, uint32_t fetch, const char *why);
/* Nobody takes what comes for the parts of the work, from `first` on, from other agents. */
void sources_give_up(struct session *s, const struct rig_rmt_work *work, uint32_t first);
/* The SUBMIT message is never work: nothing is sent for its tickets, and nobody takes its sources. */
void submit_give_up(struct session *s, const uint8_t *submit, size_t n);
/* The device's threads have ended: fetches of which nothing was sent are refused; waits for the others. */
void parcels_halt(struct device *d);
void parcels_free(struct session *s);

/* agent_rails.c */
/* The link to that machine, or to the controller (RIG_RMT_HERE_PEER), until rails_free; NULL: none. */
struct rig_rail_link *rails_link_to(struct session *s, uint32_t machine);
int rails_request(struct session *s, struct rig_rmt_in *in, struct rig_rmt_out *out);
/* This machine's end of the rail with a reference, or NULL. */
const struct rig_remote_end *rails_end_of(struct session *s, uint64_t rail);
/* Gives up ends whose other side has ended. The control thread's. */
void rails_sweep(struct session *s);
/* Waits until the end's count is there; -ECANCELED. */
int rails_await(struct device *d, const struct rig_remote_end *end, enum rig_remote_count count, uint64_t c);
/* A step of rig_remote_step: -ENOENT; -ECANCELED: the device is ending. */
int rails_step(struct device *d, const uint32_t *words); /* RIG_REMOTE_STEP_WORDS of them */
void rails_fail(struct session *s, const char *why);
/* Stops them, with which parcels end; and frees the rest once no device uses it. */
void rails_end(struct session *s);
void rails_free(struct session *s);

/* ---- The agent ---- */

struct served {
	char *name;
	const struct rig_opener *opener;
	bool host;              /* the machine's own memory */
	struct session *holder; /* that has it open; under the agent's lock */
	bool stuck;             /* its work may run for ever: nobody gets it any more */
	bool fresh;             /* each open makes its memory anew, without a byte of an earlier one */
	bool known;             /* whose its memory's bytes are: the holder's to change */
	uint8_t job[RIG_RMT_TOKEN];
};

struct agent {
	struct rig_rmt_key key;
	struct served served[AGENT_DEVICES];
	uint32_t nserved;
	bool verbose;
	bool keep_memory; /* one job may find what another left in a device's memory */
	const char *node; /* of rails; NULL: the address that the controller reached */

	pthread_mutex_t lock;
	pthread_cond_t changed; /* a session ended */
	struct session *sessions;
	unsigned nsessions,
	        nstrangers; /* connections of agents are their sessions', each of which bounds them */
	bool words[AGENT_DEVICES * AGENT_SESSIONS]; /* slots of the word array in use */
};

/* agent_served.c */
void agent_init(struct agent *agent);
/* Under its name; the opener is kept, not copied. -ENOSPC, -EEXIST, -ENOMEM, with rig_error(). */
int agent_serve(struct agent *agent, const struct rig_opener *opener, bool host);
void agent_log(const struct agent *agent, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A free slot of the word array, never 0; 0: none. */
uint32_t agent_take_word(struct agent *agent);
void agent_give_word(struct agent *agent, uint32_t slot);
/* Takes the device of that name for a session, waiting for the stop of one whose session has ended: -ENOENT,
   -EBUSY. */
int agent_take(struct session *session, const char *name, struct served **served);
void agent_give(struct session *session, const char *name);
/* Of what the session has taken: whether its memory may hold what is another job's; from now on it is the
   session's. */
bool agent_is_anothers(const struct session *session, const struct served *served);
void agent_mark(struct session *session, struct served *served);
/* The same where it could not be stopped: it stays taken. */
void agent_keep(struct session *session, const char *name);

/* agent_node.c: whether rails can be offered there. -EINVAL, -EADDRNOTAVAIL, with rig_error(), which names
   the addresses that can. */
int agent_check_node(const char *node);

/* agent_listen.c */
/* A listening socket, or a negative errno with rig_error(). */
int agent_listen(const char *name);
/* HOST:PORT of it, as numbers. */
int agent_where(int listener, char *name, size_t bytes);
/* Serves who connects, until `ending` can be read. */
void agent_accept(struct agent *agent, int listener, int ending);
/* Ends all sessions and waits for that; false: a device could not be stopped, within the time or before. */
bool agent_end(struct agent *agent, unsigned seconds);

#endif
