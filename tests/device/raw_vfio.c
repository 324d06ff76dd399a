/* SPDX-License-Identifier: MIT */
/*
 * The machine without the library: usage: raw_vfio CHECK ADDRESS TRANSPORT
 *   identity   the ID register, the BARs' sizes and the vectors are those of docs/rvx1.md
 *   memory     what is written through BAR2 is read through the register window, and back
 *   dma        the board reads and writes mapped host memory
 *   outside    it gets nothing outside of what is mapped, nor after the unmap
 *   interrupt  a halt of the processor signals the fault vector's eventfd
 *   reset      a reset clears a register, and the function works afterwards
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <rvx1/regs.h>

#include "raw.h"
#include "rvx_asm.h"

#define CODE       0x20000u /* board address of the little firmware */
#define OUT        0x30000u /* where it leaves what it saw */
#define OUT_PAGE   (OUT >> 12)
#define IOVA       0x10000000u
#define BYTES      0x10000u
#define SHOWN      0x40000u /* of BAR2 */
#define WAIT_MS    5000
#define DEADLINE_S 10
#define PATTERN    0x1122334455667788u
#define ALL_ONES   UINT64_MAX
#define PAGE_SHIFT 12

static struct raw raw;
static uint8_t *memory;

static uint64_t reg(uint64_t offset, unsigned bytes)
{
	return raw_read(&raw, RVX1_BAR_REGS, offset, bytes);
}

static void set_reg(uint64_t offset, unsigned bytes, uint64_t value)
{
	raw_write(&raw, RVX1_BAR_REGS, offset, bytes, value);
}

static uint64_t out(unsigned i)
{
	return __atomic_load_n((uint64_t *)(void *)(memory + OUT) + i, __ATOMIC_ACQUIRE);
}

static void await_halt(void)
{
	struct timespec start, now;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		if (reg(RVX1_CP_STATE, 4) == RVX1_CP_HALTED)
			return;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec - start.tv_sec < DEADLINE_S);
	raw_check(false, "the processor halts at its ebreak");
}

static void run(const uint32_t *code, size_t words)
{
	memset(memory + OUT, 0, 64);
	memcpy(memory + CODE, code, words * sizeof(*code));
	set_reg(RVX1_CP_CTRL, 4, 0);
	set_reg(RVX1_CP_ENTRY, 8, CODE);
	set_reg(RVX1_CP_CTRL, 4, RVX1_CP_CTRL_RUN);
}

/* Loads 8 bytes from bus address `from`, and stores them at `to`; OUT: what was loaded, and BUS_ERROR after
 * each. */
static void move(uint64_t from, uint64_t to)
{
	const uint32_t code[] = {LI(S0, 1), SLLI(S0, S0, 63), LUI(A1, 16), ADD(A1, A1, S0), /* a1: engines */
	        LI(S1, 1), SLLI(S1, S1, 62),                                                /* s1: system */
	        LUI(A2, OUT_PAGE), LUI(A3, from >> PAGE_SHIFT), ADD(A3, A3, S1), LUI(A4, to >> PAGE_SHIFT),
	        ADD(A4, A4, S1), LD(T0, A3, 0), SD(T0, A2, 0), LWU(T1, A1, RVX1_BUS_ERROR), SD(T1, A2, 8),
	        SW(ZERO, A1, RVX1_BUS_ERROR), SD(T0, A4, 0), LWU(T1, A1, RVX1_BUS_ERROR), SD(T1, A2, 16),
	        SW(ZERO, A1, RVX1_BUS_ERROR), EBREAK};

	run(code, sizeof(code) / sizeof(code[0]));
	await_halt();
}

static void identity(void)
{
	raw_check(reg(RVX1_ID, 4) == RVX1_ID_VALUE, "the ID register reads RVX1");
	raw_check(reg(RVX1_REVISION, 4) == RVX1_REVISION_VALUE, "the revision is the manual's");
	raw_check(raw_region_bytes(&raw, RVX1_BAR_REGS) == RVX1_BAR_REGS_BYTES, "BAR0 has 64 KiB");
	raw_check(raw_region_bytes(&raw, RVX1_BAR_MEMORY) == reg(RVX1_APERTURE_BYTES, 8),
	        "BAR2 is as large as APERTURE_BYTES says");
	raw_check(raw_region_bytes(&raw, RVX1_BAR_DOORBELL) == RVX1_MAX_QUEUES * RVX1_DOORBELL_PITCH,
	        "BAR4 has a page a queue");
	raw_check(raw_vectors(&raw) == RVX1_VECTORS, "MSI-X has the manual's vectors");
}

static void board_memory(void)
{
	const uint64_t pattern = PATTERN;

	memcpy(memory + OUT, &pattern, sizeof(pattern));
	set_reg(RVX1_WINDOW_ADDRESS, 8, OUT);
	raw_check(reg(RVX1_WINDOW, 8) == PATTERN, "the register window shows what BAR2 wrote");
	set_reg(RVX1_WINDOW + 8, 8, ~pattern);
	raw_check(out(1) == ~pattern, "BAR2 shows what the register window wrote");
}

static uint64_t *host_memory(void)
{
	void *host = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	raw_check(host != MAP_FAILED, "the program gets memory");
	memset(host, 0, BYTES);
	return host;
}

static void dma(void)
{
	uint64_t *host = host_memory();
	uint64_t *last = host + (BYTES - (1u << PAGE_SHIFT)) / sizeof(*host);

	raw_map(&raw, host, IOVA, BYTES);
	*host = PATTERN;
	move(IOVA, IOVA + BYTES - (1u << PAGE_SHIFT));
	raw_check(out(0) == PATTERN && out(1) == 0, "the board reads what the host wrote");
	raw_check(out(2) == 0 && __atomic_load_n(last, __ATOMIC_ACQUIRE) == PATTERN,
	        "the host reads what the board wrote");
	raw_unmap(&raw, IOVA, BYTES);
}

static void outside(void)
{
	uint64_t *host = host_memory();

	raw_map(&raw, host, IOVA, BYTES);
	*host = PATTERN;
	move(IOVA + BYTES, IOVA - (1u << PAGE_SHIFT));
	raw_check(out(0) == ALL_ONES && out(1) == RVX1_ACCESS_READ,
	        "a load behind the mapping is all ones and an error");
	raw_check(out(2) == RVX1_ACCESS_WRITE, "a store before the mapping is an error");
	move(IOVA, IOVA);
	raw_check(out(0) == PATTERN && out(1) == 0 && out(2) == 0, "the mapping is reached all the same");
	raw_unmap(&raw, IOVA, BYTES);
	move(IOVA, IOVA);
	raw_check(out(0) == ALL_ONES && out(1) == RVX1_ACCESS_READ && out(2) == RVX1_ACCESS_WRITE,
	        "nothing is reached after the unmap");
	raw_check(*host == PATTERN, "the host's memory is as it was");
}

static void interrupt(void)
{
	struct pollfd wait = {.fd = raw_vector_event(&raw, RVX1_VECTOR_FAULT), .events = POLLIN};
	const uint32_t code[] = {EBREAK};

	raw_check(poll(&wait, 1, 0) == 0, "no interrupt comes before there is a reason");
	run(code, 1);
	raw_check(poll(&wait, 1, WAIT_MS) == 1, "the fault vector's interrupt arrives");
}

static void reset(void)
{
	set_reg(RVX1_CP_ENTRY, 8, CODE);
	raw_check(reg(RVX1_CP_ENTRY, 8) == CODE, "a register holds what was written");
	raw_reset(&raw);
	raw_enable(&raw);
	raw_check(reg(RVX1_CP_ENTRY, 8) == 0, "it is zero after the reset");
	identity();
	if (raw.transport != RAW_NOIOMMU)
		dma();
}

static const struct {
	const char *name;
	void (*check)(void);
} checks[] = {{"identity", identity}, {"memory", board_memory}, {"dma", dma}, {"outside", outside},
        {"interrupt", interrupt}, {"reset", reset}};

int main(int argc, char **argv)
{
	size_t i;

	raw_check(argc == 4, "usage: raw_vfio CHECK ADDRESS TRANSPORT");
	for (i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		if (strcmp(checks[i].name, argv[1]) != 0)
			continue;
		raw_open(&raw, argv[2], raw_transport_of(argv[3]));
		raw_enable(&raw);
		memory = raw_region_map(&raw, RVX1_BAR_MEMORY, SHOWN);
		checks[i].check();
		raw_close(&raw);
		return 0;
	}
	raw_check(false, "the check is one of those in the source");
	return 1;
}
