/* SPDX-License-Identifier: MIT */
/* rig-agent: opens this machine's devices for controllers elsewhere. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "agent.h"
#include "bdf.h"
#include "rig.h"

enum {
	EXIT_USE = 2,
	EXIT_STUCK = 3,
	END_S = 30, /* for sessions to stop their devices, once the agent is told to end */
	HELP_COLUMN = 22,
};

#define DEFAULT_LISTEN "127.0.0.1:7447"
#define HOST_DEVICE    "CPU"

static const char summary[] = "serve this machine's devices to controllers on other machines";
static const char description[] =
        "Each DEVICE is a device string as rigctl takes it (sim, sim:OPTION,..., vfio-user:PATH, "
        "0000:65:00.0), alone or after NAME=. It is opened when a controller first asks for it, and closed "
        "with that controller's connection. Without a name, sims are RVX1:0, RVX1:1 and so on, and others "
        "are named as their string. The machine's memory is served as CPU. A device is one controller's at a "
        "time. Programs use the devices through rig_remote.h, and rigctl through --via.";

static const struct {
	const char *name, *text;
} help_rows[] = {
        {"--key FILE", "the job's key: a file of mode 0600, the same on every machine (needed)"},
        {"--listen HOST:PORT", "where to listen; " DEFAULT_LISTEN " by default, port 0 takes a free one"},
        {"--data-ports A-B", "data connections listen at a port of these alone, two ports with a dash "
                             "between; any by default"},
        {"--plain-rails", "jobs may choose libfabric's rails, which are neither encrypted nor authenticated"},
        {"--node ADDRESS",
                "the address of rails' data connections; by default the one that the controller reached"},
        {"--make-key FILE", "make FILE with a new key and exit"},
        {"--keep-memory",
                "let a job find what an earlier one left in a device's memory, which is cleared otherwise "
                "before another job has it"},
        {"-v, --verbose", "say on stderr when jobs begin, end and fail"},
        {"-h, --help", "print this"},
        {"--version", "print the version"},
};

enum { HELP_ROWS = sizeof(help_rows) / sizeof(help_rows[0]) };

static int complain(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int complain(int status, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "rig-agent: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return status;
}

static int print_help(void)
{
	unsigned i;

	printf("usage: rig-agent --key FILE [OPTION ...] [NAME=]DEVICE ...\n       rig-agent --make-key "
	       "FILE\n\n%s\n\n%s\n\n",
	        summary, description);
	for (i = 0; i < HELP_ROWS; i++)
		printf("  %-*s %s\n", HELP_COLUMN, help_rows[i].name, help_rows[i].text);
	return 0;
}

/* A line of text for troff. */
static void troff(const char *text)
{
	for (; *text; text++) {
		if (*text == '-')
			fputs("\\-", stdout);
		else
			putchar(*text);
	}
	putchar('\n');
}

static int print_man(void)
{
	unsigned i;

	printf(".\\\" Made by rig-agent --man\n.TH RIG\\-AGENT 1 \"\" \"rig\\-vfio %s\" \"User "
	       "Commands\"\n.SH NAME\n"
	       "rig\\-agent \\- ",
	        RIG_VERSION);
	troff(summary);
	printf(".SH SYNOPSIS\n.B rig\\-agent\n\\-\\-key FILE [OPTION ...] [NAME=]DEVICE ...\n.br\n.B "
	       "rig\\-agent\n"
	       "\\-\\-make\\-key FILE\n.SH DESCRIPTION\n");
	troff(description);
	printf(".SH OPTIONS\n");
	for (i = 0; i < HELP_ROWS; i++) {
		printf(".TP\n");
		troff(help_rows[i].name);
		troff(help_rows[i].text);
	}
	printf(".SH EXIT STATUS\n0 after SIGTERM or SIGINT, once all devices are stopped; 1 if it could not "
	       "listen, or read or make the key; "
	       "2 for bad usage; 3 if a device could not be stopped, within %d s of the signal or before.\n"
	       ".SH FILES\nThe key file is refused if others than its owner may read or write it.\n"
	       ".SH SEE ALSO\nrigctl(1)\n",
	        END_S);
	return 0;
}

/* ---- What is served ---- */

static int serve(struct agent *agent, const struct rig_opener *opener, bool host)
{
	int err = agent_serve(agent, opener, host);

	return err ? complain(err == -ENOMEM ? 1 : EXIT_USE, "%s", rig_error()) : 0;
}

static bool is_sim(const char *text)
{
	return !strncmp(text, "sim", 3) && (!text[3] || strchr(":,", text[3]));
}

/* Whether the text begins as device strings do, up to their options, and no name does. */
static bool is_device(const char *text)
{
	char first[RIG_RMT_NAME];
	struct rig_bdf address;

	snprintf(first, sizeof(first), "%.*s", (int)strcspn(text, ",="), text);
	return rig_bdf_parse(first, &address) || !strncmp(text, "vfio-user:", strlen("vfio-user:")) ||
	       (text[3] != '=' && is_sim(text));
}

static int serve_text(struct agent *agent, const char *text, unsigned *sims)
{
	const char *equals = strchr(text, '='), *device = text;
	char name[RIG_RMT_NAME] = "";
	struct rig_vfio_options options = {.version = RIG_EDGE_VERSION};
	struct rig_opener *opener;
	int err;

	/* An option of a device string has a '=' too. */
	if (equals && !is_device(text)) {
		snprintf(name, sizeof(name), "%.*s", (int)(equals - text), text);
		device = equals + 1;
	} else if (is_sim(text)) {
		snprintf(name, sizeof(name), "RVX1:%u", (*sims)++);
	}
	options.name = *name ? name : NULL;
	if (rig_vfio_opener(device, &options, &opener))
		return complain(EXIT_USE, "%s: %s", text, rig_error());
	err = serve(agent, opener, false);
	/* A model of its own, that ends with the open. */
	if (!err)
		agent->served[agent->nserved - 1].fresh = is_sim(device);
	return err;
}

/* For who started it: where it listens, also with port 0. */
static void print_where(int listener)
{
	char name[RIG_RMT_NAME];

	if (agent_where(listener, name, sizeof(name)))
		return;
	printf("listening at %s\n", name);
	(void)fflush(stdout);
}

static int run(struct agent *agent, const char *listen_name)
{
	sigset_t set;
	int listener = agent_listen(listen_name), signals;

	if (listener < 0)
		return complain(1, "%s", rig_error());
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)pthread_sigmask(SIG_BLOCK, &set, NULL);
	signals = signalfd(-1, &set, SFD_CLOEXEC);
	if (signals < 0 || !rig_words())
		return complain(1, "cannot start: %s", strerror(errno));
	print_where(listener);
	agent_accept(agent, listener, signals);
	(void)close(listener);
	return agent_end(agent, END_S)
	               ? 0
	               : complain(EXIT_STUCK, "not all devices could be stopped within %d s", END_S);
}

/* ---- Options ---- */

struct chosen {
	const char *key, *listen, *make_key, *ports;
};

/* The number of arguments taken, 0: no option; negative: an exit status, made positive by the caller. */
static int take_option(struct agent *agent, struct chosen *chosen, int left, char **argv)
{
	const struct {
		const char *name;
		const char **value;
	} valued[] = {{"--key", &chosen->key}, {"--listen", &chosen->listen},
	        {"--make-key", &chosen->make_key}, {"--node", &agent->node},
	        {"--data-ports", &chosen->ports}};
	unsigned i;

	if (!strcmp(argv[0], "--plain-rails")) {
		agent->plain_rails = true;
		return 1;
	}
	if (!strcmp(argv[0], "--keep-memory")) {
		agent->keep_memory = true;
		return 1;
	}
	if (!strcmp(argv[0], "-v") || !strcmp(argv[0], "--verbose")) {
		agent->verbose = true;
		return 1;
	}
	for (i = 0; i < sizeof(valued) / sizeof(valued[0]); i++)
		if (!strcmp(argv[0], valued[i].name)) {
			if (left < 2)
				return -complain(EXIT_USE, "%s takes a value", argv[0]);
			*valued[i].value = argv[1];
			return 2;
		}
	return argv[0][0] == '-' ? -complain(EXIT_USE, "no option %s: --help tells more", argv[0]) : 0;
}

static int read_arguments(struct agent *agent, struct chosen *chosen, int argc, char **argv)
{
	unsigned sims = 0;
	int i, err = 0;

	for (i = 1; i < argc && !err;) {
		int taken = take_option(agent, chosen, argc - i, argv + i);

		if (taken < 0)
			return -taken;
		if (!taken)
			err = serve_text(agent, argv[i], &sims);
		i += taken ? taken : 1;
	}
	return err;
}

static int read_ports(struct agent *agent, const char *text)
{
	unsigned long first, last;
	char *end;

	first = strtoul(text, &end, 10);
	if (end == text || *end != '-')
		return -EINVAL;
	text = end + 1;
	last = strtoul(text, &end, 10);
	if (end == text || *end || !first || first > last || last > UINT16_MAX)
		return -EINVAL;
	agent->first_port = (uint16_t)first;
	agent->last_port = (uint16_t)last;
	return 0;
}

static struct agent agent;

int main(int argc, char **argv)
{
	struct chosen chosen = {.listen = DEFAULT_LISTEN};
	struct rig_rmt_key *key;
	struct rig_opener host;
	int err;

	if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")))
		return print_help();
	if (argc == 2 && !strcmp(argv[1], "--man"))
		return print_man();
	if (argc == 2 && !strcmp(argv[1], "--version"))
		return printf("rig-agent %s\n", RIG_VERSION) < 0;
	agent_init(&agent);
	agent.version = RIG_VERSION;
	rig_host_opener(HOST_DEVICE, &host);
	err = serve(&agent, &host, true);
	if (!err)
		err = read_arguments(&agent, &chosen, argc, argv);
	if (err)
		return err;
	if (chosen.make_key)
		return rig_rmt_key_make(chosen.make_key) ? complain(1, "%s", rig_error()) : 0;
	if (!chosen.key)
		return complain(EXIT_USE, "it needs --key FILE; --make-key FILE makes one");
	key = rig_rmt_key_alloc();
	if (!key || rig_rmt_key_read(chosen.key, key))
		return complain(1, "%s", key ? rig_error() : "no memory for a key");
	agent.key = key;
	if (chosen.ports && read_ports(&agent, chosen.ports))
		return complain(EXIT_USE,
		        "--data-ports %s: A-B, two ports from 1 to 65535, the first not above the second",
		        chosen.ports);
	if (agent.plain_rails)
		complain(0, "--plain-rails: a job may choose rails and large copies that are neither "
		            "encrypted nor authenticated");
	if (agent.node && agent_check_node(agent.node))
		return complain(EXIT_USE, "%s", rig_error());
	return run(&agent, chosen.listen);
}
