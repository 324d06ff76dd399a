/* SPDX-License-Identifier: MIT */
/*
 * libfabric is loaded on first use, not linked: its providers come with libraries whose constructors
 * (libpsm2's) install signal handlers, which a program that uses no rail should not have, and which are
 * undone here for one that does.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "fabric_private.h"

#define LIBRARY "libfabric.so.1"

struct rig_fabric_signals {
	struct sigaction action[_NSIG];
	bool known[_NSIG];
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct rig_fabric_calls calls;
static char why[256];

struct rig_fabric_signals *rig_fabric_signals_save(void)
{
	struct rig_fabric_signals *saved = calloc(1, sizeof(*saved));

	for (int n = 1; saved && n < _NSIG; n++)
		saved->known[n] = !sigaction(n, NULL, &saved->action[n]);
	return saved;
}

void rig_fabric_signals_restore(struct rig_fabric_signals *saved)
{
	for (int n = 1; saved && n < _NSIG; n++) {
		struct sigaction now;

		if (saved->known[n] && !sigaction(n, NULL, &now) &&
		        now.sa_sigaction != saved->action[n].sa_sigaction)
			(void)sigaction(n, &saved->action[n], NULL);
	}
	free(saved);
}

/* dlsym's way of giving functions, without a cast from an object pointer. */
static bool find(void *library, const char *name, void *to)
{
	void *at = dlsym(library, name);

	memcpy(to, &at, sizeof(at));
	return at != NULL;
}

static void load(void)
{
	struct rig_fabric_signals *saved = rig_fabric_signals_save();
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

	if (!library || !find(library, "fi_getinfo", &calls.getinfo) ||
	        !find(library, "fi_freeinfo", &calls.freeinfo) ||
	        !find(library, "fi_dupinfo", &calls.dupinfo) || !find(library, "fi_fabric", &calls.fabric) ||
	        !find(library, "fi_strerror", &calls.strerror)) {
		const char *text = dlerror();

		(void)snprintf(why, sizeof(why), "%s", text ? text : "cannot load " LIBRARY);
	}
	rig_fabric_signals_restore(saved);
}

int rig_fabric_load(const struct rig_fabric_calls **found)
{
	(void)pthread_once(&once, load);
	if (why[0])
		return rig_error_set(-ENODEV, "rails need libfabric: %s (Debian: libfabric1)", why);
	*found = &calls;
	return 0;
}
