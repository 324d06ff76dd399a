/* SPDX-License-Identifier: MIT */
/* The board with the project's firmware: packets in, work done. */
#include "rvx_asm.h"
#include "rvx_client.h"

#include "rvx1/packet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* cmocka wants the lines above */
#include <cmocka.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_launch_runs_every_thread_of_the_grid),
	        cmocka_unit_test(copies_move_rows_between_board_and_both_kinds_of_system_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
