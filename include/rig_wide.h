/* SPDX-License-Identifier: MIT */
#ifndef RIG_WIDE_H
#define RIG_WIDE_H

/*
 * Copies between host memory and mapped device memory. Each access of device memory is a transaction of its
 * own on the bus where the mapping is not cached, so there are as few as can be: of RIG_WIDE bytes, with
 * narrower aligned ones at the ends. A libc's memcpy and memset promise nothing of the kind, and store single
 * bytes on processors where that is fastest to ordinary memory.
 */

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__SSE2__) || defined(__ARM_NEON)
enum { RIG_WIDE = 16 };
typedef uint64_t rig_wide __attribute__((vector_size(16), may_alias));
#else
enum { RIG_WIDE = 8 };
typedef uint64_t rig_wide __attribute__((may_alias));
#endif

/* The widest access at `at` that is aligned and within the bytes that are left. */
static inline unsigned rig_wide_step(uintptr_t at, uint64_t left)
{
	unsigned width = RIG_WIDE;

	while (width > left || at % width)
		width /= 2;
	return width;
}

#define RIG_WIDE_MOVE(type, to, from)                                                                        \
	do {                                                                                                 \
		type moved_;                                                                                 \
		__builtin_memcpy(&moved_, from, sizeof(moved_));                                             \
		*(volatile type *)(volatile void *)(to) = moved_;                                            \
	} while (0)
#define RIG_WIDE_FETCH(type, to, from)                                                                       \
	do {                                                                                                 \
		type moved_ = *(const volatile type *)(const volatile void *)(from);                         \
		__builtin_memcpy(to, &moved_, sizeof(moved_));                                               \
	} while (0)

static inline void rig_wide_put1(volatile unsigned char *to, const unsigned char *from, unsigned width)
{
	switch (width) {
	case 1:
		*to = *from;
		break;
	case 2:
		RIG_WIDE_MOVE(uint16_t, to, from);
		break;
	case 4:
		RIG_WIDE_MOVE(uint32_t, to, from);
		break;
	case 8:
		RIG_WIDE_MOVE(uint64_t, to, from);
		break;
	default:
		RIG_WIDE_MOVE(rig_wide, to, from);
		break;
	}
}

static inline void rig_wide_get1(unsigned char *to, const volatile unsigned char *from, unsigned width)
{
	switch (width) {
	case 1:
		*to = *from;
		break;
	case 2:
		RIG_WIDE_FETCH(uint16_t, to, from);
		break;
	case 4:
		RIG_WIDE_FETCH(uint32_t, to, from);
		break;
	case 8:
		RIG_WIDE_FETCH(uint64_t, to, from);
		break;
	default:
		RIG_WIDE_FETCH(rig_wide, to, from);
		break;
	}
}

/* `device` is mapped device memory, what rig_win_host gives; `host` is ordinary memory of any alignment. */
static inline void rig_wide_put(void *device, const void *host, uint64_t len)
{
	volatile unsigned char *to = (volatile unsigned char *)device;
	const unsigned char *from = (const unsigned char *)host;
	unsigned n;

	for (; len > 0; to += n, from += n, len -= n) {
		n = rig_wide_step((uintptr_t)to, len);
		rig_wide_put1(to, from, n);
	}
}

static inline void rig_wide_get(void *host, const void *device, uint64_t len)
{
	const volatile unsigned char *from = (const volatile unsigned char *)device;
	unsigned char *to = (unsigned char *)host;
	unsigned n;

	for (; len > 0; to += n, from += n, len -= n) {
		n = rig_wide_step((uintptr_t)from, len);
		rig_wide_get1(to, from, n);
	}
}

static inline void rig_wide_zero(void *device, uint64_t len)
{
	static const unsigned char zeros[RIG_WIDE] = {0};
	volatile unsigned char *to = (volatile unsigned char *)device;
	unsigned n;

	for (; len > 0; to += n, len -= n) {
		n = rig_wide_step((uintptr_t)to, len);
		rig_wide_put1(to, zeros, n);
	}
}

#undef RIG_WIDE_MOVE
#undef RIG_WIDE_FETCH

#ifdef __cplusplus
}
#endif

#endif
