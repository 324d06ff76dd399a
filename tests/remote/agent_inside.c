/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "agent_inside.h"

enum { KEY_BYTE = 7, SILENCE_MS = 600000, DIAL_MS = 60000, END_S = 60, LOOK_MS = 300 };

static void nap(void)
{
	const struct timespec moment = {.tv_nsec = 1000000};

	(void)nanosleep(&moment, NULL);
}

static void hook(void *arg, enum polled_call call)
{
	struct stop *s = arg;
	int expected = (int)call;

	if (!atomic_compare_exchange_strong(&s->call, &expected, POLLED_CALLS))
		return;
	(void)sem_post(&s->came);
	(void)sem_wait(&s->go);
}

static void *accept_run(void *arg)
{
	struct inside *in = arg;

	agent_accept(&in->agent, in->listener, in->ending);
	return NULL;
}

static void serve(
        struct inside *in, unsigned i, const char *text, const struct rig_opener *(*edit)(struct polled *p))
{
	struct stop *s = &in->stops[i];
	struct polled_options options;

	assert_int_equal(polled_parse(text, &options), 0);
	(void)snprintf(in->names[i], sizeof(in->names[i]), "P%u", i);
	options.name = in->names[i];
	in->drivers[i] = polled_new(&options);
	assert_non_null(in->drivers[i]);
	atomic_init(&s->call, POLLED_CALLS);
	(void)sem_init(&s->came, 0, 0);
	(void)sem_init(&s->go, 0, 0);
	polled_hook(in->drivers[i], hook, s);
	assert_int_equal(
	        agent_serve(&in->agent, edit ? edit(in->drivers[i]) : polled_opener(in->drivers[i]), false),
	        0);
}

struct inside *inside_start(const char *const *options, const struct rig_opener *(*edit)(struct polled *p))
{
	struct inside *in = calloc(1, sizeof(*in));
	unsigned i;

	assert_non_null(in);
	agent_init(&in->agent);
	/* Tests count a driver's calls. */
	in->agent.keep_memory = true;
	memset(in->key.bytes, KEY_BYTE, sizeof(in->key.bytes));
	in->agent.key = &in->key;
	for (i = 0; i < INSIDE_DRIVERS; i++)
		serve(in, i, options[i], edit);
	in->listener = agent_listen("127.0.0.1:0");
	assert_true(in->listener >= 0);
	assert_int_equal(agent_where(in->listener, in->name, sizeof(in->name)), 0);
	in->ending = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(pthread_create(&in->thread, NULL, accept_run, in), 0);
	return in;
}

static void end_accepting(struct inside *in)
{
	assert_int_equal(eventfd_write(in->ending, 1), 0);
	(void)pthread_join(in->thread, NULL);
	(void)close(in->listener);
	(void)close(in->ending);
}

void inside_end_stuck(struct inside *in)
{
	end_accepting(in);
	assert_false(agent_end(&in->agent, END_S));
	assert_int_equal(in->agent.nsessions, 0);
}

void inside_end(struct inside *in)
{
	unsigned i;

	end_accepting(in);
	assert_true(agent_end(&in->agent, END_S));
	for (i = 0; i < INSIDE_DRIVERS; i++) {
		if (polled_breach(in->drivers[i]))
			fail_msg("%s: %s", in->names[i], polled_breach(in->drivers[i]));
		assert_int_equal(polled_left(in->drivers[i]), 0);
		polled_free(in->drivers[i]);
		free(in->agent.served[i].name);
	}
	free(in);
}

void inside_await(struct inside *in, unsigned driver, enum polled_call call, unsigned n)
{
	unsigned looks;

	for (looks = 0; polled_count(in->drivers[driver], call) < n; looks++) {
		if (looks > INSIDE_SECONDS * 1000u)
			fail_msg("%s got %u calls %d, not %u", in->names[driver],
			        polled_count(in->drivers[driver], call), (int)call, n);
		nap();
	}
}

void inside_assert_none(struct inside *in, unsigned driver, enum polled_call call, unsigned n)
{
	unsigned i;

	for (i = 0; i < LOOK_MS; i++) {
		if (polled_count(in->drivers[driver], call) != n)
			fail_msg("%s got call %d meanwhile", in->names[driver], (int)call);
		nap();
	}
}

void inside_stop(struct inside *in, unsigned driver, enum polled_call call)
{
	atomic_store(&in->stops[driver].call, (int)call);
}

void inside_await_stopped(struct inside *in, unsigned driver)
{
	struct timespec end;

	(void)clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += INSIDE_SECONDS;
	while (sem_timedwait(&in->stops[driver].came, &end))
		if (errno != EINTR)
			fail_msg("%s: nobody came", in->names[driver]);
}

void inside_go(struct inside *in, unsigned driver)
{
	(void)sem_post(&in->stops[driver].go);
}

/* ---- A controller ---- */

void talk_join(struct talk *t, struct inside *in, const struct rig_rmt_join *join)
{
	struct rig_rmt_out out = {0};

	memset(t, 0, sizeof(*t));
	if (rig_rmt_chan_dial(in->name, &in->key, DIAL_MS, SILENCE_MS, &t->chan))
		fail_msg("%s", rig_error());
	rig_rmt_join_put(&out, join);
	talk_send(t, RIG_RMT_JOIN, &out);
}

void talk_begin(struct talk *t, struct inside *in, uint8_t token)
{
	const struct rig_rmt_join join = {
	        .role = RIG_RMT_CONTROLLER, .token = {token}, .silence_ms = SILENCE_MS, .machine = "0"};

	talk_join(t, in, &join);
}

void talk_end(struct talk *t)
{
	struct rig_rmt_out none = {0};
	unsigned i;

	if (!t->over)
		talk_send(t, RIG_RMT_CLOSE, &none);
	rig_rmt_chan_free(t->chan);
	for (i = 0; i < INSIDE_NUMBERS; i++)
		rig_rmt_out_free(&t->payloads[i]);
}

void talk_send(struct talk *t, uint8_t kind, struct rig_rmt_out *out)
{
	assert_false(out->bad);
	assert_int_equal(rig_rmt_chan_send(t->chan, kind, out->at, out->used, NULL, 0), 0);
	rig_rmt_out_free(out);
}

uint32_t talk_ask(struct talk *t, uint8_t kind, struct rig_rmt_out *out)
{
	struct rig_rmt_out whole = {0};
	uint32_t request = ++t->next;

	assert_true(request < INSIDE_NUMBERS);
	rig_rmt_put32(&whole, request);
	rig_rmt_put_bytes(&whole, out->at, out->used);
	rig_rmt_out_free(out);
	talk_send(t, kind, &whole);
	return request;
}

static void take_answer(struct talk *t, const uint8_t *bytes, size_t n)
{
	struct rig_rmt_in in = rig_rmt_in_of(bytes, n);
	struct rig_rmt_answer answer;

	assert_int_equal(rig_rmt_answer_parse(&in, &answer), 0);
	assert_true(answer.request < INSIDE_NUMBERS && !t->done[answer.request]);
	t->answers[answer.request] = answer;
	t->done[answer.request] = true;
	rig_rmt_put_bytes(&t->payloads[answer.request], in.at, in.left);
}

static void take_end(struct talk *t, uint8_t kind, const uint8_t *bytes, size_t n)
{
	struct rig_rmt_in in = rig_rmt_in_of(bytes, n);
	uint32_t id = rig_rmt_get32(&in);

	rig_rmt_get_text(&in, t->reason, sizeof(t->reason));
	assert_int_equal(rig_rmt_in_end(&in), 0);
	if (kind == RIG_RMT_LOST)
		t->lost[id] = true;
	else
		t->failed = true;
}

/* One message. */
static void take(struct talk *t)
{
	const uint8_t *bytes;
	struct rig_rmt_in in;
	uint8_t kind;
	uint32_t id;
	size_t n;

	assert_false(t->over);
	if (rig_rmt_chan_recv(t->chan, &kind, &bytes, &n)) {
		t->over = true;
		return;
	}
	in = rig_rmt_in_of(bytes, n);
	if (kind == RIG_RMT_ANSWER)
		take_answer(t, bytes, n);
	if (kind == RIG_RMT_LOST || kind == RIG_RMT_FAILED)
		take_end(t, kind, bytes, n);
	if (kind == RIG_RMT_REACHED) {
		id = rig_rmt_get32(&in);
		t->reached[id] = rig_rmt_get64(&in);
	}
}

int talk_await(struct talk *t, uint32_t request)
{
	while (!t->done[request] && !t->over)
		take(t);
	if (!t->done[request])
		fail_msg("no answer: %s", t->reason);
	return t->answers[request].status;
}

void talk_await_end(struct talk *t, uint32_t device, uint64_t value)
{
	while (t->reached[device] < value && !t->over && !t->lost[device])
		take(t);
}

void talk_await_value(struct talk *t, uint32_t device, uint64_t value)
{
	talk_await_end(t, device, value);
	if (t->reached[device] < value)
		fail_msg("value %llu is not reached: %s", (unsigned long long)value, t->reason);
}

void talk_await_lost(struct talk *t, uint32_t device)
{
	while (!t->lost[device] && !t->over)
		take(t);
	assert_true(t->lost[device]);
}

void talk_await_failed(struct talk *t)
{
	while (!t->failed && !t->over)
		take(t);
	assert_true(t->failed);
}

void talk_await_over(struct talk *t)
{
	while (!t->over)
		take(t);
}

/* The request's answer, which is a success. */
static const struct rig_rmt_out *demand(struct talk *t, uint8_t kind, struct rig_rmt_out *out)
{
	uint32_t request = talk_ask(t, kind, out);

	if (talk_await(t, request))
		fail_msg("request %u: %d: %s", kind, t->answers[request].status, t->answers[request].text);
	return &t->payloads[request];
}

void talk_ping(struct talk *t)
{
	struct rig_rmt_out none = {0};

	(void)demand(t, RIG_RMT_PING, &none);
}

void talk_open(struct talk *t, const char *name)
{
	struct rig_rmt_out out = {0};

	rig_rmt_put_text(&out, name);
	(void)demand(t, RIG_RMT_OPEN, &out);
}

static uint32_t number_of(const struct rig_rmt_out *payload)
{
	struct rig_rmt_in in = rig_rmt_in_of(payload->at, payload->used);

	return rig_rmt_get32(&in);
}

uint32_t talk_number(struct talk *t, uint32_t request)
{
	return number_of(&t->payloads[request]);
}

uint32_t talk_alloc(struct talk *t, uint32_t device, uint64_t bytes)
{
	struct rig_rmt_out out = {0};

	rig_rmt_put32(&out, device);
	rig_rmt_put32(&out, RIG_DEVICE);
	rig_rmt_put64(&out, bytes);
	return number_of(demand(t, RIG_RMT_ALLOC, &out));
}

static void tell(struct talk *t, uint8_t kind, uint32_t device, uint32_t number)
{
	struct rig_rmt_out out = {0};

	rig_rmt_put32(&out, device);
	rig_rmt_put32(&out, number);
	talk_send(t, kind, &out);
}

void talk_free(struct talk *t, uint32_t device, uint32_t region)
{
	tell(t, RIG_RMT_FREE, device, region);
}

void talk_unload(struct talk *t, uint32_t device, uint32_t image)
{
	tell(t, RIG_RMT_UNLOAD, device, image);
}

uint32_t talk_map(struct talk *t, uint32_t device, uint32_t other, uint32_t region)
{
	struct rig_rmt_out out = {0};

	rig_rmt_put32(&out, device);
	rig_rmt_put32(&out, other);
	rig_rmt_put32(&out, region);
	return number_of(demand(t, RIG_RMT_MAP_PEER, &out));
}

uint32_t talk_stop(struct talk *t, uint32_t device)
{
	struct rig_rmt_out out = {0};

	rig_rmt_put32(&out, device);
	rig_rmt_put8(&out, 0);
	rig_rmt_put_text(&out, "");
	return talk_ask(t, RIG_RMT_STOP, &out);
}

uint32_t talk_load(struct talk *t, uint32_t device)
{
	struct rig_rmt_out code = {0}, out = {0};

	rig_rmt_put32(&code, device);
	rig_rmt_put_bytes(&code, POLLED_BINARY, sizeof(POLLED_BINARY));
	talk_send(t, RIG_RMT_CODE, &code);
	rig_rmt_put32(&out, device);
	rig_rmt_put64(&out, sizeof(POLLED_BINARY));
	return number_of(demand(t, RIG_RMT_LOAD, &out));
}

struct rig_rmt_entry talk_entry(struct talk *t, uint32_t device, uint32_t image, const char *name)
{
	struct rig_rmt_out out = {0};
	const struct rig_rmt_out *payload;
	struct rig_rmt_entry entry;
	struct rig_rmt_in in;

	rig_rmt_put32(&out, device);
	rig_rmt_put32(&out, image);
	rig_rmt_put_text(&out, name);
	payload = demand(t, RIG_RMT_ENTRY, &out);
	in = rig_rmt_in_of(payload->at, payload->used);
	assert_int_equal(rig_rmt_entry_parse(&in, &entry), 0);
	return entry;
}

static void submit(struct talk *t, struct rig_rmt_work *work)
{
	struct rig_rmt_out out = {0};

	rig_rmt_work_put(&out, work);
	talk_send(t, RIG_RMT_SUBMIT, &out);
}

void talk_copy(struct talk *t, uint32_t device, uint64_t value, uint32_t dst, uint32_t src, uint64_t bytes)
{
	struct rig_rmt_part part = {.queue = 1,
	        .kind = RIG_COPY,
	        .dst = {.where = RIG_RMT_HERE, .region = dst, .pitch = bytes},
	        .src = {.where = RIG_RMT_HERE, .region = src, .pitch = bytes},
	        .row_bytes = bytes,
	        .rows = 1};
	struct rig_rmt_work work = {.device = device, .value = value, .nparts = 1, .parts = &part};

	submit(t, &work);
}

void talk_launch(struct talk *t, uint32_t device, uint64_t value, uint32_t function)
{
	struct rig_rmt_part part = {.queue = 0,
	        .kind = RIG_LAUNCH,
	        .function = function,
	        .block = {.groups = {1, 1, 1}, .threads = {1, 1, 1}}};
	struct rig_rmt_work work = {.device = device, .value = value, .nparts = 1, .parts = &part};

	submit(t, &work);
}

void talk_empty(struct talk *t, uint32_t device, uint64_t value)
{
	struct rig_rmt_part none = {0};
	struct rig_rmt_work work = {.device = device, .value = value, .parts = &none};

	submit(t, &work);
}

void talk_follow(struct talk *t, uint32_t device, uint64_t value, uint32_t other, uint64_t awaited)
{
	struct rig_rmt_part none = {0};
	struct rig_rmt_work work = {
	        .device = device, .value = value, .nwaits = 1, .waits = {{other, awaited}}, .parts = &none};

	submit(t, &work);
}

void talk_fetch(struct talk *t, uint32_t id, uint32_t device, uint32_t region, uint64_t bytes)
{
	const struct rig_rmt_fetch fetch = {
	        .id = id, .device = device, .region = region, .pitch = bytes, .row_bytes = bytes, .rows = 1};
	struct rig_rmt_out out = {0};

	rig_rmt_fetch_put(&out, &fetch);
	talk_send(t, RIG_RMT_FETCH, &out);
}
