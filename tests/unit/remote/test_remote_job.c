/* SPDX-License-Identifier: MIT */
/* Parts of a controller, without an agent: its end beside its failure, a stop that gets no answer, pings, and
   what a connection still gives once a send has failed. */
#include <errno.h>
#include "test.h"
#include <pthread.h>
#include <poll.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <sys/socket.h>

#include "cond.h"
#include "rmt_proxy.h"

enum { MS = 20000, SOON_MS = 50, LOOK_MS = 300 };

static const struct rig_rmt_key key = {{1, 2, 3}};

/* ---- A job of no machines ---- */

static struct rig_remote_job *make_job(const struct rig_remote_options *options)
{
	struct rig_remote_job *job = calloc(1, sizeof(*job));

	assert_non_null(job);
	job->options = *options;
	job->machines = calloc(1, sizeof(*job->machines));
	job->refs = 1;
	job->next_request = 1;
	(void)pthread_mutex_init(&job->lock, NULL);
	rig_cond_init(&job->changed);
	assert_int_equal(rig_rmt_rails_open(job), 0);
	assert_int_equal(rig_rmt_fork_list(job), 0);
	return job;
}

struct telling {
	struct rig_remote_job *job;
	sem_t told, closed;
	bool was_closed; /* while it was told */
};

static void look_for_the_close(void *arg, const char *why)
{
	struct telling *t = arg;
	struct timespec end;

	(void)why;
	(void)sem_post(&t->told);
	(void)clock_gettime(CLOCK_REALTIME, &end);
	end.tv_nsec += LOOK_MS * 1000000L;
	end.tv_sec += end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	t->was_closed = !sem_timedwait(&t->closed, &end);
}

static void *fail_run(void *arg)
{
	struct telling *t = arg;

	rig_rmt_job_fail(t->job, "a proxy's thread has it so");
	return NULL;
}

/* The engine of rails goes with the close, and who tells may be about to call it. */
static void a_close_waits_for_who_tells_of_the_failure(void **state)
{
	struct telling t = {0};
	const struct rig_remote_options options = {
	        .version = RIG_EDGE_VERSION, .failed = look_for_the_close, .arg = &t};
	pthread_t thread;

	(void)state;
	(void)sem_init(&t.told, 0, 0);
	(void)sem_init(&t.closed, 0, 0);
	t.job = make_job(&options);
	assert_int_equal(pthread_create(&thread, NULL, fail_run, &t), 0);
	while (sem_wait(&t.told))
		;
	rig_remote_close(t.job);
	(void)sem_post(&t.closed);
	(void)pthread_join(thread, NULL);
	assert_false(t.was_closed);
	(void)sem_destroy(&t.told);
	(void)sem_destroy(&t.closed);
}

/* ---- A stop that gets no answer ---- */

static void resolve(void *arg, const char *why)
{
	struct proxy *p = arg;

	(void)why;
	(void)pthread_mutex_lock(&p->lock);
	p->nparcels = 0;
	(void)pthread_cond_broadcast(&p->moved);
	(void)pthread_mutex_unlock(&p->lock);
}

static void an_agent_that_resolves_no_parcel_of_a_stopped_device_fails_the_job(void **state)
{
	struct proxy *p = calloc(1, sizeof(*p));
	const struct rig_remote_options options = {
	        .version = RIG_EDGE_VERSION, .answer_ms = SOON_MS, .failed = resolve, .arg = p};
	struct rig_remote_job *job = make_job(&options);
	struct rig_rmt_machine m = {.job = job, .name = "far:1"};
	const char *why = "";

	(void)state;
	(void)pthread_mutex_init(&p->lock, NULL);
	rig_cond_init(&p->moved);
	p->m = &m;
	p->nparcels = 2;
	(void)alarm(MS / 1000);
	(void)pthread_mutex_lock(&p->lock);
	rig_rmt_proxy_await_parcels(p);
	(void)pthread_mutex_unlock(&p->lock);
	(void)alarm(0);
	assert_true(rig_remote_failed(job, &why));
	assert_non_null(strstr(why, "machine far:1 did not say within 50 ms"));
	rig_remote_close(job);
	(void)pthread_cond_destroy(&p->moved);
	(void)pthread_mutex_destroy(&p->lock);
	free(p);
}

/* ---- A connection ---- */

struct ends {
	struct rig_rmt_chan *here, *there;
	int accepted;
};

static void *accept_run(void *arg)
{
	struct ends *e = arg;

	(void)rig_rmt_chan_accept(e->accepted, &key, MS, MS, &e->there);
	return NULL;
}

static void *dial_run(void *arg)
{
	struct sockaddr_in at;
	socklen_t n = sizeof(at);
	char name[32];
	struct rig_rmt_chan *chan = NULL;

	if (getsockname(*(int *)arg, (struct sockaddr *)&at, &n))
		return NULL;
	(void)snprintf(name, sizeof(name), "127.0.0.1:%u", ntohs(at.sin_port));
	(void)rig_rmt_chan_dial(name, &key, MS, MS, &chan);
	return chan;
}

static void connect_ends(struct ends *e)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	pthread_t dialer, acceptor;
	void *chan;

	e->here = e->there = NULL;
	assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(pthread_create(&dialer, NULL, dial_run, &listener), 0);
	e->accepted = accept(listener, NULL, NULL);
	assert_int_equal(pthread_create(&acceptor, NULL, accept_run, e), 0);
	(void)pthread_join(dialer, &chan);
	(void)pthread_join(acceptor, NULL);
	e->here = chan;
	assert_non_null(e->here);
	assert_non_null(e->there);
	(void)close(listener);
}

static void drop_ends(struct ends *e)
{
	rig_rmt_chan_free(e->here);
	rig_rmt_chan_free(e->there);
}

static uint32_t ping_there(struct ends *e)
{
	const uint8_t *payload;
	struct rig_rmt_in in;
	uint8_t kind;
	size_t n;

	assert_int_equal(rig_rmt_chan_recv(e->there, &kind, &payload, &n), 0);
	assert_int_equal(kind, RIG_RMT_PING);
	in = rig_rmt_in_of(payload, n);
	return rig_rmt_get32(&in);
}

static void begin_pings(struct ends *e, struct rig_rmt_machine *m)
{
	static const struct rig_remote_options options = {.version = RIG_EDGE_VERSION};

	connect_ends(e);
	*m = (struct rig_rmt_machine){.job = make_job(&options), .chan = e->here};
	(void)pthread_mutex_init(&m->lock, NULL);
}

static void drop_machine(struct ends *e, struct rig_rmt_machine *m)
{
	rig_remote_close(m->job);
	(void)pthread_mutex_destroy(&m->lock);
	drop_ends(e);
}

static void an_answer_counts_that_takes_longer_than_from_one_ping_to_the_next(void **state)
{
	static const uint8_t theirs[8] = {1};
	struct rig_rmt_machine m;
	uint32_t first, second;
	struct ends e;

	(void)state;
	begin_pings(&e, &m);
	rig_rmt_clock_ping(&m);
	first = ping_there(&e);
	rig_rmt_clock_ping(&m);
	assert_true(rig_rmt_clock_answer(&m, first, theirs, sizeof(theirs)));
	assert_true(m.has_clock);
	rig_rmt_clock_ping(&m);
	second = ping_there(&e);
	assert_int_not_equal(first, second);
	assert_false(rig_rmt_clock_answer(&m, first, theirs, sizeof(theirs)));
	assert_true(rig_rmt_clock_answer(&m, second, theirs, sizeof(theirs)));
	drop_machine(&e, &m);
}

static void a_ping_that_did_not_go_holds_up_no_other(void **state)
{
	struct rig_rmt_machine m;
	struct ends e;

	(void)state;
	begin_pings(&e, &m);
	rig_rmt_chan_shut(e.here);
	rig_rmt_clock_ping(&m);
	assert_int_equal(m.ping, 0);
	drop_machine(&e, &m);
}

static bool without_memory;

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);

void *__wrap_malloc(size_t bytes)
{
	return without_memory ? NULL : __real_malloc(bytes);
}

/* Here, and not the connection's end: nothing is wrong with the machine. */
static void a_message_for_which_there_is_no_memory_here_says_so(void **state)
{
	const struct rig_rmt_want want = {.device = 0, .value = 1, .part = 0};
	static const struct rig_remote_options options = {.version = RIG_EDGE_VERSION};
	struct local local = {.in = true, .parcel = true, .row_bytes = 1, .rows = 1};
	struct value v = {.work.value = 1, .locals = &local, .nlocals = 1};
	struct proxy *p = calloc(1, sizeof(*p));
	struct rig_rmt_out out = {0};
	struct rig_rmt_machine m;
	const char *why = "";
	struct ends e;

	(void)state;
	connect_ends(&e);
	m = (struct rig_rmt_machine){
	        .job = make_job(&options), .name = "far:1", .chan = e.here, .devices = {&p->device}};
	(void)pthread_mutex_init(&m.lock, NULL);
	(void)pthread_mutex_init(&p->lock, NULL);
	p->m = &m;
	p->device.take = rig_rmt_proxy_take;
	p->flight = &v;
	rig_rmt_want_put(&out, &want);
	assert_int_equal(rig_rmt_chan_send(e.there, RIG_RMT_TICKET, out.at, out.used, NULL, 0), 0);
	without_memory = true;
	(void)rig_rmt_reader_run(&m);
	without_memory = false;
	assert_true(rig_remote_failed(m.job, &why));
	assert_string_equal(
	        why, "machine far:1: what it sent could not be taken here: Cannot allocate memory");
	rig_rmt_out_free(&out);
	(void)pthread_mutex_destroy(&p->lock);
	free(p);
	drop_machine(&e, &m);
}

static void what_came_before_a_send_failed_is_received(void **state)
{
	static const uint8_t why[] = "the cause", bytes[4096];
	const uint8_t *payload;
	struct pollfd p;
	struct ends e;
	uint8_t kind;
	size_t n;
	int err;

	(void)state;
	connect_ends(&e);
	assert_int_equal(rig_rmt_chan_send(e.here, RIG_RMT_FAILED, why, sizeof(why), NULL, 0), 0);
	rig_rmt_chan_shut(e.here);
	p = (struct pollfd){.fd = e.accepted, .events = POLLIN};
	assert_int_equal(poll(&p, 1, MS), 1);
	do
		err = rig_rmt_chan_send(e.there, 1, bytes, sizeof(bytes), NULL, 0);
	while (!err);
	assert_int_equal(err, -ECONNRESET);
	assert_int_equal(rig_rmt_chan_recv(e.there, &kind, &payload, &n), 0);
	assert_int_equal(kind, RIG_RMT_FAILED);
	assert_string_equal((const char *)payload, "the cause");
	assert_int_equal(rig_rmt_chan_recv(e.there, &kind, &payload, &n), -ECONNRESET);
	drop_ends(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_close_waits_for_who_tells_of_the_failure),
	        cmocka_unit_test(an_agent_that_resolves_no_parcel_of_a_stopped_device_fails_the_job),
	        cmocka_unit_test(an_answer_counts_that_takes_longer_than_from_one_ping_to_the_next),
	        cmocka_unit_test(a_ping_that_did_not_go_holds_up_no_other),
	        cmocka_unit_test(a_message_for_which_there_is_no_memory_here_says_so),
	        cmocka_unit_test(what_came_before_a_send_failed_is_received),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
