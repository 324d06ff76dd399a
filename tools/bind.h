/* SPDX-License-Identifier: MIT */
/*
 * Giving functions to vfio-pci and back, by driver_override alone: the ids that vfio-pci takes (new_id) are
 * never touched, since they would take other functions of the same kind too.
 *
 * Files are read below a root and written through a table, so that a dry run prints and a test records. What
 * fails is undone. One thread.
 */
#ifndef RIGCTL_BIND_H
#define RIGCTL_BIND_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "bdf.h"

enum { BIND_MEMBERS = 64, BIND_TEXT = 1024, BIND_NAME = 64 };

struct bind_io {
	const char *root; /* "" for this machine */
	bool dry;         /* write changes nothing: what it should have changed is not looked for */
	/* Paths are without the root. 0 or negative errno. */
	int (*write)(void *arg, const char *path, const char *text);
	int (*own)(void *arg, const char *path, uid_t user, uid_t *was); /* *was: whose it was, if 0 */
	/* Whether somebody holds the disk (its name below /dev) exclusively. */
	bool (*busy)(void *arg, const char *disk);
	void *arg;
};

struct bind_member {
	char bdf[RIG_BDF_TEXT];
	char driver[BIND_NAME];   /* before; "" if none */
	bool vfio;                /* before: a driver of VFIO's */
	char override[BIND_NAME]; /* before; "" if none */
};

struct bind {
	const struct bind_io *io;
	const char *driver; /* to bind to */
	bool group;         /* all functions of the group, but its bridges */
	bool hand;          /* the node to `user` */
	uid_t user;
	int group_number;                        /* out; -1: none */
	struct bind_member member[BIND_MEMBERS]; /* out: those that were bound, or unbound, now */
	unsigned count;
	char why[BIND_TEXT];  /* of a failure, with what could not be undone */
	char note[BIND_TEXT]; /* of a success: what is still in the way; "" if nothing */
};

/* -EBUSY: the machine works through it, or a process has a node of its driver open. -ENOENT: no such
 * function or driver. -EINVAL: no address, or a bridge. Others: what a write answered; all is as before
 * then, or `why` says what is not. */
int bind_function(struct bind *b, const char *address);

/* Back to whatever kernel driver wants it; a member's driver is then that one's name, "" for none. With
   `group` all functions of the group that a vfio driver or an override has. -EINVAL: no address, or nothing
   that bind could have put there. -EBUSY: a process holds one, or the machine works through it. Others: what
   a write answered; all is as before then, or `why` says what is not. */
int unbind_function(struct bind *b, const char *address);

#endif
