/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "test.h"

#include "draw.h"
#include "rig_remote_abi.h"

#define REACH (INT64_C(1) << 60)

static int check_send(int64_t src, int64_t dst, int64_t length)
{
	struct rig_remote_transfer t = {src, dst, length};

	return rig_remote_check_transfers(&t, 1, NULL, 0);
}

static void both_directions_empty_is_an_error_and_one_empty_is_fine(void **state)
{
	struct rig_remote_transfer t = {0, 0, 1};

	(void)state;
	assert_int_equal(rig_remote_check_transfers(NULL, 0, NULL, 0), -EINVAL);
	assert_non_null(strstr(rig_error(), "empty"));
	assert_int_equal(rig_remote_check_transfers(&t, 1, NULL, 0), 0);
	assert_int_equal(rig_remote_check_transfers(NULL, 0, &t, 1), 0);
	assert_int_equal(rig_remote_check_transfers(&t, 1, &t, 1), 0);
}

static void a_length_below_one_is_refused(void **state)
{
	(void)state;
	assert_int_equal(check_send(0, 0, 0), -EINVAL);
	assert_int_equal(check_send(0, 0, -1), -EINVAL);
	assert_int_equal(check_send(0, 0, INT64_MIN), -EINVAL);
	assert_non_null(strstr(rig_error(), "length"));
}

static void a_negative_place_is_refused(void **state)
{
	(void)state;
	assert_int_equal(check_send(-1, 0, 1), -EINVAL);
	assert_non_null(strstr(rig_error(), "src"));
	assert_int_equal(check_send(0, -1, 1), -EINVAL);
	assert_non_null(strstr(rig_error(), "dst"));
	assert_int_equal(check_send(INT64_MIN, 0, 1), -EINVAL);
	assert_int_equal(check_send(0, INT64_MIN, INT64_MAX), -EINVAL);
}

static void an_end_at_two_to_the_sixty_passes_and_one_more_does_not(void **state)
{
	(void)state;
	assert_int_equal(check_send(REACH - 1, 0, 1), 0);
	assert_int_equal(check_send(0, REACH - 1, 1), 0);
	assert_int_equal(check_send(0, 0, REACH), 0);
	assert_int_equal(check_send(REACH, 0, 1), -EINVAL);
	assert_int_equal(check_send(0, REACH, 1), -EINVAL);
	assert_int_equal(check_send(0, 0, REACH + 1), -EINVAL);
	assert_int_equal(check_send(1, 0, REACH), -EINVAL);
	assert_int_equal(check_send(0, 1, REACH), -EINVAL);
}

static void sums_near_the_integer_limit_do_not_wrap(void **state)
{
	(void)state;
	assert_int_equal(check_send(INT64_MAX, 0, 1), -EINVAL);
	assert_int_equal(check_send(0, INT64_MAX, INT64_MAX), -EINVAL);
	assert_int_equal(check_send(0, 0, INT64_MAX), -EINVAL);
	assert_int_equal(check_send(INT64_MAX, INT64_MAX, INT64_MAX), -EINVAL);
}

static void the_error_names_the_transfer(void **state)
{
	struct rig_remote_transfer good[3] = {{0, 0, 1}, {0, 0, 1}, {0, 0, 1}};
	struct rig_remote_transfer bad[3] = {{0, 0, 1}, {0, 0, 1}, {0, -7, 1}};

	(void)state;
	assert_int_equal(rig_remote_check_transfers(bad, 3, good, 3), -EINVAL);
	assert_non_null(strstr(rig_error(), "send[2]"));
	assert_non_null(strstr(rig_error(), "-7"));
	assert_int_equal(rig_remote_check_transfers(good, 3, bad, 3), -EINVAL);
	assert_non_null(strstr(rig_error(), "receive[2]"));
}

/* What the words of the header say, once more, in wide arithmetic. */
static bool model_allows(const struct rig_remote_transfer *t)
{
	return t->length >= 1 && t->src >= 0 && t->dst >= 0 && (__int128)t->src + t->length <= REACH &&
	       (__int128)t->dst + t->length <= REACH;
}

static void every_set_of_edge_values_is_judged_as_the_model_does(void **state)
{
	static const int64_t edge[] = {INT64_MIN, -1, 0, 1, REACH - 1, REACH, REACH + 1, INT64_MAX};
	enum { N = sizeof(edge) / sizeof(*edge) };
	int allowed = 0;

	(void)state;
	for (int i = 0; i < N * N * N; i++) {
		struct rig_remote_transfer t = {edge[i % N], edge[i / N % N], edge[i / N / N]};
		struct rig_remote_transfer two[2] = {{0, 0, 1}, t};
		bool model = model_allows(&t);

		allowed += model;
		assert_int_equal(rig_remote_check_transfers(&t, 1, NULL, 0), model ? 0 : -EINVAL);
		assert_int_equal(rig_remote_check_transfers(NULL, 0, two, 2), model ? 0 : -EINVAL);
	}
	assert_in_range(allowed, 5, N * N * N - 1);
}

static void a_copy_is_the_largest_end_rounded_up_to_256(void **state)
{
	struct rig_remote_transfer t[3] = {{10, 0, 5}, {250, 1000, 6}, {0, 3, 7}};

	(void)state;
	assert_int_equal(rig_remote_copy_bytes(NULL, 0, false), 0);
	assert_int_equal(rig_remote_copy_bytes(t, 3, false), 256);
	assert_int_equal(rig_remote_copy_bytes(t, 3, true), 1024);
	t[1].src = 251;
	assert_int_equal(rig_remote_copy_bytes(t, 3, false), 512);
	t[1].dst = 1018;
	assert_int_equal(rig_remote_copy_bytes(t, 3, true), 1024);
	t[1].dst = 1019;
	assert_int_equal(rig_remote_copy_bytes(t, 3, true), 1280);
}

static void copies_of_random_sets_are_what_the_model_has(void **state)
{
	enum { SETS = 20000, MOST = 9, PLACES = 3000 };
	uint64_t random = 7;
	int exact = 0, over = 0;

	(void)state;
	for (int set = 0; set < SETS; set++) {
		struct rig_remote_transfer t[MOST];
		size_t n = 1 + (size_t)test_draw(&random, MOST);
		int64_t end[2] = {0, 0};

		for (size_t i = 0; i < n; i++) {
			t[i] = (struct rig_remote_transfer){test_draw(&random, PLACES),
			        test_draw(&random, PLACES), 1 + test_draw(&random, PLACES)};
			end[0] = t[i].src + t[i].length > end[0] ? t[i].src + t[i].length : end[0];
			end[1] = t[i].dst + t[i].length > end[1] ? t[i].dst + t[i].length : end[1];
		}
		for (int inbound = 0; inbound < 2; inbound++) {
			int64_t bytes = 0;

			while (bytes < end[inbound])
				bytes += 256;
			exact += bytes == end[inbound];
			over += bytes == end[inbound] + 255;
			assert_int_equal(rig_remote_copy_bytes(t, n, inbound), bytes);
		}
	}
	assert_true(exact > 0);
	assert_true(over > 0);
}

/* ---- Ends and rails ---- */

static int released_times;

static void count_release(void *owner)
{
	assert_ptr_equal(owner, &released_times);
	released_times++;
}

static uint64_t readied;

static void note_ready(void *arg, uint64_t c)
{
	(void)arg;
	readied = c;
}

static const struct rig_remote_end *make_end(rig_remote_released_fn released)
{
	static _Alignas(4096) char counts[4096];
	const struct rig_remote_end *end;
	struct rig_remote_end fields = {
	        .counts = {counts, sizeof(counts)}, .ready = note_ready, .ready_fn = note_ready};

	assert_int_equal(rig_remote_end_make(&fields, released, &released_times, &end), 0);
	released_times = 0;
	return end;
}

static void an_end_is_what_its_provider_said(void **state)
{
	const struct rig_remote_end *end = make_end(NULL);

	(void)state;
	assert_int_equal(end->counts.bytes, 4096);
	assert_null(end->outbound.at);
	end->ready(end->ready_arg, 5);
	assert_int_equal(readied, 5);
	end->ready_fn(end->counts.at, 6);
	assert_int_equal(readied, 6);
	rig_remote_end_put(end);
}

static void the_provider_is_told_once_at_the_last_put_of_an_end(void **state)
{
	const struct rig_remote_end *end = make_end(count_release);

	(void)state;
	assert_ptr_equal(rig_remote_end_get(end), end);
	rig_remote_end_put(end);
	assert_int_equal(released_times, 0);
	rig_remote_end_put(end);
	assert_int_equal(released_times, 1);
}

static void a_rail_keeps_its_local_end(void **state)
{
	const struct rig_remote_end *end = make_end(count_release);
	const struct rig_remote_rail *rail;

	(void)state;
	assert_int_equal(rig_remote_rail_make(7, end, NULL, NULL, &rail), 0);
	assert_int_equal(rail->id, 7);
	assert_ptr_equal(rail->local, end);
	rig_remote_end_put(end);
	assert_int_equal(released_times, 0);
	assert_ptr_equal(rig_remote_rail_get(rail), rail);
	rig_remote_rail_put(rail);
	assert_int_equal(released_times, 0);
	rig_remote_rail_put(rail);
	assert_int_equal(released_times, 1);
}

static void an_end_lives_on_without_its_rail(void **state)
{
	const struct rig_remote_end *end = make_end(count_release);
	const struct rig_remote_rail *rail;

	(void)state;
	assert_int_equal(rig_remote_rail_make(7, end, NULL, NULL, &rail), 0);
	rig_remote_rail_put(rail);
	assert_int_equal(released_times, 0);
	assert_int_equal(end->counts.bytes, 4096);
	rig_remote_end_put(end);
	assert_int_equal(released_times, 1);
}

static void a_rail_without_a_local_end_is_one_too(void **state)
{
	const struct rig_remote_rail *rail;

	(void)state;
	released_times = 0;
	assert_int_equal(rig_remote_rail_make(8, NULL, count_release, &released_times, &rail), 0);
	assert_null(rail->local);
	rig_remote_rail_put(rail);
	assert_int_equal(released_times, 1);
	rig_remote_rail_put(NULL);
	rig_remote_end_put(NULL);
	assert_null(rig_remote_end_get(NULL));
	assert_null(rig_remote_rail_get(NULL));
}

static void an_end_without_counts_or_ready_is_refused(void **state)
{
	static char counts[RIG_REMOTE_COUNTS_BYTES];
	const struct rig_remote_end *end;
	struct rig_remote_end fields = {
	        .counts = {counts, sizeof(counts) - 1}, .ready = note_ready, .ready_fn = note_ready};

	(void)state;
	assert_int_equal(rig_remote_end_make(&fields, NULL, NULL, &end), -EINVAL);
	fields.counts.bytes++;
	fields.ready = NULL;
	assert_int_equal(rig_remote_end_make(&fields, NULL, NULL, &end), -EINVAL);
	fields.ready = note_ready;
	fields.ready_fn = NULL;
	assert_int_equal(rig_remote_end_make(&fields, NULL, NULL, &end), -EINVAL);
	fields.ready_fn = note_ready;
	assert_int_equal(rig_remote_end_make(&fields, NULL, NULL, &end), 0);
	rig_remote_end_put(end);
}

static void the_counts_are_at_0_128_and_256_each_alone_in_its_line(void **state)
{
	(void)state;
	assert_int_equal(RIG_REMOTE_READY, 0);
	assert_int_equal(RIG_REMOTE_SENT, 128);
	assert_int_equal(RIG_REMOTE_ARRIVED, 256);
	assert_true(RIG_REMOTE_COUNTS_BYTES >= 320);
	assert_true(RIG_RAIL_FAILED == INT64_MAX);
}

static void a_declared_record_is_found_under_the_key(void **state)
{
	struct rig_remote_record record = {
	        .version = RIG_REMOTE_ABI_VERSION, .kind = RIG_REMOTE_DEVICE, .u.device = {.id = 3}};
	struct rig_capability c = rig_remote_declare(&record);

	(void)state;
	assert_ptr_equal(c.key, &rig_remote_key);
	assert_ptr_equal(c.record, &record);
	assert_non_null(rig_remote_key.name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(both_directions_empty_is_an_error_and_one_empty_is_fine),
	        cmocka_unit_test(a_length_below_one_is_refused),
	        cmocka_unit_test(a_negative_place_is_refused),
	        cmocka_unit_test(an_end_at_two_to_the_sixty_passes_and_one_more_does_not),
	        cmocka_unit_test(sums_near_the_integer_limit_do_not_wrap),
	        cmocka_unit_test(the_error_names_the_transfer),
	        cmocka_unit_test(every_set_of_edge_values_is_judged_as_the_model_does),
	        cmocka_unit_test(a_copy_is_the_largest_end_rounded_up_to_256),
	        cmocka_unit_test(copies_of_random_sets_are_what_the_model_has),
	        cmocka_unit_test(an_end_is_what_its_provider_said),
	        cmocka_unit_test(the_provider_is_told_once_at_the_last_put_of_an_end),
	        cmocka_unit_test(a_rail_keeps_its_local_end),
	        cmocka_unit_test(an_end_lives_on_without_its_rail),
	        cmocka_unit_test(a_rail_without_a_local_end_is_one_too),
	        cmocka_unit_test(an_end_without_counts_or_ready_is_refused),
	        cmocka_unit_test(the_counts_are_at_0_128_and_256_each_alone_in_its_line),
	        cmocka_unit_test(a_declared_record_is_found_under_the_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
