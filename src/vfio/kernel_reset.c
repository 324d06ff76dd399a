/* SPDX-License-Identifier: MIT */
/* Reset: the function's own where it has one, else a hot reset of its bus, which hits every function on
 * it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "kernel_abi.h"
#include "kernel_private.h"
#include "kernel_space.h"
#include "text.h"

/* A bus has 256 functions. */
enum { ENTRIES_MOST = 256, NAMES_BYTES = 256 };

struct hot {
	struct rig_kernel *k; /* which is to be reset */
	struct rig_kvfio_hot_info *info;
	const struct rig_kvfio_hot_entry *entry; /* while looking for its owner */
	bool ours;
	int group_fd[ENTRIES_MOST];
	uint32_t groups;
};

static int get_entries(struct hot *h)
{
	size_t bytes = sizeof(*h->info) + ENTRIES_MOST * sizeof(h->info->entry[0]);

	h->info = calloc(1, bytes);
	if (!h->info)
		return -ENOMEM;
	h->info->argsz = (uint32_t)bytes;
	return rig_kernel_ioctl(h->k, h->k->fd, RIG_KVFIO_DEVICE_HOT_RESET_INFO, h->info);
}

static void name_entry(const struct rig_kvfio_hot_entry *e, char *to, size_t bytes)
{
	snprintf(to, bytes, "%04x:%02x:%02x.%x", e->segment, e->bus, e->devfn >> 3, e->devfn & 7u);
}

static void add_group(struct hot *h, int fd)
{
	for (uint32_t i = 0; i < h->groups; i++)
		if (h->group_fd[i] == fd)
			return;
	if (h->groups < ENTRIES_MOST)
		h->group_fd[h->groups++] = fd;
}

/* Type1: who has the group has the function. */
static void look(void *arg, struct rig_kernel *other)
{
	struct hot *h = arg;

	if (!other->space || other->space->group_fd < 0 || other->sysfs.group != (int)h->entry->group)
		return;
	h->ours = true;
	add_group(h, other->space->group_fd);
}

static bool is_ours(struct hot *h, const struct rig_kvfio_hot_entry *e)
{
	if (h->info->flags & RIG_KVFIO_HOT_RESET_DEV_ID)
		return (h->info->flags & RIG_KVFIO_HOT_RESET_OWNED) || e->group != UINT32_MAX;
	h->entry = e;
	h->ours = false;
	rig_kernel_each(look, h);
	return h->ours;
}

static int check(struct hot *h)
{
	char names[NAMES_BYTES], bdf[16];
	struct rig_ksysfs s;
	struct rig_text text;
	bool all = true;

	rig_text_init(&text, names, sizeof(names));
	for (uint32_t i = 0; i < h->info->count && i < ENTRIES_MOST; i++) {
		if (is_ours(h, &h->info->entry[i]))
			continue;
		name_entry(&h->info->entry[i], bdf, sizeof(bdf));
		if (rig_ksysfs_read(h->k->env->root, bdf, &s))
			s.driver[0] = 0;
		rig_text_addf(&text, "%s%s (%s)", all ? "" : ", ", bdf, *s.driver ? s.driver : "no driver");
		all = false;
	}
	return all ? 0
	           : rig_vfio_fail(EBUSY, "take those functions too, or let go of them",
	                     "a hot reset of %s would also reset %s", h->k->sysfs.bdf, names);
}

static void free_hot(struct hot *h)
{
	if (h)
		free(h->info);
	free(h);
}

static int find(struct rig_kernel *k, struct hot **out)
{
	struct hot *h = calloc(1, sizeof(*h));
	int err;

	if (!h)
		return rig_vfio_fail(ENOMEM, NULL, "a list of functions");
	h->k = k;
	err = get_entries(h);
	if (err < 0)
		err = rig_vfio_fail(err, NULL, "%s has no reset of its own and no hot reset", k->sysfs.bdf);
	else
		err = check(h);
	if (err)
		free_hot(h);
	else
		*out = h;
	return err;
}

int rig_kernel_hot_check(struct rig_kernel *k)
{
	struct hot *h = NULL;
	int err = find(k, &h);

	free_hot(h);
	return err;
}

static int hot_reset(struct rig_kernel *k)
{
	union {
		struct rig_kvfio_hot_reset head;
		unsigned char bytes[sizeof(struct rig_kvfio_hot_reset) + ENTRIES_MOST * sizeof(int32_t)];
	} r = {.bytes = {0}};
	struct hot *h = NULL;
	int err = find(k, &h);

	if (err)
		return err;
	/* By cdev the list is empty: what the iommufd owns is the caller's. */
	if (!(h->info->flags & RIG_KVFIO_HOT_RESET_DEV_ID)) {
		r.head.count = h->groups;
		memcpy(r.head.group_fd, h->group_fd, h->groups * sizeof(int32_t));
	}
	r.head.argsz = (uint32_t)(sizeof(r.head) + r.head.count * sizeof(int32_t));
	free_hot(h);
	err = rig_kernel_ioctl(k, k->fd, RIG_KVFIO_DEVICE_HOT_RESET, &r);
	return err < 0 ? rig_vfio_fail(err, NULL, "a hot reset of %s", k->sysfs.bdf) : 0;
}

/* The kernel has deadlines of its own, of at most a minute. */
int rig_kernel_reset(void *transport, unsigned reset_ms)
{
	struct rig_kernel *k = transport;
	int err;

	(void)reset_ms;
	if (!(k->flags & RIG_KVFIO_DEVICE_RESETS))
		return hot_reset(k);
	err = rig_kernel_ioctl(k, k->fd, RIG_KVFIO_DEVICE_RESET, NULL);
	return err < 0 ? rig_vfio_fail(
	                         err, "see the kernel's log (dmesg)", "VFIO_DEVICE_RESET of %s", k->sysfs.bdf)
	               : 0;
}
