/* SPDX-License-Identifier: MIT */
/*
 * Promises about devices of other machines that depend on the network between: lab_net CHECK KEY A B
 * [ARGUMENT ...] runs one with the agents A and B (HOST:PORT), each of which serves a board, and ends as
 * lab_device does.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lab_device.h"
#include "rig_remote.h"

#define MACHINES   2u
#define CLOCK_SEES 8u            /* times that each machine's clock is asked for */
#define PARCEL     (1u << 20)    /* bytes that go by libfabric, and */
#define MESSAGES   (200u * 1024) /* bytes that go over the control connection (docs/remote.md) */
#define NAME_BYTES 300
#define NS_PER_MS  UINT64_C(1000000)
#define NAP_NS     20000000L
#define LINK_TRIES 4u

struct net {
	struct rig_remote_job *job;
	const char *name[MACHINES];
	struct rig_device *board[MACHINES], *cpu[MACHINES];
};

static void open_at(struct net *net, const char *device, uint32_t machine, struct rig_device **opened)
{
	char name[NAME_BYTES];

	snprintf(name, sizeof(name), "%s@%s", device, net->name[machine]);
	lab_must(rig_remote_open(net->job, name, opened), name);
}

static void begin(struct net *net, char **argument, uint32_t silence_ms)
{
	const struct rig_remote_options options = {.version = RIG_EDGE_VERSION, .silence_ms = silence_ms};
	uint32_t i;

	for (i = 0; i < MACHINES; i++)
		net->name[i] = argument[1 + i];
	lab_must(rig_remote_connect(net->name, MACHINES, argument[0], &options, &net->job), "connect");
	for (i = 0; i < MACHINES; i++) {
		open_at(net, "RVX1:0", i, &net->board[i]);
		open_at(net, "CPU", i, &net->cpu[i]);
	}
}

static void end(struct net *net)
{
	uint32_t i;

	for (i = 0; i < MACHINES; i++) {
		lab_close(net->board[i]);
		lab_close(net->cpu[i]);
	}
	lab_check(!rig_remote_failed(net->job, NULL), "the job did not fail");
	rig_remote_close(net->job);
}

static struct rig_buffer *buffer_of(struct rig_device *device, uint64_t bytes)
{
	struct rig_buffer *buffer;

	lab_must(rig_buffer_create(device, RIG_DEVICE, bytes, &buffer), "buffer");
	return buffer;
}

static void fill(uint8_t *bytes, size_t n, uint32_t seed)
{
	size_t i;

	for (i = 0; i < n; i++) {
		seed = seed * 1664525u + 1013904223u;
		bytes[i] = (uint8_t)(seed >> 24);
	}
}

static uint8_t *memory(size_t n)
{
	uint8_t *bytes = calloc(1, n);

	if (!bytes)
		lab_fail("no memory");
	return bytes;
}

static void nap(void)
{
	const struct timespec time = {.tv_nsec = NAP_NS};

	nanosleep(&time, NULL);
}

static const struct rig_remote_host *host_of(struct rig_device *cpu)
{
	const struct rig_remote_record *record = rig_capability(cpu, &rig_remote_key);

	return &record->u.host;
}

/* To this machine, for NULL, or between two. */
static int make_rail(struct rig_device *cpu, struct rig_device *peer, const struct rig_remote_rail **rail)
{
	static const struct rig_remote_transfer block = {.length = 4096};
	const struct rig_remote_host *host = host_of(cpu);

	return host->rail(host->self, peer ? host_of(peer) : NULL, &block, 1, &block, 1, rail);
}

/* Large copies go by the data connections of rails, which have 5 s to be made: few on a network that loses,
   or a busy machine. So the first rails may need another job. */
static bool links_are_made(struct net *net)
{
	struct rig_device *const pairs[][2] = {{net->cpu[0]}, {net->cpu[1]}, {net->cpu[0], net->cpu[1]}};
	const struct rig_remote_rail *rail;
	unsigned i;

	for (i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		if (make_rail(pairs[i][0], pairs[i][1], &rail)) {
			printf("link %u: %s\n", i, rig_error());
			return false;
		}
		rig_remote_rail_put(rail);
	}
	return true;
}

/* Its job may have failed. */
static void leave(struct rig_device *device)
{
	(void)rig_close(device);
	rig_device_put(device);
}

static void begin_linked(struct net *net, char **argument, uint32_t silence_ms)
{
	unsigned try, i;

	for (try = 0; try < LINK_TRIES; try++) {
		begin(net, argument, silence_ms);
		if (links_are_made(net))
			return;
		for (i = 0; i < MACHINES; i++) {
			leave(net->board[i]);
			leave(net->cpu[i]);
		}
		rig_remote_close(net->job);
	}
	lab_fail("no links for rails in %u jobs", LINK_TRIES);
}

/* ---- Work and clocks ---- */

static void check_net_works(char **argument)
{
	struct net net;
	uint32_t i;

	begin(&net, argument, 0);
	for (i = 0; i < MACHINES; i++)
		lab_works(net.board[i]);
	end(&net);
}

/* All machines read one clock here, so the true offset is 0. */
static void see_clock(struct net *net, uint32_t machine)
{
	int64_t ahead;
	uint64_t error;

	lab_must(rig_remote_clock(net->job, machine, &ahead, &error), "clock");
	printf("clock of machine %u: %lld ns ahead, off by at most %llu\n", machine, (long long)ahead,
	        (unsigned long long)error);
	if ((uint64_t)llabs(ahead) > error)
		lab_fail("a clock that is this one is %lld ns ahead, off by at most %llu", (long long)ahead,
		        (unsigned long long)error);
}

/* MS: what the network delays a message and its answer at the least. */
static void check_net_clock(char **argument)
{
	uint64_t least = lab_number(argument[3]) * NS_PER_MS;
	struct rig_remote_stats stats;
	struct net net;
	uint32_t i, m;

	begin(&net, argument, 0);
	for (i = 0; i < CLOCK_SEES; i++)
		for (m = 0; m < MACHINES; m++) {
			see_clock(&net, m);
			lab_works(net.board[m]);
		}
	for (m = 0; m < MACHINES; m++) {
		lab_must(rig_remote_stats(net.job, m, &stats), "stats");
		printf("round trip to machine %u: %llu ns\n", m, (unsigned long long)stats.round_trip_ns);
		lab_check(stats.round_trip_ns >= least, "no round trip is shorter than the delays");
	}
	end(&net);
}

/* ---- Copies ---- */

static void same_bytes(const uint8_t *got, const uint8_t *sent, size_t n, const char *what)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (got[i] != sent[i])
			lab_fail("%s: byte %zu is 0x%02x, not 0x%02x", what, i, got[i], sent[i]);
}

/* To one board, on to the other, and back from there. */
static void go_round(struct net *net, uint32_t first, size_t n)
{
	struct rig_buffer *here = buffer_of(net->board[first], n),
	                  *there = buffer_of(net->board[1 - first], n);
	uint8_t *sent = memory(n), *got = memory(n);

	fill(sent, n, first + (uint32_t)n);
	lab_must(rig_buffer_write(here, 0, sent, n), "write");
	lab_must(rig_buffer_copy(there, 0, here, 0, n), "copy between machines");
	lab_must(rig_buffer_read(there, 0, got, n), "read");
	same_bytes(got, sent, n, "by way of both machines");
	free(sent);
	free(got);
	rig_buffer_put(here);
	rig_buffer_put(there);
}

/* BYTES: of a copy that goes by libfabric, which the control connections, by their counts, then do not
   carry. */
static void check_net_copies(char **argument)
{
	size_t bytes = lab_number(argument[3]);
	struct rig_remote_stats stats;
	struct net net;
	uint32_t m;

	begin_linked(&net, argument, 0);
	for (m = 0; m < MACHINES; m++)
		go_round(&net, m, bytes);
	for (m = 0; m < MACHINES; m++) {
		lab_must(rig_remote_stats(net.job, m, &stats), "stats");
		printf("machine %u: %llu bytes sent, %llu received by the control connection\n", m,
		        (unsigned long long)stats.sent, (unsigned long long)stats.received);
		lab_check(stats.sent < bytes && stats.received < bytes, "large copies go by libfabric");
	}
	for (m = 0; m < MACHINES; m++)
		go_round(&net, m, MESSAGES);
	end(&net);
}

/* ---- Silence ---- */

/* Copies again and again, until one fails. */
struct mover {
	const char *what;
	struct rig_buffer *to, *from; /* NULL: from this process */
	size_t bytes;
	pthread_t thread;
	atomic_uint done;
	int answer;
};

static void *mover_run(void *arg)
{
	struct mover *m = arg;
	uint8_t *bytes = memory(m->bytes);

	do {
		m->answer = m->from ? rig_buffer_copy(m->to, 0, m->from, 0, m->bytes)
		                    : rig_buffer_write(m->to, 0, bytes, m->bytes);
		atomic_fetch_add(&m->done, 1);
	} while (!m->answer);
	free(bytes);
	return NULL;
}

/* Answers once it has copied. */
static void mover_start(struct mover *m)
{
	lab_check(!pthread_create(&m->thread, NULL, mover_run, m), "a thread starts");
	while (!atomic_load(&m->done))
		nap();
	printf("%s: under way\n", m->what);
}

static void mover_end(struct mover *m)
{
	pthread_join(m->thread, NULL);
	rig_buffer_put(m->to);
	rig_buffer_put(m->from);
	printf("%s: %d\n", m->what, m->answer);
	lab_check(m->answer < 0, "a copy under way fails");
}

static const struct rig_remote_rail *rail_to(struct rig_device *cpu)
{
	const struct rig_remote_rail *rail;

	lab_must(make_rail(cpu, NULL, &rail), "rail");
	rail->local->ready(rail->local->ready_arg, 1);
	while (rig_remote_load(rail->local, RIG_REMOTE_SENT) < 1)
		nap();
	return rail;
}

/* Once a job has failed, or soon after. */
static void await_failed_counts(const struct rig_remote_rail *rail)
{
	static const enum rig_remote_count counts[] = {RIG_REMOTE_READY, RIG_REMOTE_SENT, RIG_REMOTE_ARRIVED};
	unsigned i;

	for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		while (rig_remote_load(rail->local, counts[i]) != RIG_RAIL_FAILED)
			nap();
}

/* The command, and then until the job has failed; it must say so within its bound, with as much again for a
   busy machine, in these words. */
static void await_failure(struct net *net, const char *command, uint64_t silence_ms, const char *words)
{
	const char *why = "";
	uint64_t since;

	if (system(command) != 0)
		lab_fail("%s: failed", command);
	since = rig_now_ns();
	while (!rig_remote_failed(net->job, &why))
		nap();
	since = (rig_now_ns() - since) / NS_PER_MS;
	printf("failed after %llu ms: %s\n", (unsigned long long)since, why);
	if (!strstr(why, words))
		lab_fail("the job's reason is \"%s\", without \"%s\"", why, words);
	lab_check(since <= 2 * silence_ms, "the job fails within its bound");
}

static void lose_all(struct net *net, const char *words)
{
	struct rig_device *all[] = {net->board[0], net->board[1], net->cpu[0], net->cpu[1]};
	unsigned i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		const char *why = "";

		if (!rig_lost(all[i], &why) || !strstr(why, words))
			lab_fail("%s: the reason is \"%s\", without \"%s\"", rig_name(all[i]), why, words);
		rig_device_put(all[i]);
	}
}

/* MS COMMAND [WORDS]: the command swallows what the network carries while much is under way. */
static void check_net_silent(char **argument)
{
	uint32_t silence_ms = (uint32_t)lab_number(argument[3]);
	char silent[NAME_BYTES];
	const char *words = argument[5] ? argument[5] : silent;
	const struct rig_remote_rail *rail;
	struct rig_point endless;
	struct lab_work work;
	struct net net;
	unsigned i;

	snprintf(silent, sizeof(silent), "was silent for %u ms", silence_ms);
	begin_linked(&net, argument, silence_ms);
	rail = rail_to(net.cpu[1]);
	endless = lab_endless(&work, net.board[0]);
	{
		struct mover movers[] = {
		        {.what = "messages to A", .to = buffer_of(net.cpu[0], MESSAGES), .bytes = MESSAGES},
		        {.what = "parcels to B", .to = buffer_of(net.cpu[1], PARCEL), .bytes = PARCEL},
		        {.what = "parcels from A to B",
		                .to = buffer_of(net.board[1], PARCEL),
		                .from = buffer_of(net.cpu[0], PARCEL),
		                .bytes = PARCEL}};
		const unsigned n = sizeof(movers) / sizeof(movers[0]);

		for (i = 0; i < n; i++)
			mover_start(&movers[i]);
		await_failure(&net, argument[4], silence_ms, words);
		lab_check(rig_wait(endless) == RIG_LOST, "the wait for a launch answers RIG_LOST");
		for (i = 0; i < n; i++)
			mover_end(&movers[i]);
	}
	await_failed_counts(rail);
	rig_remote_rail_put(rail);
	lab_work_end(&work);
	lose_all(&net, words);
	rig_remote_close(net.job);
	printf("closed\n");
}

/* ---- The program ---- */

static const struct {
	const char *name;
	int least; /* arguments */
	void (*run)(char **argument);
	const char *arguments;
} checks[] = {
        {"works", 3, check_net_works, "KEY A B: a kernel on each board"},
        {"clock", 4, check_net_clock, "KEY A B MS: clocks, over a network of at least this round trip"},
        {"copies", 4, check_net_copies, "KEY A B BYTES: copies to, from and between the boards"},
        {"silent", 5, check_net_silent,
                "KEY A B MS COMMAND [WORDS]: a job of this silence bound fails, in these words, by the "
                "command"},
};

int main(int argc, char **argv)
{
	size_t i, n = sizeof(checks) / sizeof(checks[0]);

	/* In the order of what goes to standard error. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 0; i < n && argc > 1; i++)
		if (!strcmp(checks[i].name, argv[1]) && argc - 2 >= checks[i].least) {
			checks[i].run(argv + 2);
			return 0;
		}
	for (i = 0; i < n; i++)
		fprintf(stderr, "lab_net %s %s\n", checks[i].name, checks[i].arguments);
	return 2;
}
