/* SPDX-License-Identifier: MIT */
/* Large copies between two agents, both in this process, and the library's controller: what goes where, and
   what is left of those that are cut off by the end of a device, of a connection or of the job. */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent_inside.h"
#include "agent_parcel.h"
#include "agent_peer.h"
#include "clock.h"
#include "rig_remote.h"
#include "system_device.h"

enum { AGENTS = 2, LARGE = 3000001, SMALL = 5000, COPIES = 3, WAIT_S = 60, KEY_BYTE = 7, WORDS = 200 };

struct world {
	struct inside *in[AGENTS];
	struct rig_remote_job *job;
	struct rig_device *d[AGENTS];
};

static char key_path[] = "/tmp/rig-test-key-XXXXXX";

/* The insides' key. */
static int make_key(void **state)
{
	char line[80] = "rig-key-1 ";
	int fd = mkstemp(key_path), i;

	(void)state;
	for (i = 0; i < 32; i++)
		(void)sprintf(line + strlen(line), "%02x", KEY_BYTE);
	(void)strcat(line, "\n");
	return fd < 0 || write(fd, line, strlen(line)) != (ssize_t)strlen(line) || close(fd);
}

static int remove_key(void **state)
{
	(void)state;
	return unlink(key_path);
}

static struct rig_device *open_device(struct world *w, int i)
{
	struct rig_device *d;
	char name[RIG_RMT_NAME + 8];

	(void)snprintf(name, sizeof(name), "P0@%s", w->in[i]->name);
	sys_ok(rig_remote_open(w->job, name, &d));
	return d;
}

static void join(struct world *w, bool no_bulk_rails)
{
	const struct rig_remote_options options = {
	        .version = RIG_EDGE_VERSION, .no_bulk_rails = no_bulk_rails};
	const char *names[AGENTS] = {w->in[0]->name, w->in[1]->name};

	sys_ok(rig_remote_connect(names, AGENTS, key_path, &options, &w->job));
	for (int i = 0; i < AGENTS; i++)
		w->d[i] = open_device(w, i);
}

static const char *const plain[INSIDE_DRIVERS] = {"", ""};

/* With these drivers at agent 0. */
static void begin_with(struct world *w, const char *const *drivers, bool no_bulk_rails)
{
	for (int i = 0; i < AGENTS; i++) {
		w->in[i] = inside_start(i ? plain : drivers, NULL);
		/* The words are the process's: the first are its runtime's. */
		memset(w->in[i]->agent.words, true, (size_t)(1 + i) * WORDS);
	}
	join(w, no_bulk_rails);
}

static void begin(struct world *w, bool no_bulk_rails)
{
	begin_with(w, plain, no_bulk_rails);
}

static void leave(struct world *w)
{
	for (int i = 0; i < AGENTS; i++)
		if (w->d[i])
			sys_close(w->d[i]);
	rig_remote_close(w->job);
}

/* With nothing of any driver's memory left. */
static void end(struct world *w)
{
	leave(w);
	for (int i = 0; i < AGENTS; i++)
		inside_end(w->in[i]);
}

/* ---- What an agent has of the job ---- */

struct holds {
	unsigned fetches, claims, claimed, given_up, flying;
	uint64_t sent; /* to other agents */
};

static struct holds look(struct inside *in)
{
	struct holds h = {0};
	struct session *s;

	(void)pthread_mutex_lock(&in->agent.lock);
	s = in->agent.sessions;
	if (s) {
		(void)pthread_mutex_lock(&s->lock);
		for (struct fetch *f = s->fetches; f; f = f->next)
			h.fetches++;
		for (struct claim *c = s->claims; c; c = c->next) {
			h.claims++;
			h.claimed += c->claimed;
			h.given_up += c->given_up;
			h.flying += c->flying;
		}
		for (uint32_t i = 0; i < s->npeers; i++) {
			uint64_t sent, received;

			rig_rmt_chan_counts(s->peers[i].chan, &sent, &received);
			h.sent += sent;
		}
		(void)pthread_mutex_unlock(&s->lock);
	}
	(void)pthread_mutex_unlock(&in->agent.lock);
	return h;
}

#define AWAIT(condition)                                                                                     \
	do {                                                                                                 \
		struct rig_deadline deadline_ = rig_deadline_in(NULL, WAIT_S * RIG_NS_PER_S);                \
		while (!(condition)) {                                                                       \
			if (rig_deadline_passed(&deadline_))                                                 \
				fail_msg("%s does not come to pass", #condition);                            \
			(void)sched_yield();                                                                 \
		}                                                                                            \
	} while (0)

static void assert_nothing_is_held(struct world *w)
{
	for (int i = 0; i < AGENTS; i++)
		AWAIT(look(w->in[i]).claims == 0 && look(w->in[i]).fetches == 0);
}

/* ---- Copies ---- */

static void fill(struct rig_buffer *b, uint8_t *bytes, uint64_t n, uint64_t seed)
{
	sys_fill(bytes, n, seed);
	sys_ok(rig_buffer_write(b, 0, bytes, n));
}

/* One from device 0's memory to device 1's that is handed over and not waited for. */
struct copy {
	struct rig_buffer *from, *lent, *to;
	struct sys_launch launch;
	struct rig_point point;
};

static void copy_begin(struct world *w, struct copy *c, uint64_t bytes)
{
	c->from = sys_buffer(w->d[0], RIG_DEVICE, bytes);
	c->to = sys_buffer(w->d[1], RIG_DEVICE, bytes);
	sys_ok(rig_buffer_borrow(w->d[1], c->from, &c->lent));
	sys_copy_make(&c->launch, c->lent, 0, c->to, 0, bytes);
	c->point = sys_launch_submit(&c->launch);
}

static void copy_end(struct copy *c)
{
	sys_launch_end(&c->launch);
	rig_buffer_put(c->lent);
	rig_buffer_put(c->from);
	rig_buffer_put(c->to);
}

/* There, and back to the program. */
static void copies_are_right(struct world *w, uint64_t bytes)
{
	struct rig_buffer *from = sys_buffer(w->d[0], RIG_DEVICE, bytes);
	struct rig_buffer *to = sys_buffer(w->d[1], RIG_DEVICE, bytes);
	uint8_t *sent = malloc(bytes), *got = calloc(1, bytes);

	fill(from, sent, bytes, bytes);
	sys_ok(rig_buffer_copy(to, 0, from, 0, bytes));
	sys_ok(rig_buffer_read(to, 0, got, bytes));
	assert_memory_equal(sent, got, bytes);
	free(sent);
	free(got);
	rig_buffer_put(from);
	rig_buffer_put(to);
}

static uint64_t sent_by_a_copy(struct world *w, uint64_t bytes)
{
	uint64_t before = look(w->in[0]).sent + look(w->in[1]).sent;

	copies_are_right(w, bytes);
	return look(w->in[0]).sent + look(w->in[1]).sent - before;
}

static void large_copies_between_agents_go_by_parcels_and_others_by_their_connection(void **state)
{
	struct world w;

	(void)state;
	begin(&w, false);
	copies_are_right(&w, LARGE); /* makes the link */
	assert_true(sent_by_a_copy(&w, LARGE) < LARGE / 10);
	assert_true(sent_by_a_copy(&w, RIG_RMT_PARCEL_FROM) < RIG_RMT_PARCEL_FROM / 10);
	assert_true(sent_by_a_copy(&w, RIG_RMT_PARCEL_FROM - 1) >= RIG_RMT_PARCEL_FROM - 1);
	assert_nothing_is_held(&w);
	leave(&w);
	join(&w, true);
	assert_true(sent_by_a_copy(&w, LARGE) >= LARGE);
	assert_nothing_is_held(&w);
	end(&w);
}

/* ---- Rows, and everything in one submission ---- */

enum { ROW = 7001, PITCH = 8192, ROWS = 100, SLOTS = 5 };

/* Slots: 0 memory of device 0, 1 of this process, 2 of device 1; to 3 of device 1, 4 of this process. */
static struct rig_work part(uint32_t to, uint64_t to_at, uint32_t from, uint64_t from_at, uint64_t bytes)
{
	return (struct rig_work){.kind = RIG_COPY,
	        .u.copy = {.dst = {.slot = to, .offset = to_at},
	                .src = {.slot = from, .offset = from_at},
	                .row_bytes = bytes,
	                .rows = 1}};
}

static void parts_of_one_submission_go_each_its_own_way(void **state)
{
	enum { ALL = 4 << 20, A = 1000003, B = 700001, C = 3001, D = 4099 };
	struct rig_work parts[] = {
	        part(3, 0, 0, 5, A),              /* large, of another machine's */
	        part(3, A, 1, 9, B),              /* large, from here */
	        part(3, A + B, 0, A + 77, C),     /* small, of another machine's */
	        part(3, A + B + C, 1, B + 99, D), /* small, from here */
	        part(4, 1, 2, 3, A),              /* large, to here */
	        part(4, A + 1, 2, A + 10, C),     /* small, to here */
	        part(4, 2 * A, 2, 2 * A, B),      /* large, to here */
	        {.kind = RIG_COPY,                /* rows of another machine's, large together */
	                .u.copy = {.dst = {.slot = 3, .offset = 2 << 20, .pitch = PITCH},
	                        .src = {.slot = 0, .offset = 2 << 20, .pitch = ROW + 13},
	                        .row_bytes = ROW,
	                        .rows = ROWS}},
	        {.kind = RIG_COPY, /* rows to here */
	                .u.copy = {.dst = {.slot = 4, .offset = 3 << 20, .pitch = PITCH},
	                        .src = {.slot = 2, .offset = 1, .pitch = ROW},
	                        .row_bytes = ROW,
	                        .rows = ROWS}},
	};
	const struct rig_description description = {.version = RIG_EDGE_VERSION,
	        .parts = parts,
	        .nparts = sizeof(parts) / sizeof(*parts),
	        .reads = 3,
	        .writes = 2};
	uint8_t *far = malloc(ALL), *here = aligned_alloc(4096, ALL), *near = malloc(ALL), *got = malloc(ALL),
	        *out = aligned_alloc(4096, ALL);
	struct rig_buffer *far_b, *lent, *here_b, *near_b, *to, *out_b;
	struct rig_submission *s;
	struct rig_run_args *run;
	struct rig_point point;
	struct world w;

	(void)state;
	begin(&w, false);
	far_b = sys_buffer(w.d[0], RIG_DEVICE, ALL);
	near_b = sys_buffer(w.d[1], RIG_DEVICE, ALL);
	to = sys_buffer(w.d[1], RIG_DEVICE, ALL);
	fill(far_b, far, ALL, 1);
	fill(near_b, near, ALL, 2);
	sys_fill(here, ALL, 3);
	memset(out, 0, ALL);
	sys_ok(rig_buffer_borrow(w.d[1], far_b, &lent));
	sys_ok(rig_buffer_of_host(w.d[1], here, ALL, &here_b));
	sys_ok(rig_buffer_of_host(w.d[1], out, ALL, &out_b));
	sys_ok(rig_submission_make(w.d[1], &description, &s));
	sys_ok(rig_run_make(s, &run));
	sys_ok(rig_run_buffer(run, 0, lent));
	sys_ok(rig_run_buffer(run, 1, here_b));
	sys_ok(rig_run_buffer(run, 2, near_b));
	sys_ok(rig_run_buffer(run, 3, to));
	sys_ok(rig_run_buffer(run, 4, out_b));
	for (int i = 0; i < 3; i++) {
		sys_ok(rig_submit(s, run, NULL, 0, &point));
		sys_ok(rig_wait(point));
		sys_ok(rig_buffer_read(to, 0, got, ALL));
		assert_memory_equal(got, far + 5, A);
		assert_memory_equal(got + A, here + 9, B);
		assert_memory_equal(got + A + B, far + A + 77, C);
		assert_memory_equal(got + A + B + C, here + B + 99, D);
		assert_memory_equal(out + 1, near + 3, A);
		assert_memory_equal(out + A + 1, near + A + 10, C);
		assert_memory_equal(out + 2 * A, near + 2 * A, B);
		for (size_t r = 0; r < ROWS; r++) {
			assert_memory_equal(
			        got + (2 << 20) + r * PITCH, far + (2 << 20) + r * (ROW + 13), ROW);
			assert_memory_equal(out + (3 << 20) + r * PITCH, near + 1 + r * ROW, ROW);
			assert_true(!out[(3 << 20) + r * PITCH + ROW]);
		}
		memset(out, 0, ALL);
	}
	assert_nothing_is_held(&w);
	rig_run_put(run);
	rig_submission_put(s);
	rig_buffer_put(out_b);
	rig_buffer_put(here_b);
	rig_buffer_put(lent);
	rig_buffer_put(to);
	rig_buffer_put(near_b);
	rig_buffer_put(far_b);
	end(&w);
	free(far);
	free(here);
	free(near);
	free(got);
	free(out);
}

/* ---- Ends in the middle ---- */

/* A loss is noticed by who uses the device. */
static bool is_lost(struct rig_device *d)
{
	struct rig_buffer *b;

	if (!rig_buffer_create(d, RIG_DEVICE, 64, &b)) {
		(void)rig_buffer_write(b, 0, "x", 1);
		rig_buffer_put(b);
	}
	return rig_lost(d, NULL);
}

/* Its name is free afterwards. */
static void put_lost(struct world *w, int i)
{
	AWAIT(is_lost(w->d[i]));
	rig_device_put(w->d[i]);
	w->d[i] = NULL;
}

/* Its driver faults at the next look. */
static void begin_loss(struct world *w, int i)
{
	polled_fail(w->in[i]->drivers[0], POLLED_SLEEP, 1, POLLED_FAULTS);
}

static void a_device_that_stops_while_its_source_hangs_leaves_nothing_of_its_copies(void **state)
{
	struct copy copies[COPIES];
	struct world w;

	(void)state;
	begin(&w, false);
	copies_are_right(&w, LARGE);
	polled_gate(w.in[0]->drivers[0], 0);
	for (int i = 0; i < COPIES; i++)
		copy_begin(&w, &copies[i], i == 1 ? SMALL : LARGE);
	AWAIT(look(w.in[0]).claimed == 1);
	begin_loss(&w, 1);
	assert_int_equal(rig_wait(copies[0].point), RIG_LOST);
	/* One had claimed, and another never did; both are given up. */
	AWAIT(look(w.in[0]).given_up == 2);
	assert_false(rig_remote_failed(w.job, NULL));
	polled_gate(w.in[0]->drivers[0], UINT64_MAX);
	assert_nothing_is_held(&w);
	for (int i = 0; i < COPIES; i++)
		copy_end(&copies[i]);
	put_lost(&w, 1);
	w.d[1] = open_device(&w, 1);
	copies_are_right(&w, LARGE);
	assert_nothing_is_held(&w);
	end(&w);
}

static void a_device_that_stops_after_its_source_was_ready_leaves_nothing_of_its_copies(void **state)
{
	struct copy copies[COPIES];
	struct world w;

	(void)state;
	begin(&w, false);
	copies_are_right(&w, LARGE);
	/* It takes the first one's bytes, and does not get on with it; the others' wait at their source. */
	inside_stop(w.in[1], 0, POLLED_SUBMIT);
	for (int i = 0; i < COPIES; i++)
		copy_begin(&w, &copies[i], LARGE);
	inside_await_stopped(w.in[1], 0);
	AWAIT(look(w.in[0]).claims == COPIES - 1);
	begin_loss(&w, 1);
	AWAIT(polled_failed(w.in[1]->drivers[0]));
	inside_go(w.in[1], 0);
	assert_int_equal(rig_wait(copies[COPIES - 1].point), RIG_LOST);
	assert_nothing_is_held(&w);
	for (int i = 0; i < COPIES; i++)
		copy_end(&copies[i]);
	put_lost(&w, 1);
	w.d[1] = open_device(&w, 1);
	copies_are_right(&w, LARGE);
	end(&w);
}

static void a_source_that_is_lost_is_the_reason_of_the_loss_of_who_copies_and_of_nothing_else(void **state)
{
	struct copy copies[COPIES];
	const char *why = "";
	struct world w;

	(void)state;
	begin(&w, false);
	copies_are_right(&w, LARGE);
	polled_gate(w.in[0]->drivers[0], 0);
	for (int i = 0; i < COPIES; i++)
		copy_begin(&w, &copies[i], i == 1 ? SMALL : LARGE);
	AWAIT(look(w.in[0]).claimed == 1);
	begin_loss(&w, 0);
	assert_int_equal(rig_wait(copies[0].point), RIG_LOST);
	assert_true(rig_lost(w.d[1], &why));
	if (!strstr(why, "P0 lost"))
		fail_msg("the reason is \"%s\"", why);
	AWAIT(is_lost(w.d[0]));
	assert_false(rig_remote_failed(w.job, NULL));
	polled_gate(w.in[0]->drivers[0], UINT64_MAX);
	assert_nothing_is_held(&w);
	for (int i = 0; i < COPIES; i++)
		copy_end(&copies[i]);
	for (int i = 0; i < AGENTS; i++) {
		put_lost(&w, i);
		w.d[i] = open_device(&w, i);
	}
	copies_are_right(&w, LARGE);
	end(&w);
}

/* A source that stops with bytes that nobody has claimed yet. */
static void a_source_that_stops_before_its_bytes_are_claimed_ends_who_copies_and_leaves_nothing(void **state)
{
	struct copy copies[COPIES];
	struct world w;

	(void)state;
	begin(&w, false);
	copies_are_right(&w, LARGE);
	inside_stop(w.in[1], 0, POLLED_SUBMIT);
	for (int i = 0; i < COPIES; i++)
		copy_begin(&w, &copies[i], LARGE);
	inside_await_stopped(w.in[1], 0);
	AWAIT(look(w.in[0]).claims == COPIES - 1);
	begin_loss(&w, 0);
	AWAIT(is_lost(w.d[0]));
	inside_go(w.in[1], 0);
	assert_int_equal(rig_wait(copies[COPIES - 1].point), RIG_LOST);
	assert_nothing_is_held(&w);
	assert_false(rig_remote_failed(w.job, NULL));
	for (int i = 0; i < COPIES; i++)
		copy_end(&copies[i]);
	for (int i = 0; i < AGENTS; i++)
		put_lost(&w, i);
	end(&w);
}

static void note_put(void *flag)
{
	atomic_store((atomic_bool *)flag, true);
}

/* Its memory stays, but not that of others. */
static void a_device_that_does_not_stop_sends_nothing_more_and_says_so(void **state)
{
	static const char *const stuck[INSIDE_DRIVERS] = {"lie=stop_short", ""};
	uint8_t *memory = aligned_alloc(4096, 1 << 20);
	struct rig_buffer *from, *here;
	struct sys_launch launch;
	atomic_bool put = false;
	struct copy copy;
	struct world w;

	(void)state;
	/* What such a device has stays, and nothing names it. */
	if (SYS_ASAN)
		skip();
	begin_with(&w, stuck, false);
	copies_are_right(&w, LARGE);
	from = sys_buffer(w.d[0], RIG_DEVICE, 1 << 20);
	sys_ok(rig_buffer_of_host(w.d[0], memory, 1 << 20, &here));
	polled_gate(w.in[0]->drivers[0], 0);
	sys_copy_make(&launch, from, 0, here, 0, 1 << 20);
	sys_ok(rig_submission_keep(launch.submission, &put, note_put));
	(void)sys_launch_submit(&launch);
	copy_begin(&w, &copy, LARGE);
	AWAIT(look(w.in[0]).claimed == 1);
	begin_loss(&w, 0);
	assert_int_equal(rig_wait(copy.point), RIG_LOST);
	assert_nothing_is_held(&w);
	sys_launch_end(&launch);
	rig_buffer_put(here);
	/* The program's memory is its own again, while the job goes on. */
	AWAIT(is_lost(w.d[0]) && atomic_load(&put));
	assert_false(rig_remote_failed(w.job, NULL));
	free(memory);
	rig_buffer_put(from);
	copy_end(&copy);
	for (int i = 0; i < AGENTS; i++)
		put_lost(&w, i);
	leave(&w);
	inside_end_stuck(w.in[0]);
	inside_end(w.in[1]);
}

/* ---- The job's end ---- */

struct mover {
	struct world *w;
	uint8_t *bytes;
	unsigned rounds; /* atomic */
};

static void *move(void *arg)
{
	struct mover *m = arg;
	struct rig_buffer *from = sys_buffer(m->w->d[0], RIG_DEVICE, LARGE);
	struct rig_buffer *to = sys_buffer(m->w->d[1], RIG_DEVICE, LARGE);

	while (!rig_buffer_write(from, 0, m->bytes, LARGE) && !rig_buffer_copy(to, 0, from, 0, LARGE) &&
	        !rig_buffer_read(to, 0, m->bytes, LARGE))
		(void)__atomic_add_fetch(&m->rounds, 1, __ATOMIC_RELAXED);
	rig_buffer_put(from);
	rig_buffer_put(to);
	return NULL;
}

static void close_job(struct world *w)
{
	(void)w;
}

static void break_connection_of_agent_0(struct world *w)
{
	(void)pthread_mutex_lock(&w->in[0]->agent.lock);
	rig_rmt_chan_shut(w->in[0]->agent.sessions->chan);
	(void)pthread_mutex_unlock(&w->in[0]->agent.lock);
	AWAIT(rig_remote_failed(w->job, NULL));
}

static void break_connection_between_agents(struct world *w)
{
	struct session *s;

	(void)pthread_mutex_lock(&w->in[0]->agent.lock);
	s = w->in[0]->agent.sessions;
	rig_rmt_chan_shut(s->peers[0].chan);
	(void)pthread_mutex_unlock(&w->in[0]->agent.lock);
	AWAIT(rig_remote_failed(w->job, NULL));
}

static void fail_agent_1(struct world *w)
{
	const char *why = "";

	(void)pthread_mutex_lock(&w->in[1]->agent.lock);
	session_fail(w->in[1]->agent.sessions, "the test's own cause");
	(void)pthread_mutex_unlock(&w->in[1]->agent.lock);
	AWAIT(rig_remote_failed(w->job, &why));
	if (!strstr(why, "the test's own cause"))
		fail_msg("the reason is \"%s\"", why);
}

static void end_jobs(void (*by)(struct world *), int rounds)
{
	struct world w;

	begin(&w, false);
	for (int i = 0; i < rounds; i++) {
		struct mover m = {.w = &w, .bytes = calloc(1, LARGE)};
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, move, &m), 0);
		AWAIT(__atomic_load_n(&m.rounds, __ATOMIC_RELAXED) >= 2);
		by(&w);
		rig_remote_close(w.job);
		(void)pthread_join(thread, NULL);
		for (int k = 0; k < AGENTS; k++)
			put_lost(&w, k);
		free(m.bytes);
		join(&w, false);
		copies_are_right(&w, LARGE);
	}
	end(&w);
}

static void a_job_that_is_closed_under_large_copies_leaves_nothing_and_the_next_works(void **state)
{
	(void)state;
	end_jobs(close_job, 6);
}

static void a_job_that_loses_an_agent_under_large_copies_leaves_nothing_and_the_next_works(void **state)
{
	(void)state;
	end_jobs(break_connection_of_agent_0, 4);
}

static void a_job_whose_agents_lose_each_other_under_large_copies_leaves_nothing_and_the_next_works(
        void **state)
{
	(void)state;
	end_jobs(break_connection_between_agents, 4);
}

static void an_agents_reason_comes_before_what_its_end_does_to_the_links(void **state)
{
	(void)state;
	end_jobs(fail_agent_1, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(large_copies_between_agents_go_by_parcels_and_others_by_their_connection),
	        cmocka_unit_test(parts_of_one_submission_go_each_its_own_way),
	        cmocka_unit_test(a_device_that_stops_while_its_source_hangs_leaves_nothing_of_its_copies),
	        cmocka_unit_test(a_device_that_stops_after_its_source_was_ready_leaves_nothing_of_its_copies),
	        cmocka_unit_test(
	                a_source_that_is_lost_is_the_reason_of_the_loss_of_who_copies_and_of_nothing_else),
	        cmocka_unit_test(
	                a_source_that_stops_before_its_bytes_are_claimed_ends_who_copies_and_leaves_nothing),
	        cmocka_unit_test(a_device_that_does_not_stop_sends_nothing_more_and_says_so),
	        cmocka_unit_test(a_job_that_is_closed_under_large_copies_leaves_nothing_and_the_next_works),
	        cmocka_unit_test(
	                a_job_that_loses_an_agent_under_large_copies_leaves_nothing_and_the_next_works),
	        cmocka_unit_test(
	                a_job_whose_agents_lose_each_other_under_large_copies_leaves_nothing_and_the_next_works),
	        cmocka_unit_test(an_agents_reason_comes_before_what_its_end_does_to_the_links),
	};

	return cmocka_run_group_tests(tests, make_key, remove_key);
}
