/* SPDX-License-Identifier: MIT */
/*
 * Blocks of numbers go from one machine's board over a rail to another's and back, each board computing on
 * them; this program hands everything over and then only waits. The result is compared with one machine's.
 */
#include <rig_remote.h>
#include <string.h>
#include <time.h>

#include "example.h"

#define USAGE "usage: blocks KEYFILE HOST:PORT HOST:PORT [BLOCKS [IMAGE]]\n"

enum {
	COUNT = 16384, /* numbers of a block */
	GROUP = 256,
	MOST_BLOCKS = 1024,
};

#define BYTES (COUNT * sizeof(uint32_t))

struct step {
	uint64_t from, to;
	uint32_t count, key;
};

struct machine {
	struct rig_device *cpu, *board;
	struct rig_image *image;
	struct rig_submission *first, *second;
	struct rig_buffer *before, *after; /* a block in the board's own memory, and what became of it */
	struct rig_buffer *in[2],
	        *out[2];       /* the copies of the rail's areas, as memory that the board reaches */
	struct rig_point done; /* of the last block */
};

static struct rig_device *open_at(struct rig_remote_job *job, const char *device, const char *machine)
{
	struct rig_device *opened;
	char name[256];

	snprintf(name, sizeof(name), "%s@%s", device, machine);
	must(rig_remote_open(job, name, &opened), name);
	return opened;
}

/* A block goes to the board's memory, a kernel runs over it there, and the result goes on: slots from,
   before, after and to. */
enum { FROM, BEFORE, AFTER, TO, SLOTS };

static struct rig_submission *make_step(const struct machine *m, const char *function)
{
	static const uint32_t after[] = {0, 1};
	const struct rig_ref refs[] = {{.at = offsetof(struct step, from), .slot = BEFORE},
	        {.at = offsetof(struct step, to), .slot = AFTER}};
	const struct rig_work parts[] = {{.kind = RIG_COPY,
	                                         .u.copy = {.dst = {.slot = BEFORE},
	                                                 .src = {.slot = FROM},
	                                                 .row_bytes = BYTES,
	                                                 .rows = 1}},
	        {.kind = RIG_LAUNCH,
	                .after = after,
	                .nafter = 1,
	                .u.launch = {.image = m->image,
	                        .function = function,
	                        .params = sizeof(struct step),
	                        .refs = refs,
	                        .nrefs = 2}},
	        {.kind = RIG_COPY,
	                .after = after + 1,
	                .nafter = 1,
	                .u.copy = {
	                        .dst = {.slot = TO}, .src = {.slot = AFTER}, .row_bytes = BYTES, .rows = 1}}};
	const struct rig_description description = {
	        .version = RIG_EDGE_VERSION, .parts = parts, .nparts = 3, .reads = 1, .writes = SLOTS - 1};
	struct rig_submission *submission;

	must(rig_submission_make(m->board, &description, &submission), function);
	return submission;
}

static void open_machine(struct rig_remote_job *job, const char *name, const char *image, struct machine *m)
{
	memset(m, 0, sizeof(*m));
	m->cpu = open_at(job, "CPU", name);
	m->board = open_at(job, "RVX1:0", name);
	must(rig_image_load_file(m->board, image, &m->image), "image");
	m->first = make_step(m, "first");
	m->second = make_step(m, "second");
	must(rig_buffer_create(m->board, RIG_DEVICE, BYTES, &m->before), "buffer");
	must(rig_buffer_create(m->board, RIG_DEVICE, BYTES, &m->after), "buffer");
}

static void close_machine(struct machine *m)
{
	unsigned i;

	for (i = 0; i < 2; i++) {
		rig_buffer_put(m->in[i]);
		rig_buffer_put(m->out[i]);
	}
	rig_buffer_put(m->before);
	rig_buffer_put(m->after);
	rig_submission_put(m->first);
	rig_submission_put(m->second);
	rig_image_put(m->image);
	close_named(m->board);
	close_named(m->cpu);
}

static const struct rig_remote_host *host_of(const struct machine *m)
{
	const struct rig_remote_record *record = rig_capability(m->cpu, &rig_remote_key);

	return &record->u.host;
}

/* ---- Pieces of work ---- */

/* One block, after a point (none: zero). */
static struct rig_point compute(const struct machine *m, struct rig_submission *kernel,
        struct rig_buffer *from, struct rig_buffer *to, uint64_t key, struct rig_point after)
{
	const struct step params = {.count = COUNT, .key = (uint32_t)key};
	struct rig_run_args *run;
	struct rig_point point;

	must(rig_run_make(kernel, &run), "run");
	must(rig_run_grid(run, 1, COUNT / GROUP, 1, 1), "grid");
	must(rig_run_group(run, 1, GROUP, 1, 1), "group");
	must(rig_run_params(run, 1, 0, &params, sizeof(params)), "parameters");
	must(rig_run_buffer(run, FROM, from), "from");
	must(rig_run_buffer(run, BEFORE, m->before), "before");
	must(rig_run_buffer(run, AFTER, m->after), "after");
	must(rig_run_buffer(run, TO, to), "to");
	must(rig_submit(kernel, run, &after, 1, &point), "submit");
	rig_run_put(run);
	return point;
}

/* Block c of a buffer of many. */
static struct rig_buffer *block_of(struct rig_buffer *buffer, uint64_t c)
{
	struct rig_buffer *view;

	must(rig_buffer_view(buffer, (c - 1) * BYTES, BYTES, &view), "view");
	return view;
}

/* What the machine's own queue does about the rail. */
static struct rig_point step(const struct machine *m, enum rig_remote_step what,
        const struct rig_remote_rail *rail, uint64_t c, struct rig_point after)
{
	uint32_t words[RIG_REMOTE_STEP_WORDS];
	const struct rig_work part = {.kind = RIG_WORDS, .u.words = {words, RIG_REMOTE_STEP_WORDS}};
	const struct rig_description description = {.version = RIG_EDGE_VERSION, .parts = &part, .nparts = 1};
	struct rig_submission *submission;
	struct rig_point point;

	rig_remote_step(words, what, rail, c);
	must(rig_submission_make(m->cpu, &description, &submission), "step");
	must(rig_submit(submission, NULL, &after, 1, &point), "step");
	rig_submission_put(submission);
	return point;
}

/* ---- The exchange ---- */

static const struct rig_point no_point;

/* Of an area's two. */
static unsigned copy_of(uint64_t c)
{
	return (unsigned)((c - 1) % 2);
}

/* Block c leaves a: its numbers are computed into outbound, of which block c - 2 was the last user. */
static void send_block(
        struct machine *a, const struct rig_remote_rail *rail, uint64_t c, struct rig_buffer *input)
{
	struct rig_point sent = c > 2 ? step(a, RIG_REMOTE_AWAIT_SENT, rail, c - 2, no_point) : no_point;
	struct rig_buffer *from = block_of(input, c);

	(void)step(a, RIG_REMOTE_ADVANCE, rail, c, compute(a, a->first, from, a->out[copy_of(c)], c, sent));
	rig_buffer_put(from);
}

/* b takes it when it has arrived, computes on it and sends the result back. */
static void answer_block(struct machine *b, const struct rig_remote_rail *rail, uint64_t c)
{
	struct rig_point here = step(b, RIG_REMOTE_AWAIT_ARRIVED, rail, c, no_point);

	if (c > 2)
		here = step(b, RIG_REMOTE_AWAIT_SENT, rail, c - 2, here);
	(void)step(b, RIG_REMOTE_ADVANCE, rail, c,
	        compute(b, b->second, b->in[copy_of(c)], b->out[copy_of(c)], c, here));
}

/* And a keeps it. */
static void take_block(
        struct machine *a, const struct rig_remote_rail *rail, uint64_t c, struct rig_buffer *output)
{
	struct rig_point here = step(a, RIG_REMOTE_AWAIT_ARRIVED, rail, c, no_point);

	must(rig_wait(here), "arrival");
	must(rig_buffer_copy_async(output, (c - 1) * BYTES, a->in[copy_of(c)], 0, BYTES, &a->done), "copy");
}

/* At most two blocks are on their way, since an area has two copies: block c + 2 leaves after c came back. */
static void exchange(struct machine *a, struct machine *b, const struct rig_remote_rail *rail,
        uint64_t blocks, struct rig_buffer *input, struct rig_buffer *output)
{
	uint64_t c;

	for (c = 1; c <= blocks + 2; c++) {
		if (c > 2)
			take_block(a, rail, c - 2, output);
		if (c > blocks)
			continue;
		send_block(a, rail, c, input);
		answer_block(b, rail, c);
	}
	must(rig_wait(a->done), "wait");
}

/* The same on one board. */
static void compute_alone(
        struct machine *a, uint64_t blocks, struct rig_buffer *input, struct rig_buffer *output)
{
	struct rig_buffer *between;
	struct rig_point point = no_point;
	uint64_t c;

	must(rig_buffer_create(a->board, RIG_DEVICE, BYTES, &between), "buffer");
	for (c = 1; c <= blocks; c++) {
		struct rig_buffer *from = block_of(input, c), *to = block_of(output, c);

		(void)compute(a, a->first, from, between, c, no_point);
		point = compute(a, a->second, between, to, c, no_point);
		rig_buffer_put(from);
		rig_buffer_put(to);
	}
	must(rig_wait(point), "wait");
	rig_buffer_put(between);
}

static void take_area(struct rig_remote_job *job, const struct machine *m, const struct rig_remote_rail *rail,
        uint32_t machine, bool inbound, struct rig_buffer *copies[2])
{
	struct rig_remote_area pages;
	struct rig_buffer *area;

	must(rig_remote_rail_area(job, rail, machine, inbound, &pages), "area");
	must(rig_buffer_of_host(m->board, pages.at, pages.bytes, &area), "area");
	copies[0] = block_of(area, 1);
	copies[1] = block_of(area, 2);
	rig_buffer_put(area);
}

static void fill(uint32_t *numbers, uint64_t n)
{
	uint64_t i;

	for (i = 0; i < n; i++)
		numbers[i] = (uint32_t)(i * i + 12345);
}

/* Whether both ways brought the same numbers. */
static bool run(struct rig_remote_job *job, struct machine *a, struct machine *b, uint64_t blocks)
{
	static const struct rig_remote_transfer block = {.src = 0, .dst = 0, .length = BYTES};
	uint64_t bytes = blocks * BYTES;
	uint32_t *numbers = malloc(bytes), *both = malloc(bytes), *alone = malloc(bytes);
	struct rig_buffer *input, *output;
	const struct rig_remote_rail *rail;
	uint64_t start;
	bool same;

	if (!numbers || !both || !alone)
		exit(1);
	must(host_of(a)->rail(host_of(a)->self, host_of(b), &block, 1, &block, 1, &rail), "rail");
	take_area(job, a, rail, 0, true, a->in);
	take_area(job, a, rail, 0, false, a->out);
	take_area(job, b, rail, 1, true, b->in);
	take_area(job, b, rail, 1, false, b->out);
	must(rig_buffer_create(a->board, RIG_DEVICE, bytes, &input), "buffer");
	must(rig_buffer_create(a->board, RIG_DEVICE, bytes, &output), "buffer");
	fill(numbers, blocks * COUNT);
	must(rig_buffer_write(input, 0, numbers, bytes), "write");
	start = rig_now_ns();
	exchange(a, b, rail, blocks, input, output);
	printf("two machines   %" PRIu64 " blocks of %zu KiB there and back in %.1f ms\n", blocks,
	        BYTES >> 10, (double)(rig_now_ns() - start) / 1e6);
	must(rig_buffer_read(output, 0, both, bytes), "read");
	start = rig_now_ns();
	compute_alone(a, blocks, input, output);
	printf("one machine    the same in %.1f ms\n", (double)(rig_now_ns() - start) / 1e6);
	must(rig_buffer_read(output, 0, alone, bytes), "read");
	same = !memcmp(both, alone, bytes) && memcmp(both, numbers, bytes) != 0;
	rig_buffer_put(input);
	rig_buffer_put(output);
	rig_remote_rail_put(rail);
	free(numbers);
	free(both);
	free(alone);
	return same;
}

/* ---- This program's own end of a rail ---- */

/* Whether the count came there: that of a job that failed is raised above any, and tells of no bytes. */
static bool await_count(const struct rig_remote_end *end, enum rig_remote_count count, uint64_t c)
{
	const struct timespec moment = {.tv_nsec = 100000};
	uint64_t now;

	while ((now = rig_remote_load(end, count)) < c)
		(void)nanosleep(&moment, NULL);
	return now != RIG_RAIL_FAILED;
}

/* A block leaves this program's memory, machine a's board copies it from one area to the other, and it comes
   back. What calls ready_fn needs the counts' address alone: it could be compiled code that knows no more. */
static bool echo(struct rig_remote_job *job, struct machine *a)
{
	static const struct rig_remote_transfer block = {.src = 0, .dst = 0, .length = BYTES};
	const struct rig_remote_rail *rail;
	const struct rig_remote_end *here;
	struct rig_buffer *in[2], *out[2];
	struct rig_point point;
	const char *why = "";
	uint64_t start;
	bool came;

	must(host_of(a)->rail(host_of(a)->self, NULL, &block, 1, &block, 1, &rail), "rail");
	here = rail->local;
	take_area(job, a, rail, 0, true, in);
	take_area(job, a, rail, 0, false, out);
	start = rig_now_ns();
	fill(here->outbound.at, COUNT);
	here->ready_fn(here->counts.at, 1);
	must(rig_wait(step(a, RIG_REMOTE_AWAIT_ARRIVED, rail, 1, no_point)), "arrival");
	must(rig_buffer_copy_async(out[0], 0, in[0], 0, BYTES, &point), "copy");
	(void)step(a, RIG_REMOTE_ADVANCE, rail, 1, point);
	came = await_count(here, RIG_REMOTE_ARRIVED, 1);
	if (came)
		printf("this program   a block there and back by an end of its own in %.1f ms\n",
		        (double)(rig_now_ns() - start) / 1e6);
	else if (rig_remote_failed(job, &why))
		fprintf(stderr, "the job failed: %s\n", why);
	came = came && !memcmp(here->inbound.at, here->outbound.at, BYTES);
	rig_buffer_put(in[0]);
	rig_buffer_put(in[1]);
	rig_buffer_put(out[0]);
	rig_buffer_put(out[1]);
	rig_remote_rail_put(rail);
	return came;
}

int main(int argc, char **argv)
{
	unsigned long blocks = argc > 4 ? strtoul(argv[4], NULL, 0) : 64;
	const char *machines[2], *image = argc > 5 ? argv[5] : MIX_IMAGE;
	struct rig_remote_job *job;
	struct machine a, b;
	bool same;

	if (argc < 4 || argc > 6 || !blocks || blocks > MOST_BLOCKS) {
		fprintf(stderr, USAGE);
		return 2;
	}
	machines[0] = argv[2];
	machines[1] = argv[3];
	must(rig_remote_connect(machines, 2, argv[1], NULL, &job), "connect");
	open_machine(job, machines[0], image, &a);
	open_machine(job, machines[1], image, &b);
	same = run(job, &a, &b, blocks) && echo(job, &a);
	close_machine(&a);
	close_machine(&b);
	rig_remote_close(job);
	printf(same ? "results        equal\n" : "results        DIFFER\n");
	return same ? 0 : 1;
}
