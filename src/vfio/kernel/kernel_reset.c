/* SPDX-License-Identifier: MIT */
/* Reset: the function's own where it has one, else a hot reset of its bus, which hits every function on
 * it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bdf.h"
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
	bool ours, open;                         /* the entry is in our hands; and a function of ours */
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

/* The kernel has 16 bits for a domain that may have 32; all that one reset hits are of one domain. */
static char *name_entry(const struct hot *h, const struct rig_kvfio_hot_entry *e, char *to)
{
	struct rig_bdf bdf = {0};

	(void)rig_bdf_parse(h->k->sysfs.bdf, &bdf);
	bdf = (struct rig_bdf){.domain = (bdf.domain & ~UINT32_C(0xffff)) | e->segment,
	        .bus = e->bus,
	        .slot = e->devfn >> 3,
	        .function = e->devfn & 7u};
	return rig_bdf_print(&bdf, to);
}

static void add_group(struct hot *h, int fd)
{
	for (uint32_t i = 0; i < h->groups; i++)
		if (h->group_fd[i] == fd)
			return;
	if (h->groups < ENTRIES_MOST)
		h->group_fd[h->groups++] = fd;
}

static bool is_entry(const struct hot *h, const struct rig_kernel *k)
{
	char bdf[RIG_BDF_TEXT];

	return strcmp(name_entry(h, h->entry, bdf), k->sysfs.bdf) == 0;
}

/* Type1: who has the group has the function. One that came by descriptors alone may be any. */
static void look(void *arg, struct rig_kernel *other)
{
	struct hot *h = arg;

	if (other != h->k && (is_entry(h, other) || !*other->sysfs.bdf))
		h->open = true;
	if (!other->space || other->space->group_fd < 0 || other->sysfs.group != (int)h->entry->group)
		return;
	h->ours = true;
	add_group(h, other->space->group_fd);
}

static void look_for(struct hot *h, const struct rig_kvfio_hot_entry *e)
{
	h->entry = e;
	h->ours = h->open = false;
	rig_kernel_each(look, h);
	if (is_entry(h, h->k))
		h->open = false;
	if (h->info->flags & RIG_KVFIO_HOT_RESET_DEV_ID)
		h->ours = (h->info->flags & RIG_KVFIO_HOT_RESET_OWNED) || e->group != UINT32_MAX;
}

/* What stands in the way; `ours`: not what this process has open. */
static int check(struct hot *h, bool ours)
{
	char names[NAMES_BYTES], bdf[RIG_BDF_TEXT];
	struct rig_ksysfs s;
	struct rig_text text;
	bool all = true;

	rig_text_init(&text, names, sizeof(names));
	for (uint32_t i = 0; i < h->info->count && i < ENTRIES_MOST; i++) {
		look_for(h, &h->info->entry[i]);
		if (h->ours && (ours || !h->open))
			continue;
		if (rig_ksysfs_read(h->k->env->root, name_entry(h, h->entry, bdf), &s))
			s.driver[0] = 0;
		rig_text_addf(&text, "%s%s (%s)", all ? "" : ", ", bdf,
		        h->ours     ? "which this process has open"
		        : *s.driver ? s.driver
		                    : "no driver");
		all = false;
	}
	return all ? 0
	           : rig_vfio_fail(EBUSY,
	                     ours ? "take those functions too, or let go of them"
	                          : "close those functions first",
	                     "a hot reset of %s would also reset %s", h->k->sysfs.bdf, names);
}

static void free_hot(struct hot *h)
{
	if (h)
		free(h->info);
	free(h);
}

/* With rig_kernel_lock held. */
static int find(struct rig_kernel *k, bool ours, struct hot **out)
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
		err = check(h, ours);
	if (err)
		free_hot(h);
	else
		*out = h;
	return err;
}

static int try(struct rig_kernel *k, bool ours)
{
	struct hot *h = NULL;
	int err;

	rig_kernel_lock();
	err = find(k, ours, &h);
	rig_kernel_unlock();
	free_hot(h);
	return err;
}

int rig_kernel_hot_check(struct rig_kernel *k)
{
	return try(k, true);
}

int rig_kernel_reset_check(void *transport, bool ours)
{
	struct rig_kernel *k = transport;

	return k->flags & RIG_KVFIO_DEVICE_RESETS ? 0 : try(k, ours);
}

bool rig_kernel_reset_hits(void *transport, const char *bdf)
{
	struct rig_kernel *k = transport;
	struct hot h = {.k = k};
	char name[RIG_BDF_TEXT];
	bool hits = false;
	int err;

	if (k->flags & RIG_KVFIO_DEVICE_RESETS)
		return false;
	err = get_entries(&h);
	for (uint32_t i = 0; err >= 0 && bdf && i < h.info->count && i < ENTRIES_MOST && !hits; i++)
		hits = strcmp(name_entry(&h, &h.info->entry[i], name), bdf) == 0;
	free(h.info);
	return hits || err < 0 || !bdf;
}

static int hot_reset_locked(struct rig_kernel *k, bool ours)
{
	union {
		struct rig_kvfio_hot_reset head;
		unsigned char bytes[sizeof(struct rig_kvfio_hot_reset) + ENTRIES_MOST * sizeof(int32_t)];
	} r = {.bytes = {0}};
	struct hot *h = NULL;
	int err = find(k, ours, &h);

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

/* No function of ours is opened between the look and the reset. */
static int hot_reset(struct rig_kernel *k, bool ours)
{
	int err;

	rig_kernel_lock();
	err = hot_reset_locked(k, ours);
	rig_kernel_unlock();
	return err;
}

/* The kernel has deadlines of its own, of at most a minute. */
int rig_kernel_reset(void *transport, unsigned reset_ms, bool ours)
{
	struct rig_kernel *k = transport;
	int err;

	(void)reset_ms;
	if (!(k->flags & RIG_KVFIO_DEVICE_RESETS))
		return hot_reset(k, ours);
	err = rig_kernel_ioctl(k, k->fd, RIG_KVFIO_DEVICE_RESET, NULL);
	return err < 0 ? rig_vfio_fail(
	                         err, "see the kernel's log (dmesg)", "VFIO_DEVICE_RESET of %s", k->sysfs.bdf)
	               : 0;
}
