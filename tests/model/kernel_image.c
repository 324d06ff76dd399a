/* SPDX-License-Identifier: MIT */
#include "kernel_image.h"

#include "test.h"
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rvx1/packet.h"

#define IMAGE_VA   0x30000000000ull
#define IMAGE_ROOM (RVX_AT_DATA - RVX_AT_CODE)
#define PAGE       4096u
#define ENTRIES    64u
#define PATH_BYTES 4096u

/* The file as it is; these images are the project's own, and are not checked here. */
static size_t read_file(const char *name, uint8_t *bytes)
{
	const char *build = getenv("RIG_BUILD_DIR");
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "%s/tests/kernels/%s.elf", build ? build : ".", name);
	FILE *file = fopen(path, "rb");

	if (!file)
		fail_msg("%s: cannot be read: build target test_kernels", path);
	size_t length = fread(bytes, 1, IMAGE_ROOM, file);

	fclose(file);
	return length;
}

static uint64_t bits_of(uint32_t flags)
{
	return RVX1_PTE_U | (flags & PF_R ? RVX1_PTE_R : 0) | (flags & PF_W ? RVX1_PTE_W : 0) |
	       (flags & PF_X ? RVX1_PTE_X : 0);
}

static void load_segment(struct rvx_client *c, const uint8_t *file, const Elf64_Phdr *p)
{
	assert_true(p->p_vaddr + p->p_memsz <= IMAGE_ROOM);
	memcpy(c->memory + RVX_AT_CODE + p->p_vaddr, file + p->p_offset, p->p_filesz);
	for (uint64_t at = p->p_vaddr & ~(uint64_t)(PAGE - 1); at < p->p_vaddr + p->p_memsz; at += PAGE)
		rvx_pt_leaf(c, IMAGE_VA + at, RVX_AT_CODE + at, bits_of(p->p_flags), 0);
}

static void relocate(struct rvx_client *c, uint64_t table, uint64_t bytes)
{
	for (uint64_t at = 0; at < bytes; at += sizeof(Elf64_Rela)) {
		Elf64_Rela r;

		memcpy(&r, c->memory + RVX_AT_CODE + table + at, sizeof(r));
		assert_int_equal(ELF64_R_TYPE(r.r_info), R_RISCV_RELATIVE);
		uint64_t value = IMAGE_VA + (uint64_t)r.r_addend;

		memcpy(c->memory + RVX_AT_CODE + r.r_offset, &value, sizeof(value));
	}
}

static void load_dynamic(struct rvx_client *c, const uint8_t *file, const Elf64_Phdr *p)
{
	uint64_t table = 0, bytes = 0;

	for (uint64_t at = 0; at < p->p_filesz; at += sizeof(Elf64_Dyn)) {
		Elf64_Dyn d;

		memcpy(&d, file + p->p_offset + at, sizeof(d));
		if (d.d_tag == DT_RELA)
			table = d.d_un.d_ptr;
		if (d.d_tag == DT_RELASZ)
			bytes = d.d_un.d_val;
	}
	relocate(c, table, bytes);
}

static void load(struct rvx_client *c, const uint8_t *file)
{
	const Elf64_Ehdr *e = (const void *)file;
	const Elf64_Phdr *p = (const void *)(file + e->e_phoff);

	memset(c->memory + RVX_AT_CODE, 0, IMAGE_ROOM);
	for (unsigned i = 0; i < e->e_phnum; i++)
		if (p[i].p_type == PT_LOAD)
			load_segment(c, file, &p[i]);
	for (unsigned i = 0; i < e->e_phnum; i++)
		if (p[i].p_type == PT_DYNAMIC)
			load_dynamic(c, file, &p[i]);
}

static uint64_t find(const uint8_t *file, const char *name)
{
	const Elf64_Ehdr *e = (const void *)file;
	const Elf64_Shdr *s = (const void *)(file + e->e_shoff);

	for (unsigned i = 0; i < e->e_shnum; i++) {
		if (s[i].sh_type != SHT_DYNSYM)
			continue;
		const Elf64_Sym *symbols = (const void *)(file + s[i].sh_offset);
		const char *names = (const char *)file + s[s[i].sh_link].sh_offset;

		for (uint64_t n = 0; n < s[i].sh_size / sizeof(*symbols); n++)
			if (!strcmp(names + symbols[n].st_name, name))
				return symbols[n].st_value;
	}
	fail_msg("no function %s", name);
	return 0;
}

static void map_stacks(struct rvx_client *c)
{
	for (uint64_t i = 0; i < KERNEL_SLOTS; i++)
		for (uint64_t at = 0; at < RVX1_STACK_BYTES; at += PAGE)
			rvx_pt_leaf(c, KERNEL_STACK_VA + (i + 1) * RVX1_STACK_PITCH - RVX1_STACK_BYTES + at,
			        RVX_AT_STACKS + i * RVX1_STACK_BYTES + at, bits_of(PF_R | PF_W), 0);
}

void kernel_start(struct kernel_board *b, const char *name)
{
	uint8_t *file = calloc(1, IMAGE_ROOM);

	assert_non_null(file);
	read_file(name, file);
	rvx_linear(&b->client);
	load(&b->client, file);
	map_stacks(&b->client);
	b->entry = IMAGE_VA + find(file, name);
	free(file);
	if (!rvx_boot(&b->client)) {
		kernel_close(b);
		print_message("no firmware image: build target firmware, set RIG_BUILD_DIR\n");
		skip();
	}
	for (unsigned q = 0; q < 2; q++)
		rvx_queue_open(&b->client, &b->queues[q], q, ENTRIES);
	b->value = 0;
}

void kernel_open(struct kernel_board *b, const char *name)
{
	struct rvx_config config = rvx_client_config();

	rvx_client_open(&b->client, &config);
	rvx_client_map(&b->client);
	kernel_start(b, name);
}

void kernel_close(struct kernel_board *b)
{
	assert_int_equal(rvx_client_close(&b->client), 0);
}

void kernel_launch(struct kernel_board *b, const void *params, size_t bytes, const uint32_t grid[3],
        const uint32_t group[3], uint32_t shared)
{
	struct rvx1_packet p = {.opcode = RVX1_OP_LAUNCH};

	memcpy(b->client.memory + RVX_AT_DATA, params, bytes);
	p.u.launch.entry = b->entry;
	p.u.launch.params = RVX_VA_BOARD + RVX_AT_DATA;
	p.u.launch.stacks = KERNEL_STACK_VA;
	for (unsigned d = 0; d < 3; d++) {
		p.u.launch.grid[d] = grid[d];
		p.u.launch.group[d] = group[d];
	}
	p.u.launch.shared = shared;
	p.u.launch.slots = KERNEL_SLOTS;
	rvx_put(&b->queues[0], &p);
	rvx_release(&b->queues[0], ++b->value);
}

void kernel_run(struct kernel_board *b, const void *params, size_t bytes, uint32_t groups, uint32_t threads,
        uint32_t shared)
{
	const uint32_t grid[3] = {groups, 1, 1}, group[3] = {threads, 1, 1};

	kernel_launch(b, params, bytes, grid, group, shared);
	rvx_await_value(&b->client, b->value);
	assert_int_equal(rvx_reg32(&b->client, RVX1_FAULT_CODE), RVX1_FAULT_NONE);
}

void *kernel_data(struct kernel_board *b, uint64_t offset)
{
	return b->client.memory + KERNEL_DATA + offset;
}
