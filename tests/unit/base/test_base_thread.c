/* SPDX-License-Identifier: MIT */
#include "test.h"
#include <errno.h>
#include <sched.h>
#include <signal.h>

#include "thread.h"

struct seen {
	sigset_t blocked;
	cpu_set_t cpus;
};

static void *look(void *arg)
{
	struct seen *seen = arg;

	pthread_sigmask(SIG_SETMASK, NULL, &seen->blocked);
	sched_getaffinity(0, sizeof(seen->cpus), &seen->cpus);
	return NULL;
}

static struct seen start(int cpu)
{
	struct seen seen;
	pthread_t thread;

	assert_int_equal(rig_thread_start(&thread, cpu, look, &seen), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	return seen;
}

static void it_takes_no_signal_but_those_of_its_own_faults(void **state)
{
	struct seen seen = start(RIG_THREAD_ANY);

	(void)state;
	assert_true(sigismember(&seen.blocked, SIGINT) && sigismember(&seen.blocked, SIGALRM));
	assert_true(sigismember(&seen.blocked, SIGUSR1) && sigismember(&seen.blocked, SIGCHLD));
	assert_false(sigismember(&seen.blocked, SIGSEGV) || sigismember(&seen.blocked, SIGBUS));
	assert_false(sigismember(&seen.blocked, SIGFPE) || sigismember(&seen.blocked, SIGILL));
}

static void the_starting_threads_signals_stay_as_they_were(void **state)
{
	sigset_t mask;

	(void)state;
	(void)start(RIG_THREAD_ANY);
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	assert_false(sigismember(&mask, SIGINT));
}

static void it_runs_where_it_is_told(void **state)
{
	int here = sched_getcpu();
	struct seen seen;

	(void)state;
	seen = start(here);
	assert_int_equal(CPU_COUNT(&seen.cpus), 1);
	assert_true(CPU_ISSET((unsigned)here, &seen.cpus));
}

static void a_cpu_that_does_not_exist_is_refused(void **state)
{
	pthread_t thread;

	(void)state;
	assert_int_equal(rig_thread_start(&thread, CPU_SETSIZE - 1, look, NULL), -EINVAL);
	assert_int_equal(rig_thread_start(&thread, CPU_SETSIZE, look, NULL), -EINVAL);
	assert_int_equal(rig_thread_start(&thread, -2, look, NULL), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(it_takes_no_signal_but_those_of_its_own_faults),
	        cmocka_unit_test(the_starting_threads_signals_stay_as_they_were),
	        cmocka_unit_test(it_runs_where_it_is_told),
	        cmocka_unit_test(a_cpu_that_does_not_exist_is_refused),
	};

	return cmocka_run_group_tests_name("base_thread", tests, NULL, NULL);
}
