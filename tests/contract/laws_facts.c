/* SPDX-License-Identifier: MIT */
/* Facts: each within its bounds, and true as far as a law can see. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "conform_groups.h"
#include "dut.h"

#define EVERY_KIND (RIG_RUNS(RIG_WORDS) | RIG_RUNS(RIG_FILL) | RIG_RUNS(RIG_COPY) | RIG_RUNS(RIG_LAUNCH))

static void facts_of_another_version_are_refused(struct conform *c)
{
	char why[CONFORM_TEXT];
	const char *fault = NULL;
	struct dut d;
	int answer = dut_make(c, &d, 0, rig_words() + DUT_WORD, why);

	conform_check(c, !answer, "make answered %d: %.400s", answer, why);
	d.facts.version = RIG_EDGE_VERSION + 1;
	answer = d.m->facts(d.device, &d.facts, &fault);
	conform_check(c, answer < 0 && (answer != RIG_FAULT || fault), "facts of version %u answered %d",
	        RIG_EDGE_VERSION + 1, answer);
	d.m->stop(d.device, fault);
	d.m->release(d.device);
}

static void the_architecture_is_named(struct conform *c)
{
	struct dut d;

	dut_open(c, &d, 0);
	conform_check(c, d.facts.arch && d.facts.arch[0], "facts.arch is empty");
	dut_close(&d);
}

static void every_queue_has_a_name_of_its_own(struct conform *c)
{
	struct dut d;
	uint32_t i, j;

	dut_open(c, &d, 0);
	conform_check(
	        c, !d.facts.nqueues || d.facts.queues, "%u queues and no array of them", d.facts.nqueues);
	for (i = 0; i < d.facts.nqueues; i++) {
		conform_check(
		        c, d.facts.queues[i].name && d.facts.queues[i].name[0], "queue %u has no name", i);
		for (j = 0; j < i; j++)
			conform_check(c, strcmp(d.facts.queues[i].name, d.facts.queues[j].name) != 0,
			        "queues %u and %u are both %s", j, i, d.facts.queues[i].name);
	}
	dut_close(&d);
}

static void queues_run_kinds_of_work_that_exist(struct conform *c)
{
	struct dut d;
	uint32_t i;

	dut_open(c, &d, 0);
	for (i = 0; i < d.facts.nqueues; i++)
		conform_check(c, d.facts.queues[i].runs && !(d.facts.queues[i].runs & ~EVERY_KIND),
		        "queue %s runs the set 0x%x", d.facts.queues[i].name, d.facts.queues[i].runs);
	dut_close(&d);
}

static void the_copy_engine_is_a_queue_that_copies(struct conform *c)
{
	struct dut d;
	uint32_t queue;

	dut_open(c, &d, 0);
	if (d.facts.has_copy_engine) {
		queue = (uint32_t)d.facts.copy_engine;
		conform_check(c, d.facts.copy_engine >= 0 && queue < d.facts.nqueues,
		        "copy_engine is %d of %u queues", d.facts.copy_engine, d.facts.nqueues);
		conform_check(c, d.facts.queues[queue].runs & RIG_RUNS(RIG_COPY),
		        "copy_engine %u does not run copies", queue);
	}
	dut_close(&d);
}

static void bounds_in_the_facts_are_bounds(struct conform *c)
{
	struct dut d;
	int64_t a;

	dut_open(c, &d, 0);
	a = d.facts.alignment;
	conform_check(c, a > 0 && !(a & (a - 1)), "alignment is %lld", (long long)a);
	conform_check(c, !d.facts.has_hang_ms || d.facts.hang_ms >= 1, "hang_ms is %lld",
	        (long long)d.facts.hang_ms);
	conform_check(c, !d.facts.has_cache_bytes || d.facts.cache_bytes >= 1, "cache_bytes is %lld",
	        (long long)d.facts.cache_bytes);
	conform_check(c, d.facts.budget, "the budget is 0");
	dut_close(&d);
}

static void counters_and_measures_come_together(struct conform *c)
{
	struct dut d;
	uint32_t i;

	dut_open(c, &d, 0);
	conform_check(c, !d.facts.ncounters == !d.hot->measures, "%u counters, and measures is %s",
	        d.facts.ncounters, d.hot->measures ? "there" : "NULL");
	for (i = 0; i < d.facts.ncounters; i++)
		conform_check(c, d.facts.counters[i].name && d.facts.counters[i].values,
		        "counter %u has no name or no value", i);
	dut_close(&d);
}

static void the_state_starts_with_a_table_of_this_version(struct conform *c)
{
	struct dut d;

	dut_open(c, &d, 0);
	conform_check(c, d.hot->version == RIG_EDGE_VERSION, "the table is of version %u", d.hot->version);
	conform_check(c, d.hot->room && d.hot->submit, "room or submit is NULL");
	dut_close(&d);
}

static void cold_functions_that_may_be_called_are_there(struct conform *c)
{
	struct dut d;
	uint32_t queue;

	dut_open(c, &d, 0);
	conform_check(c, d.m->key, "the module has no key");
	conform_check(c,
	        d.m->alloc && d.m->free && d.m->locate && d.m->peer && d.m->dma && d.m->sleep && d.m->stop &&
	                d.m->release,
	        "alloc, free, locate, peer, dma, sleep, stop or release is NULL");
	conform_check(c, d.m->map_host || !d.facts.maps_host, "maps_host, and map_host is NULL");
	conform_check(c, d.m->signaled || !d.own_word, "a word of its own, and signaled is NULL");
	conform_check(c, d.m->load && d.m->entry && d.m->unload && d.m->grow,
	        "load, entry, unload or grow is NULL");
	(void)dut_has_queue(&d, RIG_LAUNCH, &queue);
	dut_close(&d);
}

static void the_word_is_makes_or_read_through_signaled(struct conform *c)
{
	struct rig_location at;
	struct dut d;

	dut_open(c, &d, 0);
	at = dut_locate(&d, d.facts.word);
	if (d.own_word)
		conform_check(c, dut_shown(&d) >= d.base,
		        "the driver's own word starts at %llu, below make's %llu",
		        (unsigned long long)dut_shown(&d), (unsigned long long)d.base);
	else
		conform_check(c, at.host == (const void *)d.word, "the word lies at %p, make's at %p",
		        at.host, (const void *)d.word);
	dut_wait(&d, dut_run(&d, NULL, 0));
	dut_close(&d);
}

static void the_capability_is_complete_from_the_open_on(struct conform *c)
{
	struct dut d;

	dut_open(c, &d, 0);
	conform_check(c, !d.facts.capability.key == !d.facts.capability.record,
	        "a capability with only one of key and record");
	conform_check(c, !d.facts.capability.key || d.facts.capability.key->name,
	        "the capability's key has no name");
	dut_close(&d);
}

static bool is_bus_address(const char *text)
{
	static const char form[] = "hhhh:hh:hh.d";
	size_t i;

	for (i = 0; form[i]; i++)
		if (form[i] == 'h'       ? !isxdigit((unsigned char)text[i])
		        : form[i] == 'd' ? !isdigit((unsigned char)text[i])
		                         : text[i] != form[i])
			return false;
	return !text[i];
}

static void a_bus_address_is_of_a_function_of_this_machine(struct conform *c)
{
	char path[CONFORM_TEXT];
	struct dut d;

	dut_open(c, &d, 0);
	if (d.facts.bus) {
		conform_check(c, is_bus_address(d.facts.bus), "bus is \"%s\"", d.facts.bus);
		(void)snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s", d.facts.bus);
		conform_check(c, !access(path, F_OK), "there is no %s", path);
	}
	dut_close(&d);
}

static const struct conform_law laws[] = {
        LAW(facts_of_another_version_are_refused, "E-030"),
        LAW(the_architecture_is_named, "E-057"),
        LAW(every_queue_has_a_name_of_its_own, "E-052"),
        LAW(queues_run_kinds_of_work_that_exist, "E-053"),
        LAW(the_copy_engine_is_a_queue_that_copies, "E-059"),
        LAW(bounds_in_the_facts_are_bounds, "E-062 E-065 E-067"),
        LAW(counters_and_measures_come_together, "E-068 E-069 E-165"),
        LAW(the_state_starts_with_a_table_of_this_version, "E-072 E-073"),
        LAW(cold_functions_that_may_be_called_are_there, "E-026"),
        LAW(the_word_is_makes_or_read_through_signaled, "E-016 E-017"),
        LAW(the_capability_is_complete_from_the_open_on, "E-070"),
        LAW(a_bus_address_is_of_a_function_of_this_machine, "E-071"),
};
CONFORM_GROUP(facts, laws);
