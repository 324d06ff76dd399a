/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "bench_hand.h"
#include "rig_vfio.h"
#include "rigctl.h"

#define DEFAULT_MS  100u
#define MOST_MS     60000u
#define MOST_ROWS   64u
#define PROGRESS_NS 2000000000ull

struct work {
	const char *rows; /* NULL: all */
	unsigned ms;
	bool json, open;
	const struct bench_row *row[MOST_ROWS];
	struct bench_result result[MOST_ROWS];
	unsigned count, done;
	uint64_t told_ns;
	cpu_set_t cpus; /* that the command may run on */
	struct bench bench;
};

static int parse_ms(const char *text, unsigned *ms)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (!isdigit((unsigned char)*text) || errno || *end || !n || n > MOST_MS)
		return complain(EXIT_USAGE, "--time %s: milliseconds, 1 to %u", text, MOST_MS);
	*ms = (unsigned)n;
	return 0;
}

static int parse(struct work *w, int argc, char **argv)
{
	int i, err = 0;

	for (i = 1; !err && i < argc; i++) {
		bool takes = !strcmp(argv[i], "--rows") || !strcmp(argv[i], "--time");

		if (takes && i + 1 == argc)
			return complain(EXIT_USAGE, "%s: a value must follow", argv[i]);
		if (!strcmp(argv[i], "--json"))
			w->json = true;
		else if (!strcmp(argv[i], "--open"))
			w->open = true;
		else if (!strcmp(argv[i], "--rows"))
			w->rows = argv[++i];
		else if (!strcmp(argv[i], "--time"))
			err = parse_ms(argv[++i], &w->ms);
		else if (argv[i][0] == '-')
			return complain(EXIT_USAGE, "option %s: --rows, --time, --open or --json", argv[i]);
		else if (w->bench.device_text)
			return complain(EXIT_USAGE, "%s: one DEVICE", argv[i]);
		else
			w->bench.device_text = argv[i];
	}
	if (!err && !w->bench.device_text)
		err = complain(EXIT_USAGE, "which DEVICE? for example sim");
	if (!err && w->open && (w->rows || w->json))
		err = complain(EXIT_USAGE, "--open goes without --rows and --json");
	return err;
}

static int choose(struct work *w)
{
	static const struct bench_row *const tables[] = {bench_trips, bench_copies, bench_memory, bench_life};
	const struct bench_row *row;
	unsigned i;

	for (i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (row = tables[i]; row->name; row++)
			if ((!w->rows || strstr(row->name, w->rows)) && w->count < MOST_ROWS)
				w->row[w->count++] = row;
	if (!w->count)
		return complain(EXIT_USAGE, "--rows %s: no row's name contains that", w->rows);
	return 0;
}

int bench_open(const struct bench *bench, struct rig_device **device)
{
	const struct rig_vfio_options options = {.version = RIG_EDGE_VERSION, .guard = true};
	struct rig_opener *opener;
	int err = rig_vfio_opener(bench->device_text, &options, &opener);

	if (err)
		return err;
	err = rig_open(opener, device);
	rig_vfio_opener_free(opener);
	return err;
}

/* A waiter and its device process on one core take turns instead of working beside each other, and which it
   is would be chance. So device processes, which are started from here on, leave this thread a core... */
static void leave_a_core(struct work *w)
{
	cpu_set_t others = w->cpus;
	size_t cpu = 0;

	while (!CPU_ISSET(cpu, &others))
		cpu++;
	CPU_CLR(cpu, &others);
	if (!CPU_COUNT(&others))
		return;
	w->bench.cpu = (int)cpu;
	sched_setaffinity(0, sizeof(others), &others);
}

/* ... and the library's threads, which inherited that, may run anywhere... */
static void free_threads(struct work *w)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]))
			sched_setaffinity((pid_t)atoi(entry->d_name), sizeof(w->cpus), &w->cpus);
	if (dir)
		closedir(dir);
}

/* ... and this thread stays where it is alone. */
static void take_the_core(struct work *w)
{
	cpu_set_t own;

	if (w->bench.cpu < 0)
		return;
	free_threads(w);
	CPU_ZERO(&own);
	CPU_SET((size_t)w->bench.cpu, &own);
	sched_setaffinity(0, sizeof(own), &own);
}

/* Where the table is not seen growing, stderr tells how far it is. */
static void tell(struct work *w)
{
	if (w->done < w->count && (w->json || !isatty(STDOUT_FILENO)) &&
	        rig_now_ns() - w->told_ns > PROGRESS_NS) {
		w->told_ns = rig_now_ns();
		fprintf(stderr, "rigctl bench: %u of %u rows\n", w->done, w->count);
	}
}

static int measure(struct work *w, bool opens)
{
	unsigned i;
	int err = 0;

	for (i = 0; i < w->count && !err; i++) {
		struct bench_result *result = &w->result[w->done];

		if (w->row[i]->opens != opens)
			continue;
		err = bench_measure(&w->bench, w->row[i], w->ms, result);
		if (err)
			return complain(EXIT_FAILED, "row \"%s\": %s", w->row[i]->name, rig_error());
		if (!w->json)
			bench_print_row(result);
		w->done++;
		tell(w);
	}
	return err;
}

static void open_hand(struct work *w)
{
	if (bench_hand_open(w->bench.device_text, &w->bench.hand))
		snprintf(w->bench.hand_why, sizeof(w->bench.hand_why), "%s", rig_error());
}

static void close_all(struct work *w)
{
	bench_hand_close(w->bench.hand);
	w->bench.hand = NULL;
	w->bench.record = NULL;
	close_device(w->bench.device);
	w->bench.device = NULL;
}

/* The promise that rows marked silent make. */
static int check_messages(const struct work *w)
{
	unsigned i;

	for (i = 0; i < w->done; i++)
		if (w->result[i].row->silent && w->result[i].messages > 0)
			return complain(EXIT_FAILED,
			        "row \"%s\": %g messages an operation; it must send none",
			        w->result[i].row->name, w->result[i].messages);
	return 0;
}

static int work(struct work *w)
{
	bool may_block = rig_device_facts(w->bench.device)->may_block;
	int err;

	w->bench.record = rig_capability(w->bench.device, &rig_vfio_key);
	w->told_ns = rig_now_ns();
	open_hand(w);
	take_the_core(w);
	if (!w->json)
		bench_print_head(&w->bench);
	err = measure(w, false);
	close_all(w);
	sched_setaffinity(0, sizeof(w->cpus), &w->cpus);
	if (!err)
		err = measure(w, true);
	if (!err && w->json)
		bench_print_json(w->result, w->done);
	return err || may_block ? err : check_messages(w);
}

static int run(int argc, char **argv)
{
	static struct work w = {.ms = DEFAULT_MS, .bench = {.cpu = -1}};
	int err = parse(&w, argc, argv);

	if (!err && w.open)
		return bench_open_phases(w.bench.device_text);
	if (!err)
		err = choose(&w);
	if (err)
		return err;
	CPU_ZERO(&w.cpus);
	if (!sched_getaffinity(0, sizeof(w.cpus), &w.cpus))
		leave_a_core(&w);
	err = open_device(w.bench.device_text, &w.bench.device);
	return err ? err : work(&w);
}

static const struct option_help options[] = {
        {"--rows SUBSTRING", "only rows whose name contains it"},
        {"--time MS", "milliseconds for each row and each of its floors (100)"},
        {"--open", "only: from nothing to the first completed launch, by phase"},
        {"--json", "an array of objects instead of the table"},
        {NULL, NULL},
};

const struct command command_bench = {
        .name = "bench",
        .synopsis = "DEVICE [--rows SUBSTRING] [--time MS] [--json] [--open]",
        .summary = "measure the library on a device, each row beside its floor",
        .text = "A row is an operation of the library; below it stand its floors, the same done with less: "
                "packets written by hand on a second board of the same kind, memcpy, the bare allocator. "
                "They "
                "are measured in turns. Medians and fastest times are printed, and the messages that an "
                "operation sends to the device process; rows that must send none and do make the command "
                "fail. Rows for which the device has no room say so. Nothing else may run on the machine "
                "for numbers that mean something; the text of each row and what was measured where is in "
                "docs/benchmarks.md.",
        .via = "With --via HOST:PORT and --key FILE before it: what a DEVICE that a rig-agent(1) serves "
               "there costs from here, in rows of its own; no option then.",
        .options = options,
        .run = run,
};
