/* SPDX-License-Identifier: MIT */
#include "gone.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "error.h"

int rig_gone_init(struct rig_gone *g)
{
	atomic_init(&g->set, false);
	g->why[0] = '\0';
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

bool rig_gone_say(struct rig_gone *g, const char *why)
{
	uint64_t one = 1;
	bool first;

	pthread_mutex_lock(&g->lock);
	first = !rig_gone_is(g);
	if (first) {
		snprintf(g->why, sizeof(g->why), "%s", why);
		atomic_store_explicit(&g->set, true, memory_order_release);
	}
	pthread_mutex_unlock(&g->lock);
	/* An eventfd at 0 takes a 1 always. */
	if (first && write(g->fd, &one, sizeof(one)) < 0)
		return true;
	return first;
}

int rig_gone_settle(const struct rig_gone *g, int err)
{
	if (!err || !rig_gone_is(g))
		return err;
	return rig_vfio_fail(err, "is the device process still there? open the function again",
	        "the function is gone: %s", g->why);
}

int rig_gone_fail(const struct rig_gone *g)
{
	return rig_gone_settle(g, -ENODEV);
}
