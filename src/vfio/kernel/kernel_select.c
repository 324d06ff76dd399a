/* SPDX-License-Identifier: MIT */
/* Which of the kernel's ways to a function, and a function's life between open and close. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "error.h"
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
} ways[] = {
        {RIG_PCI_IOMMUFD, &rig_kiommufd_model},
        {RIG_PCI_TYPE1, &rig_ktype1_model},
        {RIG_PCI_NOIOMMU, &rig_knoiommu_model},
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

/* Of a failed attempt, whichever step was its last: rig_error() is of it. */
static void note(const struct rig_kernel_want *want, struct rig_kernel *k, int err)
{
	struct rig_pci_attempt *t = &k->tried;

	t->way = k->way;
	t->err = err;
	if (t->step == RIG_PCI_STEP_OTHER)
		snprintf(t->text, sizeof(t->text), "%s", rig_error());
	if (want->failed && want->failed->count < RIG_PCI_ATTEMPTS)
		want->failed->attempt[want->failed->count++] = *t;
}

/* How it was taken; t is a failed attempt before, its text "" for none. */
static void tell(const struct rig_kernel *k, const struct rig_kernel_want *want, const struct rig_log *log,
        const struct rig_pci_attempt *t)
{
	rig_logf(log, RIG_LOG_INFO, "%s through %s: %s%s", k->sysfs.bdf, k->model->ops.name,
	        want->fds                    ? "by the descriptors given"
	        : want->which != RIG_PCI_ANY ? "as asked"
	        : *t->text                   ? "iommufd does not serve: "
	                                     : "it is there and serves",
	        t->text);
	if (*k->no_reset)
		rig_logf(log, RIG_LOG_WARN, "no reset: %s", k->no_reset);
}

/* The function's own state is no reason to try again. */
static bool is_last(const struct rig_kernel *k, int err)
{
	return k->way == RIG_PCI_IOMMUFD && err == -ENODEV && k->tried.step != RIG_PCI_STEP_NODE &&
	       k->sysfs.group >= 0 && *k->sysfs.cdev;
}

static int try_ways(struct rig_kernel *k, const struct rig_kernel_want *want, const struct rig_log *log,
        const struct rig_vfio_ops **ops)
{
	struct rig_pci_attempt before = {0};
	int err = -ENOTSUP;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (!is_candidate(&ways[i], want))
			continue;
		k->tried = (struct rig_pci_attempt){0};
		err = start(k, &ways[i], want->fds);
		if (!err) {
			tell(k, want, log, &before);
			*ops = &ways[i].model->ops;
			return 0;
		}
		note(want, k, err);
		if (is_last(k, err))
			return err;
		before = k->tried;
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

	if (err == -EBUSY) {
		k->tried.step = RIG_PCI_STEP_HELD;
		snprintf(k->tried.text, sizeof(k->tried.text), "%s", rig_error());
	}
	return err == -EALREADY ? -EBUSY : err;
}

static int check_driver(struct rig_kernel *k)
{
	const char *driver = k->sysfs.driver;

	if (k->sysfs.vfio)
		return 0;
	return rig_kernel_fail(k, RIG_PCI_STEP_DRIVER, *driver ? EBUSY : ENODEV, "it is with %s",
	        *driver ? driver : "no driver");
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
	if (err == -EINVAL)
		return rig_vfio_fail(
		        err, "write it as 0000:65:00.0", "\"%.32s\" is no PCI address", want->bdf);
	if (err)
		return rig_kernel_fail(k, RIG_PCI_STEP_ABSENT, err, "%s", "");
	if (want->fds)
		return 0;
	err = check_driver(k);
	return err ? err : take_lock(k);
}

int rig_kernel_open(const struct rig_kenv *env, const struct rig_kernel_want *want, const struct rig_log *log,
        const struct rig_vfio_ops **ops, void **transport)
{
	struct rig_kernel *k = new_kernel(env);
	int err;

	if (!k)
		return rig_vfio_fail(ENOMEM, NULL, "a function");
	if (want->failed)
		want->failed->count = 0;
	err = prepare(k, want);
	if (err)
		note(want, k, err);
	else
		err = try_ways(k, want, log, ops);
	if (err) {
		rig_klock_drop(k->lock_fd);
		free(k);
		return err;
	}
	*transport = k;
	return 0;
}

int rig_kernel_begin(void *want, struct rig_pci_taking *options)
{
	return rig_kernel_open(&rig_kenv, want, options->log, &options->ops, &options->transport);
}

int rig_kernel_attach(void *transport, const struct rig_vfio_sink *sink)
{
	struct rig_kernel *k = transport;

	k->sink = sink;
	return rig_kernel_watch_start(k);
}

void rig_kernel_quiet(void *transport)
{
	struct rig_kernel *k = transport;

	rig_kernel_irq_unwatch(k);
	rig_kernel_watch_stop(k);
}

void rig_kernel_close(void *transport)
{
	struct rig_kernel *k = transport;

	rig_kernel_watch_close(k);
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
