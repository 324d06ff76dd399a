/* SPDX-License-Identifier: MIT */
#ifndef TEST_MACHINE_TREE_H
#define TEST_MACHINE_TREE_H

/*
 * A machine as a tree of files, as scripts/capture-machine takes one: healthy at first, then made ill by a
 * test. It has a bridge with ACS and behind it a card with one function, with vfio-pci in group 12; Linux 6.6
 * with an Intel IOMMU that remaps interrupts, type1, iommufd, huge pages on one node, and a user who may open
 * the function and lock what it needs.
 *
 * Functions fail the running cmocka test when they cannot do their work. One thread.
 */

#include "test.h"

#include "doctor.h"

#define TREE_BRIDGE "0000:64:00.0"
#define TREE_BDF    "0000:65:00.0"
#define TREE_MATE   "0000:65:00.1"

#define TREE_DEVICES "/sys/bus/pci/devices/"
#define TREE_DRIVERS "/sys/bus/pci/drivers/"
#define TREE_GROUP   "/sys/kernel/iommu_groups/12"

struct tree {
	char root[64];
	struct rig_diagnosis found; /* the last tree_examine's */
};

void tree_init(struct tree *t);
void tree_fini(struct tree *t);

/* Writes a file, with its folders; NULL removes what is there, a folder with all in it. */
void tree_file(struct tree *t, const char *path, const char *text);
void tree_bytes(struct tree *t, const char *path, const void *bytes, size_t count);
/* Makes a link in place of what was there; to is as in the file system, or below the root if it begins with
 * '/'. */
void tree_link(struct tree *t, const char *path, const char *to);
/* A link with exactly this target, as a process's descriptors are shown. */
void tree_node(struct tree *t, const char *path, const char *target);
/* An attribute of a function. */
void tree_attribute(struct tree *t, const char *bdf, const char *name, const char *text);

/* Another function, below `parent` ("pci0000:64/0000:64:00.0"), with a driver ("" for none), in a group (-1:
 * none). */
void tree_function(struct tree *t, const char *parent, const char *bdf, const char *driver, int group);
/* Binds a function to another driver, "" for none. */
void tree_bind(struct tree *t, const char *bdf, const char *driver);
/* The companion of the card's function, as sound is of graphics, in the same group. */
void tree_mate(struct tree *t, const char *driver);

/* A disk with its device number ("8:1"), and a network interface, of a function. */
void tree_disk(struct tree *t, const char *bdf, const char *name, const char *number);
void tree_interface(struct tree *t, const char *bdf, const char *name);

/* Examines the function, or the machine (NULL), and fails unless what is found to be in the way is exactly
   this: ids with a space between them, in the table's order, "" for nothing. */
void tree_assert(struct tree *t, const char *bdf, const char *ids);
/* The same with more to ask. */
void tree_assert_ask(struct tree *t, const struct rig_doctor_ask *ask, const char *ids);
/* A finding of the last examination with the words in its evidence and commands, which must be there. */
const struct rig_finding *tree_finding(
        const struct tree *t, const char *id, const char *evidence, const char *command);
void tree_assert_silent(const struct tree *t, const char *id);

/* Group fixtures of a test: *state is the tree. */
int tree_setup(void **state);
int tree_teardown(void **state);

#define TREE_TEST(name) cmocka_unit_test_setup_teardown(name, tree_setup, tree_teardown)

#endif
