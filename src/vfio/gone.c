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

/* The reason is there before anybody is woken. */
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

void rig_gone_fault(struct rig_gone *g)
{
	(void)settle_on(g, "its mapped memory vanished under an access");
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
