/* SPDX-License-Identifier: MIT */
/*
 * librig: devices, memory and work on the program's side of the driver contract (rig_edge.h).
 *
 * Concepts
 *   device      Memory and, usually, a processor, opened by a driver's *opener* (rig_vfio.h makes some).
 *   value       A device's work is one sequence of submissions, numbered in order of submission. Value v is
 *               *reached* once the work of every value up to v is complete; no work of v starts before all
 *               work of v - 1 is complete.
 *   point       (device, value) in one word. Points order work across devices and are what one waits for.
 *   buffer      A range of a device's memory. Views and borrows share one memory. Each memory remembers the
 *               points that last wrote and last used it, and the library orders work by them: a read follows
 *               the last write, a write follows every use. Nothing else needs to be said.
 *   image       Compiled code, loaded on a device.
 *   submission  Parts of work, checked and placed on queues once (make) and submitted any number of times.
 *   run         What one submit brings: grids, parameters, buffers. Reusable, one submit at a time.
 *   lost        A device ends once, for good: a fault of its driver, a hang, a close, a fork. Work it had not
 *               reached is lost with it; uses of it, of its memory and of unreached points answer RIG_LOST.
 *               Other devices go on, unless their queues wait for an unreached value of it.
 *
 * Answers. Functions that return int answer 0 or a negative errno; the reason is in rig_error(), which names
 * the argument, its bound and what to do. -EINVAL: misuse, and nothing happened. RIG_LOST: the device, or one
 * whose point is needed, is lost. -ENOMEM: no memory, after the caches were given back. In a forked child
 * every inherited device is lost and its objects only count references. The library never prints or exits.
 *
 * Threads. Every function may be called from any thread, at any time. A function that may block says so.
 * Blocking functions are not interrupted by signals.
 *
 * Ownership. Objects are reference-counted: `_get` adds a reference, `_put` drops one (NULL is allowed), and
 * whatever made an object hands one reference to the caller. An object keeps what it is made of. Putting
 * never blocks on work: memory, code and kept objects are given back once the work that uses them is done.
 */
#ifndef RIG_H
#define RIG_H

#include <errno.h>
#include "rig_edge.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The answer for a lost device. rig_error() starts with the device's name and carries the reason. */
#define RIG_LOST (-ENODEV)

/* Values are below this bound. */
#define RIG_VALUE_BITS 47u

struct rig_device;
struct rig_buffer;
struct rig_image;
struct rig_submission;
struct rig_run_args; /* a run (rig_edge.h's struct rig_run is what a driver sees of it) */

/* ---- Points ---- */

/* A device's slot in the word array in bits 47 to 62 and a value in the others; all zero is no point, which
   is always reached. Points never repeat in a process. */
struct rig_point {
	uint64_t bits;
};

static inline uint32_t rig_point_slot(struct rig_point point)
{
	return (uint32_t)(point.bits >> RIG_VALUE_BITS);
}

static inline uint64_t rig_point_value(struct rig_point point)
{
	return point.bits & ((UINT64_C(1) << RIG_VALUE_BITS) - 1);
}

/* Whether the point is reached: 1, 0, RIG_LOST (it never will be) or -EINVAL (no such point). Neither blocks
   nor commits. */
RIG_API int rig_reached(struct rig_point point);

/* Blocks until the point is reached. 0, RIG_LOST or -EINVAL. A point that is reached already costs no system
   call, no lock and no allocation. */
RIG_API int rig_wait(struct rig_point point);

/* The same for a value of a device, at most rig_submitted. */
RIG_API int rig_wait_device(struct rig_device *device, uint64_t value);

/* ---- Devices ---- */

struct rig_open_options {
	uint32_t version; /* RIG_EDGE_VERSION */
	/* The nanosecond clock of the hang bound; NULL: rig_now_ns. */
	uint64_t (*now)(void *arg);
	void *arg;
	/* The hang bound in milliseconds instead of the driver's own; 0: the driver's, -1: none. */
	int64_t hang_ms;
	/* Runs the hang clock in a thread of the library also while nobody waits. */
	bool watchdog;
	/* Of another machine's device: the device's name is the opener's, '@' and this. NULL: of this one. */
	const char *machine;
};

/*
 * Opens the opener's device. Blocks while another thread opens the same name, and for the stop of an earlier,
 * lost device of that name. `options` may be NULL. The opener is not kept; its argument is used during the
 * call alone.
 *
 * -EBUSY: a device of that name is open in this process. -EINVAL: another contract version (the text names
 * both), facts out of their bounds, or the thread holds a lock of the library (a fill that opens). Else the
 * errno of the opener's make, or -EIO if the driver faulted, with its text. Nothing is left open. -ECANCELED
 * after rig_fail. -ENOSPC: no slot is left.
 *
 * A device stays open until rig_close, even with no reference left (rig_devices finds it).
 */
RIG_API int rig_open(const struct rig_opener *opener, struct rig_device **device);
RIG_API int rig_open_with(
        const struct rig_opener *opener, const struct rig_open_options *options, struct rig_device **device);

/*
 * Fills *opener with one of a device of host memory; `name` must live until the open returned. Its buffers
 * are anonymous memory that the host addresses and that other devices borrow where they map host memory;
 * its one queue runs copies, in the submitting thread, before the submit returns. So host memory has
 * stamps, a budget (the machine's memory) and a cache as a board's has. Any number may be open, a name
 * once. rig_buffer_of_host on it gives memory of the program's the same.
 */
RIG_API void rig_host_opener(const char *name, struct rig_opener *opener);

/*
 * Opens an Io device: memory that the host reads and writes by calls of a library (files, say) in the calling
 * thread. It is a device with buffers, copies, a budget and a life, but no queues, so it runs no work and
 * none of its buffers is a submission's. A borrow on another device is the library's pages, where its
 * memory has any. As rig_open otherwise.
 */
RIG_API int rig_open_io(const struct rig_io_opener *opener, struct rig_device **device);

/* Waits for the work submitted before the call, loses the device with the reason "closed", and returns once
   the driver stopped it and no thread of the library holds it any more. Blocks. 0, also for a device that is
   closed or lost. The driver gives the hardware up with the last reference, which images, submissions,
   buffers and profiles of the device hold too; when that put has returned, anybody may open it. */
RIG_API int rig_close(struct rig_device *device);

RIG_API struct rig_device *rig_device_get(struct rig_device *device);
RIG_API void rig_device_put(struct rig_device *device);

/* Writes the open devices, in the order of opening, to `devices` (at most `n`, each with a reference of the
   caller's) and returns how many are open, which may be more than `n`. */
RIG_API size_t rig_devices(struct rig_device **devices, size_t n);

/* Facts. They answer also for a lost device; every pointer lives as long as the caller's reference. */
RIG_API const char *rig_name(const struct rig_device *device);
RIG_API const char *rig_arch(const struct rig_device *device);
RIG_API const char *rig_bus(const struct rig_device *device); /* NULL: none */
RIG_API const struct rig_queue *rig_queues(const struct rig_device *device, uint32_t *n);
RIG_API int64_t rig_cache_bytes(const struct rig_device *device); /* 0: unknown */
RIG_API const struct rig_facts *rig_device_facts(const struct rig_device *device);
/* The driver's record under `key`, or NULL if it has none or another key. */
RIG_API const void *rig_capability(const struct rig_device *device, const struct rig_key *key);

/* The most bytes of own memory the device holds at once: live buffers, code and cache. */
RIG_API uint64_t rig_budget(const struct rig_device *device);
/* Sets it and trims the cache to it; live memory is never dropped. */
RIG_API void rig_set_budget(struct rig_device *device, uint64_t bytes);
/* The bytes it holds now, and how many of them are cached for reuse. */
RIG_API uint64_t rig_held_bytes(struct rig_device *device, uint64_t *cached);
/* Gives cached memory back to the driver until at most `keep` bytes are cached. Memory that the device's own
   work still uses stays. */
RIG_API void rig_cache_trim(struct rig_device *device, uint64_t keep);

/* The last value handed over, and the last value known to be reached. */
RIG_API uint64_t rig_submitted(struct rig_device *device);
RIG_API uint64_t rig_signaled(struct rig_device *device);

/* Whether the device is lost; then *reason (if not NULL) is why, for as long as the caller's reference. The
   driver is asked, as by a wait of no time, unless the thread holds a lock of the runtime, as a callback. */
RIG_API bool rig_lost(struct rig_device *device, const char **reason);

/* Loses every device with this reason and refuses every later open. */
RIG_API void rig_fail(const char *reason);
/* The reason given to rig_fail, or else of the first loss that was no close; NULL: neither happened. Lives
   until the process ends. */
RIG_API const char *rig_failure(void);

/* ---- Buffers ---- */

enum rig_access {
	RIG_READ,
	RIG_WRITE, /* reads and writes */
};

/*
 * Makes a buffer of the device's memory of that kind, contents unspecified. On a device whose host addresses
 * all of its memory, RIG_PINNED and RIG_MAPPED are RIG_DEVICE. Where there is no RIG_MAPPED memory, it is
 * RIG_PINNED. 0 bytes make a buffer without memory. Comes from the device's cache where it can; otherwise may
 * block for work that holds memory back which may suffice, the earliest first.
 * -ENOMEM: the device's or the budget's memory does not suffice, whatever completes.
 */
RIG_API int rig_buffer_create(
        struct rig_device *device, enum rig_memory kind, uint64_t bytes, struct rig_buffer **buffer);

/*
 * A buffer on the device over `bytes` of host memory from the page start `host`. The memory stays the
 * caller's and must outlive the device's use of it: until the last put and then until the work that used it
 * is done (a wait for it before the put, say). -EINVAL: off a page; -ENOTSUP: the device maps no host memory,
 * or not these pages; -ENOMEM: no room for the mapping now.
 */
RIG_API int rig_buffer_of_host(
        struct rig_device *device, void *host, uint64_t bytes, struct rig_buffer **buffer);

/* A buffer over a region that the Io library of `device` made, other than by its alloc (an open file). The
   region is the library's again, by its free, once nothing uses it; on failure it stays the caller's.
   -EINVAL: the device's library has another key. */
RIG_API int rig_buffer_of_io(struct rig_device *device, const struct rig_key *key, void *region,
        uint64_t bytes, struct rig_buffer **buffer);
/* The region of a buffer of an Io device, or NULL if the device's library has another key. */
RIG_API void *rig_buffer_io_region(const struct rig_buffer *buffer, const struct rig_key *key);
/* Hints that work will read the bytes of a buffer of an Io device, or of a borrow of one. Waits for
   nothing. */
RIG_API int rig_buffer_prefetch(struct rig_buffer *buffer, uint64_t offset, uint64_t bytes);

/* A buffer on `device` over the memory of `buffer`, a buffer of another device: by the drivers' peer mapping,
   or as host memory. -ENOTSUP if neither works. */
RIG_API int rig_buffer_borrow(
        struct rig_device *device, struct rig_buffer *buffer, struct rig_buffer **borrowed);

/* The `bytes` from `offset` as a buffer of its own. -EINVAL out of bounds. */
RIG_API int rig_buffer_view(
        struct rig_buffer *buffer, uint64_t offset, uint64_t bytes, struct rig_buffer **view);

RIG_API struct rig_buffer *rig_buffer_get(struct rig_buffer *buffer);
RIG_API void rig_buffer_put(struct rig_buffer *buffer);

RIG_API struct rig_device *rig_buffer_device(const struct rig_buffer *buffer); /* no reference is added */
RIG_API uint64_t rig_buffer_bytes(const struct rig_buffer *buffer);
/* As the device's work addresses its first byte; 0 if it has no address. */
RIG_API uint64_t rig_buffer_address(const struct rig_buffer *buffer);
/* Its first byte as the host addresses it, or NULL. rig_buffer_wait says when it may be touched. */
RIG_API void *rig_buffer_host(const struct rig_buffer *buffer);

/* Blocks until the host may read (no work that writes it is unreached) or write it (no work uses it). */
RIG_API int rig_buffer_wait(struct rig_buffer *buffer, enum rig_access access);

/*
 * How another PCI function reaches the buffer: rig_edge.h's answer, where `offset` is that of the buffer's
 * first byte, in the dma-buf or from the start of the first range. Returns the kind (RIG_BUS, RIG_DMABUF,
 * RIG_NO_DMA with a reason) or a negative errno. A RIG_DMABUF's fd is the caller's. Memory whose bus
 * addresses were given out is no other buffer's as long as the process runs.
 */
RIG_API int rig_buffer_dma(struct rig_buffer *buffer, struct rig_dma_answer *answer);

/* Copies between the caller's memory and the buffer, after the work submitted before. Blocks until the bytes
   have moved. -EINVAL out of bounds. */
RIG_API int rig_buffer_write(struct rig_buffer *buffer, uint64_t offset, const void *src, uint64_t bytes);
RIG_API int rig_buffer_read(struct rig_buffer *buffer, uint64_t offset, void *dst, uint64_t bytes);

/* Copies between buffers, of any devices. Blocks until the bytes have moved. -EINVAL: out of bounds, or two
   ranges of one memory (of one buffer, say, or of two views) that overlap and are not the same. */
RIG_API int rig_buffer_copy(struct rig_buffer *dst, uint64_t dst_offset, struct rig_buffer *src,
        uint64_t src_offset, uint64_t bytes);

/* The same, handed to a device's copy queue where one device reaches both sides: *point is when it is done.
   Otherwise the bytes have moved on return and *point is no point. */
RIG_API int rig_buffer_copy_async(struct rig_buffer *dst, uint64_t dst_offset, struct rig_buffer *src,
        uint64_t src_offset, uint64_t bytes, struct rig_point *point);

/* ---- Images ---- */

/* Loads a binary of the device's architecture. `binary` is read during the call. Blocks until the code is in
   place. The driver's errno and text for what is no such binary (-ENOEXEC); -ENOMEM. */
RIG_API int rig_image_load(
        struct rig_device *device, const void *binary, size_t bytes, struct rig_image **image);
/* The same from a file. */
RIG_API int rig_image_load_file(struct rig_device *device, const char *path, struct rig_image **image);

RIG_API struct rig_image *rig_image_get(struct rig_image *image);
RIG_API void rig_image_put(struct rig_image *image);

/* A function of the image. The first call for a name may block. -ENOENT: no such function; -ENOMEM: no memory
   for what its launches need. `entry` is as valid as the image. */
RIG_API int rig_image_entry(struct rig_image *image, const char *name, struct rig_entry *entry);

/* ---- Submissions ---- */

/* A side of a copy: a buffer of the run (slot), or a fixed one (slot RIG_FIXED and buffer). */
struct rig_side {
	uint32_t slot;
	struct rig_buffer *buffer; /* with RIG_FIXED; the submission keeps it */
	uint64_t offset;           /* bytes from the buffer's first byte */
	uint64_t pitch;            /* bytes from row to row; 0: row_bytes */
};

struct rig_words_work {
	const uint32_t *words;
	uint32_t count; /* at least 1 */
};

/* Bytes that both sides reach are unspecified afterwards. */
struct rig_copy_work {
	struct rig_side dst, src; /* src unused by a fill */
	uint64_t row_bytes;       /* at least 1 */
	uint64_t rows;            /* at least 1 */
	bool fill;                /* every byte of the rows becomes `byte` */
	uint8_t byte;
};

struct rig_launch_work {
	struct rig_image *image;
	const char *function;
	uint32_t params; /* parameter bytes, at most RIG_PARAMS; set by rig_run_params */
	/* Where among the parameters addresses of the run's buffers are added, to the offset found there. */
	const struct rig_ref *refs;
	uint32_t nrefs;
};

/* A part of a submission. `after` are indices of earlier parts that it follows; parts of one queue run in
   their order anyway. */
struct rig_work {
	enum rig_kind kind;
	const uint32_t *after;
	uint32_t nafter;
	union {
		struct rig_words_work words;
		/* `arg` must live as long as the submission: rig_submission_keep. */
		struct rig_fill_part fill;
		struct rig_copy_work copy;
		struct rig_launch_work launch;
	} u;
};

/* Memory that every run of the submission uses, such as what addresses in its words or parameters name. */
struct rig_fixed {
	struct rig_buffer *buffer;
	enum rig_access access;
};

struct rig_description {
	uint32_t version; /* RIG_EDGE_VERSION */
	const struct rig_work *parts;
	uint32_t nparts; /* 0: an empty submission, which only takes a value */
	/* A run's buffers: slots 0 to reads - 1 are read, reads to reads + writes - 1 are read and
	   written. */
	uint32_t reads, writes;
	const struct rig_fixed *fixed; /* buffers of the same device; the submission keeps them */
	uint32_t nfixed;
};

/*
 * Prepares work for the device: places each part on a queue and checks everything that can be checked before
 * a run. `description` and everything in it but the objects is copied, words and refs too. -EINVAL with the
 * part's index and the bound; -ENOENT for an unknown function; -ENOTSUP for work no queue runs.
 */
RIG_API int rig_submission_make(struct rig_device *device, const struct rig_description *description,
        struct rig_submission **submission);
RIG_API struct rig_submission *rig_submission_get(struct rig_submission *submission);
RIG_API void rig_submission_put(struct rig_submission *submission);

/* Calls put(object) once, when the submission's last reference is gone and its work is done, or, after a loss
   of the device, can no longer run. Called from some later call of the library, with no lock held, and never
   in a forked child. -ENOMEM: not kept. */
RIG_API int rig_submission_keep(struct rig_submission *submission, void *object, void (*put)(void *object));

/* Makes a run of the submission: grids and groups are 1 x 1 x 1, parameters and shared bytes are 0, buffers
   are unset. What is set stays set from submit to submit. */
RIG_API int rig_run_make(struct rig_submission *submission, struct rig_run_args **run);
RIG_API void rig_run_put(struct rig_run_args *run);

/* Setters: -EINVAL out of bounds or if `part` is no launch, -EBUSY while a submit uses the run. */
RIG_API int rig_run_grid(struct rig_run_args *run, uint32_t part, uint32_t x, uint32_t y, uint32_t z);
/* -EINVAL also for more threads than the function may have. */
RIG_API int rig_run_group(struct rig_run_args *run, uint32_t part, uint32_t x, uint32_t y, uint32_t z);
RIG_API int rig_run_shared(struct rig_run_args *run, uint32_t part, uint32_t bytes);
/* Writes parameter bytes from byte `at`. */
RIG_API int rig_run_params(
        struct rig_run_args *run, uint32_t part, uint32_t at, const void *params, uint32_t bytes);
/* Sets a slot to a buffer of the submission's device; the run keeps it. NULL unsets it. -EINVAL also for a
   buffer shorter than the submission's copies need. */
RIG_API int rig_run_buffer(struct rig_run_args *run, uint32_t slot, struct rig_buffer *buffer);

/*
 * Hands the run to the device as the work of its next value, after the waits, the last write of each buffer
 * it reads and every use of each it writes; *point (if not NULL) is that value. `run` may be NULL for a
 * submission without slots and launches.
 *
 * Allocates nothing and makes no system call unless it waits: for room in the device's queues, for queues to
 * grow, for a driver that blocks, and for producers that the device's queues cannot wait for.
 *
 * -EINVAL: an unset slot, no such point, or what the driver can never run, with its reason; -EBUSY: the run
 * is in use; -ENOMEM: queues could not grow. Then no value was taken. RIG_LOST: the device, a buffer's device
 * or a point needed is lost.
 */
RIG_API int rig_submit(struct rig_submission *submission, struct rig_run_args *run,
        const struct rig_point *waits, uint32_t nwaits, struct rig_point *point);

/* ---- Profiles ---- */

/*
 * A profile tells what devices did between its start and its stop: when each value's work ran on which queue,
 * each launch that the driver measured, with its counters, and what the host did meanwhile. Profiles nest and
 * overlap. A device of which none is taken pays nothing for it; others pay a system call or two and host
 * memory a submit. Times are rig_now_ns's, as exact as the driver states.
 */
struct rig_profile;

enum rig_event_kind {
	RIG_EVENT_SPAN = 1, /* the work of a value on a queue */
	RIG_EVENT_LAUNCH,   /* a measured launch, within its span */
	RIG_EVENT_COPY,     /* bytes that a call of the program copied, as the calling thread saw it */
	RIG_EVENT_IMAGE,    /* an image loaded */
	RIG_EVENT_MEMORY,   /* what the device holds changed */
};

/* In rig_event.queue: the host did it. */
#define RIG_NO_QUEUE UINT32_MAX

struct rig_event {
	enum rig_event_kind kind;
	uint32_t device; /* as rig_profile_device numbers them */
	uint32_t queue;  /* index into its queues, or RIG_NO_QUEUE */
	uint32_t part;   /* LAUNCH: the part's index */
	uint32_t parts;  /* SPAN: how many parts of the value ran on the queue; 0: the value had none */
	const char *name;
	uint64_t value;           /* SPAN, LAUNCH */
	uint64_t handed;          /* SPAN: when it was handed to the driver */
	uint64_t start, end;      /* MEMORY: both the time of the change */
	uint64_t bytes;           /* COPY, IMAGE, SPAN (what its copies copy); MEMORY: the bytes held */
	uint64_t cached;          /* MEMORY: of these, the bytes cached for reuse */
	const uint64_t *counters; /* LAUNCH: the values of the device's counters, in facts' order */
	uint32_t ncounters;
};

/* What a profile could not tell. */
struct rig_profile_summary {
	uint64_t values;  /* submitted meanwhile */
	uint64_t untimed; /* of them, the driver gave no times, or host memory was short */
	uint64_t lost;    /* of them, open when their device was lost */
	uint64_t dropped; /* events for which host memory was short */
};

/* Starts a profile of `n` devices, or, with n 0, of all that are open. -EINVAL: a device twice; RIG_LOST;
   -ENOMEM. Waits for a driver that blocks in a submit. */
RIG_API int rig_profile_start(struct rig_device *const *devices, uint32_t n, struct rig_profile **profile);

/* Ends it: waits for the work submitted until now and collects its times. Values whose device was lost are
   counted in the summary. Blocks. 0, also for a profile that was stopped. */
RIG_API int rig_profile_stop(struct rig_profile *profile);

/* Of a stopped profile, until its put. Events of one device and queue are in the order of
   their values. -EBUSY before rig_profile_stop. */
RIG_API int rig_profile_events(struct rig_profile *profile, const struct rig_event **events, size_t *n);
RIG_API int rig_profile_summary(struct rig_profile *profile, struct rig_profile_summary *summary);
RIG_API struct rig_device *rig_profile_device(
        struct rig_profile *profile, uint32_t index); /* no reference is added; NULL past the last */

/* Writes it to a file as trace JSON, which Perfetto and Chrome's trace viewer read: a process a device, a
   lane a queue, one for what the host did, and the memory held. -EBUSY before the stop, or the errno of the
   file. */
RIG_API int rig_profile_save(struct rig_profile *profile, const char *path);

/* Stops it, if it was not stopped, without collecting what is under way. NULL is allowed. */
RIG_API void rig_profile_put(struct rig_profile *profile);

/* For drivers: rig_edge.h says when they call it, and that they test its weak symbol. */
RIG_API void rig_code_sync(void);

#ifdef __cplusplus
}
#endif

#endif
