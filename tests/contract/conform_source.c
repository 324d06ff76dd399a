/* SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conform_kernel.h"
#include "conform_source.h"
#include "rig_vfio.h"

#define MODULE "module:"
#define SIM    "sim"

enum { DEVICES = 4 };

struct conform_named {
	struct conform_source source;
	const char *device, *second;
	struct rig_opener *openers[DEVICES];
	char *file; /* of a module; `text` follows its name */
	const char *text;
	void *module;
	rig_conform_opener_fn module_opener;
	rig_conform_code_fn module_code;
};

static const struct rig_conform_code kernel = {
        .version = RIG_EDGE_VERSION,
        .binary = conform_kernel,
        .bytes = sizeof(conform_kernel),
        .forever = true,
        .fault = true,
};

static const struct rig_conform_code *code_of(const struct conform_source *source, const char *arch)
{
	const struct conform_named *n = source->arg;

	if (n->module)
		return n->module_code ? n->module_code(arch) : NULL;
	return strcmp(arch, CONFORM_KERNEL_ARCH) ? NULL : &kernel;
}

/* Any number of models may be open, each under a name of its own; of all else there is one. */
static const char *device_at(const struct conform_named *n, unsigned index)
{
	size_t sim = sizeof(SIM) - 1;

	if (!index)
		return n->device;
	if (index == 1 && n->second)
		return n->second;
	if (!strncmp(n->device, SIM, sim) && (!n->device[sim] || n->device[sim] == ':'))
		return n->device;
	(void)rig_error_set(-ENODEV, "no further device was named");
	return NULL;
}

static const struct rig_opener *opener_of(const struct conform_source *source, unsigned index)
{
	struct conform_named *n = (struct conform_named *)(uintptr_t)source->arg;
	const char *text;

	if (n->module)
		return n->module_opener(n->text, index);
	if (index >= DEVICES)
		return NULL;
	text = device_at(n, index);
	if (!n->openers[index] && text)
		(void)rig_vfio_opener(text, NULL, &n->openers[index]);
	return n->openers[index];
}

/* A function is found as data. */
static void find(void *module, const char *name, void *function)
{
	void *at = dlsym(module, name);

	memcpy(function, &at, sizeof(at));
}

static int load_module(struct conform_named *n, const char *file)
{
	char *colon;

	n->file = strdup(file);
	if (!n->file)
		return rig_error_set(-ENOMEM, "no memory");
	n->text = "";
	colon = strchr(n->file, ':');
	if (colon) {
		*colon = 0;
		n->text = colon + 1;
	}
	n->module = dlopen(n->file, RTLD_NOW | RTLD_LOCAL);
	if (!n->module)
		return rig_error_set(-EINVAL, "module: %s", dlerror());
	find(n->module, RIG_CONFORM_OPENER, &n->module_opener);
	find(n->module, RIG_CONFORM_CODE, &n->module_code);
	if (!n->module_opener)
		return rig_error_set(-EINVAL, "%s exports no %s", n->file, RIG_CONFORM_OPENER);
	return 0;
}

int conform_source_make(const char *device, const char *second, struct conform_named **out)
{
	struct conform_named *n = calloc(1, sizeof(*n));
	struct rig_opener *opener;
	int err = 0;

	if (!n)
		return rig_error_set(-ENOMEM, "no memory");
	n->source = (struct conform_source){.opener = opener_of, .code = code_of, .arg = n};
	n->device = device;
	n->second = second;
	if (!strncmp(device, MODULE, sizeof(MODULE) - 1)) {
		err = load_module(n, device + sizeof(MODULE) - 1);
	} else {
		err = rig_vfio_opener(device, NULL, &opener);
		if (!err)
			rig_vfio_opener_free(opener);
	}
	if (!err && second) {
		err = rig_vfio_opener(second, NULL, &opener);
		if (!err)
			rig_vfio_opener_free(opener);
	}
	if (err) {
		conform_source_free(n);
		return err;
	}
	*out = n;
	return 0;
}

const struct conform_source *conform_source_of(const struct conform_named *named)
{
	return &named->source;
}

/* A module stays loaded: what it started may outlive this. */
void conform_source_free(struct conform_named *named)
{
	unsigned i;

	if (!named)
		return;
	for (i = 0; i < DEVICES; i++)
		if (named->openers[i])
			rig_vfio_opener_free(named->openers[i]);
	free(named->file);
	free(named);
}
