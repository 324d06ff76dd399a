/* SPDX-License-Identifier: MIT */
/* A rail moves bytes between landing areas alone: every byte around them stays as it was. */
#include <errno.h>
#include <string.h>

#include "test.h"

#include "draw.h"
#include "rail_pair.h"
#include "rail_private.h"

enum { PAGE = 4096, RAILS = 3, MOST = 12, REACH = 3000, ROUNDS = 8, AREA_MOST = 2 * 8192 };

/* An area with what is behind it in its last page, and what must be in it. */
struct watched {
	uint8_t *at;
	size_t area, bytes;
	uint8_t want[AREA_MOST];
};

static void watch(struct watched *w, const struct rig_remote_area *area, uint64_t *numbers)
{
	w->at = area->at;
	w->area = area->bytes;
	w->bytes = (area->bytes + PAGE - 1) / PAGE * PAGE;
	assert_true(w->bytes <= AREA_MOST);
	test_draw_bytes(numbers, w->want, w->bytes);
	if (w->bytes)
		memcpy(w->at, w->want, w->bytes);
}

static void look_at(const struct watched *w, const char *what)
{
	for (size_t i = 0; i < w->bytes; i++)
		if (w->at[i] != w->want[i])
			fail_msg("byte %zu of an %s area of %zu is %u, not %u", i, what, w->area, w->at[i],
			        w->want[i]);
}

/* The rest of the counts' page is nobody's. */
static void look_at_counts(const struct rig_remote_end *end)
{
	const uint8_t *at = end->counts.at;

	for (size_t i = 0; i < end->counts.bytes; i++) {
		bool is_count = i / 8 * 8 == RIG_REMOTE_READY || i / 8 * 8 == RIG_REMOTE_SENT ||
		                i / 8 * 8 == RIG_REMOTE_ARRIVED;

		if (!is_count && at[i])
			fail_msg("byte %zu of the counts is %u", i, at[i]);
	}
}

struct carried {
	struct rig_remote_transfer t[MOST];
	size_t n;
	struct rail_ends ends;
	struct watched out[2], in[2];
};

static void make(struct rail_pair *pair, struct carried *c, uint64_t id, uint64_t *numbers)
{
	c->n = 1 + test_draw(numbers, MOST);
	for (size_t i = 0; i < c->n; i++)
		c->t[i] = (struct rig_remote_transfer){
		        test_draw(numbers, REACH), test_draw(numbers, REACH), 1 + test_draw(numbers, 900)};
	assert_int_equal(rail_pair_make(pair, id, c->t, c->n, c->t, 1, &c->ends), 0);
	for (int i = 0; i < 2; i++) {
		watch(&c->out[i], &c->ends.end[i]->outbound, numbers);
		watch(&c->in[i], &c->ends.end[i]->inbound, numbers);
	}
}

/* Count `n` of side 0, in the areas and in what they must hold then. */
static void carry(struct carried *c, uint64_t n)
{
	const struct rig_remote_transfer *t = &c->t[(n - 1) % c->n];
	size_t copy = (n - 1) / c->n % 2;

	rail_ready(c->ends.end[0], n);
	(void)rail_wait(c->ends.end[1], RIG_REMOTE_ARRIVED, n);
	memcpy(c->in[1].want + copy * c->in[1].area / 2 + t->dst,
	        c->out[0].want + copy * c->out[0].area / 2 + t->src, (size_t)t->length);
}

static void look_at_all(struct carried *c)
{
	for (int i = 0; i < 2; i++) {
		look_at(&c->out[i], "outbound");
		look_at(&c->in[i], "inbound");
		look_at_counts(c->ends.end[i]);
	}
}

static void random_transfers_change_what_they_are_for_and_no_other_byte(void **state)
{
	static struct carried c[RAILS];
	uint64_t numbers = 63;
	struct rail_pair pair;

	rail_pair_begin(&pair, state);
	for (int i = 0; i < RAILS; i++)
		make(&pair, &c[i], (uint64_t)i + 1, &numbers);
	for (uint64_t n = 1; n <= ROUNDS * MOST; n++)
		for (int i = 0; i < RAILS; i++) {
			carry(&c[i], n);
			look_at_all(&c[i]);
		}
	for (int i = 0; i < RAILS; i++) {
		look_at_all(&c[i]);
		rail_ends_put(&c[i].ends);
	}
	rail_pair_close(&pair);
}

/* ---- A peer that writes where it may not ---- */

static void write_there(struct rail_pair *pair, const struct rig_remote_end *end, uint64_t offset)
{
	struct rig_rail_half *half = rig_registry_get(end->counts.at);
	struct rig_rail_link *link = pair->link[0];
	int code;

	rig_rail_link_lock(link);
	do
		code = rig_rail_write(link, (struct rig_rail_op){.bytes = sizeof(link->letter)}, link->letter,
		        &link->letter_memory, &half->target, offset, half->peer_slot << RIG_NOTE_SLOT | 1);
	while (code == -EAGAIN);
	rig_rail_link_serve(link);
	rig_rail_half_put(half);
}

/* Whether what was sent is refused, or its sender dropped, is the provider's: no byte changes. */
static void what_a_peer_writes_beside_an_area_changes_nothing(void **state)
{
	static const int64_t beside[] = {0, 8, 256, 3000, 1 << 20, INT64_C(1) << 40, -8, -4096};
	static struct carried c[2];

	for (size_t i = 0; i < sizeof(beside) / sizeof(*beside); i++) {
		uint64_t numbers = i;
		struct rail_pair pair;

		rail_pair_begin(&pair, state);
		make(&pair, &c[0], 1, &numbers);
		make(&pair, &c[1], 2, &numbers);
		write_there(&pair, c[0].ends.end[0],
		        beside[i] < 0 ? (uint64_t)beside[i] : c[0].in[1].area + (uint64_t)beside[i]);
		(void)rail_wait(c[0].ends.end[1], RIG_REMOTE_ARRIVED, 1);
		for (int j = 0; j < 2; j++) {
			look_at(&c[j].in[1], "inbound");
			look_at(&c[j].out[1], "outbound");
			rail_ends_put(&c[j].ends);
		}
		rail_pair_close(&pair);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        RAIL_TEST(random_transfers_change_what_they_are_for_and_no_other_byte),
	        RAIL_TEST_OVER("what_a_peer_writes_beside_an_area_changes_nothing",
	                what_a_peer_writes_beside_an_area_changes_nothing, "sealed"),
	        RAIL_TEST_OVER("what_a_peer_writes_beside_an_area_changes_nothing_over_tcp",
	                what_a_peer_writes_beside_an_area_changes_nothing, "tcp"),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
