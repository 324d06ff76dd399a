/* SPDX-License-Identifier: MIT */
#include "fw_image.h"

#include <endian.h>
#include <errno.h>
#include <sodium.h>
#include <string.h>

#define LOAD_ALIGN  8u /* the register window writes words of this size */
#define ENTRY_ALIGN 2u /* of a RISC-V instruction */

_Static_assert(sizeof(struct rvx1_fw_header) == 48, "the header of a packed image");

/* The area lies in what a board's map has for firmware, and payload and entry in the area. */
static int check_area(const struct rig_fw_image *image)
{
	if (image->load_address % LOAD_ALIGN || image->load_address < RVX1_FW_BASE)
		return -EINVAL;
	uint64_t offset = image->load_address - RVX1_FW_BASE;

	if (offset > RVX1_FW_AREA || image->area_bytes > RVX1_FW_AREA - offset)
		return -EINVAL;
	if (!image->payload_bytes || image->payload_bytes > image->area_bytes)
		return -EINVAL;
	if (image->entry % ENTRY_ALIGN || image->entry < image->load_address ||
	        image->entry - image->load_address > image->payload_bytes - ENTRY_ALIGN)
		return -EINVAL;
	return 0;
}

int rig_fw_parse(const uint8_t *bytes, size_t length, struct rig_fw_image *image)
{
	struct rvx1_fw_header header;

	if (length < sizeof(header))
		return -ENOEXEC;
	memcpy(&header, bytes, sizeof(header));
	if (le64toh(header.magic) != RVX1_FW_MAGIC || le32toh(header.format) != RVX1_FW_FORMAT)
		return -ENOEXEC;
	if (le64toh(header.payload_bytes) != length - sizeof(header))
		return -EMSGSIZE;
	*image = (struct rig_fw_image){
	        .payload = bytes + sizeof(header),
	        .payload_bytes = length - sizeof(header),
	        .load_address = le64toh(header.load_address),
	        .area_bytes = le64toh(header.area_bytes),
	        .entry = le64toh(header.entry),
	        .version = le32toh(header.version),
	};
	return check_area(image);
}

int rig_fw_verify(const uint8_t *bytes, size_t length, const uint8_t digest[RVX1_FW_DIGEST])
{
	uint8_t found[RVX1_FW_DIGEST];

	crypto_generichash(found, sizeof(found), bytes, length, NULL, 0);
	return sodium_memcmp(found, digest, sizeof(found)) ? -EBADMSG : 0;
}
