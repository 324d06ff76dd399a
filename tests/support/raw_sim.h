/* SPDX-License-Identifier: MIT */
#ifndef TEST_RAW_SIM_H
#define TEST_RAW_SIM_H

/*
 * A device of the driver's own, without librig: parts go on the queues that the test names, and the hot
 * functions are called as they are. Functions fail the running cmocka test when something is refused. One
 * thread.
 */

#include "test.h"

#include "rig_edge.h"
#include "rig_vfio.h"

enum {
	RAW_DEADLINE_MS = 120000,
	RAW_PARTS = 64, /* of a submission, at most */
	RAW_REGIONS = 64,
	RAW_ARGS = 64, /* parameter bytes of a launch, at most */
};

struct raw {
	const struct rig_driver_module *module;
	const struct rig_driver *hot;
	struct rig_facts facts;
	void *device;
	rig_atomic_u64 *word;
	uint64_t last; /* the last submitted value */
	void *region[RAW_REGIONS];
	uint32_t regions;
	void *image;
	struct rig_entry entry;
};

/* Memory of the device that the host addresses, zeroed. */
struct raw_memory {
	uint64_t *host;
	uint64_t address;
	uintptr_t handle;
};

void raw_open(struct raw *r, const char *text);
/* Stops it, whatever state it is in, and gives everything back. */
void raw_close(struct raw *r);
struct raw_memory raw_memory(struct raw *r, uint64_t bytes);
/* The function of that name of build/tests/kernels/NAME.elf, for raw_launch. Once a device. */
void raw_kernel(struct raw *r, const char *name);
void raw_stats(struct raw *r, struct rig_vfio_stats *stats);

/* A submission in the making. */
struct raw_work {
	struct rig_part part[RAW_PARTS];
	uint32_t n;
	uint32_t after[RAW_PARTS][RAW_PARTS];
	uint8_t args[RAW_PARTS * (sizeof(struct rig_block) + RAW_ARGS)] __attribute__((aligned(16)));
	uint32_t words[RAW_PARTS][16];
	const struct rig_wait *waits;
	uint32_t nwaits;
};

/* Each adds a part to the queue; its index. */
uint32_t raw_launch(struct raw *r, struct raw_work *w, uint32_t queue, const void *params, uint32_t bytes);
uint32_t raw_copy(struct raw_work *w, uint32_t queue, const struct raw_memory *dst, uint64_t dst_at,
        const struct raw_memory *src, uint64_t src_at, uint64_t bytes);
/* One packet: opcode and arg, address and value. Addresses of board memory are raw_board_address's. */
uint32_t raw_packet(struct raw_work *w, uint32_t queue, uint8_t opcode, uint64_t address, uint64_t value);
uint64_t raw_board_address(const struct raw_memory *memory);
/* Part `index` starts after part `before`, of another queue. */
void raw_after(struct raw_work *w, uint32_t index, uint32_t before);

/* Submits it as the next value, once it fits. */
uint64_t raw_submit(struct raw *r, struct raw_work *w, struct rig_times *times);
void raw_wait(struct raw *r, uint64_t value);
/* Waits for the value or a fault: the fault's text, or NULL. */
const char *raw_wait_fault(struct raw *r, uint64_t value);

#endif
