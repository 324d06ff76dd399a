/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "boards.h"
#include "enumerate.h"
#include "rigctl.h"

struct listing {
	struct json_object *json; /* NULL: text */
	bool all;
	unsigned shown;
};

static void list_json(struct json_object *array, const struct rig_pci_found *f, const struct rig_board *board)
{
	struct json_object *o = json_object_new_object();
	char id[16];

	json_object_object_add(o, "address", json_object_new_string(f->address));
	snprintf(id, sizeof(id), "%04x:%04x", f->vendor, f->device);
	json_object_object_add(o, "id", json_object_new_string(id));
	snprintf(id, sizeof(id), "%06x", f->class_code);
	json_object_object_add(o, "class", json_object_new_string(id));
	json_object_object_add(o, "vendor_name", json_object_new_string(f->vendor_name));
	json_object_object_add(o, "device_name", json_object_new_string(f->device_name));
	json_object_object_add(o, "driver", *f->driver ? json_object_new_string(f->driver) : NULL);
	json_object_object_add(
	        o, "iommu_group", f->iommu_group < 0 ? NULL : json_object_new_int(f->iommu_group));
	json_object_object_add(o, "port", board ? json_object_new_string(board->arch) : NULL);
	json_object_array_add(array, o);
}

static int list_one(void *arg, const struct rig_pci_found *f)
{
	const struct rig_board *board = rig_board_find(f->vendor, f->device);
	struct listing *l = arg;
	char group[16] = "-";

	if (f->iommu_group >= 0)
		snprintf(group, sizeof(group), "%d", f->iommu_group);
	if (l->json)
		list_json(l->json, f, board);
	else
		printf("%-13s %04x:%04x  %06x  %-14s %-6s %-6s %s%s%s\n", f->address, f->vendor, f->device,
		        f->class_code, *f->driver ? f->driver : "-", group, board ? board->arch : "-",
		        *f->vendor_name ? f->vendor_name : "-", *f->device_name ? " " : "", f->device_name);
	l->shown++;
	return 0;
}

static int run(int argc, char **argv)
{
	struct listing l = {0};
	int err;

	if (argc > 2 || (argc == 2 && strcmp(argv[1], "--json") != 0))
		return complain(EXIT_USAGE, "it takes --json and nothing else");
	if (argc == 2)
		l.json = json_object_new_array();
	else
		printf("%-13s %-10s %-7s %-14s %-6s %-6s %s\n", "ADDRESS", "ID", "CLASS", "DRIVER", "GROUP",
		        "PORT", "NAME");
	err = rig_pci_enumerate(list_one, &l);
	if (err == -ENOSYS)
		err = complain(EXIT_FAILED, "this machine shows no PCI bus (/sys/bus/pci); sim needs none");
	if (l.json && !err)
		printf("%s\n", json_object_to_json_string_ext(l.json, JSON_C_TO_STRING_PRETTY));
	json_object_put(l.json);
	return err;
}

static const struct option_help options[] = {
        {"--json", "an array of objects instead of the table"}, {NULL, NULL}};

const struct command command_list = {
        .name = "list",
        .synopsis = "[--json]",
        .summary = "list this machine's PCI functions: kernel driver, IOMMU group, and the port that drives "
                   "each",
        .text = "GROUP and DRIVER are - where there is none. PORT is the board of this library that drives "
                "the function.",
        .options = options,
        .run = run,
};
