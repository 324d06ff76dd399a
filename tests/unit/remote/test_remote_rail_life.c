/* SPDX-License-Identifier: MIT */
/* How long ends live, what ends a rail, and what is left then; over each provider. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#include "rail_pair.h"
#include "rail_private.h"

enum { COPY = 4096, RAILS = 1000 };

static uint64_t ends_of(struct rail_pair *pair, int side)
{
	struct rig_rails_stats stats;

	rig_rails_stats(pair->rails[side], &stats);
	return stats.ends;
}

/* Waits until no note can reach a slot of the link any more: both sides are done with all its rails. */
static void wait_until_retired(struct rail_pair *pair, int side)
{
	struct rig_deadline deadline = rig_deadline_in(NULL, RAIL_PAIR_NS);
	struct rig_rail_link *link = pair->link[side];
	uint32_t used;

	do {
		used = 0;
		rig_rail_link_lock(link);
		for (uint32_t i = 0; i < link->nslots; i++)
			used += link->slots[i] != NULL;
		rig_rail_link_unlock(link);
		if (rig_deadline_passed(&deadline))
			fail_msg("%u rails are still there", used);
	} while (used);
}

static void a_last_put_on_one_side_ends_the_rail_and_the_other_end_stays(void **state)
{
	struct rig_rails_stats before, after;
	struct rail_pair pair;
	struct rail_ends ends;

	rail_pair_begin_one(&pair, state, COPY, &ends);
	memset(ends.end[0]->outbound.at, 0x33, COPY);
	rail_ready(ends.end[0], 1);
	rail_wait(ends.end[1], RIG_REMOTE_ARRIVED, 1);
	rig_remote_end_put(ends.end[0]);
	assert_int_equal(ends_of(&pair, 0), 0);
	assert_int_equal(ends_of(&pair, 1), 1);
	wait_until_retired(&pair, 0);
	wait_until_retired(&pair, 1);
	/* Held: its memory is there; ended: ready advances and nothing moves. */
	assert_int_equal(((char *)ends.end[1]->inbound.at)[COPY - 1], 0x33);
	rig_rails_stats(pair.rails[1], &before);
	rail_ready(ends.end[1], 4);
	rig_rails_stats(pair.rails[1], &after);
	assert_int_equal(rig_remote_load(ends.end[1], RIG_REMOTE_READY), 4);
	assert_int_equal(rig_remote_load(ends.end[1], RIG_REMOTE_SENT), 0);
	assert_int_equal(after.wakes, before.wakes);
	assert_int_equal(after.writes, before.writes);
	rig_remote_end_put(ends.end[1]);
	assert_int_equal(ends_of(&pair, 1), 0);
	rail_pair_close(&pair);
}

/* The call found the end, and goes on when the link is gone. */
static void a_ready_call_beside_the_links_end_keeps_nothing(void **state)
{
	struct rail_pair pair;
	struct rail_ends ends;
	struct rig_rail_half *half;
	uint64_t before;

	rail_pair_begin_one(&pair, state, COPY, &ends);
	half = rig_registry_get(ends.end[0]->counts.at);
	rig_rail_raise(rig_rail_count(half, RIG_REMOTE_READY), 1);
	rail_pair_close(&pair);
	before = __atomic_load_n(&half->references, __ATOMIC_RELAXED);
	rig_rail_kick(half);
	assert_int_equal(__atomic_load_n(&half->references, __ATOMIC_RELAXED), before);
	rig_rail_half_put(half);
	rail_ends_put(&ends);
}

static void an_end_with_a_second_holder_works_on_after_the_first_put(void **state)
{
	struct rail_pair pair;
	struct rail_ends ends;

	rail_pair_begin_one(&pair, state, COPY, &ends);
	for (int i = 0; i < 2; i++) {
		(void)rig_remote_end_get(ends.end[i]);
		rig_remote_end_put(ends.end[i]);
	}
	rail_ready(ends.end[0], 2);
	assert_int_equal(rail_wait(ends.end[1], RIG_REMOTE_ARRIVED, 2), 2);
	rail_ends_put(&ends);
	wait_until_retired(&pair, 0);
	wait_until_retired(&pair, 1);
	rail_pair_close(&pair);
}

static void after_the_close_of_the_engine_held_ends_are_readable_and_show_no_failure(void **state)
{
	struct rail_pair pair;
	struct rail_ends ends;

	rail_pair_begin_one(&pair, state, COPY, &ends);
	memset(ends.end[0]->outbound.at, 0x44, COPY);
	rail_ready(ends.end[0], 1);
	rail_wait(ends.end[1], RIG_REMOTE_ARRIVED, 1);
	rail_wait(ends.end[0], RIG_REMOTE_SENT, 1);
	rail_pair_close(&pair);
	rail_ready(ends.end[0], 3);
	assert_int_equal(rig_remote_load(ends.end[0], RIG_REMOTE_READY), 3);
	assert_int_equal(rig_remote_load(ends.end[0], RIG_REMOTE_SENT), 1);
	assert_int_equal(rig_remote_load(ends.end[1], RIG_REMOTE_ARRIVED), 1);
	assert_int_equal(rig_remote_load(ends.end[1], RIG_REMOTE_READY), 0);
	assert_int_equal(((char *)ends.end[1]->inbound.at)[COPY - 1], 0x44);
	rail_ends_put(&ends);
}

static void a_stopped_engine_moves_nothing_more_and_raises_no_count(void **state)
{
	struct rig_rails_stats before, after;
	struct rig_rail_blob blob;
	struct rig_remote_transfer t = {0, 0, 8};
	const struct rig_remote_end *end;
	struct rail_pair pair;
	struct rail_ends ends;

	rail_pair_begin_one(&pair, state, COPY, &ends);
	rig_rails_stop(pair.rails[0]);
	rig_rails_fail(pair.rails[0], "too late");
	rig_rails_stats(pair.rails[0], &before);
	rail_ready(ends.end[0], 5);
	rig_rails_stats(pair.rails[0], &after);
	assert_int_equal(after.writes, before.writes);
	assert_int_equal(rig_remote_load(ends.end[0], RIG_REMOTE_READY), 5);
	assert_int_equal(rig_remote_load(ends.end[0], RIG_REMOTE_SENT), 0);
	assert_null(rig_rails_why(pair.rails[0]));
	assert_int_equal(rig_rail_make(pair.link[0], 2, &t, 1, NULL, 0, &blob, &end), -ECONNABORTED);
	rail_ends_put(&ends);
	rail_pair_close(&pair);
}

static void what_was_ready_before_the_join_moves_with_it(void **state)
{
	struct rig_remote_transfer t = {0, 0, 100};
	const struct rig_remote_end *end[2];
	struct rig_rail_blob blob[2];
	struct rail_pair pair;

	rail_pair_begin(&pair, state);
	assert_int_equal(rig_rail_make(pair.link[0], 9, &t, 1, &t, 1, &blob[0], &end[0]), 0);
	memset(end[0]->outbound.at, 0x21, 100);
	rail_ready(end[0], 2);
	assert_int_equal(rig_rail_make(pair.link[1], 9, &t, 1, &t, 1, &blob[1], &end[1]), 0);
	assert_int_equal(rig_rail_join(end[0], &blob[1]), 0);
	/* The other side need not have joined to receive. */
	assert_int_equal(rail_wait(end[1], RIG_REMOTE_ARRIVED, 2), 2);
	assert_int_equal(((char *)end[1]->inbound.at)[99], 0x21);
	assert_int_equal(rig_rail_join(end[1], &blob[0]), 0);
	assert_int_equal(rig_rail_join(end[1], &blob[0]), -EALREADY);
	rail_ready(end[1], 1);
	assert_int_equal(rail_wait(end[0], RIG_REMOTE_ARRIVED, 1), 1);
	rig_remote_end_put(end[0]);
	rig_remote_end_put(end[1]);
	rail_pair_close(&pair);
}

static void ends_of_different_rails_or_transfers_are_not_joined(void **state)
{
	struct rig_remote_transfer t = {0, 0, 100}, u = {0, 4, 100};
	const struct rig_remote_end *end[3];
	struct rig_rail_blob blob[3], bad;
	struct rail_pair pair;

	rail_pair_begin(&pair, state);
	assert_int_equal(rig_rail_make(pair.link[0], 9, &t, 1, NULL, 0, &blob[0], &end[0]), 0);
	assert_int_equal(rig_rail_make(pair.link[1], 8, NULL, 0, &t, 1, &blob[1], &end[1]), 0);
	assert_int_equal(rig_rail_make(pair.link[1], 9, NULL, 0, &u, 1, &blob[2], &end[2]), 0);
	assert_int_equal(rig_rail_join(end[0], &blob[1]), -EPROTO);
	assert_int_equal(rig_rail_join(end[0], &blob[2]), -EPROTO);
	assert_int_equal(rig_rail_join(end[0], &blob[0]), -EPROTO);
	bad = blob[2];
	bad.bytes--;
	assert_int_equal(rig_rail_join(end[0], &bad), -EPROTO);
	assert_null(rig_rails_why(pair.rails[0]));
	for (int i = 0; i < 3; i++)
		rig_remote_end_put(end[i]);
	rail_pair_close(&pair);
}

static void an_end_that_was_never_joined_goes_with_its_engine(void **state)
{
	struct rig_remote_transfer t = {0, 0, 100};
	const struct rig_remote_end *end[2];
	struct rig_rail_blob blob[2];
	struct rail_pair pair;

	rail_pair_begin(&pair, state);
	assert_int_equal(rig_rail_make(pair.link[0], 9, &t, 1, &t, 1, &blob[0], &end[0]), 0);
	assert_int_equal(rig_rail_make(pair.link[1], 9, &t, 1, &t, 1, &blob[1], &end[1]), 0);
	assert_int_equal(rig_rail_join(end[0], &blob[1]), 0);
	rig_remote_end_put(end[1]);
	rail_ready(end[0], 1);
	rail_wait(end[0], RIG_REMOTE_SENT, 1);
	rig_remote_end_put(end[0]);
	wait_until_retired(&pair, 1);
	assert_null(rig_rails_why(pair.rails[1]));
	rail_pair_close(&pair);
}

static void what_no_rail_can_carry_is_refused_with_the_transfer_named(void **state)
{
	struct rig_remote_transfer t = {0, 0, 0};
	const struct rig_remote_end *end;
	struct rig_rail_blob blob;
	struct rail_pair pair;

	rail_pair_begin(&pair, state);
	assert_int_equal(rig_rail_make(pair.link[0], 9, NULL, 0, &t, 1, &blob, &end), -EINVAL);
	assert_non_null(strstr(rig_error(), "receive[0]"));
	t.length = RIG_REMOTE_REACH;
	assert_int_equal(rig_rail_make(pair.link[0], 9, &t, 1, NULL, 0, &blob, &end), -ENOMEM);
	assert_int_equal(ends_of(&pair, 0), 0);
	rail_pair_close(&pair);
}

static void a_thousand_rails_share_a_link(void **state)
{
	static struct rail_ends ends[RAILS];
	struct rig_remote_transfer t = {0, 0, 16};
	struct rail_pair pair;

	rail_pair_begin(&pair, state);
	for (uint64_t i = 0; i < RAILS; i++) {
		assert_int_equal(rail_pair_make(&pair, i, &t, 1, NULL, 0, &ends[i]), 0);
		memcpy(ends[i].end[0]->outbound.at, &i, sizeof(i));
		rail_ready(ends[i].end[0], 1);
	}
	for (uint64_t i = 0; i < RAILS; i++) {
		assert_int_equal(rail_wait(ends[i].end[1], RIG_REMOTE_ARRIVED, 1), 1);
		assert_memory_equal(ends[i].end[1]->inbound.at, &i, sizeof(i));
	}
	for (uint64_t i = 0; i < RAILS; i++)
		rail_ends_put(&ends[i]);
	wait_until_retired(&pair, 0);
	wait_until_retired(&pair, 1);
	rail_pair_close(&pair);
}

/* Slots are used again, and a note of an ended rail never counts for the next one. */
static void rails_come_and_go_on_a_link_while_they_carry(void **state)
{
	struct rig_remote_transfer t = {0, 0, 5000};
	struct rail_pair pair;
	struct rail_ends ends;

	rail_pair_begin(&pair, state);
	for (uint64_t i = 0; i < 300; i++) {
		assert_int_equal(rail_pair_make(&pair, i, &t, 1, &t, 1, &ends), 0);
		for (int side = 0; side < 2; side++)
			rail_ready(ends.end[side], 1 + i % 9);
		if (i % 3)
			rail_wait(ends.end[1], RIG_REMOTE_ARRIVED, 1 + i % 9);
		rail_ends_put(&ends);
	}
	wait_until_retired(&pair, 0);
	wait_until_retired(&pair, 1);
	assert_true(pair.link[0]->nslots < 300);
	assert_null(rig_rails_why(pair.rails[0]));
	assert_null(rig_rails_why(pair.rails[1]));
	rail_pair_close(&pair);
}

static void a_child_of_fork_neither_ends_nor_fails_the_parents_rail(void **state)
{
	struct rig_remote_transfer t = {0, 0, 8};
	const struct rig_remote_end *end;
	struct rig_rail_blob blob;
	struct rail_pair pair;
	struct rail_ends ends;
	int status;
	pid_t pid;

	rail_pair_begin_one(&pair, state, COPY, &ends);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		int code = rig_rail_make(pair.link[0], 2, &t, 1, NULL, 0, &blob, &end);

		rig_rails_fail(pair.rails[0], "the child");
		rail_ends_put(&ends);
		rig_rails_close(pair.rails[0]);
		rig_rails_close(pair.rails[1]);
		_exit(code == -ECONNABORTED ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	rail_ready(ends.end[0], 1);
	assert_int_equal(rail_wait(ends.end[1], RIG_REMOTE_ARRIVED, 1), 1);
	assert_false(rig_rail_over(ends.end[0]));
	rig_remote_end_put(ends.end[1]);
	wait_until_retired(&pair, 0);
	assert_true(rig_rail_over(ends.end[0]));
	rig_remote_end_put(ends.end[0]);
	rail_pair_close(&pair);
}

/* Sockets connected between two ports of this machine that an exec would leave open. */
static unsigned sockets_left_to_programs(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	unsigned n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		struct sockaddr_storage peer;
		socklen_t bytes = sizeof(peer);
		int fd = atoi(entry->d_name);

		if (entry->d_name[0] != '.' && !getpeername(fd, (struct sockaddr *)&peer, &bytes) &&
		        peer.ss_family == AF_INET && !(fcntl(fd, F_GETFD) & FD_CLOEXEC))
			n++;
	}
	(void)closedir(dir);
	return n;
}

static void no_program_that_is_executed_inherits_a_data_connection(void **state)
{
	struct rail_pair pair;

	rail_pair_begin(&pair, state);
	assert_int_equal(sockets_left_to_programs(), 0);
	rail_pair_close(&pair);
}

static bool is_mapped(const void *at)
{
	unsigned char there;

	return !mincore((void *)(uintptr_t)at, 1, &there);
}

/* Where the other side writes by itself, its word that it has ended a rail is no reason to unmap anything. */
static void what_the_other_side_may_still_write_to_stays_mapped_and_is_used_again(void **state)
{
	struct rig_deadline deadline = rig_deadline_in(NULL, RAIL_PAIR_NS);
	bool plain = strcmp(*state, "sealed") != 0;
	struct rig_rails_stats stats;
	struct rail_pair pair;
	struct rail_ends ends;
	uint64_t bytes;
	char *inbound;

	rail_pair_begin_one(&pair, state, 64, &ends);
	bytes = ends.end[1]->inbound.bytes;
	inbound = ends.end[1]->inbound.at;
	memset(inbound, 1, bytes);
	rail_ends_put(&ends);
	wait_until_retired(&pair, 0);
	wait_until_retired(&pair, 1);
	do
		rig_rails_stats(pair.rails[1], &stats);
	while (plain && stats.kept < bytes && !rig_deadline_passed(&deadline));
	assert_true(plain ? stats.kept >= bytes : !stats.kept);
	if (plain) {
		struct rig_remote_transfer t = {0, 0, 64};

		assert_true(is_mapped(inbound));
		assert_int_equal(rail_pair_make(&pair, 2, &t, 1, &t, 1, &ends), 0);
		assert_ptr_equal(ends.end[1]->inbound.at, inbound);
		for (uint64_t i = 0; i < bytes; i++)
			assert_int_equal(inbound[i], 0);
		rig_rails_stats(pair.rails[1], &stats);
		assert_int_equal(stats.kept, 0);
		rail_ready(ends.end[0], 1);
		rail_wait(ends.end[1], RIG_REMOTE_ARRIVED, 1);
		rail_ends_put(&ends);
	}
	rail_pair_close(&pair);
	assert_false(is_mapped(inbound));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        RAIL_TEST(a_ready_call_beside_the_links_end_keeps_nothing),
	        RAIL_TEST(a_last_put_on_one_side_ends_the_rail_and_the_other_end_stays),
	        RAIL_TEST(an_end_with_a_second_holder_works_on_after_the_first_put),
	        RAIL_TEST(after_the_close_of_the_engine_held_ends_are_readable_and_show_no_failure),
	        RAIL_TEST(a_stopped_engine_moves_nothing_more_and_raises_no_count),
	        RAIL_TEST(what_was_ready_before_the_join_moves_with_it),
	        RAIL_TEST(ends_of_different_rails_or_transfers_are_not_joined),
	        RAIL_TEST(an_end_that_was_never_joined_goes_with_its_engine),
	        RAIL_TEST(what_no_rail_can_carry_is_refused_with_the_transfer_named),
	        RAIL_TEST(a_thousand_rails_share_a_link),
	        RAIL_TEST(a_child_of_fork_neither_ends_nor_fails_the_parents_rail),
	        RAIL_TEST(no_program_that_is_executed_inherits_a_data_connection),
	        RAIL_TEST(rails_come_and_go_on_a_link_while_they_carry),
	        RAIL_TEST(what_the_other_side_may_still_write_to_stays_mapped_and_is_used_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
