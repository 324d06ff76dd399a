/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "rvprogram.h"

enum {
	A0 = 10,
	A1 = 11,
	A2 = 12,
	A7 = 17,
	SYS_WRITE = 64,
	SYS_EXIT = 93,
	ECALL = 0x00000073,
	AUIPC = 0x00000017,
	LD = 0x00003003,
	FLD = 0x00003007,
	NOP16 = 0x0001,
};

struct rvprogram *rvprogram_new(void)
{
	return calloc(1, sizeof(struct rvprogram));
}

uint64_t rvprogram_here(const struct rvprogram *program)
{
	return RVPROGRAM_CODE + program->code_size;
}

void rvprogram_emit16(struct rvprogram *program, uint32_t bits)
{
	if (program->code_size + 2 > sizeof(program->code))
		abort();
	program->code[program->code_size++] = (uint8_t)bits;
	program->code[program->code_size++] = (uint8_t)(bits >> 8);
}

void rvprogram_emit32(struct rvprogram *program, uint32_t bits)
{
	rvprogram_emit16(program, bits & 0xffff);
	rvprogram_emit16(program, bits >> 16);
}

void rvprogram_emit(struct rvprogram *program, uint32_t bits)
{
	if ((bits & 3) == 3)
		rvprogram_emit32(program, bits);
	else
		rvprogram_emit16(program, bits);
}

/* auipc x[base]; load reg from x[base]: offsets are filled in by rvprogram_finish(). */
static unsigned emit_pool_load(
        struct rvprogram *program, uint32_t load, unsigned base, unsigned reg, uint64_t value)
{
	unsigned index = program->pool_count++;

	if (index >= RVPROGRAM_POOL)
		abort();
	program->pool[index] = value;
	program->pool_at[index] = program->code_size;
	rvprogram_emit32(program, AUIPC | base << 7);
	rvprogram_emit32(program, load | reg << 7 | base << 15);
	return index;
}

unsigned rvprogram_load_x(struct rvprogram *program, unsigned reg, uint64_t value)
{
	return emit_pool_load(program, LD, reg, reg, value);
}

void rvprogram_load_f(struct rvprogram *program, unsigned reg, uint64_t value, unsigned scratch)
{
	emit_pool_load(program, FLD, scratch, reg, value);
}

void rvprogram_write(struct rvprogram *program, uint64_t address, uint64_t length)
{
	rvprogram_load_x(program, A0, 1);
	rvprogram_load_x(program, A1, address);
	rvprogram_load_x(program, A2, length);
	rvprogram_load_x(program, A7, SYS_WRITE);
	rvprogram_emit32(program, ECALL);
}

void rvprogram_exit(struct rvprogram *program)
{
	rvprogram_load_x(program, A0, 0);
	rvprogram_load_x(program, A7, SYS_EXIT);
	rvprogram_emit32(program, ECALL);
}

static void patch(struct rvprogram *program, size_t at, uint32_t bits)
{
	uint32_t word;

	memcpy(&word, program->code + at, sizeof(word));
	word |= bits;
	memcpy(program->code + at, &word, sizeof(word));
}

void rvprogram_finish(struct rvprogram *program)
{
	while (program->code_size % 8 != 0)
		rvprogram_emit16(program, NOP16);
	for (unsigned i = 0; i < program->pool_count; i++) {
		size_t at = program->pool_at[i];
		uint32_t offset = (uint32_t)(program->code_size - at);
		uint32_t high = (offset + 0x800) & 0xfffff000;

		patch(program, at, high);
		patch(program, at + 4, (offset - high) << 20);
		rvprogram_emit32(program, (uint32_t)program->pool[i]);
		rvprogram_emit32(program, (uint32_t)(program->pool[i] >> 32));
	}
}
