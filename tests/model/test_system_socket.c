/* SPDX-License-Identifier: MIT */
/* rvx1-model at a path: one client after the other, and what happens when either side ends early. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "counters.h"
#include "system_device.h"

#define BUSY_NS 20000000 /* of the model's processor time: a kernel runs */

enum { LOST = 1, NOT_OPENED = 3, CLIENTS = 6 };

static uint64_t cpu_ns(pid_t pid)
{
	struct timespec used;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &used))
		return 0;
	return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

struct watch {
	pid_t pid;
	uint64_t until;
};

static bool is_busy(void *arg)
{
	struct watch *watch = arg;

	return cpu_ns(watch->pid) > watch->until;
}

/* A client whose kernel runs on the model and never ends. */
static void start_busy(struct sys_process *client, const struct sys_process *model)
{
	struct watch watch = {model->pid, cpu_ns(model->pid) + BUSY_NS};
	char command[512];

	snprintf(command, sizeof(command), "rigctl run %s,hang=3600s k/loop_forever.elf loop_forever",
	        sys_served());
	sys_start(client, command);
	sys_await(is_busy, &watch, "the kernel to run");
}

static void end_busy(struct sys_process *client, int number)
{
	struct sys_result result;

	assert_int_equal(kill(-client->pid, number), 0);
	sys_finish(client, &result);
	assert_int_equal(result.status, -number);
}

static void clients_come_one_after_the_other(void **state)
{
	struct sys_process model;
	unsigned i;

	(void)state;
	sys_serve(&model, "--memory 64M");
	for (i = 0; i < CLIENTS; i++) {
		char device[256];

		snprintf(device, sizeof(device), "%s%s", sys_served(), i % 2 ? ",completion=store" : "");
		sys_assert_works(device);
	}
	assert_int_equal(sys_find("rvx1-model", NULL, 0), 1);
	sys_serve_end(&model);
	sys_assert_no_process();
}

static void one_process_opens_and_closes_a_served_board_again_and_again(void **state)
{
	struct test_counts before;
	struct sys_process model;
	struct rig_device *device;
	unsigned i;

	(void)state;
	sys_serve(&model, "");
	for (i = 0; i < CLIENTS; i++) {
		if (i == 1)
			test_counts_take(&before);
		device = sys_open(sys_served());
		sys_device_works(device);
		sys_close(device);
	}
	test_counts_same(&before);
	sys_serve_end(&model);
}

static void a_second_client_is_refused_while_one_is_served(void **state)
{
	struct sys_process model, first;
	struct sys_result result;
	char command[512];

	(void)state;
	sys_serve(&model, "");
	start_busy(&first, &model);
	snprintf(command, sizeof(command), "rigctl info %s", sys_served());
	sys_run(&result, command);
	sys_assert_failed(&result, NOT_OPENED, sys_served());
	/* The first one did not notice. */
	assert_int_equal(kill(first.pid, 0), 0);
	end_busy(&first, SIGINT);
	sys_assert_works(sys_served());
	sys_serve_end(&model);
}

static void a_client_killed_during_a_kernel_leaves_the_board_to_the_next(void **state)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGKILL};
	struct sys_process model, client;
	unsigned i;

	(void)state;
	sys_serve(&model, "");
	for (i = 0; i < 3; i++) {
		start_busy(&client, &model);
		end_busy(&client, numbers[i]);
		sys_assert_works(sys_served());
	}
	sys_serve_end(&model);
}

static void a_model_killed_while_it_serves_is_a_loss_and_its_socket_is_explained(void **state)
{
	struct sys_process model, client;
	struct sys_result result;
	char command[512];

	(void)state;
	sys_serve(&model, "");
	start_busy(&client, &model);
	assert_int_equal(kill(model.pid, SIGKILL), 0);
	sys_finish(&model, &result);
	assert_int_equal(result.status, -SIGKILL);
	sys_finish(&client, &result);
	sys_assert_failed(&result, LOST, "hung up");
	/* A killed process cannot remove its socket; who comes next is told. */
	snprintf(command, sizeof(command), "rigctl info %s", sys_served());
	sys_run(&result, command);
	sys_assert_failed(&result, NOT_OPENED, sys_served());
	sys_run(&result, "rvx1-model --socket board.sock");
	assert_int_equal(result.status, 1);
	assert_non_null(strstr(result.err, "remove it"));
	assert_int_equal(unlink(sys_path("board.sock")), 0);
	sys_serve(&model, "");
	sys_assert_works(sys_served());
	sys_serve_end(&model);
}

static void only_the_user_can_connect(void **state)
{
	struct sys_process model;
	struct sys_result result;
	struct stat st;

	(void)state;
	sys_serve(&model, "");
	assert_int_equal(stat(sys_path("board.sock"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	sys_serve_end(&model);
	assert_int_equal(mkdir(sys_path("shared"), 0700), 0);
	assert_int_equal(chmod(sys_path("shared"), 0777), 0);
	sys_run(&result, "rvx1-model --socket shared/board.sock");
	assert_int_equal(result.status, 1);
	assert_non_null(strstr(result.err, "not private"));
	assert_int_equal(rmdir(sys_path("shared")), 0);
}

static void two_models_cannot_have_one_path(void **state)
{
	struct sys_process model;
	struct sys_result result;

	(void)state;
	sys_serve(&model, "");
	sys_run(&result, "rvx1-model --socket board.sock");
	assert_int_equal(result.status, 1);
	assert_non_null(strstr(result.err, "another server"));
	sys_assert_works(sys_served());
	sys_serve_end(&model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(clients_come_one_after_the_other),
	        cmocka_unit_test(one_process_opens_and_closes_a_served_board_again_and_again),
	        cmocka_unit_test(a_second_client_is_refused_while_one_is_served),
	        cmocka_unit_test(a_client_killed_during_a_kernel_leaves_the_board_to_the_next),
	        cmocka_unit_test(a_model_killed_while_it_serves_is_a_loss_and_its_socket_is_explained),
	        cmocka_unit_test(only_the_user_can_connect),
	        cmocka_unit_test(two_models_cannot_have_one_path),
	};

	return cmocka_run_group_tests(tests, sys_setup, sys_teardown);
}
