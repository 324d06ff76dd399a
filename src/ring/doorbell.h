/* SPDX-License-Identifier: MIT */
/*
 * The number a device wants to hear for a ring position.
 *
 * Positions are free-running counts of ring units. A doorbell may count bytes, words or packets, may be 32 or
 * 64 bits wide, and may want the position wrapped at the ring's size; all of that is a shift and a width. The
 * caller stores the value through its own window, which orders it after the ring's memory.
 */
#ifndef RIG_DOORBELL_H
#define RIG_DOORBELL_H

#include <stdint.h>

#include "bits.h"

struct rig_doorbell {
	int8_t shift; /* value = position << shift, or >> -shift: -63..63 */
	uint8_t bits; /* width the value is cut to: 1..64. log2(units) + shift wraps it at the ring's end */
};

static inline uint64_t rig_doorbell_value(const struct rig_doorbell *doorbell, uint64_t position)
{
	uint64_t scaled = doorbell->shift >= 0 ? position << doorbell->shift : position >> -doorbell->shift;

	return scaled & rig_mask64(doorbell->bits);
}

#endif
