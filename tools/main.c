/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "rigctl.h"
#include "via.h"

const struct command *const commands[] = {&command_list, &command_doctor, &command_info, &command_bind,
        &command_unbind, &command_run, &command_bench, &command_regs, &command_reset, &command_agents, NULL};

enum { NAMES = 128 };

static const struct command *current;

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
	const struct command *const *c = commands;

	while (*c && strcmp((*c)->name, name) != 0)
		c++;
	return *c;
}

static int no_command(const char *name)
{
	char names[NAMES] = "";

	for (const struct command *const *c = commands; *c; c++)
		snprintf(names + strlen(names), NAMES - strlen(names), "%s%s", c == commands ? "" : ", ",
		        (*c)->name);
	return complain(EXIT_USAGE, "no command \"%s\": %s, and copy with --via; rigctl --help tells more",
	        name, names);
}

static int dispatch(int argc, char **argv)
{
	bool help = !strcmp(argv[0], "help");
	const struct command *command = find(argv[argc > 1 && help]);

	if (help && argc == 1) {
		print_help(stdout);
		return EXIT_DONE;
	}
	if (help || (command && wants_help(argc, argv))) {
		if (command && (!help || argc == 2)) {
			print_command_help(command);
			return EXIT_DONE;
		}
		return complain(EXIT_USAGE, "help takes the name of one command");
	}
	current = command;
	if (via.machine)
		return via_dispatch(command, argc, argv);
	if (command)
		return command->run(argc, argv);
	return no_command(argv[0]);
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
			print_help(stdout);
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
		print_help(stderr);
		return EXIT_USAGE;
	}
	return dispatch(argc - i, argv + i);
}
