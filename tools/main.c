/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "rigctl.h"
#include "via.h"

static const struct command *const commands[] = {&command_list, &command_doctor, &command_info, &command_bind,
        &command_unbind, &command_run, &command_bench, &command_regs, &command_reset};

enum {
	COMMANDS = sizeof(commands) / sizeof(commands[0]),
	HELP_COLUMNS = 100,
	COMMAND_COLUMN = 11, /* where a command's summary stands in the list of them */
	OPTION_COLUMN = 27,  /* where an option's text stands */
};

static const struct command *current;

static const char devices_text[] =
        "DEVICE is sim (a model of the reference board that ends with the command), sim:OPTION,..., "
        "vfio-user:PATH (a device "
        "process at a UNIX socket) or a PCI address as 0000:65:00.0 (kernel VFIO).\n"
        "Options after sim: or after a comma: completion=poll|store, hang=TIME (without progress for so long "
        "the "
        "device is lost: 500ms, 2s), poller=CPU, firmware=DIR, dma=bus|dmabuf; of a PCI address also "
        "transport=auto|iommufd|type1|noiommu, vf-token=UUID; of sim also mem=SIZE (64M to 8G; 256M), "
        "aperture=SIZE (a power of two from 16M; all of the memory), queues=N (2 to 8; 2), clock-hz=N "
        "(1000000 to 4000000000), clock-drift=PPM (-100 to 100), clock-step=US/MS (each 1 to 1000000) and "
        "fault=NAME[=N] (those of rvx1-model(1); several joined by +).";

static const char via_text[] =
        "With --via HOST:PORT the commands list, info DEVICE, run, bench DEVICE and copy DEVICE BYTES (there "
        "and "
        "back) work on the devices that a rig-agent(1) serves there; DEVICE is then a name that list shows, "
        "and "
        "its options are those that the agent was given for it. Of their own options run has all, the others "
        "none. "
        "--key FILE, or RIG_KEY in the environment, is the file with the key that both have.";

static const char *const statuses[] = {
        "0  done",
        "1  the work failed or the device was lost",
        "2  bad usage or input; nothing was submitted",
        "3  the device could not be opened, or is of a kind that no port here drives",
        "regs --diff has its own: 0 the dumps are the same, 1 they differ, 2 trouble",
        "doctor has its own: 0 usable, 1 usable after the commands shown, 2 not usable here",
};

int complain(int status, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "rigctl%s%s: ", current ? " " : "", current ? current->name : "");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return status;
}

/* Prints text and a newline, at most HELP_COLUMNS wide where words allow it; later lines start at column
   `indent`, the first is already at column `at`. */
static void wrap(FILE *to, const char *text, size_t at, size_t indent)
{
	bool first = true;

	while (*text) {
		size_t length = strcspn(text, " \n");

		if (!first && at + 1 + length > HELP_COLUMNS) {
			fprintf(to, "\n%*s", (int)indent, "");
			at = indent;
		} else if (!first) {
			fputc(' ', to);
			at++;
		}
		fprintf(to, "%.*s", (int)length, text);
		at += length;
		text += length;
		first = *text == '\n';
		if (first) {
			fprintf(to, "\n%*s", (int)indent, "");
			at = indent;
		}
		text += *text != 0;
	}
	fputc('\n', to);
}

static void print_option(const char *name, const char *text)
{
	printf("  %-24s ", name);
	wrap(stdout, text, OPTION_COLUMN, OPTION_COLUMN);
}

static void print_command(const struct command *c)
{
	const struct option_help *o;

	printf("usage: rigctl %s %s\n\n", c->name, c->synopsis);
	wrap(stdout, c->summary, 0, 0);
	if (*c->text) {
		printf("\n");
		wrap(stdout, c->text, 0, 0);
	}
	if (c->options[0].name)
		printf("\n");
	for (o = c->options; o->name; o++)
		print_option(o->name, o->text);
	printf("\n");
	wrap(stdout, devices_text, 0, 0);
}

static void print_usage(FILE *to)
{
	unsigned i;

	fprintf(to, "usage: rigctl [-v] COMMAND ...   (rigctl help COMMAND tells more)\n\n");
	for (i = 0; i < COMMANDS; i++) {
		fprintf(to, "  %-8s ", commands[i]->name);
		wrap(to, commands[i]->summary, COMMAND_COLUMN, COMMAND_COLUMN);
	}
	fprintf(to,
	        "\n  -v, --verbose  say on stderr what opening, booting and stopping do\n      --version  "
	        "print the version\n\n");
	wrap(to, devices_text, 0, 0);
	fprintf(to, "\n");
	wrap(to, via_text, 0, 0);
	fprintf(to, "\nExit status:\n");
	for (i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
		fprintf(to, "  %s\n", statuses[i]);
}

/* A line of text for troff: backslashes, hyphens and leading dots mean something there. */
static void troff(const char *text)
{
	if (*text == '.')
		fputs("\\&", stdout);
	for (; *text; text++) {
		if (*text == '\\')
			fputs("\\e", stdout);
		else if (*text == '-')
			fputs("\\-", stdout);
		else if (*text == '\n')
			fputs("\n.PP\n", stdout);
		else
			putchar(*text);
	}
	putchar('\n');
}

static void man_command(const struct command *c)
{
	const struct option_help *o;

	printf(".SS ");
	troff(c->name);
	printf(".B rigctl %s\n", c->name);
	troff(c->synopsis);
	printf(".PP\n");
	troff(c->summary);
	if (*c->text) {
		printf(".PP\n");
		troff(c->text);
	}
	for (o = c->options; o->name; o++) {
		printf(".TP\n");
		troff(o->name);
		troff(o->text);
	}
}

/* The man page, from the same tables as --help; the build writes it to rigctl.1. */
static int print_man(void)
{
	unsigned i;

	printf(".\\\" Made by rigctl --man\n.TH RIGCTL 1 \"\" \"rig\\-vfio %s\" \"User Commands\"\n.SH NAME\n"
	       "rigctl \\- list, diagnose, inspect and run work on PCI devices driven from user space\n.SH "
	       "SYNOPSIS\n.B rigctl\n"
	       "[\\-v] COMMAND ...\n.SH COMMANDS\n",
	        RIG_VERSION);
	for (i = 0; i < COMMANDS; i++)
		man_command(commands[i]);
	printf(".SH OPTIONS\n.TP\n\\-v, \\-\\-verbose\nSay on standard error what opening, booting and "
	       "stopping "
	       "do.\n.TP\n\\-\\-via HOST:PORT, \\-\\-key FILE\nWork on another machine's devices, "
	       "below.\n.TP\n\\-h, \\-\\-help\nPrint a summary; after a command, of that command.\n.TP\n"
	       "\\-\\-version\nPrint the version.\n");
	printf(".SH DEVICES\n");
	troff(devices_text);
	printf(".SH OTHER MACHINES\n");
	troff(via_text);
	printf(".SH EXIT STATUS\n");
	for (i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		troff(statuses[i]);
		printf(".br\n");
	}
	printf(".SH ENVIRONMENT\n.TP\nRIG_MODEL_DIR\nthe folder of "
	       "rvx1\\-model\n.TP\nRIG_FIRMWARE_DIR\n"
	       "the folder of the firmware images, unless DEVICE has firmware=\n.TP\nRIG_KEY\nthe key file "
	       "of "
	       "\\-\\-via where there is no \\-\\-key\n"
	       ".SH EXAMPLES\n.nf\nrigctl info sim\nrigctl run sim scale.elf scale \\-\\-grid 4 \\-\\-group "
	       "256 "
	       "inout:in.bin,out.bin u32:1000 f32:2.5\nrigctl run sim:hang=60s,mem=1G slow.elf slow "
	       "out:out.bin,4096\n.fi\n.SH SEE ALSO\nrig\\-agent(1), rvx1\\-cc(1), rvx1\\-model(1)\n");
	return EXIT_DONE;
}

static bool wants_help(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
			return true;
	return false;
}

static const struct command *find(const char *name)
{
	unsigned i;

	for (i = 0; i < COMMANDS; i++)
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	return NULL;
}

static int dispatch(int argc, char **argv)
{
	bool help = !strcmp(argv[0], "help");
	const struct command *command = find(argv[argc > 1 && help]);

	if (help && argc == 1) {
		print_usage(stdout);
		return EXIT_DONE;
	}
	if (help || (command && wants_help(argc, argv))) {
		if (command && (!help || argc == 2)) {
			print_command(command);
			return EXIT_DONE;
		}
		return complain(EXIT_USAGE, "help takes the name of one command");
	}
	current = command;
	if (via.machine)
		return via_dispatch(command, argc, argv);
	if (command)
		return command->run(argc, argv);
	return complain(EXIT_USAGE,
	        "no command \"%s\": list, doctor, info, bind, unbind, run, bench, regs or reset, and copy "
	        "with --via; "
	        "rigctl --help tells more",
	        argv[0]);
}

int main(int argc, char **argv)
{
	int i = 1;

	for (; i < argc && argv[i][0] == '-'; i++) {
		if (!strcmp(argv[i], "-v") || !strcmp(argv[i], "--verbose")) {
			verbose = true;
		} else if (i + 1 < argc && !strcmp(argv[i], "--via")) {
			via.machine = argv[++i];
		} else if (i + 1 < argc && !strcmp(argv[i], "--key")) {
			via.key = argv[++i];
		} else if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			print_usage(stdout);
			return EXIT_DONE;
		} else if (!strcmp(argv[i], "--version")) {
			printf("rigctl %s\n", RIG_VERSION);
			return EXIT_DONE;
		} else if (!strcmp(argv[i], "--man")) {
			return print_man();
		} else {
			return complain(
			        EXIT_USAGE, "option %s: -v, --help or --version before the command", argv[i]);
		}
	}
	if (i == argc) {
		print_usage(stderr);
		return EXIT_USAGE;
	}
	return dispatch(argc - i, argv + i);
}
