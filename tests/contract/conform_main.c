/* SPDX-License-Identifier: MIT */
/* rig-conform: the laws of the driver contract against a device. */
#include <getopt.h>
#include <json-c/json.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conform_source.h"
#include "dut.h"

enum { EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_NO_DEVICE = 3, DEADLINE_S = 60 };

#define S_IN_MS 1000u
#define S_IN_NS 1e9

static const struct help {
	const char *option, *argument, *text;
} helps[] = {
        {"--help", NULL, "print this"},
        {"--list", NULL, "print the laws, a line each: group, name, the obligations they pin"},
        {"--only", "REGEX", "only laws whose name or group matches"},
        {"--json", NULL, "print one JSON object instead of lines"},
        {"--deadline", "SECONDS", "a law that takes longer has failed; 60 is the default"},
        {"--inside", NULL,
                "run the laws in this process, for a debugger: the first that fails or skips ends it"},
        {"--version", NULL, "print the version"},
};

enum { HELPS = sizeof(helps) / sizeof(helps[0]) };

#define SUMMARY "hold a driver against the laws of the driver contract"
static const char *const devices[] = {
        "DEVICE is what rigctl takes (sim, sim:OPTION,..., vfio-user:PATH, a PCI address), or",
        "module:FILE.so[:TEXT]: a driver of anyone's, in a file that exports rig_conform_opener",
        "(rig_conform.h). Laws about two devices take SECOND as the other one; of sim and of modules",
        "there are as many as it takes. Each law runs in a process of its own. DEVICE is opened, used",
        "and reset many times: nothing else may use it.",
};

static const char *const ends[] = {
        "Exit status: 0 no law failed, 1 some did, 2 wrong usage, 3 the device could not be opened.",
        "The last line is \"N passed, N failed, N skipped\". A law skips, and says why, where the device",
        "cannot show it: it has no such queue, no second device, no code of the laws for its architecture.",
};

static void print_usage(FILE *to)
{
	size_t i;

	fprintf(to, "usage: rig-conform [OPTION]... DEVICE [SECOND]\n\nHolds a driver against the laws of "
	            "the driver contract "
	            "(rig_edge.h).\n\n");
	for (i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
		fprintf(to, "%s\n", devices[i]);
	fprintf(to, "\n");
	for (i = 0; i < HELPS; i++)
		fprintf(to, "  %-10s %-8s %s\n", helps[i].option, helps[i].argument ? helps[i].argument : "",
		        helps[i].text);
	fprintf(to, "\n");
	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		fprintf(to, "%s\n", ends[i]);
}

/* The man page, from the same tables; the build writes it to rig-conform.1. */
static void print_man(void)
{
	size_t i;

	printf(".\\\" Made by rig-conform --man\n.TH RIG-CONFORM 1 \"\" \"rig\\-vfio %s\" \"User "
	       "Commands\"\n.SH NAME\n"
	       "rig\\-conform \\- %s\n.SH SYNOPSIS\n.B rig\\-conform\n[\\fIOPTION\\fR]... \\fIDEVICE\\fR "
	       "[\\fISECOND\\fR]\n"
	       ".SH DESCRIPTION\n",
	        RIG_VERSION, SUMMARY);
	for (i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
		printf("%s\n", devices[i]);
	printf(".SH OPTIONS\n");
	for (i = 0; i < HELPS; i++)
		printf(".TP\n.B \\-\\-%s%s%s\n%s\n", helps[i].option + 2, helps[i].argument ? " " : "",
		        helps[i].argument ? helps[i].argument : "", helps[i].text);
	printf(".SH \"EXIT STATUS\"\n");
	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		printf("%s\n", ends[i]);
	printf(".SH \"SEE ALSO\"\n.BR rigctl (1)\n");
}

struct options {
	const char *device, *second, *only;
	bool json, inside, list;
	uint64_t deadline_ms;
	regex_t regex;
};

static bool is_chosen(
        const struct options *o, const struct conform_group *group, const struct conform_law *law)
{
	return !o->only || !regexec(&o->regex, law->name, 0, NULL, 0) ||
	       !regexec(&o->regex, group->name, 0, NULL, 0);
}

static const char *const words[] = {"passed", "failed", "skipped"};

static void print_result(const struct conform_law *law, const struct conform_result *r)
{
	printf("%-7s %s%s%s\n", r->end == CONFORM_FAILED ? "FAILED" : words[r->end], law->name,
	        r->text[0] ? ": " : "", r->text);
	(void)fflush(stdout);
}

static struct json_object *split(const char *pins)
{
	struct json_object *list = json_object_new_array();
	const char *at = pins;

	while (*at) {
		size_t n = strcspn(at, " ");

		json_object_array_add(list, json_object_new_string_len(at, (int)n));
		at += n + strspn(at + n, " ");
	}
	return list;
}

static struct json_object *result_json(
        const struct conform_group *group, const struct conform_law *law, const struct conform_result *r)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "group", json_object_new_string(group->name));
	json_object_object_add(o, "law", json_object_new_string(law->name));
	json_object_object_add(o, "obligations", split(law->pins));
	json_object_object_add(o, "result", json_object_new_string(words[r->end]));
	json_object_object_add(o, "text", json_object_new_string(r->text));
	json_object_object_add(o, "seconds", json_object_new_double((double)r->ns / S_IN_NS));
	return o;
}

/* Calls each chosen law's turn. */
static void each(const struct options *o,
        void (*turn)(void *arg, const struct conform_group *, const struct conform_law *), void *arg)
{
	const struct conform_group *const *group;
	size_t i;

	for (group = conform_groups; *group; group++)
		for (i = 0; i < (*group)->n; i++)
			if (is_chosen(o, *group, &(*group)->laws[i]))
				turn(arg, *group, &(*group)->laws[i]);
}

static void list_one(void *arg, const struct conform_group *group, const struct conform_law *law)
{
	(void)arg;
	printf("%s %s %s\n", group->name, law->name, law->pins);
}

struct session {
	const struct options *o;
	const struct conform_source *source;
	struct json_object *laws; /* NULL: lines are printed */
	unsigned counts[3];
};

static void run_one(void *arg, const struct conform_group *group, const struct conform_law *law)
{
	struct session *s = arg;
	struct conform_result r;

	conform_run(law, s->source, s->o->deadline_ms, s->o->inside, &r);
	s->counts[r.end]++;
	if (s->laws)
		json_object_array_add(s->laws, result_json(group, law, &r));
	else
		print_result(law, &r);
}

static void the_device_opens(struct conform *c)
{
	char why[CONFORM_TEXT];
	struct dut d;
	int answer = dut_make(c, &d, 0, rig_words() + DUT_WORD, why);

	conform_check(c, !answer, "%.400s", why);
	d.m->stop(d.device, NULL);
	d.m->release(d.device);
}

static void print_json(struct session *s)
{
	struct json_object *top = json_object_new_object();
	unsigned i;

	json_object_object_add(top, "device", json_object_new_string(s->o->device));
	json_object_object_add(top, "laws", s->laws);
	for (i = 0; i < 3; i++)
		json_object_object_add(top, words[i], json_object_new_int64(s->counts[i]));
	printf("%s\n", json_object_to_json_string_ext(
	                       top, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(top);
}

static int run_all(const struct options *o)
{
	static const struct conform_law opens = {"the_device_opens", "", the_device_opens};
	struct session s = {.o = o};
	struct conform_named *named;
	struct conform_result r;

	if (conform_source_make(o->device, o->second, &named)) {
		fprintf(stderr, "rig-conform: %s\n", rig_error());
		return EXIT_NO_DEVICE;
	}
	s.source = conform_source_of(named);
	conform_run(&opens, s.source, o->deadline_ms, false, &r);
	if (r.end == CONFORM_FAILED) {
		fprintf(stderr, "rig-conform: %s: %s\n", o->device, r.text);
		conform_source_free(named);
		return EXIT_NO_DEVICE;
	}
	s.laws = o->json ? json_object_new_array() : NULL;
	each(o, run_one, &s);
	if (o->json)
		print_json(&s);
	else
		printf("%u passed, %u failed, %u skipped\n", s.counts[0], s.counts[1], s.counts[2]);
	conform_source_free(named);
	return s.counts[CONFORM_FAILED] ? EXIT_FAILED : EXIT_SUCCESS;
}

static int usage_error(const char *text, const char *what)
{
	fprintf(stderr, "rig-conform: %s%s; rig-conform --help says what it takes\n", text, what);
	return EXIT_USAGE;
}

enum {
	OPTION_HELP = 256,
	OPTION_LIST,
	OPTION_ONLY,
	OPTION_JSON,
	OPTION_DEADLINE,
	OPTION_INSIDE,
	OPTION_VERSION,
	OPTION_MAN
};

static const struct option long_options[] = {
        {"help", no_argument, NULL, OPTION_HELP},
        {"list", no_argument, NULL, OPTION_LIST},
        {"only", required_argument, NULL, OPTION_ONLY},
        {"json", no_argument, NULL, OPTION_JSON},
        {"deadline", required_argument, NULL, OPTION_DEADLINE},
        {"inside", no_argument, NULL, OPTION_INSIDE},
        {"version", no_argument, NULL, OPTION_VERSION},
        {"man", no_argument, NULL, OPTION_MAN},
        {NULL, 0, NULL, 0},
};

/* -1: go on; else the exit status. */
static int take(struct options *o, int option)
{
	char *rest;

	switch (option) {
	case OPTION_LIST:
		o->list = true;
		return -1;
	case OPTION_ONLY:
		o->only = optarg;
		if (regcomp(&o->regex, optarg, REG_EXTENDED | REG_NOSUB))
			return usage_error("no regular expression: ", optarg);
		return -1;
	case OPTION_JSON:
		o->json = true;
		return -1;
	case OPTION_INSIDE:
		o->inside = true;
		return -1;
	case OPTION_DEADLINE:
		o->deadline_ms = strtoul(optarg, &rest, 10) * S_IN_MS;
		return *rest || !o->deadline_ms ? usage_error("no number of seconds: ", optarg) : -1;
	case OPTION_VERSION:
		printf("rig-conform %s\n", RIG_VERSION);
		return EXIT_SUCCESS;
	case OPTION_MAN:
		print_man();
		return EXIT_SUCCESS;
	case 'h':
	case OPTION_HELP:
		print_usage(stdout);
		return EXIT_SUCCESS;
	default:
		return EXIT_USAGE;
	}
}

int main(int argc, char **argv)
{
	struct options o = {.deadline_ms = (uint64_t)DEADLINE_S * S_IN_MS};
	int option, status;

	while ((option = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
		status = take(&o, option);
		if (status >= 0)
			return status;
	}
	if (o.list) {
		each(&o, list_one, NULL);
		return EXIT_SUCCESS;
	}
	if (optind == argc || argc - optind > 2)
		return usage_error("one DEVICE, or two", "");
	o.device = argv[optind];
	o.second = optind + 1 < argc ? argv[optind + 1] : NULL;
	return run_all(&o);
}
