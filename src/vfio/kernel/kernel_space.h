/* SPDX-License-Identifier: MIT */
#ifndef RIG_KERNEL_SPACE_H
#define RIG_KERNEL_SPACE_H

/*
 * Address spaces that functions of this process share because the kernel will have it so: one a group,
 * since the functions of a group cannot be told apart by the IOMMU. Private to kernel_*.c.
 *
 * A space lives from the first function's joining to the last one's leaving, and knows who mapped what:
 * the next function takes addresses that the others left free, and who leaves leaves nothing. Any thread;
 * calls take the space's lock, held across the kernel's map and unmap.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rig_kernel;
struct rig_ranges;
struct rig_vfio_map;

enum rig_kspace_kind { RIG_KSPACE_TYPE1, RIG_KSPACE_IOMMUFD };

struct rig_kspace_map {
	uint64_t iova, bytes;
	const void *owner;
	uint64_t cookie; /* the model's own */
	bool pinned;     /* counts against a limit */
};

struct rig_kspace {
	struct rig_kspace *next;
	enum rig_kspace_kind kind;
	int group; /* -1: nobody else's */
	unsigned members;
	int fd;       /* container or iommufd */
	int group_fd; /* type1; else -1 */
	uint32_t ioas;
	bool file_maps; /* MAP_FILE may be tried */
	pthread_mutex_t lock;
	struct rig_kspace_map *at; /* sorted by iova */
	size_t count, room;
	uint64_t bytes, pinned;
};

/* The group's space of this kind, joined; NULL in *out if there is none yet: the caller makes one with
 * rig_kspace_add. Between the two, rig_kspace_lock is held. */
void rig_kspace_lock(void);
void rig_kspace_unlock(void);
struct rig_kspace *rig_kspace_join(enum rig_kspace_kind kind, int group);
/* A new space with one member. It owns fd and group_fd only if this succeeds. NULL: out of memory. */
struct rig_kspace *rig_kspace_add(enum rig_kspace_kind kind, int group, int fd, int group_fd);
/* The member unmaps what is still its own, by unmap, and leaves; the last one closes. NULL is allowed. */
void rig_kspace_leave(struct rig_kspace *s, struct rig_kernel *k,
        int (*unmap)(struct rig_kernel *k, uint64_t iova, uint64_t bytes));
/* In a child of fork: descriptors closed, no lock. */
void rig_kspace_forked(struct rig_kspace *s);

/* -- With s->lock held -- */

/* Lists what the kernel has mapped. -EEXIST: somebody's is there. -ENOMEM. */
int rig_kspace_note(struct rig_kspace *s, uint64_t iova, uint64_t bytes, const void *owner);
/* The owner's mapping of exactly this range, NULL if there is none. Valid until the list changes. */
struct rig_kspace_map *rig_kspace_find(
        struct rig_kspace *s, uint64_t iova, uint64_t bytes, const void *owner);
/* The listed mapping counts in s->pinned until it is forgotten. */
void rig_kspace_pinned(struct rig_kspace *s, uint64_t iova, uint64_t bytes, const void *owner);
/* -ENOENT: not exactly one of the owner's. */
int rig_kspace_forget(struct rig_kspace *s, uint64_t iova, uint64_t bytes, const void *owner);
/* Takes out of the set what others than owner have mapped. */
int rig_kspace_others(struct rig_kspace *s, const void *owner, struct rig_ranges *free);

#endif
