/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "elf_image.h"

#define RISCV_RELATIVE  3u
#define RET_INSTRUCTION 0x00008067u

static uint64_t data_offset(const struct elf_file *file, const void *member)
{
	return (uint64_t)((const uint8_t *)member - (const uint8_t *)file);
}

static void fill_segments(struct elf_file *file)
{
	struct elf_image *e = &file->head.image;
	uint64_t data = sizeof(*file) - ELF_DATA;

	e->segment[0] = (Elf64_Phdr){.p_type = PT_LOAD,
	        .p_flags = PF_R | PF_X,
	        .p_offset = ELF_TEXT,
	        .p_vaddr = ELF_TEXT,
	        .p_filesz = sizeof(file->text),
	        .p_memsz = sizeof(file->text),
	        .p_align = 0x1000};
	e->segment[1] = (Elf64_Phdr){.p_type = PT_LOAD,
	        .p_flags = PF_R | PF_W,
	        .p_offset = ELF_DATA,
	        .p_vaddr = ELF_DATA,
	        .p_filesz = data,
	        .p_memsz = data + ELF_BSS,
	        .p_align = 0x1000};
	e->segment[2] = (Elf64_Phdr){.p_type = PT_DYNAMIC,
	        .p_offset = data_offset(file, file->dynamic),
	        .p_vaddr = data_offset(file, file->dynamic),
	        .p_filesz = sizeof(file->dynamic),
	        .p_memsz = sizeof(file->dynamic)};
}

static void fill_symbols(struct elf_file *file)
{
	struct elf_image *e = &file->head.image;
	static const char names[] = "\0" ELF_KERNEL "\0" RVX1_KERNEL_RECORD_PREFIX ELF_KERNEL;

	memcpy(e->strings, names, sizeof(names));
	e->symbol[1] = (Elf64_Sym){.st_name = 1,
	        .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
	        .st_shndx = 1,
	        .st_value = ELF_TEXT + 4,
	        .st_size = 4};
	e->symbol[2] = (Elf64_Sym){.st_name = 1 + sizeof(ELF_KERNEL),
	        .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
	        .st_shndx = 1,
	        .st_value = data_offset(file, &file->record),
	        .st_size = sizeof(file->record)};
	e->section[1] = (Elf64_Shdr){.sh_type = SHT_DYNSYM,
	        .sh_offset = offsetof(struct elf_image, symbol),
	        .sh_size = sizeof(e->symbol),
	        .sh_link = 2,
	        .sh_entsize = sizeof(Elf64_Sym)};
	e->section[2] = (Elf64_Shdr){.sh_type = SHT_STRTAB,
	        .sh_offset = offsetof(struct elf_image, strings),
	        .sh_size = sizeof(e->strings)};
}

static void fill_data(struct elf_file *file)
{
	unsigned i;

	for (i = 0; i < sizeof(file->text) / sizeof(file->text[0]); i++)
		file->text[i] = RET_INSTRUCTION;
	file->record = (struct rvx1_kernel_record){RVX1_KERNEL_RECORD_VERSION, 12, 64, 512};
	file->rela[0] =
	        (Elf64_Rela){data_offset(file, &file->pointer[0]), ELF64_R_INFO(0, RISCV_RELATIVE), ELF_TEXT};
	file->rela[1] =
	        (Elf64_Rela){data_offset(file, &file->pointer[1]), ELF64_R_INFO(0, RISCV_RELATIVE), ELF_DATA};
	file->dynamic[0] = (Elf64_Dyn){.d_tag = DT_RELA, .d_un.d_ptr = data_offset(file, file->rela)};
	file->dynamic[1] = (Elf64_Dyn){.d_tag = DT_RELASZ, .d_un.d_val = sizeof(file->rela)};
	file->dynamic[2] = (Elf64_Dyn){.d_tag = DT_RELAENT, .d_un.d_val = sizeof(Elf64_Rela)};
	file->dynamic[3] = (Elf64_Dyn){.d_tag = DT_NULL};
}

void elf_image_make(struct elf_file *file)
{
	Elf64_Ehdr *h = &file->head.image.header;

	_Static_assert(offsetof(struct elf_file, text) == ELF_TEXT, "the code is where its segment says");
	_Static_assert(offsetof(struct elf_file, pointer) == ELF_DATA, "the data is where its segment says");
	memset(file, 0, sizeof(*file));
	memcpy(h->e_ident, ELFMAG, SELFMAG);
	h->e_ident[EI_CLASS] = ELFCLASS64;
	h->e_ident[EI_DATA] = ELFDATA2LSB;
	h->e_ident[EI_VERSION] = EV_CURRENT;
	h->e_type = ET_DYN;
	h->e_machine = EM_RISCV;
	h->e_version = EV_CURRENT;
	h->e_phoff = offsetof(struct elf_image, segment);
	h->e_shoff = offsetof(struct elf_image, section);
	h->e_ehsize = sizeof(*h);
	h->e_phentsize = sizeof(Elf64_Phdr);
	h->e_phnum = 3;
	h->e_shentsize = sizeof(Elf64_Shdr);
	h->e_shnum = 3;
	fill_segments(file);
	fill_symbols(file);
	fill_data(file);
}
