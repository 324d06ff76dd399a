/* SPDX-License-Identifier: MIT */
/* What a controller of the library asks an agent for a first launch, and for later ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent_inside.h"
#include "rig_remote.h"
#include "system_device.h"

enum { KEY_BYTE = 7, WORDS = 200, BYTES = 4096 };

static atomic_uint sent[RIG_RMT_KINDS];

int __real_rig_rmt_chan_send(struct rig_rmt_chan *chan, uint8_t kind, const void *head, size_t head_bytes,
        const void *body, size_t body_bytes);
int __wrap_rig_rmt_chan_send(struct rig_rmt_chan *chan, uint8_t kind, const void *head, size_t head_bytes,
        const void *body, size_t body_bytes);

/* Of both sides, each of which has kinds of its own. */
int __wrap_rig_rmt_chan_send(struct rig_rmt_chan *chan, uint8_t kind, const void *head, size_t head_bytes,
        const void *body, size_t body_bytes)
{
	if (kind < RIG_RMT_KINDS)
		sent[kind]++;
	return __real_rig_rmt_chan_send(chan, kind, head, head_bytes, body, body_bytes);
}

static struct rig_remote_job *connect_to(const struct inside *in)
{
	char path[] = "/tmp/rig-test-key-XXXXXX", line[80] = "rig-key-1 ";
	const char *names[] = {in->name};
	struct rig_remote_job *job;
	int fd = mkstemp(path), i;

	for (i = 0; i < 32; i++)
		(void)sprintf(line + strlen(line), "%02x", KEY_BYTE);
	(void)strcat(line, "\n");
	assert_true(fd >= 0 && write(fd, line, strlen(line)) == (ssize_t)strlen(line) && !close(fd));
	sys_ok(rig_remote_connect(names, 1, path, NULL, &job));
	(void)unlink(path);
	return job;
}

static struct rig_submission *make_launch(struct rig_device *d, struct rig_image *image)
{
	const struct rig_work part = {.kind = RIG_LAUNCH, .u.launch = {.image = image, .function = "free"}};
	const struct rig_description what = {.version = RIG_EDGE_VERSION, .parts = &part, .nparts = 1};
	struct rig_submission *s;

	sys_ok(rig_submission_make(d, &what, &s));
	return s;
}

static void launch(struct rig_submission *s)
{
	struct rig_run_args *run;
	struct rig_point point;

	sys_ok(rig_run_make(s, &run));
	sys_ok(rig_submit(s, run, NULL, 0, &point));
	sys_ok(rig_wait(point));
	rig_run_put(run);
}

static void a_function_is_asked_for_once_and_work_of_one_shape_once(void **state)
{
	static const char *const plain[INSIDE_DRIVERS] = {"", ""};
	struct inside *in = inside_start(plain, NULL);
	struct rig_remote_job *job;
	struct rig_submission *first, *second;
	struct rig_image *image;
	struct rig_entry entry;
	struct rig_buffer *b;
	struct rig_device *d;
	uint8_t bytes[BYTES];
	char name[RIG_RMT_NAME + 8];

	(void)state;
	/* The words are the process's: the first are its runtime's. */
	memset(in->agent.words, true, WORDS);
	job = connect_to(in);
	(void)snprintf(name, sizeof(name), "P0@%s", in->name);
	sys_ok(rig_remote_open(job, name, &d));
	sys_ok(rig_image_load(d, POLLED_BINARY, sizeof(POLLED_BINARY), &image));
	memset(&entry, 0, sizeof(entry));
	entry.version = RIG_EDGE_VERSION;
	sys_ok(rig_image_entry(image, "free", &entry));
	first = make_launch(d, image);
	second = make_launch(d, image);
	assert_int_equal(sent[RIG_RMT_ENTRY], 1);
	launch(first);
	launch(first);
	launch(second);
	assert_int_equal(sent[RIG_RMT_SUBMIT], 3);
	assert_int_equal(sent[RIG_RMT_CHECK], 1);
	/* Small copies need not be asked about. */
	b = sys_buffer(d, RIG_DEVICE, BYTES);
	sys_fill(bytes, BYTES, 1);
	sys_ok(rig_buffer_write(b, 0, bytes, BYTES));
	sys_ok(rig_buffer_read(b, 0, bytes, BYTES));
	assert_int_equal(sent[RIG_RMT_CHECK], 1);
	assert_int_equal(sent[RIG_RMT_ENTRY], 1);
	rig_buffer_put(b);
	rig_submission_put(first);
	rig_submission_put(second);
	rig_image_put(image);
	/* Another image's function of that name is another. */
	sys_ok(rig_image_load(d, POLLED_BINARY, sizeof(POLLED_BINARY), &image));
	sys_ok(rig_image_entry(image, "free", &entry));
	assert_int_equal(sent[RIG_RMT_ENTRY], 2);
	rig_image_put(image);
	sys_close(d);
	rig_remote_close(job);
	inside_end(in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_function_is_asked_for_once_and_work_of_one_shape_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
