/* SPDX-License-Identifier: MIT */
#ifndef RIG_VFIO_USER_PARSE_H
#define RIG_VFIO_USER_PARSE_H

/*
 * Parsers of what a vfio-user device process sends: pure functions of (bytes, length), for any bytes at all.
 * They read nothing outside, keep no pointer, and answer 0 with *out filled in, or -EPROTO with *why naming
 * what is wrong (a string constant) and *out of no meaning. Any thread. Fuzzed by
 * tests/fuzz/vfio_client_fuzz.c.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vfio_ops.h"
#include "vfio_user_wire.h"

/* The longest JSON text of a version reply that is looked at: ten times what any server sends. */
#define RIG_VUSER_JSON_BYTES 4096u

/* The longest region info, capabilities included: RIG_VFIO_AREAS areas are 1 KiB of it. */
#define RIG_VUSER_REGION_INFO_BYTES 8192u

/* A message's header. max is the longest message that the caller can take, header included. */
int rig_vuser_parse_header(
        const void *bytes, size_t len, size_t max, struct rig_vuser_header *out, const char **why);

/* What the peer can do, defaults where it says nothing. */
struct rig_vuser_caps {
	uint16_t major, minor;
	unsigned max_fds;    /* descriptors it takes in one message, >= 1 */
	uint64_t max_xfer;   /* data bytes it takes in one message, >= 8 */
	uint64_t max_maps;   /* >= 1 */
	uint64_t page_sizes; /* or'ed together, not 0 */
	bool twin;           /* "twin_socket": its own commands go over a second socket */
};
int rig_vuser_parse_version(const void *bytes, size_t len, struct rig_vuser_caps *out, const char **why);

/* The version message's JSON ("VFIO_USER_VERSION"; vfio_user_json.c, the one user of json-c here). Reads the
 * NUL-terminated text into *caps, which holds the defaults: what the text does not name stays. Unknown names
 * are passed over. -EPROTO with *why: not JSON, a wrong type, or a value that nothing can work with. */
int rig_vuser_json_read(const char *text, struct rig_vuser_caps *caps, const char **why);

/* Writes our own as text with its NUL. Answers its bytes, NUL included, or -ENOSPC. */
int rig_vuser_json_write(const struct rig_vuser_caps *caps, char *text, size_t room);

int rig_vuser_parse_device(
        const void *bytes, size_t len, struct rig_vuser_device_info *out, const char **why);

/* A region's info, as far as RIG_VUSER_REGION_INFO_BYTES, which were asked for, hold it. Areas come out
 * sorted, disjoint, not empty, inside the region; out->fd is -1. A mappable region without a sparse list is
 * one area; one with more than RIG_VFIO_AREAS has none, and is reached by message. */
int rig_vuser_parse_region(
        const void *bytes, size_t len, unsigned index, struct rig_vfio_region *out, const char **why);

int rig_vuser_parse_irq(const void *bytes, size_t len, unsigned index, unsigned *count, const char **why);

/* The reply to a region access of count bytes: for a read, *data points at the count bytes inside bytes. */
int rig_vuser_parse_region_read(const void *bytes, size_t len, const struct rig_vuser_region_access *asked,
        const void **data, const char **why);
int rig_vuser_parse_region_write(
        const void *bytes, size_t len, const struct rig_vuser_region_access *asked, const char **why);

/* A DMA command of the device: for a write, count bytes of data follow inside bytes, and *data points at
 * them; for a read *data is NULL. max: the most data bytes allowed in one message. */
int rig_vuser_parse_dma(const void *bytes, size_t len, bool write, uint64_t max,
        struct rig_vuser_dma_access *out, const void **data, const char **why);

#endif
