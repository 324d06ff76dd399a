/* SPDX-License-Identifier: MIT */
#include "raw_sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rvx1/packet.h"
#include "system.h"

#define WORD     3u             /* of the array: the test's own */
#define BOARD_VA 0x10000000000u /* src/board/rvx1/rvx1.h: the linear map of board memory */
#define SLEEP_MS 100u

void raw_open(struct raw *r, const char *text)
{
	struct rig_opener *opener;
	const char *fault;
	char why[512];

	memset(r, 0, sizeof(*r));
	assert_int_equal(rig_vfio_opener(text, NULL, &opener), 0);
	r->module = opener->module;
	r->word = rig_words() + WORD;
	__atomic_store_n((uint64_t *)(void *)r->word, 0, __ATOMIC_RELEASE);
	if (opener->make(opener->arg, r->word, &r->device, why, sizeof(why)))
		fail_msg("%s: %s", text, why);
	rig_vfio_opener_free(opener);
	r->facts.version = RIG_EDGE_VERSION;
	assert_int_equal(r->module->facts(r->device, &r->facts, &fault), 0);
	r->hot = rig_driver_of(r->facts.edge);
}

void raw_close(struct raw *r)
{
	const char *fault;
	uint32_t i;

	r->module->stop(r->device, "the test ends");
	if (r->image)
		r->module->unload(r->device, r->image, &fault);
	for (i = 0; i < r->regions; i++)
		r->module->free(r->device, r->region[i], &fault);
	r->module->release(r->device);
	memset(r, 0, sizeof(*r));
}

static void *new_region(struct raw *r, uint64_t bytes)
{
	const char *fault = "";
	void *region;

	assert_true(r->regions < RAW_REGIONS);
	if (r->module->alloc(r->device, RIG_MAPPED, bytes, &region, &fault))
		fail_msg("no region of %llu bytes: %s", (unsigned long long)bytes, fault);
	r->region[r->regions++] = region;
	return region;
}

struct raw_memory raw_memory(struct raw *r, uint64_t bytes)
{
	struct rig_location at;
	void *region = new_region(r, bytes);

	r->module->locate(r->device, region, &at);
	memset(at.host, 0, bytes);
	return (struct raw_memory){.host = at.host, .address = at.address, .handle = at.handle};
}

void raw_kernel(struct raw *r, const char *name)
{
	struct rig_code code = {.version = RIG_EDGE_VERSION};
	struct rig_location at;
	const char *fault = "";
	uint64_t missing;
	uint8_t *binary, *bytes;
	size_t count = sys_kernel_bytes(name, &binary);
	void *region;

	assert_int_equal(r->module->load(r->device, binary, count, &code, &fault), 0);
	assert_int_equal(code.kind, RIG_PLACE);
	region = new_region(r, code.bytes);
	bytes = calloc(1, code.bytes);
	assert_non_null(bytes);
	assert_int_equal(code.place(r->device, binary, count, region, bytes, &r->image), 0);
	r->module->locate(r->device, region, &at);
	memcpy(at.host, bytes, code.bytes);
	free(bytes);
	free(binary);
	r->entry.version = RIG_EDGE_VERSION;
	assert_int_equal(r->module->entry(r->device, r->image, name, &r->entry, &missing, &fault), RIG_ENTRY);
}

void raw_stats(struct raw *r, struct rig_vfio_stats *stats)
{
	const struct rig_vfio_record *record = r->facts.capability.record;

	record->stats(record, stats);
}

static struct rig_part *next(struct raw_work *w, uint32_t queue, uint32_t kind)
{
	struct rig_part *part = &w->part[w->n];

	assert_true(w->n < RAW_PARTS);
	*part = (struct rig_part){.queue = queue, .kind = kind, .after = w->after[w->n]};
	w->n++;
	return part;
}

uint32_t raw_launch(struct raw *r, struct raw_work *w, uint32_t queue, const void *params, uint32_t bytes)
{
	struct rig_part *part = next(w, queue, RIG_LAUNCH);
	uint32_t at = (w->n - 1) * (uint32_t)(sizeof(struct rig_block) + RAW_ARGS);
	const struct rig_block block = {.groups = {1, 1, 1}, .threads = {1, 1, 1}};

	assert_true(bytes <= RAW_ARGS);
	memcpy(w->args + at, &block, sizeof(block));
	memcpy(w->args + at + sizeof(block), params, bytes);
	part->u.launch = (struct rig_launch_part){
	        .code = r->entry.code, .launch = r->entry.launch, .block = at, .params = bytes};
	return w->n - 1;
}

uint32_t raw_copy(struct raw_work *w, uint32_t queue, const struct raw_memory *dst, uint64_t dst_at,
        const struct raw_memory *src, uint64_t src_at, uint64_t bytes)
{
	struct rig_part *part = next(w, queue, RIG_COPY);

	part->u.copy =
	        (struct rig_copy_part){.dst = {.slot = RIG_FIXED, .handle = dst->handle, .offset = dst_at},
	                .src = {.slot = RIG_FIXED, .handle = src->handle, .offset = src_at},
	                .row_bytes = bytes,
	                .rows = 1};
	return w->n - 1;
}

uint32_t raw_packet(struct raw_work *w, uint32_t queue, uint8_t opcode, uint64_t address, uint64_t value)
{
	const struct rvx1_packet packet = {.opcode = opcode, .u.word = {.address = address, .value = value}};
	struct rig_part *part = next(w, queue, RIG_WORDS);

	memcpy(w->words[w->n - 1], &packet, sizeof(packet));
	part->u.words = (struct rig_words_part){.words = w->words[w->n - 1], .count = 16};
	return w->n - 1;
}

uint64_t raw_board_address(const struct raw_memory *memory)
{
	return memory->address - BOARD_VA;
}

void raw_after(struct raw_work *w, uint32_t index, uint32_t before)
{
	w->after[index][w->part[index].nafter++] = before;
}

/* One more value, or the queues as large as the work needs. */
static void make_room(struct raw *r, struct raw_work *w, int answer)
{
	const char *fault = "";
	uint64_t missing = 0;

	if (answer == RIG_LATER)
		raw_wait(r, rig_word_load(r->word) + 1);
	else if (answer == RIG_GROW)
		assert_int_equal(
		        r->module->grow(r->device, w->part, w->n, w->nwaits, &missing, &fault), RIG_GROWN);
	else
		fail_msg("room answered %d: %s", answer, rig_error());
}

uint64_t raw_submit(struct raw *r, struct raw_work *w, struct rig_times *times)
{
	static uint8_t scratch[RAW_PARTS * RIG_SCRATCH] __attribute__((aligned(16)));
	const struct rig_run run = {.args = w->args, .args_bytes = sizeof(w->args)};
	const char *failure = "";
	int answer;

	while ((answer = r->hot->room(r->facts.edge, w->part, w->n, w->nwaits, &run, scratch)) != RIG_FITS)
		make_room(r, w, answer);
	answer = r->hot->submit(r->facts.edge, r->last + 1, w->part, w->n, w->waits, w->nwaits, &run, scratch,
	        times, &failure);
	if (answer != RIG_COMMITTED)
		fail_msg("submit answered %d: %s", answer, failure);
	return ++r->last;
}

const char *raw_wait_fault(struct raw *r, uint64_t value)
{
	const uint64_t until = rig_now_ns() + RAW_DEADLINE_MS * UINT64_C(1000000);
	const char *fault = NULL;
	uint64_t seen;

	while ((seen = rig_word_load(r->word)) < value) {
		if (r->module->sleep(r->device, seen, SLEEP_MS, &fault))
			return fault;
		if (rig_now_ns() > until)
			fail_msg("value %llu was not reached in %u ms; the word shows %llu",
			        (unsigned long long)value, RAW_DEADLINE_MS, (unsigned long long)seen);
	}
	return NULL;
}

void raw_wait(struct raw *r, uint64_t value)
{
	const char *fault = raw_wait_fault(r, value);

	if (fault)
		fail_msg("waiting for value %llu: %s", (unsigned long long)value, fault);
}
