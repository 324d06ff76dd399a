/* SPDX-License-Identifier: MIT */
/*
 * RVX-1 registers and address maps, as docs/rvx1.md revision 1 describes them. Shared by host, firmware and
 * model: numbers only. Everything is little-endian. Offsets are bytes. "RO" registers ignore writes.
 */
#ifndef RVX1_REGS_H
#define RVX1_REGS_H

#include <stdint.h>

/* ---- PCI identity and BARs (manual, section 2) --------------------------------------------------------- */
#define RVX1_PCI_VENDOR      0x1234u
#define RVX1_PCI_DEVICE      0x5258u
#define RVX1_PCI_CLASS       0x120000u /* processing accelerator */
#define RVX1_BAR_REGS        0u
#define RVX1_BAR_REGS_BYTES  0x10000u
#define RVX1_BAR_MEMORY      2u
#define RVX1_BAR_DOORBELL    4u
#define RVX1_DOORBELL_PITCH  0x1000u /* one page a queue */
#define RVX1_MSIX_TABLE      0x8000u /* in BAR0 */
#define RVX1_MSIX_PBA        0x9000u /* in BAR0 */
#define RVX1_VECTORS         2u
#define RVX1_VECTOR_COMPLETE 0u
#define RVX1_VECTOR_FAULT    1u
#define RVX1_MAX_QUEUES      8u
#define RVX1_MIN_MEMORY      (64ull << 20)
#define RVX1_MAX_MEMORY      (8ull << 30)

/* ---- BAR0, control page (section 3) -------------------------------------------------------------------- */
#define RVX1_ID             0x000u /* u32 RO */
#define RVX1_ID_VALUE       0x31585652u
#define RVX1_REVISION       0x004u /* u32 RO: major << 16 | minor */
#define RVX1_REVISION_VALUE 0x00010000u
#define RVX1_QUEUES         0x00Cu /* u32 RO */
#define RVX1_MEMORY_BYTES   0x010u /* u64 RO */
#define RVX1_APERTURE_BYTES 0x018u /* u64 RO: of memory, from 0, that BAR2 shows */
#define RVX1_CLOCK_HZ       0x020u /* u64 RO: nominal */
#define RVX1_CLOCK          0x028u /* u64 RO: ticks, live */
#define RVX1_CLOCK_PPM      100u   /* the clock is at most so many parts per million off CLOCK_HZ */
#define RVX1_GROUP_THREADS  0x030u /* u32 RO: the most threads a group */
#define RVX1_GROUP_SHARED   0x034u /* u32 RO: the most shared bytes a group */
#define RVX1_STACK_SLOTS    0x038u /* u32 RO: threads in flight at most, a stack slot each */

/* Command processor (section 5). */
#define RVX1_CP_CTRL      0x100u /* u32 */
#define RVX1_CP_CTRL_RUN  0x1u
#define RVX1_CP_STATE     0x104u /* u32 RO */
#define RVX1_CP_RESET     0u
#define RVX1_CP_RUNNING   1u
#define RVX1_CP_HALTED    2u
#define RVX1_CP_ENTRY     0x108u /* u64: board address of the first instruction */
#define RVX1_HALT_CODE    0x110u /* u32 RO */
#define RVX1_HALT_NONE    0u
#define RVX1_HALT_FETCH   1u /* instruction fetch outside board memory */
#define RVX1_HALT_ILLEGAL 2u
#define RVX1_HALT_ACCESS  3u     /* load or store outside every area of the processor's map */
#define RVX1_HALT_BREAK   4u     /* ebreak or ecall: the firmware stopped itself */
#define RVX1_HALT_REFUSED 5u     /* the board would not start the processor */
#define RVX1_HALT_PC      0x118u /* u64 RO */
#define RVX1_FW_STATE     0x120u /* u32, written by the firmware */
#define RVX1_FW_NONE      0u
#define RVX1_FW_BOOTING   1u
#define RVX1_FW_READY     2u
#define RVX1_FW_FAILED    3u
#define RVX1_FW_VERSION   0x124u /* u32, written by the firmware: major << 16 | minor << 8 | patch */
#define RVX1_FW_HEARTBEAT 0x128u /* u32, written by the firmware: one more each pass of its loop */

/* Register window on board memory (section 4). */
#define RVX1_WINDOW_ADDRESS 0x140u /* u64: a multiple of RVX1_WINDOW_BYTES */
#define RVX1_WINDOW         0x200u
#define RVX1_WINDOW_BYTES   0x100u

/* Memory management (section 6). */
#define RVX1_PT_ROOT     0x160u /* u64: board address of the root table; 0: nothing is mapped */
#define RVX1_INV_ADDRESS 0x168u /* u64 */
#define RVX1_INV_BYTES   0x170u /* u64; 0: everything */
#define RVX1_INV_REQUEST 0x178u /* u32: a write starts the invalidation of the range */
#define RVX1_INV_ACK     0x17Cu /* u32 RO: the last request whose invalidation is complete */

/* Faults (section 10). */
#define RVX1_FAULT_CODE    0x180u /* u32 */
#define RVX1_FAULT_QUEUE   0x184u /* u32 */
#define RVX1_FAULT_VALUE   0x188u /* u64 */
#define RVX1_FAULT_ADDRESS 0x190u /* u64 */
#define RVX1_FAULT_ACCESS  0x198u /* u32 */
#define RVX1_FAULT_PC      0x1A0u /* u64 */
#define RVX1_FAULT_ENTRY   0x1A8u /* u64 */
#define RVX1_FAULT_GROUP   0x1B0u /* u32[3] */
#define RVX1_FAULT_THREAD  0x1BCu /* u32: linear index in its group */
#define RVX1_FAULT_INSN    0x1C0u /* u32 */
#define RVX1_FAULT_OPCODE  0x1C4u /* u32: of the packet being run */

#define RVX1_VALUE_SET 0x1D0u /* u64: what the status page's VALUE starts from; written before queues run */

/* Queue q (section 7). */
#define RVX1_QUEUE_BASE       0x400u
#define RVX1_QUEUE_PITCH      0x40u
#define RVX1_QUEUE_RING       0x00u /* u64: processor address of the ring */
#define RVX1_QUEUE_ENTRIES    0x08u /* u32: a power of two */
#define RVX1_QUEUE_CTRL       0x0Cu /* u32 */
#define RVX1_QUEUE_ENABLE     0x1u
#define RVX1_QUEUE_START      0x10u /* u64: index of the first packet */
#define RVX1_MIN_RING_ENTRIES 16u
#define RVX1_MAX_RING_ENTRIES 65536u

/* ---- BAR0, status page (section 8); may be mapped, read-only ------------------------------------------- */
#define RVX1_STATUS          0x1000u
#define RVX1_STATUS_BYTES    0x1000u
#define RVX1_STATUS_VALUE    0x000u /* u64: the last completed value */
#define RVX1_STATUS_FAULT    0x008u /* u32: RVX1_FAULT_CODE */
#define RVX1_STATUS_CP       0x00Cu /* u32: RVX1_CP_STATE */
#define RVX1_STATUS_CLOCK    0x010u /* u64: the clock at the processor's last pass */
#define RVX1_STATUS_QUEUE    0x040u /* queue q at + q * RVX1_STATUS_PITCH */
#define RVX1_STATUS_PITCH    0x20u
#define RVX1_STATUS_READ     0x00u /* u64: packets completed */
#define RVX1_STATUS_RELEASED 0x08u /* u64: the last value released on this queue */

/* ---- BAR4 (section 9); may be mapped ------------------------------------------------------------------- */
#define RVX1_DOORBELL_WRITE 0x0u /* u64, page of queue q: packets written */
#define RVX1_DOORBELL_ARM   0x8u /* u64, page 0 only: interrupt when VALUE exceeds this */

/* ---- Processor addresses (section 5.2) ----------------------------------------------------------------- */
#define RVX1_SYSTEM       0x4000000000000000ull /* | bus address: system memory */
#define RVX1_BUS_MASK     0x00FFFFFFFFFFFFFFull
#define RVX1_CP_REGS      0x8000000000000000ull /* BAR0 */
#define RVX1_CP_ENGINES   0x8000000000010000ull
#define RVX1_CP_DOORBELLS 0x8000000000020000ull /* BAR4 */

/* Processor-private registers, at RVX1_CP_ENGINES (section 5.3). */
#define RVX1_COMPUTE        0x000u
#define RVX1_COPIER         0x100u
#define RVX1_ENGINE_CTRL    0x00u /* u32 */
#define RVX1_ENGINE_START   1u
#define RVX1_ENGINE_ACK     2u
#define RVX1_ENGINE_STATE   0x04u /* u32 RO */
#define RVX1_ENGINE_IDLE    0u
#define RVX1_ENGINE_RUNNING 1u
#define RVX1_ENGINE_DONE    2u
#define RVX1_ENGINE_FAULTED 3u

#define RVX1_COMPUTE_ENTRY    0x08u /* u64: device-virtual */
#define RVX1_COMPUTE_PARAMS   0x10u /* u64: device-virtual */
#define RVX1_COMPUTE_STACKS   0x18u /* u64: device-virtual */
#define RVX1_COMPUTE_GRID     0x20u /* u32[3] */
#define RVX1_COMPUTE_GROUP    0x2Cu /* u32[3] */
#define RVX1_COMPUTE_SHARED   0x38u /* u32 */
#define RVX1_COMPUTE_SLOTS    0x3Cu /* u32 */
#define RVX1_COMPUTE_COUNTERS 0x40u /* u64[6] RO: enum rvx1_counter */

#define RVX1_COPIER_SRC       0x08u /* u64: device-virtual */
#define RVX1_COPIER_DST       0x10u /* u64: device-virtual */
#define RVX1_COPIER_ROW_BYTES 0x18u /* u64 */
#define RVX1_COPIER_ROWS      0x20u /* u64 */
#define RVX1_COPIER_SRC_PITCH 0x28u /* u64 */
#define RVX1_COPIER_DST_PITCH 0x30u /* u64 */
#define RVX1_COPIER_FILL      0x38u /* u32: RVX1_FILL_ON | byte, or 0 */
#define RVX1_FILL_ON          0x100u

/* Why an engine faulted; both engines. */
#define RVX1_ENGINE_FAULT   0x80u /* u32 RO: a fault code */
#define RVX1_ENGINE_ACCESS  0x84u /* u32 RO */
#define RVX1_ENGINE_ADDRESS 0x88u /* u64 RO */
#define RVX1_ENGINE_PC      0x90u /* u64 RO */
#define RVX1_ENGINE_GROUP   0x98u /* u32[3] RO */
#define RVX1_ENGINE_THREAD  0xA4u /* u32 RO */
#define RVX1_ENGINE_INSN    0xA8u /* u32 RO */

/* The processor's own accesses to system memory that nothing answered (section 5.4). */
#define RVX1_BUS_ERROR   0x200u /* u32: 0, or RVX1_ACCESS_*; a write of 0 clears */
#define RVX1_BUS_ADDRESS 0x208u /* u64 RO */

#define RVX1_STAMP 0x210u /* u64 RO: CLOCK, for STAMP packets */

/* ---- Fault codes and accesses (section 10) ------------------------------------------------------------- */
enum rvx1_fault {
	RVX1_FAULT_NONE = 0,
	RVX1_FAULT_PAGE = 1,       /* no mapping, or without the permission */
	RVX1_FAULT_BUS = 2,        /* system memory did not answer */
	RVX1_FAULT_ILLEGAL = 3,    /* illegal instruction */
	RVX1_FAULT_MISALIGNED = 4, /* atomic or instruction address */
	RVX1_FAULT_BARRIER = 5,    /* a thread ended while others of its group wait at a barrier */
	RVX1_FAULT_TRAP = 6,       /* ecall or ebreak */
	RVX1_FAULT_PACKET = 7,     /* a packet that the firmware refuses */
	RVX1_FAULT_LAUNCH = 8,     /* a launch out of the board's limits */
};

enum rvx1_access {
	RVX1_ACCESS_NONE = 0,
	RVX1_ACCESS_READ = 1,
	RVX1_ACCESS_WRITE = 2,
	RVX1_ACCESS_FETCH = 3,
};

/* In the order of RVX1_COMPUTE_COUNTERS and of the COUNTERS packet. */
enum rvx1_counter {
	RVX1_COUNTER_START, /* clock */
	RVX1_COUNTER_END,   /* clock */
	RVX1_COUNTER_CYCLES,
	RVX1_COUNTER_INSTRUCTIONS,
	RVX1_COUNTER_BYTES_READ,
	RVX1_COUNTER_BYTES_WRITTEN,
	RVX1_COUNTERS,
};

/* ---- Threads (section 11) ------------------------------------------------------------------------------ */
#define RVX1_MAX_GROUP_THREADS 1024u
#define RVX1_MAX_SHARED        65536u
#define RVX1_STACK_BYTES       0x4000u         /* a thread's stack */
#define RVX1_STACK_PITCH       0x5000u         /* a guard page below each stack */
#define RVX1_SHARED_BASE       0x1000000000ull /* device-virtual: the group's shared memory, on the chip */
#define RVX1_RETURN            0xFFFFFFFFFFFF0000ull /* where a kernel returns to */
#define RVX1_CSR_THREAD_ID     0xCC0u                /* + d */
#define RVX1_CSR_GROUP_ID      0xCC4u                /* + d */
#define RVX1_CSR_GROUP_SIZE    0xCC8u                /* + d */
#define RVX1_CSR_GRID_SIZE     0xCCCu                /* + d: in groups */
#define RVX1_CSR_SHARED_BYTES  0xCD0u
#define RVX1_INSN_BARRIER      0x0000000Bu /* custom-0, every other field 0 */

/* ---- Page-table entries (section 6.1) ------------------------------------------------------------------ */
#define RVX1_PTE_V         0x001ull
#define RVX1_PTE_R         0x002ull
#define RVX1_PTE_W         0x004ull
#define RVX1_PTE_X         0x008ull
#define RVX1_PTE_U         0x010ull
#define RVX1_PTE_SYSTEM    (1ull << 60) /* the page is in system memory, at this bus address */
#define RVX1_PTE_PPN_SHIFT 10u          /* bits 10..53: address bits 12..55 */
#define RVX1_PTE_PPN_MASK  (((1ull << 44) - 1) << RVX1_PTE_PPN_SHIFT)

#endif
