/* SPDX-License-Identifier: MIT */
/* A port's table and facts, judged when a device is made: what is left out or out of range is named there,
   and does not crash or stall later. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bits.h"
#include "device.h"

struct member {
	const char *name;
	size_t offset; /* of a function */
};
#define MEMBER(table, name)                                                                                  \
	{                                                                                                    \
#name, offsetof(struct table, name)                                                          \
	}

static const struct member all_boards[] = {MEMBER(rig_board, describe), MEMBER(rig_board, check),
        MEMBER(rig_board, part), MEMBER(rig_board, halt)};
static const struct member with_rings[] = {MEMBER(rig_board, start_value), MEMBER(rig_board, enable),
        MEMBER(rig_board, step), MEMBER(rig_board, ring), MEMBER(rig_board, completed),
        MEMBER(rig_board, failed), MEMBER(rig_board, fault), MEMBER(rig_board, arm)};
static const struct member serial[] = {MEMBER(rig_serial, start), MEMBER(rig_serial, poll)};
static const struct member with_tables[] = {
        MEMBER(rig_board, root), MEMBER(rig_board, invalidate), MEMBER(rig_board, poke)};
static const struct member with_clock[] = {MEMBER(rig_board, clock)};
static const struct member with_code[] = {
        MEMBER(rig_board, image_bytes), MEMBER(rig_board, image_place), MEMBER(rig_board, image_find)};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool is_there(const void *table, const struct member *member)
{
	void (*function)(void);

	memcpy(&function, (const uint8_t *)table + member->offset, sizeof(function));
	return function != NULL;
}

static int need(const struct rig_board *board, const void *table, const struct member *members, size_t n,
        const char *what)
{
	for (size_t i = 0; i < n; i++)
		if (!is_there(table, &members[i]))
			return rig_error_set(-EINVAL, "the port of board %s: %s is NULL, which %s needs",
			        board->arch, members[i].name, what);
	return 0;
}

int rig_dev_check_table(const struct rig_board *board)
{
	int err = need(board, board, all_boards, COUNT(all_boards), "every board");

	if (!err && board->serial)
		err = need(board, board->serial, serial, COUNT(serial), "a board without rings");
	else if (!err)
		err = need(board, board, with_rings, COUNT(with_rings), "a board with rings");
	if (!err && board->image_bytes)
		err = need(board, board, with_code, COUNT(with_code), "a board that runs code");
	return err;
}

struct range {
	const char *name;
	uint64_t value, least, most;
	bool power; /* of two */
};

static int check_ranges(const struct rig_board *board, const struct range *ranges, size_t n)
{
	for (const struct range *r = ranges; r < ranges + n; r++)
		if (r->value < r->least || r->value > r->most || (r->power && !rig_is_pow2(r->value)))
			return rig_error_set(-EINVAL,
			        "the port of board %s: %s is %" PRIu64 ": %s from %" PRIu64 " to %" PRIu64,
			        board->arch, r->name, r->value, r->power ? "a power of two" : "a number",
			        r->least, r->most);
	return 0;
}

static int check_queues(const struct rig_board *board, const struct rig_board_facts *facts)
{
	uint32_t q;

	for (q = 0; q < facts->nqueues; q++)
		if (!facts->queues[q].name || !*facts->queues[q].name || !facts->queues[q].runs)
			return rig_error_set(-EINVAL, "the port of board %s: queues[%u] has no %s",
			        board->arch, q, facts->queues[q].runs ? "name" : "runs");
	if (!facts->has_copy_engine)
		return 0;
	if (facts->copy_engine < 0 || (uint32_t)facts->copy_engine >= facts->nqueues ||
	        !(facts->queues[facts->copy_engine].runs & RIG_RUNS(RIG_COPY)))
		return rig_error_set(-EINVAL,
		        "the port of board %s: copy_engine is %d: the index of a queue that runs RIG_COPY",
		        board->arch, facts->copy_engine);
	return 0;
}

/* A no-op that writes more than it is asked for would leave the ring, where a gap is smaller than a step. */
static int check_nop(struct rig_port *port, const struct rig_board *board, uint32_t unit_bytes)
{
	const struct rig_step nop = {.kind = RIG_STEP_NOP, .value = 1};
	const size_t bytes = (size_t)board->step_units * unit_bytes;
	uint8_t *units = malloc(bytes);
	size_t i;

	if (!units)
		return rig_error_set(-ENOMEM, "out of host memory");
	memset(units, UINT8_MAX, bytes);
	board->step(port, units, &nop);
	for (i = unit_bytes; i < bytes && units[i] == UINT8_MAX; i++)
		;
	free(units);
	return i < bytes ? rig_error_set(-EINVAL,
	                           "the port of board %s: step wrote unit %zu for a RIG_STEP_NOP of 1 unit",
	                           board->arch, i / unit_bytes)
	                 : 0;
}

static uint64_t bar_bytes(const struct rig_port *port, unsigned bar)
{
	return bar < RIG_PCI_BARS ? rig_pci_info(port->function)->bar[bar].bytes : 0;
}

int rig_dev_check_facts(
        struct rig_port *port, const struct rig_board *board, const struct rig_board_facts *facts)
{
	const struct range ranges[] = {
	        {"memory_bar", facts->memory_bar, 0, RIG_PCI_BARS - 1, false},
	        {"memory_bar_bytes", facts->memory_bar_bytes, facts->memory_host ? 1 : 0,
	                bar_bytes(port, facts->memory_bar), false},
	        {"nqueues", facts->nqueues, 1, RIG_BOARD_QUEUES, false},
	        {"npools", facts->npools, 0, RIG_BOARD_POOLS, false},
	        {"unit_bytes", facts->unit_bytes, 1, RIG_PAGE, true},
	        {"ring_units_max", facts->ring_units_max, 4, UINT32_MAX, true},
	        {"ring_units", facts->ring_units, 4, facts->ring_units_max, true},
	        {"step_units", board->step_units, 1, facts->ring_units / 4, false},
	        {"segment_bytes", facts->segment_bytes ? facts->segment_bytes : 1, 1, UINT32_MAX, true},
	        {"stack_bytes", facts->stack_bytes, 0, facts->stack_pitch, false},
	        {"stack_slots", facts->stack_slots, 0, facts->format ? UINT32_MAX : 0, false},
	        {"ncounters", facts->ncounters, 0, facts->clock_hz ? UINT32_MAX : 0, false},
	};
	int err = check_ranges(board, ranges, COUNT(ranges));

	if (!err)
		err = check_queues(board, facts);
	if (!err && facts->format)
		err = need(board, board, with_tables, COUNT(with_tables), "a board with page tables");
	if (!err && facts->clock_hz)
		err = need(board, board, with_clock, COUNT(with_clock), "a board with a clock");
	if (!err && board->step_units > 1)
		err = check_nop(port, board, facts->unit_bytes);
	return err;
}
