/* SPDX-License-Identifier: MIT */
/* Every public function from several threads, against a model (crowd.h). RIG_SEED=N repeats the sequences of
   a run, if not how they meet; RIG_STEPS=N makes it longer. */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crowd.h"

#define THREADS 5u
#define STEPS   3000u

static uint64_t number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

static void step(struct crowd *t)
{
	static const struct {
		const struct crowd_named *ops;
		const unsigned *n;
		uint32_t below; /* of 23 */
	} kinds[] = {{crowd_memory_ops, &crowd_memory_nops, 10}, {crowd_work_ops, &crowd_work_nops, 20},
	        {crowd_life_ops, &crowd_life_nops, 23}};
	uint32_t at = crowd_random(t, 23), kind = 0;
	const struct crowd_named *op;

	while (at >= kinds[kind].below)
		kind++;
	op = &kinds[kind].ops[crowd_random(t, *kinds[kind].n)];
	t->op = op->name;
	op->op(t);
}

static void *crowd_work(void *arg)
{
	struct crowd *t = arg;
	unsigned i;

	t->page = aligned_alloc(CROWD_PAGE, CROWD_PAGE);
	memset(t->page, 0, CROWD_PAGE);
	for (t->step = 0; t->step < t->steps && !atomic_load(&t->w->failed); t->step++)
		step(t);
	t->op = "at the end";
	/* What was reached or lost is so to the end. */
	for (i = 0; i < t->nmarks && !t->wrong; i++)
		crowd_look(t, &t->marks[i], true);
	for (i = 0; i < CROWD_CELLS; i++)
		crowd_cell_drop(&t->cells[i]);
	free(t->page);
	return NULL;
}

/* The thread by which work at CROWD_PLAIN is done while nobody waits. */
static void *complete(void *arg)
{
	struct world *w = arg;

	while (!atomic_load(&w->over)) {
		(void)polled_run(w->polled[CROWD_PLAIN], 1);
		(void)sched_yield();
	}
	return NULL;
}

static void *end_and_open(void *arg)
{
	struct crowd *t = arg;
	struct opening *o;
	enum crowd_seat seat;

	t->op = "end_and_open";
	for (t->step = 0; !atomic_load(&t->w->over) && !t->wrong; t->step++) {
		seat = crowd_random(t, 2) ? CROWD_LOST : CROWD_HOST;
		/* Used for some time first. */
		o = t->w->seats[seat];
		while (atomic_load(&o->latest) % 16 < 8 && !atomic_load(&t->w->over) && crowd_random(t, 400))
			(void)sched_yield();
		crowd_seat_close(t->w, seat, seat == CROWD_LOST && crowd_random(t, 2));
		if (!crowd_seat_open(t->w, t, seat))
			break;
	}
	return NULL;
}

static void *profile(void *arg)
{
	struct crowd *t = arg;

	for (t->step = 0; !atomic_load(&t->w->over) && !t->wrong; t->step++)
		crowd_profile(t);
	return NULL;
}

static void *fail_all(void *arg)
{
	struct crowd *t = arg;
	struct opening *o = t->w->seats[CROWD_PLAIN];
	uint64_t first = atomic_load(&o->latest);

	while (atomic_load(&o->latest) < first + 100 && !atomic_load(&t->w->over))
		(void)sched_yield();
	rig_fail("the crowd has enough");
	return NULL;
}

struct run {
	struct world w;
	struct crowd threads[THREADS], others[3];
	pthread_t ids[THREADS + 3], completer;
};

static void start(struct run *r, unsigned i, void *(*work)(void *), struct crowd *t)
{
	*t = (struct crowd){.w = &r->w, .index = i, .steps = (unsigned)number("RIG_STEPS", STEPS)};
	t->random = (r->w.seed + i + 1) * UINT64_C(0x9e3779b97f4a7c15);
	t->op = "start";
	if (pthread_create(&r->ids[i], NULL, work, t))
		abort();
}

static const char *check_sum(struct world *w)
{
	uint32_t sum;

	if (rig_buffer_read(w->sum, 0, &sum, sizeof(sum)))
		return w->fails ? NULL : "the sum cannot be read";
	return sum == atomic_load(&w->expected) ? NULL : "what all added is another sum";
}

/* NULL or what went wrong. */
static const char *run_crowd(struct run *r, uint64_t seed, bool fails)
{
	const char *wrong = NULL, *left;
	unsigned i;

	crowd_world_init(&r->w, seed, fails);
	assert_int_equal(pthread_create(&r->completer, NULL, complete, &r->w), 0);
	for (i = 0; i < THREADS; i++)
		start(r, i, crowd_work, &r->threads[i]);
	start(r, i++, fails ? fail_all : end_and_open, &r->others[0]);
	start(r, i, profile, &r->others[1]);
	for (i = 0; i < THREADS; i++)
		(void)pthread_join(r->ids[i], NULL);
	atomic_store(&r->w.over, true);
	for (; i < THREADS + 2; i++)
		(void)pthread_join(r->ids[i], NULL);
	(void)pthread_join(r->completer, NULL);
	for (i = 0; i < THREADS && !wrong; i++)
		wrong = r->threads[i].wrong ? r->threads[i].text : NULL;
	for (i = 0; i < 2 && !wrong; i++)
		wrong = r->others[i].wrong ? r->others[i].text : NULL;
	if (!wrong)
		wrong = check_sum(&r->w);
	left = crowd_world_fini(&r->w);
	return wrong ? wrong : left;
}

/* E-103, E-125, E-249, E-252 */
static void every_function_answers_several_threads_as_the_model_says(void **state)
{
	static struct run r;
	uint64_t seed = number("RIG_SEED", rig_now_ns());
	const char *wrong = run_crowd(&r, seed, false);

	(void)state;
	if (wrong)
		fail_msg("RIG_SEED=%" PRIu64 ": %s", seed, wrong);
}

/* In a process of its own, which fails. */
static void a_failure_beside_every_function_ends_all_and_leaves_nothing(void **state)
{
	static struct run r;
	uint64_t seed = number("RIG_SEED", rig_now_ns());
	const char *wrong;
	pid_t child = fork();
	int status;

	(void)state;
	if (child == 0) {
		wrong = run_crowd(&r, seed, true);
		if (!wrong && strcmp(rig_failure(), "the crowd has enough") != 0)
			wrong = rig_failure();
		if (wrong)
			(void)fprintf(stderr, "RIG_SEED=%" PRIu64 ": %s\n", seed, wrong);
		_exit(wrong != NULL);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        /* First: a process without threads. */
	        cmocka_unit_test(a_failure_beside_every_function_ends_all_and_leaves_nothing),
	        cmocka_unit_test(every_function_answers_several_threads_as_the_model_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
