/* SPDX-License-Identifier: MIT */
/*
 * Somebody on the path who has no key, and changes, drops, repeats and reorders bytes of the connections that
 * a job has with its agents and these with each other: no byte is taken for another, nothing hangs, and the
 * reason says what it was. RIG_HOSTILE says how many rounds, RIG_HOSTILE_SEED from which numbers. The job's
 * data goes over its control connections.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "liar.h"
#include "remote_relay.h"
#include "remote_support.h"

enum {
	ROUNDS = 12,
	AGENTS = 2,
	BYTES = 40000,
	COPIES = 4,
	PROOF = 200, /* bytes of a connection until the proof is done, about */
	LONG = 150000,
};

static const struct rig_remote_options options = {.version = RIG_EDGE_VERSION,
        .step_ms = 1000,
        .silence_ms = LIAR_SANITIZED ? 2000 : 600,
        .answer_ms = 20000,
        .no_bulk_rails = true};

static struct agent_process agents[AGENTS];

/* ---- What is done to which bytes ---- */

enum how { FLIP, DROP, REPEAT, REORDER, HOWS };

struct tamper {
	enum how how;
	uint32_t relay, connection; /* of its connections, 1 is the other agent's */
	bool back;
	size_t at;       /* of the bytes that go that way */
	size_t gone;     /* have gone */
	atomic_bool hit; /* it was done */
};

struct path {
	struct relay relay;
	struct tamper *tamper;
	uint32_t number;
};

static void change(enum how how, uint8_t *bytes, size_t i, size_t *n)
{
	size_t rest = *n - i, k;

	switch (how) {
	case FLIP:
		bytes[i] ^= 1u << (i % 8);
		break;
	case DROP:
		memmove(bytes + i, bytes + i + 1, rest - 1);
		--*n;
		break;
	case REPEAT:
		memmove(bytes + i + rest, bytes + i, rest);
		*n += rest;
		break;
	default: /* first one that differs from the next, so that something changes */
		for (k = i; k + 1 < *n && bytes[k] == bytes[k + 1]; k++)
			;
		if (k + 1 < *n) {
			uint8_t byte = bytes[k];

			bytes[k] = bytes[k + 1];
			bytes[k + 1] = byte;
		} else {
			bytes[i] ^= 1;
		}
	}
}

static void edit(void *arg, unsigned connection, bool back, uint8_t *bytes, size_t *n)
{
	struct path *path = arg;
	struct tamper *t = path->tamper;
	size_t before;

	if (path->number != t->relay || connection != t->connection || back != t->back)
		return;
	before = t->gone;
	t->gone += *n;
	if (t->at < before || t->at >= t->gone)
		return;
	change(t->how, bytes, t->at - before, n);
	atomic_store(&t->hit, true);
}

/* ---- The job ---- */

static bool has_failed(void *job)
{
	return rig_remote_failed(job, NULL);
}

struct work {
	struct rig_device *d[AGENTS];
	struct rig_buffer *b[AGENTS];
};

static int prepare(struct rig_remote_job *job, struct path *paths, struct work *w)
{
	char name[128];
	int err = 0;

	for (unsigned i = 0; i < AGENTS && !err; i++) {
		snprintf(name, sizeof(name), "CPU@%.63s", paths[i].relay.name);
		err = rig_remote_open(job, name, &w->d[i]);
		if (!err)
			err = rig_buffer_create(w->d[i], RIG_DEVICE, BYTES, &w->b[i]);
	}
	return err;
}

/* Out, across, and back: what comes is what went, or nothing comes. */
static int copy(struct work *w, unsigned seed)
{
	static uint8_t sent[BYTES], got[BYTES];
	int err;

	sys_fill(sent, BYTES, seed);
	err = rig_buffer_write(w->b[0], 0, sent, BYTES);
	if (!err)
		err = rig_buffer_copy(w->b[1], 0, w->b[0], 0, BYTES);
	if (!err)
		err = rig_buffer_read(w->b[1], 0, got, BYTES);
	if (!err)
		assert_memory_equal(sent, got, BYTES);
	return err;
}

static void leave(struct work *w)
{
	for (unsigned i = 0; i < AGENTS; i++) {
		rig_buffer_put(w->b[i]);
		if (w->d[i])
			rig_close(w->d[i]);
		rig_device_put(w->d[i]);
	}
}

/* Bytes that are missing show once others come, or by silence. */
static void check_reason(const struct tamper *t, const char *why)
{
	static const char *const words[] = {"authentication failed", "silent", "took no byte"};
	size_t most = t->how == FLIP && t->at % 4 ? 1 : sizeof(words) / sizeof(*words);

	for (size_t i = 0; i < most; i++)
		if (strstr(why, words[i]))
			return;
	fail_msg("way %d, relay %u, connection %u, %s, byte %zu: \"%s\"", (int)t->how, t->relay,
	        t->connection, t->back ? "back" : "out", t->at, why);
}

static void work_in(struct rig_remote_job *job, struct path *paths, struct tamper *t)
{
	struct work w = {{NULL}, {NULL}};
	const char *why = "";
	int err = prepare(job, paths, &w);

	for (unsigned i = 0; i < COPIES && !err; i++)
		err = copy(&w, i);
	if (atomic_load(&t->hit)) {
		sys_await(has_failed, job, "the end of a job whose bytes were changed");
		assert_true(rig_remote_failed(job, &why));
		check_reason(t, why);
	} else if (err) {
		fail_msg("nothing was changed: %s", rig_error());
	}
	leave(&w);
}

static void run_round(struct tamper *t)
{
	const char *names[AGENTS];
	struct path paths[AGENTS];
	struct rig_remote_job *job;
	int err;

	for (uint32_t i = 0; i < AGENTS; i++) {
		paths[i] = (struct path){.relay = {.edit = edit, .arg = &paths[i]}, .tamper = t, .number = i};
		relay_start(&paths[i].relay, agents[i].name);
		names[i] = paths[i].relay.name;
	}
	err = rig_remote_connect(names, AGENTS, remote_key(), &options, &job);
	if (!err) {
		work_in(job, paths, t);
		rig_remote_close(job);
	} else if (!atomic_load(&t->hit)) {
		fail_msg("nothing was changed, and the connect failed: %s", rig_error());
	}
	for (uint32_t i = 0; i < AGENTS; i++)
		relay_end(&paths[i].relay);
}

static uint64_t setting(const char *text, uint64_t otherwise)
{
	return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

static void draw(struct tamper *t, uint64_t *numbers)
{
	*t = (struct tamper){.how = test_draw(numbers, HOWS),
	        .relay = test_draw(numbers, AGENTS),
	        .connection = test_draw(numbers, 4) ? 0 : 1,
	        .back = test_draw(numbers, 2)};
	t->at = test_draw(numbers, test_draw(numbers, 3) ? LONG : 2 * PROOF);
}

static void whatever_is_done_to_bytes_on_the_path_none_is_taken_for_another(void **state)
{
	uint64_t rounds = setting(getenv("RIG_HOSTILE"), ROUNDS),
	         numbers = setting(getenv("RIG_HOSTILE_SEED"), 1), i;
	unsigned hits = 0;

	(void)state;
	for (i = 0; i < rounds; i++) {
		struct tamper t;

		draw(&t, &numbers);
		run_round(&t);
		hits += atomic_load(&t.hit);
	}
	assert_true(hits > 0);
	print_message("%llu rounds, bytes changed in %u\n", (unsigned long long)rounds, hits);
}

static int start(void **state)
{
	static const char *const devices[AGENTS] = {"", ""};

	(void)signal(SIGPIPE, SIG_IGN);
	return remote_start(state, agents, devices, AGENTS);
}

static int end(void **state)
{
	return remote_end(state, agents, AGENTS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(whatever_is_done_to_bytes_on_the_path_none_is_taken_for_another)};

	return cmocka_run_group_tests(tests, start, end);
}
