/* SPDX-License-Identifier: MIT */
/*
 * The bytes of a message: little-endian numbers one after the other, written into memory that grows and read
 * out of memory that a peer filled.
 *
 * A reader never reads past its bytes: what does not fit answers 0 and makes it `bad`, for good, so that a
 * parser looks once, at the end. A writer that finds no memory is `bad` in the same way. One thread at a
 * time.
 */
#ifndef RMT_WIRE_H
#define RMT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	RIG_RMT_NAME = 128,   /* bytes of a name in a message, with its terminator here */
	RIG_RMT_REASON = 512, /* of a reason */
};

/* ---- Reading ---- */

struct rig_rmt_in {
	const uint8_t *at;
	size_t left;
	bool bad;
};

struct rig_rmt_in rig_rmt_in_of(const void *bytes, size_t n);
uint8_t rig_rmt_get8(struct rig_rmt_in *in);
uint16_t rig_rmt_get16(struct rig_rmt_in *in);
uint32_t rig_rmt_get32(struct rig_rmt_in *in);
uint64_t rig_rmt_get64(struct rig_rmt_in *in);
/* The next n bytes, in place; NULL if there are not so many. */
const uint8_t *rig_rmt_get_bytes(struct rig_rmt_in *in, size_t n);
/* A text: its length in two bytes and its bytes, none of them zero. Terminated; too long for size is bad. */
void rig_rmt_get_text(struct rig_rmt_in *in, char *text, size_t size);
/* 0 if everything was there and nothing is left; -EPROTO. */
int rig_rmt_in_end(const struct rig_rmt_in *in);

/* ---- Writing ---- */

struct rig_rmt_out {
	uint8_t *at; /* malloc's */
	size_t used, size;
	bool bad;
};

void rig_rmt_put8(struct rig_rmt_out *out, uint8_t v);
void rig_rmt_put16(struct rig_rmt_out *out, uint16_t v);
void rig_rmt_put32(struct rig_rmt_out *out, uint32_t v);
void rig_rmt_put64(struct rig_rmt_out *out, uint64_t v);
void rig_rmt_put_bytes(struct rig_rmt_out *out, const void *bytes, size_t n);
/* Cut to what a reader with RIG_RMT_REASON bytes takes. */
void rig_rmt_put_text(struct rig_rmt_out *out, const char *text);
void rig_rmt_out_free(struct rig_rmt_out *out);

#endif
