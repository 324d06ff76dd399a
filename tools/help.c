/* SPDX-License-Identifier: MIT */
/* --help of rigctl and of each command, and the man page, from the commands' literals. */
#include <stdio.h>
#include <string.h>

#include "rigctl.h"

enum {
	HELP_COLUMNS = 100,
	COMMAND_COLUMN = 11, /* where a command's summary stands in the list of them */
	OPTION_COLUMN = 27,  /* where an option's text stands */
};

static const char devices_text[] =
        "DEVICE is sim (a model of the reference board that ends with the command), sim:OPTION,..., "
        "vfio-user:PATH (a device "
        "process at a UNIX socket) or a PCI address as 0000:65:00.0 or 10000:e1:00.0 (kernel VFIO).\n"
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

static void print_statuses(FILE *to)
{
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
		fprintf(to, "  %s\n", statuses[i]);
}

static void print_option(const char *name, const char *text)
{
	printf("  %-24s ", name);
	wrap(stdout, text, OPTION_COLUMN, OPTION_COLUMN);
}

void print_command_help(const struct command *c)
{
	const struct option_help *o;

	printf("usage: rigctl %s %s\n\n", c->name, c->synopsis);
	wrap(stdout, c->summary, 0, 0);
	if (*c->text) {
		printf("\n");
		wrap(stdout, c->text, 0, 0);
	}
	if (c->via) {
		printf("\n");
		wrap(stdout, c->via, 0, 0);
	}
	if (c->options[0].name)
		printf("\n");
	for (o = c->options; o->name; o++)
		print_option(o->name, o->text);
	printf("\n");
	wrap(stdout, devices_text, 0, 0);
	printf("\nExit status:\n");
	print_statuses(stdout);
}

void print_help(FILE *to)
{
	fprintf(to, "usage: rigctl [-v] COMMAND ...   (rigctl help COMMAND tells more)\n\n");
	for (const struct command *const *c = commands; *c; c++) {
		fprintf(to, "  %-8s ", (*c)->name);
		wrap(to, (*c)->summary, COMMAND_COLUMN, COMMAND_COLUMN);
	}
	fprintf(to,
	        "\n  -v, --verbose  say on stderr what opening, booting and stopping do\n      --version  "
	        "print the version\n\n");
	wrap(to, devices_text, 0, 0);
	fprintf(to, "\n");
	wrap(to, via_text, 0, 0);
	fprintf(to, "\nExit status:\n");
	print_statuses(to);
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
	if (c->via) {
		printf(".PP\n");
		troff(c->via);
	}
	for (o = c->options; o->name; o++) {
		printf(".TP\n");
		troff(o->name);
		troff(o->text);
	}
}

/* The man page, from the same tables as --help; the build writes it to rigctl.1. */
int print_man(void)
{
	printf(".\\\" Made by rigctl --man\n.TH RIGCTL 1 \"\" \"rig\\-vfio %s\" \"User Commands\"\n.SH NAME\n"
	       "rigctl \\- list, diagnose, inspect and run work on PCI devices driven from user space\n.SH "
	       "SYNOPSIS\n.B rigctl\n"
	       "[\\-v] COMMAND ...\n.SH COMMANDS\n",
	        RIG_VERSION);
	for (const struct command *const *c = commands; *c; c++)
		man_command(*c);
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
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		troff(statuses[i]);
		printf(".br\n");
	}
	printf(".SH ENVIRONMENT\n.TP\nRIG_MODEL_DIR\nthe folder of "
	       "rvx1\\-model\n.TP\nRIG_FIRMWARE_DIR\n"
	       "the folder of the firmware images, unless DEVICE has firmware=\n.TP\nRIG_SIM_HANG\n"
	       "the hang bound of a sim without hang=\n.TP\nRIG_KEY\nthe key file "
	       "of "
	       "\\-\\-via where there is no \\-\\-key\n"
	       ".SH EXAMPLES\n.nf\nrigctl info sim\nrigctl run sim scale.elf scale \\-\\-grid 4 \\-\\-group "
	       "256 "
	       "inout:in.bin,out.bin u32:1000 f32:2.5\nrigctl run sim:hang=60s,mem=1G slow.elf slow "
	       "out:out.bin,4096\n.fi\n.SH SEE ALSO\nrig\\-agent(1), rvx1\\-cc(1), rvx1\\-model(1)\n");
	return EXIT_DONE;
}
