/* SPDX-License-Identifier: MIT */
/* rigctl list: what sysfs says of every function, with names from pci.ids, which libpciaccess reads. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>
#include <pciaccess.h>

#include "boards.h"
#include "pci_machine.h"
#include "rigctl.h"

struct row {
	struct rig_ksysfs sysfs;
	const struct rig_board *board;      /* NULL: none */
	const char *vendor_name, *own_name; /* NULL: not in pci.ids */
};

struct list {
	const char *root;
	bool json;
	struct row *at;
	size_t count;
};

/* -- Reading -- */

static int keep(void *arg, const struct rig_ksysfs *sysfs)
{
	struct list *l = arg;
	struct row *more = realloc(l->at, (l->count + 1) * sizeof(*more)), *row;
	struct pci_id_match ids = {.vendor_id = sysfs->vendor,
	        .device_id = sysfs->device,
	        .subvendor_id = PCI_MATCH_ANY,
	        .subdevice_id = PCI_MATCH_ANY};

	if (!more)
		return rig_error_set(-ENOMEM, "out of memory");
	l->at = more;
	row = &l->at[l->count++];
	*row = (struct row){
	        .sysfs = *sysfs, .board = rig_board_find((uint16_t)sysfs->vendor, (uint16_t)sysfs->device)};
	pci_get_strings(&ids, &row->own_name, &row->vendor_name, NULL, NULL);
	return 0;
}

/* -- Printing -- */

static const char *or_dash(const char *text)
{
	return text && *text ? text : "-";
}

static void print_row(const struct row *row)
{
	const struct rig_ksysfs *s = &row->sysfs;
	char group[16] = "-";

	if (s->group >= 0)
		snprintf(group, sizeof(group), "%d", s->group);
	printf("%-13s %04x:%04x  %06x  %-14s %-6s %-6s %s%s%s\n", s->bdf, s->vendor, s->device, s->class_code,
	        or_dash(s->driver), group, row->board ? row->board->arch : "-", or_dash(row->vendor_name),
	        row->own_name ? " " : "", row->own_name ? row->own_name : "");
}

static struct json_object *text_json(const char *text)
{
	return text ? json_object_new_string(text) : NULL;
}

static struct json_object *row_json(const struct row *row)
{
	struct json_object *o = json_object_new_object();
	const struct rig_ksysfs *s = &row->sysfs;
	char id[16];

	json_object_object_add(o, "address", text_json(s->bdf));
	snprintf(id, sizeof(id), "%04x:%04x", s->vendor, s->device);
	json_object_object_add(o, "id", text_json(id));
	snprintf(id, sizeof(id), "%06x", s->class_code);
	json_object_object_add(o, "class", text_json(id));
	json_object_object_add(o, "vendor_name", text_json(row->vendor_name ? row->vendor_name : ""));
	json_object_object_add(o, "device_name", text_json(row->own_name ? row->own_name : ""));
	json_object_object_add(o, "driver", text_json(*s->driver ? s->driver : NULL));
	json_object_object_add(o, "iommu_group", s->group < 0 ? NULL : json_object_new_int(s->group));
	json_object_object_add(o, "port", text_json(row->board ? row->board->arch : NULL));
	return o;
}

static void print_json(const struct list *l)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < l->count; i++)
		json_object_array_add(array, row_json(&l->at[i]));
	printf("%s\n", json_object_to_json_string_ext(array, JSON_C_TO_STRING_PRETTY));
	json_object_put(array);
}

static void print_table(const struct list *l)
{
	printf("%-13s %-10s %-7s %-14s %-6s %-6s %s\n", "ADDRESS", "ID", "CLASS", "DRIVER", "GROUP", "PORT",
	        "NAME");
	for (size_t i = 0; i < l->count; i++)
		print_row(&l->at[i]);
}

/* -- The command -- */

static int run(int argc, char **argv)
{
	struct list l = {.root = ""};
	int err;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--json"))
			l.json = true;
		else if (!strcmp(argv[i], "--root") && i + 1 < argc)
			l.root = argv[++i];
		else
			return complain(EXIT_USAGE, "%s: it takes --json and nothing else", argv[i]);
	}
	err = rig_machine_list(l.root, keep, &l);
	if (err)
		err = complain(EXIT_FAILED, "%s; sim needs none", rig_error());
	else if (l.json)
		print_json(&l);
	else
		print_table(&l);
	free(l.at);
	return err;
}

static const struct option_help options[] = {
        {"--json", "an array of objects instead of the table"},
        {"--root DIR", "files below this folder (for tests)"},
        {NULL, NULL},
};

const struct command command_list = {
        .name = "list",
        .synopsis = "[--json]",
        .summary = "list this machine's PCI functions: kernel driver, IOMMU group, and the port that drives "
                   "each",
        .text = "GROUP and DRIVER are - where there is none. PORT is the board of this library that drives "
                "the function.",
        .via = "With --via HOST:PORT and --key FILE before it: what the rig-agent(1) there serves, as DEVICE "
               "of the other commands; no option then.",
        .options = options,
        .run = run,
};
