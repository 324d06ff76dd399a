/* SPDX-License-Identifier: MIT */
/*
 * Two-level segregated fit over an abstract range of addresses.
 *
 * Hands out aligned pieces of [base, base + size) without ever touching that memory (it may be a device's):
 * the bookkeeping lives on the heap. Free blocks are kept in lists by size class and merged with both
 * neighbours at once when freed, so two free blocks never touch.
 *
 * Time: rig_tlsf_alloc and rig_tlsf_free take constant time and do not call malloc, except when the number of
 * blocks reaches a new high (records come in chunks) and when the class lists hold no certain fit: then the
 * borderline lists are searched, so that -ENOMEM is said only if no free block can hold the request.
 *
 * Not thread-safe: the caller locks.
 */
#ifndef RIG_TLSF_H
#define RIG_TLSF_H

#include <stdint.h>

struct rig_tlsf;

/* Manage [base, base + size). `granule` is the unit of size and the least alignment: a power of two; base is
 * a multiple of it, and a size that is none is rounded down. The end may be 2^64. The caller frees `*out`
 * with rig_tlsf_close. -EINVAL, -ENOMEM (heap). */
int rig_tlsf_open(struct rig_tlsf **out, uint64_t base, uint64_t size, uint64_t granule);

/* Forget everything, pieces still handed out included. NULL is allowed. */
void rig_tlsf_close(struct rig_tlsf *t);

/* A piece of at least `bytes` (rounded up to granules) at a multiple of `align` (a power of two; 0 or less
 * than a granule means one granule). -EINVAL (bytes 0, align no power of two), -ENOMEM (no block fits, or
 * heap). On failure nothing has changed and `*at` is untouched. */
int rig_tlsf_alloc(struct rig_tlsf *t, uint64_t bytes, uint64_t align, uint64_t *at);

/* The piece [at, at + bytes), multiples of the granule, and no other. -EINVAL, -EBUSY (some of it is handed
 * out, or not of the range), -ENOMEM (heap). Takes time with the number of free blocks. */
int rig_tlsf_take(struct rig_tlsf *t, uint64_t at, uint64_t bytes);

/* Give back the piece that starts at `at`. -ENOENT: no piece handed out starts there; nothing has changed. */
int rig_tlsf_free(struct rig_tlsf *t, uint64_t at);

/* Bytes of the piece that starts at `at`, in whole granules; 0 if none does. */
uint64_t rig_tlsf_bytes(const struct rig_tlsf *t, uint64_t at);

/* Sum of all free blocks, and the largest of them: an allocation of that many bytes at granule alignment
 * succeeds (the heap willing). The latter walks one list. */
uint64_t rig_tlsf_free_bytes(const struct rig_tlsf *t);
uint64_t rig_tlsf_largest(const struct rig_tlsf *t);

/* Pieces handed out and not given back. */
uint64_t rig_tlsf_pieces(const struct rig_tlsf *t);

#endif
