/* SPDX-License-Identifier: MIT */
#include "test.h"
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "ring.h"

/*
 * A producer and a thread that plays the device. All they share is what a real device shares: the ring's
 * memory, the published position, and the completed value.
 */
enum { UNITS = 64, MARKS = 16, SUBMISSIONS = 20000, MOST_PACKET = 8, NOP = 0xffff };

struct shared {
	uint64_t memory[UNITS];
	uint64_t position;  /* atomic */
	uint64_t completed; /* atomic */
	uint64_t packets;   /* the device's, read after join */
	bool broken;        /* the device's, read after join */
};

/* A packet: unit 0 is units << 32 | value's low half or NOP, the rest repeat it. */
static uint64_t head_word(uint64_t units, uint64_t value)
{
	return units << 32 | value;
}

static void fill_gap(void *arg, void *at, uint64_t units)
{
	uint64_t *word = at;

	(void)arg;
	for (uint64_t i = 0; i < units; i++)
		word[i] = head_word(units, NOP);
}

static uint64_t take_packet(struct shared *s, uint64_t at, uint64_t expected)
{
	uint64_t first = s->memory[at % UNITS], units = first >> 32;

	if (units == 0 || units > UNITS) {
		s->broken = true;
		return UNITS;
	}
	for (uint64_t i = 0; i < units; i++)
		s->broken |= s->memory[(at + i) % UNITS] != first;
	if ((uint32_t)first != NOP) {
		s->broken |= (uint32_t)first != expected;
		s->packets++;
		__atomic_store_n(&s->completed, expected, __ATOMIC_RELEASE);
	}
	return units;
}

static void *run_device(void *arg)
{
	struct shared *s = arg;
	uint64_t at = 0;

	while (s->packets < SUBMISSIONS && !s->broken) {
		uint64_t to = __atomic_load_n(&s->position, __ATOMIC_ACQUIRE);

		if (at == to)
			sched_yield();
		while (at != to && !s->broken)
			at += take_packet(s, at, NOP + 1 + s->packets);
	}
	/* A producer that waits must see the end of a broken run too. */
	if (s->broken)
		__atomic_store_n(&s->completed, UINT64_MAX, __ATOMIC_RELEASE);
	return NULL;
}

static void submit(struct rig_ring *ring, struct shared *s, uint64_t value)
{
	uint64_t units = value * 7 % MOST_PACKET + 1;
	uint64_t *word;

	while (rig_ring_room(ring, units, units) != RIG_RING_FITS) {
		if (!rig_ring_reclaim(ring, __atomic_load_n(&s->completed, __ATOMIC_ACQUIRE)))
			sched_yield();
	}
	word = rig_ring_reserve(ring, units);
	assert_non_null(word);
	for (uint64_t i = 0; i < units; i++)
		word[i] = head_word(units, value);
	__atomic_store_n(&s->position, rig_ring_publish(ring), __ATOMIC_RELEASE);
	rig_ring_mark(ring, value);
}

static void a_device_sees_every_packet_whole_and_in_order(void **state)
{
	static struct shared s;
	struct rig_mark marks[MARKS];
	struct rig_ring ring;
	struct rig_ring_setup setup = {
	        .base = s.memory,
	        .units = UNITS,
	        .unit_bytes = sizeof(uint64_t),
	        .marks = marks,
	        .nmarks = MARKS,
	        .filler = fill_gap,
	};
	pthread_t device;

	(void)state;
	assert_int_equal(rig_ring_init(&ring, &setup), 0);
	assert_int_equal(pthread_create(&device, NULL, run_device, &s), 0);
	for (uint64_t i = 0; i < SUBMISSIONS; i++)
		submit(&ring, &s, NOP + 1 + i);
	assert_int_equal(pthread_join(device, NULL), 0);
	assert_false(s.broken);
	assert_int_equal(s.packets, SUBMISSIONS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_device_sees_every_packet_whole_and_in_order),
	};

	return cmocka_run_group_tests_name("ring threads", tests, NULL, NULL);
}
