/* SPDX-License-Identifier: MIT */
/* The polled driver as a source of devices for laws, and as a module for rig-conform. */
#include "polled_module.h"
#include "polled_state.h"

#define NAME_BYTES 32u

static struct polled *drivers[POLLED_DEVICES];
static char names[POLLED_DEVICES][NAME_BYTES];

const struct rig_opener *rig_conform_opener(const char *text, unsigned index)
{
	struct polled_options o;

	if (index >= POLLED_DEVICES) {
		(void)rig_error_set(-ENODEV, "there are %u devices", POLLED_DEVICES);
		return NULL;
	}
	if (drivers[index])
		return polled_opener(drivers[index]);
	if (polled_parse(text, &o))
		return NULL;
	if (o.lie == POLLED_LIE_eager_opener)
		(void)open("/dev/null", O_RDONLY | O_CLOEXEC);
	(void)snprintf(names[index], NAME_BYTES, "polled%u%s", o.lie == POLLED_LIE_same_names ? 0 : index,
	        o.lie == POLLED_LIE_suffix ? "@here" : "");
	o.name = names[index];
	drivers[index] = polled_new(&o);
	return drivers[index] ? polled_opener(drivers[index]) : NULL;
}

const struct rig_conform_code *rig_conform_code(const char *arch)
{
	return polled_code(arch);
}

const char *polled_complaint(void)
{
	unsigned i;

	for (i = 0; i < POLLED_DEVICES; i++)
		if (drivers[i] && polled_breach(drivers[i]))
			return polled_breach(drivers[i]);
	return NULL;
}
