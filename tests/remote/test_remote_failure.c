/* SPDX-License-Identifier: MIT */
/* What ends a device, a job, a connection: each within its bound, with the first cause as the reason. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "rail.h"
#include "remote_support.h"
#include "rmt_chan.h"
#include "rmt_frames.h"

enum { SILENCE_MS = 600 };

static const struct rig_remote_options quick = {
        .version = RIG_EDGE_VERSION, .step_ms = 3000, .silence_ms = SILENCE_MS, .answer_ms = 20000};

static void assert_reason(struct rig_device *d, const char *has)
{
	const char *why = "";

	if (!rig_lost(d, &why) || !strstr(why, has))
		fail_msg("%s: the reason is \"%s\", without \"%s\"", rig_name(d), why, has);
}

static void assert_failed(struct rig_remote_job *job, const char *has)
{
	const char *why = "";

	if (!rig_remote_failed(job, &why) || !strstr(why, has))
		fail_msg("the job's reason is \"%s\", without \"%s\"", why, has);
}

static bool is_lost(void *device)
{
	/* A loss is noticed by who uses the device. */
	uint8_t byte = 0;
	struct rig_buffer *b;

	if (!rig_buffer_create(device, RIG_DEVICE, 64, &b)) {
		(void)rig_buffer_write(b, 0, &byte, 1);
		rig_buffer_put(b);
	}
	return rig_lost(device, NULL);
}

/* An endless kernel, so that a wait is under way. */
static struct rig_point submit_endless(struct rig_device *d, struct sys_launch *l, struct rig_image **image)
{
	static const uint64_t none[2] = {0};

	*image = sys_image(d, "loop_forever");
	sys_launch_make(l, *image, "loop_forever",
	        &(struct sys_params){.device = d, .bytes = none, .count = 8}, 1, 1);
	return sys_launch_submit(l);
}

/* ---- Keys ---- */

static void another_key_is_refused_by_either_side(void **state)
{
	struct agent_process a;
	struct rig_remote_job *job;
	const char *names[] = {a.name};
	char key[512];

	(void)state;
	snprintf(key, sizeof(key), "%s", sys_path("other"));
	sys_ok(rig_remote_make_key(key));
	remote_agent(&a, "");
	assert_int_equal(rig_remote_connect(names, 1, key, &quick, &job), -EACCES);
	assert_non_null(strstr(rig_error(), "the keys differ"));
	sys_ok(rig_remote_connect(names, 1, remote_key(), &quick, &job));
	rig_remote_close(job);
	remote_agent_end(&a);
}

static void a_key_that_others_may_read_is_refused_by_either_side(void **state)
{
	struct rig_remote_job *job;
	const char *names[] = {"127.0.0.1:1"};
	struct sys_result result;
	char key[512], command[1024];

	(void)state;
	snprintf(key, sizeof(key), "%s", sys_path("open-key"));
	sys_ok(rig_remote_make_key(key));
	assert_int_equal(rig_remote_make_key(key), -EEXIST);
	assert_int_equal(chmod(key, 0640), 0);
	assert_int_equal(rig_remote_connect(names, 1, key, &quick, &job), -EPERM);
	snprintf(command, sizeof(command), SYS_BUILD "/tools/rig-agent --key %s", key);
	sys_run(&result, command);
	sys_assert_failed(&result, 1, "chmod 600");
}

/* ---- Strangers ---- */

static int dial(const char *name)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	to.sin_port = htons((uint16_t)atoi(strchr(name, ':') + 1));
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static void a_strangers_bytes_end_its_own_connection_alone(void **state)
{
	static const char texts[][32] = {"GET / HTTP/1.1\r\n\r\n", "RIGR\1\0\0\0", "RIGR\2\0\0\0"};
	struct agent_process a;
	struct rig_remote_job *job;
	uint8_t bytes[4096];
	unsigned i;

	(void)state;
	remote_agent(&a, "sim:mem=64M");
	job = remote_connect(&a, 1, &quick);
	for (i = 0; i < 3; i++) {
		int fd = dial(a.name);

		/* A hello of another protocol, version, or one whose proof is none. */
		sys_fill(bytes, sizeof(bytes), i);
		memcpy(bytes, texts[i], 8);
		(void)!write(fd, bytes, sizeof(bytes));
		while (read(fd, bytes, sizeof(bytes)) > 0)
			;
		(void)close(fd);
	}
	sys_close(remote_open(job, "RVX1:0", &a));
	rig_remote_close(job);
	remote_agent_end(&a);
}

/* ---- A peer that is none ---- */

struct fake {
	pthread_t thread;
	int listener;
	char name[64];
	int (*act)(struct rig_rmt_chan *chan); /* NULL: it says nothing at all */
};

static void *fake_run(void *arg)
{
	struct fake *f = arg;
	int fd = accept(f->listener, NULL, NULL);
	struct rig_rmt_chan *chan;
	struct rig_rmt_key key;
	char byte;

	if (fd < 0)
		return NULL;
	if (!f->act) {
		while (read(fd, &byte, 1) > 0)
			;
		(void)close(fd);
		return NULL;
	}
	if (rig_rmt_key_read(remote_key(), &key) || rig_rmt_chan_accept(fd, &key, 3000, 3000, &chan))
		return NULL;
	(void)f->act(chan);
	rig_rmt_chan_free(chan);
	return NULL;
}

static void fake_start(struct fake *f, int (*act)(struct rig_rmt_chan *))
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(at);

	(void)remote_key();
	f->act = act;
	f->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(f->listener, (struct sockaddr *)&at, n), 0);
	assert_int_equal(listen(f->listener, 1), 0);
	assert_int_equal(getsockname(f->listener, (struct sockaddr *)&at, &n), 0);
	snprintf(f->name, sizeof(f->name), "127.0.0.1:%u", ntohs(at.sin_port));
	assert_int_equal(pthread_create(&f->thread, NULL, fake_run, f), 0);
}

static void fake_end(struct fake *f)
{
	(void)shutdown(f->listener, SHUT_RDWR);
	(void)pthread_join(f->thread, NULL);
	(void)close(f->listener);
}

static int skip_join(struct rig_rmt_chan *chan)
{
	const uint8_t *bytes;
	uint8_t kind;
	size_t n;

	return rig_rmt_chan_recv(chan, &kind, &bytes, &n);
}

static int send_nonsense(struct rig_rmt_chan *chan)
{
	int err = skip_join(chan);

	return err ? err : rig_rmt_chan_send(chan, 250, "?", 1, NULL, 0);
}

static int send_short_answer(struct rig_rmt_chan *chan)
{
	int err = skip_join(chan);

	return err ? err : rig_rmt_chan_send(chan, RIG_RMT_ANSWER, "?", 1, NULL, 0);
}

static int go_silent(struct rig_rmt_chan *chan)
{
	while (!skip_join(chan))
		;
	return 0;
}

static int hang_up(struct rig_rmt_chan *chan)
{
	return skip_join(chan);
}

/* As an agent whose device is lost while it is opened. */
static int answer_to(
        struct rig_rmt_chan *chan, uint32_t request, int status, const struct rig_rmt_out *payload)
{
	const struct rig_rmt_answer answer = {.request = request, .status = status};
	struct rig_rmt_out out = {0};
	int err;

	rig_rmt_answer_put(&out, &answer);
	err = rig_rmt_chan_send(chan, RIG_RMT_ANSWER, out.at, out.used, payload->at, payload->used);
	rig_rmt_out_free(&out);
	return err;
}

static int send_lost(struct rig_rmt_chan *chan)
{
	struct rig_rmt_out out = {0};
	int err;

	rig_rmt_put32(&out, 0);
	rig_rmt_put_text(&out, "lost at once");
	err = rig_rmt_chan_send(chan, RIG_RMT_LOST, out.at, out.used, NULL, 0);
	rig_rmt_out_free(&out);
	return err;
}

static int open_fake(struct rig_rmt_chan *chan, uint32_t request, bool lost)
{
	const struct rig_rmt_facts facts = {.name = "LOST",
	        .arch = "none",
	        .host = !lost,
	        .budget = 1 << 20,
	        .nqueues = 1,
	        .queues = {{"COPY:0", RIG_RUNS(RIG_COPY)}},
	        .has_copy_engine = true,
	        .alignment = 64};
	struct rig_rmt_out out = {0};
	int err = lost ? send_lost(chan) : 0;

	rig_rmt_facts_put(&out, &facts);
	if (!err)
		err = answer_to(chan, request, 0, &out);
	rig_rmt_out_free(&out);
	return err;
}

/* Answers as an agent whose devices have no memory, but for rails. */
static int serve(struct rig_rmt_chan *chan, bool lost,
        int (*rail)(struct rig_rmt_chan *chan, uint32_t request, struct rig_rmt_in *in))
{
	const struct rig_rmt_out clock = {.at = (uint8_t[8]){0}, .used = 8}, none = {0};
	const uint8_t *bytes;
	struct rig_rmt_in in;
	uint32_t request;
	uint8_t kind;
	size_t n;
	int err = skip_join(chan);

	while (!err) {
		err = rig_rmt_chan_recv(chan, &kind, &bytes, &n);
		in = rig_rmt_in_of(bytes, err ? 0 : n);
		request = rig_rmt_get32(&in);
		if (!err && kind == RIG_RMT_PING)
			err = answer_to(chan, request, 0, &clock);
		else if (!err && kind == RIG_RMT_OPEN)
			err = open_fake(chan, request, lost);
		else if (!err && kind == RIG_RMT_RAIL && rail)
			err = rail(chan, request, &in);
		else if (!err && (kind == RIG_RMT_ALLOC || kind == RIG_RMT_STOP))
			err = answer_to(chan, request, kind == RIG_RMT_ALLOC ? -ENOMEM : 0, &none);
	}
	return err;
}

static int lose_at_once(struct rig_rmt_chan *chan)
{
	return serve(chan, true, NULL);
}

static struct rig_rails *half_engine;
static struct rig_rail_link *half_link;

/* Its link stands, and it says that it does not. */
static int finish_half(struct rig_rmt_chan *chan, uint32_t request, struct rig_rmt_in *in)
{
	static const struct rig_rails_options options = {.provider = "tcp", .node = "127.0.0.1"};
	struct rig_deadline deadline = rig_deadline_in(NULL, 60 * RIG_NS_PER_S);
	struct rig_rail_blob offer, blob = {0};
	struct rig_rmt_out out = {0};
	struct rig_rmt_rail *r = malloc(sizeof(*r));
	int err = r ? rig_rmt_rail_parse(in, r) : -ENOMEM;

	if (!err && r->op == RIG_RMT_RAIL_ACCEPT) {
		offer.bytes = r->nblob;
		memcpy(offer.at, r->blob, r->nblob);
		err = rig_rails_open(&options, &half_engine);
		if (!err)
			err = rig_rail_link_accept(half_engine, "the controller", &offer, &blob, &half_link);
		rig_rmt_put_bytes(&out, blob.at, blob.bytes);
		if (!err)
			err = answer_to(chan, request, 0, &out);
		if (!err)
			err = rig_rail_link_finish(half_link, NULL, &deadline);
	} else if (!err) {
		err = answer_to(chan, request, r->op == RIG_RMT_RAIL_FINISH ? -EAGAIN : 0, &out);
	}
	rig_rmt_out_free(&out);
	free(r);
	return err;
}

static int link_half(struct rig_rmt_chan *chan)
{
	return serve(chan, false, finish_half);
}

static void half_a_link_of_rails_fails_the_job_with_who_did_not_finish_it(void **state)
{
	const struct rig_remote_transfer one = {.length = 64};
	const struct rig_remote_host *host;
	const struct rig_remote_rail *rail;
	struct rig_remote_job *job;
	struct rig_device *d;
	struct fake f;
	const char *names[] = {f.name};
	char name[128];

	(void)state;
	fake_start(&f, link_half);
	sys_ok(rig_remote_connect(names, 1, remote_key(), &quick, &job));
	snprintf(name, sizeof(name), "LOST@%s", f.name);
	sys_ok(rig_remote_open(job, name, &d));
	host = remote_host(d);
	assert_int_equal(host->rail(host->self, NULL, &one, 1, NULL, 0, &rail), -ECONNABORTED);
	assert_failed(job, "did not finish a link of rails that stands at the controller");
	rig_device_put(d);
	rig_remote_close(job);
	fake_end(&f);
	rig_rails_close(half_engine);
}

static void a_device_that_is_lost_while_it_is_opened_is_lost_here(void **state)
{
	struct rig_remote_job *job;
	struct rig_device *d;
	struct fake f;
	const char *names[] = {f.name};
	char name[128];

	(void)state;
	fake_start(&f, lose_at_once);
	sys_ok(rig_remote_connect(names, 1, remote_key(), &quick, &job));
	snprintf(name, sizeof(name), "LOST@%s", f.name);
	sys_ok(rig_remote_open(job, name, &d));
	sys_await(is_lost, d, "the loss of a device that was lost while it was opened");
	assert_reason(d, "lost at once");
	rig_device_put(d);
	rig_remote_close(job);
	fake_end(&f);
}

/* ---- Devices that tell of their values beside each other ---- */

/* The second device's value, which waited for the first's, is told before that; the first's once it may. */
static sem_t told_second, may_tell_first;

static int open_next(struct rig_rmt_chan *chan, uint32_t request, uint32_t device)
{
	struct rig_rmt_facts facts = {.name = "EARLY",
	        .device = device,
	        .arch = "none",
	        .budget = 1 << 20,
	        .nqueues = 1,
	        .queues = {{"COPY:0", RIG_RUNS(RIG_COPY)}},
	        .has_copy_engine = true,
	        .alignment = 64};
	struct rig_rmt_out out = {0};
	int err;

	rig_rmt_facts_put(&out, &facts);
	err = answer_to(chan, request, 0, &out);
	rig_rmt_out_free(&out);
	return err;
}

static int tell_reached(struct rig_rmt_chan *chan, uint32_t device, uint64_t value)
{
	static struct rig_rmt_reached reached;
	struct rig_rmt_out out = {0};
	int err;

	reached.device = device;
	reached.value = value;
	rig_rmt_reached_put(&out, &reached);
	err = rig_rmt_chan_send(chan, RIG_RMT_REACHED, out.at, out.used, NULL, 0);
	rig_rmt_out_free(&out);
	return err;
}

static int take_submit(struct rig_rmt_chan *chan, struct rig_rmt_in *in)
{
	static uint64_t first;
	uint32_t device = rig_rmt_get32(in);
	uint64_t value = rig_rmt_get64(in);
	int err;

	if (!device) {
		first = value;
		return 0;
	}
	err = tell_reached(chan, 1, value);
	(void)sem_post(&told_second);
	while (sem_wait(&may_tell_first))
		;
	return err ? err : tell_reached(chan, 0, first);
}

static int tell_early(struct rig_rmt_chan *chan)
{
	const struct rig_rmt_out clock = {.at = (uint8_t[8]){0}, .used = 8}, none = {0};
	const uint8_t *bytes;
	struct rig_rmt_in in;
	uint32_t number, opened = 0;
	uint8_t kind;
	size_t n;
	int err = skip_join(chan);

	while (!err) {
		err = rig_rmt_chan_recv(chan, &kind, &bytes, &n);
		in = rig_rmt_in_of(bytes, err ? 0 : n);
		number = rig_rmt_get32(&in);
		if (!err && kind == RIG_RMT_PING)
			err = answer_to(chan, number, 0, &clock);
		else if (!err && kind == RIG_RMT_OPEN)
			err = open_next(chan, number, opened++);
		else if (!err && kind == RIG_RMT_SUBMIT)
			err = take_submit(chan, &in);
		else if (!err && kind != RIG_RMT_BEAT && kind != RIG_RMT_CLOSE && kind != RIG_RMT_FREE)
			err = answer_to(chan, number, 0, &none);
	}
	return err;
}

static bool was_told(void *arg)
{
	(void)arg;
	return !sem_trywait(&told_second);
}

static bool is_done(void *arg)
{
	struct rig_device *d = arg;

	return rig_signaled(d) == rig_submitted(d);
}

static void a_value_is_reached_here_after_those_that_it_waited_for_there(void **state)
{
	const struct rig_remote_options patient = {.version = RIG_EDGE_VERSION};
	struct rig_submission *s[2];
	struct rig_remote_job *job;
	struct rig_device *d[2];
	struct rig_point point;
	struct fake f;
	const char *names[] = {f.name};
	char name[128];
	unsigned i;

	(void)state;
	(void)sem_init(&told_second, 0, 0);
	(void)sem_init(&may_tell_first, 0, 0);
	fake_start(&f, tell_early);
	sys_ok(rig_remote_connect(names, 1, remote_key(), &patient, &job));
	for (i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "EARLY%u@%s", i, f.name);
		sys_ok(rig_remote_open(job, name, &d[i]));
		s[i] = sys_empty(d[i]);
	}
	sys_ok(rig_submit(s[0], NULL, NULL, 0, &point));
	sys_ok(rig_submit(s[1], NULL, &point, 1, &point));
	sys_await(was_told, NULL, "work for the second device");
	for (i = 0; i < 10; i++) {
		assert_false(is_done(d[1]));
		sys_nap();
	}
	(void)sem_post(&may_tell_first);
	sys_await(is_done, d[1], "a value whose wait is over");
	assert_true(is_done(d[0]));
	for (i = 0; i < 2; i++) {
		rig_submission_put(s[i]);
		sys_close(d[i]);
	}
	rig_remote_close(job);
	fake_end(&f);
}

static void a_peer_that_keeps_to_nothing_fails_the_connect_with_what_it_did(void **state)
{
	static const struct {
		int (*act)(struct rig_rmt_chan *);
		int answer;
		const char *why;
	} cases[] = {
	        {NULL, -ETIMEDOUT, "no answer in time"},
	        {send_nonsense, -ECONNABORTED, "malformed"},
	        {send_short_answer, -ECONNABORTED, "malformed"},
	        {go_silent, -ECONNABORTED, "was silent for 600 ms"},
	        {hang_up, -ECONNABORTED, "the connection ended"},
	};
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rig_remote_job *job;
		struct fake f;
		const char *names[] = {f.name};
		int answer;

		fake_start(&f, cases[i].act);
		answer = rig_remote_connect(names, 1, remote_key(), &quick, &job);
		if (answer != cases[i].answer || !strstr(rig_error(), cases[i].why))
			fail_msg("case %u: %d: %s", i, answer, rig_error());
		fake_end(&f);
	}
}

/* ---- Agents and devices that end ---- */

static void a_killed_agent_fails_the_job_and_no_wait_hangs(void **state)
{
	struct agent_process a, b;
	struct agent_process two[2];
	struct rig_remote_job *job;
	struct rig_device *d, *other;
	struct sys_result result;
	struct sys_launch launch;
	struct rig_image *image;
	struct rig_point point;

	(void)state;
	remote_agent(&a, "sim:mem=64M,hang=60s");
	remote_agent(&b, "sim:mem=64M");
	two[0] = a;
	two[1] = b;
	job = remote_connect(two, 2, &quick);
	d = remote_open(job, "RVX1:0", &a);
	other = remote_open(job, "RVX1:0", &b);
	point = submit_endless(d, &launch, &image);
	assert_int_equal(kill(a.process.pid, SIGKILL), 0);
	assert_int_equal(rig_wait(point), RIG_LOST);
	sys_await(is_lost, other, "the loss of the other machine's device");
	assert_failed(job, a.name);
	assert_reason(d, a.name);
	assert_reason(other, a.name);
	sys_launch_end(&launch);
	rig_image_put(image);
	rig_device_put(d);
	rig_device_put(other);
	rig_remote_close(job);
	sys_finish(&a.process, &result);
	/* The other agent stopped its part and serves the next job. */
	job = remote_connect(&b, 1, &quick);
	other = remote_open(job, "RVX1:0", &b);
	sys_device_works(other);
	sys_close(other);
	rig_remote_close(job);
	remote_agent_end(&b);
}

static void a_stopped_agent_is_silent_and_fails_the_job(void **state)
{
	struct agent_process a;
	struct rig_remote_job *job;
	struct rig_device *d;
	struct sys_launch launch;
	struct rig_image *image;
	struct rig_point point;

	(void)state;
	remote_agent(&a, "sim:mem=64M,hang=60s");
	job = remote_connect(&a, 1, &quick);
	d = remote_open(job, "RVX1:0", &a);
	point = submit_endless(d, &launch, &image);
	assert_int_equal(kill(a.process.pid, SIGSTOP), 0);
	assert_int_equal(rig_wait(point), RIG_LOST);
	assert_failed(job, "was silent for 600 ms");
	assert_reason(d, "was silent for 600 ms");
	assert_int_equal(kill(a.process.pid, SIGCONT), 0);
	sys_launch_end(&launch);
	rig_image_put(image);
	rig_device_put(d);
	rig_remote_close(job);
	remote_agent_end(&a);
}

static void a_lost_device_is_its_own_loss(void **state)
{
	struct agent_process a;
	struct rig_remote_job *job;
	struct rig_device *d, *other;
	struct sys_launch launch;
	struct rig_image *image;

	(void)state;
	remote_agent(&a, "sim:mem=64M,fault=hang,hang=300ms sim:mem=64M");
	job = remote_connect(&a, 1, &quick);
	d = remote_open(job, "RVX1:0", &a);
	other = remote_open(job, "RVX1:1", &a);
	assert_int_equal(rig_wait(submit_endless(d, &launch, &image)), RIG_LOST);
	assert_reason(d, "no progress");
	sys_device_works(other);
	assert_false(rig_remote_failed(job, NULL));
	sys_launch_end(&launch);
	rig_image_put(image);
	rig_device_put(d);
	/* Its name is free again. */
	d = remote_open(job, "RVX1:0", &a);
	sys_close(d);
	sys_close(other);
	rig_remote_close(job);
	remote_agent_end(&a);
}

static void a_fault_there_is_the_reason_here(void **state)
{
	struct agent_process a;
	struct rig_remote_job *job;
	struct rig_device *d;
	pid_t model;

	(void)state;
	remote_agent(&a, "sim:mem=64M");
	job = remote_connect(&a, 1, &quick);
	d = remote_open(job, "RVX1:0", &a);
	assert_int_equal(sys_find("rvx1-model", &model, 1), 1);
	assert_int_equal(kill(model, SIGKILL), 0);
	sys_await(is_lost, d, "the loss of a device whose model was killed");
	assert_false(rig_remote_failed(job, NULL));
	rig_device_put(d);
	d = remote_open(job, "RVX1:0", &a);
	sys_device_works(d);
	sys_close(d);
	rig_remote_close(job);
	remote_agent_end(&a);
}

static void a_closed_job_loses_its_devices(void **state)
{
	struct agent_process a;
	struct rig_remote_job *job;
	struct rig_device *d;

	(void)state;
	remote_agent(&a, "sim:mem=64M");
	job = remote_connect(&a, 1, &quick);
	d = remote_open(job, "RVX1:0", &a);
	rig_remote_close(job);
	sys_await(is_lost, d, "the loss of a closed job's device");
	assert_reason(d, "the job was closed");
	rig_device_put(d);
	remote_agent_end(&a);
}

/* ---- Controllers that vanish ---- */

/* In a child, which does not return. */
static void be_killed(struct agent_process *a, int ready)
{
	struct rig_remote_job *job = remote_connect(a, 1, &quick);
	struct rig_device *d = remote_open(job, "RVX1:0", a);
	struct sys_launch launch;
	struct rig_image *image;

	(void)submit_endless(d, &launch, &image);
	(void)!write(ready, "!", 1);
	(void)rig_wait_device(d, 1);
	_exit(1);
}

static void an_agent_serves_on_when_its_controller_was_killed(void **state)
{
	struct agent_process a;
	struct rig_remote_job *job;
	struct rig_device *d;
	unsigned i;

	(void)state;
	remote_agent(&a, "sim:mem=64M,hang=60s");
	for (i = 0; i < 3; i++) {
		int ready[2], status;
		char byte;
		pid_t child;

		assert_int_equal(pipe(ready), 0);
		child = fork();
		if (!child)
			be_killed(&a, ready[1]);
		assert_int_equal(read(ready[0], &byte, 1), 1);
		assert_int_equal(kill(child, SIGKILL), 0);
		assert_int_equal(waitpid(child, &status, 0), child);
		(void)close(ready[0]);
		(void)close(ready[1]);
		job = remote_connect(&a, 1, &quick);
		d = remote_open(job, "RVX1:0", &a);
		sys_device_works(d);
		sys_close(d);
		rig_remote_close(job);
	}
	remote_agent_end(&a);
}

/* The child would keep the connection, and with it the devices, beyond the parent's end. */
static void a_child_of_fork_has_no_job(void **state)
{
	struct agent_process a;
	struct rig_remote_job *job;
	struct rig_device *d, *again;
	struct rig_remote_listed listed;
	char name[128];
	int status;
	pid_t child;

	(void)state;
	remote_agent(&a, "sim:mem=64M");
	job = remote_connect(&a, 1, &quick);
	d = remote_open(job, "RVX1:0", &a);
	child = fork();
	if (!child) {
		struct rig_buffer *b;
		bool refused = rig_remote_list(job, 0, &listed, 1) == -ECONNABORTED &&
		               rig_buffer_create(d, RIG_DEVICE, 64, &b) == RIG_LOST;

		snprintf(name, sizeof(name), "RVX1:0@%s", a.name);
		refused = refused && rig_remote_open(job, name, &again) < 0;
		rig_remote_close(job);
		_exit(refused ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	sys_device_works(d);
	sys_close(d);
	rig_remote_close(job);
	remote_agent_end(&a);
}

/* ---- No descriptors ---- */

enum { FEW = 24 };

static int set_few(void *arg)
{
	const struct rlimit few = {FEW, FEW};

	(void)arg;
	return setrlimit(RLIMIT_NOFILE, &few) ? errno : 0;
}

static void an_agent_without_descriptors_says_so_and_serves_when_it_has_some(void **state)
{
	const struct sys_before before = {set_few, NULL};
	struct agent_process a;
	struct rig_remote_job *job;
	const char *names[] = {a.name};
	char command[1024];
	int strangers[FEW];
	unsigned i;

	(void)state;
	snprintf(command, sizeof(command), SYS_BUILD "/tools/rig-agent -v --key %s --listen 127.0.0.1:0",
	        remote_key());
	remote_agent_before(&a, command, &before);
	for (i = 0; i < FEW; i++)
		strangers[i] = dial(a.name);
	assert_true(rig_remote_connect(names, 1, remote_key(), &quick, &job) < 0);
	for (i = 0; i < FEW; i++)
		(void)close(strangers[i]);
	while (rig_remote_connect(names, 1, remote_key(), &quick, &job))
		sys_nap();
	rig_remote_close(job);
	remote_agent_end(&a);
}

static void a_controller_without_descriptors_is_told(void **state)
{
	struct agent_process a;
	int status;
	pid_t child;

	(void)state;
	remote_agent(&a, "");
	child = fork();
	if (!child) {
		const struct rlimit none = {3, 3};
		struct rig_remote_job *job;
		const char *names[] = {a.name};

		(void)setrlimit(RLIMIT_NOFILE, &none);
		_exit(rig_remote_connect(names, 1, sys_path("key"), &quick, &job) == -EMFILE ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	remote_agent_end(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(another_key_is_refused_by_either_side),
	        cmocka_unit_test(a_key_that_others_may_read_is_refused_by_either_side),
	        cmocka_unit_test(a_strangers_bytes_end_its_own_connection_alone),
	        cmocka_unit_test(a_value_is_reached_here_after_those_that_it_waited_for_there),
	        cmocka_unit_test(a_peer_that_keeps_to_nothing_fails_the_connect_with_what_it_did),
	        cmocka_unit_test(a_device_that_is_lost_while_it_is_opened_is_lost_here),
	        cmocka_unit_test(half_a_link_of_rails_fails_the_job_with_who_did_not_finish_it),
	        cmocka_unit_test(a_killed_agent_fails_the_job_and_no_wait_hangs),
	        cmocka_unit_test(a_stopped_agent_is_silent_and_fails_the_job),
	        cmocka_unit_test(a_lost_device_is_its_own_loss),
	        cmocka_unit_test(a_fault_there_is_the_reason_here),
	        cmocka_unit_test(a_closed_job_loses_its_devices),
	        cmocka_unit_test(an_agent_serves_on_when_its_controller_was_killed),
	        cmocka_unit_test(a_child_of_fork_has_no_job),
	        cmocka_unit_test(an_agent_without_descriptors_says_so_and_serves_when_it_has_some),
	        cmocka_unit_test(a_controller_without_descriptors_is_told),
	};

	/* Relays and strangers write to connections that are ended. */
	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, sys_setup, sys_teardown);
}
