/* SPDX-License-Identifier: MIT */
/* The command processor with firmware of a few words (docs/rvx1.md, section 5). */
#include "rvx_asm.h"
#include "rvx_client.h"

#include <linux/pci_regs.h>
#include <stdlib.h>
#include <string.h>
/* cmocka wants the lines above */
#include "test.h"

#define CODE        0x20000ull
#define OUT         0x30000ull
#define COUNT(code) (sizeof(code) / sizeof((code)[0]))
#define START(code) rvx_start_code(c, CODE, code, COUNT(code))

/* s0 = registers, s1 = system memory, a1 = engines, a2 = OUT. */
#define PROLOGUE                                                                                             \
	LI(S0, 1), SLLI(S0, S0, 63), LI(S1, 1), SLLI(S1, S1, 62), LUI(A1, 16), ADD(A1, A1, S0), LUI(A2, 0x30)

static struct rvx_client client;
static struct rvx_client *const c = &client;

static int begin(void **state)
{
	struct rvx_config config = rvx_client_config();

	(void)state;
	rvx_client_open(c, &config);
	rvx_client_map(c);
	return 0;
}

static int end(void **state)
{
	(void)state;
	rvx_client_close(c);
	return 0;
}

static uint64_t *out(unsigned i)
{
	return (uint64_t *)(void *)(c->memory + OUT) + i;
}

static void assert_halt(uint32_t code, uint64_t pc)
{
	rvx_await_reg(c, RVX1_CP_STATE, RVX1_CP_HALTED);
	assert_int_equal(rvx_reg32(c, RVX1_HALT_CODE), code);
	assert_true(rvx_reg64(c, RVX1_HALT_PC) == pc);
	assert_int_equal(*(const uint32_t *)(const void *)(c->status + RVX1_STATUS_CP), RVX1_CP_HALTED);
	rvx_await_irq(c, RVX1_VECTOR_FAULT);
}

static void it_runs_when_started_with_all_registers_zero(void **state)
{
	uint32_t code[64];
	unsigned n = 0;

	(void)state;
	for (unsigned r = 1; r < 31; r++)
		code[n++] = OR(31, 31, r);
	code[n++] = LUI(A2, 0x30);
	code[n++] = SD(31, A2, 0);
	code[n++] = LI(T0, 1);
	code[n++] = SD(T0, A2, 8);
	code[n++] = WFI;
	code[n++] = J_SELF;
	*out(0) = UINT64_MAX;
	assert_int_equal(rvx_reg32(c, RVX1_CP_STATE), RVX1_CP_RESET);
	rvx_start_code(c, CODE, code, n);
	assert_int_equal(rvx_reg32(c, RVX1_CP_STATE), RVX1_CP_RUNNING);
	rvx_await_word(c, out(1), 1);
	assert_int_equal(*out(0), 0);
}

static void each_way_to_halt_has_its_code_and_pc(void **state)
{
	static const struct {
		uint32_t code[4];
		uint32_t halt;
		uint64_t pc; /* from CODE */
	} ways[] = {
	        {{NOP, EBREAK}, RVX1_HALT_BREAK, 4},
	        {{ECALL}, RVX1_HALT_BREAK, 0},
	        {{NOP, UNKNOWN}, RVX1_HALT_ILLEGAL, 4},
	        {{NOP, BARRIER}, RVX1_HALT_ILLEGAL, 4},
	        {{LI(T0, -8), LD(T1, T0, 0)}, RVX1_HALT_ACCESS, 4},
	        {{LI(T0, 1), SLLI(T0, T0, 40), SD(T1, T0, 0)}, RVX1_HALT_ACCESS, 8},
	        {{LI(T0, 5), SLLI(T0, T0, 60), LD(T1, T0, 0)}, RVX1_HALT_ACCESS, 8}, /* bit 62 and more */
	        {{LI(T0, 4), AMOADD_D(T1, T1, T0)}, RVX1_HALT_ACCESS, 4},
	};

	(void)state;
	for (unsigned i = 0; i < COUNT(ways); i++) {
		START(ways[i].code);
		assert_halt(ways[i].halt, CODE + ways[i].pc);
		rvx_set32(c, RVX1_CP_CTRL, RVX1_CP_CTRL_RUN); /* a halt is not ended by RUN */
		assert_int_equal(rvx_reg32(c, RVX1_CP_STATE), RVX1_CP_HALTED);
		rvx_set32(c, RVX1_CP_CTRL, 0);
		assert_int_equal(rvx_reg32(c, RVX1_CP_STATE), RVX1_CP_RESET);
		assert_int_equal(rvx_reg32(c, RVX1_HALT_CODE), RVX1_HALT_NONE);
	}
}

static void a_fetch_outside_board_memory_halts(void **state)
{
	const uint32_t to_system[] = {LI(T0, 1), SLLI(T0, T0, 62), JALR(RA, T0, 0)};

	(void)state;
	rvx_set64(c, RVX1_CP_ENTRY, RVX1_MIN_MEMORY);
	rvx_set32(c, RVX1_CP_CTRL, RVX1_CP_CTRL_RUN);
	assert_halt(RVX1_HALT_FETCH, RVX1_MIN_MEMORY);
	rvx_set32(c, RVX1_CP_CTRL, 0);
	START(to_system);
	assert_halt(RVX1_HALT_FETCH, RVX1_SYSTEM);
}

static void it_writes_the_registers_that_are_its_and_no_others(void **state)
{
	const uint32_t code[] = {PROLOGUE, LI(T0, 3), SW(T0, S0, RVX1_FW_STATE), SW(T0, S0, RVX1_FW_VERSION),
	        SW(T0, S0, RVX1_FW_HEARTBEAT), SW(T0, S0, RVX1_FAULT_GROUP + 8),
	        SW(T0, S0, RVX1_FAULT_OPCODE), SD(T0, S0, RVX1_FAULT_ADDRESS), SD(T0, S0, RVX1_PT_ROOT),
	        SW(T0, S0, RVX1_QUEUE_BASE), SW(ZERO, S0, RVX1_ID), SW(T0, S0, RVX1_CP_CTRL),
	        LD(T1, S0, RVX1_ID), SD(T1, A2, 0), LI(T0, 1), SD(T0, A2, 8), J_SELF};

	(void)state;
	START(code);
	rvx_await_word(c, out(1), 1);
	assert_int_equal(rvx_reg32(c, RVX1_FW_STATE), 3);
	assert_int_equal(rvx_reg32(c, RVX1_FW_VERSION), 3);
	assert_int_equal(rvx_reg32(c, RVX1_FW_HEARTBEAT), 3);
	assert_int_equal(rvx_reg32(c, RVX1_FAULT_GROUP + 8), 3);
	assert_int_equal(rvx_reg32(c, RVX1_FAULT_OPCODE), 3);
	assert_int_equal(rvx_reg64(c, RVX1_FAULT_ADDRESS), 3);
	assert_int_equal(rvx_reg64(c, RVX1_PT_ROOT), 0);
	assert_int_equal(rvx_reg64(c, RVX1_QUEUE_BASE), 0);
	assert_int_equal(rvx_reg32(c, RVX1_CP_STATE), RVX1_CP_RUNNING);
	assert_true(*out(0) == ((uint64_t)RVX1_REVISION_VALUE << 32 | RVX1_ID_VALUE));
}

static void a_fault_code_raises_the_fault_vector_once(void **state)
{
	const uint32_t code[] = {PROLOGUE, LI(T0, 7), SW(ZERO, S0, RVX1_FAULT_CODE),
	        SW(T0, S0, RVX1_FAULT_CODE), SW(T0, S0, RVX1_FAULT_CODE), LI(T0, 1), SD(T0, A2, 0), J_SELF};

	(void)state;
	START(code);
	rvx_await_word(c, out(0), 1);
	rvx_await_irq(c, RVX1_VECTOR_FAULT);
	assert_false(rvx_has_irq(c, RVX1_VECTOR_FAULT));
	assert_int_equal(rvx_reg32(c, RVX1_FAULT_CODE), 7);
}

static void it_reaches_system_memory_of_both_kinds(void **state)
{
	/* Both memories: reads word 0, writes it plus one to word 1, adds 2 to word 2; then says so. */
	const uint32_t code[] = {PROLOGUE, LI(T0, 1), SLLI(T0, T0, 32), ADD(T0, T0, S1), LD(T1, T0, 0),
	        ADDI(T1, T1, 1), SD(T1, T0, 8), LI(T2, 2), ADDI(A3, T0, 16), AMOADD_D(A4, T2, A3), LI(T0, 2),
	        SLLI(T0, T0, 32), ADD(T0, T0, S1), LD(T1, T0, 0), ADDI(T1, T1, 1), SD(T1, T0, 8),
	        ADDI(A3, T0, 16), AMOADD_W(A4, T2, A3), LI(T0, 1), SD(T0, A2, 0), J_SELF};
	uint64_t *host = (uint64_t *)(void *)c->host, *msg = (uint64_t *)(void *)c->msg;

	(void)state;
	host[0] = 100;
	msg[0] = 200;
	host[2] = msg[2] = 10;
	START(code);
	rvx_await_word(c, out(0), 1);
	assert_true(host[1] == 101 && host[2] == 12);
	assert_true(msg[1] == 201 && msg[2] == 12);
	assert_int_equal(c->dma_reads, 2);
	assert_int_equal(c->dma_writes, 2);
	assert_int_equal(rvx_reg32(c, RVX1_CP_STATE), RVX1_CP_RUNNING);
}

/* Loads and stores at a bus address that `prepare` made dead: out: loaded, BUS_ERROR, BUS_ADDRESS, then after
 * a clear. */
static void run_bus_error(void)
{
	const uint32_t code[] = {PROLOGUE, LI(T0, 1), SLLI(T0, T0, 32), ADD(T0, T0, S1), LD(T1, T0, 24),
	        SD(T1, A2, 0), SD(T1, T0, 32), LW(T1, A1, RVX1_BUS_ERROR), SD(T1, A2, 8),
	        LD(T1, A1, RVX1_BUS_ADDRESS), SD(T1, A2, 16), SW(ZERO, A1, RVX1_BUS_ERROR), SD(T1, T0, 40),
	        LW(T1, A1, RVX1_BUS_ERROR), SD(T1, A2, 24), LI(T0, 1), SD(T0, A2, 32), J_SELF};

	*out(4) = 0;
	START(code);
	rvx_await_word(c, out(4), 1);
	assert_true(*out(0) == UINT64_MAX);
	assert_int_equal(*out(1), RVX1_ACCESS_READ);
	assert_true(*out(2) == (RVX1_SYSTEM | (RVX_HOST_IOVA + 24)));
	assert_int_equal(*out(3), RVX1_ACCESS_WRITE);
	rvx_set32(c, RVX1_CP_CTRL, 0);
}

static void what_nothing_answers_reads_ones_and_is_kept_as_the_first_error(void **state)
{
	(void)state;
	rvx_command(c, PCI_COMMAND_MEMORY);
	run_bus_error();
	rvx_command(c, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
	assert_int_equal(rvx_dma_unmap(c, RVX_HOST_IOVA, RVX_HOST_BYTES), 0);
	run_bus_error();
	assert_int_equal(rvx_dma_map(c, RVX_HOST_IOVA, 0x1000, 3, -1, 0), 0);
	run_bus_error(); /* the client refuses: not its message memory */
}

static void an_unmap_or_bus_mastering_off_ends_a_running_loop_of_stores(void **state)
{
	/* Stores until BUS_ERROR is set. */
	const uint32_t code[] = {PROLOGUE, LI(T0, 1), SLLI(T0, T0, 32), ADD(T0, T0, S1), LI(A4, 1),
	        SD(A4, A2, 8), SD(T0, T0, 8), LW(T1, A1, RVX1_BUS_ERROR), BEQ(T1, ZERO, -8), SD(T1, A2, 0),
	        J_SELF};

	(void)state;
	START(code);
	rvx_await_word(c, out(1), 1);
	rvx_command(c, PCI_COMMAND_MEMORY);
	rvx_await_word(c, out(0), RVX1_ACCESS_WRITE);
	rvx_command(c, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
	rvx_set32(c, RVX1_CP_CTRL, 0);
	*out(0) = *out(1) = 0;
	START(code);
	rvx_await_word(c, out(1), 1);
	assert_int_equal(rvx_dma_unmap(c, RVX_HOST_IOVA, RVX_HOST_BYTES), 0);
	rvx_await_word(c, out(0), RVX1_ACCESS_WRITE);
}

static void it_sees_doorbells_and_sleeps_in_between(void **state)
{
	/* Copies doorbell 1 to OUT, sleeps, again. */
	const uint32_t code[] = {PROLOGUE, LUI(A3, 0x21), ADD(A3, A3, S0), LD(T0, A3, 0), SD(T0, A2, 0), WFI,
	        BEQ(ZERO, ZERO, -12)};

	(void)state;
	START(code);
	for (uint64_t n = 1; n < 200; n++) {
		__atomic_store_n(
		        (uint64_t *)(void *)(c->doorbells + RVX1_DOORBELL_PITCH), n, __ATOMIC_RELEASE);
		rvx_await_word(c, out(0), n);
	}
}

static void an_endless_loop_does_not_keep_the_board_from_answering(void **state)
{
	const uint32_t code[] = {J_SELF};

	(void)state;
	START(code);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(rvx_reg32(c, RVX1_CP_STATE), RVX1_CP_RUNNING);
	assert_int_equal(rvx_reset_message(c), 0);
	rvx_command(c, PCI_COMMAND_MEMORY);
	assert_int_equal(rvx_reg32(c, RVX1_CP_STATE), RVX1_CP_RESET);
}

static void engine_registers_are_zero_and_narrow_accesses_ignored(void **state)
{
	const uint32_t code[] = {PROLOGUE, LI(T0, -1), SB(T0, A1, RVX1_COPIER), LI(T1, 1),
	        SB(T1, A1, RVX1_COMPUTE), SD(T0, A1, RVX1_COPIER + RVX1_COPIER_SRC),
	        LD(T2, A1, RVX1_COPIER + RVX1_COPIER_SRC), SD(T2, A2, 0),
	        LBU(T2, A1, RVX1_COPIER + RVX1_COPIER_SRC), SD(T2, A2, 8),
	        LW(T2, A1, RVX1_COMPUTE + RVX1_ENGINE_STATE), SD(T2, A2, 16), LD(T2, A1, 0x700),
	        SD(T2, A2, 24), LI(T0, 1), SD(T0, A2, 32), J_SELF};

	(void)state;
	memset(out(0), 0xFF, 32);
	START(code);
	rvx_await_word(c, out(4), 1);
	assert_true(*out(0) == UINT64_MAX);
	assert_int_equal(*out(1), 0);
	assert_int_equal(*out(2), RVX1_ENGINE_IDLE);
	assert_int_equal(*out(3), 0);
}

static void it_can_be_reset_and_started_in_the_middle_of_transfers(void **state)
{
	/* Reads and writes message memory for ever. */
	const uint32_t code[] = {PROLOGUE, LI(T0, 2), SLLI(T0, T0, 32), ADD(T0, T0, S1), LD(T1, T0, 0),
	        ADDI(T1, T1, 1), SD(T1, T0, 0), BEQ(ZERO, ZERO, -12)};

	(void)state;
	START(code);
	for (unsigned i = 0; i < 200; i++) {
		unsigned served = c->dma_writes;
		rvx_await_reg(c, RVX1_CP_STATE, RVX1_CP_RUNNING);
		while (c->dma_writes == served)
			assert_true(rvx_serve(c));
		rvx_set32(c, RVX1_CP_CTRL, 0);
		if (i % 2)
			rvx_await_reg(c, RVX1_CP_STATE, RVX1_CP_RESET);
		rvx_set32(c, RVX1_CP_CTRL, RVX1_CP_CTRL_RUN);
	}
	rvx_set32(c, RVX1_CP_CTRL, 0);
	rvx_await_reg(c, RVX1_CP_STATE, RVX1_CP_RESET);
	assert_int_equal(rvx_reg32(c, RVX1_HALT_CODE), 0);
	assert_int_equal(rvx_reset_message(c), 0);
}

static void garbage_as_firmware_halts_or_runs_and_the_board_answers(void **state)
{
	uint32_t code[96] = {PROLOGUE};

	(void)state;
	srandom(11);
	for (unsigned round = 0; round < 300; round++) {
		/* Behind registers that point at every area: loads and stores, and words of any kind. */
		for (unsigned i = 7; i < COUNT(code); i++) {
			uint32_t any = (uint32_t)random() << 1 ^ (uint32_t)random();
			uint32_t base = (uint32_t[]){S0, S1, A1, A2}[any >> 8 & 3];
			code[i] = any & 1 ? (any & ~0xFFFFFu) | base << 15 | (any & 0x7F80u) |
			                            (any & 2 ? 0x23u : 0x03u)
			                  : any;
		}
		START(code);
		assert_int_equal(rvx_reg32(c, RVX1_ID), RVX1_ID_VALUE);
		assert_int_equal(rvx_reset_message(c), 0);
		rvx_command(c, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
		assert_int_equal(rvx_reg32(c, RVX1_CP_STATE), RVX1_CP_RESET);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(it_runs_when_started_with_all_registers_zero),
	        TEST(each_way_to_halt_has_its_code_and_pc),
	        TEST(a_fetch_outside_board_memory_halts),
	        TEST(it_writes_the_registers_that_are_its_and_no_others),
	        TEST(a_fault_code_raises_the_fault_vector_once),
	        TEST(it_reaches_system_memory_of_both_kinds),
	        TEST(what_nothing_answers_reads_ones_and_is_kept_as_the_first_error),
	        TEST(an_unmap_or_bus_mastering_off_ends_a_running_loop_of_stores),
	        TEST(it_sees_doorbells_and_sleeps_in_between),
	        TEST(an_endless_loop_does_not_keep_the_board_from_answering),
	        TEST(it_can_be_reset_and_started_in_the_middle_of_transfers),
	        TEST(garbage_as_firmware_halts_or_runs_and_the_board_answers),
	        TEST(engine_registers_are_zero_and_narrow_accesses_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
