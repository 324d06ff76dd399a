/* SPDX-License-Identifier: MIT */
/* VFIO_DEVICE_SET_IRQS. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bits.h"
#include "error.h"
#include "kernel_abi.h"
#include "kernel_private.h"

static int set(struct rig_kernel *k, uint32_t flags, const struct rig_vfio_irq *irq, const int *fds)
{
	bool with = (flags & RIG_KVFIO_IRQ_EVENTFD) != 0;
	size_t bytes = sizeof(struct rig_kvfio_irq_set) + (with ? irq->count * sizeof(int32_t) : 0);
	struct rig_kvfio_irq_set *s = calloc(1, bytes);
	int err;

	if (!s)
		return -ENOMEM;
	s->argsz = (uint32_t)bytes;
	s->flags = flags;
	s->index = irq->kind;
	s->start = irq->first;
	s->count = irq->count;
	if (with)
		memcpy(s->fd, fds, irq->count * sizeof(int32_t));
	err = rig_kernel_ioctl(k, k->fd, RIG_KVFIO_DEVICE_SET_IRQS, s);
	free(s);
	return err > 0 ? -ENOSPC : err; /* positive: so many vectors could be had */
}

/* Kernels that cannot add vectors later (before 6.5, and MSI on all) get all of them when the first is
 * connected. */
static int connect_all(struct rig_kernel *k, const struct rig_vfio_irq *irq)
{
	struct rig_vfio_irq all = {.kind = irq->kind, .count = k->irq_count[irq->kind]};
	int *fds = malloc(all.count * sizeof(*fds));
	int err;

	if (!fds)
		return -ENOMEM;
	for (unsigned i = 0; i < all.count; i++)
		fds[i] = i >= irq->first && i - irq->first < irq->count ? irq->fds[i - irq->first] : -1;
	err = set(k, RIG_KVFIO_IRQ_EVENTFD | RIG_KVFIO_IRQ_TRIGGER, &all, fds);
	free(fds);
	return err;
}

static int connect_irqs(struct rig_kernel *k, const struct rig_vfio_irq *irq)
{
	int err = -EINVAL;

	if (k->irq_noresize[irq->kind] && !k->irq_on[irq->kind] && irq->kind != RIG_IRQ_INTX)
		err = connect_all(k, irq);
	if (err)
		err = set(k, RIG_KVFIO_IRQ_EVENTFD | RIG_KVFIO_IRQ_TRIGGER, irq, irq->fds);
	if (!err)
		k->irq_on[irq->kind] = true;
	return err;
}

int rig_kernel_irq_watch(struct rig_kernel *k, unsigned kind)
{
	unsigned i = kind - RIG_IRQ_ERR;
	struct rig_vfio_irq irq = {.kind = kind, .count = 1};

	if (k->watch_fd[i] < 0)
		return 0;
	return set(k, RIG_KVFIO_IRQ_EVENTFD | RIG_KVFIO_IRQ_TRIGGER, &irq, &k->watch_fd[i]);
}

void rig_kernel_irq_unwatch(struct rig_kernel *k)
{
	for (unsigned kind = RIG_IRQ_ERR; kind <= RIG_IRQ_REQ; kind++) {
		struct rig_vfio_irq irq = {.kind = kind};

		if (k->irq_count[kind] > 0)
			(void)set(k, RIG_KVFIO_IRQ_NONE | RIG_KVFIO_IRQ_TRIGGER, &irq, NULL);
	}
}

static int off(struct rig_kernel *k, unsigned kind)
{
	struct rig_vfio_irq irq = {.kind = kind};

	k->irq_on[kind] = false;
	/* What the caller lets go of falls back to this library. */
	if ((kind == RIG_IRQ_ERR || kind == RIG_IRQ_REQ) && k->watching)
		return rig_kernel_irq_watch(k, kind);
	return set(k, RIG_KVFIO_IRQ_NONE | RIG_KVFIO_IRQ_TRIGGER, &irq, NULL);
}

int rig_kernel_irq_set(void *transport, const struct rig_vfio_irq *irq)
{
	struct rig_kernel *k = transport;
	int err = -EINVAL;

	if (irq->kind < RIG_IRQ_KINDS) {
		switch (irq->action) {
		case RIG_VFIO_IRQ_CONNECT:
			err = connect_irqs(k, irq);
			break;
		case RIG_VFIO_IRQ_OFF:
			err = off(k, irq->kind);
			break;
		case RIG_VFIO_IRQ_UNMASK:
			err = set(k, RIG_KVFIO_IRQ_NONE | RIG_KVFIO_IRQ_UNMASK, irq, NULL);
			break;
		}
	}
	return err ? rig_vfio_fail(err, err == -ENOSPC ? "the machine has no more vectors to give" : NULL,
	                     "VFIO_DEVICE_SET_IRQS of kind %u, vectors [%u, +%u)", irq->kind, irq->first,
	                     irq->count)
	           : 0;
}
