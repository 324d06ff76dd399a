/* SPDX-License-Identifier: MIT */
/* rigctl regs: the board's registers by name, and the difference of two dumps. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boards.h"
#include "regs_dump.h"
#include "rigctl.h"
#include "run_args.h"
#include "pci.h"
#include "take.h"

enum { MAX_NAMES = 64 };

/* Of --diff, as diff(1) has them. */
enum { DIFF_SAME = 0, DIFF_DIFFERENT = 1, DIFF_TROUBLE = 2 };

struct regs_args {
	const char *device, *save;
	const char *diff[2];
	char *name[MAX_NAMES];
	unsigned names;
};

/* -- A dump -- */

static uint64_t load(const struct rig_win *win, const struct rig_board_register *r)
{
	return r->width == 8 ? rig_win_load64(win, 0) : rig_win_load32(win, 0);
}

/* A window a register: nothing beside it is read. */
static int read_one(struct rig_pci *pci, const struct rig_board_register *r, FILE *file)
{
	struct rig_win win;
	uint64_t value;
	int err = rig_pci_window(pci, r->bar, r->offset, r->width, 0, &win);

	if (err)
		return complain(EXIT_FAILED, "%s: %s", r->name, rig_error());
	value = load(&win, r);
	fprintf(file, "%-24s %u 0x%05" PRIx32 " %u 0x%0*" PRIx64 "\n", r->name, r->bar, r->offset, r->width,
	        r->width * 2, value);
	return 0;
}

static bool has_wanted(const struct regs_args *a, const struct rig_board *board)
{
	for (uint32_t i = 0; i < board->nregisters; i++)
		if (regs_is_wanted(board->registers[i].name, a->name, a->names))
			return true;
	return false;
}

static int dump_all(const struct regs_args *a, struct rig_pci *pci, const struct rig_board *board, FILE *file)
{
	const char *why;
	int err = 0;

	fprintf(file, "# %s, %s over %s\n", board->arch, a->device, rig_pci_info(pci)->transport);
	for (uint32_t i = 0; i < board->nregisters && !err; i++)
		if (regs_is_wanted(board->registers[i].name, a->name, a->names))
			err = read_one(pci, &board->registers[i], file);
	if (!err && rig_pci_gone(pci, &why))
		err = complain(EXIT_FAILED, "the function is gone, and what was read is not true: %s", why);
	return err;
}

static int save_or_print(const struct regs_args *a, struct rig_pci *pci, const struct rig_board *board)
{
	FILE *file = a->save ? fopen(a->save, "we") : stdout;
	int err;

	if (!file)
		return complain(EXIT_FAILED, "%s: %s", a->save, strerror(errno));
	err = dump_all(a, pci, board, file);
	if (!a->save)
		return err;
	if (fclose(file) && !err)
		err = complain(EXIT_FAILED, "%s: %s", a->save, strerror(errno));
	if (err)
		(void)remove(a->save);
	return err;
}

static int dump(const struct regs_args *a)
{
	const struct rig_pci_info *info;
	const struct rig_board *board;
	struct rig_taken function;
	int status = take_function(a->device, &function);

	if (status)
		return status;
	info = rig_pci_info(function.pci);
	board = rig_board_find(info->vendor, info->device);
	if (!board)
		status = complain(EXIT_OPEN, "%s: function %04x:%04x, which no port here drives", a->device,
		        info->vendor, info->device);
	else if (!board->nregisters)
		status = complain(EXIT_FAILED, "%s: its port names no registers", a->device);
	else if (!has_wanted(a, board))
		status = complain(EXIT_USAGE, "no register of that name; without NAME all are shown");
	else
		status = save_or_print(a, function.pci, board);
	rig_pci_close(function.pci);
	return status;
}

/* -- A difference -- */

static int read_dump(const char *path, struct regs_dump *out)
{
	uint8_t *bytes;
	uint64_t count;
	unsigned bad;
	char *text;
	int err = read_file(path, &bytes, &count);

	if (err)
		return complain(DIFF_TROUBLE, "%s: %s", path, strerror(-err));
	text = strndup((const char *)bytes, count);
	free(bytes);
	if (!text)
		return complain(DIFF_TROUBLE, "out of memory");
	bad = regs_dump_parse(text, out);
	free(text);
	return bad ? complain(DIFF_TROUBLE, "%s: line %u is no line of a dump", path, bad) : 0;
}

/* Names of `a` whose value differs in `b` or is not there. */
static unsigned print_changes(
        const struct regs_args *args, const struct regs_dump *a, const struct regs_dump *b)
{
	unsigned changes = 0;

	for (unsigned i = 0; i < a->count; i++) {
		const struct regs_line *was = &a->line[i], *is = regs_dump_find(b, was->name);
		int digits = (int)was->width * 2;

		if (!regs_is_wanted(was->name, args->name, args->names) || (is && is->value == was->value))
			continue;
		changes++;
		if (is)
			printf("%-24s 0x%0*" PRIx64 " -> 0x%0*" PRIx64 "\n", was->name, digits, was->value,
			        digits, is->value);
		else
			printf("%-24s 0x%0*" PRIx64 " -> -\n", was->name, digits, was->value);
	}
	return changes;
}

static unsigned print_new(const struct regs_args *args, const struct regs_dump *a, const struct regs_dump *b)
{
	unsigned changes = 0;

	for (unsigned i = 0; i < b->count; i++) {
		const struct regs_line *is = &b->line[i];

		if (!regs_is_wanted(is->name, args->name, args->names) || regs_dump_find(a, is->name))
			continue;
		changes++;
		printf("%-24s - -> 0x%0*" PRIx64 "\n", is->name, (int)is->width * 2, is->value);
	}
	return changes;
}

static int print_diff(const struct regs_args *args, const struct regs_dump *a, const struct regs_dump *b)
{
	unsigned changes = print_changes(args, a, b) + print_new(args, a, b);

	if (!changes)
		printf("no difference\n");
	return changes ? DIFF_DIFFERENT : DIFF_SAME;
}

static int diff(const struct regs_args *args)
{
	struct regs_dump *dumps = calloc(2, sizeof(*dumps));
	int status;

	if (!dumps)
		return complain(DIFF_TROUBLE, "out of memory");
	status = read_dump(args->diff[0], &dumps[0]);
	if (!status)
		status = read_dump(args->diff[1], &dumps[1]);
	if (!status)
		status = print_diff(args, &dumps[0], &dumps[1]);
	free(dumps);
	return status;
}

/* -- The command -- */

static int parse(struct regs_args *a, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--save") && i + 1 < argc) {
			a->save = argv[++i];
		} else if (!strcmp(argv[i], "--diff") && i + 2 < argc) {
			a->diff[0] = argv[++i];
			a->diff[1] = argv[++i];
		} else if (argv[i][0] == '-') {
			return complain(EXIT_USAGE, "%s: --save FILE or --diff A B", argv[i]);
		} else if (a->names == MAX_NAMES) {
			return complain(EXIT_USAGE, "more than %d names", MAX_NAMES);
		} else {
			a->name[a->names++] = argv[i];
		}
	}
	return 0;
}

static int run(int argc, char **argv)
{
	struct regs_args a = {0};
	int status = parse(&a, argc, argv);

	if (status)
		return status;
	if (a.diff[0])
		return a.save ? complain(EXIT_USAGE, "--save and --diff: one of them") : diff(&a);
	if (!a.names)
		return complain(EXIT_USAGE, "a DEVICE, or --diff A B");
	a.device = a.name[0];
	memmove(a.name, a.name + 1, --a.names * sizeof(a.name[0]));
	return dump(&a);
}

static const struct option_help options[] = {
        {"--save FILE", "write the dump to a file instead"},
        {"--diff A B", "print what two dumps differ in; needs no device"},
        {"NAME", "only this register, or those whose names begin so up to a dot, as QUEUE0"},
        {NULL, NULL},
};

const struct command command_regs = {
        .name = "regs",
        .synopsis = "DEVICE [--save FILE] [NAME...] | --diff A B [NAME...]",
        .summary = "print a board's registers by name, or what two dumps differ in",
        .text = "Lines of name, BAR, offset, width in bytes and value. Only registers whose reading changes "
                "nothing. The board "
                "is not booted; but opening a function may reset it (the kernel does, where the function can "
                "be reset), so "
                "of a kernel function a dump shows what is left after that.\n"
                "The exit status is 3 also where no port here drives the function; the message has its ids.\n"
                "--diff has the exit status of diff(1): 0 no difference, 1 there is one, 2 trouble.",
        .options = options,
        .run = run,
};
