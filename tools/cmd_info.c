/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "rig_vfio.h"
#include "rigctl.h"

static const char *kinds[] = {
        [RIG_WORDS] = "words", [RIG_FILL] = "fill", [RIG_COPY] = "copy", [RIG_LAUNCH] = "launch"};

static void runs_text(const struct rig_queue *queue, char *text, size_t bytes)
{
	unsigned kind, at = 0;

	*text = 0;
	for (kind = RIG_WORDS; kind <= RIG_LAUNCH; kind++)
		if (queue->runs & RIG_RUNS(kind))
			at += (unsigned)snprintf(text + at, bytes - at, "%s%s", at ? ", " : "", kinds[kind]);
}

/* "256 MiB", in the largest unit that leaves a whole number. */
static const char *size_text(uint64_t bytes, char *text, size_t room)
{
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
	unsigned unit = 0;

	while (bytes && bytes % 1024 == 0 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		bytes /= 1024;
		unit++;
	}
	snprintf(text, room, "%" PRIu64 " %s", bytes, units[unit]);
	return text;
}

enum { SIZE = 32 };

static void print_memory(const struct rig_vfio_record *record, const struct rig_vfio_stats *stats)
{
	char all[SIZE], free[SIZE], aperture[SIZE], tables[SIZE], dma[SIZE];

	printf("memory      %s for programs, %s free, aperture %s\n",
	        size_text(record->memory_bytes, all, SIZE), size_text(stats->memory_free, free, SIZE),
	        size_text(record->aperture_bytes, aperture, SIZE));
	if (*record->host_pages)
		printf("pinned      %s\n", record->host_pages);
	printf("tables      %s; DMA mappings %" PRIu64 ", %s\n", size_text(stats->table_bytes, tables, SIZE),
	        stats->dma_maps, size_text(stats->dma_bytes, dma, SIZE));
}

static void print_text(struct rig_device *device, const struct rig_vfio_record *record)
{
	const struct rig_facts *facts = rig_device_facts(device);
	struct rig_vfio_stats stats;
	uint32_t i, n;
	const struct rig_queue *queues = rig_queues(device, &n);

	record->stats(record, &stats);
	printf("device      %s, %s, function %04x:%04x over %s\n", rig_name(device), rig_arch(device),
	        record->vendor, record->device, record->transport);
	printf("bus         %s\n", rig_bus(device)         ? rig_bus(device)
	                           : record->simulated_bus ? "simulated"
	                                                   : "none");
	printf("firmware    %s\n", record->firmware ? record->firmware : "none");
	print_memory(record, &stats);
	printf("completion  %s\n", facts->completion == RIG_STORE ? "store: the device writes the word"
	                                                          : "poll: the host raises the word");
	if (facts->has_hang_ms)
		printf("hang bound  %" PRId64 " ms\n", facts->hang_ms);
	for (i = 0; i < n; i++) {
		char text[64];

		runs_text(&queues[i], text, sizeof(text));
		printf("queue       %s: %s%s\n", queues[i].name, text,
		        facts->has_copy_engine && facts->copy_engine == (int32_t)i ? " (copy engine)" : "");
	}
}

static struct json_object *queues_json(struct rig_device *device)
{
	struct json_object *array = json_object_new_array();
	uint32_t i, n;
	const struct rig_queue *queues = rig_queues(device, &n);

	for (i = 0; i < n; i++) {
		struct json_object *queue = json_object_new_object(), *runs = json_object_new_array();
		unsigned kind;

		for (kind = RIG_WORDS; kind <= RIG_LAUNCH; kind++)
			if (queues[i].runs & RIG_RUNS(kind))
				json_object_array_add(runs, json_object_new_string(kinds[kind]));
		json_object_object_add(queue, "name", json_object_new_string(queues[i].name));
		json_object_object_add(queue, "runs", runs);
		json_object_array_add(array, queue);
	}
	return array;
}

static void print_json(struct rig_device *device, const struct rig_vfio_record *record)
{
	const struct rig_facts *facts = rig_device_facts(device);
	struct json_object *o = json_object_new_object();
	struct rig_vfio_stats stats;
	char id[16];

	record->stats(record, &stats);
	snprintf(id, sizeof(id), "%04x:%04x", record->vendor, record->device);
	json_object_object_add(o, "name", json_object_new_string(rig_name(device)));
	json_object_object_add(o, "arch", json_object_new_string(rig_arch(device)));
	json_object_object_add(o, "id", json_object_new_string(id));
	json_object_object_add(o, "transport", json_object_new_string(record->transport));
	json_object_object_add(o, "bus", rig_bus(device) ? json_object_new_string(rig_bus(device)) : NULL);
	json_object_object_add(o, "simulated_bus", json_object_new_boolean(record->simulated_bus));
	json_object_object_add(
	        o, "firmware", record->firmware ? json_object_new_string(record->firmware) : NULL);
	json_object_object_add(o, "memory_bytes", json_object_new_int64((int64_t)record->memory_bytes));
	json_object_object_add(o, "memory_free_bytes", json_object_new_int64((int64_t)stats.memory_free));
	json_object_object_add(o, "aperture_bytes", json_object_new_int64((int64_t)record->aperture_bytes));
	json_object_object_add(
	        o, "pinned", *record->host_pages ? json_object_new_string(record->host_pages) : NULL);
	json_object_object_add(
	        o, "completion", json_object_new_string(facts->completion == RIG_STORE ? "store" : "poll"));
	json_object_object_add(
	        o, "hang_ms", facts->has_hang_ms ? json_object_new_int64(facts->hang_ms) : NULL);
	json_object_object_add(o, "table_bytes", json_object_new_int64((int64_t)stats.table_bytes));
	json_object_object_add(o, "dma_maps", json_object_new_int64((int64_t)stats.dma_maps));
	json_object_object_add(o, "dma_bytes", json_object_new_int64((int64_t)stats.dma_bytes));
	json_object_object_add(o, "queues", queues_json(device));
	printf("%s\n", json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY));
	json_object_put(o);
}

static int run(int argc, char **argv)
{
	const struct rig_vfio_record *record;
	const char *text = NULL;
	struct rig_device *device;
	bool json = false;
	int i, err;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--json"))
			json = true;
		else if (argv[i][0] == '-' || text)
			return complain(EXIT_USAGE, "%s: one DEVICE, and --json", argv[i]);
		else
			text = argv[i];
	}
	if (!text)
		return complain(EXIT_USAGE, "which DEVICE? for example sim");
	err = open_device(text, &device);
	if (err)
		return err;
	record = rig_capability(device, &rig_vfio_key);
	if (json)
		print_json(device, record);
	else
		print_text(device, record);
	close_device(device);
	return EXIT_DONE;
}

static const struct option_help options[] = {{"--json", "an object instead of text"}, {NULL, NULL}};

const struct command command_info = {
        .name = "info",
        .synopsis = "DEVICE [--json]",
        .summary = "open a device and say what it is: memory, queues, firmware, completion",
        .text = "",
        .via = "With --via HOST:PORT and --key FILE before it: the same of a DEVICE that a rig-agent(1) "
               "serves there, and of the connection; no option then.",
        .options = options,
        .run = run,
};
