/* SPDX-License-Identifier: MIT */
#include "held.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define POINTS (RT_HOOK_POINTS + 1)
/* The point that stands for a call of a driver. */
#define DRIVER RT_HOOK_POINTS

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static atomic_bool is_child;

static struct gate {
	const struct rig_device *d;
	unsigned wanted, standing, came, opened; /* opened: how often */
} gates[POINTS];

static struct {
	struct polled *p;
	enum polled_call call;
} driver;

static struct timespec deadline(void)
{
	struct timespec end;

	(void)clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += HELD_SECONDS;
	return end;
}

static void give_up(const char *what, unsigned point)
{
	(void)fprintf(stderr, "held: %s (point %u, %d s)\n", what, point, HELD_SECONDS);
	abort();
}

static void sleep_until(const struct timespec *end, const char *what, unsigned point)
{
	if (pthread_cond_timedwait(&changed, &lock, end))
		give_up(what, point);
}

/* With the lock. */
static void stand(unsigned point)
{
	struct gate *gate = &gates[point];
	unsigned opened = gate->opened;
	struct timespec end = deadline();

	gate->wanted--;
	gate->standing++;
	(void)pthread_cond_broadcast(&changed);
	while (gate->opened == opened)
		sleep_until(&end, "the test left a thread standing", point);
}

static void come(unsigned point, const struct rig_device *d)
{
	struct gate *gate = &gates[point];

	(void)pthread_mutex_lock(&lock);
	if (!gate->d || gate->d == d) {
		gate->came++;
		(void)pthread_cond_broadcast(&changed);
		if (gate->wanted)
			stand(point);
	}
	(void)pthread_mutex_unlock(&lock);
}

void rig_rt_hook(enum rig_rt_hook_point point, const struct rig_device *d)
{
	if (!atomic_load(&is_child))
		come(point, d);
}

static void close_gate(unsigned point, const struct rig_device *d, unsigned n)
{
	(void)pthread_mutex_lock(&lock);
	gates[point].d = d;
	gates[point].wanted = n;
	(void)pthread_mutex_unlock(&lock);
}

static void open_gate(unsigned point)
{
	(void)pthread_mutex_lock(&lock);
	gates[point].wanted = gates[point].standing = 0;
	gates[point].opened++;
	(void)pthread_cond_broadcast(&changed);
	(void)pthread_mutex_unlock(&lock);
}

static void await(unsigned point, const unsigned *count, unsigned n)
{
	struct timespec end = deadline();

	(void)pthread_mutex_lock(&lock);
	while (*count < n)
		sleep_until(&end, "nobody came", point);
	(void)pthread_mutex_unlock(&lock);
}

void held_close(enum rig_rt_hook_point point, const struct rig_device *d, unsigned n)
{
	close_gate(point, d, n);
}

void held_await(enum rig_rt_hook_point point, unsigned n)
{
	await(point, &gates[point].standing, n);
}

void held_open(enum rig_rt_hook_point point)
{
	open_gate(point);
}

void held_await_came(enum rig_rt_hook_point point, unsigned n)
{
	await(point, &gates[point].came, n);
}

void held_reset(void)
{
	unsigned i;

	(void)pthread_mutex_lock(&lock);
	for (i = 0; i < POINTS; i++)
		gates[i] = (struct gate){.opened = gates[i].opened + 1};
	(void)pthread_cond_broadcast(&changed);
	(void)pthread_mutex_unlock(&lock);
}

void held_child(void)
{
	atomic_store(&is_child, true);
}

static void in_driver(void *arg, enum polled_call call)
{
	(void)arg;
	if (call == driver.call && !atomic_load(&is_child))
		come(DRIVER, NULL);
}

void held_driver(struct polled *p, enum polled_call call)
{
	driver.p = p;
	driver.call = call;
	close_gate(DRIVER, NULL, 1);
	polled_hook(p, in_driver, NULL);
}

void held_driver_await(void)
{
	await(DRIVER, &gates[DRIVER].standing, 1);
}

void held_driver_open(void)
{
	open_gate(DRIVER);
}

/* ---- Threads that do one thing ---- */

int held_submit(struct actor *a)
{
	return rig_submit(a->s, NULL, &a->wait, a->wait.bits != 0, &a->point);
}

int held_wait(struct actor *a)
{
	return rig_wait(a->wait);
}

int held_end(struct actor *a)
{
	return rig_close(a->d);
}

int held_begin(struct actor *a)
{
	return rig_open(a->opener, &a->d);
}

int held_create(struct actor *a)
{
	return rig_buffer_create(a->d, RIG_DEVICE, HELD_BYTES, &a->buffer);
}

int held_put(struct actor *a)
{
	rig_buffer_put(a->buffer);
	return 0;
}

static void *act(void *arg)
{
	struct actor *a = arg;

	a->code = a->deed(a);
	return NULL;
}

void held_start(struct actor *a)
{
	if (pthread_create(&a->thread, NULL, act, a))
		give_up("no thread", POINTS);
}

int held_join(struct actor *a)
{
	struct timespec end = deadline();

	if (pthread_timedjoin_np(a->thread, NULL, &end))
		give_up("a thread does not come to its end", POINTS);
	return a->code;
}

void held_start_at(enum rig_rt_hook_point point, const struct rig_device *d, struct actor *a)
{
	held_close(point, d, 1);
	held_start(a);
	held_await(point, 1);
}

int held_let_go(enum rig_rt_hook_point point, struct actor *a)
{
	held_open(point);
	return held_join(a);
}
