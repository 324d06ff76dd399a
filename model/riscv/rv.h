/* SPDX-License-Identifier: MIT */
/*
 * A RISC-V interpreter: RV64IMAFDC_Zicsr_Zifencei, user level, of the unprivileged specification 20191213.
 *
 * Concepts. A *hart* (struct rv_hart) is the register state of one hardware thread and belongs to the caller.
 * A *bus* (struct rv_bus) is one address space with its caches: soft TLBs for loads and for stores, and
 * decoded code. Any number of harts run on one bus, one at a time: rv_run() executes one hart until it stops.
 * What addresses, CSRs and environment calls mean is the caller's, by callbacks.
 *
 * Threads. A bus and the harts running on it are used by one host thread at a time. Different buses are
 * independent and may show the same host memory: aligned loads, stores and atomics of the guest are single
 * host accesses of that width (plain ones relaxed, atomics and fences sequentially consistent), so other
 * threads and other processes may use that memory concurrently.
 *
 * Trust. Guest code is hostile: whatever it does, rv_run() returns after `budget` instructions at most, each
 * of which takes bounded time (callbacks excepted), touches no host memory except through the pages
 * translate() gave, and changes no host state but the sticky floating-point exceptions.
 *
 * The host must be little-endian, and round to nearest without trapping, the default of every C program.
 */
#ifndef RV_H
#define RV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RV_PAGE_SIZE 4096u /* the unit of translate() */
#define RV_XREGS     32u
#define RV_FREGS     32u

struct rv_bus; /* opaque */

/* Why an address is used. LR counts as a load, SC and every AMO as a store (which may also read). */
enum rv_access {
	RV_FETCH,
	RV_LOAD,
	RV_STORE,
};

/* What translate() found. */
enum rv_map {
	RV_MAP_FAULT, /* nothing there, or this access is not allowed */
	RV_MAP_HOST,  /* host memory: *host is set */
	RV_MAP_MMIO,  /* no host memory: load() and store() are called; never executable */
};

/* Why rv_run() came back. "At" leaves pc at the instruction, which had no effect and is not counted;
 * "after" leaves pc behind it, executed and counted. */
enum rv_stop {
	RV_BUDGET,  /* the budget is used up (or, rarely, the next instruction is an atomic that lost against
		     * other threads many times); call again to go on */
	RV_ECALL,   /* at an ecall */
	RV_EBREAK,  /* at an ebreak or c.ebreak (cause.length tells) */
	RV_ILLEGAL, /* at an instruction that does not exist, or may not be executed; cause.bits */
	RV_FAULT,   /* at an instruction whose fetch or access failed; cause.address, .access, .misaligned */
	RV_CUSTOM,  /* after an instruction of major opcode custom-0 (0x0B), which the interpreter gives no
		     * meaning; cause.bits. The caller may read and write the registers it names. */
	RV_WFI,     /* after a wfi */
};

/* Details of the last stop. Fields a stop does not name are zero. */
struct rv_cause {
	uint64_t address; /* RV_FAULT: the first byte that failed, e.g. the start of the second page of an
				* access across pages; of a fetch: pc, or the page behind pc when the second
				* half of an instruction failed */
	enum rv_access access; /* RV_FAULT */
	bool misaligned;       /* RV_FAULT: an atomic whose address is no multiple of its width */
	uint32_t bits;         /* the instruction, 16 or 32 bits (of every stop but RV_BUDGET and RV_FAULT) */
	unsigned length;       /* its length in bytes, 2 or 4, like bits */
};

/* What a hart did since rv_hart_init(). The interpreter never resets it; the caller may set any value. */
struct rv_count {
	uint64_t instructions;  /* executed; a faulting instruction does not count */
	uint64_t bytes_read;    /* by loads and atomics, not by fetches */
	uint64_t bytes_written; /* by stores and atomics; a failed sc writes nothing */
	uint64_t stalls; /* cycles beyond one an instruction and one per 8 bytes moved: see rv_cycles() */
};

struct rv_hart {
	uint64_t
	        x[RV_XREGS + 1]; /* x[0] is set to 0 by rv_run(); the extra last one is scratch of rv_run() */
	uint64_t f[RV_FREGS];    /* single precision is NaN-boxed: the upper half is all ones */
	uint64_t pc;             /* bit 0 is ignored */
	uint32_t fcsr;           /* fflags in bits 4:0 (NV DZ OF UF NX), frm in bits 7:5, the rest 0 */
	struct rv_count count;
	struct rv_cause cause; /* of the last rv_run() */
	void *user;            /* the caller's; not touched */

	/* The interpreter's: the reservation of lr. */
	uint64_t reserved_address;
	uint64_t reserved_value;
	unsigned reserved_width; /* 0: none */
};

/* Callbacks, called on the thread of rv_run() with the ctx of rv_bus_alloc(). All but translate() may call
 * rv_bus_flush(); none may call rv_run() or rv_bus_free() of the same bus. */
struct rv_bus_ops {
	/* Mandatory. Where the page of `page_va` (a multiple of RV_PAGE_SIZE) is for this access. RV_MAP_HOST
	 * sets *host to RV_PAGE_SIZE bytes, aligned to at least 8, which stay valid until the page is
	 * flushed; the answer is cached until then. Faults and RV_MAP_MMIO are asked again on each access. */
	enum rv_map (*translate)(void *ctx, uint64_t page_va, enum rv_access access, void **host);

	/* Optional as a pair; without them RV_MAP_MMIO is a fault. `width` is 1, 2, 4 or 8 and `va` a
	 * multiple of it: a misaligned access arrives as single bytes, an atomic as a load followed by a
	 * store. `value` is zero-extended. False is an access fault at va. */
	bool (*load)(void *ctx, uint64_t va, unsigned width, uint64_t *value);
	bool (*store)(void *ctx, uint64_t va, unsigned width, uint64_t value);

	/* Optional. CSRs other than fflags, frm, fcsr, cycle, time and instret. False: the CSR does not exist
	 * (RV_ILLEGAL). csr_write is never called for the read-only range (bits 11:10 both set). A
	 * read-modify-write calls csr_read, then csr_write. The registers of `hart` are current, its count is
	 * not to be changed. */
	bool (*csr_read)(void *ctx, struct rv_hart *hart, unsigned csr, uint64_t *value);
	bool (*csr_write)(void *ctx, struct rv_hart *hart, unsigned csr, uint64_t value);

	/* Optional. The `time` CSR; without it, time is rv_cycles(). */
	uint64_t (*time)(void *ctx);
};

/* A bus with empty caches. `ops` and `ctx` must outlive it. About 2 MiB of address space, touched as code is
 * decoded. 0 or -ENOMEM, -EINVAL (no translate). */
int rv_bus_alloc(struct rv_bus **bus, const struct rv_bus_ops *ops, void *ctx);

/* Accepts NULL. */
void rv_bus_free(struct rv_bus *bus);

/*
 * Forget what was cached about [va, va + length): translations, decoded code. The next access asks
 * translate() and reads memory again. Must be called when a translation or a permission changes, and when
 * code was changed by anybody but a hart that then executes fence.i. Any va and length; the range is widened
 * to pages and clipped at the end of the address space. length 0 flushes nothing. Cost: about a thousand
 * comparisons.
 */
void rv_bus_flush(struct rv_bus *bus, uint64_t va, uint64_t length);

/* The same for everything; constant time. */
void rv_bus_flush_all(struct rv_bus *bus);

/* All zero: registers, pc, fcsr (round to nearest), counters, no reservation, user NULL. */
void rv_hart_init(struct rv_hart *hart);

/*
 * Execute at most `budget` instructions of `hart` from hart->pc. On return the registers, pc and counters are
 * those of a point between two instructions. budget 0 answers RV_BUDGET and does nothing.
 *
 * Plain loads and stores may be misaligned and may cross pages (then not atomic; a store that faults on
 * either page changes nothing, MMIO excepted). Atomics must be aligned. fence.i makes stores to code visible
 * to every hart of the bus. Code changed without it is seen at once, later or in parts.
 *
 * Reservations: sc succeeds when it follows the hart's own lr of the same address and width, no other hart
 * ran on this bus in between, and memory still holds the value lr read (by one compare-and-swap, which is how
 * foreign threads and processes are noticed). Harts sharing a bus need budgets longer than their lr/sc loops,
 * or no such loop ever ends.
 */
enum rv_stop rv_run(struct rv_bus *bus, struct rv_hart *hart, uint64_t budget);

/*
 * The cost model of the cycle CSR: one cycle an instruction, one per 8 bytes loaded or stored (rounded down
 * over the hart's life), and these stalls: multiplication 2, division and remainder 20, floating-point
 * arithmetic and conversion 3, floating-point division and root 20, atomics 10, fence 5, fence.i 50. It
 * orders programs by work; it is no measurement of anything.
 */
uint64_t rv_cycles(const struct rv_hart *hart);

#ifdef __cplusplus
}
#endif

#endif
