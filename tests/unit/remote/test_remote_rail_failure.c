/* SPDX-License-Identifier: MIT */
/* What a failed job leaves, over each provider; and another process as the other machine. */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#include "rail_pair.h"
#include "rail_private.h"

enum { COPY = 4096 };

static const enum rig_remote_count counts[] = {RIG_REMOTE_READY, RIG_REMOTE_SENT, RIG_REMOTE_ARRIVED};

static void assert_failed(const struct rig_remote_end *end)
{
	for (int i = 0; i < 3; i++)
		assert_true(rig_remote_load(end, counts[i]) == RIG_RAIL_FAILED);
}

static unsigned told;
static char told_why[256];

static void note_failure(void *arg, const char *why)
{
	(void)arg;
	(void)snprintf(told_why, sizeof(told_why), "%s", why);
	(void)__atomic_add_fetch(&told, 1, __ATOMIC_ACQ_REL);
}

static void open_watched(struct rail_pair *pair, void **state)
{
	struct rig_rails_options options[2] = {
	        {.provider = *state, .failed = note_failure, .spin_ns = UINT64_MAX},
	        {.provider = *state, .spin_ns = UINT64_MAX}};
	int code = rail_pair_open_two(pair, options);

	__atomic_store_n(&told, 0, __ATOMIC_RELEASE);
	if (code == -ENODEV)
		skip();
	assert_int_equal(code, 0);
}

static void a_failure_is_in_every_count_of_every_end_and_stays(void **state)
{
	struct rig_remote_transfer t = {0, 0, COPY};
	struct rail_pair pair;
	struct rail_ends ends[3];
	const struct rig_remote_end *late;
	struct rig_rail_blob blob;

	open_watched(&pair, state);
	for (int i = 0; i < 3; i++)
		assert_int_equal(rail_pair_make(&pair, (uint64_t)i, &t, 1, &t, 1, &ends[i]), 0);
	rail_ready(ends[0].end[0], 3);
	rail_wait(ends[0].end[1], RIG_REMOTE_ARRIVED, 3);
	/* One whose other end is gone is still in use here. */
	rig_remote_end_put(ends[2].end[1]);
	rig_rails_fail(pair.rails[0], "the first cause");
	rig_rails_fail(pair.rails[0], "another");
	for (int i = 0; i < 3; i++)
		assert_failed(ends[i].end[0]);
	assert_int_equal(told, 1);
	assert_string_equal(told_why, "the first cause");
	assert_string_equal(rig_rails_why(pair.rails[0]), "the first cause");
	rail_ready(ends[0].end[0], 5);
	rail_ready(ends[0].end[1], 5);
	assert_failed(ends[0].end[0]);
	assert_int_equal(rig_rail_make(pair.link[0], 9, &t, 1, NULL, 0, &blob, &late), -ECONNABORTED);
	assert_non_null(strstr(rig_error(), "the first cause"));
	/* The other engine has heard of nothing, and has nothing to show. */
	assert_true(rig_remote_load(ends[0].end[1], RIG_REMOTE_ARRIVED) == 3);
	rig_rails_fail(pair.rails[1], "the same job");
	assert_failed(ends[0].end[1]);
	for (int i = 0; i < 3; i++)
		for (int side = 0; side < (i == 2 ? 1 : 2); side++)
			rig_remote_end_put(ends[i].end[side]);
	rail_pair_close(&pair);
}

struct waiter {
	const struct rig_remote_end *end;
	enum rig_remote_count count;
	uint64_t saw;
};

static void *wait_for_much(void *arg)
{
	struct waiter *w = arg;

	w->saw = rail_wait(w->end, w->count, 1000000);
	return NULL;
}

static void waits_for_every_count_end_with_the_failure(void **state)
{
	struct rail_pair pair;
	struct rail_ends ends;
	pthread_t threads[6];
	struct waiter waiters[6];

	rail_pair_begin_one(&pair, state, COPY, &ends);
	for (int i = 0; i < 6; i++) {
		waiters[i] = (struct waiter){ends.end[i / 3], counts[i % 3], 0};
		assert_int_equal(pthread_create(&threads[i], NULL, wait_for_much, &waiters[i]), 0);
	}
	rail_ready(ends.end[0], 100);
	for (int i = 0; i < 2; i++)
		rig_rails_fail(pair.rails[i], "enough");
	for (int i = 0; i < 6; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_true(waiters[i].saw == RIG_RAIL_FAILED);
	}
	rail_ends_put(&ends);
	rail_pair_close(&pair);
}

static void a_connection_that_breaks_fails_the_other_side(void **state)
{
	struct rig_remote_transfer t = {0, 0, COPY};
	struct rail_pair pair;
	struct rail_ends ends;

	open_watched(&pair, state);
	assert_int_equal(rail_pair_make(&pair, 1, &t, 1, &t, 1, &ends), 0);
	rail_ready(ends.end[0], 1);
	rail_wait(ends.end[1], RIG_REMOTE_ARRIVED, 1);
	rig_rails_close(pair.rails[1]);
	pair.rails[1] = NULL;
	rail_wait(ends.end[0], RIG_REMOTE_ARRIVED, RIG_RAIL_FAILED);
	rail_wait(ends.end[0], RIG_REMOTE_SENT, RIG_RAIL_FAILED);
	rail_wait(ends.end[0], RIG_REMOTE_READY, RIG_RAIL_FAILED);
	assert_non_null(strstr(rig_rails_why(pair.rails[0]), "the second"));
	assert_true(rig_remote_load(ends.end[1], RIG_REMOTE_ARRIVED) == 1);
	rail_ends_put(&ends);
	rail_pair_close(&pair);
	assert_int_equal(told, 1);
}

/* What a peer that breaks the protocol could send. */
static void send_note(struct rail_pair *pair, uint32_t note)
{
	struct rig_rail_link *link = pair->link[1];
	int code;

	rig_rail_link_lock(link);
	do
		code = rig_conn_write(link->conn, link->letter, &link->letter_memory, sizeof(link->letter),
		        &link->peer_mailbox, 0, note, &link->free_ops->op);
	while (code == -EAGAIN);
	assert_true(code >= 0);
	link->wrote = true;
	rig_rail_link_serve(link);
}

static void a_note_that_no_end_waits_for_fails_the_job_and_moves_no_count(void **state)
{
	static const uint32_t notes[] = {
	        7u << RIG_NOTE_SLOT | 1, /* no such end */
	        UINT32_MAX,              /* nor this */
	        0,                       /* a count that has been */
	        2u + RIG_FLOW_WINDOW,    /* one too far ahead */
	};

	for (size_t i = 0; i < sizeof(notes) / sizeof(*notes); i++) {
		struct rail_pair pair;
		struct rail_ends ends;

		rail_pair_begin_one(&pair, state, COPY, &ends);
		send_note(&pair, notes[i]);
		rail_wait(ends.end[0], RIG_REMOTE_ARRIVED, RIG_RAIL_FAILED);
		assert_true(rig_remote_load(ends.end[0], RIG_REMOTE_READY) == RIG_RAIL_FAILED);
		assert_non_null(rig_rails_why(pair.rails[0]));
		rail_ends_put(&ends);
		rail_pair_close(&pair);
	}
}

/* ---- Another process ---- */

/* Two-way, whole blobs. */
static void send_blob(int fd, const struct rig_rail_blob *blob)
{
	assert_int_equal(send(fd, blob, sizeof(*blob), MSG_NOSIGNAL), sizeof(*blob));
}

static void receive_blob(int fd, struct rig_rail_blob *blob)
{
	assert_int_equal(recv(fd, blob, sizeof(*blob), MSG_WAITALL), sizeof(*blob));
}

static const struct rig_remote_transfer both_ways[2] = {{0, 100, 3000}, {3000, 5000, 70000}};

/* The other machine: sends back what comes. Never returns. */
static void be_the_other(int fd, const char *provider)
{
	struct rig_rails_options options = {.provider = provider, .spin_ns = UINT64_MAX};
	struct rig_deadline deadline = rig_deadline_in(NULL, RAIL_PAIR_NS);
	const struct rig_remote_end *end;
	struct rig_rail_blob blob, mine;
	struct rig_rail_link *link;
	struct rig_rails *rails;

	if (rig_rails_open(&options, &rails))
		_exit(3);
	receive_blob(fd, &blob);
	if (rig_rail_link_accept(rails, "parent", &blob, &mine, &link))
		_exit(4);
	send_blob(fd, &mine);
	if (rig_rail_link_finish(link, NULL, &deadline))
		_exit(5);
	if (rig_rail_make(link, 1, both_ways, 2, both_ways, 2, &mine, &end))
		_exit(6);
	receive_blob(fd, &blob);
	send_blob(fd, &mine);
	if (rig_rail_join(end, &blob))
		_exit(7);
	for (uint64_t c = 1;; c++) {
		const struct rig_remote_transfer *t = &both_ways[(c - 1) % 2];
		size_t copy = (c - 1) / 2 % 2;

		while (rig_remote_load(end, RIG_REMOTE_ARRIVED) < c)
			(void)usleep(10);
		memcpy((char *)end->outbound.at + copy * end->outbound.bytes / 2 + t->src,
		        (char *)end->inbound.at + copy * end->inbound.bytes / 2 + t->dst, (size_t)t->length);
		rail_ready(end, c);
	}
}

static pid_t start_other(int *fd, const char *provider)
{
	int fds[2];
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		(void)close(fds[0]);
		be_the_other(fds[1], provider);
	}
	(void)close(fds[1]);
	*fd = fds[0];
	return pid;
}

static const struct rig_remote_end *join_other(int fd, struct rig_rails *rails)
{
	struct rig_deadline deadline = rig_deadline_in(NULL, RAIL_PAIR_NS);
	const struct rig_remote_end *end;
	struct rig_rail_blob blob, mine;
	struct rig_rail_link *link;

	assert_int_equal(rig_rail_link_offer(rails, "child", &mine, &link), 0);
	send_blob(fd, &mine);
	receive_blob(fd, &blob);
	assert_int_equal(rig_rail_link_finish(link, &blob, &deadline), 0);
	assert_int_equal(rig_rail_make(link, 1, both_ways, 2, both_ways, 2, &mine, &end), 0);
	send_blob(fd, &mine);
	receive_blob(fd, &blob);
	assert_int_equal(rig_rail_join(end, &blob), 0);
	return end;
}

static void exchange(const struct rig_remote_end *end, uint64_t from, uint64_t to)
{
	for (uint64_t c = from; c <= to; c++) {
		const struct rig_remote_transfer *t = &both_ways[(c - 1) % 2];
		size_t copy = (c - 1) / 2 % 2;
		char *out = (char *)end->outbound.at + copy * end->outbound.bytes / 2 + t->src;
		char *in = (char *)end->inbound.at + copy * end->inbound.bytes / 2 + t->dst;

		memset(out, (int)(c % 251), (size_t)t->length);
		rail_ready(end, c);
		assert_true(rail_wait(end, RIG_REMOTE_ARRIVED, c) == c);
		assert_true((unsigned char)in[0] == c % 251);
		assert_memory_equal(in, out, (size_t)t->length);
	}
}

/* Names that a process left: the provider has them begin with its number. Others' may come and go
   meanwhile. */
static unsigned names_of(pid_t pid)
{
	DIR *dir = opendir("/dev/shm");
	struct dirent *entry;
	unsigned n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		n += strtol(entry->d_name, NULL, 10) == pid;
	(void)closedir(dir);
	return n;
}

static void blocks_go_to_another_process_and_back_and_its_death_leaves_no_wait_and_no_name(void **state)
{
	struct rig_rails_options options = {.provider = *state, .spin_ns = UINT64_MAX};
	const struct rig_remote_end *end;
	struct rig_rails *rails;
	int fd, status;
	pid_t pid = start_other(&fd, *state);

	if (rig_rails_open(&options, &rails) == -ENODEV)
		skip();
	end = join_other(fd, rails);
	exchange(end, 1, 300);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	/* Where the provider does not notice, the control channel does. */
	if (!strcmp(options.provider, "shm"))
		rig_rails_fail(rails, "the other machine is gone");
	rail_wait(end, RIG_REMOTE_ARRIVED, RIG_RAIL_FAILED);
	rail_wait(end, RIG_REMOTE_READY, RIG_RAIL_FAILED);
	rail_wait(end, RIG_REMOTE_SENT, RIG_RAIL_FAILED);
	rig_remote_end_put(end);
	rig_rails_close(rails);
	(void)close(fd);
	assert_int_equal(names_of(pid), 0);
	assert_int_equal(names_of(getpid()), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        RAIL_TEST(blocks_go_to_another_process_and_back_and_its_death_leaves_no_wait_and_no_name),
	        RAIL_TEST(a_failure_is_in_every_count_of_every_end_and_stays),
	        RAIL_TEST(waits_for_every_count_end_with_the_failure),
	        cmocka_unit_test_prestate(
	                a_connection_that_breaks_fails_the_other_side, (void *)(uintptr_t) "tcp"),
	        RAIL_TEST(a_note_that_no_end_waits_for_fails_the_job_and_moves_no_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
