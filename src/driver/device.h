/* SPDX-License-Identifier: MIT */
/*
 * One open device, inside. Who may touch what:
 *   lock        memory, address space, an image's functions: cold calls, which may wait for the device
 *               under it
 *   images_lock the list of images and their lists of functions, for a moment: place and who names a fault
 *               may not wait
 *   hot calls   queues, segment, submitted: one call at a time, by the contract
 *   progress    word, fault, poller: any thread, atomics and progress.lock
 */
#ifndef RIG_DRIVER_DEVICE_H
#define RIG_DRIVER_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include "driver.h"
#include "mmu.h"
#include "pci.h"
#include "range.h"
#include "rig_vfio.h"
#include "ring.h"
#include "segment.h"
#include "times.h"
#include "tlsf.h"

#define RIG_PAGE       4096u
#define RIG_FAULT_TEXT 384u
#define RIG_RING_MARKS 1024u /* submissions in flight before space comes back late */
#define RIG_PART_ALIGN 16u   /* of a part's piece of the segment */

enum { RIG_DEV_VECTORS = 4 }; /* at most, that the driver waits on */

/* Memory that both the host and the device's work or processor reach: rings and the segment. */
struct rig_shared {
	uint8_t *host;
	uint64_t step_address; /* as steps name it */
	uint64_t va;           /* as work names it; 0 in the boot pool */
	uint64_t pa;           /* in a board pool */
	struct rig_dma dma;    /* or in host memory: handle not NULL */
	bool heap;             /* or where only the worker of a serial board reads it */
	uint64_t bytes;
};

struct rig_region {
	enum rig_memory kind; /* 0: the timeline word */
	bool pinned;          /* the caller's own memory, mapped by map_host */
	bool peer;            /* another device's memory, mapped by map_peer */
	bool bused;           /* its bus addresses were given out: kept until the process exits */
	bool has_dmabuf;      /* dma-bufs of it were given out: kept while others have references to it */
	int dmabuf;           /* the driver's own reference */
	uint64_t address;
	uint8_t *host;
	uint64_t bytes;
	uint64_t pa;
	struct rig_dma dma;
	struct rig_bus_range bus;
	struct rig_region *next; /* of those that were freed and kept */
};

/* A larger ring that grow made, on its way to a queue; then the ring that it replaced there. Kept until
   close, because a room may be reading its size. */
struct rig_growth {
	struct rig_growth *retired; /* the next in the device's list of those that no queue waits for */
	struct rig_shared memory;
	uint64_t units;
	uint64_t until; /* the device has left the replaced ring once this value is complete */
};

struct rig_dev_queue {
	struct rig_ring ring;
	struct rig_shared memory;
	struct rig_mark *marks;
	uint64_t signals; /* the last value given to the queue's semaphore */
	/* Growth. Who takes `next` out owns it: grow, to put a larger one there, or submit, which moves the
	   queue to it with the packets of its value. */
	_Atomic(struct rig_growth *) next;
	_Atomic uint64_t units;   /* of the ring, for grow, which may run beside submit */
	_Atomic uint64_t asked;   /* units of the ring that the last room answered RIG_GROW for; 0: none */
	_Atomic uint64_t refused; /* units that found no memory when only stamps needed them; 0: none */
};
/* In `asked`, whose sizes are even: without stamps the submission has room. */
#define RIG_FOR_STAMPS UINT64_C(1)

/* What a submission takes. */
struct rig_plan {
	uint64_t units[RIG_BOARD_QUEUES];
	uint64_t largest[RIG_BOARD_QUEUES];
	uint32_t launches[RIG_BOARD_QUEUES];
	uint64_t segment;
	uint32_t used;    /* bit q: queue q gets packets */
	uint32_t release; /* the queue that releases the value */
};
/* A part's scratch. */
struct rig_part_plan {
	struct rig_need need;
	uint32_t segment; /* offset in the submission's piece */
	bool signals;     /* some part of another queue starts after it */
	uint64_t signal;  /* submit: the semaphore value that says it is done */
};
_Static_assert(sizeof(struct rig_part_plan) <= RIG_SCRATCH, "a part's plan fits its scratch");

struct rig_progress {
	pthread_mutex_t lock;
	pthread_cond_t moved;
	atomic_int sleepers;
	atomic_bool faulted;
	atomic_bool quit;           /* the poller is to end */
	char fault[RIG_FAULT_TEXT]; /* written once, before faulted */
	pthread_t poller;
	bool polling;
	enum rig_irq_kind irq;                /* what irq_fds are armed with */
	int irq_fd[RIG_DEV_VECTORS], quit_fd; /* -1: none. The first wakes a worker too */
};

/* How long work has been out without a move of the word, as the poller or worker sees it. Zeroed at first. */
struct rig_stall {
	uint64_t seen, since;
};

/* Of serial.c. A board without rings has no processor that reads a queue: a thread of the driver, the worker,
   does that. */
struct rig_worker {
	const struct rig_board
	        *port;          /* the port's table; NULL: the board has rings, and there is no worker */
	struct rig_board table; /* a copy of it, with serial.c's ring functions; dev->board points to it */
	const uint8_t *units;   /* the queue */
	uint64_t mask, read;
	_Atomic uint64_t written, completed;
	atomic_bool asleep; /* the next submit wakes it */
	bool fired;         /* an interrupt came since the last unmasking */
	bool running;       /* an operation was started and has not completed */
	unsigned naps;
	struct rig_stall stall;
};

struct image;

struct rig_dev {
	const struct rig_driver *hot; /* the contract: first member */
	const struct rig_board *board;
	struct rig_port port;
	struct rig_board_facts facts;
	struct rig_driver_options options;
	char *firmware_dir;
	struct rig_pci *pci;

	pthread_mutex_t lock;
	struct rig_tlsf *pools[RIG_BOARD_POOLS];
	struct rig_mmu_space *space;
	struct rig_ranges system; /* bus addresses whose pages arenas put into the tables */
	uint32_t stacks;          /* slots that have memory */
	struct rig_region *kept;  /* freed, and kept with their memory */
	uint64_t dmabuf_bytes;    /* of those that dma-bufs keep */
	uint64_t bus_bytes;       /* whose bus addresses this process gave out, earlier opens included */
	char no_dmabuf[RIG_FAULT_TEXT]; /* why there is no dma-buf, once that was asked; else "" */

	pthread_mutex_t images_lock;
	struct image *images; /* code.c's */

	rig_atomic_u64 *word;
	struct rig_region word_region;
	struct rig_dma words, own_page;
	uint64_t release_address; /* where a release stores the word; 0: it does not */

	struct rig_dev_queue queues[RIG_BOARD_QUEUES];
	_Atomic(struct rig_growth *) retired;
	struct rig_segment segment;
	struct rig_shared segment_memory;
	struct rig_mark *segment_marks;
	_Atomic uint64_t submitted;
	uint32_t last_queue;  /* which released the last value */
	struct rig_plan plan; /* of the last room, for the submit that follows it */
	struct rig_dev_times times;
	struct rig_shared stamps; /* what the work of timed values stores */

	struct rig_progress progress;
	struct rig_worker worker;
	struct rig_vfio_record record;
};

/* driver_check.c: 0, or -EINVAL with the field's name and what it must be. */
/* Before anything of the table is called. */
int rig_dev_check_table(const struct rig_board *board);
/* After describe; of a serial board after the driver completed its facts. */
int rig_dev_check_facts(
        struct rig_port *port, const struct rig_board *board, const struct rig_board_facts *facts);

/* driver_space.c: tables. Under dev->lock. On a board without tables they do nothing. */
int rig_dev_space_open(struct rig_dev *dev);
void rig_dev_space_close(struct rig_dev *dev);
/* System memory at a bus address, each at the same place whatever lies there. An arena's pages stay in the
   tables for good, also when the arena is gone and its addresses are given to other memory, which then leaves
   them alone. Texts of failures are in rig_error(). */
int rig_dev_map_arena(struct rig_dev *dev, uint64_t iova, uint64_t bytes);
int rig_dev_map_system(struct rig_dev *dev, uint64_t iova, uint64_t bytes);
int rig_dev_unmap_system(struct rig_dev *dev, uint64_t iova, uint64_t bytes);
/* Makes sure that `slots` stacks exist. -ENOMEM with *short_bytes. */
int rig_dev_stacks(struct rig_dev *dev, uint32_t slots, uint64_t *short_bytes);

/* driver_memory.c */
int rig_dev_pools_open(struct rig_dev *dev);
void rig_dev_pools_close(struct rig_dev *dev);
/* `bytes` of board memory: of the boot pool, of what the host maps, or of any. Under dev->lock. -ENOMEM. */
enum rig_pool_kind { RIG_POOL_BOOT, RIG_POOL_VISIBLE, RIG_POOL_ANY };
int rig_dev_take(struct rig_dev *dev, enum rig_pool_kind kind, uint64_t bytes, uint64_t align, uint64_t *pa);
void rig_dev_give(struct rig_dev *dev, uint64_t pa);
/* A ring's or the segment's memory; `user` says whether work may reach it. Under dev->lock. */
int rig_dev_shared_alloc(struct rig_dev *dev, uint64_t bytes, bool user, struct rig_shared *shared);
void rig_dev_shared_free(struct rig_dev *dev, struct rig_shared *shared);
uint64_t rig_dev_memory_free(struct rig_dev *dev);
int rig_dev_alloc(void *device, enum rig_memory kind, uint64_t bytes, void **region, const char **fault);
int rig_dev_free(void *device, void *region, const char **fault);
void rig_dev_locate(void *device, void *region, struct rig_location *location);
int rig_dev_map_host(void *device, void *host, uint64_t bytes, void **region, const char **fault);

/* driver_peer.c */
bool rig_dev_peer(void *device, void *other);
int rig_dev_map_peer(void *device, void *other, void *region, void **mapped, const char **fault);

/* bus.c */
int rig_dev_dma(void *device, void *region, struct rig_dma_answer *answer, const char **fault);
int rig_dev_bus_init(struct rig_dev *dev);
/* Takes out of the pools what this process gave bus addresses of while the function was open before. */
int rig_dev_bus_exclude(struct rig_dev *dev);
/* Of a region that is freed, under dev->lock: whether it and its memory are kept, because others may reach
   it. */
bool rig_dev_keep(struct rig_dev *dev, struct rig_region *region);
/* Gives back what was kept for dma-bufs that are gone; false: there was nothing. Under dev->lock. */
bool rig_dev_reap(struct rig_dev *dev);
/* Forgets what is kept. */
void rig_dev_drop_kept(struct rig_dev *dev);

/* queues.c */
/* Whether packets of `units` units in all, the largest of them `largest` > 0, fit an empty ring of `size`
   units wherever they start. */
static inline bool rig_dev_ring_holds(uint64_t size, uint64_t units, uint64_t largest)
{
	return units <= size && largest - 1 <= size - units;
}
int rig_dev_queues_open(struct rig_dev *dev);
void rig_dev_queues_close(struct rig_dev *dev);
void rig_dev_reclaim(struct rig_dev *dev);
/* Units of the smallest ring that holds the packets; 0: none may. */
uint64_t rig_dev_grown_units(const struct rig_dev *dev, uint64_t units, uint64_t largest);
/* Moves queue `q`, from `value` on, to the ring that grow made, if it is still there. */
void rig_dev_switch(struct rig_dev *dev, uint32_t q, uint64_t value);
int rig_dev_grow(void *device, const struct rig_part *parts, uint32_t nparts, uint32_t nwaits,
        uint64_t *short_bytes, const char **fault);

/* driver_submit.c */
int rig_dev_room(void *self, const struct rig_part *parts, uint32_t nparts, uint32_t nwaits,
        const struct rig_run *run, void *scratch);
int rig_dev_submit(void *self, uint64_t value, const struct rig_part *parts, uint32_t nparts,
        const struct rig_wait *waits, uint32_t nwaits, const struct rig_run *run, void *scratch,
        struct rig_times *times, const char **failure);
int rig_dev_commit(void *self, uint64_t value, const char **failure);

/* word.c */
int rig_dev_word_init(struct rig_dev *dev, rig_atomic_u64 *word);
void rig_dev_word_fini(struct rig_dev *dev);
/* Whether the device can read other devices' timeline words, and so wait for those devices itself. If not,
   the runtime waits on the host. */
bool rig_dev_sees_words(const struct rig_dev *dev);
/* The address of `word`, an element of the process's word array, as a RIG_STEP_WAIT packet names it. */
uint64_t rig_dev_word_address(const struct rig_dev *dev, const rig_atomic_u64 *word);

/* progress.c */
int rig_dev_progress_open(struct rig_dev *dev);
void rig_dev_progress_close(struct rig_dev *dev); /* ends the poller */
/* The poller or worker is to end. stop waits for it and never for work, so it looks at this also while work
   goes on. */
static inline bool rig_dev_must_quit(const struct rig_dev *dev)
{
	return atomic_load_explicit(&dev->progress.quit, memory_order_relaxed);
}
/* After the word moved. */
void rig_dev_wake(struct rig_dev *dev);
/* Empties an eventfd. */
void rig_dev_drain(int fd);
/* Reads the device's progress and raises the word; the last completed value. */
uint64_t rig_dev_progress(struct rig_dev *dev);
/* Whether the device faulted or is gone; looks at it. */
bool rig_dev_check_fault(struct rig_dev *dev);
/* From the poller or worker, as often as it wakes. While nothing moves it asks the board, some ten times a
   second, whether it is still there and as it was booted. */
void rig_dev_watch(struct rig_dev *dev, struct rig_stall *stall);
void rig_dev_set_fault(struct rig_dev *dev, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* For cold calls: RIG_FAULT with the device's text. */
int rig_dev_fault(struct rig_dev *dev, const char **fault);
static inline bool rig_dev_faulted(const struct rig_dev *dev)
{
	return atomic_load_explicit(&dev->progress.faulted, memory_order_acquire);
}
int rig_dev_sleep(void *device, uint64_t seen, uint64_t still_ms, const char **fault);

/* code.c */
int rig_dev_load(void *device, const void *binary, size_t bytes, struct rig_code *code, const char **fault);
int rig_dev_entry(void *device, void *image, const char *name, struct rig_entry *entry, uint64_t *short_bytes,
        const char **fault);
int rig_dev_unload(void *device, void *image, const char **fault);

/* serial.c */
/* Sets dev->board: a serial board's table with the members that it leaves out. */
void rig_dev_set_board(struct rig_dev *dev, const struct rig_board *board);
static inline bool rig_dev_is_serial(const struct rig_dev *dev)
{
	return dev->worker.port != NULL;
}
/* Completes what a serial board described; of others nothing. -EINVAL, -ENOTSUP. */
int rig_dev_serial_describe(struct rig_dev *dev);
/* The worker, in place of the poller. */
void *rig_dev_serial_run(void *dev);
/* The worker has ended and left the board with nothing to do. */
static inline bool rig_dev_serial_idle(const struct rig_dev *dev)
{
	return rig_dev_is_serial(dev) && !dev->worker.running;
}

/* stop.c */
void rig_dev_stop(void *device, const char *reason);

#endif
