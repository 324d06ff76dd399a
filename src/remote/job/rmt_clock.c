/* SPDX-License-Identifier: MIT */
/* A machine's clock, read between two looks at this one's: its offset is known to half of what lies between
   them, and both clocks drift from then on. */
#include <errno.h>

#include "clock.h"
#include "rmt_job.h"
#include "rmt_request.h"

/* Of a connect, unless it is known so well before: readings go on while the job lives. */
enum { SAMPLES = 3 };
#define GOOD_NS RIG_NS_PER_MS

/* What each machine's clock may be slewed by its time service, 500 parts per million, and 100 of its own. */
#define DRIFT_PPM UINT64_C(1200)

static uint64_t grown(const struct rig_rmt_clock *c, uint64_t now)
{
	return c->error + (now - c->at) * DRIFT_PPM / 1000000;
}

static void note(struct rig_rmt_machine *m, uint64_t sent, uint64_t received, uint64_t theirs)
{
	struct rig_rmt_clock c = {
	        .error = (received - sent) / 2 + 1, .at = received, .round_trip = received - sent};

	c.ahead = (int64_t)(theirs - (sent + (received - sent) / 2));
	if (m->has_clock && m->clock.round_trip < c.round_trip)
		c.round_trip = m->clock.round_trip;
	if (!m->has_clock || c.error <= grown(&m->clock, received))
		m->clock = c;
	m->has_clock = true;
}

/* One at a time: an answer that takes longer than from one to the next would else count for none. */
static bool begin_ping(struct rig_rmt_machine *m, uint32_t number)
{
	bool free;

	(void)pthread_mutex_lock(&m->lock);
	free = !m->ping;
	if (free) {
		m->ping = number;
		m->ping_sent = rig_now_ns();
	}
	(void)pthread_mutex_unlock(&m->lock);
	return free;
}

static void give_up_ping(struct rig_rmt_machine *m, uint32_t number)
{
	(void)pthread_mutex_lock(&m->lock);
	if (m->ping == number)
		m->ping = 0;
	(void)pthread_mutex_unlock(&m->lock);
}

void rig_rmt_clock_ping(struct rig_rmt_machine *m)
{
	struct rig_rmt_out out = {0};
	uint32_t next;

	(void)pthread_mutex_lock(&m->job->lock);
	next = m->job->next_request++;
	(void)pthread_mutex_unlock(&m->job->lock);
	rig_rmt_put32(&out, next);
	if (!out.bad && begin_ping(m, next) &&
	        !rig_rmt_chan_try_send(m->chan, RIG_RMT_PING, out.at, out.used))
		give_up_ping(m, next);
	rig_rmt_out_free(&out);
}

bool rig_rmt_clock_answer(struct rig_rmt_machine *m, uint32_t number, const uint8_t *payload, size_t bytes)
{
	struct rig_rmt_in in = rig_rmt_in_of(payload, bytes);
	uint64_t theirs = rig_rmt_get64(&in), now = rig_now_ns();

	if (!m->ping || number != m->ping)
		return false;
	m->ping = 0;
	if (!rig_rmt_in_end(&in))
		note(m, m->ping_sent, now, theirs);
	return true;
}

static int measure_once(struct rig_rmt_machine *m)
{
	const struct rig_rmt_out none = {0};
	struct rig_rmt_out payload;
	uint64_t sent = rig_now_ns(), received, theirs;
	struct rig_rmt_in in;
	int err = rig_rmt_request(m, RIG_RMT_PING, &none, m->job->options.step_ms, &payload);

	if (err)
		return err;
	received = rig_now_ns();
	in = rig_rmt_in_of(payload.at, payload.used);
	theirs = rig_rmt_get64(&in);
	rig_rmt_out_free(&payload);
	if (rig_rmt_in_end(&in))
		return rig_error_set(-EPROTO, "machine %s: malformed: a time", m->name);
	(void)pthread_mutex_lock(&m->lock);
	note(m, sent, received, theirs);
	(void)pthread_mutex_unlock(&m->lock);
	return 0;
}

int rig_rmt_clock_measure(struct rig_rmt_machine *m)
{
	unsigned i;
	int err = 0;

	for (i = 0; i < SAMPLES && !err && (!i || rig_rmt_clock_now(m).error > GOOD_NS); i++)
		err = measure_once(m);
	return err;
}

struct rig_rmt_clock rig_rmt_clock_now_locked(const struct rig_rmt_machine *m)
{
	struct rig_rmt_clock c = m->clock;

	c.error = grown(&c, rig_now_ns());
	return c;
}

struct rig_rmt_clock rig_rmt_clock_now(struct rig_rmt_machine *m)
{
	struct rig_rmt_clock c;

	(void)pthread_mutex_lock(&m->lock);
	c = rig_rmt_clock_now_locked(m);
	(void)pthread_mutex_unlock(&m->lock);
	return c;
}
