/* SPDX-License-Identifier: MIT */
/* In which order an agent does what it is told, and a controller learns of values. */
#include <semaphore.h>
#include <string.h>
#include <time.h>

#include "agent_device.h"
#include "agent_inside.h"
#include "agent_peer.h"

static const char *const plain[INSIDE_DRIVERS] = {"", ""};

static void nap_ms(unsigned ms)
{
	const struct timespec moment = {.tv_nsec = 1000000L * ms};

	(void)nanosleep(&moment, NULL);
}

/* P1's value waits for P0's; who says that P0's is reached stands still when both are. */
static void a_value_is_not_told_before_those_that_it_waited_for(void **state)
{
	struct inside *in = inside_start(plain, NULL);
	struct talk t;

	(void)state;
	talk_begin(&t, in, 1);
	talk_open(&t, "P0");
	talk_open(&t, "P1");
	polled_gate(in->drivers[0], 0);
	talk_empty(&t, 0, 1);
	inside_await(in, 0, POLLED_SUBMIT, 1);
	talk_follow(&t, 1, 1, 0, 1);
	inside_await(in, 1, POLLED_SUBMIT, 1);
	inside_stop(in, 0, POLLED_SLEEP);
	inside_await_stopped(in, 0);
	polled_gate(in->drivers[0], UINT64_MAX);
	while (polled_word(in->drivers[1]) < 1)
		nap_ms(1);
	/* For a thread that does not wait to say it. */
	nap_ms(300);
	inside_go(in, 0);
	talk_await_value(&t, 1, 1);
	assert_true(t.reached[0] == 1);
	talk_end(&t);
	inside_end(in);
}

/* ---- Messages of several proxies, about one device ---- */

enum { BYTES = 4096, FETCH = 7, BYTE = 0x5a };

/* A copy of the controller's bytes, which are to follow. */
static void submit_for_bytes(struct talk *t, uint32_t region)
{
	struct rig_rmt_part part = {.queue = 1,
	        .kind = RIG_COPY,
	        .dst = {.where = RIG_RMT_HERE, .region = region, .pitch = BYTES},
	        .src = {.where = RIG_RMT_LOCAL},
	        .row_bytes = BYTES,
	        .rows = 1};
	struct rig_rmt_work work = {.value = 1, .nparts = 1, .parts = &part};
	struct rig_rmt_out out = {0};

	rig_rmt_work_put(&out, &work);
	talk_send(t, RIG_RMT_SUBMIT, &out);
}

/* Half of them. */
static void send_bytes(struct talk *t, uint64_t at)
{
	struct rig_rmt_out out = {0};
	uint8_t bytes[BYTES / 2];

	memset(bytes, BYTE, sizeof(bytes));
	rig_rmt_put32(&out, 0);
	rig_rmt_put64(&out, 1);
	rig_rmt_put64(&out, at);
	rig_rmt_put_bytes(&out, bytes, sizeof(bytes));
	talk_send(t, RIG_RMT_DATA, &out);
}

/* Copies what has come for the fetch, or has been said of it. */
static bool take_fetch(struct inside *in, struct fetch *to, uint8_t *bytes)
{
	struct session *s;
	bool has = false;

	(void)pthread_mutex_lock(&in->agent.lock);
	s = in->agent.sessions;
	assert_non_null(s);
	(void)pthread_mutex_lock(&s->lock);
	for (const struct fetch *f = s->fetches; f; f = f->next)
		if (f->id == FETCH && f->got == f->bytes) {
			has = true;
			*to = *f;
			memcpy(bytes, f->data, f->got);
		}
	(void)pthread_mutex_unlock(&s->lock);
	(void)pthread_mutex_unlock(&in->agent.lock);
	return has;
}

static void await_fetch(struct inside *in, struct fetch *f, uint8_t *bytes)
{
	unsigned looks;

	for (looks = 0; !take_fetch(in, f, bytes); looks++) {
		if (looks > INSIDE_SECONDS * 1000u)
			fail_msg("of the fetch nothing is heard");
		nap_ms(1);
	}
}

static void a_fetch_between_work_and_its_bytes_copies_what_the_work_brings(void **state)
{
	struct inside *in = inside_start(plain, NULL);
	uint8_t bytes[BYTES], wanted[BYTES];
	struct fetch f;
	struct talk t;
	uint32_t region;

	(void)state;
	talk_begin(&t, in, 1);
	talk_open(&t, "P0");
	region = talk_alloc(&t, 0, BYTES);
	submit_for_bytes(&t, region);
	send_bytes(&t, 0);
	talk_fetch(&t, FETCH, 0, region, BYTES);
	send_bytes(&t, BYTES / 2);
	talk_await_value(&t, 0, 1);
	await_fetch(in, &f, bytes);
	assert_false(f.failed);
	memset(wanted, BYTE, BYTES);
	assert_memory_equal(bytes, wanted, BYTES);
	talk_end(&t);
	inside_end(in);
}

static void a_fetch_behind_work_whose_bytes_never_come_is_refused_at_the_stop(void **state)
{
	struct inside *in = inside_start(plain, NULL);
	uint8_t bytes[BYTES];
	struct fetch f;
	struct talk t;
	uint32_t region;

	(void)state;
	talk_begin(&t, in, 1);
	talk_open(&t, "P0");
	region = talk_alloc(&t, 0, BYTES);
	submit_for_bytes(&t, region);
	talk_fetch(&t, FETCH, 0, region, BYTES);
	assert_int_equal(talk_await(&t, talk_stop(&t, 0)), 0);
	await_fetch(in, &f, bytes);
	assert_true(f.failed);
	assert_false(t.lost[0]);
	assert_string_equal(t.reason, "");
	talk_end(&t);
	inside_end(in);
}

/* ---- More than there may be ---- */

static void set_queued(struct inside *in, size_t bytes)
{
	struct queue *q;

	(void)pthread_mutex_lock(&in->agent.lock);
	q = &session_device(in->agent.sessions, 0)->hot_queue;
	(void)pthread_mutex_unlock(&in->agent.lock);
	(void)pthread_mutex_lock(&q->lock);
	q->held = bytes;
	(void)pthread_mutex_unlock(&q->lock);
}

/* Who waits for the value would wait for ever. */
static void work_of_a_living_device_that_finds_no_room_fails_the_job(void **state)
{
	struct inside *in = inside_start(plain, NULL);
	struct talk t;

	(void)state;
	talk_begin(&t, in, 1);
	talk_open(&t, "P0");
	set_queued(in, (size_t)768 << 20);
	talk_empty(&t, 0, 1);
	talk_await_failed(&t);
	assert_non_null(strstr(t.reason, "more under way"));
	set_queued(in, 0);
	rig_rmt_chan_shut(t.chan);
	talk_await_over(&t);
	talk_end(&t);
	inside_end(in);
}

/* ---- A failure ---- */

static atomic_bool holds_rails;
static sem_t told;

void __wrap_rails_fail(struct session *s, const char *why);
void __real_rails_fail(struct session *s, const char *why);

void __wrap_rails_fail(struct session *s, const char *why)
{
	if (atomic_load(&holds_rails))
		(void)sem_wait(&told);
	__real_rails_fail(s, why);
}

/* The end of the rails' connections, seen first, would be taken for the cause. */
static void a_controller_is_told_why_the_job_failed_before_its_rails_fail(void **state)
{
	struct inside *in = inside_start(plain, NULL);
	struct rig_rmt_out none = {0};
	struct talk t;

	(void)state;
	(void)sem_init(&told, 0, 0);
	talk_begin(&t, in, 1);
	atomic_store(&holds_rails, true);
	/* The first message, so that no other thread of the agent's is sending anything. */
	talk_send(&t, RIG_RMT_KINDS, &none);
	talk_await_failed(&t);
	assert_non_null(strstr(t.reason, "malformed"));
	atomic_store(&holds_rails, false);
	(void)sem_post(&told);
	rig_rmt_chan_shut(t.chan);
	talk_await_over(&t);
	talk_end(&t);
	inside_end(in);
	(void)sem_destroy(&told);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_value_is_not_told_before_those_that_it_waited_for),
	        cmocka_unit_test(a_fetch_between_work_and_its_bytes_copies_what_the_work_brings),
	        cmocka_unit_test(a_fetch_behind_work_whose_bytes_never_come_is_refused_at_the_stop),
	        cmocka_unit_test(a_controller_is_told_why_the_job_failed_before_its_rails_fail),
	        cmocka_unit_test(work_of_a_living_device_that_finds_no_room_fails_the_job),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
