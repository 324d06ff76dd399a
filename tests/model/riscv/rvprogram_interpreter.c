/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "rv.h"
#include "rvprogram.h"
#include "rvvalue.h"

enum {
	A0 = 10,
	A1 = 11,
	A2 = 12,
	A7 = 17,
	SYS_WRITE = 64,
	SYS_EXIT = 93,
	PIECE = 3000, /* instructions, at most */
};

struct memory {
	uint8_t *code, *data, *log;
};

static uint8_t *find(const struct memory *memory, uint64_t va, uint64_t length)
{
	if (va >= RVPROGRAM_CODE && va + length <= RVPROGRAM_CODE + RVPROGRAM_CODE_SIZE)
		return memory->code + (va - RVPROGRAM_CODE);
	if (va >= RVPROGRAM_DATA && va + length <= RVPROGRAM_DATA + RVPROGRAM_DATA_SIZE)
		return memory->data + (va - RVPROGRAM_DATA);
	if (va >= RVPROGRAM_LOG && va + length <= RVPROGRAM_LOG + RVPROGRAM_LOG_SIZE)
		return memory->log + (va - RVPROGRAM_LOG);
	return NULL;
}

static enum rv_map translate(void *ctx, uint64_t page, enum rv_access access, void **host)
{
	bool is_code = page < RVPROGRAM_DATA;

	*host = find(ctx, page, RV_PAGE_SIZE);
	if (!*host || (access == RV_FETCH && !is_code) || (access == RV_STORE && is_code))
		return RV_MAP_FAULT;
	return RV_MAP_HOST;
}

static const struct rv_bus_ops ops = {.translate = translate};

static bool write_out(const struct memory *memory, struct rv_hart *hart, struct rvoutput *output)
{
	uint64_t length = hart->x[A2];
	uint8_t *from = length <= RVPROGRAM_LOG_SIZE ? find(memory, hart->x[A1], length) : NULL;
	uint8_t *bytes = from ? realloc(output->bytes, output->length + length) : NULL;

	if (!bytes)
		return false;
	memcpy(bytes + output->length, from, length);
	output->bytes = bytes;
	output->length += length;
	hart->x[A0] = length;
	hart->pc += 4;
	return true;
}

static void run(struct rv_bus *bus, struct rv_hart *hart, const struct memory *memory, uint64_t seed,
        uint64_t limit, struct rvoutput *output)
{
	struct rvrandom random = {seed};
	enum rv_stop stop = RV_BUDGET;

	while (hart->count.instructions < limit) {
		stop = rv_run(bus, hart, 1 + rvrandom_below(&random, PIECE));
		if (stop == RV_BUDGET)
			continue;
		if (stop == RV_ECALL && hart->x[A7] == SYS_EXIT)
			return;
		if (stop != RV_ECALL || hart->x[A7] != SYS_WRITE || !write_out(memory, hart, output))
			break;
	}
	snprintf(output->end, sizeof(output->end), "interpreter: stop %d at 0x%llx (0x%08x)", (int)stop,
	        (unsigned long long)hart->pc, hart->cause.bits);
}

void rvprogram_run_interpreter(
        const struct rvprogram *program, uint64_t seed, uint64_t limit, struct rvoutput *output)
{
	uint8_t *all =
	        aligned_alloc(RV_PAGE_SIZE, RVPROGRAM_CODE_SIZE + RVPROGRAM_DATA_SIZE + RVPROGRAM_LOG_SIZE);
	struct memory memory = {
	        all, all + RVPROGRAM_CODE_SIZE, all + RVPROGRAM_CODE_SIZE + RVPROGRAM_DATA_SIZE};
	struct rv_bus *bus = NULL;
	struct rv_hart hart;

	*output = (struct rvoutput){0};
	if (!all || rv_bus_alloc(&bus, &ops, &memory) < 0)
		abort();
	memcpy(memory.code, program->code, RVPROGRAM_CODE_SIZE);
	memcpy(memory.data, program->data, RVPROGRAM_DATA_SIZE);
	memset(memory.log, 0, RVPROGRAM_LOG_SIZE);
	rv_hart_init(&hart);
	hart.pc = program->entry;
	run(bus, &hart, &memory, seed, limit, output);
	rv_bus_free(bus);
	free(all);
}
