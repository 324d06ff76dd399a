/* SPDX-License-Identifier: MIT */
/*
 * The packed image of the command processor's firmware (docs/rvx1.md, section 5.1), little-endian: a header,
 * then payload_bytes of payload that go to load_address. Layouts only.
 */
#ifndef RVX1_FIRMWARE_H
#define RVX1_FIRMWARE_H

#include <stdint.h>

#define RVX1_FW_MAGIC  0x5746315856522E2Eull /* "..RVX1FW" */
#define RVX1_FW_FORMAT 1u
#define RVX1_FW_BASE   0x10000ull /* where the project's firmware is linked */
#define RVX1_FW_AREA   0x40000ull /* bytes from there for payload, zeroed data and stack */
#define RVX1_FW_DIGEST 32u        /* BLAKE2b-256 of the whole image */

struct rvx1_fw_header {
	uint64_t magic;
	uint32_t format;
	uint32_t version; /* major << 16 | minor << 8 | patch */
	uint64_t load_address;
	uint64_t entry; /* board address */
	uint64_t payload_bytes;
	uint64_t area_bytes; /* from load_address: payload and what the firmware expects zeroed behind it */
};

#endif
