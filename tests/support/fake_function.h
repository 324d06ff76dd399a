/* SPDX-License-Identifier: MIT */
#ifndef FAKE_FUNCTION_H
#define FAKE_FUNCTION_H

/*
 * A function taken on the in-process fake, with the descriptors and mappings of the process counted around
 * it. Include after cmocka.h; link test_fake and test_support.
 */

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "counters.h"
#include "fake.h"
#include "pci.h"

struct fake_function {
	struct rig_fake *fake;
	struct rig_pci *pci;
	struct test_counts before;
};

/* BAR0 64 KiB with areas [0x2000, +0x2000) and [0x8000, +0x1000), BAR2 1 MiB all mappable, BAR4 4 KiB by
 * access only, four MSI-X vectors, one INTx, one ERR. */
static inline struct rig_fake_options fake_function_options(void)
{
	return (struct rig_fake_options){
	        .class_code = 0x120000,
	        .bar_bytes = {[0] = 0x10000, [2] = 0x100000, [4] = 0x1000},
	        .areas = {[0] = 2, [2] = 1},
	        .area = {[0] = {{0x2000, 0x2000}, {0x8000, 0x1000}}, [2] = {{0, 0x100000}}},
	        .irqs = {1, 0, 4, 1, 0},
	};
}

static inline void fake_function_open(
        struct fake_function *t, const struct rig_fake_options *fake_options, const struct rig_pci_taking *po)
{
	struct rig_pci_taking o = po ? *po : (struct rig_pci_taking){0};

	test_counts_take(&t->before);
	assert_int_equal(rig_fake_make(&t->fake, fake_options), 0);
	o.ops = &rig_fake_ops;
	o.transport = t->fake;
	if (rig_pci_take(&t->pci, &o))
		fail_msg("%s", rig_error());
}

static inline void fake_function_close(struct fake_function *t)
{
	rig_pci_close(t->pci);
	assert_int_equal(rig_fake_open_count(t->fake), 0);
	rig_fake_free(t->fake);
	test_counts_same(&t->before);
}

/* Whether a child of fork can still see these 8 bytes at p; what may have come to lie there since is not
 * them. */
static inline bool child_sees(const void *p, const char bytes[8])
{
	int status = 0, ends[2];
	char seen[8];
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (child == 0)
		_exit(write(ends[1], p, 8) == 8 && read(ends[0], seen, 8) == 8 &&
		        memcmp(seen, bytes, 8) == 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	close(ends[0]);
	close(ends[1]);
	return WEXITSTATUS(status) != 0;
}

#endif
