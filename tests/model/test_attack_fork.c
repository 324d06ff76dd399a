/* SPDX-License-Identifier: MIT */
/* Children of fork, made while threads open and close devices. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "system_device.h"

enum { THREADS = 2, FORKS = 20, KILLS = 6, MOST_FDS = 1024 };

static atomic_bool stop;
static atomic_uint opened;

static void *open_and_close(void *arg)
{
	while (!atomic_load(&stop)) {
		struct rig_opener *opener;
		struct rig_device *device;

		if (rig_vfio_opener("sim:mem=64M", NULL, &opener))
			abort();
		if (!rig_open(opener, &device)) {
			atomic_fetch_add(&opened, 1);
			(void)rig_close(device);
			rig_device_put(device);
		}
		rig_vfio_opener_free(opener);
	}
	return arg;
}

static void start_threads(pthread_t thread[THREADS])
{
	int i;

	atomic_store(&stop, false);
	atomic_store(&opened, 0);
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, open_and_close, NULL))
			abort();
}

static void end_threads(const pthread_t thread[THREADS])
{
	int i;

	atomic_store(&stop, true);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

/* In the child: the inherited device is lost, and one of its own works. */
static int work_with_own(struct rig_device *inherited)
{
	struct rig_opener *opener;
	struct rig_buffer *buffer;
	struct rig_device *own;
	char bytes[] = "own";

	if (rig_buffer_create(inherited, RIG_PINNED, 4, &buffer) != RIG_LOST || !rig_lost(inherited, NULL))
		return 1;
	rig_device_put(inherited);
	if (rig_vfio_opener("sim:mem=64M", NULL, &opener) || rig_open(opener, &own))
		return 2;
	if (rig_buffer_create(own, RIG_DEVICE, 4, &buffer) || rig_buffer_write(buffer, 0, bytes, 4) ||
	        rig_buffer_read(buffer, 0, bytes, 4) || strcmp(bytes, "own") != 0)
		return 3;
	rig_buffer_put(buffer);
	(void)rig_close(own);
	rig_device_put(own);
	rig_vfio_opener_free(opener);
	return 0;
}

/* A new device each time: each fork comes at another moment of the threads. */
static void children_open_devices_of_their_own_whatever_the_threads_were_at(void **state)
{
	struct rig_device *device;
	pthread_t thread[THREADS];
	int i, status;
	pid_t child;

	(void)state;
	if (SYS_TSAN || SYS_ASAN)
		skip(); /* neither lets a child of many threads go on */
	device = sys_open("sim:mem=64M");
	fflush(NULL);
	start_threads(thread);
	for (i = 0; i < FORKS; i++) {
		child = fork();
		if (child == 0)
			_exit(work_with_own(device));
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
	end_threads(thread);
	assert_true(atomic_load(&opened) > 0);
	sys_device_works(device);
	sys_close(device);
	sys_assert_no_process();
}

/* In a process of its own: threads that open and close, and a child made meanwhile, which lives until its
   pipe is closed. */
static void make_child_and_wait(const int lives[2], int made)
{
	pthread_t thread[THREADS];
	char byte = 0;

	close(lives[1]);
	start_threads(thread);
	while (atomic_load(&opened) < THREADS)
		sched_yield();
	if (fork() == 0) {
		(void)!read(lives[0], &byte, 1);
		_exit(0);
	}
	(void)!write(made, &byte, 1);
	end_threads(thread);
}

static bool is_no_model(void *arg)
{
	(void)arg;
	return sys_find("rvx1-model", NULL, 0) == 0;
}

static void models_of_a_killed_process_end_though_its_child_lives(void **state)
{
	int i, lives[2], made[2];
	char byte;

	(void)state;
	fflush(NULL);
	for (i = 0; i < KILLS; i++) {
		pid_t parent;

		assert_int_equal(pipe(lives), 0);
		assert_int_equal(pipe(made), 0);
		parent = fork();
		if (parent == 0) {
			make_child_and_wait(lives, made[1]);
			_exit(0);
		}
		assert_int_equal(read(made[0], &byte, 1), 1);
		assert_int_equal(kill(parent, SIGKILL), 0);
		assert_int_equal(waitpid(parent, NULL, 0), parent);
		sys_await(is_no_model, NULL, "the models to be gone");
		close(lives[0]);
		close(lives[1]);
		close(made[0]);
		close(made[1]);
		sys_assert_no_process();
	}
}

static void no_descriptor_of_a_device_is_passed_on_by_exec(void **state)
{
	bool before[MOST_FDS];
	struct rig_buffer *pinned;
	struct rig_device *device;
	int fd, found = 0;

	(void)state;
	for (fd = 0; fd < MOST_FDS; fd++)
		before[fd] = fcntl(fd, F_GETFD) >= 0;
	device = sys_open("sim:completion=store");
	pinned = sys_buffer(device, RIG_PINNED, 4096);
	for (fd = 0; fd < MOST_FDS; fd++) {
		int flags = fcntl(fd, F_GETFD);

		if (before[fd] || flags < 0)
			continue;
		found++;
		if (!(flags & FD_CLOEXEC))
			fail_msg("descriptor %d is not close-on-exec", fd);
	}
	assert_true(found > 0);
	rig_buffer_put(pinned);
	sys_close(device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        /* First: its processes have no device but their own. */
	        cmocka_unit_test(models_of_a_killed_process_end_though_its_child_lives),
	        cmocka_unit_test(children_open_devices_of_their_own_whatever_the_threads_were_at),
	        cmocka_unit_test(no_descriptor_of_a_device_is_passed_on_by_exec),
	};

	return cmocka_run_group_tests(tests, sys_setup, sys_teardown);
}
