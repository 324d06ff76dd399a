/* SPDX-License-Identifier: MIT */
/* Threads: hot calls from any, cold ones beside them, devices beside each other. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "conform_groups.h"
#include "dut.h"

enum { BYTES = 256, THREADS = 4 };

static void start(struct conform *c, pthread_t *thread, void *(*work)(void *arg), void *arg)
{
	conform_check(c, !pthread_create(thread, NULL, work, arg), "no thread");
}

static void *submit_one(void *arg)
{
	struct dut *d = arg;

	dut_wait(d, dut_run(d, NULL, 0));
	return NULL;
}

static void hot_calls_come_from_any_thread(struct conform *c)
{
	pthread_t thread;
	struct dut d;
	unsigned i;

	dut_open(c, &d, 0);
	for (i = 0; i < 50; i++) {
		start(c, &thread, submit_one, &d);
		(void)pthread_join(thread, NULL);
	}
	dut_close(&d);
}

static void *submit_many(void *arg)
{
	struct dut *d = arg;
	unsigned i;

	for (i = 0; i < 300; i++)
		(void)dut_run(d, NULL, 0);
	dut_wait(d, d->last);
	return NULL;
}

static void devices_work_side_by_side_in_their_threads(struct conform *c)
{
	pthread_t threads[2];
	struct dut d[2];

	dut_open(c, &d[0], 0);
	dut_open(c, &d[1], 1);
	start(c, &threads[0], submit_many, &d[0]);
	start(c, &threads[1], submit_many, &d[1]);
	(void)pthread_join(threads[0], NULL);
	(void)pthread_join(threads[1], NULL);
	dut_close(&d[0]);
	dut_close(&d[1]);
}

struct beside {
	struct dut *d;
	_Atomic bool stop;
	_Atomic int wrong;
};

static void *use_memory(void *arg)
{
	struct beside *b = arg;
	const char *fault = NULL;
	struct rig_location at;
	void *region;
	int answer;

	while (!atomic_load(&b->stop)) {
		answer = b->d->m->alloc(b->d->device, RIG_DEVICE, 64, &region, &fault);
		if (answer == -ENOMEM)
			continue;
		if (answer) {
			atomic_store(&b->wrong, answer);
			break;
		}
		b->d->m->locate(b->d->device, region, &at);
		if (b->d->m->free(b->d->device, region, &fault))
			atomic_store(&b->wrong, RIG_FAULT);
	}
	return NULL;
}

/* Opens the device and submits work while threads run the function. What was wrong. */
static int run_beside(struct conform *c, struct dut *d, void *(*function)(void *arg))
{
	pthread_t threads[THREADS];
	struct beside b = {.d = d};
	unsigned i;

	dut_open(c, d, 0);
	for (i = 0; i < THREADS; i++)
		start(c, &threads[i], function, &b);
	(void)submit_many(d);
	atomic_store(&b.stop, true);
	for (i = 0; i < THREADS; i++)
		(void)pthread_join(threads[i], NULL);
	return atomic_load(&b.wrong);
}

static void memory_is_made_and_freed_beside_work(struct conform *c)
{
	struct dut d;
	int wrong = run_beside(c, &d, use_memory);

	conform_check(c, !wrong, "alloc or free answered %d", wrong);
	dut_close(&d);
}

static void *sleep_on(void *arg)
{
	struct beside *b = arg;
	const char *fault = NULL;

	while (!atomic_load(&b->stop))
		if (b->d->m->sleep(b->d->device, dut_shown(b->d), 5, &fault))
			atomic_store(&b->wrong, RIG_FAULT);
	return NULL;
}

static void many_sleep_beside_hot_calls(struct conform *c)
{
	struct dut d;

	conform_check(c, !run_beside(c, &d, sleep_on), "sleep faulted");
	dut_close(&d);
}

static void a_device_waits_for_the_others_word(struct conform *c)
{
	struct rig_wait for_a, gate;
	struct dut_work work;
	struct dut a, b;
	uint64_t value;
	unsigned i;

	dut_open(c, &a, 0);
	dut_open(c, &b, 1);
	if (a.own_word)
		conform_skip(c, "the word is the driver's own");
	if (!(a.facts.completion == RIG_STORE ? b.facts.waits.stores : b.facts.waits.hosts))
		conform_skip(c, "the device's queues do not wait for such a device");
	gate = dut_gate(&a, 0);
	work = (struct dut_work){.waits = &gate, .nwaits = 1};
	value = dut_submit(&a, &work);
	for_a = (struct rig_wait){.word = a.word, .value = value};
	work = (struct dut_work){.waits = &for_a, .nwaits = 1};
	value = dut_submit(&b, &work);
	for (i = 0; i < 20; i++) {
		conform_check(c, dut_shown(&b) < value, "the value is reached before the other device's");
		dut_nap();
	}
	dut_open_gate(&gate);
	dut_wait(&a, a.last);
	dut_wait(&b, value);
	dut_close(&b);
	dut_close(&a);
}

static void a_value_read_of_one_device_carries_its_effects_to_the_other(struct conform *c)
{
	enum { TIMES = 50 };
	struct rig_part into, out;
	uint8_t *src, *dst, *pages_a;
	struct rig_wait for_a;
	void *in, *at_a, *at_b, *end;
	const char *fault = NULL;
	struct dut a, b;
	unsigned i;

	dut_open(c, &a, 0);
	dut_open(c, &b, 1);
	if (a.own_word || !(a.facts.completion == RIG_STORE ? b.facts.waits.stores : b.facts.waits.hosts))
		conform_skip(c, "the device's queues do not wait for such a device");
	if (!b.facts.maps_host)
		conform_skip(c, "the device maps no host memory");
	in = dut_alloc_host(&a, BYTES, &src);
	at_a = dut_alloc_host(&a, 4096, &pages_a);
	if ((uintptr_t)pages_a % 4096)
		conform_skip(c, "memory of the first device starts on no page");
	if (b.m->map_host(b.device, pages_a, 4096, &at_b, &fault) != RIG_MAPS)
		conform_skip(c, "the second device does not map the first one's memory");
	end = dut_alloc(&b, RIG_DEVICE, BYTES);
	(void)end;
	end = dut_alloc_host(&b, BYTES, &dst);
	into = dut_fill(&a, at_a, 0, BYTES, 0);
	(void)in;
	for (i = 1; i <= TIMES; i++) {
		into.u.copy.byte = (uint8_t)i;
		for_a = (struct rig_wait){.word = a.word, .value = dut_run(&a, &into, 1)};
		out = dut_copy(&b, end, 0, at_b, 0, BYTES);
		dut_wait(&b, dut_copy_after(&b, &out, &for_a));
		conform_check(c, dst[0] == (uint8_t)i && dst[BYTES - 1] == (uint8_t)i,
		        "the second device read %u, not %u", dst[0], i);
	}
	dut_free(&b, at_b);
	dut_close(&b);
	dut_close(&a);
}

static const struct conform_law laws[] = {
        LAW(hot_calls_come_from_any_thread, "E-106"),
        LAW(devices_work_side_by_side_in_their_threads, "E-250"),
        LAW(memory_is_made_and_freed_beside_work, "E-026"),
        LAW(many_sleep_beside_hot_calls, "E-026"),
        LAW(a_device_waits_for_the_others_word, "E-054 E-055 E-126"),
        LAW(a_value_read_of_one_device_carries_its_effects_to_the_other, "E-007"),
};
CONFORM_GROUP(threads, laws);
