/* SPDX-License-Identifier: MIT */
#include "kernel_space.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel_private.h"
#include "range.h"

enum { ROOM_FIRST = 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list and of members */
static struct rig_kspace *first;

void rig_kspace_lock(void)
{
	pthread_mutex_lock(&lock);
}

void rig_kspace_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

struct rig_kspace *rig_kspace_join(enum rig_kspace_kind kind, int group)
{
	struct rig_kspace *s = first;

	if (group < 0)
		return NULL;
	while (s && (s->kind != kind || s->group != group))
		s = s->next;
	if (s)
		s->members++;
	return s;
}

struct rig_kspace *rig_kspace_add(enum rig_kspace_kind kind, int group, int fd, int group_fd)
{
	struct rig_kspace *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->kind = kind;
	s->group = group;
	s->members = 1;
	s->fd = fd;
	s->group_fd = group_fd;
	pthread_mutex_init(&s->lock, NULL);
	s->next = first;
	first = s;
	return s;
}

static void unmap_own(struct rig_kspace *s, struct rig_kernel *k,
        int (*unmap)(struct rig_kernel *k, uint64_t iova, uint64_t bytes))
{
	pthread_mutex_lock(&s->lock);
	for (size_t i = s->count; i > 0; i--) {
		struct rig_kspace_map m = s->at[i - 1];

		/* What the kernel does not give up stays listed, so that nobody else is given its
		 * addresses. */
		if (m.owner == k && unmap(k, m.iova, m.bytes) == 0)
			(void)rig_kspace_forget(s, m.iova, m.bytes, k);
	}
	pthread_mutex_unlock(&s->lock);
}

static void destroy(struct rig_kspace *s, const struct rig_ksys *sys)
{
	struct rig_kspace **at = &first;

	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	if (s->group_fd >= 0)
		sys->close(s->group_fd);
	sys->close(s->fd);
	pthread_mutex_destroy(&s->lock);
	free(s->at);
	free(s);
}

void rig_kspace_leave(struct rig_kspace *s, struct rig_kernel *k,
        int (*unmap)(struct rig_kernel *k, uint64_t iova, uint64_t bytes))
{
	if (!s)
		return;
	unmap_own(s, k, unmap);
	pthread_mutex_lock(&lock);
	if (--s->members == 0)
		destroy(s, k->env->sys);
	pthread_mutex_unlock(&lock);
}

void rig_kspace_forked(struct rig_kspace *s)
{
	pthread_mutex_init(&lock, NULL);
	first = NULL; /* the child takes functions of its own, in spaces of its own */
	if (s->group_fd >= 0)
		close(s->group_fd);
	if (s->fd >= 0)
		close(s->fd);
	s->group_fd = s->fd = -1;
}

/* The first mapping that ends above iova. */
static size_t find(const struct rig_kspace *s, uint64_t iova)
{
	size_t low = 0, high = s->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (s->at[mid].iova + (s->at[mid].bytes - 1) < iova)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

int rig_kspace_note(struct rig_kspace *s, uint64_t iova, uint64_t bytes, const void *owner)
{
	size_t i = find(s, iova);

	if (i < s->count && s->at[i].iova <= iova + (bytes - 1))
		return -EEXIST;
	if (s->count == s->room) {
		size_t room = s->room ? s->room * 2 : ROOM_FIRST;
		struct rig_kspace_map *at = reallocarray(s->at, room, sizeof(*at));

		if (!at)
			return -ENOMEM;
		s->at = at;
		s->room = room;
	}
	memmove(&s->at[i + 1], &s->at[i], (s->count - i) * sizeof(*s->at));
	s->at[i] = (struct rig_kspace_map){.iova = iova, .bytes = bytes, .owner = owner};
	s->count++;
	s->bytes += bytes;
	return 0;
}

struct rig_kspace_map *rig_kspace_find(struct rig_kspace *s, uint64_t iova, uint64_t bytes, const void *owner)
{
	size_t i = find(s, iova);

	if (i == s->count || s->at[i].iova != iova || s->at[i].bytes != bytes || s->at[i].owner != owner)
		return NULL;
	return &s->at[i];
}

void rig_kspace_pinned(struct rig_kspace *s, uint64_t iova, uint64_t bytes, const void *owner)
{
	struct rig_kspace_map *m = rig_kspace_find(s, iova, bytes, owner);

	if (!m || m->pinned)
		return;
	m->pinned = true;
	s->pinned += bytes;
}

int rig_kspace_forget(struct rig_kspace *s, uint64_t iova, uint64_t bytes, const void *owner)
{
	struct rig_kspace_map *m = rig_kspace_find(s, iova, bytes, owner);

	if (!m)
		return -ENOENT;
	s->count--;
	s->bytes -= bytes;
	s->pinned -= m->pinned ? bytes : 0;
	memmove(m, m + 1, (s->count - (size_t)(m - s->at)) * sizeof(*m));
	return 0;
}

int rig_kspace_others(struct rig_kspace *s, const void *owner, struct rig_ranges *free)
{
	int err = 0;

	for (size_t i = 0; i < s->count && !err; i++)
		if (s->at[i].owner != owner)
			err = rig_ranges_sub(free, s->at[i].iova, s->at[i].iova + (s->at[i].bytes - 1));
	return err;
}
