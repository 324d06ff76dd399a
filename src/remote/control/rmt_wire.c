/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "le.h"
#include "rmt_wire.h"

struct rig_rmt_in rig_rmt_in_of(const void *bytes, size_t n)
{
	struct rig_rmt_in in = {.at = bytes, .left = n};

	return in;
}

const uint8_t *rig_rmt_get_bytes(struct rig_rmt_in *in, size_t n)
{
	const uint8_t *at = in->at;

	if (in->bad || n > in->left) {
		in->bad = true;
		return NULL;
	}
	in->at += n;
	in->left -= n;
	return at;
}

uint8_t rig_rmt_get8(struct rig_rmt_in *in)
{
	const uint8_t *at = rig_rmt_get_bytes(in, 1);

	return at ? *at : 0;
}

uint16_t rig_rmt_get16(struct rig_rmt_in *in)
{
	const uint8_t *at = rig_rmt_get_bytes(in, 2);

	return at ? rig_get_le16(at) : 0;
}

uint32_t rig_rmt_get32(struct rig_rmt_in *in)
{
	const uint8_t *at = rig_rmt_get_bytes(in, 4);

	return at ? rig_get_le32(at) : 0;
}

uint64_t rig_rmt_get64(struct rig_rmt_in *in)
{
	const uint8_t *at = rig_rmt_get_bytes(in, 8);

	return at ? rig_get_le64(at) : 0;
}

void rig_rmt_get_text(struct rig_rmt_in *in, char *text, size_t size)
{
	uint16_t n = rig_rmt_get16(in);
	const uint8_t *at = rig_rmt_get_bytes(in, n);

	text[0] = 0;
	if (!at || n >= size || memchr(at, 0, n)) {
		in->bad = true;
		return;
	}
	memcpy(text, at, n);
	text[n] = 0;
}

int rig_rmt_in_end(const struct rig_rmt_in *in)
{
	return in->bad || in->left ? -EPROTO : 0;
}

#define FIRST_BYTES 256u

/* Where n more bytes go, or NULL. */
static uint8_t *extend(struct rig_rmt_out *out, size_t n)
{
	size_t size = out->size ? out->size : FIRST_BYTES;
	uint8_t *grown;

	if (out->bad)
		return NULL;
	while (size - out->used < n)
		size *= 2;
	if (size != out->size) {
		grown = realloc(out->at, size);
		if (!grown) {
			out->bad = true;
			return NULL;
		}
		out->at = grown;
		out->size = size;
	}
	out->used += n;
	return out->at + out->used - n;
}

void rig_rmt_put_bytes(struct rig_rmt_out *out, const void *bytes, size_t n)
{
	uint8_t *at = extend(out, n);

	if (at && n)
		memcpy(at, bytes, n);
}

void rig_rmt_put8(struct rig_rmt_out *out, uint8_t v)
{
	rig_rmt_put_bytes(out, &v, 1);
}

void rig_rmt_put16(struct rig_rmt_out *out, uint16_t v)
{
	uint8_t *at = extend(out, 2);

	if (at)
		rig_put_le16(at, v);
}

void rig_rmt_put32(struct rig_rmt_out *out, uint32_t v)
{
	uint8_t *at = extend(out, 4);

	if (at)
		rig_put_le32(at, v);
}

void rig_rmt_put64(struct rig_rmt_out *out, uint64_t v)
{
	uint8_t *at = extend(out, 8);

	if (at)
		rig_put_le64(at, v);
}

void rig_rmt_put_text(struct rig_rmt_out *out, const char *text)
{
	size_t n = strnlen(text, RIG_RMT_REASON - 1);

	rig_rmt_put16(out, (uint16_t)n);
	rig_rmt_put_bytes(out, text, n);
}

void rig_rmt_out_free(struct rig_rmt_out *out)
{
	free(out->at);
	out->at = NULL;
	out->used = out->size = 0;
}
