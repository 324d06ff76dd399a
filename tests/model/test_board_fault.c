/* SPDX-License-Identifier: MIT */
/* Misbehaviour on request (rvx1-model --fault), and the manners of the process. */
#include "rvx_asm.h"
#include "rvx_client.h"

#include "rvx1/packet.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
/* cmocka wants the lines above */
#include "test.h"

#define ONES32 0xFFFFFFFFu
#define DIED   1

static struct rvx_client client;
static struct rvx_client *const c = &client;
static struct rvx_queue queue;

/* A process with that fault, mapped. */
static void spawn(const char *fault)
{
	const char *args[] = {"--memory", "64M", fault ? "--fault" : NULL, fault, NULL};

	rvx_client_spawn(c, args);
	rvx_client_map(c);
	rvx_linear(c);
}

/* The same, booted, with a queue. */
static void begin(const char *fault)
{
	spawn(fault);
	if (!rvx_boot(c)) {
		rvx_client_close(c);
		print_message("no firmware image: build target firmware, set RIG_BUILD_DIR\n");
		skip();
	}
	rvx_queue_open(c, &queue, 0, 64);
}

static void put_launch(void)
{
	static const uint32_t code[] = {LI(T0, 1), SD(T0, A0, 0), RET};
	struct rvx1_packet p = {.opcode = RVX1_OP_LAUNCH,
	        .u.launch = {.entry = RVX_VA_BOARD + RVX_AT_CODE,
	                .params = RVX_VA_BOARD + RVX_AT_DATA,
	                .stacks = RVX_VA_BOARD + RVX_AT_STACKS,
	                .grid = {1, 1, 1},
	                .group = {1, 1, 1},
	                .slots = 1}};

	memcpy(c->memory + RVX_AT_CODE, code, sizeof(code));
	rvx_put(&queue, &p);
}

static void put_fill(void)
{
	struct rvx1_packet p = {.opcode = RVX1_OP_FILL,
	        .arg = 7,
	        .u.copy = {.dst = RVX_VA_BOARD + RVX_AT_DATA, .row_bytes = 64, .rows = 1, .dst_pitch = 64}};

	rvx_put(&queue, &p);
}

static uint64_t shown_value(void)
{
	return __atomic_load_n(
	        (const uint64_t *)(const void *)(c->status + RVX1_STATUS_VALUE), __ATOMIC_ACQUIRE);
}

static void hang_keeps_that_launch_running_and_the_board_answering(void **state)
{
	(void)state;
	begin("hang=2");
	put_launch();
	rvx_release(&queue, 1);
	rvx_await_value(c, 1);
	uint64_t heartbeat = rvx_reg32(c, RVX1_FW_HEARTBEAT);
	put_launch();
	rvx_release(&queue, 2);
	rvx_await_word(c, c->status + RVX1_STATUS_QUEUE + RVX1_STATUS_READ, 2);
	double deadline = rvx_seconds() + RVX_DEADLINE_S;
	while (rvx_reg32(c, RVX1_FW_HEARTBEAT) < heartbeat + 50)
		assert_true(rvx_seconds() < deadline);
	assert_int_equal(shown_value(), 1);
	assert_int_equal(rvx_reset_message(c), 0);
	assert_int_equal(rvx_client_close(c), 0);
}

static void late_shows_values_in_order_after_their_time(void **state)
{
	(void)state;
	begin("late=30");
	double start = rvx_seconds();
	for (uint64_t v = 1; v <= 5; v++)
		rvx_release(&queue, v);
	uint64_t last = 0;
	while (last < 5) {
		uint64_t now = shown_value();
		assert_true(now >= last);
		last = now;
		assert_true(rvx_seconds() - start < RVX_DEADLINE_S);
	}
	assert_true(rvx_seconds() - start >= 0.030);
	assert_int_equal(rvx_client_close(c), 0);
}

static void halt_stops_the_processor_before_that_release(void **state)
{
	(void)state;
	begin("halt=2");
	rvx_release(&queue, 1);
	rvx_await_value(c, 1);
	rvx_release(&queue, 2);
	rvx_await_reg(c, RVX1_CP_STATE, RVX1_CP_HALTED);
	assert_int_equal(rvx_reg32(c, RVX1_HALT_CODE), RVX1_HALT_BREAK);
	assert_true(rvx_reg64(c, RVX1_HALT_PC) != 0);
	assert_int_equal(shown_value(), 1);
	rvx_await_irq(c, RVX1_VECTOR_FAULT);
	assert_int_equal(rvx_client_close(c), 0);
}

static void bus_makes_that_fill_fault(void **state)
{
	(void)state;
	begin("bus=2");
	put_fill();
	rvx_release(&queue, 1);
	rvx_await_value(c, 1);
	put_fill();
	rvx_release(&queue, 2);
	rvx_await_fault(c, RVX1_FAULT_BUS);
	assert_true(rvx_reg64(c, RVX1_FAULT_ADDRESS) == RVX_VA_BOARD + RVX_AT_DATA);
	assert_int_equal(rvx_client_close(c), 0);
}

static void lose_irq_loses_one(void **state)
{
	(void)state;
	begin("lose-irq");
	rvx_release(&queue, 1);
	rvx_await_value(c, 1);
	__atomic_store_n((uint64_t *)(void *)(c->doorbells + RVX1_DOORBELL_ARM), 1, __ATOMIC_SEQ_CST);
	rvx_release(&queue, 2);
	rvx_await_value(c, 2);
	rvx_await_irq(c, RVX1_VECTOR_COMPLETE);
	uint64_t count;
	assert_int_equal(read(c->irq[RVX1_VECTOR_COMPLETE], &count, sizeof(count)), -1);
	assert_int_equal(rvx_client_close(c), 0);
}

static void gone_answers_all_ones_and_refuses_resets(void **state)
{
	static const uint32_t code[] = {J_SELF};

	(void)state;
	spawn("gone=1");
	assert_int_equal(rvx_reg32(c, RVX1_ID), RVX1_ID_VALUE);
	rvx_start_code(c, RVX_AT_CODE, code, 1);
	double deadline = rvx_seconds() + RVX_DEADLINE_S;
	while (rvx_reg32(c, RVX1_ID) != ONES32)
		assert_true(rvx_seconds() < deadline);
	assert_int_equal(rvx_read(c, RVX_CONFIG, PCI_VENDOR_ID, 4), ONES32);
	assert_true(shown_value() == UINT64_MAX);
	assert_int_equal(rvx_read(c, RVX1_BAR_MEMORY, 0, 4), ONES32);
	assert_true(rvx_reset_message(c) != 0);
	assert_int_equal(rvx_reg32(c, RVX1_ID), ONES32);
	assert_int_equal(rvx_client_close(c), 0);
}

static void refuse_boot_halts_at_once(void **state)
{
	static const uint32_t code[] = {J_SELF};

	(void)state;
	spawn("refuse-boot");
	rvx_start_code(c, RVX_AT_CODE, code, 1);
	assert_int_equal(rvx_reg32(c, RVX1_CP_STATE), RVX1_CP_HALTED);
	assert_int_equal(rvx_reg32(c, RVX1_HALT_CODE), RVX1_HALT_REFUSED);
	rvx_await_irq(c, RVX1_VECTOR_FAULT);
	assert_int_equal(rvx_client_close(c), 0);
}

static void slow_boot_starts_later(void **state)
{
	(void)state;
	double start = rvx_seconds();
	begin("slow-boot=40");
	assert_true(rvx_seconds() - start >= 0.040);
	assert_int_equal(rvx_client_close(c), 0);
}

static void refuse_reset_resets_nothing(void **state)
{
	(void)state;
	spawn("refuse-reset");
	rvx_set64(c, RVX1_CP_ENTRY, 5);
	assert_true(rvx_reset_message(c) != 0);
	rvx_reset_flr(c);
	assert_int_equal(rvx_reg64(c, RVX1_CP_ENTRY), 5);
	assert_int_equal(rvx_client_close(c), 0);
}

static void die_exits_at_that_launch_or_release(void **state)
{
	(void)state;
	begin("die=3");
	put_launch();
	rvx_release(&queue, 1);
	rvx_await_value(c, 1);
	rvx_release(&queue, 2);
	assert_true(rvx_await_hangup(c));
	assert_int_equal(rvx_client_close(c), DIED);
}

static void die_boot_exits_when_the_processor_is_started(void **state)
{
	uint32_t run[5] = {RVX1_CP_CTRL, 0, RVX1_BAR_REGS, 4, RVX1_CP_CTRL_RUN};
	uint16_t header[8] = {1, 10, 36, 0, 0, 0, 0, 0};

	(void)state;
	spawn("die-boot");
	assert_int_equal(write(c->fd, header, sizeof(header)), sizeof(header));
	assert_int_equal(write(c->fd, run, sizeof(run)), sizeof(run));
	assert_true(rvx_await_hangup(c));
	assert_int_equal(rvx_client_close(c), DIED);
}

/* ---- the process ---- */

static void it_exits_when_the_client_goes_even_in_an_endless_launch(void **state)
{
	static const uint32_t code[] = {J_SELF};

	(void)state;
	begin(NULL);
	put_launch();
	memcpy(c->memory + RVX_AT_CODE, code, sizeof(code));
	rvx_ring(&queue);
	assert_int_equal(rvx_client_close(c), 0);
}

static unsigned open_files(pid_t pid, unsigned *others)
{
	char path[64], link[256];
	unsigned count = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	DIR *folder = opendir(path);
	assert_non_null(folder);
	*others = 0;
	for (struct dirent *entry; (entry = readdir(folder));) {
		if (entry->d_name[0] == '.')
			continue;
		count++;
		ssize_t n = readlinkat(dirfd(folder), entry->d_name, link, sizeof(link) - 1);
		link[n < 0 ? 0 : n] = 0;
		*others += strstr(link, "rvx-leaked") != NULL;
	}
	closedir(folder);
	return count;
}

static void it_closes_what_its_parent_leaked_and_has_a_group_of_its_own(void **state)
{
	unsigned leaked;

	(void)state;
	int fd = memfd_create("rvx-leaked", 0);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_DUPFD, 50), 50);
	spawn(NULL);
	open_files(c->pid, &leaked);
	assert_int_equal(leaked, 0);
	assert_int_equal(getpgid(c->pid), c->pid);
	close(50);
	close(fd);
	assert_int_equal(rvx_client_close(c), 0);
}

static void it_ends_on_sigterm_whatever_it_does(void **state)
{
	static const uint32_t loop[] = {J_SELF};

	(void)state;
	for (unsigned busy = 0; busy < 2; busy++) {
		spawn(NULL);
		if (busy)
			rvx_start_code(c, RVX_AT_CODE, loop, 1);
		assert_int_equal(kill(c->pid, SIGTERM), 0);
		assert_true(rvx_await_hangup(c));
		assert_int_equal(rvx_client_close(c), 0);
	}
}

static void a_client_that_shrinks_its_memory_does_not_end_the_board(void **state)
{
	static const uint32_t code[] = {SD(A0, A0, 8), BEQ(ZERO, ZERO, -4)};

	(void)state;
	begin(NULL);
	put_launch();
	struct rvx1_packet *p = (struct rvx1_packet *)(void *)(c->memory + RVX_AT_RING);
	p->u.launch.params = RVX_VA_HOST;
	memcpy(c->memory + RVX_AT_CODE, code, sizeof(code));
	rvx_ring(&queue);
	rvx_await_word(c, c->host + 8, 1);
	assert_int_equal(ftruncate(c->host_fd, 0), 0);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(rvx_reg32(c, RVX1_CP_STATE), RVX1_CP_RUNNING);
	assert_int_equal(rvx_client_close(c), 0);
}

/* Starts rvx1-model --socket in a folder of its own, and waits until it listens. */
static pid_t spawn_server(char *folder, char *path, size_t room)
{
	assert_non_null(mkdtemp(folder));
	snprintf(path, room, "%s/s", folder);
	const char *args[] = {"--socket", path, "--memory", "64M", NULL};
	pid_t pid = rvx_server_spawn(args);
	double deadline = rvx_seconds() + RVX_DEADLINE_S;
	while (access(path, F_OK))
		assert_true(rvx_seconds() < deadline);
	return pid;
}

static void a_server_gives_each_client_a_board_as_after_power_on(void **state)
{
	char folder[] = "/tmp/rvx1-test-XXXXXX", path[64];
	static const uint32_t loop[] = {J_SELF};

	(void)state;
	pid_t pid = spawn_server(folder, path, sizeof(path));
	for (unsigned i = 0; i < 3; i++) {
		rvx_client_connect(c, path);
		assert_int_equal(rvx_read(c, RVX_CONFIG, PCI_COMMAND, 2), 0);
		rvx_client_map(c);
		assert_int_equal(rvx_reg32(c, RVX1_CP_STATE), RVX1_CP_RESET);
		assert_int_equal(shown_value(), 0);
		rvx_set64(c, RVX1_VALUE_SET, 9);
		rvx_start_code(c, RVX_AT_CODE, loop, 1);
		assert_int_equal(rvx_client_close(c), 0);
	}
	assert_int_equal(kill(pid, SIGTERM), 0);
	assert_int_equal(rvx_server_wait(pid), 0);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(rmdir(folder), 0);
}

static void bad_command_lines_and_failures_have_their_exit_status(void **state)
{
	const char *none[] = {NULL}, *fault[] = {"--fd", "0", "--fault", "x", NULL};
	const char *no_socket[] = {"--fd", "0", NULL}, *no_fd[] = {"--fd", "99", NULL};
	const char *no_folder[] = {"--socket", "/nonexistent/s", NULL}, *help[] = {"--help", NULL};
	const char *version[] = {"--version", NULL};

	(void)state;
	assert_int_equal(rvx_server_wait(rvx_server_spawn(none)), 2);
	assert_int_equal(rvx_server_wait(rvx_server_spawn(fault)), 2);
	assert_int_equal(rvx_server_wait(rvx_server_spawn(no_socket)), 1);
	assert_int_equal(rvx_server_wait(rvx_server_spawn(no_fd)), 1);
	assert_int_equal(rvx_server_wait(rvx_server_spawn(no_folder)), 1);
	assert_int_equal(rvx_server_wait(rvx_server_spawn(help)), 0);
	assert_int_equal(rvx_server_wait(rvx_server_spawn(version)), 0);
}

static void eight_gigabytes_cost_no_memory_until_they_are_used(void **state)
{
	const char *args[] = {"--memory", "8G", NULL};
	char path[64];
	unsigned long size = 0, resident = 0;

	(void)state;
	rvx_client_spawn(c, args);
	rvx_command(c, PCI_COMMAND_MEMORY);
	assert_true(rvx_reg64(c, RVX1_MEMORY_BYTES) == 8ull << 30);
	snprintf(path, sizeof(path), "/proc/%d/statm", c->pid);
	FILE *statm = fopen(path, "r");
	assert_non_null(statm);
	assert_int_equal(fscanf(statm, "%lu %lu", &size, &resident), 2);
	fclose(statm);
	assert_true(resident * 4096 < 64ul << 20);
	assert_int_equal(rvx_client_close(c), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(hang_keeps_that_launch_running_and_the_board_answering),
	        cmocka_unit_test(late_shows_values_in_order_after_their_time),
	        cmocka_unit_test(halt_stops_the_processor_before_that_release),
	        cmocka_unit_test(bus_makes_that_fill_fault),
	        cmocka_unit_test(lose_irq_loses_one),
	        cmocka_unit_test(gone_answers_all_ones_and_refuses_resets),
	        cmocka_unit_test(refuse_boot_halts_at_once),
	        cmocka_unit_test(slow_boot_starts_later),
	        cmocka_unit_test(refuse_reset_resets_nothing),
	        cmocka_unit_test(die_exits_at_that_launch_or_release),
	        cmocka_unit_test(die_boot_exits_when_the_processor_is_started),
	        cmocka_unit_test(it_exits_when_the_client_goes_even_in_an_endless_launch),
	        cmocka_unit_test(it_closes_what_its_parent_leaked_and_has_a_group_of_its_own),
	        cmocka_unit_test(it_ends_on_sigterm_whatever_it_does),
	        cmocka_unit_test(a_client_that_shrinks_its_memory_does_not_end_the_board),
	        cmocka_unit_test(a_server_gives_each_client_a_board_as_after_power_on),
	        cmocka_unit_test(bad_command_lines_and_failures_have_their_exit_status),
	        cmocka_unit_test(eight_gigabytes_cost_no_memory_until_they_are_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
