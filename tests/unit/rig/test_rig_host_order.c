/* SPDX-License-Identifier: MIT */
/* Bytes that the host moves itself, and staged ones: a read follows the last write of devices' work, a write
   every use. Work here runs only when somebody waits for it. */
#include <string.h>

#include "rig_help.h"

#define BYTES 64u
#define OLD   0xA5
#define NEW   0x5A

/* A device and work that copies between two buffers of it, which the host addresses. */
struct side {
	struct bench b;
	struct rig_buffer *from, *to;
	struct rig_point point;
};

static struct rig_buffer *pinned(struct rig_device *d, int byte)
{
	struct rig_buffer *buffer;
	uint8_t bytes[BYTES];

	memset(bytes, byte, sizeof(bytes));
	assert_ok(rig_buffer_create(d, RIG_PINNED, BYTES, &buffer));
	assert_ok(rig_buffer_write(buffer, 0, bytes, BYTES));
	return buffer;
}

static void expect(struct rig_buffer *buffer, int byte)
{
	uint8_t bytes[BYTES], same[BYTES];

	memset(same, byte, sizeof(same));
	assert_ok(rig_buffer_read(buffer, 0, bytes, BYTES));
	assert_memory_equal(bytes, same, BYTES);
}

/* The work from -> to is under way. */
static struct side open_side(const char *name)
{
	struct polled_options o = help_options();
	struct rig_submission *s;
	struct rig_run_args *run;
	struct side side;

	o.name = name;
	side.b = help_open(&o);
	side.from = pinned(side.b.d, OLD);
	side.to = pinned(side.b.d, 0);
	s = help_copy(side.b.d, BYTES);
	run = help_copy_run(s, side.from, side.to);
	side.point = help_submit(s, run);
	rig_run_put(run);
	rig_submission_put(s);
	assert_int_equal(rig_reached(side.point), 0);
	return side;
}

static void close_side(struct side *side)
{
	rig_buffer_put(side->from);
	rig_buffer_put(side->to);
	help_close(&side->b);
}

static void a_write_of_the_host_waits_for_the_work_that_reads_the_memory(void **state)
{
	struct side side = open_side("P0");
	uint8_t bytes[BYTES];

	(void)state;
	memset(bytes, NEW, sizeof(bytes));
	assert_ok(rig_buffer_write(side.from, 0, bytes, BYTES));
	assert_int_equal(rig_reached(side.point), 1);
	expect(side.to, OLD);
	expect(side.from, NEW);
	close_side(&side);
}

static void a_read_of_the_host_waits_for_the_work_that_writes_the_memory(void **state)
{
	struct side side = open_side("P0");

	(void)state;
	expect(side.from, OLD); /* which no work writes: waits for nothing */
	assert_int_equal(rig_reached(side.point), 0);
	expect(side.to, OLD);
	assert_int_equal(rig_reached(side.point), 1);
	close_side(&side);
}

static void a_copy_by_the_host_waits_for_the_work_that_writes_its_source(void **state)
{
	struct side side = open_side("P0");
	struct rig_buffer *target = pinned(side.b.d, 0);

	(void)state;
	assert_ok(rig_buffer_copy(target, 0, side.to, 0, BYTES));
	expect(target, OLD);
	rig_buffer_put(target);
	close_side(&side);
}

static void a_copy_by_the_host_waits_for_the_work_that_reads_its_target(void **state)
{
	struct side side = open_side("P0");
	struct rig_buffer *source = pinned(side.b.d, NEW);

	(void)state;
	assert_ok(rig_buffer_copy(side.from, 0, source, 0, BYTES));
	expect(side.to, OLD);
	expect(side.from, NEW);
	rig_buffer_put(source);
	close_side(&side);
}

/* To memory of a device whose engine does not reach the source. */
static void a_staged_copy_waits_for_the_work_that_writes_its_source(void **state)
{
	struct side side = open_side("P0");
	struct polled_options o = help_options();
	struct rig_buffer *target;
	struct bench other;

	(void)state;
	o.name = "P1";
	other = help_open(&o);
	target = help_buffer(other.d, BYTES);
	assert_ok(rig_buffer_copy(target, 0, side.to, 0, BYTES));
	expect(target, OLD);
	rig_buffer_put(target);
	close_side(&side);
	help_close(&other);
}

static void a_staged_copy_waits_for_the_work_that_reads_its_target(void **state)
{
	struct side side = open_side("P0");
	struct polled_options o = help_options();
	struct rig_buffer *source;
	struct bench other;
	uint8_t bytes[BYTES];

	(void)state;
	o.name = "P1";
	other = help_open(&o);
	source = help_buffer(other.d, BYTES);
	memset(bytes, NEW, sizeof(bytes));
	assert_ok(rig_buffer_write(source, 0, bytes, BYTES));
	assert_ok(rig_buffer_copy(side.from, 0, source, 0, BYTES));
	expect(side.to, OLD);
	expect(side.from, NEW);
	rig_buffer_put(source);
	close_side(&side);
	help_close(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_write_of_the_host_waits_for_the_work_that_reads_the_memory),
	        cmocka_unit_test(a_read_of_the_host_waits_for_the_work_that_writes_the_memory),
	        cmocka_unit_test(a_copy_by_the_host_waits_for_the_work_that_writes_its_source),
	        cmocka_unit_test(a_copy_by_the_host_waits_for_the_work_that_reads_its_target),
	        cmocka_unit_test(a_staged_copy_waits_for_the_work_that_writes_its_source),
	        cmocka_unit_test(a_staged_copy_waits_for_the_work_that_reads_its_target),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
