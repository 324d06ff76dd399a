/* SPDX-License-Identifier: MIT */
/*
 * Proxies under the laws: a module for rig-conform.
 *   rig-conform module:remote_conform.so:KEYFILE,DEVICE[+DEVICE...],HOST:PORT
 * Each law's process connects anew.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conform_kernel.h"
#include "polled.h"
#include "rig_conform.h"
#include "rig_remote.h"
#include "rmt_proxy.h"

RIG_API const struct rig_opener *rig_conform_opener(const char *text, unsigned index);
RIG_API const struct rig_conform_code *rig_conform_code(const char *arch);

static struct rig_remote_job *job;

/* The index-th of names that '+' separates. */
static int pick(const char *names, size_t n, unsigned index, char *to, size_t size)
{
	const char *end = names + n, *at = names;

	for (; index && at < end; at++)
		index -= *at == '+';
	if (index || at >= end)
		return -ENODEV;
	snprintf(to, size, "%.*s", (int)strcspn(at, "+,"), at);
	return 0;
}

enum { DEVICES = 4, TEXT = 256 };

/* A device's opener, which connects when it makes the first. */
struct wrapped {
	struct rig_opener opener;
	char key[TEXT], machine[TEXT], device[TEXT];
};

static struct wrapped wrapped[DEVICES];

static int make(void *arg, rig_atomic_u64 *word, void **device, char *why, size_t why_bytes)
{
	struct wrapped *w = arg;
	const char *machine = w->machine;
	const struct rig_opener *opener;
	char name[2 * TEXT + 2];
	int err = 0;

	snprintf(name, sizeof(name), "%s@%s", w->device, machine);
	if (rig_locks_held())
		err = rig_error_set(-EINVAL, "this thread holds a lock");
	if (!err && !job)
		err = rig_remote_connect(&machine, 1, w->key, NULL, &job);
	if (!err)
		err = rig_remote_opener(job, name, &opener, NULL);
	if (!err)
		return opener->make(opener->arg, word, device, why, why_bytes);
	snprintf(why, why_bytes, "%s", rig_error());
	return err;
}

const struct rig_opener *rig_conform_opener(const char *text, unsigned index)
{
	const char *devices = strchr(text, ','), *machine = devices ? strchr(devices + 1, ',') : NULL;
	struct wrapped *w = &wrapped[index];

	if (!machine || index >= DEVICES) {
		(void)rig_error_set(-EINVAL, "it is KEYFILE,DEVICE[+DEVICE...],HOST:PORT");
		return NULL;
	}
	snprintf(w->key, sizeof(w->key), "%.*s", (int)(devices - text), text);
	snprintf(w->machine, sizeof(w->machine), "%s", machine + 1);
	if (pick(devices + 1, (size_t)(machine - devices - 1), index, w->device, sizeof(w->device))) {
		(void)rig_error_set(-ENODEV, "no further device was named");
		return NULL;
	}
	w->opener = (struct rig_opener){RIG_EDGE_VERSION, w->device, &rig_rmt_module, make, w};
	return &w->opener;
}

const struct rig_conform_code *rig_conform_code(const char *arch)
{
	static const struct rig_conform_code code = {.version = RIG_EDGE_VERSION,
	        .binary = conform_kernel,
	        .bytes = sizeof(conform_kernel),
	        .forever = true,
	        .fault = true};
	/* Of polled-agent's devices. */
	static const struct rig_conform_code polled = {.version = RIG_EDGE_VERSION,
	        .binary = POLLED_BINARY,
	        .bytes = sizeof(POLLED_BINARY),
	        .forever = true,
	        .fault = true};

	if (!strcmp(arch, "polled"))
		return &polled;
	return strcmp(arch, CONFORM_KERNEL_ARCH) ? NULL : &code;
}
