/* SPDX-License-Identifier: MIT */
/* An agent's account of bytes between agents, without any: each fetch ends once at either side, and nothing
   of it is left. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

#include "agent.h"
#include "agent_device.h"
#include "agent_memory.h"
#include "agent_parcel.h"
#include "agent_peer.h"
#include "agent_rails.h"
#include "agent_session.h"

enum { OTHER = 2, THIRD = 3, FETCH = 77, BYTES = 1000000, MOST = 8 };

/* ---- The rest of the agent, and the rails ---- */

static struct session s;
static struct device d;
static struct peer peers[2];
static struct staging staging;
static uint8_t memory[16];

static struct {
	unsigned refusals, claims, nothings, unclaims, voids; /* messages sent */
	unsigned sends, flights, staged, unexpected, failures;
	int expect_answer, send_answer;
	rig_rail_told *sent, *landed;
	void *sent_arg, *landed_arg;
	void (*on_claim)(void), (*on_unclaim)(void);
	uint32_t refused_machine;
} did;

int __wrap_rig_rmt_chan_send(struct rig_rmt_chan *chan, uint8_t kind, const void *head, size_t head_bytes,
        const void *body, size_t body_bytes);

int __wrap_rig_rmt_chan_send(struct rig_rmt_chan *chan, uint8_t kind, const void *head, size_t head_bytes,
        const void *body, size_t body_bytes)
{
	struct rig_rmt_claim c;

	(void)chan;
	(void)body;
	(void)body_bytes;
	if (kind == RIG_RMT_CLAIM) {
		assert_int_equal(rig_rmt_claim_parse(head, head_bytes, &c), 0);
		assert_int_equal(c.fetch, FETCH);
		*(c.bytes ? &did.claims : &did.nothings) += 1;
		if (c.bytes && did.on_claim)
			did.on_claim();
	} else {
		assert_int_equal(kind, RIG_RMT_UNCLAIM);
		did.unclaims++;
		if (did.on_unclaim)
			did.on_unclaim();
	}
	return 0;
}

/* Refusals. */
int __wrap_rig_rmt_post_send(
        struct rig_rmt_post *post, struct rig_rmt_chan *chan, uint8_t kind, const void *bytes, size_t n);

int __wrap_rig_rmt_post_send(
        struct rig_rmt_post *post, struct rig_rmt_chan *chan, uint8_t kind, const void *bytes, size_t n)
{
	(void)bytes;
	assert_int_equal(kind, RIG_RMT_FETCHED);
	assert_ptr_equal(post, chan == (void *)&peers[0] ? &peers[0].post : &peers[1].post);
	assert_true(n > 0);
	did.refusals++;
	did.refused_machine = chan == (void *)&peers[0] ? OTHER : THIRD;
	return 0;
}

struct rig_rail_link *rails_link_to(struct session *session, uint32_t machine)
{
	(void)session;
	(void)machine;
	return (void *)memory;
}

int rig_rail_expect(struct rig_rail_link *link, void *at, size_t bytes, rig_rail_told *landed, void *arg,
        struct rig_parcel_ticket *ticket)
{
	(void)link;
	(void)at;
	*ticket = (struct rig_parcel_ticket){.number = 5, .bytes = bytes};
	did.landed = landed;
	did.landed_arg = arg;
	return did.expect_answer;
}

int rig_rail_unexpect(struct rig_rail_link *link, uint32_t number)
{
	(void)link;
	assert_int_equal(number, 5);
	did.unexpected++;
	did.landed(did.landed_arg, -ECANCELED);
	return 0;
}

int rig_rail_send(struct rig_rail_link *link, const void *from, const struct rig_parcel_ticket *ticket,
        rig_rail_told *sent, void *arg)
{
	(void)link;
	assert_ptr_equal(from, staging.host);
	assert_true(ticket->bytes == BYTES);
	did.sends++;
	if (did.send_answer)
		return did.send_answer;
	did.flights++;
	did.sent = sent;
	did.sent_arg = arg;
	return 0;
}

int session_send(
        struct session *session, uint8_t kind, const struct rig_rmt_out *out, const void *body, size_t bytes)
{
	(void)session;
	(void)out;
	(void)body;
	(void)bytes;
	assert_int_equal(kind, RIG_RMT_VOID);
	did.voids++;
	return 0;
}

void session_beat(struct session *session, struct rig_rmt_chan *chan)
{
	(void)session;
	(void)chan;
}

void session_fail(struct session *session, const char *format, ...)
{
	(void)session;
	(void)format;
	did.failures++;
}

void session_fail_for(struct session *session, uint32_t machine, const char *format, ...)
{
	(void)session;
	(void)machine;
	(void)format;
	did.failures++;
}

void staging_give(struct device *device, struct staging *given)
{
	assert_ptr_equal(device, &d);
	if (!given)
		return;
	assert_ptr_equal(given, &staging);
	did.staged++;
}

bool device_is_ending(const struct device *device)
{
	return atomic_load(&device->ending);
}

void agent_log(const struct agent *agent, const char *format, ...)
{
	(void)agent;
	(void)format;
}

/* ---- Events ---- */

static void begin(void)
{
	memset(&did, 0, sizeof(did));
	memset(&s, 0, sizeof(s));
	memset(&d, 0, sizeof(d));
	(void)pthread_mutex_init(&s.lock, NULL);
	(void)pthread_cond_init(&s.changed, NULL);
	(void)snprintf(s.join.machine, sizeof(s.join.machine), "1");
	for (uint32_t i = 0; i < 2; i++)
		peers[i] = (struct peer){.session = &s, .machine = OTHER + i, .chan = (void *)&peers[i]};
	s.peers = peers;
	s.npeers = 2;
	d.session = &s;
	staging = (struct staging){.host = memory};
}

static int claim_from(uint32_t machine, uint64_t bytes)
{
	const struct rig_rmt_claim c = {.fetch = FETCH, .bytes = bytes};
	struct rig_rmt_out out = {0};
	int err;

	rig_rmt_claim_put(&out, &c);
	err = parcel_claim(&s, machine, out.at, out.used);
	rig_rmt_out_free(&out);
	return err;
}

static int unclaim_from(uint32_t machine)
{
	struct rig_rmt_out out = {0};
	int err;

	rig_rmt_put32(&out, FETCH);
	err = parcel_unclaim(&s, machine, out.at, out.used);
	rig_rmt_out_free(&out);
	return err;
}

static void be_ready(void)
{
	struct pending p = {.out = &staging, .out_bytes = BYTES, .fetch = FETCH, .machine = OTHER};

	parcel_ready(&d, &p);
	/* What it did not take is the pending's to give back. */
	staging_give(&d, p.out);
}

static void refuse(void)
{
	parcel_refuse(&s, OTHER, FETCH, "the test");
}

static void end_flight(void)
{
	rig_rail_told *sent = did.sent;

	did.sent = NULL;
	if (sent)
		sent(did.sent_arg, 0);
}

/* ---- The side that sends ---- */

enum event { NONE, CLAIM, CLAIM_NOTHING, UNCLAIM, READY, REFUSE, FLOWN, HALT };

static void happen(enum event event)
{
	switch (event) {
	case CLAIM:
		assert_int_equal(claim_from(OTHER, BYTES), 0);
		break;
	case CLAIM_NOTHING:
		assert_int_equal(claim_from(OTHER, 0), 0);
		break;
	case UNCLAIM:
		assert_int_equal(unclaim_from(OTHER), 0);
		break;
	case READY:
		be_ready();
		break;
	case REFUSE:
		refuse();
		break;
	case FLOWN:
		end_flight();
		break;
	case HALT:
		parcels_halt(&d);
		break;
	default:
		break;
	}
}

static void a_fetch_ends_once_in_whatever_order_its_two_sides_come(void **state)
{
	static const struct {
		enum event events[MOST];
		bool goes;
	} cases[] = {
	        {{READY, CLAIM, FLOWN}, true},
	        {{CLAIM, READY, FLOWN}, true},
	        {{CLAIM, READY, UNCLAIM, FLOWN}, true},
	        {{READY, CLAIM, UNCLAIM, FLOWN}, true},
	        {{READY, CLAIM, FLOWN, UNCLAIM}, true},
	        {{CLAIM, READY, FLOWN, UNCLAIM}, true},
	        {{CLAIM, READY, FLOWN, HALT}, true},
	        {{CLAIM, UNCLAIM, READY}, false},
	        {{CLAIM, UNCLAIM, REFUSE}, false},
	        {{CLAIM, REFUSE, UNCLAIM}, false},
	        {{CLAIM, REFUSE}, false},
	        {{REFUSE, CLAIM}, false},
	        {{REFUSE, CLAIM, UNCLAIM}, false},
	        {{CLAIM_NOTHING, READY}, false},
	        {{CLAIM_NOTHING, REFUSE}, false},
	        {{READY, CLAIM_NOTHING}, false},
	        {{REFUSE, CLAIM_NOTHING}, false},
	        {{READY, HALT, CLAIM}, false},
	        {{READY, HALT, CLAIM, UNCLAIM}, false},
	        {{READY, HALT, CLAIM_NOTHING}, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		unsigned ready = 0;

		begin();
		for (int k = 0; k < MOST; k++) {
			happen(cases[i].events[k]);
			ready += cases[i].events[k] == READY;
		}
		if (did.flights != cases[i].goes || did.refusals != !cases[i].goes || did.staged != ready ||
		        s.claims || s.nclaims || d.nflying || did.failures)
			fail_msg("case %zu: %u flights, %u refusals, staging given back %u times, %u records",
			        i, did.flights, did.refusals, did.staged, s.nclaims);
		if (!cases[i].goes)
			assert_int_equal(did.refused_machine, OTHER);
	}
}

static void what_no_agent_says_is_malformed(void **state)
{
	(void)state;
	begin();
	happen(CLAIM);
	assert_int_equal(claim_from(OTHER, BYTES), -EPROTO);
	assert_int_equal(unclaim_from(THIRD), -EPROTO);
	happen(UNCLAIM);
	assert_int_equal(unclaim_from(OTHER), -EPROTO);
	assert_int_equal(claim_from(OTHER, 0), -EPROTO);
	parcels_free(&s);
	begin();
	happen(READY);
	assert_int_equal(claim_from(THIRD, BYTES), -EPROTO);
	assert_int_equal(unclaim_from(OTHER), -EPROTO);
	assert_int_equal(claim_from(OTHER, BYTES + 1), -EPROTO);
	assert_int_equal(did.flights, 0);
	assert_int_equal(parcel_claim(&s, OTHER, memory, 3), -EPROTO);
	assert_int_equal(parcel_unclaim(&s, OTHER, memory, 5), -EPROTO);
	happen(HALT);
	assert_int_equal(did.staged, 1);
	assert_null(s.claims);
}

static void a_number_that_a_controller_says_twice_fails_the_job_and_ends_nothing_twice(void **state)
{
	static const enum event cases[][MOST] = {
	        {READY, READY, HALT, CLAIM},
	        {READY, READY, CLAIM, FLOWN},
	        {READY, CLAIM, READY, FLOWN},
	        {CLAIM, READY, READY, FLOWN},
	        {READY, CLAIM, REFUSE, FLOWN},
	        {READY, REFUSE, CLAIM, FLOWN},
	        {REFUSE, READY, CLAIM},
	        {REFUSE, REFUSE, CLAIM},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		unsigned ready = 0;

		begin();
		for (int k = 0; k < MOST; k++) {
			happen(cases[i][k]);
			ready += cases[i][k] == READY;
		}
		if (did.failures != 1 || did.flights + did.refusals != 1 || did.staged != ready || s.claims ||
		        s.nclaims || d.nflying)
			fail_msg(
			        "case %zu: %u failures, %u flights, %u refusals, staging given back %u times",
			        i, did.failures, did.flights, did.refusals, did.staged);
	}
}

/* The number is that of a fetch of another machine's. */
static void bytes_do_not_go_to_a_machine_that_the_controller_did_not_name(void **state)
{
	(void)state;
	begin();
	assert_int_equal(claim_from(THIRD, BYTES), 0);
	happen(READY);
	assert_int_equal(did.failures, 1);
	assert_int_equal(did.flights, 0);
	assert_int_equal(did.staged, 1);
	happen(REFUSE);
	assert_int_equal(did.failures, 2);
	parcels_free(&s);
}

static void bytes_that_cannot_be_sent_fail_the_job_unless_the_link_has_ended(void **state)
{
	(void)state;
	begin();
	did.send_answer = -ECONNABORTED;
	happen(CLAIM);
	happen(READY);
	assert_int_equal(did.failures, 0);
	assert_int_equal(did.staged, 0);
	happen(HALT);
	assert_int_equal(did.staged, 1);
	assert_null(s.claims);
	begin();
	did.send_answer = -ENOMEM;
	happen(CLAIM);
	happen(READY);
	assert_int_equal(did.failures, 1);
	happen(HALT);
	assert_int_equal(did.staged, 1);
	begin();
	did.send_answer = -ENOMEM;
	happen(READY);
	assert_int_equal(claim_from(OTHER, BYTES), -ENOMEM);
	happen(HALT);
	assert_int_equal(did.staged, 1);
}

static void bytes_for_the_controller_that_cannot_be_sent_fail_the_job_unless_the_link_has_ended(void **state)
{
	struct outgoing o = {.bytes = BYTES, .parcel = true};
	struct pending p = {.out = &staging, .outgoing = &o, .noutgoing = 1};

	(void)state;
	begin();
	did.send_answer = -ECONNABORTED;
	parcels_send(&d, &p);
	assert_false(o.begun);
	assert_int_equal(did.failures, 0);
	did.send_answer = -ENOMEM;
	parcels_send(&d, &p);
	assert_false(o.begun);
	assert_int_equal(did.failures, 1);
}

/* ---- The side that receives ---- */

static void come_whole(void)
{
	did.landed(did.landed_arg, 0);
}

static void be_refused(void)
{
	struct rig_rmt_out out = {0};

	rig_rmt_put32(&out, FETCH);
	rig_rmt_put64(&out, 0);
	rig_rmt_put64(&out, 0);
	rig_rmt_put_bytes(&out, "why", 3);
	assert_int_equal(fetch_put(&s, out.at, out.used), 0);
	rig_rmt_out_free(&out);
}

static int fetch(void)
{
	const struct rig_rmt_side src = {.where = RIG_RMT_FOREIGN_PARCEL, .machine = OTHER, .region = FETCH};

	return parcel_fetch(&d, &src, memory, BYTES);
}

static void a_ticket_between_agents_is_resolved_by_the_bytes_or_by_the_refusal(void **state)
{
	(void)state;
	begin();
	did.on_claim = come_whole;
	assert_int_equal(fetch(), 0);
	assert_int_equal(did.unexpected, 0);
	begin();
	did.on_claim = be_refused;
	assert_int_equal(fetch(), -EREMOTEIO);
	assert_string_equal(rig_error(), "why");
	assert_int_equal(did.unexpected, 1);
	assert_null(s.fetches);
	/* A device that ends asks, and waits for what the other says. */
	begin();
	atomic_store(&d.ending, true);
	did.on_unclaim = come_whole;
	assert_int_equal(fetch(), 0);
	assert_int_equal(did.unclaims, 1);
	assert_int_equal(did.unexpected, 0);
	begin();
	atomic_store(&d.ending, true);
	did.on_unclaim = be_refused;
	assert_int_equal(fetch(), -ECANCELED);
	assert_int_equal(did.unclaims, 1);
	assert_int_equal(did.unexpected, 1);
	assert_null(s.fetches);
}

static void send_messages(void)
{
	memset(memory, 'x', sizeof(memory));
	assert_int_equal(fetch_add(&s, FETCH, sizeof(memory), 0, memory, sizeof(memory)), 0);
}

static void bytes_by_message_for_a_ticket_are_malformed_and_no_text(void **state)
{
	(void)state;
	begin();
	did.on_claim = send_messages;
	assert_int_equal(fetch(), -EPROTO);
	assert_null(strstr(rig_error(), "x"));
	assert_int_equal(did.unexpected, 1);
	assert_null(s.fetches);
}

static void a_fetch_without_a_ticket_claims_nothing_and_the_refusal_leaves_nothing(void **state)
{
	(void)state;
	begin();
	did.expect_answer = -EMFILE;
	assert_int_equal(fetch(), -EMFILE);
	assert_int_equal(did.claims, 0);
	assert_int_equal(did.nothings, 1);
	be_refused();
	assert_null(s.fetches);
}

static struct rig_rmt_part copy_from(enum rig_rmt_where where)
{
	return (struct rig_rmt_part){.kind = RIG_COPY,
	        .row_bytes = 8,
	        .rows = 1,
	        .src = {.where = where, .machine = OTHER, .region = FETCH}};
}

static void sources_of_work_that_never_runs_are_given_up_and_nothing_of_them_is_left(void **state)
{
	struct rig_rmt_part part = copy_from(RIG_RMT_FOREIGN_PARCEL);
	struct rig_rmt_work work = {.nparts = 1, .parts = &part};

	(void)state;
	begin();
	sources_give_up(&s, &work, 1);
	assert_int_equal(did.nothings, 0);
	sources_give_up(&s, &work, 0);
	assert_int_equal(did.nothings, 1);
	be_refused();
	assert_null(s.fetches);
	/* The refusal came first. */
	be_refused();
	sources_give_up(&s, &work, 0);
	assert_null(s.fetches);
	/* Bytes by message: before, between, after; or a reason. */
	part = copy_from(RIG_RMT_FOREIGN);
	for (unsigned before = 0; before <= 2; before++) {
		unsigned i;

		for (i = 0; i < before; i++)
			assert_int_equal(fetch_add(&s, FETCH, 8, 4 * i, memory, 4), 0);
		sources_give_up(&s, &work, 0);
		for (; i < 2; i++) {
			assert_non_null(s.fetches);
			assert_int_equal(fetch_add(&s, FETCH, 8, 4 * i, memory, 4), 0);
		}
		assert_null(s.fetches);
	}
	sources_give_up(&s, &work, 0);
	be_refused();
	assert_null(s.fetches);
	assert_int_equal(did.nothings, 2);
}

static void a_submission_that_never_runs_voids_its_tickets_and_gives_its_sources_up(void **state)
{
	struct rig_rmt_part parts[3] = {
	        copy_from(RIG_RMT_FOREIGN_PARCEL), copy_from(RIG_RMT_HERE), copy_from(RIG_RMT_LOCAL_PARCEL)};
	struct rig_rmt_work work = {.value = 1, .nparts = 3, .parts = parts};
	struct rig_rmt_out out = {0};

	(void)state;
	begin();
	parts[1].dst.where = parts[2].dst.where = RIG_RMT_LOCAL_PARCEL;
	rig_rmt_work_put(&out, &work);
	submit_give_up(&s, out.at, out.used);
	rig_rmt_out_free(&out);
	assert_int_equal(did.voids, 2);
	assert_int_equal(did.nothings, 1);
	be_refused();
	assert_null(s.fetches);
}

static void bytes_by_message_that_nobody_waits_for_are_not_kept(void **state)
{
	(void)state;
	begin();
	atomic_store(&d.ending, true);
	assert_int_equal(fetch_take(&d, FETCH, memory, 8), -ECANCELED);
	assert_int_equal(fetch_add(&s, FETCH, 8, 0, memory, 8), 0);
	assert_null(s.fetches);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_fetch_ends_once_in_whatever_order_its_two_sides_come),
	        cmocka_unit_test(what_no_agent_says_is_malformed),
	        cmocka_unit_test(a_number_that_a_controller_says_twice_fails_the_job_and_ends_nothing_twice),
	        cmocka_unit_test(bytes_do_not_go_to_a_machine_that_the_controller_did_not_name),
	        cmocka_unit_test(bytes_that_cannot_be_sent_fail_the_job_unless_the_link_has_ended),
	        cmocka_unit_test(
	                bytes_for_the_controller_that_cannot_be_sent_fail_the_job_unless_the_link_has_ended),
	        cmocka_unit_test(a_ticket_between_agents_is_resolved_by_the_bytes_or_by_the_refusal),
	        cmocka_unit_test(bytes_by_message_for_a_ticket_are_malformed_and_no_text),
	        cmocka_unit_test(a_fetch_without_a_ticket_claims_nothing_and_the_refusal_leaves_nothing),
	        cmocka_unit_test(sources_of_work_that_never_runs_are_given_up_and_nothing_of_them_is_left),
	        cmocka_unit_test(a_submission_that_never_runs_voids_its_tickets_and_gives_its_sources_up),
	        cmocka_unit_test(bytes_by_message_that_nobody_waits_for_are_not_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
