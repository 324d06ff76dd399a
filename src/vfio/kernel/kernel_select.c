/* SPDX-License-Identifier: MIT */
/* Which of the kernel's ways to a function, and a function's life between open and close. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "error.h"
#include "kernel_lock.h"
#include "kernel_private.h"
#include "kernel_space.h"
#include "log.h"

/* -- The process's functions -- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rig_kernel *first;

static void enlist(struct rig_kernel *k)
{
	pthread_mutex_lock(&lock);
	k->next = first;
	first = k;
	pthread_mutex_unlock(&lock);
}

static void delist(struct rig_kernel *k)
{
	struct rig_kernel **at = &first;

	pthread_mutex_lock(&lock);
	while (*at && *at != k)
		at = &(*at)->next;
	if (*at)
		*at = k->next;
	pthread_mutex_unlock(&lock);
}

void rig_kernel_lock(void)
{
	pthread_mutex_lock(&lock);
}

void rig_kernel_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void rig_kernel_each(void (*each)(void *arg, struct rig_kernel *k), void *arg)
{
	for (struct rig_kernel *k = first; k; k = k->next)
		each(arg, k);
}

/* -- The life of one -- */

static const struct way {
	enum rig_pci_transport which;
	const struct rig_kmodel *model;
	const struct rig_vfio_ops *ops;
} ways[] = {
        {RIG_PCI_IOMMUFD, &rig_kiommufd_model, &rig_kiommufd_ops},
        {RIG_PCI_TYPE1, &rig_ktype1_model, &rig_ktype1_ops},
        {RIG_PCI_NOIOMMU, &rig_knoiommu_model, &rig_knoiommu_ops},
};

static int start(struct rig_kernel *k, const struct way *way, const struct rig_pci_fds *fds)
{
	int err;

	k->way = way->which;
	k->model = way->model;
	err = way->model->open(k, fds);
	if (err)
		return err;
	enlist(k);
	err = rig_kernel_identify(k);
	if (err) {
		delist(k);
		k->model->detach(k);
	}
	return err;
}

/* Never no-IOMMU by itself. */
static bool is_candidate(const struct way *way, const struct rig_kernel_want *want)
{
	if (want->which != RIG_PCI_ANY)
		return way->which == want->which;
	if (want->fds && want->fds->container >= 0)
		return way->which == RIG_PCI_TYPE1;
	if (want->fds && want->fds->iommufd >= 0)
		return way->which == RIG_PCI_IOMMUFD;
	return way->which != RIG_PCI_NOIOMMU;
}

/* The open itself may fit, and what follows not. */
static void look_at_limit(struct rig_kernel *k, const struct rig_kernel_want *want, const struct rig_log *log)
{
	char text[RIG_VFIO_ERROR_BYTES];

	rig_kexplain_soon(k, UINT64_MAX >> 1, text, sizeof(text));
	k->limited = *text;
	if (!k->limited || !want->pins || k->way == RIG_PCI_NOIOMMU)
		return;
	rig_kexplain_soon(k, RIG_PCI_ARENA_STEP, text, sizeof(text));
	if (*text)
		rig_logf(log, RIG_LOG_WARN, "%s", text);
}

/* Both reasons where two ways were tried, if they differ. */
static int try_ways(struct rig_kernel *k, const struct rig_kernel_want *want, const struct rig_log *log,
        const struct rig_vfio_ops **ops)
{
	char before[RIG_VFIO_ERROR_BYTES / 2] = "";
	int err = -ENOTSUP;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (!is_candidate(&ways[i], want))
			continue;
		err = start(k, &ways[i], want->fds);
		if (!err) {
			rig_logf(log, RIG_LOG_INFO, "%s through %s: %s%s", k->sysfs.bdf, ways[i].ops->name,
			        want->fds                    ? "by the descriptors given"
			        : want->which != RIG_PCI_ANY ? "as asked"
			        : *before                    ? "iommufd does not serve: "
			                                     : "it is there and serves",
			        before);
			look_at_limit(k, want, log);
			if (*k->no_reset)
				rig_logf(log, RIG_LOG_WARN, "no reset: %s", k->no_reset);
			*ops = ways[i].ops;
			return 0;
		}
		if (*before && strncmp(before, rig_error(), sizeof(before) - 1) != 0)
			(void)rig_error_set(err, "%s; and through iommufd: %s", rig_error(), before);
		if (*before)
			return err;
		/* The function's own state is no reason to try again. */
		if (err == -ENODEV && ways[i].which == RIG_PCI_IOMMUFD && k->sysfs.group >= 0 &&
		        *k->sysfs.cdev)
			return err;
		snprintf(before, sizeof(before), "%.*s", (int)sizeof(before) - 1, rig_error());
	}
	return err;
}

static struct rig_kernel *new_kernel(const struct rig_kenv *env)
{
	struct rig_kernel *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	k->env = env;
	k->fd = k->lock_fd = k->quit_fd = -1;
	for (unsigned i = 0; i < RIG_KERNEL_WATCHED; i++)
		k->watch_fd[i] = -1;
	k->sysfs.group = k->sysfs.link_width = k->sysfs.numa = -1;
	return k;
}

static int take_lock(struct rig_kernel *k)
{
	int err = rig_klock_take(k->env->lock_dir, k->sysfs.bdf, &k->lock_fd);

	if (err == -EBUSY)
		return rig_kexplain_held(k);
	return err == -EALREADY ? -EBUSY : err;
}

/* What sysfs says, whoever drives it now, and that nobody else of ours does. With descriptors given, the
 * parent saw to it. */
static int prepare(struct rig_kernel *k, const struct rig_kernel_want *want)
{
	int err;

	snprintf(k->token, sizeof(k->token), "%s", want->token ? want->token : "");
	if (!want->bdf)
		return want->fds && want->fds->device >= 0
		               ? 0
		               : rig_vfio_fail(EINVAL, NULL, "neither an address nor a device's descriptor");
	err = rig_ksysfs_read(k->env->root, want->bdf, &k->sysfs);
	if (err)
		return rig_kexplain_absent(k, err, want->bdf);
	if (!want->fds)
		err = rig_kexplain_driver(k);
	if (!err && want->pins && want->which != RIG_PCI_NOIOMMU)
		err = rig_kexplain_need(k, want->pins(k->sysfs.vendor, k->sysfs.device));
	return err || want->fds ? err : take_lock(k);
}

int rig_kernel_open(const struct rig_kenv *env, const struct rig_kernel_want *want, const struct rig_log *log,
        const struct rig_vfio_ops **ops, void **transport)
{
	struct rig_kernel *k = new_kernel(env);
	int err;

	if (!k)
		return rig_vfio_fail(ENOMEM, NULL, "a function");
	err = prepare(k, want);
	if (!err)
		err = try_ways(k, want, log, ops);
	if (err) {
		rig_klock_drop(k->lock_fd);
		free(k);
		return err;
	}
	*transport = k;
	return 0;
}

int rig_kernel_attach(void *transport, const struct rig_vfio_sink *sink)
{
	struct rig_kernel *k = transport;

	k->sink = sink;
	return rig_kernel_watch_start(k);
}

void rig_kernel_close(void *transport)
{
	struct rig_kernel *k = transport;

	rig_kernel_irq_unwatch(k);
	rig_kernel_watch_stop(k);
	delist(k);
	k->model->detach(k);
	rig_klock_drop(k->lock_fd);
	free(k);
}

void rig_kernel_forked(void *transport)
{
	struct rig_kernel *k = transport;

	pthread_mutex_init(&lock, NULL);
	first = NULL;
	if (k->fd >= 0)
		close(k->fd);
	if (k->space)
		rig_kspace_forked(k->space);
	for (unsigned i = 0; i < RIG_KERNEL_WATCHED; i++)
		if (k->watch_fd[i] >= 0)
			close(k->watch_fd[i]);
	if (k->quit_fd >= 0)
		close(k->quit_fd);
	if (k->lock_fd >= 0)
		close(k->lock_fd);
}
