/* SPDX-License-Identifier: MIT */
/* rigctl doctor: the diagnosis of src/doctor, printed; and of sim, which needs files only. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <json-c/json.h>

#include "boards.h"
#include "doctor.h"
#include "find.h"
#include "pci.h"
#include "rigctl.h"
#include "rvx1_firmware_manifest.h"
#include "take.h"

/* Exit statuses of this command alone. */
enum { EXIT_USABLE = 0, EXIT_USABLE_AFTER = 1, EXIT_NOT_USABLE = 2 };

struct doctor_args {
	const char *device; /* NULL: the machine */
	struct rig_doctor_ask ask;
	bool json;
};

static const char *port_of(unsigned vendor, unsigned device, unsigned *mask)
{
	const struct rig_board *board = rig_board_find((uint16_t)vendor, (uint16_t)device);

	*mask = board ? board->dma_bits : 0;
	return board ? board->arch : NULL;
}

/* -- What is printed -- */

static const char *verdict_text(enum rig_severity verdict)
{
	static const char *const texts[] = {[RIG_NOTE] = "usable",
	        [RIG_FIX] = "usable after the commands shown",
	        [RIG_STOP] = "not usable here"};

	return texts[verdict];
}

/* A line each, what is done by hand as a comment. */
static void print_commands(const char *text)
{
	while (*text) {
		size_t n = strcspn(text, "\n");

		printf("      %s%.*s\n", *text == '#' ? "" : "$ ", (int)n, text);
		text += n + (text[n] == '\n');
	}
}

static void print_finding(const struct rig_finding *f)
{
	printf("%-5s %s: %s\n", rig_severity_name(f->severity), f->id, f->text);
	printf("      %s: %s\n", f->file, f->content);
	print_commands(f->command);
}

static void print_text(const struct doctor_args *a, const struct rig_diagnosis *d)
{
	/* The worst first; what is only to know last. */
	for (int severity = RIG_STOP; severity >= RIG_NOTE; severity--)
		for (unsigned i = 0; i < d->count; i++)
			if ((int)d->finding[i].severity == severity)
				print_finding(&d->finding[i]);
	if (d->cut)
		printf("...   more findings than are shown\n");
	printf("%s: %s\n", a->device ? a->device : "this machine", verdict_text(d->verdict));
}

static struct json_object *commands_json(const char *text)
{
	struct json_object *array = json_object_new_array();

	while (*text) {
		size_t n = strcspn(text, "\n");

		json_object_array_add(array, json_object_new_string_len(text, (int)n));
		text += n + (text[n] == '\n');
	}
	return array;
}

static struct json_object *finding_json(const struct rig_finding *f)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "id", json_object_new_string(f->id));
	json_object_object_add(o, "severity", json_object_new_string(rig_severity_name(f->severity)));
	json_object_object_add(o, "text", json_object_new_string(f->text));
	json_object_object_add(o, "file", json_object_new_string(f->file));
	json_object_object_add(o, "content", json_object_new_string(f->content));
	json_object_object_add(o, "commands", commands_json(f->command));
	return o;
}

static void print_json(const struct doctor_args *a, const struct rig_diagnosis *d)
{
	struct json_object *o = json_object_new_object(), *array = json_object_new_array();

	json_object_object_add(o, "device", a->device ? json_object_new_string(a->device) : NULL);
	json_object_object_add(o, "verdict", json_object_new_string(verdict_text(d->verdict)));
	json_object_object_add(o, "status", json_object_new_int((int)d->verdict));
	for (unsigned i = 0; i < d->count; i++)
		json_object_array_add(array, finding_json(&d->finding[i]));
	json_object_object_add(o, "findings", array);
	printf("%s\n",
	        json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(o);
}

/* -- Devices that are processes -- */

static void add(struct rig_diagnosis *d, const char *id, enum rig_severity severity, const char *text,
        const char *file, const char *content, const char *command)
{
	struct rig_finding *f = &d->finding[d->count++];

	f->id = id;
	f->severity = severity;
	f->text = text;
	snprintf(f->file, sizeof(f->file), "%s", file);
	snprintf(f->content, sizeof(f->content), "%s", content);
	snprintf(f->command, sizeof(f->command), "%s", command);
	if (severity > d->verdict)
		d->verdict = severity;
}

static void need_file(struct rig_diagnosis *d, const char *only, enum rig_find what, const char *name,
        const char *id, const char *command)
{
	char path[PATH_MAX];

	if (rig_find_file(only, what, name, path, sizeof(path)))
		add(d, id, RIG_FIX, "a file that sim needs is in none of the folders", name, path,
		        command); /* path: why */
	else
		add(d, id, RIG_NOTE, "sim needs it, and it is there", name, path, "");
}

static void examine_sim(const struct rig_spec *spec, struct rig_diagnosis *d)
{
	need_file(d, NULL, RIG_FIND_MODEL, "rvx1-model", "model", "export RIG_MODEL_DIR=FOLDER");
	need_file(d, *spec->firmware ? spec->firmware : NULL, RIG_FIND_FIRMWARE, RVX1_FIRMWARE_FILE,
	        "firmware", "export RIG_FIRMWARE_DIR=FOLDER");
}

/* The last part of a path, with which a server may have named it from any folder or mount. */
static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* A server may have named its socket from another folder, and its name then says nothing of where it is. */
static bool is_name_of(const char *name, const char *path, const char *resolved)
{
	return !strcmp(name, path) || !strcmp(name, resolved) ||
	       (*name != '/' && *name != '@' && !strcmp(last_part(name), last_part(path)));
}

/* Whether a process has a socket that may be this one, as this user may see it: one that serves a client and
   no longer listens refuses others as a dead one does. */
static bool is_somebodys(const char *path)
{
	char line[PATH_MAX], resolved[PATH_MAX];
	bool found = false;
	FILE *file = fopen("/proc/net/unix", "re");

	if (!realpath(path, resolved))
		*resolved = 0;
	while (file && !found && fgets(line, sizeof(line), file)) {
		const char *name = strrchr(line, ' ');

		line[strcspn(line, "\n")] = 0;
		found = name && name[1] && is_name_of(name + 1, path, resolved);
	}
	if (file)
		(void)fclose(file);
	return found;
}

static void explain_socket(const char *path, int err, const char *why, struct rig_diagnosis *d)
{
	char start_again[RIG_FINDING_COMMAND];

	snprintf(start_again, sizeof(start_again), "rm %.150s\nrvx1-model --socket %.150s", path, path);
	if (err == -ECONNREFUSED && !is_somebodys(path))
		add(d, "socket-dead", RIG_FIX,
		        "nobody is seen to listen: a process that is gone left it, unless one of another "
		        "network namespace "
		        "(a container) has it",
		        path, why, start_again);
	else if (err == -ECONNREFUSED || err == -ENODEV || err == -ETIMEDOUT)
		add(d, "socket-busy", RIG_FIX,
		        "a device process is there and did not answer: it serves another client, or hangs",
		        path, why, "# end the other client; a device process serves one after the other");
	else
		add(d, "socket", RIG_STOP, "what listens there cannot be used", path, why, "");
}

/* As a client for a moment: what it serves. */
static void ask_socket(const struct rig_spec *spec, struct rig_diagnosis *d)
{
	const struct rig_pci_info *info;
	struct rig_taken taken;
	char text[RIG_FINDING_CONTENT];
	unsigned mask;
	int err = rig_take(spec, &(struct rig_take_options){0}, &taken);

	if (err) {
		explain_socket(spec->path, err, reason(rig_error(), spec->base), d);
		return;
	}
	info = rig_pci_info(taken.pci);
	snprintf(text, sizeof(text), "function %04x:%04x", info->vendor, info->device);
	add(d, "socket", RIG_NOTE, "a device process answers", spec->path, text, "");
	if (!port_of(info->vendor, info->device, &mask))
		add(d, "port", RIG_NOTE, "no port of this library drives functions of this kind", spec->path,
		        text, "");
	rig_pci_close(taken.pci);
}

static void examine_socket(const struct rig_spec *spec, struct rig_diagnosis *d)
{
	struct stat st;

	if (stat(spec->path, &st))
		add(d, "socket", RIG_FIX, "no device process listens there", spec->path, strerror(errno),
		        "rvx1-model --socket PATH");
	else if (!S_ISSOCK(st.st_mode))
		add(d, "socket", RIG_STOP, "it is no socket", spec->path, "another kind of file", "");
	else
		ask_socket(spec, d);
}

/* -- The command -- */

/* "64M". */
static int parse_pin(const char *text, uint64_t *bytes)
{
	char *end;
	unsigned long long n = strtoull(text, &end, 10);
	unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;

	if (end == text || *text == '-' || !n || (shift && end[1]) || (!shift && *end) ||
	        n > UINT64_MAX >> (shift + 1))
		return complain(EXIT_USAGE, "--pin %s: a size, as 64M or 2G", text);
	*bytes = (uint64_t)n << shift;
	return 0;
}

static int parse_mask(const char *text, unsigned *bits)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (end == text || *end || n < 1 || n > 64)
		return complain(EXIT_USAGE, "--mask %s: 1 to 64 bits", text);
	*bits = (unsigned)n;
	return 0;
}

static int parse_option(struct doctor_args *a, const char *option, const char *value)
{
	if (!value)
		return complain(EXIT_USAGE, "%s: a value must follow", option);
	if (!strcmp(option, "--pin"))
		return parse_pin(value, &a->ask.pin);
	if (!strcmp(option, "--mask"))
		return parse_mask(value, &a->ask.mask);
	if (strcmp(option, "--root") != 0)
		return complain(EXIT_USAGE, "no option %s", option);
	a->ask.root = value;
	return 0;
}

static int parse(struct doctor_args *a, int argc, char **argv)
{
	int err = 0;

	for (int i = 1; i < argc && !err; i++) {
		if (!strcmp(argv[i], "--json")) {
			a->json = true;
		} else if (argv[i][0] == '-') {
			err = parse_option(a, argv[i], argv[i + 1]);
			i++;
		} else if (a->device) {
			err = complain(EXIT_USAGE, "%s: one DEVICE", argv[i]);
		} else {
			a->device = argv[i];
		}
	}
	return err;
}

static void ask_function(struct rig_doctor_ask *ask, const struct rig_spec *spec)
{
	static const enum rig_doctor_way ways[] = {[RIG_PCI_ANY] = RIG_DOCTOR_ANY,
	        [RIG_PCI_IOMMUFD] = RIG_DOCTOR_IOMMUFD,
	        [RIG_PCI_TYPE1] = RIG_DOCTOR_TYPE1,
	        [RIG_PCI_NOIOMMU] = RIG_DOCTOR_NOIOMMU};

	ask->bdf = spec->path;
	ask->way = ways[spec->transport];
	ask->token = *spec->token;
}

static int examine(const struct doctor_args *a, struct rig_diagnosis *d)
{
	struct rig_doctor_ask ask = a->ask;
	struct rig_spec spec;

	if (!a->device)
		return rig_doctor_examine(&ask, d) ? EXIT_USAGE : 0;
	if (rig_spec_parse(a->device, &spec))
		return complain(EXIT_USAGE, "%s", rig_error());
	if (spec.kind == RIG_SPEC_SIM)
		examine_sim(&spec, d);
	else if (spec.kind == RIG_SPEC_VFIO_USER)
		examine_socket(&spec, d);
	else
		ask_function(&ask, &spec);
	if (ask.bdf && rig_doctor_examine(&ask, d))
		return complain(EXIT_USAGE, "\"%s\" is no PCI address; write it as 0000:65:00.0", spec.path);
	return 0;
}

static int run(int argc, char **argv)
{
	struct doctor_args a = {.ask = {.root = "", .port = port_of}};
	struct rig_diagnosis *d;
	struct stat st;
	int status = parse(&a, argc, argv);

	if (status)
		return status;
	if (*a.ask.root && (stat(a.ask.root, &st) || !S_ISDIR(st.st_mode)))
		return complain(EXIT_USAGE, "--root %s: no such folder", a.ask.root);
	d = calloc(1, sizeof(*d));
	if (!d)
		return complain(EXIT_NOT_USABLE, "out of memory");
	status = examine(&a, d);
	if (!status) {
		if (a.json)
			print_json(&a, d);
		else
			print_text(&a, d);
		status = d->verdict == RIG_NOTE  ? EXIT_USABLE
		         : d->verdict == RIG_FIX ? EXIT_USABLE_AFTER
		                                 : EXIT_NOT_USABLE;
	}
	free(d);
	return status;
}

static const struct option_help options[] = {
        {"--json", "an object with the verdict and an array of findings"},
        {"--root DIR", "look at a captured tree (scripts/capture-machine) instead of this machine"},
        {"--pin SIZE", "memory that the program will pin for the device, as 2G; 64M"},
        {"--mask BITS", "the device forms addresses of so many bits only; what its port says"},
        {NULL, NULL},
};

const struct command command_doctor = {
        .name = "doctor",
        .synopsis = "[DEVICE] [--root DIR] [--json] [--pin SIZE] [--mask BITS]",
        .summary = "say whether a device can be used here, and if not which command changes that",
        .text = "Without DEVICE: the machine. Every finding is a line (stop: in the way, and no command "
                "removes it; fix: the "
                "commands below it do; note: to know), the file that shows it, and the commands behind $, "
                "those behind # to be "
                "done by hand. docs/doctor.md lists the findings. It reads files and changes nothing; as "
                "root it sees more.\n"
                "Exit status: 0 usable, 1 usable after the commands shown, 2 not usable here, or bad usage.",
        .options = options,
        .run = run,
};
