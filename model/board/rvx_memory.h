/* SPDX-License-Identifier: MIT */
/*
 * Memory of the board that a client may map: board memory, the status page, the doorbells. Each is an
 * anonymous file, populated as it is touched: eight gigabytes that nobody used cost nothing.
 *
 * Clients store to it at any time, without a message. Words that both sides use are read and written by the
 * accessors below: one access of exactly that width, with the order that the name says.
 */
#ifndef RVX_MEMORY_H
#define RVX_MEMORY_H

#include <stddef.h>
#include <stdint.h>

struct rvx_memory {
	int fd;        /* sealed: its size is fixed */
	uint8_t *host; /* [host, host + bytes) */
	uint64_t bytes;
};

/* `name` is what /proc shows. 0 or a negative errno. */
int rvx_memory_open(struct rvx_memory *memory, const char *name, uint64_t bytes);

/* A zeroed object is accepted. */
void rvx_memory_close(struct rvx_memory *memory);

/* Host address of [address, address + bytes), or NULL if a byte of it is outside. bytes 0: of `address`,
 * which is inside. */
void *rvx_memory_at(const struct rvx_memory *memory, uint64_t address, uint64_t bytes);

/* Zeroes all of it. */
void rvx_memory_clear(const struct rvx_memory *memory);

/* Copies as a bus does: naturally aligned 2, 4 and 8 bytes are one access. `shared` is the memory, `own` is
 * ours. */
void rvx_memory_get(void *own, const void *shared, size_t len);
void rvx_memory_put(void *shared, const void *own, size_t len);

static inline uint32_t rvx_load32(const void *at)
{
	return __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE);
}

static inline uint64_t rvx_load64(const void *at)
{
	return __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE);
}

static inline void rvx_store32(void *at, uint32_t value)
{
	__atomic_store_n((uint32_t *)at, value, __ATOMIC_RELEASE);
}

static inline void rvx_store64(void *at, uint64_t value)
{
	__atomic_store_n((uint64_t *)at, value, __ATOMIC_RELEASE);
}

#endif
