/* SPDX-License-Identifier: MIT */
/*
 * Changes of a space decoded from bytes, beside a flat map (mmu_model.h). The first byte chooses the format
 * and whether stores may be seen in any order between barriers.
 */
#include <stdlib.h>

#define MODEL_CHECK(condition)                                                                               \
	do {                                                                                                 \
		if (!(condition))                                                                            \
			abort();                                                                             \
	} while (0)
#include "mmu_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

enum { MOST_STEPS = 200 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	static struct fake_memory memory;
	struct model m;

	if (!length)
		return 0;
	model_open(&m, bytes[0] & 1 ? &fake_blocks : &fake_tiny, &memory, bytes[0] & 2);
	for (size_t n = 0, at = 1; n < MOST_STEPS && at + MODEL_OP_BYTES <= length; n++, at += MODEL_OP_BYTES)
		model_step(&m, bytes + at);
	model_close(&m);
	return 0;
}
