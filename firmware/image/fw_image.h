/* SPDX-License-Identifier: MIT */
/*
 * Packed firmware images on the host (rvx1/firmware.h). Pure functions of their arguments, from any thread;
 * bytes are untrusted. A board's port reads the image file, verifies its digest, parses it, and loads the
 * payload.
 */
#ifndef FW_IMAGE_H
#define FW_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include <rvx1/firmware.h>

/* A checked image. Addresses are board addresses; load_address is a multiple of 8, and
 * [load_address, load_address + area_bytes) lies in the RVX1_FW_AREA bytes from RVX1_FW_BASE. */
struct rig_fw_image {
	const uint8_t *payload; /* in the parsed bytes, at any alignment */
	uint64_t payload_bytes; /* more than 0, at most area_bytes */
	uint64_t load_address;
	uint64_t area_bytes; /* zeroes follow the payload to its end */
	uint64_t entry;      /* in the payload, even */
	uint32_t version;    /* major << 16 | minor << 8 | patch */
};

/*
 * Reads the image in bytes[0, length). 0: *image is filled, and points into bytes.
 * -ENOEXEC: not a firmware image, or of another format. -EMSGSIZE: shorter or longer than its header says.
 * -EINVAL: addresses or sizes that no board can be given. *image is unspecified then.
 */
int rig_fw_parse(const uint8_t *bytes, size_t length, struct rig_fw_image *image);

/* 0, or -EBADMSG: the BLAKE2b-256 digest of bytes[0, length) is another than `digest`. */
int rig_fw_verify(const uint8_t *bytes, size_t length, const uint8_t digest[RVX1_FW_DIGEST]);

#endif
