/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <string.h>
#include "test.h"
#include "riscv_machine.h"

enum {
	A0 = 10,
	A1 = 11,
	A2 = 12,
	A3 = 13,
	WORD = 2,
	DOUBLE = 3,
	AMO_MAXU = 0x1c,
	AMO_MIN = 0x10,
	MANY = 1000,
	STALL = 10,
};
#define CODE MACHINE_CODE
#define DATA MACHINE_DATA
#define IO   UINT64_C(0x40000)

static uint64_t peek(struct machine *m, uint64_t va)
{
	uint64_t value;

	memcpy(&value, machine_at(m, va), sizeof(value));
	return value;
}

static void poke(struct machine *m, uint64_t va, uint64_t value)
{
	memcpy(machine_at(m, va), &value, sizeof(value));
}

/* lr; [a point to stop at]; sc of A1 to (A0), result in A2; ecall */
static void load_pair(struct machine *m, unsigned width)
{
	MACHINE_CODE_AT(
	        m, CODE, i_atomic(AMO_LR, width, A3, 0, A0), i_atomic(AMO_SC, width, A2, A1, A0), I_ECALL);
	m->hart.x[A0] = DATA;
	m->hart.x[A1] = 77;
	m->hart.x[A2] = 5;
	poke(m, DATA, UINT64_C(0xffffffff80000000));
}

static void sc_after_lr_stores_and_answers_zero(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	load_pair(m, DOUBLE);
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_ECALL);
	assert_int_equal(m->hart.x[A2], 0);
	assert_int_equal(peek(m, DATA), 77);
	assert_int_equal(m->hart.count.bytes_read, 8);
	assert_int_equal(m->hart.count.bytes_written, 8);
	load_pair(m, WORD);
	m->hart.pc = CODE;
	rv_bus_flush(m->bus, CODE, 1);
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_ECALL);
	assert_int_equal(m->hart.x[A2], 0);
	assert_int_equal(m->hart.x[A3], UINT64_C(0xffffffff80000000)); /* sign-extended */
	assert_int_equal(peek(m, DATA), UINT64_C(0xffffffff00000000) | 77);
	machine_free(m);
}

static void a_reservation_is_used_up_by_one_sc(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	load_pair(m, DOUBLE);
	assert_int_equal(rv_run(m->bus, &m->hart, 2), RV_BUDGET);
	m->hart.pc = CODE + 4;
	m->hart.x[A1] = 78;
	assert_int_equal(rv_run(m->bus, &m->hart, 1), RV_BUDGET);
	assert_int_equal(m->hart.x[A2], 1);
	assert_int_equal(peek(m, DATA), 77);
	assert_int_equal(m->hart.count.bytes_written, 8);
	machine_free(m);
}

static void sc_without_lr_fails_and_does_not_touch_memory(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	load_pair(m, DOUBLE);
	m->hart.x[A0] = 0x50000; /* nothing there */
	m->hart.pc = CODE + 4;
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_ECALL);
	assert_int_equal(m->hart.x[A2], 1);
	machine_free(m);
}

static void sc_to_another_address_or_width_than_lr_fails(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	load_pair(m, DOUBLE);
	assert_int_equal(rv_run(m->bus, &m->hart, 1), RV_BUDGET);
	m->hart.x[A0] = DATA + 8;
	assert_int_equal(rv_run(m->bus, &m->hart, 1), RV_BUDGET);
	assert_int_equal(m->hart.x[A2], 1);
	assert_int_equal(peek(m, DATA + 8), 0);
	load_pair(m, DOUBLE);
	MACHINE_CODE_AT(m, CODE + 4, i_atomic(AMO_SC, WORD, A2, A1, A0));
	rv_bus_flush_all(m->bus);
	m->hart.pc = CODE;
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_ECALL);
	assert_int_equal(m->hart.x[A2], 1);
	machine_free(m);
}

static void sc_fails_after_another_hart_stored_even_the_same_value(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	load_pair(m, DOUBLE);
	MACHINE_CODE_AT(m, CODE + 64, i_store(3, A1, A0, 0), I_ECALL);
	assert_int_equal(rv_run(m->bus, &m->hart, 1), RV_BUDGET);
	m->other.pc = CODE + 64;
	m->other.x[A0] = DATA;
	m->other.x[A1] = peek(m, DATA);
	assert_int_equal(rv_run(m->bus, &m->other, MANY), RV_ECALL);
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_ECALL);
	assert_int_equal(m->hart.x[A2], 1);
	assert_int_equal(peek(m, DATA), UINT64_C(0xffffffff80000000));
	machine_free(m);
}

static void sc_fails_after_somebody_outside_changed_the_memory(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	load_pair(m, WORD);
	assert_int_equal(rv_run(m->bus, &m->hart, 1), RV_BUDGET);
	poke(m, DATA, 1);
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_ECALL);
	assert_int_equal(m->hart.x[A2], 1);
	assert_int_equal(peek(m, DATA), 1);
	machine_free(m);
}

static void single_stepping_a_hart_alone_keeps_its_reservation(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	load_pair(m, DOUBLE);
	while (rv_run(m->bus, &m->hart, 1) == RV_BUDGET)
		;
	assert_int_equal(m->hart.x[A2], 0);
	machine_free(m);
}

static void misaligned_atomics_are_faults_that_say_so(void **state)
{
	const uint32_t bits[] = {i_atomic(AMO_LR, DOUBLE, A2, 0, A0), i_atomic(AMO_SC, DOUBLE, A2, A1, A0),
	        i_atomic(AMO_ADD, DOUBLE, A2, A1, A0), i_atomic(AMO_SWAP, WORD, A2, A1, A0)};
	struct machine *m = machine_new();

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		m->hart.pc = MACHINE_CODE_AT(m, CODE + 4 * i, bits[i]) - 4;
		m->hart.x[A0] = DATA + (i == 3 ? 2 : 4);
		m->hart.x[A2] = 5;
		assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_FAULT);
		assert_true(m->hart.cause.misaligned);
		assert_int_equal(m->hart.cause.address, m->hart.x[A0]);
		assert_int_equal(m->hart.cause.access, i == 0 ? RV_LOAD : RV_STORE);
		assert_int_equal(m->hart.pc, CODE + 4 * i);
		assert_int_equal(m->hart.x[A2], 5);
		assert_int_equal(m->hart.count.stalls, 0);
	}
	/* The flag belongs to that stop alone. */
	m->hart.pc = 0x60000;
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_FAULT);
	assert_false(m->hart.cause.misaligned);
	machine_free(m);
}

static void an_amo_on_a_read_only_page_is_a_store_fault(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	machine_find(m, DATA)->rights = MACHINE_R;
	MACHINE_CODE_AT(m, CODE, i_atomic(AMO_ADD, DOUBLE, A2, A1, A0));
	m->hart.x[A0] = DATA;
	m->hart.x[A2] = 5;
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_FAULT);
	assert_int_equal(m->hart.cause.access, RV_STORE);
	assert_int_equal(m->hart.cause.address, DATA);
	assert_int_equal(m->hart.x[A2], 5);
	assert_int_equal(m->hart.count.bytes_read, 0);
	machine_free(m);
}

static void a_word_amo_compares_words_and_leaves_the_upper_half(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	MACHINE_CODE_AT(
	        m, CODE, i_atomic(AMO_MIN, WORD, A2, A1, A0), i_atomic(AMO_MAXU, WORD, A3, A1, A0), I_ECALL);
	m->hart.x[A0] = DATA;
	m->hart.x[A1] = UINT64_C(0x1234567880000000); /* as a word: the least */
	poke(m, DATA, UINT64_C(0xaaaaaaaa00000005));
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_ECALL);
	assert_int_equal(m->hart.x[A2], 5);
	assert_int_equal(m->hart.x[A3], UINT64_C(0xffffffff80000000));
	assert_int_equal(peek(m, DATA), UINT64_C(0xaaaaaaaa80000000));
	assert_int_equal(m->hart.count.stalls, 2 * STALL);
	machine_free(m);
}

static void an_amo_on_io_is_a_load_and_a_store(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	machine_page(m, IO, MACHINE_R | MACHINE_W | MACHINE_IO);
	MACHINE_CODE_AT(m, CODE, i_atomic(AMO_ADD, WORD, A2, A1, A0), I_ECALL);
	m->hart.x[A0] = IO + 4;
	m->hart.x[A1] = 3;
	m->io_value = 0xfffffffe;
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_ECALL);
	assert_int_equal(m->hart.x[A2], -2);
	assert_int_equal(m->io_count, 2);
	assert_int_equal(m->io[0].width, 4);
	assert_true(m->io[1].store);
	assert_int_equal(m->io[1].value, 1);
	m->io_refuses = true;
	m->hart.pc = CODE;
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_FAULT);
	assert_int_equal(m->hart.cause.access, RV_STORE);
	machine_free(m);
}

static void lr_and_sc_work_on_io(void **state)
{
	struct machine *m = machine_new();

	(void)state;
	machine_page(m, IO, MACHINE_R | MACHINE_W | MACHINE_IO);
	load_pair(m, WORD);
	m->hart.x[A0] = IO;
	m->io_value = 0x80000001;
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_ECALL);
	assert_int_equal(m->hart.x[A2], 0);
	assert_int_equal(m->io_count, 3); /* lr, the comparison, the store */
	assert_int_equal(m->io[2].value, 77);
	m->hart.pc = CODE;
	assert_int_equal(rv_run(m->bus, &m->hart, 1), RV_BUDGET);
	m->io_value = 2;
	assert_int_equal(rv_run(m->bus, &m->hart, MANY), RV_ECALL);
	assert_int_equal(m->hart.x[A2], 1);
	machine_free(m);
}

/* Two buses, as two engines would have, over one page of memory. */
struct worker {
	struct machine *m;
	enum rv_stop stop;
};

#define ROUNDS 20000

static void *work(void *arg)
{
	struct worker *worker = arg;

	do {
		worker->stop = rv_run(worker->m->bus, &worker->m->hart, 997);
	} while (worker->stop == RV_BUDGET);
	return NULL;
}

/* A1 rounds of: amoadd.d 1 to (A0); an lr/sc loop that adds 1 to 8(A0). */
static void load_worker(struct machine *m, uint8_t *shared)
{
	enum {
		ONE = 14,
		SECOND = 15,
	};

	machine_find(m, DATA)->host = shared;
	MACHINE_CODE_AT(m, CODE, i_atomic(AMO_ADD, DOUBLE, 0, ONE, A0),
	        i_atomic(AMO_LR, DOUBLE, A2, 0, SECOND), i_addi(A2, A2, 1),
	        i_atomic(AMO_SC, DOUBLE, A3, A2, SECOND), i_bne(A3, 0, -12), i_addi(A1, A1, -1),
	        i_bne(A1, 0, -24), I_ECALL);
	m->hart.x[A0] = DATA;
	m->hart.x[A1] = ROUNDS;
	m->hart.x[ONE] = 1;
	m->hart.x[SECOND] = DATA + 8;
}

static void atomics_of_two_threads_lose_no_count(void **state)
{
	struct worker workers[2];
	pthread_t threads[2];
	uint8_t *shared = NULL;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		workers[i].m = machine_new();
		if (i == 0)
			shared = machine_at(workers[0].m, DATA + RV_PAGE_SIZE);
		machine_find(workers[i].m, DATA)->va =
		        0x70000; /* keep its memory, put the shared one there */
		workers[i].m->pages[workers[i].m->page_count++] =
		        (struct machine_page){DATA, MACHINE_R | MACHINE_W, NULL};
		load_worker(workers[i].m, shared);
	}
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(workers[0].stop, RV_ECALL);
	assert_int_equal(workers[1].stop, RV_ECALL);
	assert_int_equal(((uint64_t *)shared)[0], 2 * ROUNDS);
	assert_int_equal(((uint64_t *)shared)[1], 2 * ROUNDS);
	for (unsigned i = 0; i < 2; i++) {
		workers[i].m->page_count--; /* the shared page is the first machine's second data page */
		machine_free(workers[i].m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(sc_after_lr_stores_and_answers_zero),
	        cmocka_unit_test(a_reservation_is_used_up_by_one_sc),
	        cmocka_unit_test(sc_without_lr_fails_and_does_not_touch_memory),
	        cmocka_unit_test(sc_to_another_address_or_width_than_lr_fails),
	        cmocka_unit_test(sc_fails_after_another_hart_stored_even_the_same_value),
	        cmocka_unit_test(sc_fails_after_somebody_outside_changed_the_memory),
	        cmocka_unit_test(single_stepping_a_hart_alone_keeps_its_reservation),
	        cmocka_unit_test(misaligned_atomics_are_faults_that_say_so),
	        cmocka_unit_test(an_amo_on_a_read_only_page_is_a_store_fault),
	        cmocka_unit_test(a_word_amo_compares_words_and_leaves_the_upper_half),
	        cmocka_unit_test(an_amo_on_io_is_a_load_and_a_store),
	        cmocka_unit_test(lr_and_sc_work_on_io),
	        cmocka_unit_test(atomics_of_two_threads_lose_no_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
