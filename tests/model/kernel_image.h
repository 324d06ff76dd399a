/* SPDX-License-Identifier: MIT */
/*
 * The tests' kernels (tests/kernels) on a board of rvx_client.h with the project's firmware, without any of
 * the driver: loaded, mapped by the flags of their segments, launched with a stack of its own for each thread
 * and a guard below each.
 */
#ifndef KERNEL_IMAGE_H
#define KERNEL_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "rvx_client.h"

#define KERNEL_DATA     (RVX_AT_DATA + 0x1000) /* board address of the kernel's buffers */
#define KERNEL_DATA_VA  (RVX_VA_BOARD + KERNEL_DATA)
#define KERNEL_STACK_VA 0x40000000000ull
#define KERNEL_SLOTS    1024u

struct kernel_board {
	struct rvx_client client;
	struct rvx_queue queues[2];
	uint64_t entry; /* of the kernel, device-virtual */
	uint64_t value; /* the last one that was asked for */
};

/* A board, booted, with the kernel of <build>/tests/kernels/NAME.elf loaded. Skips the test when there is no
 * firmware. */
void kernel_open(struct kernel_board *b, const char *name);
void kernel_close(struct kernel_board *b);

/* The rest of kernel_open(), on a board that was reset. */
void kernel_start(struct kernel_board *b, const char *name);

/* Submits one launch with these parameters and the RELEASE of the next value on queue 0. */
void kernel_launch(struct kernel_board *b, const void *params, size_t bytes, const uint32_t grid[3],
        const uint32_t group[3], uint32_t shared);

/* The same, of groups in a row, and waits for it. */
void kernel_run(struct kernel_board *b, const void *params, size_t bytes, uint32_t groups, uint32_t threads,
        uint32_t shared);

/* Board memory at KERNEL_DATA + offset. */
void *kernel_data(struct kernel_board *b, uint64_t offset);

#endif
