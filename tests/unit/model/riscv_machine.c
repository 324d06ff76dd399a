/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "riscv_machine.h"

static const unsigned right_of[] = {[RV_FETCH] = MACHINE_X, [RV_LOAD] = MACHINE_R, [RV_STORE] = MACHINE_W};

struct machine_page *machine_find(struct machine *machine, uint64_t va)
{
	for (unsigned i = 0; i < machine->page_count; i++)
		if (machine->pages[i].va == va - va % RV_PAGE_SIZE)
			return &machine->pages[i];
	return NULL;
}

static enum rv_map translate(void *ctx, uint64_t page_va, enum rv_access access, void **host)
{
	struct machine *machine = ctx;
	struct machine_page *page = machine_find(machine, page_va);

	machine->asked[access]++;
	if (!page || !(page->rights & right_of[access]))
		return RV_MAP_FAULT;
	if (page->rights & MACHINE_IO)
		return RV_MAP_MMIO;
	*host = page->host;
	return RV_MAP_HOST;
}

static void log_io(struct machine *machine, struct machine_io io)
{
	if (machine->io_count < MACHINE_LOG)
		machine->io[machine->io_count++] = io;
}

static bool load(void *ctx, uint64_t va, unsigned width, uint64_t *value)
{
	struct machine *machine = ctx;

	log_io(machine, (struct machine_io){false, va, width, 0});
	*value = width == 8 ? machine->io_value : machine->io_value & ((UINT64_C(1) << 8 * width) - 1);
	return !machine->io_refuses;
}

static bool store(void *ctx, uint64_t va, unsigned width, uint64_t value)
{
	struct machine *machine = ctx;

	log_io(machine, (struct machine_io){true, va, width, value});
	if (machine->io_flushes)
		rv_bus_flush_all(machine->bus);
	return !machine->io_refuses;
}

static bool csr_read(void *ctx, struct rv_hart *hart, unsigned csr, uint64_t *value)
{
	struct machine *machine = ctx;

	(void)hart;
	machine->csr_reads++;
	*value = machine->csr_value;
	return csr == MACHINE_CSR || csr == MACHINE_CSR_READ;
}

static bool csr_write(void *ctx, struct rv_hart *hart, unsigned csr, uint64_t value)
{
	struct machine *machine = ctx;

	(void)hart;
	machine->csr_writes++;
	machine->csr_value = value;
	return csr == MACHINE_CSR;
}

static uint64_t time_of(void *ctx)
{
	return ((struct machine *)ctx)->clock;
}

const struct rv_bus_ops machine_ops = {
        .translate = translate,
        .load = load,
        .store = store,
        .csr_read = csr_read,
        .csr_write = csr_write,
        .time = time_of,
};

struct machine *machine_new_with(const struct rv_bus_ops *ops)
{
	struct machine *machine = calloc(1, sizeof(*machine));

	if (!machine || rv_bus_alloc(&machine->bus, ops, machine) < 0)
		abort();
	machine_page(machine, MACHINE_CODE, MACHINE_R | MACHINE_X);
	machine_page(machine, MACHINE_CODE + RV_PAGE_SIZE, MACHINE_R | MACHINE_X);
	machine_page(machine, MACHINE_DATA, MACHINE_R | MACHINE_W);
	machine_page(machine, MACHINE_DATA + RV_PAGE_SIZE, MACHINE_R | MACHINE_W);
	rv_hart_init(&machine->hart);
	rv_hart_init(&machine->other);
	machine->hart.pc = MACHINE_CODE;
	machine->other.pc = MACHINE_CODE;
	return machine;
}

struct machine *machine_new(void)
{
	return machine_new_with(&machine_ops);
}

void machine_free(struct machine *machine)
{
	for (unsigned i = 0; i < machine->page_count; i++)
		free(machine->pages[i].host);
	rv_bus_free(machine->bus);
	free(machine);
}

uint8_t *machine_page(struct machine *machine, uint64_t va, unsigned rights)
{
	uint8_t *host = aligned_alloc(8, RV_PAGE_SIZE);

	if (!host || machine->page_count == MACHINE_PAGES)
		abort();
	memset(host, 0, RV_PAGE_SIZE);
	machine->pages[machine->page_count++] = (struct machine_page){va, rights, host};
	return host;
}

uint8_t *machine_at(struct machine *machine, uint64_t va)
{
	struct machine_page *page = machine_find(machine, va);

	if (!page)
		abort();
	return page->host + va % RV_PAGE_SIZE;
}

static void put_half(struct machine *machine, uint64_t va, uint32_t half)
{
	uint8_t *at = machine_at(machine, va);

	at[0] = (uint8_t)half;
	at[1] = (uint8_t)(half >> 8);
}

uint64_t machine_code(struct machine *machine, uint64_t va, const uint32_t *code, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		put_half(machine, va, code[i]);
		va += 2;
		if ((code[i] & 3) != 3)
			continue;
		put_half(machine, va, code[i] >> 16);
		va += 2;
	}
	return va;
}

static uint32_t enc_i(uint32_t op, unsigned rd, unsigned rs1, int imm)
{
	return op | rd << 7 | rs1 << 15 | (uint32_t)imm << 20;
}

uint32_t i_addi(unsigned rd, unsigned rs1, int imm)
{
	return enc_i(0x13, rd, rs1, imm);
}

uint32_t i_add(unsigned rd, unsigned rs1, unsigned rs2)
{
	return 0x33 | rd << 7 | rs1 << 15 | rs2 << 20;
}

uint32_t i_jal(unsigned rd, int offset)
{
	uint32_t o = (uint32_t)offset;

	return 0x6f | rd << 7 | (o & 0xff000) | (o >> 11 & 1) << 20 | (o >> 1 & 0x3ff) << 21 |
	       (o >> 20 & 1) << 31;
}

uint32_t i_jalr(unsigned rd, unsigned rs1, int imm)
{
	return enc_i(0x67, rd, rs1, imm);
}

uint32_t i_bne(unsigned rs1, unsigned rs2, int offset)
{
	uint32_t o = (uint32_t)offset;

	return 0x1063 | rs1 << 15 | rs2 << 20 | (o >> 11 & 1) << 7 | (o >> 1 & 15) << 8 |
	       (o >> 5 & 63) << 25 | (o >> 12 & 1) << 31;
}

uint32_t i_load(unsigned funct3, unsigned rd, unsigned rs1, int imm)
{
	return enc_i(0x03 | funct3 << 12, rd, rs1, imm);
}

uint32_t i_store(unsigned funct3, unsigned rs2, unsigned rs1, int imm)
{
	uint32_t o = (uint32_t)imm;

	return 0x23 | funct3 << 12 | rs1 << 15 | rs2 << 20 | (o & 31) << 7 | (o >> 5 & 127) << 25;
}

uint32_t i_csr(unsigned funct3, unsigned rd, unsigned csr, unsigned rs1)
{
	return 0x73 | funct3 << 12 | rd << 7 | rs1 << 15 | csr << 20;
}

uint32_t i_atomic(unsigned funct5, unsigned funct3, unsigned rd, unsigned rs2, unsigned rs1)
{
	return 0x2f | funct3 << 12 | rd << 7 | rs1 << 15 | rs2 << 20 | funct5 << 27;
}
