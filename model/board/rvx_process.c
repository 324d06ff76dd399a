/* SPDX-License-Identifier: MIT */
#include "rvx_process.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FIRST_OTHER_FD 3u
#define PAGE_BYTES     4096u

static volatile sig_atomic_t asked_to_stop;

static void ask(int number)
{
	(void)number;
	asked_to_stop = 1;
}

/*
 * A shared file became shorter. The board goes on with zeroes there; what else its own memory is can not
 * shrink (its files are sealed), so the only other cause is a machine without memory, where the same page of
 * nothing does less harm than dying.
 */
static void patch_page(int number, siginfo_t *info, void *context)
{
	void *page = (void *)((uintptr_t)info->si_addr & ~(uintptr_t)(PAGE_BYTES - 1));
	int saved = errno;

	(void)number;
	(void)context;
	if (info->si_code != BUS_ADRERR ||
	        mmap(page, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
	                0) == MAP_FAILED)
		_exit(1);
	errno = saved;
}

void rvx_process_close_others(int fd)
{
	unsigned keep = (unsigned)fd;

	if (fd < (int)FIRST_OTHER_FD) {
		close_range(FIRST_OTHER_FD, ~0u, 0);
		return;
	}
	if (keep > FIRST_OTHER_FD)
		close_range(FIRST_OTHER_FD, keep - 1, 0);
	close_range(keep + 1, ~0u, 0);
}

static int catch_stops(struct rvx_stop *stop)
{
	static const int stops[] = {SIGTERM, SIGINT, SIGHUP};
	struct sigaction action;
	sigset_t blocked;

	memset(&action, 0, sizeof(action));
	action.sa_handler = ask;
	sigemptyset(&blocked);
	for (unsigned i = 0; i < sizeof(stops) / sizeof(stops[0]); i++) {
		sigaddset(&blocked, stops[i]);
		if (sigaction(stops[i], &action, NULL) < 0)
			return -errno;
	}
	if (sigprocmask(SIG_BLOCK, &blocked, &stop->unblocked) < 0)
		return -errno;
	for (unsigned i = 0; i < sizeof(stops) / sizeof(stops[0]); i++)
		sigdelset(&stop->unblocked, stops[i]);
	stop->asked = &asked_to_stop;
	return 0;
}

int rvx_process_prepare(int fd, struct rvx_stop *stop)
{
	struct sigaction action;

	if (fd >= 0)
		setpgid(0, 0); /* fails only for a session leader, which is in a group of its own already */
	memset(&action, 0, sizeof(action));
	action.sa_sigaction = patch_page;
	action.sa_flags = SA_SIGINFO;
	if (sigaction(SIGBUS, &action, NULL) < 0)
		return -errno;
	action.sa_flags = 0;
	action.sa_handler = SIG_IGN;
	if (sigaction(SIGPIPE, &action, NULL) < 0)
		return -errno;
	return catch_stops(stop);
}
