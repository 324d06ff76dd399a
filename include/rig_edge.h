/* SPDX-License-Identifier: MIT */
/*
 * The contract between a runtime and the drivers that run its devices.
 *
 * A *driver* runs one kind of device: it allocates the device's memory, loads code on it and places work on
 * its queues. A *runtime* (librig, rig.h) opens drivers and orders work across devices. A driver links
 * librig_edge, which defines every function below but rig_code_sync, and never librig.
 *
 * Concepts
 *   value      A number of a device's timeline. Each submission is the work of the next value. Value v is
 *              *reached* once the work of every value up to v is complete; *committed* once the device runs
 *              it with no further call. *Device order*: no work of v starts, on any queue, before all work
 *              of v - 1 is complete.
 *   word       Eight bytes that hold the last committed value v such that all work up to v is complete.
 *              Only the driver writes it, with release order, and never backwards. Who reads v with acquire
 *              order sees the effects of the work up to v.
 *   lost       A device ends once, for good: by a fault, a failed hot call, a hang, a close, a fork. The
 *              runtime then calls `stop` once, when no counted call is in flight.
 *
 * Two tables
 *   struct rig_driver         five *hot* functions, called with `facts.edge`, one at a time for each device.
 *   struct rig_driver_module  *cold* functions, called with the device that `make` returned.
 *
 * Answers
 *   Functions that return int answer 0 or a non-negative constant named at the function, or a negative
 *   errno whose text is in rig_error(), or RIG_FAULT. -EINVAL is misuse: rig_error() names the argument and
 *   its bound, and nothing happened. Counted cold calls may answer RIG_FAULT and set *fault to a text that
 *   lives until `release`; the runtime then loses the device. A driver never prints, exits or aborts.
 *
 * Threads
 *   Hot functions: any thread, one at a time for each device, concurrently for different devices.
 *   Cold functions: any thread, concurrently, beside hot ones, unless said otherwise. `locate`, `peer` and
 *   `release` are not counted: they neither block nor fault. Everything else is counted while the device is
 *   live.
 *
 * Source: the driver contract of rig (its module Rig_edge); docs/contract.md says what was decided for C.
 */
#ifndef RIG_EDGE_H
#define RIG_EDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "rig_wide.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The contract's version. Tables and records passed singly start with it; `rig_open` refuses any other in a
 * table. In a record to fill (facts, dma, load, entry) the runtime sets it before the call, to the version it
 * was built for. facts, the first of them, checks it; the others of that device come from the same runtime,
 * so a driver may rely on them.
 */
#define RIG_EDGE_VERSION 1u

/* Below every negative errno, so that one int carries both. */
#define RIG_FAULT (-4096)

/* Bytes of scratch a submission holds for each part, 16-byte aligned, in one array beside the parts. */
#define RIG_SCRATCH 64u

/* The most parameter bytes of a launch. */
#define RIG_PARAMS 4096u

/* The number of words in the process's array (rig_words). */
#define RIG_WORD_COUNT 65536u

/* Marks exported functions; a driver needs none of it. */
#define RIG_API __attribute__((visibility("default")))

/* An eight-byte atomic with the same layout in C and C++; C++ code reads it through rig_word_load. */
#ifdef __cplusplus
typedef struct {
	alignas(8) uint64_t rig_value;
} rig_atomic_u64;
#else
typedef _Atomic(uint64_t) rig_atomic_u64;
#endif

/* ---- Memory -------------------------------------------------------------------------------------------- */

enum rig_memory {
	RIG_DEVICE = 1, /* the device's own memory */
	RIG_PINNED, /* page-locked host memory of the driver's making, for the device's work and the host */
	RIG_MAPPED, /* the device's own memory, also the host's through a write-combined window */
};

/* Answers of map_host and map_peer. */
enum rig_mapping {
	RIG_MAPS,       /* *region is a region over the memory */
	RIG_NEVER_MAPS, /* neither now nor later, such as read-only pages; the reason is in rig_error() */
	RIG_NO_ROOM,    /* not now, such as under a limit on locked memory; the reason is in rig_error() */
};

/* Where a region lies. Constant for the region's life. */
struct rig_location {
	bool has_address; /* false: the memory is named by its handle only */
	bool has_host;    /* whether the host addresses the region */
	uint64_t address; /* as the device's work addresses it */
	void *host;       /* its first byte, as the host addresses it */
	uintptr_t handle; /* the driver's object for the region, as copy parts name it */
};

/* Answers of dma: how another PCI function of the device's machine reaches the region's bytes. */
enum rig_dma_kind {
	RIG_BUS,    /* by bus addresses, which hold until the process exits */
	RIG_DMABUF, /* through a dma-buf, which keeps the memory until its last reference goes */
	RIG_NO_DMA, /* not at all; `reason` says why, and nothing is harmed */
};

struct rig_bus_range {
	uint64_t address; /* a multiple of 4096 */
	uint64_t bytes;   /* a multiple of 4096, above 0 */
};

struct rig_dma_answer {
	uint32_t version;       /* RIG_EDGE_VERSION, set by the caller */
	enum rig_dma_kind kind; /* what the function also returned */
	/* RIG_BUS: in the region's order; the array lives until `release`. */
	const struct rig_bus_range *ranges;
	size_t nranges;
	int fd;             /* RIG_DMABUF: new, close-on-exec, the caller owns and closes it */
	uint64_t offset;    /* RIG_DMABUF: of the region's first byte */
	const char *reason; /* RIG_NO_DMA: lives until `release` */
};

/* ---- Queues and parts ---------------------------------------------------------------------------------- */

/* The kinds of a part. 0 is no part: room answers RIG_NEVER. */
enum rig_kind {
	RIG_WORDS = 1, /* 32-bit words placed on the queue as given */
	RIG_FILL,      /* a C function called with the queue's context, which writes packets */
	RIG_COPY,      /* rows of bytes copied between memory of the device, or memory filled with a byte */
	RIG_LAUNCH,    /* a function of an image run over a grid of groups of threads */
};

/* The bit of a kind in rig_queue.runs. */
#define RIG_RUNS(kind) (1u << (kind))

struct rig_queue {
	const char *name; /* such as "COMPUTE:0": its lane in a profile */
	uint32_t runs;    /* RIG_RUNS of each kind it runs */
};

struct rig_words_part {
	const uint32_t *words;
	uint32_t count; /* words */
};

struct rig_fill_part {
	/* Writes packets through the queue's context, at most what ring_units and segment_bytes declare.
	   Nonzero fails the submit. */
	int (*fill)(void *queue_context, const void *arg, uint64_t value);
	const void *arg;
	uint32_t ring_units;    /* at most so many of the queue's units */
	uint32_t segment_bytes; /* at most so many bytes of its argument segment */
};

/* In rig_copy_side.slot: the side is fixed memory, not a buffer of the run. */
#define RIG_FIXED UINT32_MAX

struct rig_copy_side {
	uint32_t slot;    /* index into rig_run.slots, or RIG_FIXED */
	uintptr_t handle; /* RIG_FIXED: the region's handle */
	uint64_t offset;  /* bytes from the region's or the buffer's first byte */
	uint64_t pitch;   /* bytes from one row's first byte to the next one's */
};

/* The fields may differ from room to submit and from call to call, as slots do: a driver decides again each
 * time. Bytes of the destination that are also the source's are unspecified afterwards. */
struct rig_copy_part {
	struct rig_copy_side dst, src; /* src unused by a fill */
	uint64_t row_bytes, rows;      /* at least 1 each */
	bool fill;                     /* true: every byte of the rows becomes `byte` */
	uint8_t byte;
};

/* One address among a launch's parameters. */
struct rig_ref {
	uint32_t at;   /* the 8 bytes from here, a multiple of 8, at + 8 <= params, hold an offset */
	uint32_t slot; /* to which the address of this buffer of the run is added */
};

/* A launch's run-time part, in rig_run.args at rig_launch_part.block; its parameter bytes follow it. */
struct rig_block {
	uint32_t groups[3];  /* the grid, in groups */
	uint32_t threads[3]; /* the group, in threads */
	uint32_t shared;     /* bytes of shared memory a group */
	uint32_t reserved;   /* 0 */
};

struct rig_launch_part {
	uint64_t code;    /* rig_entry.code */
	uintptr_t launch; /* rig_entry.launch */
	uint32_t block;   /* byte offset of its rig_block in rig_run.args, a multiple of 16 */
	uint32_t params;  /* parameter bytes after the block, at most RIG_PARAMS */
	const struct rig_ref *refs;
	uint32_t nrefs;
};

struct rig_part {
	uint32_t queue; /* index into rig_facts.queues */
	uint32_t kind;  /* enum rig_kind */
	/* Indices, below this part's own, of parts of *other* queues it starts after. */
	const uint32_t *after;
	uint32_t nafter;
	union {
		struct rig_words_part words;
		struct rig_fill_part fill;
		struct rig_copy_part copy;
		struct rig_launch_part launch;
	} u;
};

/* A buffer of a run. */
struct rig_slot {
	uint64_t address; /* of its first byte as the device's work addresses it; 0 if it has none */
	uintptr_t handle; /* of its region */
	uint64_t offset;  /* of its first byte in that region */
};

/* What one submit of a submission brings. The caller's; read only during the call. */
struct rig_run {
	const void *args;    /* blocks and parameter bytes, 16-byte aligned; NULL without launches */
	uint64_t args_bytes; /* their number */
	/* The run's buffers. The runtime has checked every slot that a part or a block names against nslots,
	   and that a copy's rows lie within its slots' bytes: a driver relies on both. */
	const struct rig_slot *slots;
	uint32_t nslots;
};

/* The work starts once *word >= value. The word is in the process's array (rig_words). */
struct rig_wait {
	const rig_atomic_u64 *word;
	uint64_t value;
};

/* When a value's work started and ended on the device, in rig_now_ns's nanoseconds; both 0 if it cannot be
 * timed. */
struct rig_times {
	uint64_t start, end;
};

/* ---- Hot functions ------------------------------------------------------------------------------------- */

/* Answers of room. */
enum rig_room {
	RIG_FITS,  /* parts and waits fit the queues now */
	RIG_LATER, /* they fit once one of the device's values is reached */
	RIG_GROW,  /* they exceed the queues as they are, and fit once `grow` has grown them */
	RIG_NEVER, /* they exceed the empty queues however grown, name work the device does not run, have kind
	              0, or launch an empty grid or group or one out of the device's or the function's limits,
	              or ask for more shared memory than the function may have; rig_error() says which */
};

/* Answers of submit, commit, settle and measures. */
enum rig_call {
	RIG_OK,        /* done; for submit: encoded, not yet committed */
	RIG_FAILED,    /* the device is lost; *failure is a text that lives until `release` */
	RIG_COMMITTED, /* submit only: every value up to this one is committed */
};

/*
 * A device's C state starts with a pointer to this table; rig_facts.edge is its address, valid until stop
 * returns. The runtime calls room before each submit, with the same parts and as many waits. `scratch` is
 * RIG_SCRATCH bytes a part, used by no other call meanwhile and left as it was found by the next one. A
 * negative errno of room refuses this work alone, for now, such as -ENOMEM. None allocates or makes a system
 * call unless rig_facts.may_block says so.
 */
struct rig_driver {
	uint32_t version; /* RIG_EDGE_VERSION */

	int (*room)(void *self, const struct rig_part *parts, uint32_t nparts, uint32_t nwaits,
	        const struct rig_run *run, void *scratch);

	/* Places the parts as the work of `value`, after the waits and the device's earlier work. Values come
	   as b + 1, b + 2, ... with b what the word held when make returned. When it returns, all of the work
	   is on the queues. `times` (NULL without a profile) is written before the word shows the value if
	   settle is NULL, and before settle of the value returns otherwise. RIG_COMMITTED, RIG_OK or
	   RIG_FAILED. */
	int (*submit)(void *self, uint64_t value, const struct rig_part *parts, uint32_t nparts,
	        const struct rig_wait *waits, uint32_t nwaits, const struct rig_run *run, void *scratch,
	        struct rig_times *times, const char **failure);

	/* Lets the work up to `value` (at most the last submitted) run; nothing for a committed value. A
	   driver whose submit always answers RIG_COMMITTED is never asked. RIG_OK or RIG_FAILED. */
	int (*commit)(void *self, uint64_t value, const char **failure);

	/* Writes the times of a timed `value`, which the word shows; again for one already written changes
	   nothing. Never waits for work. NULL for a driver that writes times before the word shows them. */
	int (*settle)(void *self, uint64_t value, const char **failure);

	/* Of a timed `value` with a launch, once the word shows it: writes one row a launch into the zeroed
	   `out`, in part order, each 3 + n words: 1 if measured, start, end, then the counters (n their
	   values' sum). With NULL frees what it kept. NULL iff rig_facts.ncounters is 0. */
	int (*measures)(void *self, uint64_t value, uint64_t *out, const char **failure);
};

/* ---- Facts --------------------------------------------------------------------------------------------- */

enum rig_completion {
	RIG_STORE, /* a store that the driver placed on a queue writes the word */
	RIG_HOST,  /* the host writes it, from the driver's poller or handler or before submit or commit
	              returns */
};

/* The producers a device's queues wait for; the runtime waits on the host for others. */
struct rig_waits {
	bool stores; /* RIG_STORE producers */
	bool hosts;  /* RIG_HOST producers */
};

struct rig_counter {
	const char *name;
	uint32_t values; /* at least 1 */
};

/* What compiled code needs from a device: a record declared by the driver's ABI library under its key's
 * address. */
struct rig_key {
	const char *name; /* for people */
};

struct rig_capability {
	const struct rig_key *key; /* NULL: none */
	const void *record;        /* lives until `release` */
};

/* A device's facts: read once, when it opens. Every pointer lives until `release`. */
struct rig_facts {
	uint32_t version; /* RIG_EDGE_VERSION, set by the caller and checked by the driver */
	const char *arch; /* such as "rvx1" */
	uint64_t budget;  /* bytes of own memory the device should hold at most */
	const struct rig_queue *queues;
	uint32_t nqueues;
	bool has_copy_engine;
	int32_t copy_engine; /* index of the queue for copies; its runs has RIG_COPY */
	enum rig_completion completion;
	struct rig_waits waits;
	bool may_block; /* whether room, submit and commit may block on the device's own earlier work */
	bool has_hang_ms;
	int64_t hang_ms;     /* lost once the word stays below a committed value for so long; at least 1 */
	bool maps_host;      /* whether map_host may be asked */
	bool host_addresses; /* every region of alloc has a host address; no RIG_PINNED is asked */
	int64_t alignment;   /* a power of two that divides the address and host address of every region of
	                        alloc */
	bool has_cache_bytes;
	int64_t cache_bytes; /* of the last-level cache; at least 1 */
	const struct rig_counter *counters;
	uint32_t ncounters;
	struct rig_capability capability;
	void *word; /* the region of the timeline word; its host address is make's, or a word of the driver's
	               own */
	const char *bus; /* such as "0000:03:00.0"; NULL for a device without a bus address */
	void *edge;      /* the C state; its first member points to the struct rig_driver */
};

/* ---- Code ---------------------------------------------------------------------------------------------- */

/*
 * Fills `buffer` (as many zeroed bytes as rig_code.bytes) with what goes to the start of `region`, and makes
 * *image. Called at most once, with the binary that load was given, as a counted call; blocks on nothing and
 * faults never. 0, or -ENOMEM with nothing made.
 */
typedef int (*rig_place_fn)(
        void *device, const void *binary, size_t binary_bytes, void *region, uint8_t *buffer, void **image);

enum rig_code_kind {
	RIG_LOADED, /* `image` is ready: the driver's library placed the code itself */
	RIG_PLACE,  /* the code goes into `bytes` of the device's RIG_DEVICE memory, by `place` */
};

struct rig_code {
	uint32_t version; /* RIG_EDGE_VERSION, set by the caller */
	enum rig_code_kind kind;
	void *image;
	uint64_t bytes;
	rig_place_fn place;
};

struct rig_entry {
	uint32_t version; /* RIG_EDGE_VERSION, set by the caller */
	uint64_t code;    /* what compiled code names the function by */
	uintptr_t launch; /* what submit reads to launch it, valid while the image is loaded; 0 without
	                     launches */
	bool has_params;  /* false: unknown */
	uint32_t params;  /* parameter bytes, from byte 0, that the function reads */
	bool has_threads; /* false: unknown */
	uint32_t threads; /* the most threads a group may have */
};

/* Answers of entry. */
enum rig_entry_kind {
	RIG_ENTRY,     /* *entry is the function */
	RIG_ABSENT,    /* the image has no function of that name */
	RIG_NO_MEMORY, /* the device lacks *short_bytes that the function's launches need; asked again later
	                */
};

/* Answers of grow. */
enum rig_grown {
	RIG_GROWN, /* made; the next room puts it into the queues */
	RIG_SHORT, /* the device lacks *short_bytes; asked again later */
};

/* ---- Cold functions ------------------------------------------------------------------------------------ */

struct rig_driver_module {
	uint32_t version; /* RIG_EDGE_VERSION */
	/* The driver's identity: devices of one key may map each other's memory. Compared by address. */
	const struct rig_key *key;

	/* Fills *facts; called once. 0 or RIG_FAULT. */
	int (*facts)(void *device, struct rig_facts *facts, const char **fault);

	/* A region of at least `bytes` > 0 of `kind`, contents unspecified. 0, -ENOMEM (none now) or
	 * RIG_FAULT. */
	int (*alloc)(void *device, enum rig_memory kind, uint64_t bytes, void **region, const char **fault);

	/* Gives back a region of alloc, map_host or map_peer, or a word of the driver's own, which no work
	   uses. After stop: not counted, and only once the word shows the last submitted value. 0 or
	   RIG_FAULT. */
	int (*free)(void *device, void *region, const char **fault);

	/* Where a region lies. Not counted, any time until the region is freed. */
	void (*locate)(void *device, void *region, struct rig_location *location);

	/* Whether `device` can map RIG_DEVICE memory of `other`, another device of this driver, and
	   RIG_MAPPED, which is the other's too; of some of it map_peer may still say never. May say why not
	   in rig_error(). Not counted. */
	bool (*peer)(void *device, void *other);

	/* A region on `device` over `region` of `other`. An enum rig_mapping or RIG_FAULT. May be NULL if
	   peer never answers true. */
	int (*map_peer)(void *device, void *other, void *region, void **mapped, const char **fault);

	/* A region over `bytes` > 0 of host memory from the page start `host`. An enum rig_mapping or
	 * RIG_FAULT. */
	int (*map_host)(void *device, void *host, uint64_t bytes, void **region, const char **fault);

	/* An enum rig_dma_kind or RIG_FAULT. */
	int (*dma)(void *device, void *region, struct rig_dma_answer *answer, const char **fault);

	/* Takes a binary. 0 with *code, RIG_FAULT, or a negative errno (-ENOEXEC: not a binary of this
	   device) with the reason in rig_error(), the device unharmed. */
	int (*load)(
	        void *device, const void *binary, size_t bytes, struct rig_code *code, const char **fault);

	/* The function `name` of a loaded image, with all that its launches need made. The first call for a
	   name may block; later ones make nothing. An enum rig_entry_kind or RIG_FAULT. */
	int (*entry)(void *device, void *image, const char *name, struct rig_entry *entry,
	        uint64_t *short_bytes, const char **fault);

	/* Ends an image that no work runs. After stop as `free`. 0 or RIG_FAULT. */
	int (*unload)(void *device, void *image, const char **fault);

	/* Grows the queues for parts and waits that room answered RIG_GROW. An enum rig_grown or RIG_FAULT.
	 */
	int (*grow)(void *device, const struct rig_part *parts, uint32_t nparts, uint32_t nwaits,
	        uint64_t *short_bytes, const char **fault);

	/* The last value the device shows, with acquire order; asked only where the word is the driver's own.
	   Also after stop. 0 or RIG_FAULT. */
	int (*signaled)(void *device, uint64_t *value, const char **fault);

	/* Blocks on the device's events until the word differs from `seen`, at most still_ms milliseconds;
	   may return early. 0 ms: a look that does not block. RIG_FAULT once the device faulted. May run
	   beside every hot call. */
	int (*sleep)(void *device, uint64_t seen, uint64_t still_ms, const char **fault);

	/* Ends the device: called once, with no counted call in flight. `reason` is the fault's or the hang's
	   text, or NULL. Never waits for work. Raises the word to the last submitted value once no work can
	   run. */
	void (*stop)(void *device, const char *reason);

	/* The last call: after stop and every free and unload. */
	void (*release)(void *device);
};

/*
 * An opener makes devices of one name. Making an opener does no I/O.
 *
 * `make` opens the device with its timeline word at `word`: its values start after what the word holds when
 * make returns, which may raise the word and never lowers it. 0 with *device, or a negative errno with the
 * reason in `why` (why_bytes bytes, always terminated); then nothing is left open and no work writes the
 * word. A make that may take a lock refuses with -EINVAL while rig_locks_held() is not 0. Who calls make owns
 * the device, stops and releases it, and keeps `word` (8 bytes, aligned to 8) alive until release.
 */
struct rig_opener {
	uint32_t version; /* RIG_EDGE_VERSION */
	const char *name; /* without a machine suffix: no '@' */
	const struct rig_driver_module *module;
	int (*make)(void *arg, rig_atomic_u64 *word, void **device, char *why, size_t why_bytes);
	void *arg; /* handed to make */
};

/* ---- Io: memory that the host reads and writes through calls ------------------------------------------- */

/* Each function works in the calling thread. Answers: 0 or a negative errno of the host memory alone, which
   loses nothing, or RIG_FAULT. */
struct rig_io_module {
	uint32_t version;
	const struct rig_key *key;
	uint64_t (*budget)(void *device); /* bytes to hold at most; not counted */
	/* 0, -ENOMEM (no room), -EINVAL (makes no memory of its own), RIG_FAULT. */
	int (*alloc)(void *device, uint64_t bytes, void **region, const char **fault);
	int (*free)(void *device, void *region, const char **fault);
	int (*read)(void *device, void *region, uint64_t at, void *dst, uint64_t bytes, const char **fault);
	int (*write)(
	        void *device, void *region, uint64_t at, const void *src, uint64_t bytes, const char **fault);
	/* The region's bytes as host memory in *pages, or NULL there if it never has any. */
	int (*pages)(void *device, void *region, void **pages, const char **fault);
	void (*prefetch)(void *device, void *region, uint64_t at, uint64_t bytes);
	void (*stop)(void *device);
	void (*release)(void *device);
};

struct rig_io_opener {
	uint32_t version;
	const char *name;
	const struct rig_io_module *module;
	int (*make)(void *arg, void **device, char *why, size_t why_bytes);
	void *arg;
};

/* ---- librig_edge --------------------------------------------------------------------------------------- */

/* The reason of this thread's last failed call, "" before any. Valid until the thread's next failing call. */
RIG_API const char *rig_error(void);

/* Sets it, printf-like, truncated to 1,023 bytes; returns `code`, so that a failure is one expression. */
RIG_API int rig_error_set(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* How many of a runtime's locks this thread holds. A runtime keeps the count by rig_locks_add(+1 or -1). */
RIG_API unsigned rig_locks_held(void);
RIG_API void rig_locks_add(int change);

/* The clock of profiles and times: CLOCK_MONOTONIC in nanoseconds. */
RIG_API uint64_t rig_now_ns(void);

/* The process's array of RIG_WORD_COUNT words, page-aligned, zeroed at first use; NULL (with rig_error) if it
   cannot be made. In a forked child it is a private copy. */
RIG_API rig_atomic_u64 *rig_words(void);

/* The descriptor of the array's memory, for a device to map; the library's own, never closed by callers. In a
   forked child that of its copy; -1 where none could be made. */
RIG_API int rig_words_fd(void);

/* Defined by librig alone; drivers test the weak symbol. A driver thread that runs compiled host code calls
   it first, so that the thread sees code another core wrote. */
void rig_code_sync(void) __attribute__((weak));

/* ---- Helpers ------------------------------------------------------------------------------------------- */

static inline uint64_t rig_word_load(const rig_atomic_u64 *word)
{
	return __atomic_load_n((const uint64_t *)(const void *)word, __ATOMIC_ACQUIRE);
}

/* Raises *word to at least `value`, with release order; never lowers it. */
static inline void rig_word_raise(rig_atomic_u64 *word, uint64_t value)
{
	uint64_t *at = (uint64_t *)(void *)word;
	uint64_t seen = __atomic_load_n(at, __ATOMIC_RELAXED);

	while (seen < value &&
	        !__atomic_compare_exchange_n(at, &seen, value, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

static inline const struct rig_driver *rig_driver_of(const void *edge)
{
	return *(const struct rig_driver *const *)edge;
}

static inline const struct rig_block *rig_launch_block(
        const struct rig_run *run, const struct rig_launch_part *launch)
{
	return (const struct rig_block *)(const void *)((const uint8_t *)run->args + launch->block);
}

/* Copies a launch's parameter bytes to `dst`, which may be device memory and is only written, each ref's slot
 * address added. The runtime has checked every bound. */
static inline void rig_launch_params(
        void *dst, const struct rig_run *run, const struct rig_launch_part *launch)
{
	const uint8_t *params = (const uint8_t *)run->args + launch->block + sizeof(struct rig_block);
	uint32_t i;

	rig_wide_put(dst, params, launch->params);
	for (i = 0; i < launch->nrefs; i++) {
		uint64_t offset;

		memcpy(&offset, params + launch->refs[i].at, sizeof(offset));
		offset += run->slots[launch->refs[i].slot].address;
		rig_wide_put((uint8_t *)dst + launch->refs[i].at, &offset, sizeof(offset));
	}
}

#ifdef __cplusplus
}
#endif

#endif
