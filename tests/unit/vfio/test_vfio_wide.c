/* SPDX-License-Identifier: MIT */
/* Copies into and out of device memory, store by store: in a process of its own, whose steps are counted. */
#include "test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rig_win.h"
#include "steps.h"

enum { MEMORY = 256, FILL = 0xA5 };

enum what { WRITE, READ, ZERO };

static const struct copy {
	enum what what;
	unsigned off, len; /* at the device */
	unsigned host;     /* misalignment of the other side */
	unsigned stores[TEST_STEPS_WIDTHS];
} copies[] = {
        {WRITE, 0, 128, 0, {0, 0, 0, 0, 8}},
        {WRITE, 0, 128, 1, {0, 0, 0, 0, 8}},
        {WRITE, 8, 56, 0, {0, 0, 0, 1, 3}},
        {WRITE, 0, 24, 3, {0, 0, 0, 1, 1}},
        {WRITE, 1, 31, 0, {1, 1, 1, 1, 1}},
        {WRITE, 16, 31, 0, {1, 1, 1, 1, 1}},
        {WRITE, 3, 2, 0, {2}},
        {WRITE, 4, 4, 0, {0, 0, 1}},
        {WRITE, 5, 0, 0, {0}},
        {READ, 0, 128, 0, {0, 0, 0, 0, 8}},
        {READ, 1, 31, 1, {1, 1, 1, 1, 1}},
        {READ, 8, 120, 8, {0, 0, 0, 1, 7}},
        {ZERO, 0, 128, 0, {0, 0, 0, 0, 8}},
        {ZERO, 7, 26, 0, {2, 0, 0, 1, 1}},
};
enum { COPIES = sizeof(copies) / sizeof(copies[0]) };

/* What the copy's stores go to is shared with the test; reading is seen by what it stores, a store a load. */
static void run_copy(const struct copy *c, unsigned char *shared)
{
	static _Alignas(64) unsigned char other[MEMORY];
	struct rig_win win = {.at = c->what == READ ? other : shared, .len = MEMORY};

	for (unsigned i = 0; i < MEMORY; i++)
		other[i] = (unsigned char)(i + 1);
	test_steps_mark();
	if (c->what == WRITE)
		rig_win_write(&win, c->off, other + c->host, c->len);
	else if (c->what == READ)
		rig_win_read(&win, c->off, shared + c->host, c->len);
	else
		rig_wide_zero(shared + c->off, c->len);
	test_steps_mark();
}

static void *map(int fd)
{
	return mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

static void check(const struct copy *c, const unsigned char *memory)
{
	unsigned at = c->what == READ ? c->host : c->off;
	unsigned first = c->what == READ ? c->off + 1 : c->host + 1;

	for (unsigned i = 0; i < MEMORY; i++) {
		bool inside = i >= at && i - at < c->len;
		unsigned want = !inside ? FILL : c->what == ZERO ? 0 : first + (i - at);

		assert_int_equal(memory[i], want);
	}
}

static void copies_take_the_fewest_aligned_stores_and_the_bytes_are_right(void **state)
{
	char number[16], which[16];
	int fd = memfd_create("steps", 0);
	unsigned char *memory;

	(void)state;
	if (!test_steps_can() || RIG_WIDE != 16)
		skip();
	assert_int_equal(ftruncate(fd, MEMORY), 0);
	memory = map(fd);
	snprintf(number, sizeof(number), "%d", fd);
	test_steps_watch(memory, MEMORY);
	for (unsigned i = 0; i < COPIES; i++) {
		struct test_steps steps;

		memset(memory, FILL, MEMORY);
		snprintf(which, sizeof(which), "%u", i);
		assert_int_equal(
		        test_steps_run((char *[]){(char *)"/proc/self/exe", number, which, NULL}, &steps), 0);
		check(&copies[i], memory);
		for (unsigned w = 0; w < TEST_STEPS_WIDTHS; w++)
			if (steps.stores[w] != copies[i].stores[w])
				fail_msg("copy %u: %u stores of %u bytes, not %u", i, steps.stores[w],
				        1u << w, copies[i].stores[w]);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(copies_take_the_fewest_aligned_stores_and_the_bytes_are_right),
	};

	if (argc < 3)
		return cmocka_run_group_tests(tests, NULL, NULL);
	run_copy(&copies[strtoul(argv[2], NULL, 10)], map((int)strtol(argv[1], NULL, 10)));
	return 0;
}
