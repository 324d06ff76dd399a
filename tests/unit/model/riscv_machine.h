/* SPDX-License-Identifier: MIT */
/* A small machine for tests of the interpreter: one bus, two harts, pages placed where the test wants them, a
 * record of what the interpreter asked for. Also the few encodings the tests write programs with. */
#ifndef RISCV_MACHINE_H
#define RISCV_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "rv.h"

#define MACHINE_PAGES 8u
#define MACHINE_LOG   64u

enum machine_right {
	MACHINE_R = 1,
	MACHINE_W = 2,
	MACHINE_X = 4,
	MACHINE_IO = 8, /* no host memory */
};

struct machine_page {
	uint64_t va;
	unsigned rights;
	uint8_t *host;
};

struct machine_io {
	bool store;
	uint64_t va;
	unsigned width;
	uint64_t value;
};

struct machine {
	struct rv_bus *bus;
	struct rv_hart hart;
	struct rv_hart other;
	struct machine_page pages[MACHINE_PAGES];
	unsigned page_count;
	unsigned asked[3]; /* translate() calls by enum rv_access */
	struct machine_io io[MACHINE_LOG];
	unsigned io_count;
	uint64_t io_value;  /* what load() answers, cut to the width */
	bool io_refuses;    /* load() and store() answer false */
	bool io_flushes;    /* store() flushes the whole bus */
	uint64_t csr_value; /* of CSR MACHINE_CSR; others do not exist */
	unsigned csr_reads, csr_writes;
	uint64_t clock;
};

#define MACHINE_CSR      0x800u
#define MACHINE_CSR_READ 0xcc0u /* read-only, same value */
#define MACHINE_CODE     UINT64_C(0x10000)
#define MACHINE_DATA     UINT64_C(0x20000)

/* A machine with code pages (RX) at MACHINE_CODE and the next, and data pages (RW) at MACHINE_DATA and the
 * next, pc at MACHINE_CODE. */
struct machine *machine_new(void);
/* The same with other callbacks than the machine's own. */
struct machine *machine_new_with(const struct rv_bus_ops *ops);
extern const struct rv_bus_ops machine_ops;
void machine_free(struct machine *machine);

/* Another page; returns its memory (also of an IO page, unused). */
uint8_t *machine_page(struct machine *machine, uint64_t va, unsigned rights);
struct machine_page *machine_find(struct machine *machine, uint64_t va);
/* The memory at va; may not cross pages. */
uint8_t *machine_at(struct machine *machine, uint64_t va);

/* Write code at va, across pages too; 16-bit ones by their low bits. Returns the address behind. */
uint64_t machine_code(struct machine *machine, uint64_t va, const uint32_t *code, unsigned count);
#define MACHINE_CODE_AT(machine, va, ...)                                                                    \
	machine_code(machine, va, (const uint32_t[]){__VA_ARGS__},                                           \
	        sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

/* Encodings */
#define I_ECALL  0x00000073u
#define I_EBREAK 0x00100073u
#define I_WFI    0x10500073u
#define I_FENCEI 0x0000100fu
#define I_CUSTOM 0x0000000bu
#define I_NOP    0x00000013u
#define C_NOP    0x0001u
#define C_EBREAK 0x9002u

uint32_t i_addi(unsigned rd, unsigned rs1, int imm);
uint32_t i_add(unsigned rd, unsigned rs1, unsigned rs2);
uint32_t i_jal(unsigned rd, int offset);
uint32_t i_jalr(unsigned rd, unsigned rs1, int imm);
uint32_t i_bne(unsigned rs1, unsigned rs2, int offset);
/* funct3: 0 to 3 signed by log2 of the width, 4 to 6 unsigned */
uint32_t i_load(unsigned funct3, unsigned rd, unsigned rs1, int imm);
uint32_t i_store(unsigned funct3, unsigned rs2, unsigned rs1, int imm);
/* funct3: 1 rw, 2 rs, 3 rc, 5 to 7 the same with an immediate */
uint32_t i_csr(unsigned funct3, unsigned rd, unsigned csr, unsigned rs1);
/* funct5 as in the manual: 0 add, 1 swap, 2 lr, 3 sc; funct3 2 word, 3 double */
uint32_t i_atomic(unsigned funct5, unsigned funct3, unsigned rd, unsigned rs2, unsigned rs1);
#define AMO_ADD  0u
#define AMO_SWAP 1u
#define AMO_LR   2u
#define AMO_SC   3u

#endif
