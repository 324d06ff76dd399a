/* SPDX-License-Identifier: MIT */
/* Memory: regions, where they lie, mappings of the host's and of peers' memory, and other functions'
   access. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "conform_groups.h"
#include "dut.h"

#define PAGE 4096u

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif

static const enum rig_memory kinds[] = {RIG_DEVICE, RIG_PINNED, RIG_MAPPED};
static const uint64_t sizes[] = {1, 63, 256, 4095, 4097, 65537};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]), SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static void check_region(struct dut *d, enum rig_memory kind, void *region, uint64_t bytes)
{
	struct rig_location at = dut_locate(d, region);
	uint64_t mask = (uint64_t)d->facts.alignment - 1;

	conform_check(d->c, !at.has_address || !(at.address & mask),
	        "%llu bytes of %s lie at device address 0x%llx, alignment %lld", (unsigned long long)bytes,
	        dut_kind_name(kind), (unsigned long long)at.address, (long long)d->facts.alignment);
	conform_check(d->c, !at.has_host || !((uintptr_t)at.host & mask),
	        "%llu bytes of %s lie at %p, alignment %lld", (unsigned long long)bytes, dut_kind_name(kind),
	        at.host, (long long)d->facts.alignment);
	conform_check(d->c, at.has_host || (!d->facts.host_addresses && kind == RIG_DEVICE),
	        "%llu bytes of %s have no host address", (unsigned long long)bytes, dut_kind_name(kind));
	/* Without an address it is another machine's: copies reach it by its handle, launches do not. */
	conform_check(d->c, at.has_address || at.handle, "%s memory has neither an address nor a handle",
	        dut_kind_name(kind));
}

static void regions_lie_where_the_facts_say(struct conform *c)
{
	struct dut d;
	unsigned k, s;

	dut_open(c, &d, 0);
	for (k = 0; k < KINDS; k++)
		for (s = 0; s < SIZES && dut_has_kind(&d, kinds[k]); s++) {
			void *region = dut_try_alloc(&d, kinds[k], sizes[s]);

			if (region)
				check_region(&d, kinds[k], region, sizes[s]);
		}
	dut_close(&d);
}

static void a_region_stays_where_it_is(struct conform *c)
{
	struct rig_location first, again;
	struct dut d;
	void *region;

	dut_open(c, &d, 0);
	region = dut_alloc(&d, RIG_DEVICE, 256);
	first = dut_locate(&d, region);
	(void)dut_try_alloc(&d, RIG_DEVICE, 256);
	dut_wait(&d, dut_run(&d, NULL, 0));
	again = dut_locate(&d, region);
	conform_check(c,
	        first.address == again.address && first.host == again.host && first.handle == again.handle &&
	                first.has_address == again.has_address && first.has_host == again.has_host,
	        "locate answers something else the second time");
	dut_close(&d);
}

struct span {
	uint64_t start, bytes;
};

static void check_apart(struct conform *c, const struct span *spans, unsigned n, const char *what)
{
	unsigned i, j;

	for (i = 0; i < n; i++)
		for (j = 0; j < i; j++)
			conform_check(c,
			        spans[i].start >= spans[j].start + spans[j].bytes ||
			                spans[j].start >= spans[i].start + spans[i].bytes,
			        "two live regions share %s addresses at 0x%llx", what,
			        (unsigned long long)spans[i].start);
}

static void live_regions_share_no_byte(struct conform *c)
{
	struct span device[KINDS * SIZES], host[KINDS * SIZES];
	unsigned k, s, devices = 0, hosts = 0;
	struct dut d;

	dut_open(c, &d, 0);
	for (k = 0; k < KINDS; k++)
		for (s = 0; s < SIZES && dut_has_kind(&d, kinds[k]); s++) {
			void *region = dut_try_alloc(&d, kinds[k], sizes[s]);
			struct rig_location at;

			if (!region)
				continue;
			at = dut_locate(&d, region);
			if (at.has_address)
				device[devices++] = (struct span){at.address, sizes[s]};
			if (at.has_host)
				host[hosts++] = (struct span){(uintptr_t)at.host, sizes[s]};
		}
	check_apart(c, device, devices, "device");
	check_apart(c, host, hosts, "host");
	dut_close(&d);
}

static void host_addresses_hold_what_is_written(struct conform *c)
{
	uint8_t *host[KINDS * SIZES], want[65537];
	uint64_t bytes[KINDS * SIZES];
	unsigned k, s, i, n = 0;
	struct dut d;

	dut_open(c, &d, 0);
	for (k = 0; k < KINDS; k++)
		for (s = 0; s < SIZES && dut_has_kind(&d, kinds[k]); s++) {
			void *region = dut_try_alloc(&d, kinds[k], sizes[s]);

			if (!region || !dut_locate(&d, region).has_host)
				continue;
			host[n] = dut_locate(&d, region).host;
			bytes[n] = sizes[s];
			dut_pattern(want, sizes[s], n);
			memcpy(host[n++], want, sizes[s]);
		}
	for (i = 0; i < n; i++) {
		dut_pattern(want, bytes[i], i);
		conform_check(c, !memcmp(host[i], want, bytes[i]),
		        "%llu bytes written by the host are not read back", (unsigned long long)bytes[i]);
	}
	dut_close(&d);
}

static void more_than_there_is_is_refused_and_nothing_is_harmed(struct conform *c)
{
	static const uint64_t much[] = {
	        UINT64_MAX, UINT64_MAX - PAGE, UINT64_MAX / 2, INT64_MAX, UINT64_C(1) << 60};
	unsigned k, i;
	struct dut d;

	dut_open(c, &d, 0);
	for (k = 0; k < KINDS; k++)
		for (i = 0; i < sizeof(much) / sizeof(much[0]) && dut_has_kind(&d, kinds[k]); i++)
			conform_check(c, !dut_try_alloc(&d, kinds[k], much[i]),
			        "alloc made 0x%llx bytes of %s", (unsigned long long)much[i],
			        dut_kind_name(kinds[k]));
	(void)dut_alloc(&d, RIG_DEVICE, 256);
	dut_wait(&d, dut_run(&d, NULL, 0));
	dut_close(&d);
}

static unsigned fill_up(struct dut *d, enum rig_memory kind, uint64_t chunk, unsigned most)
{
	unsigned n = 0;

	while (n < most && dut_try_alloc(d, kind, chunk))
		n++;
	return n;
}

static void memory_runs_out_cleanly_and_comes_back_whole(struct conform *c)
{
	enum { MOST = 200, CHUNKS = 64 };
	unsigned first, second;
	uint64_t chunk;
	struct dut d;

	dut_open(c, &d, 0);
	if (d.facts.budget / CHUNKS > UINT64_C(1) << 30)
		conform_skip(c, "the device has %llu bytes, too many to use up",
		        (unsigned long long)d.facts.budget);
	chunk = d.facts.budget / CHUNKS ? d.facts.budget / CHUNKS : 1;
	first = fill_up(&d, RIG_DEVICE, chunk, MOST);
	conform_check(c, first < MOST, "alloc made %u times a %d-th of the budget", first, CHUNKS);
	while (d.nregions)
		dut_free(&d, d.regions[d.nregions / 2]);
	second = fill_up(&d, RIG_DEVICE, chunk, MOST);
	conform_check(
	        c, second == first, "%u chunks fit at first and %u after all were freed", first, second);
	dut_close(&d);
}

/* The process may map so much more, so that the host's memory is short without being used up. A sanitizer's
   allocator ends the process where memory is short: there only a driver with a limit of its own is shown. */
static void limit_mappings(struct conform *c, uint64_t bytes)
{
#ifndef SANITIZED
	struct rlimit limit;
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	conform_check(c, file && fscanf(file, "%lu", &pages) == 1, "no /proc/self/statm");
	(void)fclose(file);
	conform_check(c, !getrlimit(RLIMIT_AS, &limit), "no RLIMIT_AS");
	limit.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + bytes;
	conform_check(c, !setrlimit(RLIMIT_AS, &limit), "RLIMIT_AS cannot be set");
#else
	(void)c;
	(void)bytes;
#endif
}

static void pinned_memory_runs_out_cleanly_and_comes_back_whole(struct conform *c)
{
	enum { MOST = 200, ROUNDS = 3 };
	static const uint64_t chunk = UINT64_C(2) << 20;
	unsigned first, again, i;
	struct dut d;

	dut_open(c, &d, 0);
	if (!dut_has_kind(&d, RIG_PINNED))
		conform_skip(c, "the device has no pinned memory");
	limit_mappings(c, MOST / 2 * chunk);
	first = fill_up(&d, RIG_PINNED, chunk, MOST);
	if (!first || first == MOST)
		conform_skip(c, "the driver makes %u times 2 MiB where the host lets it map %u times", first,
		        MOST / 2);
	for (i = 0; i < ROUNDS; i++) {
		while (d.nregions)
			dut_free(&d, d.regions[d.nregions / 2]);
		again = fill_up(&d, RIG_PINNED, chunk, MOST);
		/* A driver's own records may take some of what the host lets it map. */
		conform_check(c, again + first / 8 >= first,
		        "%u chunks fit at first and %u after all were freed", first, again);
	}
	dut_close(&d);
}

static void memory_given_back_serves_again_and_again(struct conform *c)
{
	enum { TIMES = 3000, SIZE = 1000 };
	struct dut d;
	unsigned i;

	dut_open(c, &d, 0);
	for (i = 0; i < TIMES; i++) {
		void *region = dut_try_alloc(&d, i & 1 ? RIG_DEVICE : dut_host_kind(&d), SIZE);

		conform_check(c, region, "no memory at the %u-th time", i);
		dut_free(&d, region);
	}
	dut_close(&d);
}

/* Pages of the host's, mapped for the device; NULL: no room now. */
static void *map_pages(struct dut *d, void *pages, uint64_t bytes, int *answer)
{
	const char *fault = NULL;
	void *region = NULL;

	if (!d->facts.maps_host)
		conform_skip(d->c, "the device maps no host memory");
	*answer = d->m->map_host(d->device, pages, bytes, &region, &fault);
	conform_check(d->c, *answer == RIG_MAPS || *answer == RIG_NEVER_MAPS || *answer == RIG_NO_ROOM,
	        "map_host answered %d: %s", *answer, fault ? fault : "no text");
	conform_check(d->c, *answer != RIG_MAPS || region, "map_host answered RIG_MAPS and no region");
	return *answer == RIG_MAPS ? region : NULL;
}

static void mapped_host_pages_are_the_devices_to_read_and_write(struct conform *c)
{
	enum { PAGES = 3, AT = 4000, BYTES = 200 };
	uint8_t *pages = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rig_part there, back;
	void *region, *device;
	uint8_t want[BYTES];
	struct dut d;
	int answer;

	dut_open(c, &d, 0);
	conform_check(c, pages != MAP_FAILED, "no host memory");
	region = map_pages(&d, pages, PAGES * PAGE, &answer);
	if (!region)
		conform_skip(c, "map_host answered %d: %s", answer, rig_error());
	device = dut_alloc(&d, RIG_DEVICE, BYTES);
	dut_pattern(want, BYTES, 9);
	memcpy(pages + AT, want, BYTES);
	there = dut_copy(&d, device, 0, region, AT, BYTES);
	back = dut_copy(&d, region, 2 * PAGE + 8, device, 0, BYTES);
	dut_wait(&d, dut_run(&d, &there, 1));
	dut_wait(&d, dut_run(&d, &back, 1));
	conform_check(
	        c, !memcmp(pages + 2 * PAGE + 8, want, BYTES), "the bytes did not come through the mapping");
	dut_free(&d, region);
	conform_check(c, !memcmp(pages + AT, want, BYTES), "freeing the mapping changed the pages");
	dut_close(&d);
	(void)munmap(pages, PAGES * PAGE);
}

static void mapping_and_unmapping_goes_on_for_ever(struct conform *c)
{
	enum { TIMES = 500 };
	uint8_t *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct dut d;
	unsigned i;
	int answer;

	dut_open(c, &d, 0);
	for (i = 0; i < TIMES; i++) {
		void *region = map_pages(&d, pages, 2 * PAGE, &answer);

		if (!region && !i)
			conform_skip(c, "map_host answered %d: %s", answer, rig_error());
		conform_check(
		        c, region, "map_host answered %d at the %u-th time: %s", answer, i, rig_error());
		dut_free(&d, region);
	}
	dut_close(&d);
}

static void pages_that_are_never_mapped_are_refused_each_time_with_a_reason(struct conform *c)
{
	uint8_t *hole = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct dut d;
	unsigned i;
	int answer;

	dut_open(c, &d, 0);
	(void)munmap(hole, PAGE);
	for (i = 0; i < 2; i++) {
		(void)rig_error_set(0, "%s", "");
		(void)map_pages(&d, hole, PAGE, &answer);
		conform_check(c, answer == RIG_NEVER_MAPS, "map_host of pages that are not there answered %d",
		        answer);
		conform_check(c, rig_error()[0], "map_host refuses without a reason in rig_error()");
	}
	dut_wait(&d, dut_run(&d, NULL, 0));
	dut_close(&d);
}

static void check_ranges(struct dut *d, const struct rig_dma_answer *answer, uint64_t bytes)
{
	uint64_t sum = 0;
	size_t i;

	conform_check(d->c, answer->ranges && answer->nranges, "RIG_BUS without ranges");
	for (i = 0; i < answer->nranges; i++) {
		const struct rig_bus_range *r = &answer->ranges[i];

		conform_check(d->c, !(r->address % PAGE) && !(r->bytes % PAGE) && r->bytes,
		        "bus range 0x%llx of 0x%llx bytes is off its pages", (unsigned long long)r->address,
		        (unsigned long long)r->bytes);
		sum += r->bytes;
	}
	conform_check(d->c, sum >= bytes, "the bus ranges are %llu bytes of %llu", (unsigned long long)sum,
	        (unsigned long long)bytes);
}

static void check_dmabuf(struct dut *d, const struct rig_dma_answer *first, void *region)
{
	struct rig_dma_answer second = {.version = RIG_EDGE_VERSION, .fd = -1};
	const char *fault = NULL;

	conform_check(d->c, first->fd >= 0 && fcntl(first->fd, F_GETFD) & FD_CLOEXEC,
	        "descriptor %d is not close-on-exec", first->fd);
	conform_check(d->c,
	        d->m->dma(d->device, region, &second, &fault) == RIG_DMABUF && second.fd != first->fd,
	        "a second answer is no new descriptor");
	(void)close(second.fd);
	dut_free(d, region);
	conform_check(d->c, fcntl(first->fd, F_GETFD) >= 0, "free closed the caller's descriptor");
	(void)close(first->fd);
}

static void check_dma(struct dut *d, enum rig_memory kind, uint64_t bytes)
{
	struct rig_dma_answer answer = {.version = RIG_EDGE_VERSION, .fd = -1};
	void *region = dut_try_alloc(d, kind, bytes);
	const char *fault = NULL;
	int k;

	if (!region)
		return;
	k = d->m->dma(d->device, region, &answer, &fault);
	conform_check(d->c, k == RIG_BUS || k == RIG_DMABUF || k == RIG_NO_DMA, "dma of %s answered %d: %s",
	        dut_kind_name(kind), k, fault ? fault : "no text");
	conform_check(d->c, (int)answer.kind == k, "dma answered %d and wrote kind %d", k, (int)answer.kind);
	if (k == RIG_BUS)
		check_ranges(d, &answer, bytes);
	if (k == RIG_DMABUF)
		check_dmabuf(d, &answer, region);
	if (k == RIG_NO_DMA)
		conform_check(d->c, answer.reason && answer.reason[0], "RIG_NO_DMA without a reason");
}

static void how_another_function_reaches_a_region_is_told_within_its_form(struct conform *c)
{
	struct dut d;
	unsigned k, s;

	dut_open(c, &d, 0);
	for (k = 0; k < KINDS; k++)
		for (s = 0; s < SIZES && dut_has_kind(&d, kinds[k]); s++)
			check_dma(&d, kinds[k], sizes[s]);
	dut_wait(&d, dut_run(&d, NULL, 0));
	dut_close(&d);
}

static void bus_addresses_once_given_are_no_other_memorys(struct conform *c)
{
	struct rig_dma_answer answer = {.version = RIG_EDGE_VERSION, .fd = -1};
	struct rig_bus_range given;
	const char *fault = NULL;
	unsigned i;
	void *region;
	struct dut d;

	dut_open(c, &d, 0);
	region = dut_try_alloc(&d, RIG_MAPPED, PAGE);
	if (!region)
		region = dut_alloc(&d, dut_host_kind(&d), PAGE);
	if (d.m->dma(d.device, region, &answer, &fault) != RIG_BUS)
		conform_skip(c, "the device gives out no bus addresses");
	given = answer.ranges[0];
	dut_free(&d, region);
	for (i = 0; i < 64 && (region = dut_try_alloc(&d, RIG_MAPPED, PAGE)); i++) {
		size_t r;

		if (d.m->dma(d.device, region, &answer, &fault) != RIG_BUS)
			continue;
		for (r = 0; r < answer.nranges; r++)
			conform_check(c,
			        answer.ranges[r].address >= given.address + given.bytes ||
			                answer.ranges[r].address + answer.ranges[r].bytes <= given.address,
			        "bus address 0x%llx was given out before, and is another region's now",
			        (unsigned long long)answer.ranges[r].address);
	}
	dut_close(&d);
}

static void a_peers_memory_is_mapped_and_seen_from_both(struct conform *c)
{
	enum { BYTES = 256 };
	struct rig_part out, in;
	uint8_t *host_a, *host_b, want[BYTES];
	void *region, *mapped = NULL, *a_host, *b_host;
	const char *fault = NULL;
	struct dut a, b;
	int answer;

	dut_open(c, &a, 0);
	dut_open(c, &b, 1);
	if (a.m != b.m || !a.m->peer(b.device, a.device))
		conform_skip(c, "the devices are no peers of each other");
	region = dut_alloc(&a, RIG_DEVICE, BYTES);
	answer = b.m->map_peer(b.device, a.device, region, &mapped, &fault);
	conform_check(c, answer == RIG_MAPS || answer == RIG_NEVER_MAPS || answer == RIG_NO_ROOM,
	        "map_peer answered %d: %s", answer, fault ? fault : "no text");
	if (answer != RIG_MAPS)
		conform_skip(c, "map_peer answered %d: %s", answer, rig_error());
	a_host = dut_alloc_host(&a, BYTES, &host_a);
	b_host = dut_alloc_host(&b, BYTES, &host_b);
	dut_pattern(want, BYTES, 4);
	memcpy(host_a, want, BYTES);
	in = dut_copy(&a, region, 0, a_host, 0, BYTES);
	dut_wait(&a, dut_run(&a, &in, 1));
	out = dut_copy(&b, b_host, 0, mapped, 0, BYTES);
	dut_wait(&b, dut_run(&b, &out, 1));
	conform_check(c, !memcmp(host_b, want, BYTES), "the peer does not see the memory's bytes");
	dut_free(&b, mapped);
	dut_close(&b);
	dut_close(&a);
}

static const struct conform_law laws[] = {
        LAW(regions_lie_where_the_facts_say, "E-064 E-065 E-066 E-181 E-183 E-185"),
        LAW(a_region_stays_where_it_is, "E-187"),
        LAW(live_regions_share_no_byte, "E-180 E-185 E-186"),
        LAW(host_addresses_hold_what_is_written, "E-064 E-183 E-186"),
        LAW(more_than_there_is_is_refused_and_nothing_is_harmed, "E-180"),
        LAW(pinned_memory_runs_out_cleanly_and_comes_back_whole, "E-181"),
        LAW(memory_runs_out_cleanly_and_comes_back_whole, "E-180"),
        LAW(memory_given_back_serves_again_and_again, "E-180"),
        LAW(mapped_host_pages_are_the_devices_to_read_and_write, "E-063 E-195"),
        LAW(mapping_and_unmapping_goes_on_for_ever, "E-198"),
        LAW(pages_that_are_never_mapped_are_refused_each_time_with_a_reason, "E-196"),
        LAW(how_another_function_reaches_a_region_is_told_within_its_form, "E-201 E-202 E-205 E-206 E-207"),
        LAW(bus_addresses_once_given_are_no_other_memorys, "E-204"),
        LAW(a_peers_memory_is_mapped_and_seen_from_both, "E-192"),
};
CONFORM_GROUP(memory, laws);
