/* SPDX-License-Identifier: MIT */
/* The bridges above a function: where they are, whether they isolate, and how large their windows are. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor_private.h"
#include "tree.h"

/* Extended capabilities (PCI Express 4.0, sections 7.6 and 7.7.8). */
#define CONFIG_BYTES   4096u
#define EXTENDED       0x100u
#define CAP_ID(head)   ((head)&0xffffu)
#define CAP_NEXT(head) ((head) >> 20 & 0xffcu)
#define CAP_ACS        0x000du
#define ACS_CONTROL    6u
#define ACS_VALIDATION 0x01u
#define ACS_REDIRECT   0x04u /* of requests */
#define ACS_COMPLETION 0x08u
#define ACS_UPSTREAM   0x10u
#define ACS_ISOLATES   (ACS_VALIDATION | ACS_REDIRECT | ACS_COMPLETION | ACS_UPSTREAM)

/* Bits of a resource's flags (Linux's ioport.h, as the file "resource" shows them). */
#define RESOURCE_MEMORY 0x200u
#define RESOURCE_WINDOW 0x200000u

/* A function's folder lies in its bridge's. */
int rig_bridges(const char *root, const char *bdf, int (*each)(void *arg, const char *bridge), void *arg)
{
	char real[PATH_MAX], *end;
	int answer = 0;

	if (!rig_tree_real(root, rig_attribute_path(bdf, ""), real, sizeof(real)))
		return 0;
	end = strrchr(real, '/');
	while (!answer && end && end != real) {
		*end = 0;
		end = strrchr(real, '/');
		if (!end || !rig_bdf_is_name(end + 1))
			break;
		answer = each(arg, end + 1);
	}
	return answer;
}

/* A root bus ("pci10000:e0") lies in what makes it: the machine's firmware, or a function. */
bool rig_bridges_owner(const char *root, const char *bdf, char owner[RIG_BDF_TEXT])
{
	char real[PATH_MAX], *end;

	if (!rig_tree_real(root, rig_attribute_path(bdf, ""), real, sizeof(real)))
		return false;
	while ((end = strrchr(real, '/')) && rig_bdf_is_name(end + 1))
		*end = 0;
	if (!end || strncmp(end + 1, "pci", 3) != 0)
		return false;
	*end = 0;
	end = strrchr(real, '/');
	return end && rig_bdf_name(end + 1, owner);
}

static uint32_t word(const uint8_t *config, size_t at)
{
	uint32_t v = (uint32_t)config[at] | (uint32_t)config[at + 1] << 8 | (uint32_t)config[at + 2] << 16;

	return v | (uint32_t)config[at + 3] << 24;
}

static enum rig_acs find_acs(const uint8_t *config, size_t bytes)
{
	unsigned at = EXTENDED, control;

	if (bytes < CONFIG_BYTES)
		return RIG_ACS_UNKNOWN; /* without rights the first 64 bytes are all that is shown */
	for (unsigned turns = 0; at >= EXTENDED && at <= CONFIG_BYTES - 8 && turns < CONFIG_BYTES / 8;
	        turns++) {
		uint32_t head = word(config, at);

		if (CAP_ID(head) == CAP_ACS) {
			control = word(config, at + 4) >> 16;
			return (control & ACS_ISOLATES) == ACS_ISOLATES ? RIG_ACS_ON : RIG_ACS_OFF;
		}
		at = CAP_NEXT(head);
	}
	return RIG_ACS_NONE;
}

enum rig_acs rig_bridge_acs(const char *root, const char *bridge)
{
	enum rig_acs acs = RIG_ACS_UNKNOWN;
	size_t bytes;
	char *config = rig_tree_read(root, rig_attribute_path(bridge, "config"), &bytes);

	if (config)
		acs = find_acs((const uint8_t *)config, bytes);
	free(config);
	return acs;
}

static int add_window(void *arg, char *line)
{
	uint64_t first, last, flags, *most = arg;

	if (sscanf(line, "%" SCNx64 " %" SCNx64 " %" SCNx64, &first, &last, &flags) == 3 && last > first &&
	        (flags & RESOURCE_WINDOW) && (flags & RESOURCE_MEMORY) && last - first + 1 > *most)
		*most = last - first + 1;
	return 0;
}

uint64_t rig_bridge_window(const char *root, const char *bridge)
{
	char *text = rig_tree_read(root, rig_attribute_path(bridge, "resource"), NULL);
	uint64_t most = 0;

	(void)rig_tree_lines(text, add_window, &most);
	free(text);
	return most;
}
