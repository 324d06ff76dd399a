/* SPDX-License-Identifier: MIT */
#include "rvx_options.h"

#include "rvx_clock.h"
#include "rvx1/regs.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum option_key {
	KEY_FD = 256,
	KEY_SOCKET,
	KEY_MEMORY,
	KEY_APERTURE,
	KEY_QUEUES,
	KEY_CLOCK_HZ,
	KEY_CLOCK_DRIFT,
	KEY_CLOCK_STEP,
	KEY_FAULT,
	KEY_LOG,
	KEY_HELP,
	KEY_VERSION,
};

static const struct option options[] = {
        {"fd", required_argument, NULL, KEY_FD},
        {"socket", required_argument, NULL, KEY_SOCKET},
        {"memory", required_argument, NULL, KEY_MEMORY},
        {"aperture", required_argument, NULL, KEY_APERTURE},
        {"queues", required_argument, NULL, KEY_QUEUES},
        {"clock-hz", required_argument, NULL, KEY_CLOCK_HZ},
        {"clock-drift-ppm", required_argument, NULL, KEY_CLOCK_DRIFT},
        {"clock-step", required_argument, NULL, KEY_CLOCK_STEP},
        {"fault", required_argument, NULL, KEY_FAULT},
        {"log", no_argument, NULL, KEY_LOG},
        {"help", no_argument, NULL, KEY_HELP},
        {"version", no_argument, NULL, KEY_VERSION},
        {NULL, 0, NULL, 0},
};

void rvx_options_help(void)
{
	printf("usage: rvx1-model --fd N | --socket PATH [option ...]\n"
	       "\n"
	       "The reference board RVX-1 as a vfio-user server.\n"
	       "\n"
	       "  --fd N           serve the peer of this connected socket, and exit when it goes\n"
	       "  --socket PATH    listen there and serve one client after the other, until SIGTERM\n"
	       "  --memory SIZE    board memory, 64M to 8G in steps of 2M (256M)\n"
	       "  --aperture SIZE  what BAR2 shows of it, a power of two from 16M (as much as possible)\n"
	       "  --queues N       2 to 8 (2)\n"
	       "  --clock-hz N     the clock's nominal frequency, 1000000 to 4000000000 (%llu)\n"
	       "  --clock-drift-ppm N\n"
	       "                   how far it is off that, in parts per million, -100 to 100 (%d)\n"
	       "  --clock-step US/MS\n"
	       "                   it jumps US microseconds ahead every MS milliseconds, each 1 to 1000000\n"
	       "  --fault SPEC     misbehave, see below; may be repeated, or a list with commas\n"
	       "  --log            say on stderr what happens\n"
	       "  --help, --version\n"
	       "\n"
	       "Faults (N counts from 1, which is the default):\n",
	        RVX_CLOCK_NOMINAL_HZ, RVX_DEFAULT_DRIFT_PPM);
	rvx_plan_help(stdout);
	printf("\nExit: 0 when the client is gone or SIGTERM came, 1 for a failure, 2 for a bad command "
	       "line.\n");
}

__attribute__((format(printf, 1, 2))) static enum rvx_wish misuse(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "rvx1-model: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, " (see rvx1-model --help)\n");
	return RVX_MISUSED;
}

int rvx_parse_size(const char *text, uint64_t *out)
{
	static const char suffixes[] = "KMG";
	unsigned shift = 0;
	char *end;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	unsigned long long number = strtoull(text, &end, 0);
	const char *suffix = *end ? strchr(suffixes, *end) : NULL;
	if (suffix) {
		shift = 10 * (unsigned)(suffix - suffixes + 1);
		end++;
	}
	if (errno || *end || number > UINT64_MAX >> shift)
		return -EINVAL;
	*out = (uint64_t)number << shift;
	return 0;
}

static int parse_int(const char *text, long least, long most, int *out)
{
	char *end;

	errno = 0;
	long number = strtol(text, &end, 10);
	if (errno || end == text || *end || number < least || number > most)
		return -EINVAL;
	*out = (int)number;
	return 0;
}

/* "US/MS". */
static enum rvx_wish set_clock_step(struct rvx_config *config, const char *text)
{
	char *us = strdup(text), *ms = us ? strchr(us, '/') : NULL;
	int by = 0, every = 0;
	bool good = ms != NULL;

	if (good)
		*ms++ = 0;
	good = good && !parse_int(us, 1, RVX_CLOCK_MAX_STEP, &by) &&
	       !parse_int(ms, 1, RVX_CLOCK_MAX_STEP, &every);
	free(us);
	if (!good)
		return misuse("--clock-step %s is not US/MS, each 1 to %u", text, RVX_CLOCK_MAX_STEP);
	config->clock_step_us = (uint32_t)by;
	config->clock_step_ms = (uint32_t)every;
	return RVX_RUN;
}

/* A list of faults with commas. */
static enum rvx_wish add_faults(struct rvx_plan *plan, const char *list)
{
	char *copy = strdup(list), *rest = copy, *spec;
	enum rvx_wish wish = RVX_RUN;

	if (!copy)
		return misuse("no memory");
	while (wish == RVX_RUN && (spec = strsep(&rest, ",")) != NULL) {
		if (rvx_plan_add(plan, spec) == 0)
			continue;
		fprintf(stderr, "rvx1-model: \"%s\" is no fault; these are:\n", spec);
		rvx_plan_help(stderr);
		wish = RVX_MISUSED;
	}
	free(copy);
	return wish;
}

static enum rvx_wish take(struct rvx_options *o, int key, const char *arg)
{
	int number = 0;

	switch (key) {
	case KEY_FD:
		return parse_int(arg, 0, INT32_MAX, &o->fd) ? misuse("--fd %s is no descriptor", arg)
		                                            : RVX_RUN;
	case KEY_SOCKET:
		o->socket = arg;
		return RVX_RUN;
	case KEY_MEMORY:
		return rvx_parse_size(arg, &o->config.memory_bytes) ? misuse("--memory %s is no size", arg)
		                                                    : RVX_RUN;
	case KEY_APERTURE:
		return rvx_parse_size(arg, &o->config.aperture_bytes)
		               ? misuse("--aperture %s is no size", arg)
		               : RVX_RUN;
	case KEY_QUEUES:
		if (parse_int(arg, RVX_MIN_QUEUES, RVX1_MAX_QUEUES, &number))
			return misuse("--queues %s is not 2 to 8", arg);
		o->config.queues = (uint32_t)number;
		return RVX_RUN;
	case KEY_CLOCK_HZ:
		return rvx_parse_size(arg, &o->config.clock_hz) || o->config.clock_hz < RVX_CLOCK_MIN_HZ ||
		                       o->config.clock_hz > RVX_CLOCK_MAX_HZ
		               ? misuse("--clock-hz %s is not 1000000 to 4000000000", arg)
		               : RVX_RUN;
	case KEY_CLOCK_DRIFT:
		if (parse_int(arg, -RVX_CLOCK_MAX_PPM, RVX_CLOCK_MAX_PPM, &o->config.drift_ppm))
			return misuse("--clock-drift-ppm %s is not -100 to 100", arg);
		return RVX_RUN;
	case KEY_CLOCK_STEP:
		return set_clock_step(&o->config, arg);
	case KEY_FAULT:
		return add_faults(&o->config.plan, arg);
	case KEY_LOG:
		o->log = true;
		return RVX_RUN;
	case KEY_HELP:
		return RVX_HELP;
	case KEY_VERSION:
		return RVX_VERSION;
	default:
		return RVX_MISUSED;
	}
}

static enum rvx_wish refuse(int key, const char *word)
{
	if (key == ':')
		return misuse("option %s: a value must follow", word);
	if (optopt > 0 && optopt < KEY_FD)
		return misuse("option -%c: unknown", optopt);
	return misuse("option %s: unknown, short for several, or without a value", word);
}

/* What only the whole command line tells. */
static enum rvx_wish check(struct rvx_options *o)
{
	struct rvx_config *c = &o->config;

	if ((o->fd >= 0) == (o->socket != NULL))
		return misuse("give one of --fd and --socket");
	if (c->memory_bytes < RVX1_MIN_MEMORY || c->memory_bytes > RVX1_MAX_MEMORY ||
	        c->memory_bytes % RVX_MEMORY_STEP)
		return misuse("--memory is not 64M to 8G in steps of 2M");
	if (!c->aperture_bytes)
		c->aperture_bytes = rvx_default_aperture(c->memory_bytes);
	if (c->aperture_bytes < RVX_MIN_APERTURE || c->aperture_bytes > c->memory_bytes ||
	        (c->aperture_bytes & (c->aperture_bytes - 1)))
		return misuse("--aperture is no power of two from 16M to the memory's size");
	return RVX_RUN;
}

enum rvx_wish rvx_options_parse(int argc, char **argv, struct rvx_options *out)
{
	enum rvx_wish wish = RVX_RUN;
	int key;

	*out = (struct rvx_options){
	        .config = {.memory_bytes = RVX_DEFAULT_MEMORY,
	                .queues = RVX_MIN_QUEUES,
	                .drift_ppm = RVX_DEFAULT_DRIFT_PPM},
	        .fd = -1,
	};
	optind = 0; /* glibc: start afresh, also when called again */
	opterr = 0; /* its messages have the path of this program and no hint */
	while (wish == RVX_RUN && (key = getopt_long(argc, argv, ":", options, NULL)) != -1)
		wish = key == '?' || key == ':' ? refuse(key, argv[optind - 1]) : take(out, key, optarg);
	if (wish != RVX_RUN)
		return wish;
	if (optind < argc)
		return misuse("what is \"%s\"?", argv[optind]);
	return check(out);
}
