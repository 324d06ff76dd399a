/* SPDX-License-Identifier: MIT */
#include "vfio_kernel_bench.h"

#include "test.h"
#include <string.h>

#include "vfio_ops.h"

struct fake_kernel kernel;
char logged[2048];

static void note(void *arg, int level, const char *line)
{
	(void)arg;
	(void)level;
	strncat(logged, line, sizeof(logged) - strlen(logged) - 1);
}

const struct rig_log log_all = {.fn = note};

int kernel_setup(void **state)
{
	(void)state;
	logged[0] = 0;
	fake_kernel_init(&kernel);
	return 0;
}

int kernel_teardown(void **state)
{
	(void)state;
	fake_kernel_fini(&kernel);
	return 0;
}

int open_want(const struct rig_kernel_want *want, struct rig_pci **out)
{
	struct rig_pci_taking o = {0};
	int err = rig_kernel_open(&kernel.env, want, &log_all, &o.ops, &o.transport);

	*out = NULL;
	return err ? err : rig_pci_take(out, &o);
}

int open_by(enum rig_pci_transport which, const char *bdf, struct rig_pci **out)
{
	const struct rig_kernel_want want = {.bdf = bdf, .which = which};

	return open_want(&want, out);
}

struct rig_pci *take(enum rig_pci_transport which, const char *bdf)
{
	struct rig_pci *f;

	if (open_by(which, bdf, &f))
		fail_msg("%s", rig_error());
	return f;
}

void says(const char *words)
{
	if (!strstr(rig_error(), words))
		fail_msg("\"%s\" does not say \"%s\"", rig_error(), words);
}
