/* SPDX-License-Identifier: MIT */
/*
 * RVX-1 packets: what the firmware reads from a queue's ring (docs/rvx1.md, section 7). 64 bytes each,
 * little-endian; fields that a packet does not name are zero. Shared by host, firmware and model: layouts
 * only.
 */
#ifndef RVX1_PACKET_H
#define RVX1_PACKET_H

#include <stddef.h>
#include <stdint.h>

#define RVX1_PACKET_BYTES 64u
#define RVX1_SEMAPHORES   64u

enum rvx1_opcode {
	RVX1_OP_INVALID = 0,
	RVX1_OP_NOP = 1,
	RVX1_OP_WAIT = 2,        /* until the 64-bit word at address >= value */
	RVX1_OP_STORE = 3,       /* value to the 64-bit word at address, release order */
	RVX1_OP_STAMP = 4,       /* the clock to the 64-bit word at address */
	RVX1_OP_COPY = 5,        /* rows between device-virtual addresses */
	RVX1_OP_FILL = 6,        /* rows with the byte in arg */
	RVX1_OP_LAUNCH = 7,      /* a grid of groups of threads */
	RVX1_OP_SIGNAL = 8,      /* raise semaphore arg to value */
	RVX1_OP_SEMAPHORE = 9,   /* until semaphore arg >= value */
	RVX1_OP_WAIT_VALUE = 10, /* until VALUE >= value */
	RVX1_OP_RELEASE =
	        11, /* VALUE becomes value; with RVX1_RELEASE_STORE value is also stored at address */
	RVX1_OP_COUNTERS =
	        12, /* the counters of this queue's last launch to the RVX1_COUNTERS words at address */
	RVX1_OP_RING = 13, /* go on in the ring at address with arg entries */
	RVX1_OPCODES,
};

#define RVX1_RELEASE_STORE 0x01u /* in flags */

/* NOP, WAIT, STORE, STAMP, SIGNAL, SEMAPHORE, WAIT_VALUE, RELEASE, COUNTERS, RING */
struct rvx1_word_packet {
	uint64_t address; /* processor address, a multiple of 8 */
	uint64_t value;
	uint64_t zero[5];
};

struct rvx1_copy_packet {  /* COPY, FILL (no source) */
	uint64_t dst, src; /* device-virtual */
	uint64_t row_bytes, rows;
	uint64_t dst_pitch, src_pitch;
	uint64_t zero;
};

struct rvx1_launch_packet {
	uint64_t entry, params, stacks; /* device-virtual */
	uint32_t grid[3];               /* groups */
	uint32_t group[3];              /* threads */
	uint32_t shared;                /* bytes a group */
	uint32_t slots;                 /* stack slots from `stacks` */
};

struct rvx1_packet {
	uint8_t opcode;
	uint8_t flags;
	uint16_t zero;
	uint32_t arg;
	union {
		struct rvx1_word_packet word;
		struct rvx1_copy_packet copy;
		struct rvx1_launch_packet launch;
	} u;
};

#ifdef __cplusplus
#define RVX1_ASSERT(what) static_assert(what, #what)
#else
#define RVX1_ASSERT(what) _Static_assert(what, #what)
#endif
RVX1_ASSERT(sizeof(struct rvx1_packet) == RVX1_PACKET_BYTES);
RVX1_ASSERT(offsetof(struct rvx1_packet, u) == 8);
RVX1_ASSERT(offsetof(struct rvx1_launch_packet, grid) == 24);
RVX1_ASSERT(offsetof(struct rvx1_launch_packet, slots) == 52);

#endif
