/* SPDX-License-Identifier: MIT */
/* Any bytes as a packed firmware image: what is accepted keeps every promise of fw_image.h. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "fw_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void demand(int holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct rig_fw_image image;

	if (rig_fw_parse(bytes, length, &image))
		return 0;
	demand(image.payload >= bytes && image.payload + image.payload_bytes == bytes + length);
	demand(image.payload_bytes > 0 && image.payload_bytes <= image.area_bytes);
	demand(image.load_address % 8 == 0 && image.load_address >= RVX1_FW_BASE);
	demand(image.area_bytes <= RVX1_FW_AREA);
	demand(image.load_address + image.area_bytes <= RVX1_FW_BASE + RVX1_FW_AREA);
	demand(image.entry % 2 == 0 && image.entry >= image.load_address);
	demand(image.entry + 2 <= image.load_address + image.payload_bytes);
	return 0;
}
