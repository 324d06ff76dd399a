/* SPDX-License-Identifier: MIT */
/* Agents that the test plays, message by message: what none of the library says, or not in such an order. */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "rail.h"
#include "remote_support.h"
#include "rmt_chan.h"
#include "rmt_frames.h"

/* ---- A peer that is none ---- */

struct fake {
	pthread_t thread;
	int listener;
	char name[64];
	int (*act)(struct rig_rmt_chan *chan); /* NULL: it says nothing at all */
};

static void *fake_run(void *arg)
{
	struct fake *f = arg;
	int fd = accept(f->listener, NULL, NULL);
	struct rig_rmt_chan *chan;
	struct rig_rmt_key key;
	char byte;

	if (fd < 0)
		return NULL;
	if (!f->act) {
		while (read(fd, &byte, 1) > 0)
			;
		(void)close(fd);
		return NULL;
	}
	if (rig_rmt_key_read(remote_key(), &key) || rig_rmt_chan_accept(fd, &key, 3000, 3000, &chan))
		return NULL;
	(void)f->act(chan);
	rig_rmt_chan_free(chan);
	return NULL;
}

static void fake_start(struct fake *f, int (*act)(struct rig_rmt_chan *))
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(at);

	(void)remote_key();
	f->act = act;
	f->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(f->listener, (struct sockaddr *)&at, n), 0);
	assert_int_equal(listen(f->listener, 1), 0);
	assert_int_equal(getsockname(f->listener, (struct sockaddr *)&at, &n), 0);
	snprintf(f->name, sizeof(f->name), "127.0.0.1:%u", ntohs(at.sin_port));
	assert_int_equal(pthread_create(&f->thread, NULL, fake_run, f), 0);
}

static void fake_end(struct fake *f)
{
	(void)shutdown(f->listener, SHUT_RDWR);
	(void)pthread_join(f->thread, NULL);
	(void)close(f->listener);
}

static int skip_join(struct rig_rmt_chan *chan)
{
	const uint8_t *bytes;
	uint8_t kind;
	size_t n;

	return rig_rmt_chan_recv(chan, &kind, &bytes, &n);
}

static int send_nonsense(struct rig_rmt_chan *chan)
{
	int err = skip_join(chan);

	return err ? err : rig_rmt_chan_send(chan, 250, "?", 1, NULL, 0);
}

static int send_short_answer(struct rig_rmt_chan *chan)
{
	int err = skip_join(chan);

	return err ? err : rig_rmt_chan_send(chan, RIG_RMT_ANSWER, "?", 1, NULL, 0);
}

static int go_silent(struct rig_rmt_chan *chan)
{
	while (!skip_join(chan))
		;
	return 0;
}

static int hang_up(struct rig_rmt_chan *chan)
{
	return skip_join(chan);
}

/* As an agent whose device is lost while it is opened. */
static int answer_to(
        struct rig_rmt_chan *chan, uint32_t request, int status, const struct rig_rmt_out *payload)
{
	const struct rig_rmt_answer answer = {.request = request, .status = status};
	struct rig_rmt_out out = {0};
	int err;

	rig_rmt_answer_put(&out, &answer);
	err = rig_rmt_chan_send(chan, RIG_RMT_ANSWER, out.at, out.used, payload->at, payload->used);
	rig_rmt_out_free(&out);
	return err;
}

static int send_lost(struct rig_rmt_chan *chan)
{
	struct rig_rmt_out out = {0};
	int err;

	rig_rmt_put32(&out, 0);
	rig_rmt_put_text(&out, "lost at once");
	err = rig_rmt_chan_send(chan, RIG_RMT_LOST, out.at, out.used, NULL, 0);
	rig_rmt_out_free(&out);
	return err;
}

static int open_as(struct rig_rmt_chan *chan, uint32_t request, const char *name, uint32_t device, bool host)
{
	struct rig_rmt_facts facts = {.device = device,
	        .arch = "none",
	        .host = host,
	        .budget = 1 << 20,
	        .nqueues = 1,
	        .queues = {{"COPY:0", RIG_RUNS(RIG_COPY)}},
	        .has_copy_engine = true,
	        .alignment = 64};
	struct rig_rmt_out out = {0};
	int err;

	(void)snprintf(facts.name, sizeof(facts.name), "%s", name);
	rig_rmt_facts_put(&out, &facts);
	err = answer_to(chan, request, 0, &out);
	rig_rmt_out_free(&out);
	return err;
}

static int open_lost(struct rig_rmt_chan *chan, uint32_t request, uint32_t device)
{
	int err = send_lost(chan);

	return err ? err : open_as(chan, request, "LOST", device, false);
}

static int open_host(struct rig_rmt_chan *chan, uint32_t request, uint32_t device)
{
	return open_as(chan, request, "LOST", device, true);
}

static int open_early(struct rig_rmt_chan *chan, uint32_t request, uint32_t device)
{
	return open_as(chan, request, "EARLY", device, false);
}

/* What an agent does of its own; NULL: nothing. */
struct script {
	int (*open)(struct rig_rmt_chan *chan, uint32_t request, uint32_t device);
	int (*rail)(struct rig_rmt_chan *chan, uint32_t request, struct rig_rmt_in *in);
	int (*submit)(struct rig_rmt_chan *chan, struct rig_rmt_in *in);
};

/* Answers as an agent whose devices have no memory. */
static int serve(struct rig_rmt_chan *chan, const struct script *script)
{
	const struct rig_rmt_out clock = {.at = (uint8_t[8]){0}, .used = 8}, none = {0};
	const uint8_t *bytes;
	struct rig_rmt_in in;
	uint32_t request, opened = 0;
	uint8_t kind;
	size_t n;
	int err = skip_join(chan);

	while (!err) {
		err = rig_rmt_chan_recv(chan, &kind, &bytes, &n);
		in = rig_rmt_in_of(bytes, err ? 0 : n);
		request = rig_rmt_get32(&in);
		if (!err && kind == RIG_RMT_PING)
			err = answer_to(chan, request, 0, &clock);
		else if (!err && kind == RIG_RMT_OPEN)
			err = script->open(chan, request, opened++);
		else if (!err && kind == RIG_RMT_RAIL && script->rail)
			err = script->rail(chan, request, &in);
		else if (!err && kind == RIG_RMT_SUBMIT && script->submit)
			err = script->submit(chan, &in);
		else if (!err && (kind == RIG_RMT_ALLOC || kind == RIG_RMT_STOP))
			err = answer_to(chan, request, kind == RIG_RMT_ALLOC ? -ENOMEM : 0, &none);
	}
	return err;
}

static int lose_at_once(struct rig_rmt_chan *chan)
{
	return serve(chan, &(struct script){.open = open_lost});
}

static struct rig_rails *half_engine;
static struct rig_rail_link *half_link;

/* Its link stands, and it says that it does not. */
static int finish_half(struct rig_rmt_chan *chan, uint32_t request, struct rig_rmt_in *in)
{
	static const struct rig_rails_options options = {.node = "127.0.0.1"};
	struct rig_deadline deadline = rig_deadline_in(NULL, 60 * RIG_NS_PER_S);
	struct rig_rail_blob offer, blob = {0};
	struct rig_rmt_out out = {0};
	struct rig_rmt_rail *r = malloc(sizeof(*r));
	int err = r ? rig_rmt_rail_parse(in, r) : -ENOMEM;

	if (!err && r->op == RIG_RMT_RAIL_ACCEPT) {
		offer.bytes = r->nblob;
		memcpy(offer.at, r->blob, r->nblob);
		err = rig_rails_open(&options, &half_engine);
		if (!err)
			err = rig_rail_link_accept(half_engine, "the controller", &offer, &blob, &half_link);
		rig_rmt_put_bytes(&out, blob.at, blob.bytes);
		if (!err)
			err = answer_to(chan, request, 0, &out);
		if (!err)
			err = rig_rail_link_finish(half_link, NULL, &deadline);
	} else if (!err) {
		err = answer_to(chan, request, r->op == RIG_RMT_RAIL_FINISH ? -EAGAIN : 0, &out);
	}
	rig_rmt_out_free(&out);
	free(r);
	return err;
}

static int link_half(struct rig_rmt_chan *chan)
{
	return serve(chan, &(struct script){.open = open_host, .rail = finish_half});
}

static void half_a_link_of_rails_fails_the_job_with_who_did_not_finish_it(void **state)
{
	const struct rig_remote_transfer one = {.length = 64};
	const struct rig_remote_host *host;
	const struct rig_remote_rail *rail;
	struct rig_remote_job *job;
	struct rig_device *d;
	struct fake f;
	const char *names[] = {f.name};
	char name[128];

	(void)state;
	fake_start(&f, link_half);
	sys_ok(rig_remote_connect(names, 1, remote_key(), &remote_quick, &job));
	snprintf(name, sizeof(name), "LOST@%s", f.name);
	sys_ok(rig_remote_open(job, name, &d));
	host = remote_host(d);
	assert_int_equal(host->rail(host->self, NULL, &one, 1, NULL, 0, &rail), -ECONNABORTED);
	remote_assert_failed(job, "did not finish a link of rails that stands at the controller");
	rig_device_put(d);
	rig_remote_close(job);
	fake_end(&f);
	rig_rails_close(half_engine);
}

static void a_device_that_is_lost_while_it_is_opened_is_lost_here(void **state)
{
	struct rig_remote_job *job;
	struct rig_device *d;
	struct fake f;
	const char *names[] = {f.name};
	char name[128];

	(void)state;
	fake_start(&f, lose_at_once);
	sys_ok(rig_remote_connect(names, 1, remote_key(), &remote_quick, &job));
	snprintf(name, sizeof(name), "LOST@%s", f.name);
	sys_ok(rig_remote_open(job, name, &d));
	sys_await(remote_is_lost, d, "the loss of a device that was lost while it was opened");
	remote_assert_reason(d, "lost at once");
	rig_device_put(d);
	rig_remote_close(job);
	fake_end(&f);
}

/* ---- Devices that tell of their values beside each other ---- */

/* The second device's value, which waited for the first's, is told before that; the first's once it may. */
static sem_t told_second, may_tell_first;

static int tell_reached(struct rig_rmt_chan *chan, uint32_t device, uint64_t value)
{
	static struct rig_rmt_reached reached;
	struct rig_rmt_out out = {0};
	int err;

	reached.device = device;
	reached.value = value;
	rig_rmt_reached_put(&out, &reached);
	err = rig_rmt_chan_send(chan, RIG_RMT_REACHED, out.at, out.used, NULL, 0);
	rig_rmt_out_free(&out);
	return err;
}

static int take_submit(struct rig_rmt_chan *chan, struct rig_rmt_in *in)
{
	static uint64_t first;
	uint32_t device = rig_rmt_get32(in);
	uint64_t value = rig_rmt_get64(in);
	int err;

	if (!device) {
		first = value;
		return 0;
	}
	err = tell_reached(chan, 1, value);
	(void)sem_post(&told_second);
	while (sem_wait(&may_tell_first))
		;
	return err ? err : tell_reached(chan, 0, first);
}

static int tell_early(struct rig_rmt_chan *chan)
{
	return serve(chan, &(struct script){.open = open_early, .submit = take_submit});
}

static bool was_told(void *arg)
{
	(void)arg;
	return !sem_trywait(&told_second);
}

static bool is_done(void *arg)
{
	struct rig_device *d = arg;

	return rig_signaled(d) == rig_submitted(d);
}

static void a_value_is_reached_here_after_those_that_it_waited_for_there(void **state)
{
	const struct rig_remote_options patient = {.version = RIG_EDGE_VERSION};
	struct rig_submission *s[2];
	struct rig_remote_job *job;
	struct rig_device *d[2];
	struct rig_point point;
	struct fake f;
	const char *names[] = {f.name};
	char name[128];
	unsigned i;

	(void)state;
	(void)sem_init(&told_second, 0, 0);
	(void)sem_init(&may_tell_first, 0, 0);
	fake_start(&f, tell_early);
	sys_ok(rig_remote_connect(names, 1, remote_key(), &patient, &job));
	for (i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "EARLY%u@%s", i, f.name);
		sys_ok(rig_remote_open(job, name, &d[i]));
		s[i] = sys_empty(d[i]);
	}
	sys_ok(rig_submit(s[0], NULL, NULL, 0, &point));
	sys_ok(rig_submit(s[1], NULL, &point, 1, &point));
	sys_await(was_told, NULL, "work for the second device");
	for (i = 0; i < 10; i++) {
		assert_false(is_done(d[1]));
		sys_nap();
	}
	(void)sem_post(&may_tell_first);
	sys_await(is_done, d[1], "a value whose wait is over");
	assert_true(is_done(d[0]));
	for (i = 0; i < 2; i++) {
		rig_submission_put(s[i]);
		sys_close(d[i]);
	}
	rig_remote_close(job);
	fake_end(&f);
}

static void a_peer_that_keeps_to_nothing_fails_the_connect_with_what_it_did(void **state)
{
	static const struct {
		int (*act)(struct rig_rmt_chan *);
		int answer;
		const char *why;
	} cases[] = {
	        {NULL, -ETIMEDOUT, "no answer in time"},
	        {send_nonsense, -ECONNABORTED, "malformed"},
	        {send_short_answer, -ECONNABORTED, "malformed"},
	        {go_silent, -ECONNABORTED, "was silent for 600 ms"},
	        {hang_up, -ECONNABORTED, "the connection ended"},
	};
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rig_remote_job *job;
		struct fake f;
		const char *names[] = {f.name};
		int answer;

		fake_start(&f, cases[i].act);
		answer = rig_remote_connect(names, 1, remote_key(), &remote_quick, &job);
		if (answer != cases[i].answer || !strstr(rig_error(), cases[i].why))
			fail_msg("case %u: %d: %s", i, answer, rig_error());
		fake_end(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_value_is_reached_here_after_those_that_it_waited_for_there),
	        cmocka_unit_test(a_peer_that_keeps_to_nothing_fails_the_connect_with_what_it_did),
	        cmocka_unit_test(a_device_that_is_lost_while_it_is_opened_is_lost_here),
	        cmocka_unit_test(half_a_link_of_rails_fails_the_job_with_who_did_not_finish_it),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, sys_setup, sys_teardown);
}
