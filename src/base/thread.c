/* SPDX-License-Identifier: MIT */
#include "thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>

static void set_signals(pthread_attr_t *attributes)
{
	sigset_t block;

	sigfillset(&block);
	sigdelset(&block, SIGBUS);
	sigdelset(&block, SIGSEGV);
	sigdelset(&block, SIGFPE);
	sigdelset(&block, SIGILL);
	pthread_attr_setsigmask_np(attributes, &block);
}

static int set_cpu(pthread_attr_t *attributes, int cpu)
{
	cpu_set_t cpus;

	if (cpu == RIG_THREAD_ANY)
		return 0;
	if (cpu < 0 || cpu >= CPU_SETSIZE)
		return -EINVAL;
	CPU_ZERO(&cpus);
	CPU_SET((unsigned)cpu, &cpus);
	return -pthread_attr_setaffinity_np(attributes, sizeof(cpus), &cpus);
}

int rig_thread_start(pthread_t *thread, int cpu, void *(*run)(void *), void *arg)
{
	pthread_attr_t attributes;
	int err = -pthread_attr_init(&attributes);

	if (err)
		return err;
	set_signals(&attributes);
	err = set_cpu(&attributes, cpu);
	if (!err)
		err = -pthread_create(thread, &attributes, run, arg);
	pthread_attr_destroy(&attributes);
	return err;
}
