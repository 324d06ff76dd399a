/* SPDX-License-Identifier: MIT */
/* The driver's memory for others: peers of the driver, bus addresses, dma-bufs, and what stays theirs. */
#include "test.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "counters.h"
#include "passive.h"

#define APERTURE (16ull << 20)
#define BUS      0x4000000000ull

static struct passive a, b;
static const struct rig_driver_module *const m = &rig_driver_module;
static const char *fault;

/* What the kernel says of a dma-buf, which the fake has none of. */
static bool shared;
bool __wrap_rig_dmabuf_is_shared(int fd);
bool __wrap_rig_dmabuf_is_shared(int fd)
{
	assert_true(fcntl(fd, F_GETFD) >= 0);
	return shared;
}

static void open_two(const struct passive_options *first, const struct passive_options *second)
{
	struct passive_options options = second ? *second : (struct passive_options){0};

	options.word = 1;
	assert_int_equal(passive_make(&a, first, 0), 0);
	assert_int_equal(passive_make(&b, &options, 0), 0);
	shared = true;
}

static int setup(void **state)
{
	(void)state;
	open_two(NULL, NULL);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (a.fake)
		passive_close(&a);
	if (b.fake)
		passive_close(&b);
	return 0;
}

static void reopen(const struct passive_options *first, const struct passive_options *second)
{
	teardown(NULL);
	open_two(first, second);
}

static struct rig_region *alloc(struct passive *p, enum rig_memory kind, uint64_t bytes)
{
	void *region = NULL;

	assert_int_equal(m->alloc(p->device, kind, bytes, &region, &fault), 0);
	return region;
}

static void give(struct passive *p, struct rig_region *region)
{
	assert_int_equal(m->free(p->device, region, &fault), 0);
}

/* a's region over one of b's. */
static struct rig_region *borrow(struct rig_region *region)
{
	void *mapped = NULL;
	int answer = m->map_peer(a.device, b.device, region, &mapped, &fault);

	if (answer != RIG_MAPS)
		fail_msg("map_peer answered %d: %s", answer, rig_error());
	return mapped;
}

static void never(struct rig_region *region, const char *why)
{
	void *mapped;

	assert_int_equal(m->map_peer(a.device, b.device, region, &mapped, &fault), RIG_NEVER_MAPS);
	if (!strstr(rig_error(), why))
		fail_msg("\"%s\" does not say \"%s\"", rig_error(), why);
}

static void devices_whose_memory_is_in_a_bar_are_peers(void **state)
{
	const struct passive_options unmapped = {.unmapped = true};

	(void)state;
	assert_true(m->peer(a.device, b.device));
	assert_true(m->peer(b.device, a.device));
	assert_false(m->peer(a.device, a.device));
	/* The answer is the same when one is lost. */
	rig_fake_die(b.fake, "pulled out");
	assert_true(m->peer(a.device, b.device));
	reopen(NULL, &unmapped);
	assert_false(m->peer(a.device, b.device));
	assert_non_null(strstr(rig_error(), "cannot be mapped"));
	assert_true(m->peer(b.device, a.device));
}

static void stores_show_on_both_sides_of_a_borrowed_region(void **state)
{
	static const enum rig_memory kinds[] = {RIG_DEVICE, RIG_MAPPED};
	uint8_t out[64], in[64];

	(void)state;
	memset(out, 0x5A, sizeof(out));
	for (unsigned i = 0; i < 2; i++) {
		struct rig_region *lent = alloc(&b, kinds[i], 10000), *got = borrow(lent);
		struct rig_location at;
		uint64_t iova;

		m->locate(a.device, got, &at);
		assert_true(at.has_address);
		assert_false(at.has_host);
		iova = at.address - a.dev->facts.system_va;
		assert_int_equal(rig_fake_dma_write(a.fake, iova + 12288 - sizeof(out), out, sizeof(out)), 0);
		assert_memory_equal(b.memory + lent->pa + 12288 - sizeof(out), out, sizeof(out));
		memset(b.memory + lent->pa, 0xC3, sizeof(in));
		assert_int_equal(rig_fake_dma_read(a.fake, iova, in, sizeof(in)), 0);
		assert_int_equal(in[0] + in[63], 2 * 0xC3);
		/* Not a byte more of the lender's. */
		assert_int_equal(rig_fake_dma_write(a.fake, iova + 12288, out, 1), -EFAULT);
		give(&a, got);
		assert_int_equal(rig_fake_dma_write(a.fake, iova, out, 1), -EFAULT);
		give(&b, lent);
	}
}

static void a_borrowed_region_is_in_the_boards_tables_until_it_is_freed(void **state)
{
	struct rig_region *lent = alloc(&b, RIG_MAPPED, 2 << 20), *got = borrow(lent);
	uint64_t invalidations;
	uint32_t request;

	(void)state;
	assert_int_equal(got->address % 4096, 0);
	memcpy(&request, a.regs + RVX1_INV_REQUEST, sizeof(request));
	invalidations = request;
	give(&a, got);
	memcpy(&request, a.regs + RVX1_INV_REQUEST, sizeof(request));
	assert_true(request > invalidations);
	give(&b, lent);
}

static void what_no_peer_can_reach_is_never_mapped(void **state)
{
	const struct passive_options options = {.aperture = APERTURE};
	struct rig_region *lent, *got, *again;
	void *mapped;

	(void)state;
	reopen(NULL, &options);
	lent = alloc(&b, RIG_DEVICE, 4096);
	assert_true(lent->pa >= APERTURE);
	never(lent, "aperture");
	give(&b, lent);
	lent = alloc(&b, RIG_PINNED, 4096);
	never(lent, "host's");
	give(&b, lent);
	lent = alloc(&b, RIG_MAPPED, 4096);
	got = borrow(lent);
	assert_int_equal(m->map_peer(b.device, a.device, got, &mapped, &fault), RIG_NEVER_MAPS);
	assert_non_null(strstr(rig_error(), "borrow it of that one"));
	again = borrow(lent); /* twice is twice, each until it is freed */
	give(&a, got);
	assert_int_equal(rig_fake_dma_write(a.fake, again->address - a.dev->facts.system_va, "x", 1), 0);
	give(&a, again);
	give(&b, lent);
}

static void mappings_of_peers_run_out_and_come_back(void **state)
{
	enum { MOST = 100 }; /* more than the fake takes */
	struct rig_region *lent[MOST];
	void *got[MOST];
	unsigned n = 0, i;

	(void)state;
	for (i = 0; i < MOST; i++)
		lent[i] = alloc(&b, RIG_MAPPED, 4096);
	while (n < MOST && m->map_peer(a.device, b.device, lent[n], &got[n], &fault) == RIG_MAPS)
		n++;
	assert_true(n > 0 && n < MOST);
	assert_int_equal(m->map_peer(a.device, b.device, lent[n], &got[n], &fault), RIG_NO_ROOM);
	give(&a, got[n - 1]);
	assert_int_equal(m->map_peer(a.device, b.device, lent[n], &got[n - 1], &fault), RIG_MAPS);
	while (n)
		give(&a, got[--n]);
	for (i = 0; i < MOST; i++)
		give(&b, lent[i]);
}

static void nothing_is_left_of_a_mapping_that_fails(void **state)
{
	struct rig_region *lent = alloc(&b, RIG_MAPPED, 4096);
	unsigned maps = rig_fake_maps(a.fake);
	void *got;
	unsigned k;

	(void)state;
	for (k = 1; k < 20; k++) {
		int answer;

		rig_fake_fail_at(a.fake, k);
		answer = m->map_peer(a.device, b.device, lent, &got, &fault);
		if (answer == RIG_MAPS)
			break;
		assert_int_equal(answer, RIG_NEVER_MAPS);
		assert_int_equal(rig_fake_maps(a.fake), maps);
	}
	assert_true(k > 1 && k < 20);
	rig_fake_fail_at(a.fake, 0);
	give(&a, got);
	give(&b, lent);
}

static void a_lender_that_is_lost_takes_no_borrower_along(void **state)
{
	struct rig_region *lent = alloc(&b, RIG_MAPPED, 4096), *got = borrow(lent);
	unsigned resets = rig_fake_resets(b.fake);

	(void)state;
	m->stop(b.device, "hung");
	assert_true(rig_fake_resets(b.fake) > resets);
	assert_int_equal(rig_fake_dma_write(a.fake, got->address - a.dev->facts.system_va, "x", 1), 0);
	assert_false(rig_dev_check_fault(a.dev));
	give(&a, got);
	give(&b, lent);
	m->release(b.device);
	b.device = NULL;
}

static void of_a_lender_that_is_gone_nothing_is_mapped_any_more(void **state)
{
	struct rig_region *lent = alloc(&b, RIG_MAPPED, 4096);
	void *got;

	(void)state;
	rig_fake_die(b.fake, "pulled out");
	never(lent, "pulled out");
	rig_fake_die(a.fake, "pulled out too");
	assert_int_equal(m->map_peer(a.device, b.device, lent, &got, &fault), RIG_FAULT);
	assert_non_null(strstr(fault, "pulled out too"));
	give(&b, lent);
}

/* ---- dma ---- */

static const struct passive_options real = {.bdf = "0000:65:00.0", .bus = BUS, .aperture = APERTURE};

static struct rig_dma_answer ask(struct passive *p, struct rig_region *region, int kind)
{
	struct rig_dma_answer answer = {.version = RIG_EDGE_VERSION};

	assert_int_equal(m->dma(p->device, region, &answer, &fault), kind);
	assert_int_equal(answer.kind, kind);
	return answer;
}

static struct rig_vfio_stats stats_of(struct passive *p)
{
	struct rig_vfio_stats stats;

	p->dev->record.stats(&p->dev->record, &stats);
	return stats;
}

/* Takes all of the memory that a host sees, and gives it back: whether some of it was in [pa, pa + bytes). */
static bool is_handed_out(struct passive *p, uint64_t pa, uint64_t bytes)
{
	struct rig_region *all = NULL, *region;
	bool found = false;
	void *at;

	while (!m->alloc(p->device, RIG_MAPPED, 4096, &at, &fault)) {
		region = at;
		found |= region->pa < pa + bytes && pa < region->pa + region->bytes;
		region->next = all;
		all = region;
	}
	while ((region = all)) {
		all = region->next;
		give(p, region);
	}
	return found;
}

static void bus_addresses_hold_across_opens_of_a_function_and_for_no_other(void **state)
{
	const struct passive_options other = {
	        .bdf = "0000:66:00.0", .bus = BUS + (1ull << 32), .aperture = APERTURE};
	struct rig_region *region;
	uint64_t pa, before;

	(void)state;
	reopen(&real, &other);
	before = stats_of(&a).bus_bytes;
	region = alloc(&a, RIG_MAPPED, 10000);
	pa = region->pa;
	assert_int_equal(ask(&a, region, RIG_BUS).ranges[0].address, BUS + pa);
	assert_int_equal(ask(&a, region, RIG_BUS).ranges[0].address, BUS + pa);
	assert_int_equal(stats_of(&a).bus_bytes, before + 12288);
	give(&a, region);
	assert_false(is_handed_out(&a, pa, 12288));
	passive_close(&a);
	assert_int_equal(passive_make(&a, &real, 0), 0);
	assert_int_equal(stats_of(&a).bus_bytes, before + 12288);
	assert_false(is_handed_out(&a, pa, 12288));
	assert_true(is_handed_out(&a, pa + 12288, 4096));
	assert_int_equal(stats_of(&b).bus_bytes, 0);
	assert_true(is_handed_out(&b, pa, 12288));
}

static void a_function_that_comes_back_elsewhere_starts_anew(void **state)
{
	struct passive_options moved = real;
	struct rig_region *region;
	uint64_t pa;

	(void)state;
	reopen(&real, NULL);
	region = alloc(&a, RIG_MAPPED, 4096);
	pa = region->pa;
	ask(&a, region, RIG_BUS);
	give(&a, region);
	passive_close(&a);
	moved.bus = BUS + (1ull << 36);
	assert_int_equal(passive_make(&a, &moved, 0), 0);
	assert_int_equal(stats_of(&a).bus_bytes, 0);
	assert_true(is_handed_out(&a, pa, 4096));
}

static void a_dma_buf_answer_is_a_new_descriptor_of_the_callers(void **state)
{
	struct passive_options options = {.exports = true, .dmabuf = true};
	struct rig_dma_answer one, two;
	struct rig_region *region;
	struct test_counts before;

	(void)state;
	reopen(&options, NULL);
	test_counts_take(&before);
	region = alloc(&a, RIG_MAPPED, 10000);
	one = ask(&a, region, RIG_DMABUF);
	two = ask(&a, region, RIG_DMABUF);
	assert_int_not_equal(one.fd, two.fd);
	assert_int_equal(fcntl(one.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(one.offset, 0);
	close(two.fd);
	shared = false;
	give(&a, region);
	/* The driver closes none but its own. */
	assert_int_equal(fcntl(one.fd, F_GETFD), FD_CLOEXEC);
	close(one.fd);
	test_counts_same(&before);
}

static void memory_of_a_dma_buf_is_handed_out_again_when_its_last_reference_goes(void **state)
{
	struct passive_options options = {.exports = true, .dmabuf = true, .aperture = APERTURE};
	struct rig_region *region;
	struct test_counts before;
	uint64_t pa;

	(void)state;
	reopen(&options, NULL);
	(void)is_handed_out(&a, 0, 0); /* the pool's bookkeeping has grown */
	test_counts_take(&before);
	region = alloc(&a, RIG_MAPPED, 10000);
	pa = region->pa;
	close(ask(&a, region, RIG_DMABUF).fd);
	give(&a, region);
	assert_int_equal(stats_of(&a).dmabuf_bytes, 12288);
	assert_false(is_handed_out(&a, pa, 12288));
	shared = false;
	assert_true(is_handed_out(&a, pa, 12288));
	assert_int_equal(stats_of(&a).dmabuf_bytes, 0);
	test_counts_same(&before);
	/* Not waited for where there is none. */
	region = alloc(&a, RIG_MAPPED, 4096);
	close(ask(&a, region, RIG_DMABUF).fd);
	give(&a, region);
	assert_int_equal(stats_of(&a).dmabuf_bytes, 0);
}

static void who_asks_for_dma_bufs_where_there_are_none_is_told_why(void **state)
{
	struct passive_options options = {.dmabuf = true};
	struct rig_region *region;

	(void)state;
	reopen(&options, NULL);
	region = alloc(&a, RIG_MAPPED, 4096);
	assert_non_null(strstr(ask(&a, region, RIG_NO_DMA).reason, "dma-buf"));
	assert_int_equal(ask(&a, region, RIG_NO_DMA).fd, -1);
	give(&a, region);
	assert_int_equal(stats_of(&a).dmabuf_bytes, 0);
}

static void memory_that_is_another_devices_is_asked_of_that_one(void **state)
{
	struct rig_region *lent = alloc(&b, RIG_MAPPED, 4096), *got = borrow(lent);

	(void)state;
	assert_non_null(strstr(ask(&a, got, RIG_NO_DMA).reason, "ask that one"));
	give(&a, got);
	give(&b, lent);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(devices_whose_memory_is_in_a_bar_are_peers),
	        TEST(stores_show_on_both_sides_of_a_borrowed_region),
	        TEST(a_borrowed_region_is_in_the_boards_tables_until_it_is_freed),
	        TEST(what_no_peer_can_reach_is_never_mapped),
	        TEST(mappings_of_peers_run_out_and_come_back),
	        TEST(nothing_is_left_of_a_mapping_that_fails),
	        TEST(a_lender_that_is_lost_takes_no_borrower_along),
	        TEST(of_a_lender_that_is_gone_nothing_is_mapped_any_more),
	        TEST(bus_addresses_hold_across_opens_of_a_function_and_for_no_other),
	        TEST(a_function_that_comes_back_elsewhere_starts_anew),
	        TEST(a_dma_buf_answer_is_a_new_descriptor_of_the_callers),
	        TEST(memory_of_a_dma_buf_is_handed_out_again_when_its_last_reference_goes),
	        TEST(who_asks_for_dma_bufs_where_there_are_none_is_told_why),
	        TEST(memory_that_is_another_devices_is_asked_of_that_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
