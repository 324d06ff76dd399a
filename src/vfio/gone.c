/* SPDX-License-Identifier: MIT */
#include "gone.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bits.h"
#include "error.h"

int rig_gone_init(struct rig_gone *g)
{
	atomic_init(&g->why, NULL);
	g->text[0] = '\0';
	g->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (g->fd < 0)
		return rig_vfio_fail(errno, "raise the limit on open files (ulimit -n)", "eventfd");
	pthread_mutex_init(&g->lock, NULL);
	return 0;
}

void rig_gone_fini(struct rig_gone *g)
{
	pthread_mutex_destroy(&g->lock);
	close(g->fd);
}

/* The reason is there before anybody is woken. Also in a signal handler. */
static bool settle_on(struct rig_gone *g, const char *why)
{
	const char *none = NULL;
	uint64_t one = 1;
	ssize_t written;

	if (!atomic_compare_exchange_strong(&g->why, &none, why))
		return false;
	written = write(g->fd, &one, sizeof(one));
	(void)written; /* an eventfd at 0 takes a 1 always */
	return true;
}

bool rig_gone_say(struct rig_gone *g, const char *why)
{
	bool first;

	pthread_mutex_lock(&g->lock);
	first = !rig_gone_is(g);
	if (first) {
		snprintf(g->text, sizeof(g->text), "%s", why);
		first = settle_on(g, g->text);
	}
	pthread_mutex_unlock(&g->lock);
	return first;
}

void rig_gone_orphan(struct rig_gone *g)
{
	atomic_store(&g->why, "it was taken by the process that this one was forked from");
	close(g->fd);
	g->fd = -1;
	pthread_mutex_init(&g->lock, NULL);
}

int rig_gone_settle(const struct rig_gone *g, int err)
{
	const char *why = rig_gone_why(g);

	if (!err || !why)
		return err;
	return rig_vfio_fail(err, "is the device there? open it again", "the function is gone: %s", why);
}

int rig_gone_fail(const struct rig_gone *g)
{
	return rig_gone_settle(g, -ENODEV);
}

/* -- The guard -- */

/* A range counts for the handler while `at` is not 0; it is stored last and cleared first. */
struct range {
	_Atomic uintptr_t at;
	uint64_t bytes;
	struct rig_gone *gone;
};

static struct range ranges[RIG_GUARD_RANGES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of changes to ranges and to the handler */
static struct sigaction original, previous;              /* what ours replaced first, and last */
static uint64_t page;

static const struct range *find(uintptr_t address)
{
	for (unsigned i = 0; i < RIG_GUARD_RANGES; i++) {
		uintptr_t at = atomic_load_explicit(&ranges[i].at, memory_order_acquire);

		if (at != 0 && address >= at && address - at < ranges[i].bytes)
			return &ranges[i];
	}
	return NULL;
}

/* Only what a signal handler may do: system calls, and a memset. The page is filled before it is put in place
 * in one step, and the flag comes before it, so no thread sees anything but the device or ones, and ones only
 * once gone. */
static bool mend(uintptr_t address, const struct range *range)
{
	void *at = (void *)rig_align_down(address, page);
	void *p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return false;
	memset(p, 0xff, page);
	(void)settle_on(range->gone, "its mapped memory vanished under an access");
	return mremap(p, page, page, MREMAP_MAYMOVE | MREMAP_FIXED, at) != MAP_FAILED;
}

static void end_by(int number)
{
	const struct sigaction fatal = {.sa_handler = SIG_DFL};

	(void)sigaction(number, &fatal, NULL);
	(void)raise(number); /* when the handlers return, unless the access faults again before */
}

static void call(const struct sigaction *to, int number, siginfo_t *info, void *context)
{
	bool sent = info->si_code <= 0; /* by a process: only a fault cannot be ignored */

	if (to->sa_flags & SA_SIGINFO)
		to->sa_sigaction(number, info, context);
	else if (to->sa_handler != SIG_DFL && to->sa_handler != SIG_IGN)
		to->sa_handler(number);
	else if (to->sa_handler == SIG_DFL || !sent)
		end_by(number);
}

/*
 * Who put a handler over ours before ours was put back may pass on to ours: a circle. It is left by the
 * handler that was there before either, and where that one comes back too, by the end. What tells is a mark
 * in the signal's own siginfo, in a member that SIGBUS does not use: handlers pass it along, the next fault
 * has another, and a handler that jumps out leaves nothing behind.
 */
static void pass_on(int number, siginfo_t *info, void *context)
{
	enum { FIRST = 0x52494701, SECOND };

	if (info->si_errno == SECOND) {
		end_by(number);
	} else if (info->si_errno == FIRST) {
		info->si_errno = SECOND;
		call(&original, number, info, context);
	} else {
		info->si_errno = FIRST;
		call(&previous, number, info, context);
	}
}

static void on_fault(int number, siginfo_t *info, void *context)
{
	uintptr_t address = (uintptr_t)info->si_addr;
	const struct range *range = info->si_code == BUS_ADRERR ? find(address) : NULL;
	int saved = errno;

	if (!range || !mend(address, range))
		pass_on(number, info, context);
	errno = saved;
}

/* With the lock held. */
static int install(void)
{
	struct sigaction ours = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART},
	                 now;

	if (sigaction(SIGBUS, NULL, &now) < 0)
		return -errno;
	if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_fault)
		return 0;
	if (!page)
		original = now;
	page = (uint64_t)sysconf(_SC_PAGESIZE);
	previous = now;
	sigemptyset(&ours.sa_mask);
	return sigaction(SIGBUS, &ours, NULL) < 0 ? -errno : 0;
}

int rig_guard_add(void *at, uint64_t bytes, struct rig_gone *gone)
{
	int err;

	pthread_mutex_lock(&lock);
	err = install();
	for (unsigned i = 0; !err; i++) {
		if (i == RIG_GUARD_RANGES) {
			err = -ENOSPC;
		} else if (atomic_load_explicit(&ranges[i].at, memory_order_relaxed) == 0) {
			ranges[i].bytes = bytes;
			ranges[i].gone = gone;
			atomic_store_explicit(&ranges[i].at, (uintptr_t)at, memory_order_release);
			break;
		}
	}
	pthread_mutex_unlock(&lock);
	return err ? rig_vfio_fail(err, NULL, "guarding a window against its removal") : 0;
}

void rig_guard_remove(void *at)
{
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < RIG_GUARD_RANGES; i++) {
		if (atomic_load_explicit(&ranges[i].at, memory_order_relaxed) == (uintptr_t)at)
			atomic_store_explicit(&ranges[i].at, 0, memory_order_release);
	}
	pthread_mutex_unlock(&lock);
}

void rig_guard_forked(void)
{
	pthread_mutex_init(&lock, NULL);
	for (unsigned i = 0; i < RIG_GUARD_RANGES; i++)
		atomic_store_explicit(&ranges[i].at, 0, memory_order_relaxed);
}
