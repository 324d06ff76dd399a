/* SPDX-License-Identifier: MIT */
/* The thread that waits for the kernel's two messages about a function. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "error.h"
#include "kernel_private.h"
#include "thread.h"

enum { QUIT = RIG_KERNEL_WATCHED, POLLED };

static const char *const reasons[RIG_KERNEL_WATCHED] = {
        "it reported an error that it cannot correct (PCIe advanced error reporting)",
        "the system asks for it back: it is being unplugged, or unbound from vfio-pci. Close it"};

static void *watch(void *arg)
{
	struct rig_kernel *k = arg;
	struct pollfd polled[POLLED] = {{.fd = k->watch_fd[0], .events = POLLIN},
	        {.fd = k->watch_fd[1], .events = POLLIN}, {.fd = k->quit_fd, .events = POLLIN}};

	/* Negative descriptors are passed over by poll(2). */
	while (poll(polled, POLLED, -1) < 0 && errno == EINTR)
		;
	if (polled[QUIT].revents)
		return NULL;
	for (unsigned i = 0; i < RIG_KERNEL_WATCHED; i++) {
		if (polled[i].revents) {
			k->sink->gone(k->sink->arg, reasons[i]);
			break;
		}
	}
	return NULL;
}

void rig_kernel_watch_close(struct rig_kernel *k)
{
	for (unsigned i = 0; i < RIG_KERNEL_WATCHED; i++) {
		if (k->watch_fd[i] >= 0)
			close(k->watch_fd[i]);
		k->watch_fd[i] = -1;
	}
	if (k->quit_fd >= 0)
		close(k->quit_fd);
	k->quit_fd = -1;
}

static int open_fds(struct rig_kernel *k)
{
	bool any = false;

	for (unsigned i = 0; i < RIG_KERNEL_WATCHED; i++) {
		if (k->irq_count[RIG_IRQ_ERR + i] == 0)
			continue;
		k->watch_fd[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (k->watch_fd[i] < 0)
			return -errno;
		any = true;
	}
	if (any)
		k->quit_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return any && k->quit_fd < 0 ? -errno : 0;
}

int rig_kernel_watch_start(struct rig_kernel *k)
{
	int err = open_fds(k);

	for (unsigned i = 0; i < RIG_KERNEL_WATCHED && !err; i++)
		err = rig_kernel_irq_watch(k, RIG_IRQ_ERR + i);
	if (!err && k->quit_fd >= 0) {
		err = rig_thread_start(&k->watcher, RIG_THREAD_ANY, watch, k);
		k->watching = !err;
	}
	if (!err)
		return 0;
	rig_kernel_watch_close(k);
	return rig_vfio_fail(err, NULL, "arming the error and release interrupts");
}

void rig_kernel_watch_stop(struct rig_kernel *k)
{
	uint64_t one = 1;
	ssize_t written;

	if (!k->watching)
		return;
	written = write(k->quit_fd, &one, sizeof(one));
	(void)written;
	pthread_join(k->watcher, NULL);
	k->watching = false;
}
