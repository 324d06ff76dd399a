/* SPDX-License-Identifier: MIT */
/* The ends of rails at an agent: how long they are named, and what a failure, a halt and a close do to them.
   The test is the controller, with a rail engine of its own. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent_inside.h"
#include "agent_rails.h"
#include "clock.h"

enum {
	JOB = 1,
	SELF = 0,
	OTHER = 1,
	SILENCE_MS = 60000,
	BYTES = 700,
	COPY = 768,
	IDLE_MS = 900,
	STILL_MS = 300
};

static const char *const plain[INSIDE_DRIVERS] = {"", ""};
static const struct rig_remote_transfer one = {.src = 0, .dst = 0, .length = BYTES};
static const enum rig_remote_count counts[] = {RIG_REMOTE_READY, RIG_REMOTE_SENT, RIG_REMOTE_ARRIVED};

struct world {
	struct inside *in;
	struct talk t;
	struct rig_rails *rails;
	struct rig_rail_link *link;
};

/* ---- A controller's part in rails ---- */

static uint32_t ask_rail(struct talk *t, const struct rig_rmt_rail *r, const struct rig_remote_transfer *both)
{
	struct rig_rmt_out out = {0};

	rig_rmt_rail_put(&out, r, both, both);
	return talk_ask(t, RIG_RMT_RAIL, &out);
}

/* The blob of the answer. */
static struct rig_rail_blob await_blob(struct talk *t, uint32_t request)
{
	struct rig_rail_blob blob = {0};

	if (talk_await(t, request))
		fail_msg("a rail's request: %s", t->answers[request].text);
	assert_true(t->payloads[request].used <= sizeof(blob.at));
	blob.bytes = t->payloads[request].used;
	if (blob.bytes)
		memcpy(blob.at, t->payloads[request].at, blob.bytes);
	return blob;
}

static void set_blob(struct rig_rmt_rail *r, const struct rig_rail_blob *blob)
{
	r->nblob = (uint32_t)blob->bytes;
	memcpy(r->blob, blob->at, blob->bytes);
}

static void make_link(struct world *w)
{
	struct rig_rmt_rail accept = {.op = RIG_RMT_RAIL_ACCEPT,
	                            .peer = RIG_RMT_HERE_PEER,
	                            .name = "the controller",
	                            .provider = RIG_RAIL_SEALED},
	                    finish = {.op = RIG_RMT_RAIL_FINISH, .peer = RIG_RMT_HERE_PEER};
	const struct rig_rails_options options = {.spin_ns = UINT64_MAX};
	struct rig_deadline deadline = rig_deadline_in(NULL, INSIDE_SECONDS * RIG_NS_PER_S);
	struct rig_rail_blob blob;
	uint32_t request;

	assert_int_equal(rig_rails_open(&options, &w->rails), 0);
	assert_int_equal(rig_rail_link_offer(w->rails, "the agent", &blob, &w->link), 0);
	set_blob(&accept, &blob);
	blob = await_blob(&w->t, ask_rail(&w->t, &accept, NULL));
	request = ask_rail(&w->t, &finish, NULL);
	assert_int_equal(rig_rail_link_finish(w->link, &blob, &deadline), 0);
	(void)await_blob(&w->t, request);
}

static void begin(struct world *w)
{
	w->in = inside_start(plain, NULL);
	talk_begin(&w->t, w->in, JOB);
	make_link(w);
}

static void end_engine(struct world *w)
{
	if (!w->rails)
		return;
	rig_rail_link_put(w->link);
	rig_rails_close(w->rails);
	w->rails = NULL;
}

static void end(struct world *w)
{
	end_engine(w);
	talk_end(&w->t);
	inside_end(w->in);
}

/* One transfer each way; the end here. */
static const struct rig_remote_end *make_rail(struct world *w, uint64_t id)
{
	struct rig_rmt_rail make = {.op = RIG_RMT_RAIL_MAKE,
	                            .peer = RIG_RMT_HERE_PEER,
	                            .rail = id,
	                            .nsend = 1,
	                            .nreceive = 1},
	                    join = {.op = RIG_RMT_RAIL_JOIN, .rail = id};
	const struct rig_remote_end *end;
	struct rig_rail_blob mine, its;

	assert_int_equal(rig_rail_make(w->link, id, &one, 1, &one, 1, &mine, &end), 0);
	its = await_blob(&w->t, ask_rail(&w->t, &make, &one));
	set_blob(&join, &mine);
	(void)await_blob(&w->t, ask_rail(&w->t, &join, NULL));
	assert_int_equal(rig_rail_join(end, &its), 0);
	return end;
}

/* What the agent names by that number, with a reference, or NULL. */
static const struct rig_remote_end *agents_end(struct world *w, uint64_t id)
{
	const struct rig_remote_end *end = NULL;

	(void)pthread_mutex_lock(&w->in->agent.lock);
	if (w->in->agent.sessions)
		end = rails_end_of(w->in->agent.sessions, id);
	(void)pthread_mutex_unlock(&w->in->agent.lock);
	return end;
}

static void await_count(const struct rig_remote_end *end, enum rig_remote_count count, uint64_t c)
{
	struct rig_deadline deadline = rig_deadline_in(NULL, INSIDE_SECONDS * RIG_NS_PER_S);

	while (rig_remote_load(end, count) < c) {
		if (rig_deadline_passed(&deadline))
			fail_msg("the count at %d is %llu, not %llu", (int)count,
			        (unsigned long long)rig_remote_load(end, count), (unsigned long long)c);
		rig_deadline_sleep(&deadline, RIG_NS_PER_MS);
	}
}

static void pass(const struct rig_remote_end *from, const struct rig_remote_end *to, uint64_t c)
{
	size_t copy = (c - 1) % 2 * COPY;

	memset((uint8_t *)from->outbound.at + copy, (int)(c + 40), BYTES);
	from->ready(from->ready_arg, c);
	await_count(to, RIG_REMOTE_ARRIVED, c);
	assert_memory_equal((uint8_t *)from->outbound.at + copy, (uint8_t *)to->inbound.at + copy, BYTES);
}

/* ---- Life ---- */

/* Nothing else can be looked for here than that nothing happens: longer than the agent takes to look for what
   is over. */
static void an_end_is_named_while_its_other_end_is_held_however_idle(void **state)
{
	struct rig_deadline idle = rig_deadline_in(NULL, IDLE_MS * RIG_NS_PER_MS);
	const struct rig_remote_end *here, *there;
	struct world w;

	(void)state;
	begin(&w);
	here = make_rail(&w, 5);
	while (!rig_deadline_passed(&idle)) {
		there = agents_end(&w, 5);
		assert_non_null(there);
		rig_remote_end_put(there);
		rig_deadline_sleep(&idle, RIG_NS_PER_MS);
	}
	there = agents_end(&w, 5);
	pass(here, there, 1);
	pass(there, here, 1);
	rig_remote_end_put(there);
	rig_remote_end_put(here);
	end(&w);
}

static void an_end_whose_other_side_has_ended_is_given_up_and_no_other(void **state)
{
	struct rig_deadline deadline = rig_deadline_in(NULL, INSIDE_SECONDS * RIG_NS_PER_S);
	const struct rig_remote_end *here[2], *there;
	struct world w;

	(void)state;
	begin(&w);
	here[0] = make_rail(&w, 5);
	here[1] = make_rail(&w, 6);
	rig_remote_end_put(here[0]);
	while ((there = agents_end(&w, 5))) {
		rig_remote_end_put(there);
		assert_false(rig_deadline_passed(&deadline));
		rig_deadline_sleep(&deadline, RIG_NS_PER_MS);
	}
	there = agents_end(&w, 6);
	assert_non_null(there);
	pass(here[1], there, 1);
	rig_remote_end_put(there);
	rig_remote_end_put(here[1]);
	end(&w);
}

/* ---- Failure ---- */

static void say_failed(struct world *w)
{
	struct rig_rmt_out out = {0};

	rig_rmt_put32(&out, RIG_RMT_HERE_PEER);
	rig_rmt_put_text(&out, "enough");
	talk_send(&w->t, RIG_RMT_FAILED, &out);
}

static void say_nonsense(struct world *w)
{
	assert_int_equal(rig_rmt_chan_send(w->t.chan, RIG_RMT_KINDS, NULL, 0, NULL, 0), 0);
}

static void vanish(struct world *w)
{
	rig_rmt_chan_shut(w->t.chan);
}

/* A machine of the job that goes on is told by the controller; one that dialled here is seen to go. */
static void let_another_agent_vanish(struct world *w)
{
	const struct rig_rmt_join join = {
	        .role = RIG_RMT_AGENT, .token = {JOB}, .silence_ms = SILENCE_MS, .machine = "1", .to = SELF};
	struct talk agent;

	talk_join(&agent, w->in, &join);
	assert_int_equal(talk_await(&agent, 0), 0);
	rig_rmt_chan_shut(agent.chan);
	talk_await_over(&agent);
	talk_end(&agent);
}

static const struct {
	const char *name;
	void (*way)(struct world *w);
} failures[] = {
        {"FAILED", say_failed},
        {"a message that is none", say_nonsense},
        {"the controller's end", vanish},
        {"another agent's end", let_another_agent_vanish},
        {"the data connection's end", end_engine},
};

struct wait {
	const struct rig_remote_end *end;
	enum rig_remote_count count;
};

static void *wait_for_much(void *arg)
{
	const struct wait *w = arg;

	await_count(w->end, w->count, 1000);
	return NULL;
}

/* The agent goes on, and who waits there for a count sees it: joins its threads. */
static void check_failure(void (*way)(struct world *w))
{
	const struct rig_remote_end *here[2], *there[2];
	struct wait waits[6];
	pthread_t threads[6];
	struct world w;
	int i;

	begin(&w);
	for (i = 0; i < 2; i++) {
		here[i] = make_rail(&w, 5 + (uint64_t)i);
		there[i] = agents_end(&w, 5 + (uint64_t)i);
	}
	pass(here[0], there[0], 1);
	for (i = 0; i < 6; i++) {
		waits[i] = (struct wait){there[i / 3], counts[i % 3]};
		assert_int_equal(pthread_create(&threads[i], NULL, wait_for_much, &waits[i]), 0);
	}
	way(&w);
	for (i = 0; i < 6; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_true(rig_remote_load(there[i / 3], counts[i % 3]) == RIG_RAIL_FAILED);
	}
	there[0]->ready(there[0]->ready_arg, 9);
	assert_true(rig_remote_load(there[0], RIG_REMOTE_READY) == RIG_RAIL_FAILED);
	rig_rmt_chan_shut(w.t.chan);
	talk_await_over(&w.t);
	for (i = 0; i < 2; i++) {
		rig_remote_end_put(there[i]);
		rig_remote_end_put(here[i]);
	}
	end(&w);
}

static void every_failure_raises_the_counts_of_the_ends_at_an_agent(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(failures) / sizeof(*failures); i++) {
		print_message("%s\n", failures[i].name);
		check_failure(failures[i].way);
	}
}

/* ---- The orderly end ---- */

static void assert_still(const struct rig_remote_end *there, const struct rig_remote_end *here, uint64_t c)
{
	struct rig_deadline still = rig_deadline_in(NULL, STILL_MS * RIG_NS_PER_MS);

	there->ready(there->ready_arg, c + 1);
	assert_true(rig_remote_load(there, RIG_REMOTE_READY) == c + 1);
	while (!rig_deadline_passed(&still)) {
		assert_true(rig_remote_load(there, RIG_REMOTE_SENT) == c);
		assert_true(rig_remote_load(here, RIG_REMOTE_ARRIVED) == c);
		rig_deadline_sleep(&still, RIG_NS_PER_MS);
	}
}

static void a_halted_agent_moves_nothing_more_and_raises_no_count(void **state)
{
	const struct rig_rmt_rail halt = {.op = RIG_RMT_RAIL_HALT};
	const struct rig_remote_end *here, *there;
	struct world w;

	(void)state;
	begin(&w);
	here = make_rail(&w, 5);
	there = agents_end(&w, 5);
	pass(there, here, 1);
	await_count(there, RIG_REMOTE_SENT, 1);
	(void)await_blob(&w.t, ask_rail(&w.t, &halt, NULL));
	assert_still(there, here, 1);
	rig_remote_end_put(there);
	rig_remote_end_put(here);
	end(&w);
}

static void await_no_session(struct world *w)
{
	struct rig_deadline deadline = rig_deadline_in(NULL, INSIDE_SECONDS * RIG_NS_PER_S);
	unsigned n;

	do {
		(void)pthread_mutex_lock(&w->in->agent.lock);
		n = w->in->agent.nsessions;
		(void)pthread_mutex_unlock(&w->in->agent.lock);
		assert_false(rig_deadline_passed(&deadline));
		rig_deadline_sleep(&deadline, RIG_NS_PER_MS);
	} while (n);
}

/* Who holds an end then, as work that runs on does, finds its memory. */
static void a_closed_job_moves_nothing_more_and_what_is_held_stays(void **state)
{
	const struct rig_remote_end *here, *there;
	struct rig_rmt_out none = {0};
	struct world w;

	(void)state;
	begin(&w);
	here = make_rail(&w, 5);
	there = agents_end(&w, 5);
	pass(there, here, 1);
	await_count(there, RIG_REMOTE_SENT, 1);
	rig_rails_stop(w.rails);
	talk_send(&w.t, RIG_RMT_CLOSE, &none);
	talk_await_over(&w.t);
	await_no_session(&w);
	assert_still(there, here, 1);
	memset(there->outbound.at, 3, there->outbound.bytes);
	memset(there->inbound.at, 3, there->inbound.bytes);
	rig_remote_end_put(there);
	rig_remote_end_put(here);
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(an_end_is_named_while_its_other_end_is_held_however_idle),
	        cmocka_unit_test(an_end_whose_other_side_has_ended_is_given_up_and_no_other),
	        cmocka_unit_test(every_failure_raises_the_counts_of_the_ends_at_an_agent),
	        cmocka_unit_test(a_halted_agent_moves_nothing_more_and_raises_no_count),
	        cmocka_unit_test(a_closed_job_moves_nothing_more_and_what_is_held_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
