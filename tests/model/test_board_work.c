/* SPDX-License-Identifier: MIT */
/* The board with the project's firmware: packets in, work done. */
#include "rvx_asm.h"
#include "rvx_client.h"

#include "rvx1/packet.h"

#include <stdlib.h>
#include <string.h>
/* cmocka wants the lines above */
#include "test.h"

#define THREADS 256u
#define GROUPS  256u

static struct rvx_client client;
static struct rvx_queue queue;

static void begin(void)
{
	struct rvx_config config = rvx_client_config();

	rvx_client_open(&client, &config);
	rvx_client_map(&client);
	rvx_linear(&client);
	if (!rvx_boot(&client)) {
		rvx_client_close(&client);
		print_message("no firmware image: build target firmware, set RIG_BUILD_DIR\n");
		skip();
	}
	rvx_queue_open(&client, &queue, 0, 64);
}

static void end(void)
{
	assert_int_equal(rvx_client_close(&client), 0);
}

static struct rvx1_packet launch_of(const uint32_t *code, size_t bytes, uint32_t groups, uint32_t threads)
{
	struct rvx1_packet p = {.opcode = RVX1_OP_LAUNCH};

	memcpy(client.memory + RVX_AT_CODE, code, bytes);
	p.u.launch.entry = RVX_VA_BOARD + RVX_AT_CODE;
	p.u.launch.params = RVX_VA_BOARD + RVX_AT_DATA;
	p.u.launch.stacks = RVX_VA_BOARD + RVX_AT_STACKS;
	for (unsigned d = 0; d < 3; d++)
		p.u.launch.grid[d] = p.u.launch.group[d] = 1;
	p.u.launch.grid[0] = groups;
	p.u.launch.group[0] = threads;
	p.u.launch.slots = 1024;
	return p;
}

/* data[group * size + thread] = 32 bits of that index, after a loop of `turns`. */
static void write_indices(uint32_t turns)
{
	const uint32_t code[] = {
	        CSRR(T0, RVX1_CSR_GROUP_ID),
	        CSRR(T1, RVX1_CSR_GROUP_SIZE),
	        MUL(T0, T0, T1),
	        CSRR(T1, RVX1_CSR_THREAD_ID),
	        ADD(T0, T0, T1),
	        SLLI(T1, T0, 2),
	        ADD(A0, A0, T1),
	        LUI(T2, 0),
	        ADDI(T2, T2, turns),
	        ADDI(T2, T2, -1),
	        BNE(T2, ZERO, -4),
	        SW(T0, A0, 0),
	        RET,
	};
	struct rvx1_packet p = launch_of(code, sizeof(code), GROUPS, THREADS);

	rvx_put(&queue, &p);
}

static void a_launch_runs_every_thread_of_the_grid(void **state)
{
	(void)state;
	begin();
	double start = rvx_seconds();
	write_indices(200);
	rvx_release(&queue, 1);
	rvx_await_value(&client, 1);
	print_message("%u threads: %.3f s\n", GROUPS * THREADS, rvx_seconds() - start);
	const uint32_t *data = (const uint32_t *)(const void *)(client.memory + RVX_AT_DATA);
	for (uint32_t i = 0; i < GROUPS * THREADS; i++)
		assert_int_equal(data[i], i);
	end();
}

static void copies_move_rows_between_board_and_both_kinds_of_system_memory(void **state)
{
	static const uint64_t places[] = {RVX_VA_BOARD + RVX_AT_DATA, RVX_VA_HOST, RVX_VA_MSG};
	const struct rvx1_packet back = {.opcode = RVX1_OP_COPY};
	struct rvx1_packet p;

	(void)state;
	begin();
	for (unsigned i = 0; i < 70000; i++)
		client.memory[RVX_AT_DATA + i] = (uint8_t)(i * 7 + i / 256);
	for (unsigned i = 1; i < 3; i++) {
		p = back;
		p.u.copy.src = places[i - 1] + 1;
		p.u.copy.dst = places[i] + 1;
		p.u.copy.row_bytes = 333;
		p.u.copy.rows = 200;
		p.u.copy.src_pitch = 333;
		p.u.copy.dst_pitch = 333;
		rvx_put(&queue, &p);
	}
	p.u.copy.src = places[2] + 1;
	p.u.copy.dst = places[0] + 0x100000;
	rvx_put(&queue, &p);
	rvx_release(&queue, 1);
	rvx_await_value(&client, 1);
	assert_memory_equal(client.memory + RVX_AT_DATA + 1, client.host + 1, 333 * 200);
	assert_memory_equal(client.memory + RVX_AT_DATA + 1, client.msg + 1, 333 * 200);
	assert_memory_equal(
	        client.memory + RVX_AT_DATA + 1, client.memory + RVX_AT_DATA + 0x100000, 333 * 200);
	assert_true(client.dma_reads > 0 && client.dma_writes > 0);
	end();
}

/* ---- faults, end to end ---- */

static void a_kernels_fault_is_reported_with_everything_about_it(void **state)
{
	/* Thread 2 of group 1 reads null. */
	const uint32_t code[] = {CSRR(T0, RVX1_CSR_GROUP_ID), BEQ(T0, ZERO, 20), CSRR(T0, RVX1_CSR_THREAD_ID),
	        LI(T1, 2), BNE(T0, T1, 8), LD(T1, ZERO, 16), RET};
	struct rvx1_packet p;

	(void)state;
	begin();
	p = launch_of(code, sizeof(code), 3, 4);
	rvx_release(&queue, 41);
	rvx_put(&queue, &p);
	rvx_release(&queue, 42);
	rvx_await_fault(&client, RVX1_FAULT_PAGE);
	assert_int_equal(rvx_reg64(&client, RVX1_FAULT_ADDRESS), 16);
	assert_int_equal(rvx_reg32(&client, RVX1_FAULT_ACCESS), RVX1_ACCESS_READ);
	assert_true(rvx_reg64(&client, RVX1_FAULT_PC) == RVX_VA_BOARD + RVX_AT_CODE + 20);
	assert_true(rvx_reg64(&client, RVX1_FAULT_ENTRY) == RVX_VA_BOARD + RVX_AT_CODE);
	assert_int_equal(rvx_reg32(&client, RVX1_FAULT_GROUP), 1);
	assert_int_equal(rvx_reg32(&client, RVX1_FAULT_THREAD), 2);
	assert_int_equal(rvx_reg32(&client, RVX1_FAULT_QUEUE), 0);
	assert_int_equal(rvx_reg32(&client, RVX1_FAULT_OPCODE), RVX1_OP_LAUNCH);
	assert_int_equal(rvx_reg64(&client, RVX1_FAULT_VALUE), 42);
	rvx_await_irq(&client, RVX1_VECTOR_FAULT);
	assert_int_equal(rvx_reg64(&client, RVX1_STATUS), 41);
	end();
}

static void counters_of_a_launch_are_stored_on_request(void **state)
{
	const uint32_t code[] = {LD(T0, A0, 0), SD(T0, A0, 8), RET};
	const uint64_t *words;
	struct rvx1_packet p, counters = {.opcode = RVX1_OP_COUNTERS};

	(void)state;
	begin();
	words = (const uint64_t *)(const void *)(client.memory + RVX_AT_DATA + 4096);
	p = launch_of(code, sizeof(code), 10, 7);
	counters.u.word.address = RVX_AT_DATA + 4096;
	rvx_put(&queue, &p);
	rvx_put(&queue, &counters);
	rvx_release(&queue, 1);
	rvx_await_value(&client, 1);
	assert_true(words[RVX1_COUNTER_END] >= words[RVX1_COUNTER_START]);
	assert_int_equal(words[RVX1_COUNTER_INSTRUCTIONS], 10 * 7 * 3);
	assert_int_equal(words[RVX1_COUNTER_BYTES_READ], 10 * 7 * 8);
	assert_int_equal(words[RVX1_COUNTER_BYTES_WRITTEN], 10 * 7 * 8);
	assert_true(words[RVX1_COUNTER_CYCLES] >= words[RVX1_COUNTER_INSTRUCTIONS]);
	end();
}

static void a_wait_on_host_memory_goes_on_when_the_host_stores(void **state)
{
	struct rvx1_packet wait = {.opcode = RVX1_OP_WAIT};

	(void)state;
	begin();
	for (uint64_t v = 1; v < 50; v++) {
		uint64_t *word = (uint64_t *)(void *)(client.host + 64);
		wait.u.word.address = RVX1_SYSTEM | (RVX_HOST_IOVA + 64);
		wait.u.word.value = v;
		rvx_put(&queue, &wait);
		rvx_release(&queue, v);
		__atomic_store_n(word, v, __ATOMIC_RELEASE);
		rvx_await_value(&client, v);
	}
	end();
}

static void a_reset_in_the_middle_of_a_launch_stops_it_and_the_board_starts_again(void **state)
{
	const uint32_t code[] = {LD(T0, A0, 0), ADDI(T0, T0, 1), SD(T0, A0, 0), BEQ(ZERO, ZERO, -12)};
	struct rvx1_packet p;

	(void)state;
	begin();
	for (unsigned i = 0; i < 3; i++) {
		uint64_t *word = (uint64_t *)(void *)(client.memory + RVX_AT_DATA);
		p = launch_of(code, sizeof(code), 1, 1);
		*word = 0;
		rvx_put(&queue, &p);
		rvx_ring(&queue);
		rvx_await_word(&client, word, 1);
		if (i == 1)
			rvx_reset_flr(&client);
		else
			assert_int_equal(rvx_reset_message(&client), 0);
		uint64_t stopped = __atomic_load_n(word, __ATOMIC_ACQUIRE);
		rvx_command(&client, 6);
		assert_int_equal(rvx_reg32(&client, RVX1_CP_STATE), RVX1_CP_RESET);
		assert_int_equal(rvx_reg64(&client, RVX1_STATUS), 0);
		assert_true(__atomic_load_n(word, __ATOMIC_ACQUIRE) == stopped);
		rvx_linear(&client);
		assert_true(rvx_boot(&client));
		rvx_queue_open(&client, &queue, 0, 64);
	}
	write_indices(3);
	rvx_release(&queue, 5);
	rvx_await_value(&client, 5);
	end();
}

static void a_processor_reset_ends_a_fault(void **state)
{
	const uint32_t code[] = {EBREAK};
	struct rvx1_packet p;

	(void)state;
	begin();
	p = launch_of(code, sizeof(code), 1, 1);
	rvx_put(&queue, &p);
	rvx_ring(&queue);
	rvx_await_fault(&client, RVX1_FAULT_TRAP);
	rvx_set32(&client, RVX1_CP_CTRL, 0);
	assert_int_equal(rvx_reg32(&client, RVX1_FAULT_CODE), 0);
	assert_int_equal(*(const uint32_t *)(const void *)(client.status + RVX1_STATUS_FAULT), 0);
	assert_int_equal(rvx_reg32(&client, RVX1_QUEUE_BASE + RVX1_QUEUE_CTRL), 0);
	__atomic_store_n((uint64_t *)(void *)client.doorbells, 0, __ATOMIC_RELEASE);
	assert_true(rvx_boot(&client));
	rvx_queue_open(&client, &queue, 0, 64);
	rvx_release(&queue, 1);
	rvx_await_value(&client, 1);
	end();
}

static void unmapping_memory_that_a_kernel_uses_is_a_fault_and_no_crash(void **state)
{
	const uint32_t code[] = {SD(A0, A0, 8), BEQ(ZERO, ZERO, -4)};
	struct rvx1_packet p;

	(void)state;
	begin();
	p = launch_of(code, sizeof(code), 1, 1);
	p.u.launch.params = RVX_VA_HOST;
	rvx_put(&queue, &p);
	rvx_ring(&queue);
	rvx_await_word(&client, client.host + 8, 1);
	assert_int_equal(rvx_dma_unmap(&client, RVX_HOST_IOVA, RVX_HOST_BYTES), 0);
	rvx_await_fault(&client, RVX1_FAULT_BUS);
	assert_true(rvx_reg64(&client, RVX1_FAULT_ADDRESS) == RVX_VA_HOST + 8);
	end();
}

static void queues_run_beside_each_other_and_meet_at_semaphores(void **state)
{
	/* Ends when the word it reads is 5: a fill of the other queue stores that. */
	const uint32_t code[] = {LBU(T0, A0, 0), ADDI(T0, T0, -5), BNE(T0, ZERO, -8), RET};
	struct rvx1_packet p, fill = {.opcode = RVX1_OP_FILL, .arg = 5};
	struct rvx1_packet signal = {.opcode = RVX1_OP_SIGNAL, .arg = 3},
	                   wait = {.opcode = RVX1_OP_SEMAPHORE, .arg = 3};
	struct rvx_queue other;

	(void)state;
	begin();
	rvx_queue_open(&client, &other, 1, 64);
	client.memory[RVX_AT_DATA] = 0;
	p = launch_of(code, sizeof(code), 1, 1);
	rvx_put(&queue, &p);
	wait.u.word.value = 2;
	rvx_put(&queue, &wait);
	rvx_release(&queue, 1);
	fill.u.copy.dst = RVX_VA_BOARD + RVX_AT_DATA;
	fill.u.copy.row_bytes = fill.u.copy.rows = fill.u.copy.dst_pitch = 1;
	rvx_put(&other, &fill);
	signal.u.word.value = 2;
	rvx_put(&other, &signal);
	rvx_ring(&other);
	rvx_await_value(&client, 1);
	end();
}

static void the_heartbeat_goes_on_while_nothing_is_asked(void **state)
{
	(void)state;
	begin();
	uint32_t first = rvx_reg32(&client, RVX1_FW_HEARTBEAT);
	double deadline = rvx_seconds() + RVX_DEADLINE_S;
	while (rvx_reg32(&client, RVX1_FW_HEARTBEAT) == first)
		assert_true(rvx_seconds() < deadline);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_launch_runs_every_thread_of_the_grid),
	        cmocka_unit_test(copies_move_rows_between_board_and_both_kinds_of_system_memory),
	        cmocka_unit_test(a_kernels_fault_is_reported_with_everything_about_it),
	        cmocka_unit_test(counters_of_a_launch_are_stored_on_request),
	        cmocka_unit_test(a_wait_on_host_memory_goes_on_when_the_host_stores),
	        cmocka_unit_test(a_reset_in_the_middle_of_a_launch_stops_it_and_the_board_starts_again),
	        cmocka_unit_test(a_processor_reset_ends_a_fault),
	        cmocka_unit_test(unmapping_memory_that_a_kernel_uses_is_a_fault_and_no_crash),
	        cmocka_unit_test(queues_run_beside_each_other_and_meet_at_semaphores),
	        cmocka_unit_test(the_heartbeat_goes_on_while_nothing_is_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
