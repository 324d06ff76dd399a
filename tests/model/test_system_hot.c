/* SPDX-License-Identifier: MIT */
/*
 * Submitting, polling and waiting for what is reached: no allocation, no message to the device process, no
 * system call.
 *
 * The work is done by a thread under a seccomp filter that traps every system call but those it ends with;
 * the handler counts. The thread, and the filter with it, ends by the bare system call, because pthread_exit
 * makes others.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "allocs.h"
#include "rig_barrier.h"
#include "system_device.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

enum { ROUNDS = 200, BATCH = 8, WARM_UP = 20, VALUES = 64 };
#define MOST_LOOKS 4000000000u /* far more than any of this takes */

static atomic_uint trapped;
static atomic_int first_trapped; /* its number */

static void count_trap(int number, siginfo_t *info, void *context)
{
	int none = 0;

	(void)number;
	(void)context;
	atomic_compare_exchange_strong(&first_trapped, &none, info->si_syscall);
	atomic_fetch_add(&trapped, 1);
}

static void catch_traps(void)
{
	struct sigaction action = {.sa_sigaction = count_trap, .sa_flags = SA_SIGINFO};

	atomic_store(&trapped, 0);
	atomic_store(&first_trapped, 0);
	assert_int_equal(sigaction(SIGSYS, &action, NULL), 0);
}

/* From here this thread makes no system call that is not counted. */
static int filter_calls(void)
{
	struct sock_filter code[] = {
	        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 2, 0),
	        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 1, 0),
	        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
	        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return -errno;
	return 0;
}

/* ---- The work ---- */

struct hot {
	struct rig_device *device, *other;
	struct rig_submission *empty, *other_empty;
	struct sys_launch launch, copy;
	struct rig_image *image;
	struct rig_buffer *in, *out;
	/* Of the filtered thread; it reports, because a failed assertion would make system calls. */
	int filter; /* what installing it answered */
	unsigned calls, controls;
	int call; /* the first one's number */
	uint64_t allocations, messages, served;
	const char *failed;
};

static void open_hot(struct hot *hot, const char *text)
{
	static uint32_t numbers[VALUES];
	struct {
		uint64_t in, out, dirty;
	} params = {0};
	struct rig_buffer *dirty;

	memset(hot, 0, sizeof(*hot));
	hot->device = sys_open(text);
	hot->other = sys_open("sim:mem=64M");
	hot->empty = sys_empty(hot->device);
	hot->other_empty = sys_empty(hot->other);
	hot->image = sys_image(hot->device, "shared");
	hot->in = sys_buffer(hot->device, RIG_DEVICE, sizeof(numbers));
	hot->out = sys_buffer(hot->device, RIG_MAPPED, sizeof(numbers));
	dirty = sys_buffer(hot->device, RIG_PINNED, sizeof(numbers));
	sys_ok(rig_buffer_write(hot->in, 0, numbers, sizeof(numbers)));
	sys_launch_make(&hot->launch, hot->image, "shared",
	        &(struct sys_params){.device = hot->device,
	                .bytes = &params,
	                .count = sizeof(params),
	                .nbuffers = 3,
	                .buffer = {hot->in, hot->out, dirty}},
	        1, VALUES / 4);
	sys_ok(rig_run_shared(hot->launch.run, 0, VALUES));
	sys_copy_make(&hot->copy, hot->in, 0, hot->out, 0, sizeof(numbers));
	rig_buffer_put(dirty);
}

static void close_hot(struct hot *hot)
{
	sys_launch_end(&hot->launch);
	sys_launch_end(&hot->copy);
	rig_submission_put(hot->empty);
	rig_submission_put(hot->other_empty);
	rig_buffer_put(hot->in);
	rig_buffer_put(hot->out);
	rig_image_put(hot->image);
	sys_close(hot->device);
	sys_close(hot->other);
}

static bool poll_until_reached(struct hot *hot, struct rig_point point)
{
	unsigned looks = 0;
	int reached;

	while ((reached = rig_reached(point)) == 0 && ++looks < MOST_LOOKS)
		rig_pause();
	if (reached == 1 && !rig_wait(point) && rig_signaled(hot->device) <= rig_submitted(hot->device))
		return true;
	hot->failed = "a point was not reached";
	return false;
}

/* Every kind of submission, several under way at once, and a wait for another device's word. */
static bool one_round(struct hot *hot)
{
	struct rig_point point = {0}, other;
	unsigned i;
	int err = rig_submit(hot->other_empty, NULL, NULL, 0, &other);

	for (i = 0; i < BATCH && !err; i++) {
		err = rig_submit(hot->empty, NULL, &other, 1, &point);
		if (!err)
			err = rig_submit(hot->launch.submission, hot->launch.run, &point, 1, NULL);
		if (!err)
			err = rig_submit(hot->copy.submission, hot->copy.run, NULL, 0, &point);
	}
	if (err)
		hot->failed = "a submit failed";
	return !err && poll_until_reached(hot, other) && poll_until_reached(hot, point);
}

static void *work(void *arg)
{
	struct rig_vfio_stats before, after;
	struct hot *hot = arg;
	uint64_t allocations;
	unsigned i;

	for (i = 0; i < WARM_UP && one_round(hot); i++)
		;
	sys_stats(hot->device, &before);
	allocations = test_allocs();
	hot->filter = filter_calls();
	if (!hot->filter) {
		for (i = 0; i < ROUNDS && one_round(hot); i++)
			;
		hot->calls = atomic_load(&trapped);
		hot->call = atomic_load(&first_trapped);
		hot->allocations = test_allocs() - allocations;
		syscall(SYS_getppid);
		hot->controls = atomic_load(&trapped) - hot->calls;
	}
	sys_stats(hot->device, &after);
	hot->messages = after.messages - before.messages;
	hot->served = after.served - before.served;
	syscall(SYS_exit, 0);
	return NULL;
}

static void submit_poll_and_wait(const char *text)
{
	struct rig_vfio_stats before, after;
	pthread_t thread;
	struct hot hot;

	if (SANITIZED)
		skip(); /* the sanitizers allocate and call for themselves */
	open_hot(&hot, text);
	catch_traps();
	assert_int_equal(pthread_create(&thread, NULL, work, &hot), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	if (hot.failed)
		fail_msg("%s: %s", hot.failed, rig_error());
	if (!hot.filter) {
		if (hot.calls)
			fail_msg("%u system calls, the first is number %d", hot.calls, hot.call);
		/* A system call would have been seen. */
		assert_int_equal(hot.controls, 1);
	}
	assert_int_equal(hot.allocations, 0);
	assert_int_equal(hot.messages, 0);
	assert_int_equal(hot.served, 0);
	/* A message would have been seen. */
	sys_stats(hot.device, &before);
	static _Alignas(4096) uint8_t page[4096];
	struct rig_buffer *mapped;
	sys_ok(rig_buffer_of_host(hot.device, page, sizeof(page), &mapped));
	sys_stats(hot.device, &after);
	assert_true(after.messages > before.messages);
	rig_buffer_put(mapped);
	close_hot(&hot);
	if (hot.filter)
		skip(); /* no seccomp here: allocations and messages were checked, system calls were not */
}

static void with_polling_nothing_allocates_calls_or_sends(void **state)
{
	(void)state;
	submit_poll_and_wait("sim");
}

static void with_stores_nothing_allocates_calls_or_sends(void **state)
{
	(void)state;
	submit_poll_and_wait("sim:completion=store");
}

static void with_a_small_aperture_nothing_allocates_calls_or_sends(void **state)
{
	(void)state;
	submit_poll_and_wait("sim:aperture=16M");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(with_polling_nothing_allocates_calls_or_sends),
	        cmocka_unit_test(with_stores_nothing_allocates_calls_or_sends),
	        cmocka_unit_test(with_a_small_aperture_nothing_allocates_calls_or_sends),
	};

	return cmocka_run_group_tests(tests, sys_setup, sys_teardown);
}
