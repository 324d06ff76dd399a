/* SPDX-License-Identifier: MIT */
#include "function.h"

#include <stdio.h>

#include "log.h"
#include "rigctl.h"

static void say(void *arg, int level, const char *text)
{
	(void)arg;
	(void)level;
	fprintf(stderr, "rigctl: %s\n", text);
}

int take_function(const char *text, struct rig_taken *out)
{
	static const struct rig_log log = {.fn = say};
	struct rig_spec spec;

	if (rig_spec_parse(text, &spec))
		return complain(EXIT_USAGE, "%s", rig_error());
	if (!rig_take(&spec, NULL, true, verbose ? &log : NULL, out))
		return 0;
	return complain(EXIT_OPEN, "cannot open %s: %s", text, reason(rig_error(), spec.base));
}
