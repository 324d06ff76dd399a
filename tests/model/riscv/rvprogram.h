/* SPDX-License-Identifier: MIT */
/*
 * A guest program as machine code: an emitter, a literal pool, an ELF image, and its two executions: by
 * qemu-riscv64 and by the interpreter under test. Both see the same three areas at the same addresses.
 *
 * The guest talks to the outside by the Linux calls write (to standard output) and exit; what it wrote is the
 * result that is compared.
 */
#ifndef RVPROGRAM_H
#define RVPROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RVPROGRAM_CODE      UINT64_C(0x10000)  /* read, execute */
#define RVPROGRAM_DATA      UINT64_C(0x400000) /* read, write; filled from `data` */
#define RVPROGRAM_LOG       UINT64_C(0x800000) /* read, write; zero */
#define RVPROGRAM_CODE_SIZE (512u * 1024)
#define RVPROGRAM_DATA_SIZE (4u * 4096)
#define RVPROGRAM_LOG_SIZE  (1024u * 1024)
#define RVPROGRAM_POOL      4096u

struct rvprogram {
	uint8_t code[RVPROGRAM_CODE_SIZE];
	size_t code_size;
	uint64_t entry;
	uint8_t data[RVPROGRAM_DATA_SIZE];
	uint64_t pool[RVPROGRAM_POOL];
	size_t pool_at[RVPROGRAM_POOL]; /* where in code the pair that loads it stands */
	unsigned pool_count;
};

/* Empty; the caller frees. */
struct rvprogram *rvprogram_new(void);

/* The guest address of what is emitted next. */
uint64_t rvprogram_here(const struct rvprogram *program);

void rvprogram_emit16(struct rvprogram *program, uint32_t bits);
void rvprogram_emit32(struct rvprogram *program, uint32_t bits);
/* An instruction of either length. */
void rvprogram_emit(struct rvprogram *program, uint32_t bits);

/* x[reg] = value, by two 4-byte instructions; returns the pool index, whose value may still be set. */
unsigned rvprogram_load_x(struct rvprogram *program, unsigned reg, uint64_t value);
/* f[reg] = value; destroys x[scratch]. */
void rvprogram_load_f(struct rvprogram *program, unsigned reg, uint64_t value, unsigned scratch);

/* write(1, address, length) and exit(0); destroy a0 to a2 and a7. */
void rvprogram_write(struct rvprogram *program, uint64_t address, uint64_t length);
void rvprogram_exit(struct rvprogram *program);

/* Place the pool behind the code. Nothing is emitted afterwards. */
void rvprogram_finish(struct rvprogram *program);

/* What the guest wrote; the caller frees `bytes`. */
struct rvoutput {
	uint8_t *bytes;
	size_t length;
	char end[96]; /* empty after exit(0), else what ended the program */
};

/* Whether qemu-riscv64 can be started. */
bool rvprogram_have_qemu(void);
void rvprogram_run_qemu(const struct rvprogram *program, struct rvoutput *output);
/* In pieces of random length drawn from `seed`, at most `limit` instructions. */
void rvprogram_run_interpreter(
        const struct rvprogram *program, uint64_t seed, uint64_t limit, struct rvoutput *output);

#endif
