/* SPDX-License-Identifier: MIT */
/* What a sim leaves behind: nothing, however the program or the model ends. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "counters.h"
#include "system_device.h"

#define ENDLESS "rigctl -v run sim:hang=3600s k/loop_forever.elf loop_forever"
/* Of the model's processor time: more than starting and booting takes before the kernel runs. */
#define BUSY_NS  20000000
#define MAX_LEFT 8

enum { LOST = 1, USAGE = 2, BEFORE_FAILED = 126 };

/* ---- Files ---- */

static void a_run_leaves_no_file_and_no_process(void **state)
{
	char before[SYS_TEXT];
	struct sys_result result;

	(void)state;
	snprintf(before, sizeof(before), "%s", sys_names());
	sys_run(&result, "rigctl run sim k/globals.elf globals zero:64");
	sys_assert_done(&result);
	assert_string_equal(result.err, "");
	assert_string_equal(sys_names(), before);
	sys_assert_no_process();
}

#define CALL(name, action)                                                                                   \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, action)
/* With O_CREAT in argument `at`. */
#define CREATES(name, at)                                                                                    \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 4),                                               \
	        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)LOW_OF(at)),                                    \
	        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_CREAT, 0, 1), BPF_STMT(BPF_RET | BPF_K, REFUSE),      \
	        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define REFUSE     (SECCOMP_RET_ERRNO | EPERM)
#define LOW_OF(at) (offsetof(struct seccomp_data, args) + (at) * sizeof(uint64_t)) /* little-endian */

/* Whatever makes a name in a folder fails, for this process and all it starts. */
static int refuse_names(void *arg)
{
	struct sock_filter code[] = {
	        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
#ifdef SYS_open
	        CALL(creat, REFUSE),
	        CALL(mkdir, REFUSE),
	        CALL(mknod, REFUSE),
	        CALL(link, REFUSE),
	        CALL(symlink, REFUSE),
	        CALL(rename, REFUSE),
	        CREATES(open, 1),
#endif
	        CALL(mkdirat, REFUSE),
	        CALL(mknodat, REFUSE),
	        CALL(linkat, REFUSE),
	        CALL(symlinkat, REFUSE),
	        CALL(renameat2, REFUSE),
	        CALL(bind, REFUSE),
	        CALL(shmget, REFUSE),
	        CALL(openat2, SECCOMP_RET_ERRNO | ENOSYS),
	        CREATES(openat, 2),
	        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	(void)arg;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return errno;
	return 0;
}

static void run_without_names(const char *command, struct sys_result *result)
{
	const struct sys_before before = {refuse_names, NULL};
	struct sys_process p;

	sys_start_before(&p, command, &before);
	sys_finish(&p, result);
	if (result->status == BEFORE_FAILED)
		skip(); /* no seccomp here */
}

static void a_sim_works_where_nothing_can_be_given_a_name(void **state)
{
	struct sys_result result;

	(void)state;
	run_without_names("rigctl run sim k/globals.elf globals zero:64", &result);
	sys_assert_done(&result);
	run_without_names(
	        "rigctl run sim:completion=store,aperture=16M k/globals.elf globals zero:64", &result);
	sys_assert_done(&result);
	/* It is really so there: what must make a name fails. */
	run_without_names("rigctl run sim k/globals.elf globals out:o.bin,64", &result);
	sys_assert_failed(&result, USAGE, "o.bin: Operation not permitted");
	run_without_names("rvx1-model --socket other.sock", &result);
	assert_int_not_equal(result.status, 0);
	sys_assert_no_process();
}

/* A descriptor that no name in a folder leads to. */
static bool is_nameless(const char *target)
{
	static const char *const kinds[] = {
	        "socket:", "pipe:", "anon_inode:", "/memfd:", "/dev/null", "/anon_hugepage"};
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strncmp(target, kinds[i], strlen(kinds[i])))
			return true;
	return strstr(target, " (deleted)") != NULL;
}

static void assert_nameless(pid_t pid)
{
	char path[64], link[512], target[512];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	assert_non_null(dir);
	for (const struct dirent *e; (e = readdir(dir));) {
		ssize_t n;

		snprintf(link, sizeof(link), "%s/%s", path, e->d_name);
		n = readlink(link, target, sizeof(target) - 1);
		if (n < 0)
			continue;
		target[n] = 0;
		if (!is_nameless(target))
			fail_msg("process %d holds %s", pid, target);
	}
	closedir(dir);
}

/* ---- Signals ---- */

static uint64_t cpu_ns(pid_t pid)
{
	struct timespec used;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &used))
		return 0;
	return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

struct watch {
	const struct sys_process *p;
	pid_t model;
	uint64_t until;
};

static bool is_ready(void *arg)
{
	const struct watch *w = arg;
	char text[SYS_TEXT] = "";

	return pread(w->p->err, text, sizeof(text) - 1, 0) > 0 && strstr(text, " ready: ");
}

static bool is_busy(void *arg)
{
	const struct watch *w = arg;

	return cpu_ns(w->model) > w->until;
}

/* The model of the one sim that runs, once its kernel does: after the boot only that takes processor time. p
 * opens it; NULL: it is open. */
static pid_t await_kernel(const struct sys_process *p)
{
	struct watch w = {.p = p};

	sys_await_models(1);
	assert_int_equal(sys_find("rvx1-model", &w.model, 1), 1);
	if (p)
		sys_await(is_ready, &w, "the boot to end");
	w.until = cpu_ns(w.model) + BUSY_NS;
	sys_await(is_busy, &w, "the kernel to run");
	return w.model;
}

/* To the foreground job, as a terminal does, which the model is no part of. */
static void end_by(int number, bool running)
{
	struct sys_result result;
	struct sys_process p;
	pid_t model;

	sys_start(&p, ENDLESS);
	if (running) {
		model = await_kernel(&p);
		assert_int_not_equal(getpgid(model), p.pid);
		assert_nameless(model);
		assert_nameless(p.pid);
	} else {
		sys_await_models(1);
	}
	assert_int_equal(kill(-p.pid, number), 0);
	sys_finish(&p, &result);
	assert_int_equal(result.status, -number);
	sys_assert_no_process();
}

static void a_signal_during_a_kernel_leaves_nothing(void **state)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGKILL};
	char before[SYS_TEXT];
	size_t i;

	(void)state;
	snprintf(before, sizeof(before), "%s", sys_names());
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		end_by(numbers[i], true);
	assert_string_equal(sys_names(), before);
	sys_assert_works("sim");
}

static void a_signal_while_it_opens_leaves_nothing(void **state)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGKILL};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		end_by(numbers[i], false);
	sys_assert_works("sim");
}

static void a_model_that_is_killed_is_a_loss_with_its_reason(void **state)
{
	struct sys_result result;
	struct sys_process p;

	(void)state;
	sys_start(&p, ENDLESS);
	assert_int_equal(kill(await_kernel(&p), SIGKILL), 0);
	sys_finish(&p, &result);
	assert_int_equal(result.status, LOST);
	assert_non_null(strstr(result.err, "lost: the device process hung up"));
	sys_assert_no_process();
	sys_assert_works("sim");
}

/* ---- In one process ---- */

static pid_t only_model(void)
{
	pid_t model = 0;

	assert_int_equal(sys_find("rvx1-model", &model, 1), 1);
	return model;
}

static void assert_lost_by(struct rig_device *device, const char *why)
{
	const char *reason;

	assert_true(rig_lost(device, &reason));
	if (!strstr(reason, why))
		fail_msg("\"%s\" is not in: %s", why, reason);
}

static void kill_busy(const char *text)
{
	struct rig_device *device = sys_open(text);
	struct rig_image *image = sys_image(device, "loop_forever");
	struct sys_launch launch;
	struct rig_point point;

	sys_launch_make(&launch, image, "loop_forever", &(struct sys_params){.device = device}, 1, 1);
	point = sys_launch_submit(&launch);
	await_kernel(NULL);
	assert_int_equal(rig_reached(point), 0);
	assert_int_equal(kill(only_model(), SIGKILL), 0);
	assert_int_equal(rig_wait(point), RIG_LOST);
	assert_lost_by(device, "hung up");
	sys_launch_end(&launch);
	rig_image_put(image);
	rig_device_put(device);
}

/* No work is under way that could tell; the next one does. */
static void kill_idle(const char *text)
{
	struct rig_device *device = sys_open(text);
	struct rig_submission *empty = sys_empty(device);
	struct rig_point point;
	int err;

	sys_ok(rig_submit(empty, NULL, NULL, 0, &point));
	sys_ok(rig_wait(point));
	assert_int_equal(kill(only_model(), SIGKILL), 0);
	err = rig_submit(empty, NULL, NULL, 0, &point);
	if (!err)
		err = rig_wait(point);
	assert_int_equal(err, RIG_LOST);
	assert_lost_by(device, "hung up");
	rig_submission_put(empty);
	rig_device_put(device);
}

static void a_killed_model_loses_its_device_and_the_next_open_works(void **state)
{
	static const char *const texts[] = {"sim:hang=3600s", "sim:hang=3600s,completion=store"};
	struct rig_device *device;
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		kill_busy(texts[i]);
		kill_idle(texts[i]);
		device = sys_open(texts[i]);
		sys_device_works(device);
		sys_close(device);
	}
	sys_assert_no_process();
}

static void a_model_that_is_stopped_is_lost_after_the_hang_bound_and_killed(void **state)
{
	struct rig_device *device = sys_open("sim:hang=1s");
	struct rig_submission *empty = sys_empty(device);
	struct rig_point point;
	int err;

	(void)state;
	assert_int_equal(kill(only_model(), SIGSTOP), 0);
	err = rig_submit(empty, NULL, NULL, 0, &point);
	if (!err)
		err = rig_wait(point);
	assert_int_equal(err, RIG_LOST);
	assert_lost_by(device, "no progress for 1000 ms");
	rig_submission_put(empty);
	rig_device_put(device);
	sys_assert_no_process();
}

static void a_process_that_exits_with_open_devices_leaves_no_model(void **state)
{
	pid_t child;
	int status;

	(void)state;
	fflush(NULL);
	child = fork();
	if (child == 0) {
		struct rig_opener *opener;
		struct rig_device *device;
		int i;

		for (i = 0; i < 3; i++)
			if (rig_vfio_opener("sim", NULL, &opener) || rig_open(opener, &device))
				_exit(1);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	sys_assert_no_process();
}

/* In a child of fork: opens a device of its own, works with it and closes it. */
static int work_with_own(void)
{
	struct rig_opener *opener;
	struct rig_buffer *pinned, *board;
	struct rig_device *own;
	char bytes[] = "own";

	if (rig_vfio_opener("sim:completion=store", NULL, &opener) || rig_open(opener, &own))
		return 1;
	if (rig_buffer_create(own, RIG_PINNED, 4, &pinned) || rig_buffer_create(own, RIG_DEVICE, 4, &board) ||
	        rig_buffer_write(pinned, 0, bytes, 4) || rig_buffer_copy(board, 0, pinned, 0, 4) ||
	        rig_buffer_read(board, 0, bytes, 4) || strcmp(bytes, "own") != 0)
		return 2;
	rig_buffer_put(board);
	rig_buffer_put(pinned);
	(void)rig_close(own);
	rig_device_put(own);
	rig_vfio_opener_free(opener);
	return 0;
}

static void a_child_of_a_process_with_devices_may_open_its_own(void **state)
{
	struct rig_device *device;
	pid_t child;
	int status;

	(void)state;
	if (SYS_TSAN)
		skip(); /* it cannot start threads in a child of fork */
	device = sys_open("sim");
	fflush(NULL);
	child = fork();
	if (child == 0)
		_exit(rig_lost(device, NULL) ? work_with_own() : 3);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	sys_await_models(1);
	sys_device_works(device);
	sys_close(device);
	sys_assert_no_process();
}

/* ---- Many times ---- */

enum { ROUNDS = 100 };

static void open_and_close(const char *text)
{
	struct rig_device *device = sys_open(text);
	struct rig_submission *empty = sys_empty(device);
	struct rig_point point;

	sys_ok(rig_submit(empty, NULL, NULL, 0, &point));
	sys_ok(rig_wait(point));
	rig_submission_put(empty);
	sys_close(device);
}

/* Each open has a name of its own. */
static void opening_and_closing_two_hundred_times_leaks_nothing(void **state)
{
	struct test_counts before;
	unsigned i;

	(void)state;
	open_and_close("sim:mem=64M");
	open_and_close("sim:mem=64M,completion=store");
	test_counts_take(&before);
	for (i = 0; i < ROUNDS; i++) {
		open_and_close("sim:mem=64M");
		open_and_close("sim:mem=64M,completion=store");
		test_counts_same(&before);
	}
	sys_assert_no_process();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        /* First: it opens in a child of fork, which can as long as the parent never did. */
	        cmocka_unit_test(a_process_that_exits_with_open_devices_leaves_no_model),
	        cmocka_unit_test(a_run_leaves_no_file_and_no_process),
	        cmocka_unit_test(a_sim_works_where_nothing_can_be_given_a_name),
	        cmocka_unit_test(a_signal_during_a_kernel_leaves_nothing),
	        cmocka_unit_test(a_signal_while_it_opens_leaves_nothing),
	        cmocka_unit_test(a_model_that_is_killed_is_a_loss_with_its_reason),
	        cmocka_unit_test(a_killed_model_loses_its_device_and_the_next_open_works),
	        cmocka_unit_test(a_model_that_is_stopped_is_lost_after_the_hang_bound_and_killed),
	        cmocka_unit_test(a_child_of_a_process_with_devices_may_open_its_own),
	        cmocka_unit_test(opening_and_closing_two_hundred_times_leaks_nothing),
	};

	return cmocka_run_group_tests(tests, sys_setup, sys_teardown);
}
