/* SPDX-License-Identifier: MIT */
/*
 * Profiles. A shim between the runtime and the polled driver times values: it keeps start and end itself and
 * writes them in settle, as a driver does whose work stamps them, and checks what E-149 to E-179 ask of a
 * runtime.
 */
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "allocs.h"
#include "rig_help.h"

#define VALUES    512u
#define BYTES     4096u
#define COUNTERS  3u /* "cycles" and "bytes", which has two values */
#define ROW_WORDS (3u + COUNTERS)
#define FIRST_NS  1000u
#define STEP_NS   100u

struct timed {
	struct rig_times *pair;
	bool launches, settled, read, freed;
};

static struct shim {
	const struct rig_driver *hot; /* first: what facts.edge points to */
	void *inner;
	const struct rig_driver *below;
	struct rig_driver table;
	bool early;       /* no settle: times are written at once */
	bool untimed;     /* leaves the pairs as they are */
	uint64_t fail_at; /* settle of this value fails; with fail_measures its measures */
	bool fail_measures, counters;
	uint64_t base; /* the device's values follow it; here they are told relative to it */
	uint64_t last_settled, nsettles, nmeasures, ntimed;
	const char *breach;
	struct timed values[VALUES];
} shim;

static void breach(const char *what)
{
	if (!shim.breach)
		shim.breach = what;
}

static uint64_t start_of(uint64_t value)
{
	return FIRST_NS + value * STEP_NS;
}

static void write_times(uint64_t value)
{
	shim.values[value].pair->start = start_of(value);
	shim.values[value].pair->end = start_of(value) + STEP_NS / 2;
}

static int d_room(void *self, const struct rig_part *parts, uint32_t nparts, uint32_t nwaits,
        const struct rig_run *run, void *scratch)
{
	(void)self;
	return shim.below->room(shim.inner, parts, nparts, nwaits, run, scratch);
}

static void check_pair(const struct rig_times *times)
{
	size_t i;

	if (times->start || times->end)
		breach("a pair that is not zero");
	for (i = 0; i < VALUES; i++)
		if (shim.values[i].pair == times && !shim.values[i].settled)
			breach("E-138: a pair serves two values");
}

static int d_submit(void *self, uint64_t value, const struct rig_part *parts, uint32_t nparts,
        const struct rig_wait *waits, uint32_t nwaits, const struct rig_run *run, void *scratch,
        struct rig_times *times, const char **failure)
{
	struct timed *timed = &shim.values[value - shim.base];
	uint32_t i;

	(void)self;
	if (times) {
		check_pair(times);
		timed->pair = times;
		shim.ntimed++;
		for (i = 0; i < nparts; i++)
			timed->launches |= parts[i].kind == RIG_LAUNCH;
		if (shim.early && !shim.untimed)
			write_times(value - shim.base);
	}
	return shim.below->submit(
	        shim.inner, value, parts, nparts, waits, nwaits, run, scratch, NULL, failure);
}

static int d_commit(void *self, uint64_t value, const char **failure)
{
	(void)self;
	return shim.below->commit(shim.inner, value, failure);
}

static struct polled *below;

static uint64_t shown(void)
{
	return polled_word(below) - shim.base;
}

static int d_settle(void *self, uint64_t absolute, const char **failure)
{
	uint64_t value = absolute - shim.base;
	struct timed *timed = &shim.values[value];

	(void)self;
	if (!timed->pair)
		breach("E-149: settle of a value that was not timed");
	if (shown() < value)
		breach("E-149: settle before the word shows the value");
	if (value <= shim.last_settled)
		breach("values are not settled in order");
	if (value == shim.fail_at && !shim.fail_measures) {
		*failure = "injected failure of settle";
		return RIG_FAILED;
	}
	if (!shim.untimed)
		write_times(value);
	shim.last_settled = value;
	shim.nsettles++;
	timed->settled = true;
	return RIG_OK;
}

/* One launch a value. */
static void write_row(uint64_t value, uint64_t *out)
{
	uint32_t i;

	for (i = 0; i < ROW_WORDS; i++)
		if (out[i])
			breach("E-168: a row that is not zero");
	out[0] = 1;
	out[1] = start_of(value) + 1;
	out[2] = start_of(value) + 2;
	for (i = 0; i < COUNTERS; i++)
		out[3 + i] = value * 10 + i;
}

static int d_measures(void *self, uint64_t absolute, uint64_t *out, const char **failure)
{
	uint64_t value = absolute - shim.base;
	struct timed *timed = &shim.values[value];

	(void)self;
	if (!timed->pair || !timed->launches)
		breach("E-166: measures of a value without times or launches");
	if (timed->freed)
		breach("E-176: measures after the value was freed");
	if (out && shown() < value)
		breach("E-168: measures before the word shows the value");
	shim.nmeasures++;
	if (value == shim.fail_at && shim.fail_measures) {
		*failure = "injected failure of measures";
		return RIG_FAILED;
	}
	if (out)
		write_row(value, out);
	else
		timed->freed = true;
	timed->read |= out != NULL;
	return RIG_OK;
}

static void put_shim_between(struct rig_facts *facts)
{
	static const struct rig_counter counters[] = {{"cycles", 1}, {"bytes", 2}};

	shim.inner = facts->edge;
	shim.base = polled_word(below);
	shim.below = rig_driver_of(facts->edge);
	shim.table = (struct rig_driver){RIG_EDGE_VERSION, d_room, d_submit, d_commit,
	        shim.early ? NULL : d_settle, shim.counters ? d_measures : NULL};
	shim.hot = &shim.table;
	if (shim.counters) {
		facts->counters = counters;
		facts->ncounters = sizeof(counters) / sizeof(counters[0]);
	}
	facts->edge = &shim;
}

static struct bench open_timed(const struct polled_options *options)
{
	struct bench b = {.p = polled_new(options)};

	below = b.p;
	polled_edit_facts(b.p, put_shim_between);
	assert_ok(rig_open(polled_opener(b.p), &b.d));
	return b;
}

static int clear_shim(void **state)
{
	(void)state;
	memset(&shim, 0, sizeof(shim));
	return 0;
}

static void close_timed(struct bench *b)
{
	if (shim.breach)
		fail_msg("%s", shim.breach);
	help_close(b);
}

static struct rig_profile *start(struct rig_device *d)
{
	struct rig_profile *profile;

	assert_ok(rig_profile_start(&d, 1, &profile));
	return profile;
}

static void submit_empty(struct rig_device *d, unsigned n)
{
	struct rig_submission *s = help_empty(d);

	while (n--)
		(void)help_submit(s, NULL);
	rig_submission_put(s);
}

static const struct rig_event *find(struct rig_profile *profile, enum rig_event_kind kind, uint64_t value)
{
	const struct rig_event *events;
	size_t n, i;

	assert_ok(rig_profile_events(profile, &events, &n));
	for (i = 0; i < n; i++)
		if (events[i].kind == kind && (!value || events[i].value == shim.base + value))
			return &events[i];
	return NULL;
}

static size_t count(struct rig_profile *profile, enum rig_event_kind kind)
{
	const struct rig_event *events;
	size_t n, i, found = 0;

	assert_ok(rig_profile_events(profile, &events, &n));
	for (i = 0; i < n; i++)
		found += events[i].kind == kind;
	return found;
}

static struct rig_profile_summary summary_of(struct rig_profile *profile)
{
	struct rig_profile_summary summary;

	assert_ok(rig_profile_summary(profile, &summary));
	return summary;
}

/* ---- What the driver sees ---- */

/* E-133. */
static void only_values_under_a_profile_are_timed(void **state)
{
	struct polled_options o = help_options();
	struct bench b = open_timed(&o);
	struct rig_profile *profile;

	(void)state;
	submit_empty(b.d, 2);
	profile = start(b.d);
	submit_empty(b.d, 3);
	assert_ok(rig_profile_stop(profile));
	submit_empty(b.d, 2);
	assert_int_equal(shim.ntimed, 3);
	assert_null(shim.values[2].pair);
	assert_non_null(shim.values[3].pair);
	assert_non_null(shim.values[5].pair);
	assert_null(shim.values[6].pair);
	assert_null(find(profile, RIG_EVENT_SPAN, 2));
	assert_non_null(find(profile, RIG_EVENT_SPAN, 3));
	assert_int_equal(count(profile, RIG_EVENT_SPAN), 3);
	rig_profile_put(profile);
	close_timed(&b);
}

/* E-149, E-150, E-152: the shim checks the order and the word. */
static void values_are_settled_once_in_their_order(void **state)
{
	struct polled_options o = help_options();
	struct bench b = open_timed(&o);
	struct rig_profile *profile = start(b.d);
	const struct rig_event *span;

	(void)state;
	submit_empty(b.d, 5);
	assert_int_equal(shim.nsettles, 0);
	assert_ok(rig_profile_stop(profile));
	assert_int_equal(shim.nsettles, 5);
	span = find(profile, RIG_EVENT_SPAN, 4);
	assert_non_null(span);
	assert_int_equal(span->start, start_of(4));
	assert_int_equal(span->end, start_of(4) + STEP_NS / 2);
	assert_string_equal(span->name, "empty");
	assert_ok(rig_profile_stop(profile));
	rig_profile_put(profile);
	close_timed(&b);
}

static void a_driver_without_settle_writes_the_times_itself(void **state)
{
	struct polled_options o = help_options();
	struct bench b;
	struct rig_profile *profile;

	(void)state;
	shim.early = true;
	b = open_timed(&o);
	profile = start(b.d);
	submit_empty(b.d, 2);
	assert_ok(rig_profile_stop(profile));
	assert_int_equal(find(profile, RIG_EVENT_SPAN, 2)->start, start_of(2));
	rig_profile_put(profile);
	close_timed(&b);
}

/* A driver keeps few stamps: it is asked for them while the profile goes on. */
static void long_profiles_settle_as_they_go(void **state)
{
	struct polled_options o = help_options();
	struct bench b = open_timed(&o);
	struct rig_profile *profile = start(b.d);
	unsigned i;

	(void)state;
	for (i = 0; i < 200; i++) {
		submit_empty(b.d, 1);
		(void)polled_run(b.p, 1);
	}
	assert_true(shim.nsettles > 100);
	assert_ok(rig_profile_stop(profile));
	assert_int_equal(shim.nsettles, 200);
	assert_int_equal(count(profile, RIG_EVENT_SPAN), 200);
	rig_profile_put(profile);
	close_timed(&b);
}

/* E-135. */
static void values_that_a_driver_cannot_time_are_counted(void **state)
{
	struct polled_options o = help_options();
	struct bench b = open_timed(&o);
	struct rig_profile *profile = start(b.d);

	(void)state;
	shim.untimed = true;
	submit_empty(b.d, 3);
	assert_ok(rig_profile_stop(profile));
	assert_int_equal(count(profile, RIG_EVENT_SPAN), 0);
	assert_int_equal(summary_of(profile).values, 3);
	assert_int_equal(summary_of(profile).untimed, 3);
	rig_profile_put(profile);
	close_timed(&b);
}

/* E-160. */
static void a_failed_settle_loses_the_device(void **state)
{
	struct polled_options o = help_options();
	struct bench b = open_timed(&o);
	struct rig_profile *profile = start(b.d);
	const char *reason = "";

	(void)state;
	shim.fail_at = 2;
	submit_empty(b.d, 3);
	assert_ok(rig_profile_stop(profile));
	assert_true(rig_lost(b.d, &reason));
	assert_string_equal(reason, "injected failure of settle");
	assert_non_null(find(profile, RIG_EVENT_SPAN, 1));
	assert_int_equal(summary_of(profile).lost, 2);
	rig_profile_put(profile);
	help_end(&b);
}

/* E-154: nobody settles what was open at the loss; help_end finds what leaks. */
static void values_open_at_a_loss_are_never_settled(void **state)
{
	struct polled_options o = help_options();
	struct bench b = open_timed(&o);
	struct rig_profile *profile = start(b.d);

	(void)state;
	submit_empty(b.d, 3);
	(void)polled_run(b.p, 1);
	rig_fail("stop here");
	assert_ok(rig_profile_stop(profile));
	assert_int_equal(shim.nsettles, 0);
	assert_int_equal(summary_of(profile).lost, 3);
	assert_int_equal(summary_of(profile).values, 3);
	rig_profile_put(profile);
	help_end(&b);
}

static void a_profile_may_be_put_while_it_is_taken(void **state)
{
	struct polled_options o = help_options();
	struct bench b = open_timed(&o);
	struct rig_profile *profile = start(b.d);

	(void)state;
	submit_empty(b.d, 2);
	rig_profile_put(profile);
	submit_empty(b.d, 2);
	assert_int_equal(shim.ntimed, 2);
	close_timed(&b);
}

/* ---- Measures ---- */

static struct rig_submission *make_launch(struct rig_device *d, struct rig_image *image)
{
	static const struct rig_ref ref;
	struct rig_work part = {.kind = RIG_LAUNCH};
	struct rig_description description = {
	        .version = RIG_EDGE_VERSION, .parts = &part, .nparts = 1, .writes = 1};
	struct rig_submission *s;

	part.u.launch.image = image;
	part.u.launch.function = "add";
	part.u.launch.params = sizeof(struct polled_add);
	part.u.launch.refs = &ref;
	part.u.launch.nrefs = 1;
	assert_ok(rig_submission_make(d, &description, &s));
	return s;
}

static void submit_launch(struct rig_device *d)
{
	struct rig_image *image = help_image(d);
	struct rig_submission *s = make_launch(d, image);
	struct rig_buffer *buffer = help_buffer(d, BYTES);
	struct rig_run_args *run;

	assert_ok(rig_run_make(s, &run));
	assert_ok(rig_run_buffer(run, 0, buffer));
	(void)help_submit(s, run);
	rig_run_put(run);
	rig_submission_put(s);
	rig_buffer_put(buffer);
	rig_image_put(image);
}

/* E-166, E-168, E-176, E-177. */
static void launches_are_measured_once_and_then_freed_in_the_driver(void **state)
{
	struct polled_options o = help_options();
	struct bench b;
	struct rig_profile *profile;
	const struct rig_event *launch;

	(void)state;
	shim.counters = true;
	b = open_timed(&o);
	profile = start(b.d);
	submit_empty(b.d, 1);
	submit_launch(b.d);
	assert_ok(rig_profile_stop(profile));
	assert_int_equal(shim.nmeasures, 2);
	assert_true(shim.values[2].freed);
	launch = find(profile, RIG_EVENT_LAUNCH, 2);
	assert_non_null(launch);
	assert_string_equal(launch->name, "add");
	assert_int_equal(launch->start, start_of(2) + 1);
	assert_int_equal(launch->ncounters, COUNTERS);
	assert_int_equal(launch->counters[2], 22);
	assert_string_equal(find(profile, RIG_EVENT_SPAN, 2)->name, "add");
	rig_profile_put(profile);
	close_timed(&b);
}

/* E-176: also where the rows, or anything else that a profile keeps, find no memory. */
static void measures_are_freed_in_the_driver_whatever_finds_no_memory(void **state)
{
	bool failed = true;
	uint64_t k;

	(void)state;
	for (k = 1; failed; k++) {
		struct polled_options o = help_options();
		struct bench b;
		struct rig_profile *profile;

		memset(&shim, 0, sizeof(shim));
		shim.counters = true;
		b = open_timed(&o);
		profile = start(b.d);
		submit_launch(b.d);
		test_allocs_fail_at(k);
		assert_ok(rig_profile_stop(profile));
		failed = test_allocs_failed();
		test_allocs_fail_at(0);
		assert_true(shim.values[1].freed);
		assert_int_equal(shim.nmeasures, shim.values[1].read ? 2 : 1);
		assert_true(failed || find(profile, RIG_EVENT_LAUNCH, 1));
		rig_profile_put(profile);
		close_timed(&b);
	}
	assert_true(k > 3);
}

/* E-179. */
static void a_failed_measures_loses_the_device(void **state)
{
	struct polled_options o = help_options();
	struct bench b;
	struct rig_profile *profile;
	const char *reason = "";

	(void)state;
	shim.counters = shim.fail_measures = true;
	shim.fail_at = 1;
	b = open_timed(&o);
	profile = start(b.d);
	submit_launch(b.d);
	assert_ok(rig_profile_stop(profile));
	assert_true(rig_lost(b.d, &reason));
	assert_string_equal(reason, "injected failure of measures");
	assert_int_equal(shim.nmeasures, 1);
	rig_profile_put(profile);
	help_end(&b);
}

/* ---- What a program sees ---- */

static void profiles_that_overlap_see_their_own_values(void **state)
{
	struct polled_options o = help_options();
	struct bench b = open_timed(&o);
	struct rig_profile *outer = start(b.d), *inner;

	(void)state;
	submit_empty(b.d, 1);
	inner = start(b.d);
	submit_empty(b.d, 1);
	assert_ok(rig_profile_stop(outer));
	submit_empty(b.d, 1);
	assert_ok(rig_profile_stop(inner));
	assert_non_null(find(outer, RIG_EVENT_SPAN, 1));
	assert_non_null(find(outer, RIG_EVENT_SPAN, 2));
	assert_null(find(outer, RIG_EVENT_SPAN, 3));
	assert_null(find(inner, RIG_EVENT_SPAN, 1));
	assert_non_null(find(inner, RIG_EVENT_SPAN, 2));
	assert_non_null(find(inner, RIG_EVENT_SPAN, 3));
	rig_profile_put(inner);
	rig_profile_put(outer);
	close_timed(&b);
}

static void a_device_that_may_block_and_batches_is_profiled_too(void **state)
{
	struct polled_options o = help_options();
	struct bench b;
	struct rig_profile *profile;

	(void)state;
	o.may_block = o.batch = true;
	b = open_timed(&o);
	profile = start(b.d);
	submit_empty(b.d, 70);
	assert_ok(rig_profile_stop(profile));
	assert_int_equal(shim.nsettles, 70);
	rig_profile_put(profile);
	close_timed(&b);
}

static void what_the_host_does_is_noted(void **state)
{
	struct polled_options o = help_options();
	struct bench b = open_timed(&o);
	struct rig_profile *profile = start(b.d);
	struct rig_buffer *buffer = help_buffer(b.d, BYTES);
	uint8_t bytes[BYTES] = {0};
	const struct rig_event *copy;

	(void)state;
	assert_ok(rig_buffer_write(buffer, 0, bytes, sizeof(bytes)));
	rig_image_put(help_image(b.d));
	rig_buffer_put(buffer);
	assert_ok(rig_profile_stop(profile));
	copy = find(profile, RIG_EVENT_COPY, 0);
	assert_non_null(copy);
	assert_int_equal(copy->bytes, BYTES);
	assert_true(copy->end >= copy->start && copy->start);
	assert_int_equal(count(profile, RIG_EVENT_IMAGE), 1);
	assert_true(count(profile, RIG_EVENT_MEMORY) >= 2);
	rig_profile_put(profile);
	close_timed(&b);
}

static void a_profile_of_no_named_device_is_of_all(void **state)
{
	struct polled_options o = help_options(), other = help_options();
	struct bench b = open_timed(&o), plain;
	struct rig_profile *profile;

	(void)state;
	other.name = "P1";
	plain = help_open(&other);
	assert_ok(rig_profile_start(NULL, 0, &profile));
	assert_ptr_equal(rig_profile_device(profile, 0), b.d);
	assert_ptr_equal(rig_profile_device(profile, 1), plain.d);
	assert_null(rig_profile_device(profile, 2));
	assert_ok(rig_profile_stop(profile));
	rig_profile_put(profile);
	close_timed(&b);
	help_close(&plain);
}

static void misuse_of_profiles_is_refused(void **state)
{
	struct polled_options o = help_options();
	struct bench b = open_timed(&o);
	struct rig_device *twice[2] = {b.d, b.d};
	struct rig_profile *profile;
	const struct rig_event *events;
	size_t n;

	(void)state;
	assert_int_equal(rig_profile_start(twice, 2, &profile), -EINVAL);
	assert_int_equal(rig_profile_start(NULL, 1, &profile), -EINVAL);
	assert_int_equal(rig_profile_start(twice, 1, NULL), -EINVAL);
	profile = start(b.d);
	assert_int_equal(rig_profile_events(profile, &events, &n), -EBUSY);
	assert_int_equal(rig_profile_save(profile, "/nowhere"), -EBUSY);
	assert_ok(rig_profile_stop(profile));
	assert_int_equal(rig_profile_save(profile, "/nowhere/trace.json"), -ENOENT);
	rig_profile_put(profile);
	rig_profile_put(NULL);
	assert_ok(rig_close(b.d));
	assert_int_equal(rig_profile_start(&b.d, 1, &profile), RIG_LOST);
	close_timed(&b);
}

/* ---- The file ---- */

static struct json_object *field(struct json_object *o, const char *name)
{
	struct json_object *value = NULL;

	if (!json_object_object_get_ex(o, name, &value))
		fail_msg("no %s in %s", name, json_object_to_json_string(o));
	return value;
}

static struct json_object *find_json(
        struct json_object *events, const char *phase, const char *name, const char *argument)
{
	size_t i;

	for (i = 0; i < json_object_array_length(events); i++) {
		struct json_object *e = json_object_array_get_idx(events, i), *args = NULL, *value;

		if (strcmp(json_object_get_string(field(e, "ph")), phase) != 0 ||
		        strcmp(json_object_get_string(field(e, "name")), name) != 0)
			continue;
		if (!argument)
			return e;
		if (json_object_object_get_ex(e, "args", &args) &&
		        json_object_object_get_ex(args, "name", &value) &&
		        strcmp(json_object_get_string(value), argument) == 0)
			return e;
	}
	fail_msg("no event %s %s %s", phase, name, argument ? argument : "");
	return NULL;
}

static void the_file_has_a_process_a_device_and_a_lane_a_queue(void **state)
{
	char path[] = "/tmp/rig-profile-XXXXXX";
	struct polled_options o = help_options();
	struct bench b;
	struct rig_profile *profile;
	struct json_object *file, *events, *launch, *lane;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	(void)close(fd);
	shim.counters = true;
	o.name = "a \"quoted\" name";
	b = open_timed(&o);
	profile = start(b.d);
	submit_launch(b.d);
	assert_ok(rig_profile_stop(profile));
	assert_ok(rig_profile_save(profile, path));
	file = json_object_from_file(path);
	(void)unlink(path);
	assert_non_null(file);
	events = field(file, "traceEvents");
	(void)find_json(events, "M", "process_name", "a \"quoted\" name");
	lane = find_json(events, "M", "thread_name", "COMPUTE:0");
	(void)find_json(events, "M", "thread_name", "COPY:0");
	launch = find_json(events, "X", "add", NULL);
	assert_int_equal(
	        json_object_get_int64(field(launch, "tid")), json_object_get_int64(field(lane, "tid")));
	assert_int_equal(json_object_get_double(field(launch, "ts")) * 1000 + 0.5, start_of(1));
	(void)find_json(events, "C", "memory", NULL);
	(void)find_json(events, "b", "load image", NULL);
	assert_non_null(strstr(json_object_to_json_string(events), "\"bytes_1\": 12"));
	assert_int_equal(json_object_get_int64(field(field(file, "otherData"), "values")), 1);
	json_object_put(file);
	rig_profile_put(profile);
	close_timed(&b);
}

static void a_child_of_fork_ends_a_profile_without_the_driver(void **state)
{
	struct polled_options o = help_options();
	struct bench b = open_timed(&o);
	struct rig_profile *profile = start(b.d);
	pid_t child;
	int status;

	(void)state;
	submit_empty(b.d, 2);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		int code = rig_profile_stop(profile);

		rig_profile_put(profile);
		_exit(code || shim.nsettles);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_ok(rig_profile_stop(profile));
	assert_int_equal(count(profile, RIG_EVENT_SPAN), 2);
	rig_profile_put(profile);
	close_timed(&b);
}

/* A profile costs a submit memory; one that is over costs nothing. */
static void submits_after_a_profile_allocate_nothing(void **state)
{
	struct polled_options o = help_options();
	struct bench b = open_timed(&o);
	struct rig_profile *profile = start(b.d);
	struct rig_submission *s = help_empty(b.d);
	uint64_t before;

	(void)state;
	(void)help_submit(s, NULL);
	assert_ok(rig_profile_stop(profile));
	before = test_allocs();
	(void)help_submit(s, NULL);
	assert_int_equal(test_allocs(), before);
	rig_submission_put(s);
	rig_profile_put(profile);
	close_timed(&b);
}

#define TEST(name) cmocka_unit_test_setup(name, clear_shim)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(only_values_under_a_profile_are_timed),
	        TEST(values_are_settled_once_in_their_order),
	        TEST(a_driver_without_settle_writes_the_times_itself),
	        TEST(long_profiles_settle_as_they_go),
	        TEST(values_that_a_driver_cannot_time_are_counted),
	        TEST(a_failed_settle_loses_the_device),
	        TEST(a_profile_may_be_put_while_it_is_taken),
	        TEST(launches_are_measured_once_and_then_freed_in_the_driver),
	        TEST(measures_are_freed_in_the_driver_whatever_finds_no_memory),
	        TEST(a_failed_measures_loses_the_device),
	        TEST(profiles_that_overlap_see_their_own_values),
	        TEST(a_device_that_may_block_and_batches_is_profiled_too),
	        TEST(what_the_host_does_is_noted),
	        TEST(a_profile_of_no_named_device_is_of_all),
	        TEST(misuse_of_profiles_is_refused),
	        TEST(the_file_has_a_process_a_device_and_a_lane_a_queue),
	        TEST(a_child_of_fork_ends_a_profile_without_the_driver),
	        TEST(submits_after_a_profile_allocate_nothing),
	        /* The last: the process has failed then. */
	        TEST(values_open_at_a_loss_are_never_settled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
