/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <errno.h>
#include <stdlib.h>

#include "allocs.h"
#include "bits.h"
#include "counters.h"
#include "tlsf.h"

#define PAGE UINT64_C(4096)
#define BASE (UINT64_C(1) << 40)

static struct rig_tlsf *open_pages(uint64_t pages)
{
	struct rig_tlsf *t = NULL;

	assert_int_equal(rig_tlsf_open(&t, BASE, pages * PAGE, PAGE), 0);
	return t;
}

static void bad_arguments_are_refused(void **state)
{
	struct rig_tlsf *t = NULL;
	uint64_t at = 7;

	(void)state;
	assert_int_equal(rig_tlsf_open(&t, BASE, PAGE, 3), -EINVAL);
	assert_int_equal(rig_tlsf_open(&t, BASE + 1, PAGE, PAGE), -EINVAL);
	assert_int_equal(rig_tlsf_open(&t, BASE, PAGE - 1, PAGE), -EINVAL);
	assert_int_equal(rig_tlsf_open(&t, UINT64_MAX - PAGE + 1, 2 * PAGE, PAGE), -EINVAL);
	assert_null(t);
	t = open_pages(4);
	assert_int_equal(rig_tlsf_alloc(t, 0, 0, &at), -EINVAL);
	assert_int_equal(rig_tlsf_alloc(t, 1, 3, &at), -EINVAL);
	assert_int_equal(at, 7);
	rig_tlsf_close(t);
	rig_tlsf_close(NULL);
}

static void everything_can_be_one_piece_and_one_byte_more_cannot(void **state)
{
	struct rig_tlsf *t;
	uint64_t at;

	(void)state;
	for (uint64_t pages = 1; pages < 3000; pages = pages * 3 / 2 + 1) {
		t = open_pages(pages);
		assert_int_equal(rig_tlsf_alloc(t, pages * PAGE + 1, 0, &at), -ENOMEM);
		assert_int_equal(rig_tlsf_alloc(t, pages * PAGE, 0, &at), 0);
		assert_int_equal(at, BASE);
		assert_int_equal(rig_tlsf_free_bytes(t), 0);
		assert_int_equal(rig_tlsf_largest(t), 0);
		assert_int_equal(rig_tlsf_alloc(t, 1, 0, &at), -ENOMEM);
		assert_int_equal(rig_tlsf_free(t, BASE), 0);
		assert_int_equal(rig_tlsf_largest(t), pages * PAGE);
		rig_tlsf_close(t);
	}
}

static void a_range_may_end_at_the_end_of_the_space(void **state)
{
	struct rig_tlsf *t = NULL;
	uint64_t at;

	(void)state;
	assert_int_equal(rig_tlsf_open(&t, UINT64_MAX - 4 * PAGE + 1, 4 * PAGE, PAGE), 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(rig_tlsf_alloc(t, PAGE, 0, &at), 0);
	assert_int_equal(at, UINT64_MAX - PAGE + 1);
	assert_int_equal(rig_tlsf_alloc(t, 1, UINT64_C(1) << 63, &at), -ENOMEM);
	assert_int_equal(rig_tlsf_alloc(t, UINT64_MAX, 0, &at), -ENOMEM);
	rig_tlsf_close(t);
	assert_int_equal(rig_tlsf_open(&t, 0, UINT64_MAX, 1), 0);
	assert_int_equal(rig_tlsf_alloc(t, UINT64_MAX, 0, &at), 0);
	assert_int_equal(rig_tlsf_free(t, at), 0);
	assert_int_equal(rig_tlsf_alloc(t, UINT64_MAX, UINT64_C(1) << 63, &at), 0);
	rig_tlsf_close(t);
}

static void freeing_what_was_not_handed_out_answers_ENOENT(void **state)
{
	struct rig_tlsf *t = open_pages(8);
	uint64_t at;

	(void)state;
	assert_int_equal(rig_tlsf_alloc(t, 2 * PAGE, 0, &at), 0);
	assert_int_equal(rig_tlsf_free(t, at + PAGE), -ENOENT);
	assert_int_equal(rig_tlsf_free(t, at + 1), -ENOENT);
	assert_int_equal(rig_tlsf_bytes(t, at), 2 * PAGE);
	assert_int_equal(rig_tlsf_bytes(t, at + PAGE), 0);
	assert_int_equal(rig_tlsf_free(t, at), 0);
	assert_int_equal(rig_tlsf_free(t, at), -ENOENT);
	assert_int_equal(rig_tlsf_pieces(t), 0);
	rig_tlsf_close(t);
}

static void neighbours_merge_in_every_order_of_freeing(void **state)
{
	static const unsigned orders[6][3] = {
	        {0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
	struct rig_tlsf *t = open_pages(3);
	uint64_t at[3], whole;

	(void)state;
	for (unsigned n = 0; n < 6; n++) {
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(rig_tlsf_alloc(t, PAGE, 0, &at[i]), 0);
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(rig_tlsf_free(t, at[orders[n][i]]), 0);
		assert_int_equal(rig_tlsf_alloc(t, 3 * PAGE, 0, &whole), 0);
		assert_int_equal(rig_tlsf_free(t, whole), 0);
	}
	rig_tlsf_close(t);
}

/* A map of pages beside the allocator: the piece (from 1) that owns each, or 0. */
enum { PAGES = 512, PIECES = 128 };

struct model {
	struct rig_tlsf *t;
	unsigned owner[PAGES];
	uint64_t at[PIECES + 1], pages[PIECES + 1];
};

static bool model_fits(const struct model *m, uint64_t pages, uint64_t align)
{
	for (uint64_t i = 0, run; i < PAGES; i++) {
		if (!rig_is_aligned(BASE + i * PAGE, align))
			continue;
		for (run = 0; run < pages && i + run < PAGES && !m->owner[i + run]; run++)
			;
		if (run == pages)
			return true;
	}
	return false;
}

static void model_take(struct model *m, unsigned piece)
{
	uint64_t pages = (uint64_t)rand() % (rand() % 8 ? 8 : 200) + 1;
	uint64_t align = rand() % 3 ? 0 : PAGE << rand() % 6;
	uint64_t at;
	int rc = rig_tlsf_alloc(m->t, pages * PAGE - (uint64_t)rand() % PAGE, align, &at);

	if (rc) {
		assert_int_equal(rc, -ENOMEM);
		assert_false(model_fits(m, pages, align ? align : PAGE));
		return;
	}
	assert_true(at >= BASE && rig_is_aligned(at, align ? align : PAGE));
	assert_int_equal(rig_tlsf_bytes(m->t, at), pages * PAGE);
	m->at[piece] = at;
	m->pages[piece] = pages;
	for (uint64_t i = 0; i < pages; i++) {
		assert_true((at - BASE) / PAGE + i < PAGES);
		assert_int_equal(m->owner[(at - BASE) / PAGE + i], 0);
		m->owner[(at - BASE) / PAGE + i] = piece;
	}
}

static void model_give(struct model *m, unsigned piece)
{
	assert_int_equal(rig_tlsf_free(m->t, m->at[piece]), 0);
	for (uint64_t i = 0; i < m->pages[piece]; i++)
		m->owner[(m->at[piece] - BASE) / PAGE + i] = 0;
	m->pages[piece] = 0;
}

static void model_check(const struct model *m)
{
	uint64_t free_pages = 0, run = 0, most = 0;

	for (unsigned i = 0; i < PAGES; i++) {
		run = m->owner[i] ? 0 : run + 1;
		free_pages += m->owner[i] == 0;
		most = rig_max_u64(most, run);
	}
	assert_int_equal(rig_tlsf_free_bytes(m->t), free_pages * PAGE);
	assert_int_equal(rig_tlsf_largest(m->t), most * PAGE);
}

static void random_use_agrees_with_a_map_of_pages_and_refuses_only_what_fits_nowhere(void **state)
{
	static struct model m;

	(void)state;
	srand(1);
	m.t = open_pages(PAGES);
	for (unsigned n = 0; n < 60000; n++) {
		unsigned piece = (unsigned)rand() % PIECES + 1;

		if (m.pages[piece])
			model_give(&m, piece);
		else
			model_take(&m, piece);
		model_check(&m);
	}
	for (unsigned piece = 1; piece <= PIECES; piece++)
		if (m.pages[piece])
			model_give(&m, piece);
	assert_int_equal(rig_tlsf_largest(m.t), PAGES * PAGE);
	rig_tlsf_close(m.t);
}

static void a_steady_state_calls_no_malloc(void **state)
{
	struct rig_tlsf *t = open_pages(100000);
	uint64_t at[1000], before;

	(void)state;
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(rig_tlsf_alloc(t, 3 * PAGE, 16 * PAGE, &at[i]), 0);
	before = test_allocs();
	for (unsigned n = 0; n < 100000; n++) {
		unsigned i = (unsigned)rand() % 1000;

		assert_int_equal(rig_tlsf_free(t, at[i]), 0);
		assert_int_equal(rig_tlsf_alloc(t, 3 * PAGE, 16 * PAGE, &at[i]), 0);
	}
	assert_int_equal(test_allocs(), before);
	rig_tlsf_close(t);
}

static int scenario(void)
{
	struct rig_tlsf *t = NULL;
	uint64_t at, before;
	int rc = rig_tlsf_open(&t, BASE, 1000 * PAGE, PAGE);

	if (rc)
		return rc;
	for (unsigned i = 0; i < 400 && !rc; i++) {
		before = rig_tlsf_free_bytes(t);
		rc = rig_tlsf_alloc(t, PAGE, 2 * PAGE, &at);
		assert_int_equal(rig_tlsf_free_bytes(t), before - (rc ? 0 : PAGE));
	}
	rig_tlsf_close(t);
	return rc;
}

static void without_heap_memory_nothing_changes_and_nothing_leaks(void **state)
{
	struct test_counts before;
	uint64_t k;

	(void)state;
	test_counts_take(&before);
	for (k = 1;; k++) {
		int rc;

		test_allocs_fail_at(k);
		rc = scenario();
		if (!test_allocs_failed())
			break;
		/* Buckets that cannot be widened only make chains longer. */
		assert_true(rc == 0 || rc == -ENOMEM);
	}
	test_allocs_fail_at(0);
	assert_true(k > 4);
	test_counts_same(&before);
}

static void a_piece_at_a_given_place_is_taken_only_where_all_of_it_is_free(void **state)
{
	struct rig_tlsf *t = open_pages(64);
	uint64_t at;

	(void)state;
	assert_int_equal(rig_tlsf_take(t, BASE + 1, PAGE), -EINVAL);
	assert_int_equal(rig_tlsf_take(t, BASE, PAGE + 1), -EINVAL);
	assert_int_equal(rig_tlsf_take(t, BASE, 0), -EINVAL);
	assert_int_equal(rig_tlsf_take(t, BASE - PAGE, 2 * PAGE), -EBUSY);
	assert_int_equal(rig_tlsf_take(t, BASE + 63 * PAGE, 2 * PAGE), -EBUSY);
	assert_int_equal(rig_tlsf_take(t, BASE + 10 * PAGE, 4 * PAGE), 0);
	assert_int_equal(rig_tlsf_take(t, BASE + 12 * PAGE, PAGE), -EBUSY);
	assert_int_equal(rig_tlsf_take(t, BASE + 8 * PAGE, 3 * PAGE), -EBUSY);
	assert_int_equal(rig_tlsf_take(t, BASE + 8 * PAGE, 2 * PAGE), 0);
	assert_int_equal(rig_tlsf_take(t, BASE + 63 * PAGE, PAGE), 0);
	assert_int_equal(rig_tlsf_free_bytes(t), 57 * PAGE);
	for (unsigned n = 0; n < 57; n++) {
		assert_int_equal(rig_tlsf_alloc(t, PAGE, 0, &at), 0);
		assert_true(at < BASE + 8 * PAGE || (at >= BASE + 14 * PAGE && at < BASE + 63 * PAGE));
	}
	assert_int_equal(rig_tlsf_alloc(t, PAGE, 0, &at), -ENOMEM);
	assert_int_equal(rig_tlsf_bytes(t, BASE + 10 * PAGE), 4 * PAGE);
	assert_int_equal(rig_tlsf_free(t, BASE + 10 * PAGE), 0);
	assert_int_equal(rig_tlsf_alloc(t, 4 * PAGE, 0, &at), 0);
	assert_int_equal(at, BASE + 10 * PAGE);
	rig_tlsf_close(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(bad_arguments_are_refused),
	        cmocka_unit_test(everything_can_be_one_piece_and_one_byte_more_cannot),
	        cmocka_unit_test(a_range_may_end_at_the_end_of_the_space),
	        cmocka_unit_test(freeing_what_was_not_handed_out_answers_ENOENT),
	        cmocka_unit_test(neighbours_merge_in_every_order_of_freeing),
	        cmocka_unit_test(random_use_agrees_with_a_map_of_pages_and_refuses_only_what_fits_nowhere),
	        cmocka_unit_test(a_piece_at_a_given_place_is_taken_only_where_all_of_it_is_free),
	        cmocka_unit_test(a_steady_state_calls_no_malloc),
	        cmocka_unit_test(without_heap_memory_nothing_changes_and_nothing_leaks),
	};

	return cmocka_run_group_tests_name("base tlsf", tests, NULL, NULL);
}
