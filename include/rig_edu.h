/* SPDX-License-Identifier: MIT */
/*
 * What a program hands to QEMU's edu device (board "edu") in a RIG_WORDS part: factorials. The part is any
 * number of these requests, one after the other, in the layout below.
 *
 * The device computes n! modulo 2^32 and the driver's worker stores it as four bytes, little-endian, at
 * `address`, the device address of RIG_PINNED memory or of memory borrowed from the host, a multiple of 4. An
 * address that is no such memory is the device's fault. The device takes longer the larger n is, up to
 * seconds.
 */
#ifndef RIG_EDU_H
#define RIG_EDU_H

#include <stdint.h>

#define RIG_EDU_FACTORIAL 1u

struct rig_edu_request {
	uint32_t opcode; /* RIG_EDU_FACTORIAL */
	uint32_t n;
	uint32_t address_low, address_high;
};

#define RIG_EDU_REQUEST_WORDS 4u

#endif
