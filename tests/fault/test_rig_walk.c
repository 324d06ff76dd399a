/* SPDX-License-Identifier: MIT */
/* One scenario over the whole runtime, with the k-th driver call or allocation failing, for every k: it ends
   with an error or as if nothing had happened, and nothing is left. */
#include <stdlib.h>

#include "allocs.h"
#include "rig_help.h"

#define BYTES 3000u

/* What the scenario holds; everything may be NULL. */
struct scene {
	struct polled *p[2];
	struct rig_device *d[2];
	struct rig_buffer *src, *dst, *pinned, *borrowed, *local;
	struct rig_image *image;
	struct rig_submission *copy, *launch, *wait;
	struct rig_run_args *copy_run, *launch_run;
	struct rig_profile *profile;
	struct rig_device *host;
	struct rig_buffer *in_host;
	int kept;
};

static void put_kept(void *object)
{
	++*(int *)object;
}

static int make_copy(struct scene *s)
{
	struct rig_work part = {.kind = RIG_COPY};
	struct rig_description description = {
	        .version = RIG_EDGE_VERSION, .parts = &part, .nparts = 1, .reads = 1, .writes = 1};
	int code;

	part.u.copy.dst.slot = 1;
	part.u.copy.row_bytes = BYTES;
	part.u.copy.rows = 1;
	code = rig_submission_make(s->d[0], &description, &s->copy);
	if (!code)
		code = rig_run_make(s->copy, &s->copy_run);
	if (!code)
		code = rig_run_buffer(s->copy_run, 0, s->src);
	return code ? code : rig_run_buffer(s->copy_run, 1, s->dst);
}

static int make_launch(struct scene *s)
{
	struct rig_ref ref = {0, 0};
	struct rig_work parts[3] = {{.kind = RIG_LAUNCH}, {.kind = RIG_LAUNCH}, {.kind = RIG_LAUNCH}};
	struct rig_description description = {
	        .version = RIG_EDGE_VERSION, .parts = parts, .nparts = 3, .writes = 1};
	int code, i;

	for (i = 0; i < 3; i++) {
		parts[i].u.launch.image = s->image;
		parts[i].u.launch.function = "add";
		parts[i].u.launch.params = sizeof(struct polled_add);
		parts[i].u.launch.refs = &ref;
		parts[i].u.launch.nrefs = 1;
	}
	code = rig_submission_make(s->d[0], &description, &s->launch);
	if (!code)
		code = rig_submission_keep(s->launch, &s->kept, put_kept);
	if (!code)
		code = rig_run_make(s->launch, &s->launch_run);
	return code ? code : rig_run_buffer(s->launch_run, 0, s->dst);
}

static int make_wait(struct scene *s)
{
	struct rig_description description = {.version = RIG_EDGE_VERSION};

	return rig_submission_make(s->d[1], &description, &s->wait);
}

static int make_buffers(struct scene *s)
{
	int code = rig_buffer_create(s->d[0], RIG_DEVICE, BYTES, &s->src);

	if (!code)
		code = rig_buffer_create(s->d[0], RIG_DEVICE, BYTES, &s->dst);
	if (!code)
		code = rig_buffer_create(s->d[0], RIG_PINNED, BYTES, &s->pinned);
	if (!code)
		code = rig_buffer_borrow(s->d[1], s->dst, &s->borrowed);
	return code ? code : rig_buffer_create(s->d[1], RIG_DEVICE, BYTES, &s->local);
}

static int run_work(struct scene *s)
{
	uint8_t in[BYTES], out[BYTES];
	struct rig_point point, other;
	int code;

	memset(in, 0x3c, BYTES);
	code = rig_buffer_write(s->src, 0, in, BYTES);
	if (!code)
		code = rig_submit(s->copy, s->copy_run, NULL, 0, &point);
	if (!code)
		code = rig_submit(s->launch, s->launch_run, NULL, 0, &point);
	if (!code)
		code = rig_submit(s->wait, NULL, &point, 1, &other);
	if (!code)
		code = rig_buffer_copy(s->local, 0, s->borrowed, 0, BYTES);
	if (!code)
		code = rig_buffer_copy(s->pinned, 0, s->dst, 0, BYTES);
	if (!code)
		code = rig_wait(other);
	if (!code)
		code = rig_buffer_read(s->local, 0, out, BYTES);
	if (!code)
		assert_memory_equal(out + 4, in + 4, BYTES - 4);
	return code;
}

static int open_scene(struct scene *s)
{
	int code = rig_open(polled_opener(s->p[0]), &s->d[0]);

	return code ? code : rig_open(polled_opener(s->p[1]), &s->d[1]);
}

/* Host memory, and a profile of all that is open. */
static int open_more(struct scene *s)
{
	struct rig_opener opener;
	int code;

	rig_host_opener("HOST", &opener);
	code = rig_open(&opener, &s->host);
	if (!code)
		code = rig_buffer_create(s->host, RIG_DEVICE, BYTES, &s->in_host);
	return code ? code : rig_profile_start(NULL, 0, &s->profile);
}

/* What a profile finds no memory for it counts. */
static int end_profile(struct scene *s)
{
	struct rig_profile_summary summary;
	const struct rig_event *events;
	size_t n;
	int code = rig_buffer_copy(s->in_host, 0, s->dst, 0, BYTES);

	if (!code)
		code = rig_profile_stop(s->profile);
	if (!code)
		code = rig_profile_events(s->profile, &events, &n);
	if (!code)
		code = rig_profile_summary(s->profile, &summary);
	if (code)
		return code;
	assert_true(n + summary.dropped + summary.untimed + summary.lost >= summary.values);
	return rig_profile_save(s->profile, "/dev/null");
}

static int play(struct scene *s)
{
	int code = open_scene(s);

	if (!code)
		code = open_more(s);
	if (!code)
		code = make_buffers(s);
	if (!code)
		code = rig_image_load(s->d[0], POLLED_BINARY, sizeof(POLLED_BINARY), &s->image);
	if (!code)
		code = make_copy(s);
	if (!code)
		code = make_launch(s);
	if (!code)
		code = make_wait(s);
	if (!code)
		code = run_work(s);
	return code ? code : end_profile(s);
}

static void drop(struct scene *s)
{
	int i;

	rig_profile_put(s->profile);
	rig_run_put(s->copy_run);
	rig_run_put(s->launch_run);
	rig_submission_put(s->copy);
	rig_submission_put(s->launch);
	rig_submission_put(s->wait);
	rig_image_put(s->image);
	rig_buffer_put(s->borrowed);
	rig_buffer_put(s->local);
	rig_buffer_put(s->pinned);
	rig_buffer_put(s->src);
	rig_buffer_put(s->dst);
	rig_buffer_put(s->in_host);
	if (s->host)
		assert_ok(rig_close(s->host));
	rig_device_put(s->host);
	for (i = 1; i >= 0; i--) {
		if (s->d[i])
			assert_ok(rig_close(s->d[i]));
		rig_device_put(s->d[i]);
	}
}

/* A device runs by itself; the polled one does when somebody sleeps. */
static void run_producer(void *arg, enum polled_call call)
{
	if (call == POLLED_SLEEP)
		(void)polled_run(arg, 1);
}

static struct polled_options scene_options(int i, bool variant)
{
	struct polled_options o = help_options();

	o.name = i ? "P1" : "P0";
	o.peers = true;
	o.place = variant;
	o.batch = variant && i == 0;
	o.own_word = variant && i == 1;
	o.parts = 2;
	o.completion = RIG_HOST;
	o.settle = i == 0;
	o.times = i == 1;
	o.waits.hosts = i == 1;
	return o;
}

/* Whether the failure came to pass. */
static bool play_with(int failing, uint64_t k, enum polled_failure failure, bool variant, int *answer)
{
	struct scene s;
	bool failed;
	int i;

	memset(&s, 0, sizeof(s));
	for (i = 0; i < 2; i++) {
		struct polled_options o = scene_options(i, variant);

		s.p[i] = polled_new(&o);
		assert_non_null(s.p[i]);
	}
	polled_hook(s.p[1], run_producer, s.p[0]);
	if (failing >= 0)
		polled_fail(s.p[failing], POLLED_CALLS, k, failure);
	else
		test_allocs_fail_at(k);
	*answer = play(&s);
	failed = failing >= 0 ? polled_failed(s.p[failing]) : test_allocs_failed();
	test_allocs_fail_at(0);
	for (i = 0; i < 2; i++)
		polled_fail(s.p[i], POLLED_CALLS, 0, failure);
	drop(&s);
	for (i = 0; i < 2; i++) {
		if (polled_breach(s.p[i]))
			fail_msg("k = %llu: %s", (unsigned long long)k, polled_breach(s.p[i]));
		assert_int_equal(polled_left(s.p[i]), 0);
		polled_free(s.p[i]);
	}
	assert_int_equal(s.kept, s.launch && s.launch_run ? 1 : s.kept);
	return failed;
}

static void walk(int failing, enum polled_failure failure, bool variant)
{
	unsigned live, errors = 0;
	uint64_t k;
	int answer;

	/* What is made once a process: names, the words. */
	(void)play_with(-1, 0, failure, variant, &answer);
	assert_int_equal(answer, 0);
	for (k = 1;; k++) {
		bool failed;

		live = test_allocs_live();
		failed = play_with(failing, k, failure, variant, &answer);
		errors += answer != 0;
		if (!failed)
			break;
		/* A published loss keeps its record for ever, at most one a device. */
		assert_in_range(test_allocs_live(), live, live + 2);
	}
	assert_int_equal(answer, 0);
	assert_true(k > 4);
	assert_true(errors > 0);
}

static void a_fault_of_any_call_loses_a_device_and_leaks_nothing(void **state)
{
	(void)state;
	walk(0, POLLED_FAULTS, false);
	walk(1, POLLED_FAULTS, false);
	walk(0, POLLED_FAULTS, true);
	walk(1, POLLED_FAULTS, true);
}

static void a_refusal_of_any_call_leaks_nothing(void **state)
{
	(void)state;
	walk(0, POLLED_REFUSES, false);
	walk(1, POLLED_REFUSES, false);
	walk(0, POLLED_REFUSES, true);
	walk(1, POLLED_REFUSES, true);
}

static void a_failure_of_any_allocation_leaks_nothing(void **state)
{
	(void)state;
	walk(-1, POLLED_REFUSES, false);
	walk(-1, POLLED_REFUSES, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_fault_of_any_call_loses_a_device_and_leaks_nothing),
	        cmocka_unit_test(a_refusal_of_any_call_leaks_nothing),
	        cmocka_unit_test(a_failure_of_any_allocation_leaks_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
