/* SPDX-License-Identifier: MIT */
#ifndef TEST_ELF_IMAGE_H
#define TEST_ELF_IMAGE_H

/* A small, correct kernel image made byte by byte, for tests that then break one thing of it. */

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

#include "rvx1/kernel_record.h"

#define ELF_TEXT   0x1000u /* both the offset and the address of the code segment */
#define ELF_DATA   0x2000u /* of the data segment */
#define ELF_BSS    0x100u  /* bytes of it beyond the file */
#define ELF_KERNEL "work"  /* the function, at ELF_TEXT + 4 */

struct elf_image {
	Elf64_Ehdr header;
	Elf64_Phdr segment[3]; /* code, data, dynamic */
	Elf64_Shdr section[3]; /* none, symbols, strings */
	Elf64_Sym symbol[3];   /* none, the function, its record */
	char strings[64];
	uint8_t padding[0];
};

struct elf_file {
	union {
		struct elf_image image;
		uint8_t at[ELF_TEXT];
	} head;
	uint32_t text[0x400];
	/* At ELF_DATA. */
	uint64_t pointer[2]; /* relocated: the addresses of text and data */
	struct rvx1_kernel_record record;
	Elf64_Rela rela[2];
	Elf64_Dyn dynamic[4];
};

/* Fills *file with an image of 12 parameter bytes, 64 threads, 512 shared bytes. */
void elf_image_make(struct elf_file *file);

#endif
