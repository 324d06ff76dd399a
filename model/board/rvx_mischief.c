/* SPDX-License-Identifier: MIT */
#include "rvx_mischief.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_NAME 32u

enum argument {
	NONE,
	OPTIONAL, /* a count, 1 without */
	REQUIRED, /* milliseconds */
};

static const struct mischief_name {
	const char *name;
	enum argument argument;
	size_t offset;
	const char *help;
} names[] = {
        {"hang", OPTIONAL, offsetof(struct rvx_plan, hang), "launch N never ends"},
        {"late", REQUIRED, offsetof(struct rvx_plan, late_ms),
                "VALUE is shown MS milliseconds late, in order"},
        {"halt", OPTIONAL, offsetof(struct rvx_plan, halt), "the processor halts at RELEASE N, as by ebreak"},
        {"bus", OPTIONAL, offsetof(struct rvx_plan, bus), "copy or fill N ends in a BUS fault"},
        {"dma-unmapped", OPTIONAL, offsetof(struct rvx_plan, unmapped),
                "copy or fill N writes to a bus address that is no memory"},
        {"corrupt-stamp", OPTIONAL, offsetof(struct rvx_plan, stamp),
                "STAMP N stores the complement of the clock"},
        {"lose-irq", OPTIONAL, offsetof(struct rvx_plan, lose_irq), "interrupt N is not sent"},
        {"gone", REQUIRED, offsetof(struct rvx_plan, gone_ms),
                "MS milliseconds after the processor's start the function leaves the bus"},
        {"slow-boot", REQUIRED, offsetof(struct rvx_plan, slow_ms),
                "the processor starts MS milliseconds late"},
        {"refuse-boot", NONE, offsetof(struct rvx_plan, refuse_boot), "the processor does not start"},
        {"refuse-reset", NONE, offsetof(struct rvx_plan, refuse_reset), "resets do nothing and fail"},
        {"die", OPTIONAL, offsetof(struct rvx_plan, die), "the program exits at the N-th launch or RELEASE"},
        {"die-boot", NONE, offsetof(struct rvx_plan, die_boot),
                "the program exits when the processor starts"},
};

static const struct mischief_name *find(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i].name) == len && strncmp(names[i].name, name, len) == 0)
			return &names[i];
	return NULL;
}

static int parse_number(const char *text, uint64_t *out)
{
	char *end;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	*out = strtoull(text, &end, 10);
	return errno || *end || !*out ? -EINVAL : 0;
}

int rvx_plan_add(struct rvx_plan *plan, const char *spec)
{
	const char *equals = strchr(spec, '=');
	const struct mischief_name *name = find(spec, equals ? (size_t)(equals - spec) : strlen(spec));
	uint64_t number = 1;

	if (!name || (name->argument == NONE && equals) || (name->argument == REQUIRED && !equals))
		return -EINVAL;
	if (equals && parse_number(equals + 1, &number) < 0)
		return -EINVAL;
	void *at = (char *)plan + name->offset;
	if (name->argument == NONE)
		*(bool *)at = true;
	else
		*(uint64_t *)at = number;
	return 0;
}

void rvx_plan_help(FILE *to)
{
	static const char *const arguments[] = {[NONE] = "", [OPTIONAL] = "[=N]", [REQUIRED] = "=MS"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char left[LONGEST_NAME];
		snprintf(left, sizeof(left), "%s%s", names[i].name, arguments[names[i].argument]);
		fprintf(to, "  %-18s %s\n", left, names[i].help);
	}
}

bool rvx_mischief_due(uint64_t *count, uint64_t planned)
{
	return ++*count == planned;
}
