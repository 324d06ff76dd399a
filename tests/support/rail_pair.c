/* SPDX-License-Identifier: MIT */
#include "rail_pair.h"
#include "rail_private.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "test.h"

struct finishing {
	struct rig_rail_link *link;
	int code;
};

static void *finish(void *arg)
{
	struct finishing *f = arg;
	struct rig_deadline deadline = rig_deadline_in(NULL, RAIL_PAIR_NS);

	f->code = rig_rail_link_finish(f->link, NULL, &deadline);
	return NULL;
}

static int finish_both(struct rig_rail_link *link[2], const struct rig_rail_blob *answer)
{
	struct finishing other = {link[1], 0};
	struct rig_deadline deadline = rig_deadline_in(NULL, RAIL_PAIR_NS);
	pthread_t thread;
	int code;

	if (pthread_create(&thread, NULL, finish, &other))
		return -EAGAIN;
	code = rig_rail_link_finish(link[0], answer, &deadline);
	(void)pthread_join(thread, NULL);
	return code ? code : other.code;
}

int rail_pair_link(struct rig_rails *a, struct rig_rails *b, struct rig_rail_link *link[2])
{
	struct rig_rail_blob offer, answer;
	int code = rig_rail_link_offer(a, "the second", &offer, &link[0]);

	link[1] = NULL;
	if (code)
		return code;
	code = rig_rail_link_accept(b, "the first", &offer, &answer, &link[1]);
	if (!code)
		code = finish_both(link, &answer);
	if (code) {
		rig_rail_link_put(link[0]);
		rig_rail_link_put(link[1]);
	}
	return code;
}

int rail_pair_open_two(struct rail_pair *pair, const struct rig_rails_options options[2])
{
	int code;

	*pair = (struct rail_pair){{NULL, NULL}, {NULL, NULL}};
	code = rig_rails_open(&options[0], &pair->rails[0]);
	if (!code)
		code = rig_rails_open(&options[1], &pair->rails[1]);
	if (!code)
		code = rail_pair_link(pair->rails[0], pair->rails[1], pair->link);
	if (code)
		rail_pair_close(pair);
	return code;
}

int rail_pair_open(struct rail_pair *pair, const struct rig_rails_options *options)
{
	struct rig_rails_options both[2] = {*options, *options};

	return rail_pair_open_two(pair, both);
}

/* Over shm both sides map one memory here, as two processes would not: it goes with the first close. */
static void await_threads(struct rig_rails *rails)
{
	for (struct rig_rail_link *link = rails ? rails->links : NULL; link; link = link->next)
		if (link->has_thread) {
			rig_rail_link_quit(link);
			(void)pthread_join(link->thread, NULL);
			link->has_thread = false;
		}
}

void rail_pair_close(struct rail_pair *pair)
{
	for (int i = 0; i < 2; i++)
		if (pair->rails[i])
			rig_rails_stop(pair->rails[i]);
	for (int i = 0; i < 2; i++)
		await_threads(pair->rails[i]);
	for (int i = 0; i < 2; i++)
		rig_rails_close(pair->rails[i]);
}

int rail_pair_make(struct rail_pair *pair, uint64_t id, const struct rig_remote_transfer *send, size_t nsend,
        const struct rig_remote_transfer *receive, size_t nreceive, struct rail_ends *ends)
{
	struct rig_rail_blob blob[2];
	int code = rig_rail_make(pair->link[0], id, send, nsend, receive, nreceive, &blob[0], &ends->end[0]);

	if (code)
		return code;
	code = rig_rail_make(pair->link[1], id, receive, nreceive, send, nsend, &blob[1], &ends->end[1]);
	if (code) {
		rig_remote_end_put(ends->end[0]);
		return code;
	}
	code = rig_rail_join(ends->end[0], &blob[1]);
	if (!code)
		code = rig_rail_join(ends->end[1], &blob[0]);
	if (code)
		rail_ends_put(ends);
	return code;
}

void rail_ends_put(struct rail_ends *ends)
{
	for (int i = 0; i < 2; i++) {
		rig_remote_end_put(ends->end[i]);
		ends->end[i] = NULL;
	}
}

uint64_t rail_wait(const struct rig_remote_end *end, enum rig_remote_count count, uint64_t c)
{
	struct rig_deadline deadline = rig_deadline_in(NULL, RAIL_PAIR_NS);
	uint64_t now = rig_remote_load(end, count);

	while (now < c) {
		if (rig_deadline_passed(&deadline))
			fail_msg("the count at byte %d is %llu, and %llu was waited for", (int)count,
			        (unsigned long long)now, (unsigned long long)c);
		(void)sched_yield();
		now = rig_remote_load(end, count);
	}
	return now;
}

void rail_ready(const struct rig_remote_end *end, uint64_t c)
{
	end->ready(end->ready_arg, c);
}

void rail_pair_begin(struct rail_pair *pair, void **state)
{
	struct rig_rails_options options = {.provider = *state, .spin_ns = UINT64_MAX};
	int code = rail_pair_open(pair, &options);

	if (code == -ENODEV) {
		print_message("no %s here: %s\n", options.provider, rig_error());
		skip();
	}
	if (code)
		fail_msg("no pair of rail engines: %s", rig_error());
}

void rail_pair_begin_one(struct rail_pair *pair, void **state, int64_t length, struct rail_ends *ends)
{
	struct rig_remote_transfer t = {0, 0, length};

	rail_pair_begin(pair, state);
	if (rail_pair_make(pair, 1, &t, 1, &t, 1, ends))
		fail_msg("no rail: %s", rig_error());
}
