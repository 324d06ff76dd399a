/* SPDX-License-Identifier: MIT */
/*
 * Faults on request (--fault): what a board does that a driver must survive. A plan says what, a mischief
 * counts what happened until then. Counts are from 1; 0 in a plan means never.
 */
#ifndef RVX_MISCHIEF_H
#define RVX_MISCHIEF_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct rvx_plan {
	uint64_t hang;     /* that launch never ends */
	uint64_t halt;     /* the processor halts at that RELEASE, which does not happen */
	uint64_t die;      /* the process exits at that launch or RELEASE */
	uint64_t bus;      /* that copy or fill finds its destination's bus dead */
	uint64_t unmapped; /* that copy or fill writes where no system memory is */
	uint64_t stamp;    /* that STAMP's clock is wrong */
	uint64_t lose_irq; /* that interrupt is not sent */
	uint64_t late_ms;  /* VALUE is shown that much later */
	uint64_t slow_ms;  /* the processor starts that much after it was told to */
	uint64_t gone_ms;  /* that long after the processor's start the function leaves the bus */
	bool refuse_boot;
	bool refuse_reset;
	bool die_boot; /* the process exits when the processor is started */
};

struct rvx_mischief {
	struct rvx_plan plan;
	uint64_t launches, releases, deaths, copies, astray, stamps, irqs;
};

/* Adds one "name" or "name=number". -EINVAL: unknown name, or a number that is none, missing or not
 * wanted. */
int rvx_plan_add(struct rvx_plan *plan, const char *spec);

/* Prints a line for each name. */
void rvx_plan_help(FILE *to);

/* Counts one more of what `count` counts. True: it is the planned one. */
bool rvx_mischief_due(uint64_t *count, uint64_t planned);

#endif
