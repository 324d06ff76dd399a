/* SPDX-License-Identifier: MIT */
#include "rig_pci.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "bits.h"
#include "error.h"
#include "pci_private.h"

static const char *name(enum rig_irq_kind kind)
{
	static const char *const names[RIG_IRQ_KINDS] = {"INTx", "MSI", "MSI-X", "error", "release-request"};

	return (unsigned)kind < RIG_IRQ_KINDS ? names[kind] : "unknown";
}

unsigned rig_pci_irq_count(const struct rig_pci *f, enum rig_irq_kind kind)
{
	return (unsigned)kind < RIG_IRQ_KINDS ? f->irq[kind].count : 0;
}

static void close_all(int *fd, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		if (fd[i] >= 0)
			close(fd[i]);
	}
	free(fd);
}

/* Copies of the caller's descriptors over a copy of what is connected now: what the set will be. */
static int plan(const struct rig_irq_set *set, unsigned first, unsigned count, const int *fds, int **out)
{
	int *fd = malloc(set->count * sizeof(*fd));
	int err = 0;

	if (!fd)
		return rig_vfio_fail(ENOMEM, NULL, "a list of %u vectors", set->count);
	for (unsigned i = 0; i < set->count; i++) {
		bool new = i >= first &&i - first < count;
		int from = new ? fds[i - first] : set->fd ? set->fd[i] : -1;

		fd[i] = from < 0 || err ? -1 : fcntl(from, F_DUPFD_CLOEXEC, 0);
		if (from >= 0 && !err && fd[i] < 0)
			err = rig_vfio_fail(errno, NULL, "copying the descriptor of vector %u", i);
	}
	if (err)
		close_all(fd, set->count);
	else
		*out = fd;
	return err;
}

/* PCI 3.0 section 6.8: a function uses one of the three. */
static int check(const struct rig_pci *f, enum rig_irq_kind kind, unsigned first, unsigned count)
{
	if (count == 0 || !rig_span_fits(first, count, rig_pci_irq_count(f, kind)))
		return rig_vfio_fail(EINVAL, NULL, "%s vectors [%u, +%u) of %u", name(kind), first, count,
		        rig_pci_irq_count(f, kind));
	for (unsigned other = RIG_IRQ_INTX; other <= RIG_IRQ_MSIX && kind <= RIG_IRQ_MSIX; other++) {
		if (other != (unsigned)kind && f->irq[other].fd)
			return rig_vfio_fail(EBUSY, "disable them first", "enabling %s while %s is enabled",
			        name(kind), name((enum rig_irq_kind)other));
	}
	return 0;
}

static int connect_range(struct rig_pci *f, unsigned kind, unsigned first, unsigned count, const int *fds)
{
	struct rig_vfio_irq irq = {
	        .kind = kind, .action = RIG_VFIO_IRQ_CONNECT, .first = first, .count = count, .fds = fds};

	return rig_gone_settle(&f->gone, f->ops->irq_set(f->transport, &irq));
}

static int enable(
        struct rig_pci *f, enum rig_irq_kind kind, unsigned first, unsigned count, const int *eventfds)
{
	struct rig_irq_set *set = &f->irq[kind];
	int *fd = NULL, *old;
	int err = plan(set, first, count, eventfds, &fd);

	if (err)
		return err;
	err = connect_range(f, kind, first, count, fd + first);
	if (err) {
		close_all(fd, set->count);
		return err;
	}
	old = set->fd;
	set->fd = fd; /* in one step: a fork may come between any two */
	if (old)
		close_all(old, set->count);
	return 0;
}

int rig_pci_irq_enable(
        struct rig_pci *f, enum rig_irq_kind kind, unsigned first, unsigned count, const int *eventfds)
{
	int err;

	if (rig_gone_is(&f->gone))
		return rig_gone_fail(&f->gone);
	pthread_mutex_lock(&f->irq_lock);
	err = check(f, kind, first, count);
	if (!err)
		err = enable(f, kind, first, count, eventfds);
	pthread_mutex_unlock(&f->irq_lock);
	return err;
}

static int disable(struct rig_pci *f, unsigned kind)
{
	struct rig_vfio_irq irq = {.kind = kind, .action = RIG_VFIO_IRQ_OFF};
	struct rig_irq_set *set = &f->irq[kind];
	int *old, err = 0;

	if (!set->fd)
		return 0;
	if (!rig_gone_is(&f->gone))
		err = rig_gone_settle(&f->gone, f->ops->irq_set(f->transport, &irq));
	old = set->fd;
	set->fd = NULL;
	close_all(old, set->count);
	return err;
}

int rig_pci_irq_disable(struct rig_pci *f, enum rig_irq_kind kind)
{
	int err;

	if ((unsigned)kind >= RIG_IRQ_KINDS)
		return rig_vfio_fail(EINVAL, NULL, "interrupt kind %d", (int)kind);
	pthread_mutex_lock(&f->irq_lock);
	err = disable(f, kind);
	pthread_mutex_unlock(&f->irq_lock);
	return err;
}

int rig_pci_irq_unmask(struct rig_pci *f, enum rig_irq_kind kind)
{
	struct rig_vfio_irq irq = {.kind = kind, .action = RIG_VFIO_IRQ_UNMASK, .count = 1};
	int err;

	if (kind != RIG_IRQ_INTX || f->irq[kind].count == 0)
		return rig_vfio_fail(EINVAL, NULL, "unmasking %s", name(kind));
	if (rig_gone_is(&f->gone))
		return rig_gone_fail(&f->gone);
	pthread_mutex_lock(&f->irq_lock);
	err = rig_gone_settle(&f->gone, f->ops->irq_set(f->transport, &irq));
	pthread_mutex_unlock(&f->irq_lock);
	return err;
}

/* From the first that is connected to the last: the system may not have the others. */
static int rearm(struct rig_pci *f, unsigned kind)
{
	const struct rig_irq_set *set = &f->irq[kind];
	unsigned first = 0, end = set->fd ? set->count : 0;

	while (first < end && set->fd[first] < 0)
		first++;
	while (end > first && set->fd[end - 1] < 0)
		end--;
	return end > first ? connect_range(f, kind, first, end - first, set->fd + first) : 0;
}

int rig_irq_rearm(struct rig_pci *f)
{
	int err = 0;

	pthread_mutex_lock(&f->irq_lock);
	for (unsigned kind = 0; kind < RIG_IRQ_KINDS && !err; kind++)
		err = rearm(f, kind);
	pthread_mutex_unlock(&f->irq_lock);
	return err;
}

void rig_irq_fini(struct rig_pci *f)
{
	for (unsigned kind = 0; kind < RIG_IRQ_KINDS; kind++)
		(void)disable(f, kind);
}
