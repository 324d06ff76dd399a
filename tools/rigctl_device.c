/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "log.h"
#include "rig_vfio.h"
#include "rigctl.h"
#include "take.h"
#include "via.h"

bool verbose;

static void say(void *arg, int level, const char *text)
{
	(void)arg;
	(void)level;
	fprintf(stderr, "rigctl: %s\n", text);
}

const char *reason(const char *text, const char *name)
{
	size_t length = strlen(name);

	return !strncmp(text, name, length) && !strncmp(text + length, ": ", 2) ? text + length + 2 : text;
}

int open_device(const char *text, struct rig_device **device)
{
	const struct rig_vfio_options options = {
	        .version = RIG_EDGE_VERSION, .guard = true, .log = verbose ? say : NULL};
	struct rig_opener *opener;
	int err;

	if (via.machine)
		return via_open(text, device);
	err = rig_vfio_opener(text, &options, &opener);
	if (err)
		return complain(EXIT_USAGE, "%s", rig_error());
	err = rig_open(opener, device);
	if (err)
		complain(EXIT_OPEN, "cannot open %s: %s", text, reason(rig_error(), opener->name));
	rig_vfio_opener_free(opener);
	return err ? EXIT_OPEN : 0;
}

int take_function(const char *text, struct rig_taken *out)
{
	static const struct rig_log log = {.fn = say};
	struct rig_spec spec;

	if (rig_spec_parse(text, &spec))
		return complain(EXIT_USAGE, "%s", rig_error());
	if (!rig_take(&spec, &(struct rig_take_options){.guard = true, .log = verbose ? &log : NULL}, out))
		return 0;
	return complain(EXIT_OPEN, "cannot open %s: %s", text, reason(rig_error(), spec.base));
}

void close_device(struct rig_device *device)
{
	rig_close(device);
	rig_device_put(device);
}
