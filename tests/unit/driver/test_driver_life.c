/* SPDX-License-Identifier: MIT */
/* The driver's cold side over a passive board: facts, memory, bus addresses, and the ways a device ends. */
#include "test.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "boards.h"
#include "passive.h"

#define COMMAND        0x04u
#define COMMAND_MASTER 0x04u

static struct passive t;
static const struct rig_driver_module *const m = &rig_driver_module;
static const char *fault;

static void open_with(const struct passive_options *options)
{
	assert_int_equal(passive_make(&t, options, 0), 0);
}

static int setup(void **state)
{
	(void)state;
	open_with(NULL);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	passive_close(&t);
	return 0;
}

static struct rig_region *alloc(enum rig_memory kind, uint64_t bytes)
{
	void *region = NULL;

	assert_int_equal(m->alloc(t.device, kind, bytes, &region, &fault), 0);
	return region;
}

static void give(struct rig_region *region)
{
	assert_int_equal(m->free(t.device, region, &fault), 0);
}

static bool is_master(void)
{
	return ((uint8_t *)rig_fake_memory(t.fake, RIG_VFIO_CONFIG))[COMMAND] & COMMAND_MASTER;
}

static void submit_empty(uint64_t value)
{
	uint8_t scratch[RIG_SCRATCH] __attribute__((aligned(16)));
	const char *failure;

	assert_int_equal(t.dev->hot->room(t.device, NULL, 0, 0, NULL, scratch), RIG_FITS);
	assert_int_equal(t.dev->hot->submit(t.device, value, NULL, 0, NULL, 0, NULL, scratch, NULL, &failure),
	        RIG_COMMITTED);
}

static void facts_are_what_the_contract_asks(void **state)
{
	struct rig_location location;
	struct rig_facts facts = {.version = RIG_EDGE_VERSION};

	(void)state;
	assert_int_equal(m->facts(t.device, &facts, &fault), 0);
	assert_string_equal(facts.arch, "rvx1");
	assert_int_equal(facts.nqueues, 2);
	assert_string_equal(facts.queues[0].name, "COMPUTE:0");
	assert_string_equal(facts.queues[1].name, "COPY:0");
	assert_true(facts.has_copy_engine);
	assert_int_equal(facts.copy_engine, 1);
	assert_true(facts.queues[1].runs & RIG_RUNS(RIG_COPY));
	assert_int_equal(facts.completion, RIG_HOST);
	assert_true(facts.waits.stores && facts.waits.hosts);
	assert_false(facts.may_block);
	assert_true(facts.maps_host);
	assert_false(facts.host_addresses);
	assert_int_equal(facts.alignment, 4096);
	assert_int_equal(facts.hang_ms, 10000);
	assert_false(facts.has_cache_bytes);
	assert_int_equal(facts.ncounters, 0);
	assert_null(rig_driver_of(facts.edge)->measures);
	assert_null(facts.bus);
	assert_ptr_equal(facts.capability.key, &rig_vfio_key);
	assert_non_null(rig_driver_of(facts.edge)->submit);
	facts.version++;
	assert_int_equal(m->facts(t.device, &facts, &fault), -EINVAL);
	m->locate(t.device, facts.word, &location);
	assert_true(location.has_host);
	assert_ptr_equal(location.host, t.word);
}

static char warned[RIG_LOG_BYTES];

static void note_warning(void *arg, int level, const char *text)
{
	(void)arg;
	if (level == RIG_LOG_WARN)
		snprintf(warned, sizeof(warned), "%s", text);
}

static void vectors_that_the_machine_has_not_are_polled_for_and_it_is_said(void **state)
{
	(void)state;
	for (unsigned taken = 0; taken <= RVX1_VECTORS; taken++) {
		struct passive_options options = {.irqs_taken = taken, .log = {.fn = note_warning}};
		char says[64];

		teardown(NULL);
		*warned = 0;
		open_with(&options);
		snprintf(
		        says, sizeof(says), "%u of %u interrupt vectors", RVX1_VECTORS - taken, RVX1_VECTORS);
		assert_int_equal(rig_fake_connected(t.fake), RVX1_VECTORS - taken);
		assert_int_equal(strstr(warned, says) != NULL, taken > 0);
		assert_int_equal(t.dev->facts.vectors, taken ? 0 : RVX1_VECTORS);
	}
}

static void store_completion_is_a_fact(void **state)
{
	struct passive_options options = {.store = true};
	struct rig_facts facts = {.version = RIG_EDGE_VERSION};

	(void)state;
	teardown(NULL);
	open_with(&options);
	assert_int_equal(m->facts(t.device, &facts, &fault), 0);
	assert_int_equal(facts.completion, RIG_STORE);
}

static void every_region_is_aligned_in_both_addresses(void **state)
{
	static const uint64_t sizes[] = {1, 4095, 4096, 4097, 65536, 3000001};
	struct rig_location location;
	unsigned kind, i;

	(void)state;
	for (kind = RIG_DEVICE; kind <= RIG_MAPPED; kind++)
		for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			struct rig_region *region = alloc((enum rig_memory)kind, sizes[i]);

			m->locate(t.device, region, &location);
			assert_true(location.has_address);
			assert_int_equal(location.address % 4096, 0);
			assert_int_equal((uintptr_t)location.host % 4096, 0);
			assert_int_equal(location.has_host, kind != RIG_DEVICE);
			assert_int_equal(location.handle, (uintptr_t)region);
			if (location.has_host)
				memset(location.host, 0xA5, sizes[i]);
			give(region);
		}
}

static void wrong_requests_are_refused_with_their_bounds(void **state)
{
	void *region;

	(void)state;
	assert_int_equal(m->alloc(t.device, RIG_DEVICE, 0, &region, &fault), -EINVAL);
	assert_int_equal(m->alloc(t.device, (enum rig_memory)0, 1, &region, &fault), -EINVAL);
	assert_int_equal(m->alloc(t.device, (enum rig_memory)4, 1, &region, &fault), -EINVAL);
	assert_int_equal(m->alloc(t.device, RIG_DEVICE, UINT64_MAX, &region, &fault), -ENOMEM);
	assert_int_equal(m->map_host(t.device, (void *)1, 4096, &region, &fault), -EINVAL);
	assert_int_equal(m->map_host(t.device, (void *)4096, 0, &region, &fault), -EINVAL);
}

static void board_memory_runs_out_and_comes_back(void **state)
{
	struct rig_region *regions[64];
	unsigned n = 0, round, first = 0;
	void *region;

	(void)state;
	for (round = 0; round < 3; round++) {
		for (n = 0; !m->alloc(t.device, RIG_DEVICE, 1 << 20, &region, &fault); n++)
			regions[n] = region;
		if (!round)
			first = n;
		assert_int_equal(n, first);
		while (n)
			give(regions[--n]);
	}
	assert_true(first > 50);
}

/* The last thing that lacks is a page for tables, or the mapping of an arena. */
static void pinned_memory_runs_out_and_comes_back_all_of_it(void **state)
{
	enum { PAGES = 5, MAPS = 8, MOST = 256 };
	const struct passive_options options = {.dma_maps = MAPS};
	struct rig_region *regions[MOST];
	unsigned n, round, first = 0, i;
	uint64_t pa[PAGES], other;
	void *region;

	(void)state;
	teardown(NULL);
	open_with(&options);
	for (i = 0; i < PAGES; i++)
		assert_int_equal(rig_dev_take(t.dev, RIG_POOL_BOOT, RIG_PAGE, RIG_PAGE, &pa[i]), 0);
	while (!rig_dev_take(t.dev, RIG_POOL_BOOT, RIG_PAGE, RIG_PAGE, &other))
		;
	for (i = 0; i < PAGES; i++)
		rig_dev_give(t.dev, pa[i]);
	for (round = 0; round < 3; round++) {
		for (n = 0; n < MOST && !m->alloc(t.device, RIG_PINNED, 1 << 20, &region, &fault); n++)
			regions[n] = region;
		if (!round)
			first = n;
		assert_int_equal(n, first);
		while (n)
			give(regions[--n]);
	}
	/* One empty arena stays, for what is asked next. */
	assert_true(rig_fake_maps(t.fake) <= 2);
	assert_true(first > 10 && first < MOST);
}

static void what_the_host_cannot_see_is_handed_out_first(void **state)
{
	struct passive_options options = {.aperture = 16ull << 20};
	struct rig_region *device, *mapped;
	struct rig_dma_answer answer = {.version = RIG_EDGE_VERSION};

	(void)state;
	teardown(NULL);
	open_with(&options);
	device = alloc(RIG_DEVICE, 4096);
	mapped = alloc(RIG_MAPPED, 4096);
	assert_true(device->pa >= options.aperture);
	assert_true(mapped->pa < options.aperture);
	assert_int_equal(m->dma(t.device, device, &answer, &fault), RIG_NO_DMA);
	assert_non_null(strstr(answer.reason, "aperture"));
	give(device);
	give(mapped);
}

static void bus_addresses_cover_the_region_and_are_never_given_to_other_memory(void **state)
{
	struct rig_dma_answer answer = {.version = RIG_EDGE_VERSION};
	struct rig_region *region = alloc(RIG_MAPPED, 10000), *other[64];
	uint64_t pa = region->pa;
	unsigned n = 0;
	void *at;

	(void)state;
	assert_int_equal(m->dma(t.device, region, &answer, &fault), RIG_BUS);
	assert_int_equal(answer.nranges, 1);
	assert_int_equal(answer.ranges[0].bytes, 12288);
	assert_int_equal(answer.ranges[0].address % 4096, 0);
	give(region);
	assert_int_equal(answer.ranges[0].bytes, 12288); /* the array lives until release */
	while (n < 64 && !m->alloc(t.device, RIG_MAPPED, 1 << 20, &at, &fault)) {
		other[n] = at;
		assert_true(other[n]->pa + other[n]->bytes <= pa || other[n]->pa >= pa + 12288);
		n++;
	}
	while (n)
		give(other[--n]);
}

static void pinned_memory_has_no_bus_address_and_says_why(void **state)
{
	struct rig_dma_answer answer = {.version = RIG_EDGE_VERSION};
	struct rig_region *region = alloc(RIG_PINNED, 4096);

	(void)state;
	assert_int_equal(m->dma(t.device, region, &answer, &fault), RIG_NO_DMA);
	assert_true(strlen(answer.reason) > 10);
	give(region);
}

static void pinned_memory_costs_no_message_once_its_arena_is_there(void **state)
{
	uint64_t messages;
	unsigned i;

	(void)state;
	give(alloc(RIG_PINNED, 65536));
	messages = rig_pci_messages(t.dev->pci);
	for (i = 0; i < 1000; i++)
		give(alloc(RIG_PINNED, 65536));
	assert_int_equal(rig_pci_messages(t.dev->pci) - messages, 0);
}

static void host_memory_maps_and_is_reached_by_its_bus_address(void **state)
{
	uint8_t *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
	        byte = 7;
	struct rig_region *region;
	uint64_t iova;
	void *at;

	(void)state;
	assert_int_equal(m->map_host(t.device, page, 5000, &at, &fault), RIG_MAPS);
	region = at;
	assert_int_equal(region->address, t.dev->facts.system_va + region->dma.iova);
	assert_int_equal(rig_fake_dma_write(t.fake, region->dma.iova + 8191, &byte, 1), 0);
	assert_int_equal(page[8191], 7);
	iova = region->dma.iova;
	give(region);
	assert_true(rig_fake_dma_write(t.fake, iova, &byte, 1) < 0);
	munmap(page, 8192);
}

static void read_only_pages_are_never_mapped(void **state)
{
	void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *region;

	(void)state;
	assert_int_equal(m->map_host(t.device, page, 4096, &region, &fault), RIG_NEVER_MAPS);
	assert_int_equal(m->map_host(t.device, page, 4096, &region, &fault), RIG_NEVER_MAPS);
	assert_true(strlen(rig_error()) > 10);
	munmap(page, 4096);
}

static void mappings_run_out_with_no_room_and_come_back(void **state)
{
	enum { PAGES = 100 }; /* more than the fake takes mappings */
	uint8_t *pages = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *mapped[PAGES];
	unsigned n = 0;

	(void)state;
	while (n < PAGES && m->map_host(t.device, pages + n * 4096, 4096, &mapped[n], &fault) == RIG_MAPS)
		n++;
	assert_true(n > 0 && n < PAGES);
	assert_int_equal(m->map_host(t.device, pages + n * 4096, 4096, &mapped[n], &fault), RIG_NO_ROOM);
	assert_non_null(strstr(rig_error(), "mappings"));
	give(mapped[n - 1]);
	assert_int_equal(m->map_host(t.device, pages + n * 4096, 4096, &mapped[n - 1], &fault), RIG_MAPS);
	while (n)
		give(mapped[--n]);
	munmap(pages, PAGES * 4096);
}

/* What the device sent before its end and comes after it reaches nothing: the words are mapped for reading
 * until release. */
static void assert_denied(void)
{
	uint64_t word;

	assert_int_equal(rig_fake_dma_ask(t.fake, t.dev->words.iova, &word, sizeof(word)), -EACCES);
}

static void a_quiet_device_is_stopped_without_a_reset(void **state)
{
	unsigned resets = rig_fake_resets(t.fake);
	uint64_t word;

	(void)state;
	assert_true(is_master());
	assert_int_equal(rig_fake_dma_ask(t.fake, t.dev->words.iova, &word, sizeof(word)), 0);
	submit_empty(1);
	passive_complete(&t, 1);
	m->stop(t.device, NULL);
	assert_int_equal(rig_fake_resets(t.fake), resets);
	assert_false(is_master());
	assert_int_equal(rig_word_load(t.word), 1);
	assert_denied();
	m->release(t.device);
	t.device = NULL;
}

static void unfinished_work_is_ended_by_a_reset_and_the_word_raised(void **state)
{
	unsigned resets = rig_fake_resets(t.fake);
	struct rig_region *region = alloc(RIG_PINNED, 4096);

	(void)state;
	submit_empty(1);
	submit_empty(2);
	m->stop(t.device, "no progress for 10000 ms");
	assert_int_equal(rig_fake_resets(t.fake), resets + 1);
	assert_false(is_master());
	/* Memory comes back once the word is there, so that is last. */
	assert_int_equal(t.word_at_write, 0);
	assert_int_equal(rig_word_load(t.word), 2);
	assert_denied();
	/* After stop only memory and images come back. */
	give(region);
	m->release(t.device);
	t.device = NULL;
}

static void a_function_that_left_runs_nothing_so_its_word_is_raised(void **state)
{
	(void)state;
	submit_empty(1);
	rig_fake_vanish(t.fake);
	m->stop(t.device, NULL);
	assert_int_equal(rig_word_load(t.word), 1);
	assert_denied();
	m->release(t.device);
	t.device = NULL;
}

static void a_function_that_left_faults_every_call_with_the_reason(void **state)
{
	const char *failure = NULL;
	uint8_t scratch[RIG_SCRATCH] __attribute__((aligned(16)));
	void *region;

	(void)state;
	rig_fake_die(t.fake, "the far side hung up");
	while (m->sleep(t.device, 0, 100, &fault) != RIG_FAULT)
		;
	assert_non_null(strstr(fault, "hung up"));
	assert_int_equal(m->alloc(t.device, RIG_DEVICE, 1, &region, &fault), RIG_FAULT);
	assert_int_equal(t.dev->hot->room(t.device, NULL, 0, 0, NULL, scratch), RIG_FITS);
	assert_int_equal(
	        t.dev->hot->submit(t.device, 1, NULL, 0, NULL, 0, NULL, scratch, NULL, &failure), RIG_FAILED);
	assert_non_null(strstr(failure, "hung up"));
}

static void a_fault_of_the_board_wakes_a_sleeper_with_its_text(void **state)
{
	uint32_t code = RVX1_FAULT_PACKET, opcode = RVX1_OP_COPY;

	(void)state;
	submit_empty(1);
	memcpy(t.regs + RVX1_FAULT_OPCODE, &opcode, sizeof(opcode));
	memcpy(t.regs + RVX1_FAULT_CODE, &code, sizeof(code));
	__atomic_store_n(
	        (uint32_t *)(void *)(t.regs + RVX1_STATUS + RVX1_STATUS_FAULT), code, __ATOMIC_RELEASE);
	while (m->sleep(t.device, 0, 1000, &fault) != RIG_FAULT)
		;
	assert_non_null(strstr(fault, "refused packet"));
	assert_non_null(strstr(fault, "opcode 5"));
}

static void put_register(uint64_t offset, uint32_t value)
{
	__atomic_store_n((uint32_t *)(void *)(t.regs + offset), value, __ATOMIC_RELEASE);
}

/* The driver has no hang bound: without a look of its own this would not end. */
static void assert_lost(const char *reason)
{
	while (m->sleep(t.device, 0, 1000, &fault) != RIG_FAULT)
		;
	if (!strstr(fault, reason))
		fail_msg("the reason is: %s", fault);
}

static void a_reset_from_outside_wakes_a_sleeper_with_that_reason(void **state)
{
	(void)state;
	submit_empty(1);
	put_register(RVX1_CP_STATE, RVX1_CP_RESET);
	put_register(RVX1_STATUS + RVX1_STATUS_CP, RVX1_CP_RESET);
	assert_lost("reset from outside");
}

static void a_reset_that_the_status_page_does_not_show_is_noticed_by_registers(void **state)
{
	(void)state;
	submit_empty(1);
	put_register(RVX1_CP_STATE, RVX1_CP_RESET);
	assert_lost("reset from outside");
}

static void registers_that_answer_all_ones_are_noticed_behind_a_mapped_status_page(void **state)
{
	(void)state;
	submit_empty(1);
	put_register(RVX1_ID, UINT32_MAX);
	assert_lost("answers all ones");
}

static void a_function_that_left_in_silence_is_noticed_by_its_vendor_id(void **state)
{
	(void)state;
	submit_empty(1);
	put_register(RVX1_ID, UINT32_MAX);
	__atomic_store_n((uint16_t *)rig_fake_memory(t.fake, RIG_VFIO_CONFIG), UINT16_MAX, __ATOMIC_RELAXED);
	assert_lost("all ones");
	assert_true(rig_pci_gone(t.dev->pci, NULL));
}

/* What is not asked for cannot be answered wrongly. */
static void an_idle_device_is_not_asked_whether_it_is_there(void **state)
{
	(void)state;
	submit_empty(1);
	passive_complete(&t, 1);
	while (rig_word_load(t.word) != 1)
		assert_int_equal(m->sleep(t.device, 0, 1000, &fault), 0);
	put_register(RVX1_ID, UINT32_MAX);
	for (unsigned i = 0; i < 30; i++)
		assert_int_equal(m->sleep(t.device, 1, 10, &fault), 0);
	put_register(RVX1_ID, RVX1_ID_VALUE);
}

static void a_named_firmware_folder_without_the_image_is_an_error_that_names_both(void **state)
{
	struct passive_options options = {.firmware_dir = "/nonexistent"};
	struct passive p;

	(void)state;
	assert_int_equal(passive_make(&p, &options, 0), -ENOENT);
	assert_non_null(strstr(p.why, "rvx1-firmware.bin: not in /nonexistent"));
	passive_close(&p);
	assert_int_equal(setenv("RIG_FIRMWARE_DIR", "/nowhere", 1), 0);
	assert_int_equal(passive_make(&p, NULL, 0), -ENOENT);
	assert_non_null(strstr(p.why, "not in /nowhere, the folder that RIG_FIRMWARE_DIR names"));
	passive_close(&p);
	/* An empty variable names none. */
	assert_int_equal(setenv("RIG_FIRMWARE_DIR", "", 1), 0);
	assert_int_equal(passive_make(&p, NULL, 0), 0);
	passive_close(&p);
	unsetenv("RIG_FIRMWARE_DIR");
}

static void a_refused_make_gives_the_function_back(void **state)
{
	struct rig_driver_options driver = {.boot_ms = 1000};
	struct rig_pci_taking taken = {.ops = &rig_fake_ops};
	struct rig_pci *pci;
	void *device;
	char why[256];

	(void)state;
	m->stop(t.device, NULL);
	m->release(t.device);
	t.device = NULL;
	memset(t.regs + RVX1_ID, 0, 4);
	taken.transport = t.fake;
	assert_int_equal(rig_pci_take(&pci, &taken), 0);
	assert_int_equal(rig_driver_make(pci, rig_board_find(RVX1_PCI_VENDOR, RVX1_PCI_DEVICE), &driver,
	                         t.word, &device, why, sizeof(why)),
	        -ENODEV);
	assert_null(device);
	assert_non_null(strstr(why, "boot stage identify"));
	assert_int_equal(rig_fake_open_count(t.fake), 0);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        CASE(facts_are_what_the_contract_asks),
	        CASE(vectors_that_the_machine_has_not_are_polled_for_and_it_is_said),
	        CASE(store_completion_is_a_fact),
	        CASE(every_region_is_aligned_in_both_addresses),
	        CASE(wrong_requests_are_refused_with_their_bounds),
	        CASE(board_memory_runs_out_and_comes_back),
	        CASE(pinned_memory_runs_out_and_comes_back_all_of_it),
	        CASE(what_the_host_cannot_see_is_handed_out_first),
	        CASE(bus_addresses_cover_the_region_and_are_never_given_to_other_memory),
	        CASE(pinned_memory_has_no_bus_address_and_says_why),
	        CASE(pinned_memory_costs_no_message_once_its_arena_is_there),
	        CASE(host_memory_maps_and_is_reached_by_its_bus_address),
	        CASE(read_only_pages_are_never_mapped),
	        CASE(mappings_run_out_with_no_room_and_come_back),
	        CASE(a_quiet_device_is_stopped_without_a_reset),
	        CASE(unfinished_work_is_ended_by_a_reset_and_the_word_raised),
	        CASE(a_function_that_left_runs_nothing_so_its_word_is_raised),
	        CASE(a_function_that_left_faults_every_call_with_the_reason),
	        CASE(a_fault_of_the_board_wakes_a_sleeper_with_its_text),
	        CASE(a_reset_from_outside_wakes_a_sleeper_with_that_reason),
	        CASE(a_reset_that_the_status_page_does_not_show_is_noticed_by_registers),
	        CASE(registers_that_answer_all_ones_are_noticed_behind_a_mapped_status_page),
	        CASE(a_function_that_left_in_silence_is_noticed_by_its_vendor_id),
	        CASE(an_idle_device_is_not_asked_whether_it_is_there),
	        CASE(a_named_firmware_folder_without_the_image_is_an_error_that_names_both),
	        CASE(a_refused_make_gives_the_function_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
