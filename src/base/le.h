/* SPDX-License-Identifier: MIT */
/*
 * Little-endian numbers in memory that a device reads or writes.
 *
 * The types are "bitwise" for sparse, so that a number of the host is never stored in a field of the device
 * without a conversion. Conversions are free on little-endian hosts. rig_get_* and rig_put_* take unaligned
 * bytes, for parsers; they read and write exactly that many bytes.
 */
#ifndef RIG_LE_H
#define RIG_LE_H

#include <stdint.h>
#include <string.h>

#ifdef __CHECKER__
#define RIG_BITWISE __attribute__((bitwise))
#define RIG_FORCE   __attribute__((force))
#else
#define RIG_BITWISE
#define RIG_FORCE
#endif

typedef uint16_t RIG_BITWISE le16;
typedef uint32_t RIG_BITWISE le32;
typedef uint64_t RIG_BITWISE le64;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define RIG_SWAP16(v) (v)
#define RIG_SWAP32(v) (v)
#define RIG_SWAP64(v) (v)
#else
#define RIG_SWAP16(v) __builtin_bswap16(v)
#define RIG_SWAP32(v) __builtin_bswap32(v)
#define RIG_SWAP64(v) __builtin_bswap64(v)
#endif

static inline le16 rig_le16(uint16_t v)
{
	return (RIG_FORCE le16)RIG_SWAP16(v);
}

static inline le32 rig_le32(uint32_t v)
{
	return (RIG_FORCE le32)RIG_SWAP32(v);
}

static inline le64 rig_le64(uint64_t v)
{
	return (RIG_FORCE le64)RIG_SWAP64(v);
}

static inline uint16_t rig_from_le16(le16 v)
{
	return RIG_SWAP16((RIG_FORCE uint16_t)v);
}

static inline uint32_t rig_from_le32(le32 v)
{
	return RIG_SWAP32((RIG_FORCE uint32_t)v);
}

static inline uint64_t rig_from_le64(le64 v)
{
	return RIG_SWAP64((RIG_FORCE uint64_t)v);
}

static inline uint16_t rig_get_le16(const void *from)
{
	le16 v;

	memcpy(&v, from, sizeof(v));
	return rig_from_le16(v);
}

static inline uint32_t rig_get_le32(const void *from)
{
	le32 v;

	memcpy(&v, from, sizeof(v));
	return rig_from_le32(v);
}

static inline uint64_t rig_get_le64(const void *from)
{
	le64 v;

	memcpy(&v, from, sizeof(v));
	return rig_from_le64(v);
}

static inline void rig_put_le16(void *to, uint16_t v)
{
	le16 raw = rig_le16(v);

	memcpy(to, &raw, sizeof(raw));
}

static inline void rig_put_le32(void *to, uint32_t v)
{
	le32 raw = rig_le32(v);

	memcpy(to, &raw, sizeof(raw));
}

static inline void rig_put_le64(void *to, uint64_t v)
{
	le64 raw = rig_le64(v);

	memcpy(to, &raw, sizeof(raw));
}

#endif
