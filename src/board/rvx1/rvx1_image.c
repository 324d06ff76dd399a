/* SPDX-License-Identifier: MIT */
/*
 * Kernel images: ELF shared objects for RV64 that need nothing but R_RISCV_RELATIVE (docs/kernels.md). Each
 * function is pure: it reads the bytes and checks everything it reads.
 */
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <gelf.h>
#include <libelf.h>

#include "rvx1.h"
#include "rvx1/kernel_record.h"

#define MAX_IMAGE_BYTES       (1ull << 30) /* no board has room for more code */
#define MAX_SEGMENTS          64u
#define PAGE                  4096u
#define R_RISCV_RELATIVE_TYPE 3u

struct image {
	const uint8_t *bytes;
	size_t count;
	Elf64_Phdr load[MAX_SEGMENTS];
	unsigned nloads;
	uint64_t span; /* bytes from address 0 to the end of the last segment */
	Elf64_Phdr dynamic;
	bool has_dynamic;
	uint64_t rela, rela_bytes;
};

static bool inside(uint64_t at, uint64_t bytes, uint64_t limit)
{
	return at <= limit && bytes <= limit - at;
}

static int check_header(const struct image *image, Elf64_Ehdr *header)
{
	if (image->count < sizeof(*header) || memcmp(image->bytes, ELFMAG, SELFMAG) != 0)
		return rig_error_set(-ENOEXEC, "not an ELF file");
	memcpy(header, image->bytes, sizeof(*header));
	if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB)
		return rig_error_set(-ENOEXEC, "not a 64-bit little-endian ELF file");
	if (header->e_machine != EM_RISCV)
		return rig_error_set(-ENOEXEC, "made for ELF machine %u; this board runs RISC-V (machine %u)",
		        header->e_machine, EM_RISCV);
	if (header->e_type != ET_DYN)
		return rig_error_set(-ENOEXEC,
		        "ELF type %u: a kernel image is position independent (ET_DYN); link it "
		        "with rvx1-cc",
		        header->e_type);
	if (header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phnum > MAX_SEGMENTS || !header->e_phnum ||
	        !inside(header->e_phoff, (uint64_t)header->e_phnum * sizeof(Elf64_Phdr), image->count))
		return rig_error_set(-ENOEXEC,
		        "its %u program headers of %u bytes at 0x%" PRIx64 " do not lie in the file "
		        "of %zu bytes (1 to %u of 56)",
		        header->e_phnum, header->e_phentsize, header->e_phoff, image->count, MAX_SEGMENTS);
	return 0;
}

static int add_segment(struct image *image, const Elf64_Phdr *p)
{
	if (p->p_filesz > p->p_memsz || !inside(p->p_offset, p->p_filesz, image->count))
		return rig_error_set(-ENOEXEC,
		        "segment %u is truncated: bytes 0x%" PRIx64 " + 0x%" PRIx64 " of a file of %zu bytes",
		        image->nloads, p->p_offset, p->p_filesz, image->count);
	if (!inside(p->p_vaddr, p->p_memsz, MAX_IMAGE_BYTES))
		return rig_error_set(
		        -ENOEXEC, "segment %u ends above the 1 GiB an image may take", image->nloads);
	if (p->p_vaddr < image->span)
		return rig_error_set(-ENOEXEC,
		        "segment %u at 0x%" PRIx64 " overlaps the one before, or segments are not in "
		        "rising order",
		        image->nloads, p->p_vaddr);
	image->load[image->nloads++] = *p;
	image->span = p->p_vaddr + p->p_memsz;
	return 0;
}

static int read_segments(struct image *image, const Elf64_Ehdr *header)
{
	unsigned i;
	int err;

	for (i = 0; i < header->e_phnum; i++) {
		Elf64_Phdr p;

		memcpy(&p, image->bytes + header->e_phoff + i * sizeof(p), sizeof(p));
		if (p.p_type == PT_INTERP)
			return rig_error_set(-ENOEXEC, "it asks for a dynamic linker; link it with rvx1-cc");
		if (p.p_type == PT_TLS)
			return rig_error_set(
			        -ENOEXEC, "it has thread-local storage, which kernels do not have");
		if (p.p_type == PT_DYNAMIC) {
			image->dynamic = p;
			image->has_dynamic = true;
		}
		if (p.p_type == PT_LOAD && p.p_memsz) {
			err = add_segment(image, &p);
			if (err)
				return err;
		}
	}
	return image->nloads ? 0 : rig_error_set(-ENOEXEC, "it has no segment to load");
}

/* The file's bytes of [at, at + bytes) of the image, NULL where no one segment holds all of them. */
static const uint8_t *file_bytes(const struct image *image, uint64_t at, uint64_t bytes)
{
	unsigned i;

	for (i = 0; i < image->nloads; i++) {
		const Elf64_Phdr *p = &image->load[i];

		if (at >= p->p_vaddr && inside(at - p->p_vaddr, bytes, p->p_filesz))
			return image->bytes + p->p_offset + (at - p->p_vaddr);
	}
	return NULL;
}

static int read_dynamic(struct image *image)
{
	uint64_t i;

	if (!image->has_dynamic)
		return 0;
	if (!inside(image->dynamic.p_offset, image->dynamic.p_filesz, image->count))
		return rig_error_set(-ENOEXEC, "its dynamic section is truncated");
	for (i = 0; i + sizeof(Elf64_Dyn) <= image->dynamic.p_filesz; i += sizeof(Elf64_Dyn)) {
		Elf64_Dyn d;

		memcpy(&d, image->bytes + image->dynamic.p_offset + i, sizeof(d));
		switch (d.d_tag) {
		case DT_NULL:
			return 0;
		case DT_RELA:
			image->rela = d.d_un.d_ptr;
			break;
		case DT_RELASZ:
			image->rela_bytes = d.d_un.d_val;
			break;
		case DT_NEEDED:
			return rig_error_set(-ENOEXEC, "it needs a shared library; link it with rvx1-cc");
		case DT_INIT:
		case DT_INIT_ARRAY:
		case DT_PREINIT_ARRAY:
			return rig_error_set(
			        -ENOEXEC, "it has initialisers (constructors), which nothing would run");
		case DT_REL:
		case DT_RELR:
		case DT_JMPREL:
			return rig_error_set(-ENOEXEC,
			        "it has relocations of dynamic tag %" PRId64
			        "; only R_RISCV_RELATIVE in DT_RELA is taken",
			        (int64_t)d.d_tag);
		default:
			break;
		}
	}
	return 0;
}

static const char *relocation_name(uint64_t type)
{
	static const char *const names[] = {"R_RISCV_NONE", "R_RISCV_32", "R_RISCV_64", "R_RISCV_RELATIVE",
	        "R_RISCV_COPY", "R_RISCV_JUMP_SLOT", "R_RISCV_TLS_DTPMOD32", "R_RISCV_TLS_DTPMOD64",
	        "R_RISCV_TLS_DTPREL32", "R_RISCV_TLS_DTPREL64", "R_RISCV_TLS_TPREL32", "R_RISCV_TLS_TPREL64"};

	return type < sizeof(names) / sizeof(names[0]) ? names[type] : "unknown";
}

static bool in_segment(const struct image *image, uint64_t at, uint64_t bytes)
{
	unsigned i;

	for (i = 0; i < image->nloads; i++)
		if (at >= image->load[i].p_vaddr &&
		        inside(at - image->load[i].p_vaddr, bytes, image->load[i].p_memsz))
			return true;
	return false;
}

/* Checks every relocation and, with a buffer, makes it for an image at `base`. */
static int relocate(const struct image *image, uint64_t base, uint8_t *buffer)
{
	const uint8_t *table = NULL;
	uint64_t i;

	if (image->rela_bytes)
		table = file_bytes(image, image->rela, image->rela_bytes);
	if (image->rela_bytes && (!table || image->rela_bytes % sizeof(Elf64_Rela)))
		return rig_error_set(-ENOEXEC,
		        "its relocations (0x%" PRIx64 " + 0x%" PRIx64 ") do not lie in a segment",
		        image->rela, image->rela_bytes);
	for (i = 0; i < image->rela_bytes; i += sizeof(Elf64_Rela)) {
		Elf64_Rela r;
		uint64_t value;

		memcpy(&r, table + i, sizeof(r));
		if (ELF64_R_TYPE(r.r_info) != R_RISCV_RELATIVE_TYPE)
			return rig_error_set(-ENOEXEC,
			        "relocation %s (type %" PRIu64 ") at 0x%" PRIx64
			        ": only R_RISCV_RELATIVE is taken",
			        relocation_name(ELF64_R_TYPE(r.r_info)), (uint64_t)ELF64_R_TYPE(r.r_info),
			        r.r_offset);
		if (!in_segment(image, r.r_offset, sizeof(value)))
			return rig_error_set(-ENOEXEC,
			        "a relocation of 0x%" PRIx64 ", which is in no segment", r.r_offset);
		value = base + (uint64_t)r.r_addend;
		if (buffer)
			memcpy(buffer + r.r_offset, &value, sizeof(value));
	}
	return 0;
}

static int parse(struct image *image, const void *binary, size_t bytes)
{
	Elf64_Ehdr header;
	int err;

	memset(image, 0, sizeof(*image));
	image->bytes = binary;
	image->count = bytes;
	err = check_header(image, &header);
	if (!err)
		err = read_segments(image, &header);
	if (!err)
		err = read_dynamic(image);
	return err;
}

int rvx1_image_bytes(const void *binary, size_t bytes, uint64_t *need)
{
	struct image image;
	int err = parse(&image, binary, bytes);

	if (!err)
		err = relocate(&image, 0, NULL);
	if (!err)
		*need = (image.span + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	return err;
}

int rvx1_image_place(const void *binary, size_t bytes, uint64_t base, uint8_t *buffer)
{
	struct image image;
	unsigned i;
	int err = parse(&image, binary, bytes);

	if (err)
		return err;
	for (i = 0; i < image.nloads; i++)
		memcpy(buffer + image.load[i].p_vaddr, image.bytes + image.load[i].p_offset,
		        image.load[i].p_filesz);
	return relocate(&image, base, buffer);
}

/* The symbol `name` of the dynamic symbol table, or of the static one where the linker left none. */
static bool find_in(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, const char *name, GElf_Sym *symbol)
{
	Elf_Data *data = elf_getdata(section, NULL);
	uint64_t i, n;

	if (!data || header->sh_entsize != sizeof(Elf64_Sym))
		return false;
	n = data->d_size / sizeof(Elf64_Sym);
	for (i = 0; i < n && i <= INT32_MAX; i++) {
		const char *at;

		if (!gelf_getsym(data, (int)i, symbol) || symbol->st_shndx == SHN_UNDEF)
			continue;
		at = elf_strptr(elf, header->sh_link, symbol->st_name);
		if (at && !strcmp(at, name))
			return true;
	}
	return false;
}

static bool find_symbol(Elf *elf, const char *name, GElf_Sym *symbol)
{
	static const uint32_t kinds[] = {SHT_DYNSYM, SHT_SYMTAB};
	Elf_Scn *section;
	GElf_Shdr header;
	unsigned k;

	for (k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		for (section = elf_nextscn(elf, NULL); section; section = elf_nextscn(elf, section))
			if (gelf_getshdr(section, &header) && header.sh_type == kinds[k] &&
			        find_in(elf, section, &header, name, symbol))
				return true;
	return false;
}

/* What RVX1_KERNEL declared for the function, if it did. */
static int read_record(
        const struct image *image, Elf *elf, const char *name, struct rig_board_function *function)
{
	struct rvx1_kernel_record record;
	char symbol_name[256];
	const uint8_t *bytes;
	GElf_Sym symbol;
	int n = snprintf(symbol_name, sizeof(symbol_name), "%s%s", RVX1_KERNEL_RECORD_PREFIX, name);

	if (n < 0 || (size_t)n >= sizeof(symbol_name) || !find_symbol(elf, symbol_name, &symbol))
		return 0;
	bytes = file_bytes(image, symbol.st_value, sizeof(record));
	if (!bytes || symbol.st_size < sizeof(record))
		return rig_error_set(-ENOEXEC, "%s: its record does not lie in the image", symbol_name);
	memcpy(&record, bytes, sizeof(record));
	if (record.version != RVX1_KERNEL_RECORD_VERSION || record.params_bytes > RIG_PARAMS ||
	        record.threads > RVX1_MAX_GROUP_THREADS || record.shared > RVX1_MAX_SHARED)
		return rig_error_set(-ENOEXEC,
		        "%s: version %u, %u parameter bytes, %u threads, %u shared bytes: this driver "
		        "takes version %u, at most %u, %u and %u",
		        symbol_name, record.version, record.params_bytes, record.threads, record.shared,
		        RVX1_KERNEL_RECORD_VERSION, RIG_PARAMS, RVX1_MAX_GROUP_THREADS, RVX1_MAX_SHARED);
	function->has_params = record.params_bytes != 0;
	function->params = record.params_bytes;
	function->has_threads = record.threads != 0;
	function->threads = record.threads;
	function->has_shared = record.shared != 0;
	function->shared = record.shared;
	return 0;
}

static int find_function(
        const struct image *image, Elf *elf, const char *name, struct rig_board_function *function)
{
	GElf_Sym symbol;

	if (!find_symbol(elf, name, &symbol) || GELF_ST_TYPE(symbol.st_info) != STT_FUNC)
		return -ENOENT;
	if (!in_segment(image, symbol.st_value, 2) || symbol.st_value % 2)
		return rig_error_set(-ENOEXEC, "function %s at 0x%" PRIx64 " is in no segment", name,
		        (uint64_t)symbol.st_value);
	function->offset = symbol.st_value;
	return read_record(image, elf, name, function);
}

int rvx1_image_find(const void *binary, size_t bytes, const char *name, struct rig_board_function *function)
{
	struct image image;
	Elf *elf;
	int err = parse(&image, binary, bytes);

	if (err)
		return err;
	memset(function, 0, sizeof(*function));
	elf_version(EV_CURRENT);
	/* libelf only reads the bytes; its interface has no const. */
	elf = elf_memory((char *)(uintptr_t)binary, bytes);
	if (!elf)
		return rig_error_set(-ENOEXEC, "libelf: %s", elf_errmsg(-1));
	err = find_function(&image, elf, name, function);
	elf_end(elf);
	return err;
}
