/* SPDX-License-Identifier: MIT */
/*
 * Agents that have the key and lie, against the library's controller in a process of its own: whatever they
 * say, its job comes to an end with a reason, its calls return, and none of its memory changes but what it
 * asked to be filled, while that is being done. RIG_HOSTILE says how many rounds, RIG_HOSTILE_SEED from which
 * numbers.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "liar.h"
#include "remote_support.h"

enum {
	ROUNDS = 16,
	SILENCE_MS = 500,
	ROUND_S = 60,
	STEPS = 30, /* of a controller */
	SMALL = 5000,
	LARGE = 700000,
	GUARD = 64 << 10, /* bytes before and behind what is filled */
	GUARD_BYTE = 0xa7,
	DONE = 0,
	CHANGED = 3, /* exit status: memory changed that nothing was to change */
	NO_REASON = 4,
};
#define DATA_LIMIT (UINT64_C(2) << 30)

/* ---- The controller, a process ---- */

static uint8_t room[2 * GUARD + LARGE], given_back[LARGE];

static bool guards_stand(void)
{
	for (size_t i = 0; i < GUARD; i++)
		if (room[i] != GUARD_BYTE || room[GUARD + LARGE + i] != GUARD_BYTE)
			return false;
	return true;
}

/* Nobody may write here any more: what is filled now stays. */
static bool stays(uint8_t byte)
{
	for (size_t i = 0; i < LARGE; i++)
		if (given_back[i] != byte)
			return false;
	return true;
}

struct work {
	struct rig_device *board, *host;
	struct rig_buffer *b[2];
	struct rig_image *image;
	const struct rig_remote_rail *rail;
	struct liar draws;
};

static void copy_to_lent_memory(struct work *w)
{
	struct rig_buffer *lent = NULL;

	if (!rig_buffer_of_host(w->board, given_back, LARGE, &lent))
		(void)rig_buffer_copy(lent, 0, w->b[0], 0, LARGE);
	rig_buffer_put(lent);
}

static void make_rail(struct work *w)
{
	static const struct rig_remote_transfer t = {0, 0, SMALL};
	const struct rig_remote_record *record = w->host ? rig_capability(w->host, &rig_remote_key) : NULL;

	if (!record || record->kind != RIG_REMOTE_HOST || w->rail)
		return;
	if (record->u.host.rail(record->u.host.self, NULL, &t, 1, &t, 1, &w->rail))
		w->rail = NULL;
	else
		w->rail->local->ready(w->rail->local->ready_arg, 1);
}

static void load(struct work *w)
{
	static const uint8_t code[300] = {0x7f, 'E', 'L', 'F'};

	if (!w->image && rig_image_load(w->board, code, sizeof(code), &w->image))
		w->image = NULL;
}

/* Whether memory is as it must be. */
static bool step(struct work *w)
{
	uint64_t bytes = liar_once_in(&w->draws, 2) ? SMALL : LARGE;
	uint8_t byte = (uint8_t)liar_draw(&w->draws, 256);

	memset(given_back, byte, LARGE);
	switch (liar_draw(&w->draws, 6)) {
	case 0:
		(void)rig_buffer_write(w->b[0], 0, room + GUARD, bytes);
		break;
	case 1:
		(void)rig_buffer_read(w->b[1], 0, room + GUARD, bytes);
		break;
	case 2:
		(void)rig_buffer_copy(w->b[1], 0, w->b[0], 0, bytes);
		break;
	case 3:
		make_rail(w);
		break;
	case 4:
		load(w);
		break;
	default:
		copy_to_lent_memory(w);
		memset(given_back, byte, LARGE); /* it was given back */
	}
	return guards_stand() && stays(byte);
}

static bool work_in(struct rig_remote_job *job, struct work *w, const char *agent)
{
	char name[2][128];
	bool stands = true;

	snprintf(name[0], sizeof(name[0]), "BOARD@%s", agent);
	snprintf(name[1], sizeof(name[1]), "CPU@%s", agent);
	if (rig_remote_open(job, name[0], &w->board))
		return true;
	if (rig_remote_open(job, name[1], &w->host))
		w->host = NULL;
	if (!rig_buffer_create(w->board, RIG_DEVICE, LARGE, &w->b[0]) &&
	        !rig_buffer_create(w->board, RIG_DEVICE, LARGE, &w->b[1]))
		for (unsigned i = 0; i < STEPS && stands && !rig_remote_failed(job, NULL); i++)
			stands = step(w);
	return stands;
}

static void leave(struct work *w)
{
	rig_remote_rail_put(w->rail);
	rig_image_put(w->image);
	for (int i = 0; i < 2; i++)
		rig_buffer_put(w->b[i]);
	if (w->host)
		rig_close(w->host);
	if (w->board)
		rig_close(w->board);
	rig_device_put(w->host);
	rig_device_put(w->board);
}

static int control(const char *agent, const char *key, const char *seed)
{
	const struct rig_remote_options options = {
	        .version = RIG_EDGE_VERSION, .step_ms = 2000, .silence_ms = SILENCE_MS, .answer_ms = 500};
	struct work w = {.draws = {.numbers = strtoull(seed, NULL, 10)}};
	struct rig_remote_job *job;
	const char *why = "";
	bool stands;
	uint8_t byte = 0x3c;

	memset(room, GUARD_BYTE, sizeof(room));
	if (rig_remote_connect(&agent, 1, key, &options, &job))
		return *rig_error() ? DONE : NO_REASON;
	stands = work_in(job, &w, agent);
	memset(given_back, byte, LARGE);
	if (rig_remote_failed(job, &why) && !*why)
		return NO_REASON;
	leave(&w);
	rig_remote_close(job);
	return stands && guards_stand() && stays(byte) ? DONE : CHANGED;
}

/* ---- The agent, in the test ---- */

struct lies {
	struct liar liar;
	struct rig_rmt_chan *chan;
	unsigned one_in; /* messages that are a lie */
	uint32_t regions, devices;
};

static int answer(struct lies *l, uint32_t request, int status, const struct rig_rmt_out *payload)
{
	const struct rig_rmt_answer head = {.request = request, .status = status};
	struct rig_rmt_out out = {0};
	int err;

	rig_rmt_answer_put(&out, &head);
	err = rig_rmt_chan_send(l->chan, RIG_RMT_ANSWER, out.at, out.used, payload->at, payload->used);
	rig_rmt_out_free(&out);
	return err;
}

static void put_facts(struct lies *l, struct rig_rmt_out *out)
{
	static struct rig_rmt_facts facts;

	facts = (struct rig_rmt_facts){.device = l->devices,
	        .host = l->devices > 0,
	        .arch = "none",
	        .budget = UINT64_C(1) << 30,
	        .nqueues = 2,
	        .queues = {{"COMPUTE:0", RIG_RUNS(RIG_LAUNCH)},
	                {"COPY:0", RIG_RUNS(RIG_COPY) | RIG_RUNS(RIG_WORDS)}},
	        .has_copy_engine = true,
	        .copy_engine = 1,
	        .alignment = 64};
	(void)strcpy(facts.name, l->devices ? "CPU" : "BOARD");
	l->devices++;
	rig_rmt_facts_put(out, &facts);
}

static void put_payload(struct lies *l, uint8_t kind, struct rig_rmt_out *out)
{
	const struct rig_rmt_region region = {.region = ++l->regions, .has_address = true, .address = 4096};

	switch (kind) {
	case RIG_RMT_PING:
		rig_rmt_put64(out, 1);
		break;
	case RIG_RMT_OPEN:
		put_facts(l, out);
		break;
	case RIG_RMT_ALLOC:
	case RIG_RMT_MAP_PEER:
	case RIG_RMT_MAP_RAIL:
		rig_rmt_region_put(out, &region);
		break;
	case RIG_RMT_LOAD:
		rig_rmt_put32(out, 1);
		break;
	default:
		break;
	}
}

/* What an agent that has done the work says, of bytes that it makes up. */
static int reach(struct lies *l, const struct rig_rmt_work *work)
{
	static struct rig_rmt_reached reached;
	static const uint8_t bytes[RIG_RMT_DATA_BYTES];
	struct rig_rmt_out out = {0};
	uint64_t at, chunk;
	int err = 0;

	for (at = 0; at < work->local_out && !err; at += chunk) {
		struct rig_rmt_out head = {0};

		chunk = work->local_out - at < sizeof(bytes) ? work->local_out - at : sizeof(bytes);
		rig_rmt_put32(&head, work->device);
		rig_rmt_put64(&head, work->value);
		rig_rmt_put64(&head, at);
		err = rig_rmt_chan_send(l->chan, RIG_RMT_DATA, head.at, head.used, bytes, chunk);
		rig_rmt_out_free(&head);
	}
	reached = (struct rig_rmt_reached){.device = work->device, .value = work->value};
	rig_rmt_reached_put(&out, &reached);
	return err ? err : liar_send(l->chan, RIG_RMT_REACHED, &out);
}

static int serve_one(struct lies *l, uint8_t kind, const uint8_t *bytes, size_t n)
{
	struct rig_rmt_in in = rig_rmt_in_of(bytes, n);
	struct rig_rmt_out payload = {0};
	struct rig_rmt_work work;
	int err = 0;

	if (kind == RIG_RMT_SUBMIT) {
		err = rig_rmt_work_parse(bytes, n, &work);
		if (!err)
			err = reach(l, &work);
		rig_rmt_work_free(&work);
	} else if (kind != RIG_RMT_FREE && kind != RIG_RMT_UNLOAD && kind != RIG_RMT_CODE &&
	           kind != RIG_RMT_DATA && kind != RIG_RMT_BEAT && kind != RIG_RMT_FAILED &&
	           kind != RIG_RMT_CLOSE) {
		put_payload(l, kind, &payload);
		if (liar_once_in(&l->liar, l->one_in) && payload.used)
			payload.at[liar_draw(&l->liar, (uint32_t)payload.used)] ^=
			        (uint8_t)liar_draw(&l->liar, 256);
		err = answer(
		        l, rig_rmt_get32(&in), liar_once_in(&l->liar, 4 * l->one_in) ? -ENOMEM : 0, &payload);
		rig_rmt_out_free(&payload);
	}
	return err;
}

/* Lies before or instead of what is right. */
static int lie_some(struct lies *l, bool *instead)
{
	uint32_t n = liar_draw(&l->liar, 6);
	int err = 0;

	*instead = liar_once_in(&l->liar, 4);
	while (n-- && !err) {
		struct rig_rmt_out out = {0};
		uint8_t kind = liar_agent(&l->liar, &out);

		err = liar_send(l->chan, kind, &out);
	}
	return err;
}

static void serve(struct lies *l)
{
	const uint8_t *bytes;
	uint8_t kind = 0;
	bool instead;
	size_t n;
	int err;

	do {
		err = rig_rmt_chan_recv(l->chan, &kind, &bytes, &n);
		instead = false;
		if (!err && kind != RIG_RMT_JOIN && liar_once_in(&l->liar, l->one_in))
			err = lie_some(l, &instead);
		if (!err && kind != RIG_RMT_JOIN && !instead)
			err = serve_one(l, kind, bytes, n);
	} while (!err && kind != RIG_RMT_CLOSE && kind != RIG_RMT_FAILED);
}

/* ---- Rounds ---- */

static int limit_data(void *arg)
{
	const struct rlimit limit = {DATA_LIMIT, DATA_LIMIT};

	(void)arg;
	return LIAR_SANITIZED ? 0 : setrlimit(RLIMIT_DATA, &limit);
}

static int listen_here(char *name, size_t bytes)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&at, n), 0);
	assert_int_equal(listen(fd, 4), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
	snprintf(name, bytes, "127.0.0.1:%u", ntohs(at.sin_port));
	return fd;
}

static char self[4096];

static void run_round(uint64_t seed)
{
	const struct sys_before before = {limit_data, NULL};
	struct lies l = {.liar = {.numbers = seed * UINT64_C(0x9E3779B97F4A7C15),
	                         .names = {"CPU", "BOARD", "CPU", "BOARD"},
	                         .peer = "127.0.0.1:1",
	                         .kernel = room,
	                         .kernel_bytes = SMALL}};
	struct sys_process process;
	struct sys_result result;
	struct rig_rmt_key key;
	struct pollfd p = {.events = POLLIN};
	char command[8192], name[64];
	int fd;

	l.liar.wild = liar_once_in(&l.liar, 3);
	l.one_in = 1u << (1 + liar_draw(&l.liar, 6));
	p.fd = listen_here(name, sizeof(name));
	snprintf(command, sizeof(command), "%s control %s %s %llu", self, name, remote_key(),
	        (unsigned long long)seed);
	sys_start_before(&process, command, &before);
	assert_int_equal(poll(&p, 1, SYS_DEADLINE_MS), 1);
	fd = accept4(p.fd, NULL, NULL, SOCK_CLOEXEC);
	assert_int_equal(rig_rmt_key_read(remote_key(), &key), 0);
	if (!rig_rmt_chan_accept(fd, &key, SYS_DEADLINE_MS, 2 * SILENCE_MS, &l.chan)) {
		serve(&l);
		rig_rmt_chan_free(l.chan);
	}
	(void)close(p.fd);
	sys_finish(&process, &result);
	if (result.status != DONE)
		fail_msg("seed %llu: the controller ended with %d: %s", (unsigned long long)seed,
		        result.status, result.err);
}

static uint64_t setting(const char *text, uint64_t otherwise)
{
	return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

static void a_controller_ends_its_job_and_keeps_its_memory_whatever_an_agent_says(void **state)
{
	uint64_t rounds = setting(getenv("RIG_HOSTILE"), ROUNDS),
	         seed = setting(getenv("RIG_HOSTILE_SEED"), 1), i;

	(void)state;
	for (i = 0; i < rounds; i++)
		run_round(seed + i);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_controller_ends_its_job_and_keeps_its_memory_whatever_an_agent_says)};

	(void)signal(SIGPIPE, SIG_IGN);
	if (argc == 5 && !strcmp(argv[1], "control"))
		return control(argv[2], argv[3], argv[4]);
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return 2;
	return cmocka_run_group_tests(tests, sys_setup, sys_teardown);
}
