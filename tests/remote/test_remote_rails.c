/* SPDX-License-Identifier: MIT */
/* Rails of a job: between this process and a machine, between two machines with work on both; their end. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "remote_support.h"

enum { COUNT_S = 120 };

static struct agent_process agents[2];

static int start(void **state)
{
	static const char *const devices[] = {"sim:mem=64M", "sim:mem=64M"};

	return remote_start(state, agents, devices, 2);
}

static int end(void **state)
{
	return remote_end(state, agents, 2);
}

static void await_count(const struct rig_remote_end *end, enum rig_remote_count count, uint64_t c)
{
	struct rig_deadline deadline = rig_deadline_in(NULL, COUNT_S * RIG_NS_PER_S);

	while (rig_remote_load(end, count) < c) {
		if (rig_deadline_passed(&deadline))
			fail_msg("the count is not %llu within %d s", (unsigned long long)c, COUNT_S);
		sys_nap();
	}
}

/* Steps as one submission of the machine's queue, after `after`. */
static struct rig_point submit_step(struct rig_device *cpu, enum rig_remote_step step,
        const struct rig_remote_rail *rail, uint64_t c, const struct rig_point *after)
{
	uint32_t words[RIG_REMOTE_STEP_WORDS];
	const struct rig_work part = {.kind = RIG_WORDS, .u.words = {words, RIG_REMOTE_STEP_WORDS}};
	const struct rig_description description = {.version = RIG_EDGE_VERSION, .parts = &part, .nparts = 1};
	struct rig_submission *s;
	struct rig_point point;

	rig_remote_step(words, step, rail, c);
	sys_ok(rig_submission_make(cpu, &description, &s));
	sys_ok(rig_submit(s, NULL, after, after ? 1 : 0, &point));
	rig_submission_put(s);
	return point;
}

static struct rig_buffer *counts_buffer(struct rig_remote_job *job, struct rig_device *d,
        const struct rig_remote_rail *rail, uint32_t machine)
{
	struct rig_remote_area area;
	struct rig_buffer *b;

	sys_ok(rig_remote_rail_counts(job, rail, machine, &area));
	sys_ok(rig_buffer_of_host(d, area.at, area.bytes, &b));
	assert_null(rig_buffer_host(b));
	return b;
}

static struct rig_buffer *area_buffer(struct rig_remote_job *job, struct rig_device *d,
        const struct rig_remote_rail *rail, uint32_t machine, bool inbound)
{
	struct rig_remote_area area;
	struct rig_buffer *b;

	sys_ok(rig_remote_rail_area(job, rail, machine, inbound, &area));
	sys_ok(rig_buffer_of_host(d, area.at, area.bytes, &b));
	assert_null(rig_buffer_host(b));
	return b;
}

enum { BYTES = 5000, COPY = 5120 };

static const struct rig_remote_transfer one = {.src = 0, .dst = 0, .length = BYTES};

static void bytes_go_out_by_a_rail_and_come_back_with_nobody_between(void **state)
{
	struct rig_remote_job *job = remote_connect(agents, 1, NULL);
	struct rig_device *cpu = remote_open(job, "CPU", &agents[0]);
	struct rig_device *board = remote_open(job, "RVX1:0", &agents[0]);
	const struct rig_remote_host *host = remote_host(cpu);
	const struct rig_remote_rail *rail;
	struct rig_buffer *in, *out;
	uint64_t c;

	(void)state;
	sys_ok(host->rail(host->self, NULL, &one, 1, &one, 1, &rail));
	assert_non_null(rail->local);
	assert_int_equal(rail->local->outbound.bytes, 2 * COPY);
	in = area_buffer(job, board, rail, 0, true);
	out = area_buffer(job, board, rail, 0, false);
	for (c = 1; c <= 6; c++) {
		uint64_t copy = (c - 1) % 2 * COPY;
		struct rig_point point = submit_step(cpu, RIG_REMOTE_AWAIT_ARRIVED, rail, c, NULL);
		struct sys_launch move;

		/* The board carries the bytes from one area to the other, once they have arrived. */
		sys_copy_make(&move, in, copy, out, copy, BYTES);
		sys_ok(rig_submit(move.submission, move.run, &point, 1, &point));
		point = submit_step(cpu, RIG_REMOTE_ADVANCE, rail, c, &point);
		sys_launch_end(&move);
		sys_fill((uint8_t *)rail->local->outbound.at + copy, BYTES, c);
		rail->local->ready(rail->local->ready_arg, c);
		await_count(rail->local, RIG_REMOTE_ARRIVED, c);
		assert_memory_equal((uint8_t *)rail->local->inbound.at + copy,
		        (uint8_t *)rail->local->outbound.at + copy, BYTES);
		sys_ok(rig_wait(point));
	}
	rig_buffer_put(in);
	rig_buffer_put(out);
	rig_remote_rail_put(rail);
	sys_close(board);
	sys_close(cpu);
	rig_remote_close(job);
}

static void two_machines_pass_bytes_to_each_other(void **state)
{
	struct rig_remote_job *job = remote_connect(agents, 2, NULL);
	struct rig_device *cpu[2], *board[2];
	const struct rig_remote_host *host[2];
	const struct rig_remote_rail *rail;
	struct rig_buffer *out, *in, *from, *to;
	struct rig_remote_stats before, after;
	uint8_t sent[BYTES], got[BYTES];
	struct rig_point point;
	struct sys_launch move;
	unsigned i;

	(void)state;
	for (i = 0; i < 2; i++) {
		cpu[i] = remote_open(job, "CPU", &agents[i]);
		board[i] = remote_open(job, "RVX1:0", &agents[i]);
		host[i] = remote_host(cpu[i]);
	}
	sys_ok(host[0]->rail(host[0]->self, host[1], &one, 1, NULL, 0, &rail));
	assert_null(rail->local);
	out = area_buffer(job, board[0], rail, 0, false);
	in = area_buffer(job, board[1], rail, 1, true);
	from = sys_buffer(board[0], RIG_DEVICE, BYTES);
	to = sys_buffer(board[1], RIG_DEVICE, BYTES);
	sys_fill(sent, BYTES, 3);
	sys_ok(rig_buffer_write(from, 0, sent, BYTES));
	sys_ok(rig_remote_stats(job, 0, &before));
	sys_copy_make(&move, from, 0, out, 0, BYTES);
	sys_ok(rig_submit(move.submission, move.run, NULL, 0, &point));
	(void)submit_step(cpu[0], RIG_REMOTE_ADVANCE, rail, 1, &point);
	sys_launch_end(&move);
	point = submit_step(cpu[1], RIG_REMOTE_AWAIT_ARRIVED, rail, 1, NULL);
	sys_copy_make(&move, in, 0, to, 0, BYTES);
	sys_ok(rig_submit(move.submission, move.run, &point, 1, &point));
	sys_ok(rig_wait(point));
	sys_launch_end(&move);
	sys_ok(rig_remote_stats(job, 0, &after));
	assert_true(after.received - before.received < BYTES);
	sys_ok(rig_buffer_read(to, 0, got, BYTES));
	assert_memory_equal(sent, got, BYTES);
	rig_buffer_put(out);
	rig_buffer_put(in);
	rig_buffer_put(from);
	rig_buffer_put(to);
	rig_remote_rail_put(rail);
	for (i = 0; i < 2; i++) {
		sys_close(board[i]);
		sys_close(cpu[i]);
	}
	rig_remote_close(job);
}

/* Who made the rail may put it at once: the steps keep its ends, also while they wait for work before. */
static void steps_keep_the_rail_that_they_name(void **state)
{
	struct rig_remote_job *job = remote_connect(agents, 2, NULL);
	struct rig_device *cpu[2];
	const struct rig_remote_host *host[2];
	const struct rig_remote_rail *rail, *gate;
	struct rig_point arrived, begun, open;
	unsigned i;

	(void)state;
	for (i = 0; i < 2; i++) {
		cpu[i] = remote_open(job, "CPU", &agents[i]);
		host[i] = remote_host(cpu[i]);
	}
	sys_ok(host[0]->rail(host[0]->self, host[1], &one, 1, NULL, 0, &rail));
	sys_ok(host[1]->rail(host[1]->self, NULL, NULL, 0, &one, 1, &gate));
	/* One is in the queue there; the other here, as it follows another machine's work. */
	open = submit_step(cpu[1], RIG_REMOTE_AWAIT_ARRIVED, gate, 1, NULL);
	arrived = submit_step(cpu[1], RIG_REMOTE_AWAIT_ARRIVED, rail, 1, NULL);
	begun = submit_step(cpu[0], RIG_REMOTE_ADVANCE, rail, 1, &open);
	rig_remote_rail_put(rail);
	gate->local->ready(gate->local->ready_arg, 1);
	sys_ok(rig_wait(begun));
	sys_ok(rig_wait(arrived));
	rig_remote_rail_put(gate);
	for (i = 0; i < 2; i++)
		sys_close(cpu[i]);
	rig_remote_close(job);
}

static void a_board_looks_at_the_counts_of_its_machines_end(void **state)
{
	struct rig_remote_job *job = remote_connect(agents, 1, NULL);
	struct rig_device *cpu = remote_open(job, "CPU", &agents[0]);
	struct rig_device *board = remote_open(job, "RVX1:0", &agents[0]);
	const struct rig_remote_host *host = remote_host(cpu);
	const struct rig_remote_rail *rail;
	struct rig_buffer *counts, *seen;
	struct rig_remote_area area;
	struct sys_launch look;
	struct rig_point point;
	uint64_t count = 0;

	(void)state;
	sys_ok(host->rail(host->self, NULL, &one, 1, NULL, 0, &rail));
	assert_int_equal(rig_remote_rail_counts(job, rail, 1, &area), -ENOENT);
	counts = counts_buffer(job, board, rail, 0);
	seen = sys_buffer(board, RIG_DEVICE, sizeof(count));
	point = submit_step(cpu, RIG_REMOTE_ADVANCE, rail, 1, NULL);
	point = submit_step(cpu, RIG_REMOTE_AWAIT_SENT, rail, 1, &point);
	sys_copy_make(&look, counts, RIG_REMOTE_SENT, seen, 0, sizeof(count));
	sys_ok(rig_submit(look.submission, look.run, &point, 1, NULL));
	sys_ok(rig_buffer_read(seen, 0, &count, sizeof(count)));
	assert_int_equal(count, 1);
	sys_launch_end(&look);
	rig_buffer_put(seen);
	/* The region keeps the end, as one of an area does. */
	rig_remote_rail_put(rail);
	rig_buffer_put(counts);
	sys_close(board);
	sys_close(cpu);
	rig_remote_close(job);
}

/* Messages hold 4,096 of a direction. */
enum { OUT = 10001, OUT_BYTES = 8, IN = 4097, IN_BYTES = 20, MOST = 1 << 20 };

static struct rig_remote_transfer *many_transfers(int64_t n, int64_t bytes, bool reversed)
{
	struct rig_remote_transfer *t = calloc((size_t)n, sizeof(*t));
	int64_t i;

	for (i = 0; i < n; i++)
		t[i] = (struct rig_remote_transfer){i * bytes, (reversed ? n - 1 - i : i) * bytes, bytes};
	return t;
}

/* What comes to the machine goes back from it, each piece to its place. */
static void check_return(struct rig_remote_job *job, struct rig_device *cpu, struct rig_device *board,
        const struct rig_remote_rail *rail)
{
	struct rig_buffer *in = area_buffer(job, board, rail, 0, true);
	struct rig_buffer *out = area_buffer(job, board, rail, 0, false);
	struct rig_point point = submit_step(cpu, RIG_REMOTE_AWAIT_ARRIVED, rail, IN, NULL);
	const uint8_t *sent = rail->local->outbound.at, *got = rail->local->inbound.at;
	struct sys_launch move;
	size_t i;

	sys_fill(rail->local->outbound.at, IN * IN_BYTES, 5);
	sys_copy_make(&move, in, 0, out, 0, OUT * OUT_BYTES);
	sys_ok(rig_submit(move.submission, move.run, &point, 1, &point));
	(void)submit_step(cpu, RIG_REMOTE_ADVANCE, rail, OUT, &point);
	sys_launch_end(&move);
	rail->local->ready(rail->local->ready_arg, IN);
	await_count(rail->local, RIG_REMOTE_ARRIVED, OUT);
	for (i = 0; i < OUT; i++)
		assert_memory_equal(sent + i * OUT_BYTES, got + (OUT - 1 - i) * OUT_BYTES, OUT_BYTES);
	rig_buffer_put(in);
	rig_buffer_put(out);
}

static void a_rail_has_more_transfers_than_a_message_holds(void **state)
{
	struct rig_remote_job *job = remote_connect(agents, 1, NULL);
	struct rig_device *cpu = remote_open(job, "CPU", &agents[0]);
	struct rig_device *board = remote_open(job, "RVX1:0", &agents[0]);
	const struct rig_remote_host *host = remote_host(cpu);
	struct rig_remote_transfer *out = many_transfers(OUT, OUT_BYTES, true),
	                           *in = many_transfers(IN, IN_BYTES, false);
	const struct rig_remote_rail *rail;

	(void)state;
	sys_ok(host->rail(host->self, NULL, out, OUT, in, IN, &rail));
	check_return(job, cpu, board, rail);
	rig_remote_rail_put(rail);
	free(out);
	free(in);
	sys_close(board);
	sys_close(cpu);
	rig_remote_close(job);
}

static void more_transfers_than_a_rail_carries_are_refused_and_the_most_are_not(void **state)
{
	struct rig_remote_job *job = remote_connect(agents, 1, NULL);
	struct rig_device *cpu = remote_open(job, "CPU", &agents[0]);
	const struct rig_remote_host *host = remote_host(cpu);
	struct rig_remote_transfer *t = many_transfers(MOST + 1, 1, false);
	const struct rig_remote_rail *rail;

	(void)state;
	assert_int_equal(host->rail(host->self, NULL, t, MOST + 1, NULL, 0, &rail), -E2BIG);
	assert_int_equal(host->rail(host->self, NULL, NULL, 0, t, MOST + 1, &rail), -E2BIG);
	sys_ok(host->rail(host->self, NULL, &one, 1, t, MOST, &rail));
	rig_remote_rail_put(rail);
	free(t);
	sys_close(cpu);
	rig_remote_close(job);
}

static bool has_failed(void *job)
{
	return rig_remote_failed(job, NULL);
}

static void misuse_of_a_rail_is_told(void **state)
{
	static const struct rig_remote_transfer bad = {.src = 0, .dst = 0, .length = 0};
	struct rig_remote_job *job = remote_connect(agents, 1, NULL),
	                      *other = remote_connect(agents + 1, 1, NULL);
	struct rig_device *cpu = remote_open(job, "CPU", &agents[0]);
	struct rig_device *stranger = remote_open(other, "CPU", &agents[1]);
	const struct rig_remote_host *host = remote_host(cpu);
	const struct rig_remote_rail *rail;

	(void)state;
	assert_int_equal(host->rail(host->self, host, &one, 1, NULL, 0, &rail), -EINVAL);
	assert_int_equal(host->rail(host->self, NULL, &bad, 1, NULL, 0, &rail), -EINVAL);
	assert_non_null(strstr(rig_error(), "send[0]"));
	assert_int_equal(host->rail(host->self, remote_host(stranger), &one, 1, NULL, 0, &rail), -EXDEV);
	assert_int_equal(host->threads(host->self, 1, NULL, 0), 0);
	sys_close(stranger);
	rig_remote_close(other);
	rig_remote_close(job);
	assert_int_equal(host->rail(host->self, NULL, &one, 1, NULL, 0, &rail), -ECONNABORTED);
	assert_non_null(strstr(rig_error(), "closed"));
	rig_close(cpu);
	rig_device_put(cpu);
}

static void a_killed_machine_raises_every_count_and_no_wait_blocks(void **state)
{
	struct rig_remote_job *job = remote_connect(agents, 2, NULL);
	struct rig_device *cpu = remote_open(job, "CPU", &agents[0]);
	const struct rig_remote_host *host = remote_host(cpu);
	const struct rig_remote_rail *rail;
	const struct rig_remote_end *end;
	struct sys_result result;

	(void)state;
	sys_ok(host->rail(host->self, NULL, &one, 1, &one, 1, &rail));
	end = rig_remote_end_get(rail->local);
	rig_remote_rail_put(rail);
	assert_int_equal(kill(agents[1].process.pid, SIGKILL), 0);
	await_count(end, RIG_REMOTE_ARRIVED, RIG_RAIL_FAILED);
	await_count(end, RIG_REMOTE_SENT, RIG_RAIL_FAILED);
	await_count(end, RIG_REMOTE_READY, RIG_RAIL_FAILED);
	end->ready_fn(end->counts.at, 5);
	assert_true(rig_remote_load(end, RIG_REMOTE_READY) == RIG_RAIL_FAILED);
	assert_true(rig_remote_failed(job, NULL));
	rig_close(cpu);
	rig_device_put(cpu);
	rig_remote_close(job);
	/* Its memory stays while it is held. */
	memset(end->outbound.at, 1, end->outbound.bytes);
	rig_remote_end_put(end);
	sys_finish(&agents[1].process, &result);
	remote_agent(&agents[1], "sim:mem=64M");
}

/* Which of them failed first does not matter: all are told the same. */
static void a_rail_of_a_failed_job_is_refused_with_what_failed_it(void **state)
{
	struct rig_remote_job *job = remote_connect(agents, 2, NULL);
	struct rig_device *cpu[2] = {
	        remote_open(job, "CPU", &agents[0]), remote_open(job, "CPU", &agents[1])};
	const struct rig_remote_host *host = remote_host(cpu[0]);
	const struct rig_remote_rail *rail;
	const char *why = NULL;
	struct sys_result result;

	(void)state;
	assert_int_equal(kill(agents[1].process.pid, SIGKILL), 0);
	sys_await(has_failed, job, "the end of a job whose machine was killed");
	assert_true(rig_remote_failed(job, &why));
	assert_non_null(strstr(why, agents[1].name));
	assert_int_equal(host->rail(host->self, NULL, &one, 1, &one, 1, &rail), -ECONNABORTED);
	assert_non_null(strstr(rig_error(), why));
	assert_int_equal(host->rail(host->self, remote_host(cpu[1]), &one, 1, NULL, 0, &rail), -ECONNABORTED);
	assert_non_null(strstr(rig_error(), why));
	for (unsigned i = 0; i < 2; i++) {
		rig_close(cpu[i]);
		rig_device_put(cpu[i]);
	}
	rig_remote_close(job);
	sys_finish(&agents[1].process, &result);
	remote_agent(&agents[1], "sim:mem=64M");
}

static uint64_t id_of(struct rig_device *board)
{
	const struct rig_remote_record *record = rig_capability(board, &rig_remote_key);

	assert_non_null(record);
	assert_int_equal(record->kind, RIG_REMOTE_DEVICE);
	return record->u.device.id;
}

/* Its number among those that the machine opened for the job, and not among this process's devices. */
static void a_devices_id_is_what_its_machine_numbers_it(void **state)
{
	struct rig_remote_job *job = remote_connect(agents, 2, NULL);
	struct rig_device *cpu = remote_open(job, "CPU", &agents[1]);
	struct rig_device *second = remote_open(job, "RVX1:0", &agents[1]);
	struct rig_device *first = remote_open(job, "RVX1:0", &agents[0]);

	(void)state;
	assert_int_equal(id_of(second), 1);
	assert_int_equal(id_of(first), 0);
	sys_close(second);
	sys_close(first);
	sys_close(cpu);
	rig_remote_close(job);
}

static void each_proxy_declares_what_it_is(void **state)
{
	struct rig_remote_job *job = remote_connect(agents, 1, NULL);
	struct rig_device *board = remote_open(job, "RVX1:0", &agents[0]);
	struct rig_device *cpu = remote_open(job, "CPU", &agents[0]), *local = sys_open("sim:mem=64M");
	const struct rig_remote_record *record = rig_capability(board, &rig_remote_key);
	const char *at = strchr(rig_name(board), '@');

	(void)state;
	assert_non_null(record);
	assert_int_equal(record->version, RIG_REMOTE_ABI_VERSION);
	assert_int_equal(record->kind, RIG_REMOTE_DEVICE);
	assert_int_equal(record->u.device.id, 0); /* the first that its machine opened for the job */
	assert_non_null(at);
	assert_string_equal(remote_host(cpu)->machine, at + 1);
	assert_null(rig_capability(local, &rig_remote_key));
	sys_close(local);
	sys_close(board);
	sys_close(cpu);
	rig_remote_close(job);
}

struct ended {
	struct rig_device *board;
	struct rig_remote_area area;
};

static bool has_ended(void *arg)
{
	struct ended *e = arg;
	struct rig_buffer *b;

	if (rig_buffer_of_host(e->board, e->area.at, e->area.bytes, &b))
		return strstr(rig_error(), "no end of rail") != NULL;
	rig_buffer_put(b);
	return false;
}

/* `here`: this process has an end, and holds it longer than the rail. */
static void check_life(bool here)
{
	struct rig_remote_job *job = remote_connect(agents, 2, NULL);
	struct rig_device *cpu[2], *board = remote_open(job, "RVX1:0", &agents[0]);
	const struct rig_remote_end *end = NULL;
	const struct rig_remote_rail *rail;
	struct rig_buffer *before, *from;
	struct ended ended = {.board = board};
	uint8_t sent[BYTES], got[BYTES];
	unsigned i;

	for (i = 0; i < 2; i++)
		cpu[i] = remote_open(job, "CPU", &agents[i]);
	sys_ok(remote_host(cpu[0])->rail(
	        remote_host(cpu[0])->self, here ? NULL : remote_host(cpu[1]), &one, 1, &one, 1, &rail));
	sys_ok(rig_remote_rail_area(job, rail, 0, false, &ended.area));
	sys_ok(rig_buffer_of_host(board, ended.area.at, ended.area.bytes, &before));
	end = rig_remote_end_get(rail->local);
	rig_remote_rail_put(rail);
	if (here) {
		/* The end alone keeps both. */
		assert_false(has_ended(&ended));
		rig_remote_end_put(end);
	}
	sys_await(has_ended, &ended, "the end of a rail that nobody holds");
	/* What names the memory already goes on. */
	from = sys_buffer(board, RIG_DEVICE, BYTES);
	sys_fill(sent, BYTES, 5);
	sys_ok(rig_buffer_write(from, 0, sent, BYTES));
	sys_ok(rig_buffer_copy(before, 0, from, 0, BYTES));
	sys_ok(rig_buffer_read(before, 0, got, BYTES));
	assert_memory_equal(sent, got, BYTES);
	rig_buffer_put(from);
	rig_buffer_put(before);
	sys_close(board);
	sys_close(cpu[0]);
	sys_close(cpu[1]);
	rig_remote_close(job);
}

static void a_rail_ends_with_its_last_put_and_memory_in_use_stays(void **state)
{
	(void)state;
	check_life(false);
	check_life(true);
}

/* Of one between two machines this process has no end at all. */
static void a_rail_that_is_held_keeps_its_ends_on_both_machines(void **state)
{
	struct rig_remote_job *job = remote_connect(agents, 2, NULL);
	struct rig_device *cpu[2], *board[2];
	const struct rig_remote_rail *rail;
	struct ended ended[2];
	unsigned i;

	(void)state;
	for (i = 0; i < 2; i++) {
		cpu[i] = remote_open(job, "CPU", &agents[i]);
		board[i] = remote_open(job, "RVX1:0", &agents[i]);
		ended[i].board = board[i];
	}
	sys_ok(remote_host(cpu[0])->rail(
	        remote_host(cpu[0])->self, remote_host(cpu[1]), &one, 1, &one, 1, &rail));
	assert_null(rail->local);
	for (i = 0; i < 2; i++) {
		sys_ok(rig_remote_rail_area(job, rail, i, false, &ended[i].area));
		assert_false(has_ended(&ended[i]));
	}
	rig_remote_rail_put(rail);
	for (i = 0; i < 2; i++)
		sys_await(has_ended, &ended[i], "the end of a rail that nobody holds");
	for (i = 0; i < 2; i++) {
		sys_close(board[i]);
		sys_close(cpu[i]);
	}
	rig_remote_close(job);
}

/* globals.k.c writes where its parameter points, into the area, first how often it has run. */
static void run_globals(struct sys_launch *launch, struct rig_buffer *area, uint64_t runs)
{
	uint64_t answer = 0;

	sys_ok(sys_launch_try(launch));
	sys_ok(rig_buffer_read(area, 0, &answer, sizeof(answer)));
	assert_int_equal(answer, runs);
}

static void a_launch_made_before_the_last_put_works_after_it(void **state)
{
	static const uint64_t zero;
	struct rig_remote_job *job = remote_connect(agents, 1, NULL);
	struct rig_device *cpu = remote_open(job, "CPU", &agents[0]);
	struct ended ended = {.board = remote_open(job, "RVX1:0", &agents[0])};
	struct rig_image *image = sys_image(ended.board, "globals");
	struct sys_params params = {
	        .device = ended.board, .bytes = &zero, .count = sizeof(zero), .nbuffers = 1};
	const struct rig_remote_rail *rail;
	struct rig_buffer *area;
	struct sys_launch launch;

	(void)state;
	sys_ok(remote_host(cpu)->rail(remote_host(cpu)->self, NULL, &one, 1, &one, 1, &rail));
	sys_ok(rig_remote_rail_area(job, rail, 0, false, &ended.area));
	sys_ok(rig_buffer_of_host(ended.board, ended.area.at, ended.area.bytes, &area));
	params.buffer[0] = area;
	sys_launch_make(&launch, image, "globals", &params, 1, 1);
	run_globals(&launch, area, 1);
	rig_remote_rail_put(rail);
	sys_await(has_ended, &ended, "the end of a rail that nobody holds");
	run_globals(&launch, area, 2);
	sys_launch_end(&launch);
	rig_buffer_put(area);
	rig_image_put(image);
	sys_close(ended.board);
	sys_close(cpu);
	rig_remote_close(job);
}

enum { MAKERS = 4, RAILS = 8 };

static void *make_rails(void *arg)
{
	const struct rig_remote_host *host = arg;
	const struct rig_remote_rail *rails[RAILS];
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < RAILS; i++) {
		if (host->rail(host->self, NULL, &one, 1, &one, 1, &rails[i]))
			return NULL;
		sum += UINT64_C(1) << rails[i]->id % 64;
		rails[i]->local->ready(rails[i]->local->ready_arg, 1);
	}
	for (i = 0; i < RAILS; i++) {
		await_count(rails[i]->local, RIG_REMOTE_SENT, 1);
		rig_remote_rail_put(rails[i]);
	}
	return (void *)(uintptr_t)sum;
}

static void rails_are_made_by_any_thread_and_have_numbers_of_their_own(void **state)
{
	struct rig_remote_job *job = remote_connect(agents, 1, NULL);
	struct rig_device *cpu = remote_open(job, "CPU", &agents[0]);
	pthread_t threads[MAKERS];
	uint64_t all = 0;
	unsigned i;

	(void)state;
	for (i = 0; i < MAKERS; i++)
		assert_int_equal(
		        pthread_create(&threads[i], NULL, make_rails, (void *)(uintptr_t)remote_host(cpu)),
		        0);
	for (i = 0; i < MAKERS; i++) {
		void *sum;

		(void)pthread_join(threads[i], &sum);
		assert_non_null(sum);
		/* A number twice would carry into another's bit. */
		assert_int_equal(all & (uintptr_t)sum, 0);
		all |= (uintptr_t)sum;
	}
	assert_int_equal(__builtin_popcountll(all), MAKERS * RAILS);
	sys_close(cpu);
	rig_remote_close(job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(bytes_go_out_by_a_rail_and_come_back_with_nobody_between),
	        cmocka_unit_test(two_machines_pass_bytes_to_each_other),
	        cmocka_unit_test(steps_keep_the_rail_that_they_name),
	        cmocka_unit_test(a_board_looks_at_the_counts_of_its_machines_end),
	        cmocka_unit_test(each_proxy_declares_what_it_is),
	        cmocka_unit_test(a_devices_id_is_what_its_machine_numbers_it),
	        cmocka_unit_test(a_rail_ends_with_its_last_put_and_memory_in_use_stays),
	        cmocka_unit_test(a_rail_that_is_held_keeps_its_ends_on_both_machines),
	        cmocka_unit_test(a_launch_made_before_the_last_put_works_after_it),
	        cmocka_unit_test(rails_are_made_by_any_thread_and_have_numbers_of_their_own),
	        cmocka_unit_test(a_rail_has_more_transfers_than_a_message_holds),
	        cmocka_unit_test(more_transfers_than_a_rail_carries_are_refused_and_the_most_are_not),
	        cmocka_unit_test(misuse_of_a_rail_is_told),
	        cmocka_unit_test(a_rail_of_a_failed_job_is_refused_with_what_failed_it),
	        cmocka_unit_test(a_killed_machine_raises_every_count_and_no_wait_blocks),
	};

	return cmocka_run_group_tests(tests, start, end);
}
