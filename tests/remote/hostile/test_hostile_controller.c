/* SPDX-License-Identifier: MIT */
/*
 * Controllers that have the key and lie, against a real agent: whatever they say, in whatever order, the
 * agent lives, stays small, shows nobody another job's bytes and serves the next honest job; and a job beside
 * them notices nothing. RIG_HOSTILE says how many messages, RIG_HOSTILE_SEED from which numbers.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "liar_rails.h"
#include "remote_support.h"

enum {
	MESSAGES = 4000,
	SESSION = 120,     /* messages of a liar, at most */
	HONEST_EVERY = 16, /* liars */
	SILENCE_MS = 2000,
	DIAL_MS = 20000,
	SECRET = 64 << 10,
	LONG_REASON = 240 << 10,
	REFUSALS = 800,
	REFUSED = 64,                            /* MiB that they may take */
	LAST = 1 << 30,                          /* the number of a request */
	PATIENCE = 200,                          /* naps */
	MARK = 16,                               /* bytes of the secret that would be noticed */
	GROWTH = LIAR_SANITIZED ? 3 << 10 : 768, /* MiB that an agent may grow by */
};

/* Of sessions; that of one which is about something else is long, whatever else the machine does. */
static unsigned silence_ms = SILENCE_MS;
#define DATA_LIMIT (UINT64_C(2) << 30)

static struct agent_process agent;
static struct rig_rmt_key key;
static uint8_t secret[SECRET];
static uint8_t *kernel;
static size_t kernel_bytes;

/* ---- The agent, from outside ---- */

/* What it asks for beyond this is refused, as on a machine that has no more. Sanitizers map far more. */
static int limit_data(void *arg)
{
	const struct rlimit limit = {DATA_LIMIT, DATA_LIMIT};

	(void)arg;
	return LIAR_SANITIZED ? 0 : setrlimit(RLIMIT_DATA, &limit);
}

/* MiB of it that are in memory. */
static long agent_size(void)
{
	char path[64], line[256];
	long kib = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)agent.process.pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		(void)sscanf(line, "VmRSS: %ld", &kib);
	if (f)
		(void)fclose(f);
	return kib < 0 ? -1 : kib >> 10;
}

static void assert_alive(unsigned session)
{
	int status;

	if (waitpid(agent.process.pid, &status, WNOHANG))
		fail_msg("session %u: the agent ended (%#x)", session, status);
}

/* ---- Honest jobs ---- */

struct honest {
	struct rig_remote_job *job;
	struct rig_device *d;
	struct rig_buffer *b;
};

static void honest_begin(struct honest *h, const char *device)
{
	const struct rig_remote_options options = {.version = RIG_EDGE_VERSION};

	h->job = remote_connect(&agent, 1, &options);
	h->d = remote_open(h->job, device, &agent);
	h->b = sys_buffer(h->d, RIG_DEVICE, SECRET);
	sys_ok(rig_buffer_write(h->b, 0, secret, SECRET));
}

static void honest_check(struct honest *h)
{
	static uint8_t got[SECRET];

	sys_ok(rig_buffer_read(h->b, 0, got, SECRET));
	assert_memory_equal(got, secret, SECRET);
	sys_device_works(h->d);
}

static void honest_end(struct honest *h)
{
	rig_buffer_put(h->b);
	sys_close(h->d);
	rig_remote_close(h->job);
}

/* ---- Liars ---- */

struct session {
	struct liar liar;
	struct rig_rmt_chan *chan;
	struct rig_rmt_chan *between; /* as another agent of its job, or NULL */
	uint8_t token;
	struct liar_rails rails;
	pthread_mutex_t lock;
	pthread_cond_t answered;
	uint32_t asked; /* the request whose answer is waited for; 0: it is there */
	int status;
	struct rig_rail_blob blob;
	bool over; /* no answer comes any more */
	pthread_t reader;
	bool shown;             /* bytes of the honest job came */
	atomic_bool caught_up;  /* the agent has answered the last, or ended */
	unsigned done, reached; /* what it did: requests, values */
};

static void take_answer(struct session *s, const uint8_t *bytes, size_t n)
{
	struct rig_rmt_in in = rig_rmt_in_of(bytes, n);
	struct rig_rmt_answer answer;

	if (rig_rmt_answer_parse(&in, &answer))
		return;
	s->done += !answer.status;
	if (answer.request == LAST)
		atomic_store(&s->caught_up, true);
	(void)pthread_mutex_lock(&s->lock);
	if (answer.request == s->asked) {
		s->asked = 0;
		s->status = in.left > sizeof(s->blob.at) ? -EPROTO : answer.status;
		s->blob.bytes = s->status ? 0 : in.left;
		if (s->blob.bytes)
			memcpy(s->blob.at, in.at, s->blob.bytes);
		(void)pthread_cond_signal(&s->answered);
	}
	(void)pthread_mutex_unlock(&s->lock);
}

static void be_over(struct session *s)
{
	(void)pthread_mutex_lock(&s->lock);
	s->over = true;
	(void)pthread_cond_signal(&s->answered);
	(void)pthread_mutex_unlock(&s->lock);
	atomic_store(&s->caught_up, true);
}

static void *read_all(void *arg)
{
	struct session *s = arg;
	const uint8_t *bytes;
	uint8_t kind;
	size_t n, at;

	while (!rig_rmt_chan_recv(s->chan, &kind, &bytes, &n)) {
		for (at = 0; at < SECRET; at += SECRET / 16)
			s->shown |= memmem(bytes, n, secret + at, MARK) != NULL;
		s->reached += kind == RIG_RMT_REACHED;
		if (kind == RIG_RMT_ANSWER)
			take_answer(s, bytes, n);
		if (kind == RIG_RMT_TICKET)
			liar_rails_ticket(&s->rails, bytes, n);
		if (kind == RIG_RMT_FAILED)
			be_over(s);
	}
	be_over(s);
	return NULL;
}

static int ask_rail(void *arg, const struct rig_rmt_rail *r, const struct rig_remote_transfer *both,
        struct rig_rail_blob *answer)
{
	struct session *s = arg;
	struct rig_rmt_out out = {0};
	uint32_t request = ++s->liar.request;
	int err;

	(void)pthread_mutex_lock(&s->lock);
	s->asked = request;
	(void)pthread_mutex_unlock(&s->lock);
	rig_rmt_put32(&out, request);
	rig_rmt_rail_put(&out, r, both, both);
	err = liar_send(s->chan, RIG_RMT_RAIL, &out);
	(void)pthread_mutex_lock(&s->lock);
	while (!err && s->asked && !s->over)
		(void)pthread_cond_wait(&s->answered, &s->lock);
	if (!err)
		err = s->asked ? -EPIPE : s->status;
	*answer = s->blob;
	(void)pthread_mutex_unlock(&s->lock);
	return err;
}

static unsigned all_done, all_reached;

static int join(struct session *s)
{
	struct rig_rmt_join join = {.role = RIG_RMT_CONTROLLER, .silence_ms = silence_ms, .machine = "0"};
	struct rig_rmt_out out = {0};
	struct liar *l = &s->liar;

	if (rig_rmt_chan_dial(agent.name, &key, DIAL_MS, silence_ms, &s->chan))
		fail_msg("the agent lets nobody in any more: %s", rig_error());
	join.token[0] = s->token = (uint8_t)liar_draw(l, 4);
	if (l->wild && liar_once_in(l, 10))
		join.role = (uint32_t)liar_edge(l);
	if (l->wild && liar_once_in(l, 10))
		join.silence_ms = (uint32_t)liar_edge(l);
	if (liar_once_in(l, 20))
		(void)strcpy(join.machine, "-1");
	rig_rmt_join_put(&out, &join);
	return liar_send(s->chan, RIG_RMT_JOIN, &out);
}

static void join_between(struct session *s)
{
	const struct rig_rmt_join join = {.role = RIG_RMT_AGENT,
	        .token = {s->token},
	        .silence_ms = silence_ms,
	        .machine = "1",
	        .to = liar_once_in(&s->liar, 8)};
	struct rig_rmt_out out = {0};

	if (rig_rmt_chan_dial(agent.name, &key, DIAL_MS, silence_ms, &s->between))
		fail_msg("the agent lets no agent in any more: %s", rig_error());
	rig_rmt_join_put(&out, &join);
	(void)liar_send(s->between, RIG_RMT_JOIN, &out);
}

static int ask(struct session *s, uint8_t kind, uint32_t device, uint64_t number, const char *fields)
{
	struct rig_rmt_out out = {0};

	if (kind != RIG_RMT_CODE)
		rig_rmt_put32(&out, ++s->liar.request);
	rig_rmt_put32(&out, device);
	if (kind == RIG_RMT_ALLOC || kind == RIG_RMT_ENTRY)
		rig_rmt_put32(&out, kind == RIG_RMT_ALLOC ? RIG_DEVICE : 1);
	if (kind == RIG_RMT_ALLOC)
		rig_rmt_put64(&out, number);
	liar_fields(&s->liar, &out, fields);
	return liar_send(s->chan, kind, &out);
}

static int open_one(struct session *s, const char *name)
{
	struct rig_rmt_out out = {0};

	rig_rmt_put32(&out, ++s->liar.request);
	rig_rmt_put_text(&out, name);
	return liar_send(s->chan, RIG_RMT_OPEN, &out);
}

/* What most of its lies are about: devices, and regions and an image of each. */
static int prepare(struct session *s)
{
	struct liar *l = &s->liar;
	int err = 0;

	l->board = liar_once_in(l, 2);
	for (uint32_t d = 0; d < LIAR_DEVICES && !err; d++) {
		bool board = !d && l->board;

		err = open_one(s, board ? "RVX1:0" : "CPU");
		for (unsigned i = 0; i < LIAR_REGIONS && !err && !l->wild; i++)
			err = ask(s, RIG_RMT_ALLOC, d, LIAR_REGION_BYTES, "");
		if (!board || l->wild || err)
			continue;
		err = ask(s, RIG_RMT_CODE, d, 0, "c");
		err = err ? err : ask(s, RIG_RMT_LOAD, d, 0, "C");
		err = err ? err : ask(s, RIG_RMT_ENTRY, d, 0, "f");
	}
	return err;
}

/* Most wait until the agent has come as far as they have, else little of what they say would be looked at. */
static void catch_up(struct session *s)
{
	struct rig_rmt_out out = {0};
	unsigned looks;

	rig_rmt_put32(&out, LAST);
	rig_rmt_put32(&out, liar_draw(&s->liar, LIAR_DEVICES));
	rig_rmt_put32(&out, RIG_DEVICE);
	rig_rmt_put64(&out, 64);
	if (liar_send(s->chan, RIG_RMT_ALLOC, &out))
		return;
	for (looks = 0; looks < PATIENCE && !atomic_load(&s->caught_up); looks++)
		sys_nap();
}

/* The messages that it could send before the agent had enough of it. */
static unsigned lie(struct session *s)
{
	unsigned most = 1 + liar_draw(&s->liar, SESSION), n;
	struct rig_rmt_out none = {0};

	for (n = 0; n < most; n++) {
		struct rig_rmt_out out = {0};
		uint8_t kind = liar_controller(&s->liar, &out);

		if (liar_send(s->chan, kind, &out))
			break;
		if (s->liar.linked)
			liar_rails_act(&s->rails, &s->liar);
		if (!s->between)
			continue;
		out = (struct rig_rmt_out){0};
		kind = liar_between(&s->liar, &out);
		(void)liar_send(s->between, kind, &out);
	}
	if (liar_once_in(&s->liar, 2))
		(void)liar_send(s->chan, RIG_RMT_CLOSE, &none);
	return n;
}

/* One connection from its proof to its end; one in eight never takes what it is sent. */
static unsigned run_liar(uint64_t seed)
{
	struct session s = {.liar = {.numbers = seed * UINT64_C(0x9E3779B97F4A7C15),
	                            .names = {"CPU", "RVX1:0", "CPU", "RVX1:1"},
	                            .peer = agent.name,
	                            .kernel = kernel,
	                            .kernel_bytes = kernel_bytes}};
	const struct liar_asks asks = {ask_rail, &s};
	bool reads = !liar_once_in(&s.liar, 8);
	unsigned n = 0;
	int err;

	s.liar.wild = liar_once_in(&s.liar, 3);
	s.liar.linked = reads && !s.liar.wild && liar_once_in(&s.liar, 3);
	(void)pthread_mutex_init(&s.lock, NULL);
	(void)pthread_cond_init(&s.answered, NULL);
	err = join(&s);
	if (reads)
		assert_int_equal(pthread_create(&s.reader, NULL, read_all, &s), 0);
	if (!err)
		err = prepare(&s);
	if (!err && s.liar.linked)
		err = liar_rails_begin(&s.rails, &asks);
	if (!err && liar_once_in(&s.liar, 3))
		join_between(&s);
	if (!err)
		n = lie(&s);
	if (reads && !err && !liar_once_in(&s.liar, 4))
		catch_up(&s);
	rig_rmt_chan_shut(s.chan);
	if (reads)
		(void)pthread_join(s.reader, NULL);
	liar_rails_end(&s.rails);
	rig_rmt_chan_free(s.chan);
	rig_rmt_chan_free(s.between);
	(void)pthread_cond_destroy(&s.answered);
	(void)pthread_mutex_destroy(&s.lock);
	all_done += s.done;
	all_reached += s.reached;
	if (s.shown)
		fail_msg("seed %llu: another job's bytes were sent", (unsigned long long)seed);
	return n + 1;
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

static void an_agent_serves_honest_jobs_whatever_liars_say(void **state)
{
	uint64_t messages = setting("RIG_HOSTILE", MESSAGES), seed = setting("RIG_HOSTILE_SEED", 1), sent = 0;
	long before, size, most = 0;
	struct honest beside, next;
	unsigned i;

	(void)state;
	honest_begin(&beside, "RVX1:1");
	before = agent_size();
	for (i = 0; sent < messages; i++) {
		sent += run_liar(seed + i);
		assert_alive(i);
		size = agent_size();
		most = size > most ? size : most;
		if (size > before + GROWTH)
			fail_msg("session %u: the agent has grown from %ld to %ld MiB", i, before, size);
		if (i % HONEST_EVERY)
			continue;
		honest_begin(&next, "RVX1:0");
		honest_check(&next);
		honest_end(&next);
	}
	honest_check(&beside);
	honest_end(&beside);
	print_message("%u liars, %llu messages, %u requests done, %u values reached; the agent had %ld MiB "
	              "at first "
	              "and %ld at most\n",
	        i, (unsigned long long)sent, all_done, all_reached, before, most);
}

/* The agent serves the session once it answers. */
static void await_begin(struct session *s)
{
	struct rig_rmt_out out = {0};
	const uint8_t *payload;
	uint8_t kind = 0;
	size_t n;

	rig_rmt_put32(&out, 1);
	assert_int_equal(liar_send(s->chan, RIG_RMT_LIST, &out), 0);
	while (kind != RIG_RMT_ANSWER)
		assert_int_equal(rig_rmt_chan_recv(s->chan, &kind, &payload, &n), 0);
}

/* Another agent's refusals of what nobody has asked for: they are kept, for somebody may, and are short. */
static void long_refusals_that_nobody_asked_for_do_not_fill_an_agent(void **state)
{
	static const uint8_t why[LONG_REASON];
	struct session s = {.liar = {.numbers = 1}};
	long before, after;
	uint32_t id;

	(void)state;
	silence_ms = SYS_DEADLINE_MS;
	assert_int_equal(join(&s), 0);
	await_begin(&s);
	join_between(&s);
	silence_ms = SILENCE_MS;
	before = agent_size();
	for (id = 0; id < REFUSALS; id++) {
		struct rig_rmt_out out = {0};

		rig_rmt_put32(&out, id);
		rig_rmt_put64(&out, 0);
		rig_rmt_put64(&out, 0);
		rig_rmt_put_bytes(&out, why, sizeof(why));
		memset(out.at + out.used - sizeof(why), 'x', sizeof(why));
		assert_int_equal(liar_send(s.between, RIG_RMT_FETCHED, &out), 0);
	}
	after = agent_size();
	rig_rmt_chan_shut(s.chan);
	rig_rmt_chan_free(s.chan);
	rig_rmt_chan_free(s.between);
	if (after > before + REFUSED)
		fail_msg("the agent has grown from %ld to %ld MiB", before, after);
}

/* ---- The world ---- */

static int start(void **state)
{
	const struct sys_before before = {limit_data, NULL};
	char command[1024];
	size_t i;

	if (sys_setup(state))
		return -1;
	(void)signal(SIGPIPE, SIG_IGN);
	kernel_bytes = sys_kernel_bytes("globals", &kernel);
	for (i = 0; i < SECRET; i++)
		secret[i] = (uint8_t)(i * 167 + i / 256 * 13 + 91);
	snprintf(command, sizeof(command),
	        SYS_BUILD "/tools/rig-agent --key %s --listen 127.0.0.1:0 sim:mem=64M sim:mem=64M",
	        remote_key());
	remote_agent_before(&agent, command, &before);
	return rig_rmt_key_read(remote_key(), &key);
}

static int end(void **state)
{
	remote_agent_end(&agent);
	free(kernel);
	return sys_teardown(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(long_refusals_that_nobody_asked_for_do_not_fill_an_agent),
	        cmocka_unit_test(an_agent_serves_honest_jobs_whatever_liars_say),
	};

	return cmocka_run_group_tests(tests, start, end);
}
