/* SPDX-License-Identifier: MIT */
/* Opening, closing and memory of a device under test. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "draw.h"
#include "dut.h"

#define MS 1000000u

int dut_make(struct conform *c, struct dut *d, unsigned index, rig_atomic_u64 *word, char *why)
{
	int answer;

	memset(d, 0, sizeof(*d));
	d->c = c;
	d->opener = c->source->opener(c->source, index);
	if (!d->opener && index)
		conform_skip(c, "needs %u devices: %s", index + 1, rig_error());
	conform_check(c, d->opener, "no opener: %s", rig_error());
	d->m = d->opener->module;
	conform_check(c, d->opener->version == RIG_EDGE_VERSION && d->m && d->m->version == RIG_EDGE_VERSION,
	        "the opener and its module are of version %u, not both of %u", d->opener->version,
	        RIG_EDGE_VERSION);
	d->word = word;
	memset(why, 'x', CONFORM_TEXT);
	answer = d->opener->make(d->opener->arg, word, &d->device, why, CONFORM_TEXT);
	if (!answer)
		d->base = d->last = rig_word_load(word);
	return answer;
}

void dut_read_facts(struct dut *d)
{
	const char *fault = NULL;
	struct rig_location at;
	int answer;

	d->facts.version = RIG_EDGE_VERSION;
	answer = d->m->facts(d->device, &d->facts, &fault);
	conform_check(d->c, !answer, "facts answered %d: %s", answer, fault ? fault : "no text");
	conform_check(d->c, d->facts.edge && rig_driver_of(d->facts.edge),
	        "the facts have no C state with a table");
	d->hot = rig_driver_of(d->facts.edge);
	at = dut_locate(d, d->facts.word);
	d->own_word = !at.has_host || at.host != (const void *)d->word;
	d->scratch = aligned_alloc(16, (size_t)DUT_PARTS * RIG_SCRATCH);
	conform_check(d->c, d->scratch, "no host memory");
	memset(d->scratch, 0, (size_t)DUT_PARTS * RIG_SCRATCH);
}

void dut_open(struct conform *c, struct dut *d, unsigned index)
{
	rig_atomic_u64 *words = rig_words();
	char why[CONFORM_TEXT];
	int answer;

	conform_check(c, words, "no array of words: %s", rig_error());
	answer = dut_make(c, d, index, words + DUT_WORD + index, why);
	conform_check(c, !answer, "make answered %d: %.400s", answer, why);
	dut_read_facts(d);
}

void dut_stop(struct dut *d, const char *reason)
{
	d->m->stop(d->device, reason);
	d->stopped = true;
}

void dut_release(struct dut *d)
{
	const char *fault = NULL;
	size_t i;

	if (!dut_await(d, d->last))
		conform_fail(d->c, "after stop the word stands at %llu, short of the last value %llu",
		        (unsigned long long)dut_shown(d), (unsigned long long)d->last);
	if (d->image)
		dut_unload(d);
	for (i = 0; i < d->nregions; i++)
		conform_check(d->c, !d->m->free(d->device, d->regions[i], &fault),
		        "free after stop faulted: %s", fault);
	if (d->own_word)
		conform_check(d->c, !d->m->free(d->device, d->facts.word, &fault),
		        "free of the word faulted: %s", fault);
	d->m->release(d->device);
	free(d->scratch);
	d->device = NULL;
}

void dut_close(struct dut *d)
{
	dut_wait(d, d->last);
	if (d->image)
		dut_unload(d);
	while (d->nregions)
		dut_free(d, d->regions[0]);
	dut_stop(d, NULL);
	dut_release(d);
}

void *dut_try_alloc(struct dut *d, enum rig_memory kind, uint64_t bytes)
{
	const char *fault = NULL;
	void *region = NULL;
	int answer = d->m->alloc(d->device, kind, bytes, &region, &fault);

	conform_check(d->c, answer == 0 || answer == -ENOMEM, "alloc of %llu bytes of %s answered %d: %s",
	        (unsigned long long)bytes, dut_kind_name(kind), answer, fault ? fault : rig_error());
	if (answer)
		return NULL;
	conform_check(d->c, region, "alloc of %s answered 0 and no region", dut_kind_name(kind));
	conform_check(d->c, d->nregions < DUT_REGIONS, "the law holds more than %d regions", DUT_REGIONS);
	d->regions[d->nregions++] = region;
	return region;
}

void *dut_alloc(struct dut *d, enum rig_memory kind, uint64_t bytes)
{
	void *region = dut_try_alloc(d, kind, bytes);

	if (!region)
		conform_skip(d->c, "the device has no %llu bytes of %s", (unsigned long long)bytes,
		        dut_kind_name(kind));
	return region;
}

void dut_free(struct dut *d, void *region)
{
	const char *fault = NULL;
	size_t i;

	for (i = 0; i < d->nregions && d->regions[i] != region; i++)
		;
	if (i < d->nregions)
		d->regions[i] = d->regions[--d->nregions];
	conform_check(
	        d->c, !d->m->free(d->device, region, &fault), "free faulted: %s", fault ? fault : "no text");
}

struct rig_location dut_locate(struct dut *d, void *region)
{
	struct rig_location at;

	memset(&at, 0, sizeof(at));
	d->m->locate(d->device, region, &at);
	return at;
}

enum rig_memory dut_host_kind(const struct dut *d)
{
	return d->facts.host_addresses ? RIG_DEVICE : RIG_PINNED;
}

void *dut_alloc_host(struct dut *d, uint64_t bytes, uint8_t **host)
{
	void *region = dut_alloc(d, dut_host_kind(d), bytes);
	struct rig_location at = dut_locate(d, region);

	conform_check(d->c, at.has_host && at.host, "%s memory without a host address",
	        dut_kind_name(dut_host_kind(d)));
	*host = at.host;
	return region;
}

struct dut_cells dut_alloc_cells(struct dut *d, uint64_t bytes)
{
	struct dut_cells cells = {.bytes = bytes};
	struct rig_location at;

	cells.region = dut_alloc_host(d, bytes, &cells.host);
	at = dut_locate(d, cells.region);
	if (!at.has_address) {
		cells.here = cells.region;
		cells.region = dut_alloc(d, RIG_DEVICE, bytes);
		at = dut_locate(d, cells.region);
	}
	conform_check(d->c, at.has_address, "launches address no memory at all");
	cells.address = at.address;
	memset(cells.host, 0, bytes);
	dut_push_cells(d, &cells);
	return cells;
}

static void copy_cells(struct dut *d, void *to, void *from, uint64_t bytes)
{
	const struct rig_part part = dut_copy(d, to, 0, from, 0, bytes);

	dut_wait(d, dut_run(d, &part, 1));
}

void dut_push_cells(struct dut *d, const struct dut_cells *cells)
{
	if (cells->here)
		copy_cells(d, cells->region, cells->here, cells->bytes);
}

void dut_pull_cells(struct dut *d, const struct dut_cells *cells)
{
	if (cells->here)
		copy_cells(d, cells->here, cells->region, cells->bytes);
}

bool dut_has_kind(const struct dut *d, enum rig_memory kind)
{
	return kind != RIG_PINNED || !d->facts.host_addresses;
}

const char *dut_kind_name(enum rig_memory kind)
{
	return kind == RIG_DEVICE ? "RIG_DEVICE" : kind == RIG_PINNED ? "RIG_PINNED" : "RIG_MAPPED";
}

static unsigned entries(const char *path)
{
	DIR *folder = opendir(path);
	unsigned n = 0;

	if (!folder)
		return 0;
	while (readdir(folder))
		n++;
	(void)closedir(folder);
	return n;
}

unsigned dut_descriptors(void)
{
	return entries("/proc/self/fd");
}

unsigned dut_threads(void)
{
	return entries("/proc/self/task");
}

void dut_nap(void)
{
	struct timespec nap = {.tv_nsec = MS};

	(void)nanosleep(&nap, NULL);
}

void dut_pattern(uint8_t *bytes, size_t n, uint64_t seed)
{
	uint64_t x = seed * 0x9E3779B97F4A7C15u + 1;

	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)(test_draw(&x, 256) | 1);
}

uint64_t dut_wait_ms(const struct conform *c)
{
	return c->source->wait_ms ? c->source->wait_ms : CONFORM_WAIT_MS;
}
