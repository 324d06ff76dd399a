/* SPDX-License-Identifier: MIT */
/*
 * The kernel image loader on any bytes: never out of bounds, and what it takes it places within what it asked
 * for. The first byte chooses how the rest is used: as the file itself, or as edits of a good image (offset,
 * value), which reach deeper.
 */
#include <stdlib.h>
#include <string.h>

#include "elf_image.h"
#include "rvx1.h"

#define BASE       0x10000000000ull
#define MAX_PLACED (16u << 20)
#define EDIT_BYTES 3u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void place(const void *bytes, size_t count, uint64_t need)
{
	uint8_t *placed = calloc(1, need);

	if (!placed || rvx1_image_place(bytes, count, BASE, placed))
		abort();
	free(placed);
}

static void load(const void *bytes, size_t count)
{
	struct rig_board_function function;
	uint64_t need = UINT64_MAX; /* find may take an image whose relocations load refuses */

	if (!rvx1_image_bytes(bytes, count, &need) && need <= MAX_PLACED)
		place(bytes, count, need);
	if (!rvx1_image_find(bytes, count, ELF_KERNEL, &function) && function.offset >= need)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_file file;
	size_t i;

	if (!size)
		return 0;
	if (data[0] & 1) {
		load(data + 1, size - 1);
		return 0;
	}
	elf_image_make(&file);
	for (i = 1; i + EDIT_BYTES <= size; i += EDIT_BYTES) {
		size_t at = (size_t)data[i] | (size_t)data[i + 1] << 8;

		/* Headers and tables, not the padding and code between them. */
		at %= sizeof(struct elf_image) + sizeof(file) - ELF_DATA;
		if (at >= sizeof(struct elf_image))
			at += ELF_DATA - sizeof(struct elf_image);
		((uint8_t *)&file)[at] = data[i + 2];
	}
	load(&file, sizeof(file));
	return 0;
}
