/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "rvx1.h"

/* Words are whole packets. */
#define WORDS_A_PACKET (RVX1_PACKET_BYTES / 4u)

/* Longest run of words a part may place: what keeps rig_need.units from wrapping. */
#define MAX_WORDS (RVX1_MAX_RING_ENTRIES * WORDS_A_PACKET)

static int never(const char *why)
{
	rig_error_set(0, "%s", why);
	return RIG_NEVER;
}

static int check_words(const struct rig_words_part *words, struct rig_need *need)
{
	if (!words->count || words->count % WORDS_A_PACKET || words->count > MAX_WORDS)
		return never("a words part holds whole packets: a multiple of 16 words, at least 16, that "
		             "fits a ring");
	need->units = words->count / WORDS_A_PACKET;
	return RIG_FITS;
}

static int check_fill(const struct rig_fill_part *fill, struct rig_need *need)
{
	if (!fill->fill || fill->ring_units > RVX1_MAX_RING_ENTRIES || fill->segment_bytes > RIG_PARAMS)
		return never("a fill part needs a function, at most 65536 packets and 4096 segment bytes");
	need->units = fill->ring_units;
	need->segment_bytes = fill->segment_bytes;
	return RIG_FITS;
}

/* The product of three dimensions, or 0 if one is 0 or the product exceeds `most`. */
static uint64_t volume(const uint32_t d[3], uint64_t most)
{
	uint64_t v = (uint64_t)d[0] * d[1]; /* below 2^64: both are below 2^32 */

	if (!v || v > most || !d[2] || d[2] > most / v)
		return 0;
	return v * d[2];
}

static int check_launch(struct rvx1 *rvx1, const struct rig_launch_part *part, const struct rig_run *run)
{
	const struct rig_board_function *f = &((const struct rig_launch *)part->launch)->function;
	const struct rig_block *block = rig_launch_block(run, part);
	uint64_t threads = volume(block->threads, UINT32_MAX);

	if (!volume(block->groups, UINT64_MAX))
		return rig_error_set(RIG_NEVER,
		        "a grid of %u x %u x %u groups: at least 1 a dimension, below 2^64 in all",
		        block->groups[0], block->groups[1], block->groups[2]);
	if (block->shared > rvx1->group_shared)
		return rig_error_set(RIG_NEVER, "%u bytes of shared memory: the board has %u", block->shared,
		        rvx1->group_shared);
	if (f->has_shared && block->shared > f->shared)
		return rig_error_set(RIG_NEVER,
		        "%u bytes of shared memory: the function was declared with at most %u", block->shared,
		        f->shared);
	if (!threads || threads > rvx1->group_threads)
		return rig_error_set(RIG_NEVER, "a group of %u x %u x %u threads: the board runs 1 to %u",
		        block->threads[0], block->threads[1], block->threads[2], rvx1->group_threads);
	if (f->has_threads && threads > f->threads)
		return rig_error_set(RIG_NEVER,
		        "a group of %u threads: the function was declared with at most %u", (unsigned)threads,
		        f->threads);
	return RIG_FITS;
}

int rvx1_check(
        struct rig_port *port, const struct rig_part *part, const struct rig_run *run, struct rig_need *need)
{
	need->units = 1;
	need->segment_bytes = 0;
	switch (part->kind) {
	case RIG_WORDS:
		return check_words(&part->u.words, need);
	case RIG_FILL:
		return check_fill(&part->u.fill, need);
	case RIG_COPY:
		if (!part->u.copy.row_bytes || !part->u.copy.rows)
			return never("a copy part has at least one row of at least one byte");
		return RIG_FITS;
	case RIG_LAUNCH:
		need->segment_bytes = part->u.launch.params;
		return check_launch(rvx1_of(port), &part->u.launch, run);
	default:
		return rig_error_set(RIG_NEVER,
		        "part kind %u: this board runs words, fills, copies and launches", part->kind);
	}
}

/* Where packets lie may be board memory. They are aligned there, so that the width of each store is known. */
static void put_packet(void *units, const struct rvx1_packet *packet)
{
	const uint8_t *from = (const uint8_t *)packet;
	unsigned i;

	for (i = 0; i < sizeof(*packet); i += RIG_WIDE)
		rig_wide_put1((uint8_t *)units + i, from + i, RIG_WIDE);
}

void rvx1_step(struct rig_port *port, void *units, const struct rig_step *step)
{
	static const uint8_t opcodes[] = {
	        [RIG_STEP_WAIT] = RVX1_OP_WAIT,
	        [RIG_STEP_ORDER] = RVX1_OP_WAIT_VALUE,
	        [RIG_STEP_SIGNAL] = RVX1_OP_SIGNAL,
	        [RIG_STEP_SEMAPHORE] = RVX1_OP_SEMAPHORE,
	        [RIG_STEP_RELEASE] = RVX1_OP_RELEASE,
	        [RIG_STEP_RING] = RVX1_OP_RING,
	        [RIG_STEP_STAMP] = RVX1_OP_STAMP,
	        [RIG_STEP_COUNTERS] = RVX1_OP_COUNTERS,
	        [RIG_STEP_NOP] = RVX1_OP_NOP,
	};
	struct rvx1_packet packet = {.opcode = opcodes[step->kind]};

	(void)port;
	packet.u.word.address = step->address;
	if (step->kind != RIG_STEP_NOP)
		packet.u.word.value = step->value;
	if (step->kind == RIG_STEP_SIGNAL || step->kind == RIG_STEP_SEMAPHORE)
		packet.arg = step->index;
	if (step->kind == RIG_STEP_RELEASE && step->address)
		packet.flags = RVX1_RELEASE_STORE;
	if (step->kind == RIG_STEP_RING) {
		packet.arg = (uint32_t)step->value;
		packet.u.word.value = 0;
	}
	put_packet(units, &packet);
}

static int put_copy(const struct rig_copy_part *copy, const struct rig_run *run, void *units)
{
	struct rvx1_packet packet = {.opcode = copy->fill ? RVX1_OP_FILL : RVX1_OP_COPY};
	struct rvx1_copy_packet *c = &packet.u.copy;
	uint64_t span, last;
	int err;

	/* Bytes from the first row's start to the last one's end; room does not see the sides' final
	   offsets. */
	if (__builtin_mul_overflow(copy->rows - 1, copy->dst.pitch, &last) ||
	        __builtin_add_overflow(last, copy->row_bytes, &span))
		return rig_error_set(-EINVAL, "a copy's destination rows reach past 2^64");
	err = rig_side_address(&copy->dst, run, span, &c->dst);
	if (err)
		return err;
	if (copy->fill) {
		packet.arg = copy->byte;
	} else {
		if (__builtin_mul_overflow(copy->rows - 1, copy->src.pitch, &last) ||
		        __builtin_add_overflow(last, copy->row_bytes, &span))
			return rig_error_set(-EINVAL, "a copy's source rows reach past 2^64");
		err = rig_side_address(&copy->src, run, span, &c->src);
		if (err)
			return err;
		c->src_pitch = copy->src.pitch;
	}
	c->row_bytes = copy->row_bytes;
	c->rows = copy->rows;
	c->dst_pitch = copy->dst.pitch;
	put_packet(units, &packet);
	return 0;
}

static void put_launch(struct rvx1 *rvx1, const struct rig_launch_part *part, const struct rig_run *run,
        const struct rig_place *place)
{
	const struct rig_launch *launch = (const struct rig_launch *)part->launch;
	const struct rig_block *block = rig_launch_block(run, part);
	struct rvx1_packet packet = {.opcode = RVX1_OP_LAUNCH};
	struct rvx1_launch_packet *l = &packet.u.launch;

	if (part->params)
		rig_launch_params(place->segment, run, part);
	l->entry = part->code;
	l->params = place->segment_address;
	l->stacks = launch->stacks;
	memcpy(l->grid, block->groups, sizeof(l->grid));
	memcpy(l->group, block->threads, sizeof(l->group));
	l->shared = block->shared;
	l->slots = launch->function.has_threads ? launch->function.threads : rvx1->group_threads;
	put_packet(place->units, &packet);
}

static int put_fill(struct rig_port *port, const struct rig_fill_part *fill, const struct rig_place *place)
{
	struct rig_fill_context context = {
	        .units = place->units,
	        .ring_units = fill->ring_units,
	        .segment = place->segment,
	        .segment_address = place->segment_address,
	        .segment_bytes = fill->segment_bytes,
	};
	const struct rig_step nop = {.kind = RIG_STEP_NOP};
	uint32_t i;
	int answer;

	for (i = 0; i < fill->ring_units; i++)
		rvx1_step(port, (uint8_t *)place->units + (size_t)i * RVX1_PACKET_BYTES, &nop);
	if (rig_code_sync)
		rig_code_sync();
	answer = fill->fill(&context, fill->arg, place->value);
	return answer ? rig_error_set(answer, "its fill function answered %d", answer) : 0;
}

int rvx1_part(struct rig_port *port, const struct rig_part *part, const struct rig_run *run,
        const struct rig_need *need, const struct rig_place *place)
{
	(void)need;
	switch (part->kind) {
	case RIG_WORDS:
		rig_wide_put(place->units, part->u.words.words, (uint64_t)part->u.words.count * 4);
		return 0;
	case RIG_FILL:
		return put_fill(port, &part->u.fill, place);
	case RIG_COPY:
		return put_copy(&part->u.copy, run, place->units);
	default:
		put_launch(rvx1_of(port), &part->u.launch, run, place);
		return 0;
	}
}

void rvx1_ring(struct rig_port *port, uint32_t queue, uint64_t position)
{
	/* The packets before the doorbell, because the board may read them once it sees it. They may be
	   write-combined, so a barrier for plain stores does not do. */
	rig_wc_flush();
	rig_win_store64(&rvx1_of(port)->doorbells,
	        (uint64_t)queue * RVX1_DOORBELL_PITCH + RVX1_DOORBELL_WRITE, position);
}
