/* SPDX-License-Identifier: MIT */
/*
 * The port interface: what the driver asks of a board, and what it offers to one.
 *
 * A *board* is one constant table for a family of chips: which functions it drives, how they boot, what
 * memory and queues they have, and how work becomes packets. The driver owns everything that is not about the
 * chip: memory pools, address space, room, order between queues, the timeline word, the poller, loss and
 * stop. A board knows no VFIO.
 *
 * A *port* is one board on one taken function, from boot to the end. The driver hands it to every function of
 * the table; `state` is the board's own.
 *
 * Threads: boot stages, describe, halt and the cold functions run one at a time. completed, failed, fault,
 * alive, arm and clock may run beside everything. check, step, part and ring run one at a time for each port
 * (the contract's hot calls); they allocate nothing, block on nothing and make no system call where windows
 * are mapped.
 *
 * Errors: 0 or a negative errno with the text in rig_error(), which names the register or bound.
 */
#ifndef RIG_BOARD_H
#define RIG_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rig_edge.h"
#include "rig_win.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RIG_BOARD_VERSION 1u

/* Limits of the driver's own arrays. */
#define RIG_BOARD_QUEUES 8u
#define RIG_BOARD_POOLS  4u

struct rig_mmu_format; /* a page-table format: src/mmu */
struct rig_pci;        /* the taken function: src/vfio */
struct rig_log;

/* The most bytes of an image's path, with its end. */
#define RIG_FIRMWARE_PATH 4096u

struct rig_port {
	struct rig_pci *function;
	const struct rig_log *log;
	void *state;              /* the board's, state_bytes, zeroed before the first stage */
	const char *firmware_dir; /* where alone images are looked for, or NULL */
	unsigned boot_ms;         /* the deadline of each boot stage that waits */
	bool all_messages;        /* tests: no window is mapped */
};

struct rig_board_id {
	uint16_t vendor, device;
};

/* One step of booting, in table order. Runs once; on failure the stages before are undone by halt. */
struct rig_board_stage {
	const char *name; /* for messages: "firmware" */
	int (*run)(struct rig_port *port);
};

/* A range of board memory that the driver hands out. Pools neither overlap nor touch what the board keeps. */
struct rig_board_pool {
	uint64_t pa; /* board-physical address of its first byte */
	uint64_t bytes;
	bool visible; /* all of it lies in the memory BAR */
	bool boot;    /* for tables and rings: never mapped for user code, never handed out to programs */
};

/* What a booted board has. Filled by describe; pointers live as long as the port. */
struct rig_board_facts {
	struct rig_queue queues[RIG_BOARD_QUEUES];
	uint32_t nqueues;
	bool has_copy_engine;
	int32_t copy_engine;
	struct rig_board_pool pools[RIG_BOARD_POOLS];
	uint32_t npools;
	unsigned memory_bar;       /* the BAR that shows board memory from physical address 0 */
	uint64_t memory_bar_bytes; /* of it; 0: no BAR does */
	/* rig_win_host of the port's own window on them, which a stage or describe opened: the driver opens
	   none. NULL: they are not mapped, and there is no RIG_MAPPED memory. */
	uint8_t *memory_host;
	/* NULL: no page tables; work uses the two addresses below as they are. */
	const struct rig_mmu_format *format;
	uint64_t board_va;    /* device-virtual address of board-physical 0 in the linear map */
	uint64_t system_va;   /* device-virtual address of bus address 0 */
	unsigned system_bits; /* bus addresses below 2^this fit behind system_va: the function's DMA mask */
	uint64_t stack_va;    /* device-virtual address of the first stack slot */
	/* Of a slot; its stack is at the slot's end. pitch 0: the board has none. */
	uint64_t stack_bytes, stack_pitch;
	uint32_t stack_slots;                /* at most */
	uint32_t unit_bytes;                 /* of the rings: a power of two */
	uint64_t ring_units, ring_units_max; /* at first and at most; powers of two */
	uint64_t segment_bytes;              /* of the argument segment; a power of two; 0: none */
	uint64_t board_address;              /* what a step's address of board-physical 0 is */
	uint64_t system_address;             /* what a step's address of bus address 0 is */
	uint32_t vectors;                    /* interrupt vectors that the driver waits on, from 0 */
	/* The board's clock: its nominal frequency, from which it is off by at most clock_ppm parts per
	   million. It never goes back, and may jump ahead. 0: the board has none, and its work is not
	   timed. */
	uint64_t clock_hz;
	uint32_t clock_ppm;
	/* Of each launch, for the contract's facts. Without a clock there are none. */
	const struct rig_counter *counters;
	uint32_t ncounters;
	int64_t hang_ms;
	bool may_block;       /* doorbells or progress cannot be mapped */
	const char *firmware; /* "1.0.0 (BLAKE2b-256 ...)", for people; NULL: none */
};

/* What the driver asks to be placed on a queue beside parts. Each takes board->step_units units, NOP as many
   as it says. */
enum rig_step_kind {
	RIG_STEP_WAIT,      /* until the 64-bit word at address >= value */
	RIG_STEP_ORDER,     /* until the device has completed `value` */
	RIG_STEP_SIGNAL,    /* raise semaphore `index` to value */
	RIG_STEP_SEMAPHORE, /* until semaphore `index` >= value */
	RIG_STEP_RELEASE,   /* `value` is complete; with address not 0 it is also stored there */
	RIG_STEP_RING,      /* the queue goes on in the ring of value units at address */
	RIG_STEP_STAMP,     /* stores the clock at address */
	RIG_STEP_COUNTERS,  /* stores at address, of the queue's last launch: the clock at its start and at
	                       its end, then the counters' values in the order of the facts */
	RIG_STEP_NOP,       /* does nothing, over `value` units: 1 to step_units, and no more are written */
};

struct rig_step {
	enum rig_step_kind kind;
	uint32_t index;   /* semaphore: one a queue, its index */
	uint64_t address; /* board_address or system_address plus an address */
	uint64_t value;
};

/* What a part takes. */
struct rig_need {
	uint32_t units;
	uint32_t segment_bytes; /* rounded by the driver to 16 */
};

/* Where a part goes. */
struct rig_place {
	void *units;              /* rig_need.units of the queue's ring, contiguous */
	void *segment;            /* rig_need.segment_bytes, as the host writes them; 16-byte aligned */
	uint64_t segment_address; /* and as the device's work addresses them */
	uint64_t value;
};

/* What a rig_fill_part's function gets as its queue context. */
struct rig_fill_context {
	void *units; /* ring_units units, no-ops until written */
	uint32_t ring_units;
	void *segment;
	uint64_t segment_address;
	uint32_t segment_bytes;
};

/* Resolves a copy part's side, or a fixed region's handle, to the address the device's work uses: -EINVAL
   with rig_error() when `bytes` from `offset` leave the region. */
int rig_side_address(
        const struct rig_copy_side *side, const struct rig_run *run, uint64_t bytes, uint64_t *address);

/* A function of an image, as the board's loader found it. */
struct rig_board_function {
	uint64_t offset; /* of its first instruction from the image's start */
	bool has_params, has_threads, has_shared;
	uint32_t params, threads, shared;
};

/* What rig_entry.launch points to, for boards with launches. Lives as long as the image. */
struct rig_launch {
	uint64_t entry;  /* device-virtual */
	uint64_t stacks; /* device-virtual address of the first stack slot */
	struct rig_board_function function;
};

/* Bytes of an operation of a serial board. */
#define RIG_SERIAL_OP_BYTES 64u

/*
 * A board without rings. The driver keeps a queue for it in host memory; its worker, a thread a device, takes
 * parts from there in order, waits for other devices' words, starts one operation after the other and raises
 * the timeline word.
 *
 * Of the table: check and part are as for rings, where a unit is an operation, RIG_SERIAL_OP_BYTES of the
 * port's own layout at a multiple of 8. A part becomes any number of them, which run one after the other.
 * What an operation needs is in it: nothing of the part lives when part returns. segment_bytes of a need is
 * 0, and no queue runs RIG_FILL. failed and fault may be NULL. step_units, poke, root, invalidate,
 * start_value, enable, step, ring, completed and arm are not used.
 *
 * Of the facts: one queue, and vectors is 0 or 1: one interrupt, by MSI-X, MSI or INTx, whichever the
 * function has first. unit_bytes, ring_units, ring_units_max, segment_bytes and may_block are the driver's.
 */
struct rig_serial {
	/* Begins the operation; the one before is complete. A negative errno, with rig_error(), is the
	   device's fault. */
	int (*start)(struct rig_port *port, const void *op);
	/* One look: *done (false before) says whether the operation is complete, and all that it wrote
	   visible to the host. Called after start, after each interrupt, and from time to time. Takes back
	   whatever makes the board interrupt. Errors as start's. */
	int (*poll)(struct rig_port *port, const void *op, bool *done);
};

/* A register by its name, for people. Reading it changes nothing on the board, whatever state that is in. */
struct rig_board_register {
	const char *name; /* "QUEUE0.RING": what stands before the dot is a group */
	uint32_t bar;
	uint32_t offset; /* in the BAR, bytes */
	uint32_t width;  /* 4 or 8 bytes, read by one access */
};

struct rig_board {
	uint32_t version; /* RIG_BOARD_VERSION */
	const char *arch;
	const struct rig_board_id *ids;
	uint32_t nids;
	/* Bits of the bus addresses that every function of the family forms at least: describe says no less.
	   rigctl doctor judges by it without the device. 0: unknown. */
	uint32_t dma_bits;
	size_t state_bytes;
	const struct rig_board_stage *stages;
	uint32_t nstages;
	uint32_t step_units;             /* units of each step */
	const struct rig_serial *serial; /* NULL: the board has rings */

	/* After the stages. */
	int (*describe)(struct rig_port *port, struct rig_board_facts *facts);

	/* Writes board memory of a boot pool, also where the memory BAR is not mapped: page tables. */
	int (*poke)(struct rig_port *port, uint64_t pa, const void *bytes, uint64_t count);

	/* Tables: where the root is; then, after each change of a valid entry, an invalidation that has taken
	   effect when it returns (bytes 0: everything). */
	int (*root)(struct rig_port *port, uint64_t pa);
	int (*invalidate)(struct rig_port *port, uint64_t va, uint64_t bytes);

	/* Values start after `value`. Called once, before any queue is enabled. */
	int (*start_value)(struct rig_port *port, uint64_t value);
	/* A queue reads `units` units at step address `ring`, from position 0. */
	int (*enable)(struct rig_port *port, uint32_t queue, uint64_t ring, uint64_t units);

	/* Hot. check answers RIG_FITS with *need, or RIG_NEVER with rig_error(). The run may be NULL where no
	   part names a slot and none is a launch. part answers 0, or nonzero from a fill. */
	int (*check)(struct rig_port *port, const struct rig_part *part, const struct rig_run *run,
	        struct rig_need *need);
	void (*step)(struct rig_port *port, void *units, const struct rig_step *step);
	int (*part)(struct rig_port *port, const struct rig_part *part, const struct rig_run *run,
	        const struct rig_need *need, const struct rig_place *place);
	void (*ring)(struct rig_port *port, uint32_t queue, uint64_t position);

	/* Progress. completed answers the last completed value; all ones when the function is gone. */
	uint64_t (*completed)(struct rig_port *port);
	bool (*failed)(struct rig_port *port);
	/* The fault in one line, once failed answered true. */
	void (*fault)(struct rig_port *port, char *text, size_t bytes);
	/* Whether the function is still there and as the stages left it: 0, or -ENODEV with the reason in
	   rig_error() ("it was reset from outside"). A look at a register or two, which may be messages:
	   asked when failed answered true, and some ten times a second while work is out and nothing
	   completes. NULL: the driver reads the vendor id. */
	int (*alive)(struct rig_port *port);
	/* Ask for an interrupt once a value above `seen` completes. */
	void (*arm)(struct rig_port *port, uint64_t seen);
	/* The clock now, by one read of a register; all ones when the function is gone. NULL: clock_hz is
	   0. */
	uint64_t (*clock)(struct rig_port *port);

	/* Code; all NULL where the board runs none. image_bytes: how many bytes the binary takes on the
	   device, or a negative errno. place: those bytes, for the device-virtual address `base`. find: a
	   function, -ENOENT if absent. Pure functions of the binary. */
	int (*image_bytes)(const void *binary, size_t bytes, uint64_t *need);
	int (*image_place)(const void *binary, size_t bytes, uint64_t base, uint8_t *buffer);
	int (*image_find)(
	        const void *binary, size_t bytes, const char *name, struct rig_board_function *function);

	/* Stops everything that runs, as far as registers can; never waits for work. Also after a stage that
	   failed. */
	void (*halt)(struct rig_port *port);

	/* For rigctl regs; may be NULL. */
	const struct rig_board_register *registers;
	uint32_t nregisters;
};

/* ---- Services ------------------------------------------------------------------------------------------ */

/* A window on a BAR of the port's function; as rig_pci_window. Valid as long as the port. */
RIG_API int rig_port_window(struct rig_port *port, unsigned bar, uint64_t offset, uint64_t bytes,
        unsigned flags, struct rig_win *win);

/* (register & mask) == want, for rig_port_wait32. */
struct rig_port_until {
	uint64_t offset; /* of a 32-bit register */
	uint32_t mask, want;
	const char *what; /* its name, for messages */
};

/* Polls until `until` holds: 0. -ECANCELED once `unless` (may be NULL) holds instead, -ETIMEDOUT after the
   port's boot_ms, -ENODEV once the function is gone; the text names the register, the mask and the last
   value. */
RIG_API int rig_port_wait32(struct rig_port *port, const struct rig_win *win,
        const struct rig_port_until *until, const struct rig_port_until *unless);

struct rig_firmware {
	uint8_t *bytes; /* the whole file; the caller frees them */
	size_t count;
	char path[RIG_FIRMWARE_PATH]; /* that was read, for messages */
};

/* Reads the firmware image `name` from port->firmware_dir if there is one, else from the folder that
   RIG_FIRMWARE_DIR names if it does, else from the build folder or the installed folder. -ENOENT names every
   place that was tried. */
RIG_API int rig_port_firmware(struct rig_port *port, const char *name, struct rig_firmware *image);

/* Stores into host memory as a DMA write of the function to bus address `iova` would, for ports whose host
   does a part of the board's work: all of it, or -EFAULT (not mapped for the function) or -EACCES. From the
   worker. */
RIG_API int rig_port_dma_write(struct rig_port *port, uint64_t iova, const void *bytes, uint64_t count);

/* Writes what people call the code at device-virtual `pc` of a launch of `entry`: "NAME+0x..." if a loaded
   image's function that was asked for starts at `entry` ("NAME-0x..." for a function that it called and that
   lies before it), "NAME (ENTRY)" if pc is nowhere near, else the entry's address. */
RIG_API void rig_port_code_name(struct rig_port *port, uint64_t entry, uint64_t pc, char *name, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
