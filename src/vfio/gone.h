/* SPDX-License-Identifier: MIT */
#ifndef RIG_GONE_H
#define RIG_GONE_H

/*
 * The sticky "this function is gone", with its first reason and a descriptor that wakes whoever polls.
 * Private to src/vfio. rig_gone_say, rig_gone_fault and the readers may come from any thread; init and fini
 * from one.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { RIG_GONE_BYTES = 256 };

struct rig_gone {
	_Atomic(const char *) why; /* NULL while it is there; set once, with release */
	int fd;                    /* eventfd, readable once gone */
	pthread_mutex_t lock;      /* of text's writing */
	char text[RIG_GONE_BYTES];
};

int rig_gone_init(struct rig_gone *g);
void rig_gone_fini(struct rig_gone *g);

/* true: this call was the first, and its reason stays. */
bool rig_gone_say(struct rig_gone *g, const char *why);

/* The same from a signal handler: a mapped window vanished. */
void rig_gone_fault(struct rig_gone *g);

/* In a child of fork: gone there, and the parent is not woken. */
void rig_gone_orphan(struct rig_gone *g);

/* The reason, NULL while the function is there. Lives as long as g. */
static inline const char *rig_gone_why(const struct rig_gone *g)
{
	return atomic_load_explicit(&g->why, memory_order_acquire);
}

static inline bool rig_gone_is(const struct rig_gone *g)
{
	return rig_gone_why(g) != NULL;
}

/* err, with the reason as the thread's error text in place of the call's own if the function is gone: what
 * went wrong is then why it is gone. For `return rig_gone_settle(&f->gone, err)` after a call of the
 * transport; 0 stays 0. */
int rig_gone_settle(const struct rig_gone *g, int err);

/* -ENODEV with the reason as the thread's error text. Only once it is set. */
int rig_gone_fail(const struct rig_gone *g);

#endif
