/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sodium.h>

#include "clock.h"
#include "rmt_job.h"
#include "thread.h"

enum {
	BEATS = 4,     /* in the time that an agent waits for one */
	PING_MS = 500, /* between two readings of a machine's clock */
	LEAST_SILENCE_MS = 50,
	TICK_MS = 20,
};

static void init_cond(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(cond, &attr);
	(void)pthread_condattr_destroy(&attr);
}

/* ---- Failure ---- */

static void tell_proxies(struct rig_remote_job *job)
{
	uint32_t m, i;

	for (m = 0; m < job->nmachines; m++) {
		struct rig_rmt_machine *machine = &job->machines[m];

		(void)pthread_mutex_lock(&machine->lock);
		(void)pthread_cond_broadcast(&machine->answered);
		for (i = 0; i < RIG_RMT_DEVICES; i++)
			if (machine->proxies[i])
				rig_rmt_proxy_lose(machine->proxies[i], job->reason);
		(void)pthread_mutex_unlock(&machine->lock);
	}
}

/* Agents are told why, where that needs no waiting; the connection's end tells the rest. */
static void tell_agents(struct rig_remote_job *job, uint8_t kind)
{
	struct rig_rmt_out out = {0};
	uint32_t m;

	if (kind == RIG_RMT_FAILED) {
		rig_rmt_put32(&out, RIG_RMT_HERE_PEER);
		rig_rmt_put_text(&out, job->reason);
	}
	for (m = 0; m < job->nmachines; m++) {
		if (!job->machines[m].chan)
			continue;
		if (!out.bad)
			rig_rmt_chan_try_send(job->machines[m].chan, kind, out.at, out.used);
		rig_rmt_chan_shut(job->machines[m].chan);
	}
	rig_rmt_out_free(&out);
}

/* Whether this is the first end of it. */
static bool end_job(struct rig_remote_job *job, bool failed, const char *format, va_list args)
{
	bool first;

	(void)pthread_mutex_lock(&job->lock);
	first = !rig_rmt_job_over(job);
	if (first) {
		(void)vsnprintf(job->reason, sizeof(job->reason), format, args);
		job->failed = failed;
		atomic_store_explicit(&job->over, true, memory_order_release);
		(void)pthread_cond_broadcast(&job->changed);
	}
	(void)pthread_mutex_unlock(&job->lock);
	return first;
}

void rig_rmt_job_fail(struct rig_remote_job *job, const char *format, ...)
{
	va_list args;
	bool first;

	va_start(args, format);
	first = end_job(job, true, format, args);
	va_end(args);
	if (!first)
		return;
	rig_rmt_rails_fail(job, job->reason);
	tell_proxies(job);
	tell_agents(job, RIG_RMT_FAILED);
	if (job->options.failed)
		job->options.failed(job->options.arg, job->reason);
}

bool rig_remote_failed(struct rig_remote_job *job, const char **why)
{
	bool failed;

	if (job->forked)
		return false;
	(void)pthread_mutex_lock(&job->lock);
	failed = job->failed;
	(void)pthread_mutex_unlock(&job->lock);
	if (failed && why)
		*why = job->reason;
	return failed;
}

static int over_error(const struct rig_remote_job *job)
{
	return rig_error_set(-ECONNABORTED, "%s", job->reason);
}

/* ---- Requests ---- */

int rig_rmt_send(struct rig_rmt_machine *m, uint8_t kind, const struct rig_rmt_out *out, const void *body,
        size_t bytes)
{
	int err;

	if (rig_rmt_job_over(m->job))
		return over_error(m->job);
	if (out->bad)
		return rig_error_set(-ENOMEM, "no host memory for a message");
	err = rig_rmt_chan_send(m->chan, kind, out->at, out->used, body, bytes);
	if (!err)
		return 0;
	if (err == -EMSGSIZE)
		return rig_error_set(
		        err, "a message of %zu bytes exceeds what one carries", out->used + bytes);
	rig_rmt_job_fail(m->job, "machine %s: the connection ended: %s", m->name, strerror(-err));
	return over_error(m->job);
}

static void enlist(struct rig_rmt_machine *m, struct rig_rmt_request *r)
{
	(void)pthread_mutex_lock(&m->job->lock);
	r->number = m->job->next_request++;
	(void)pthread_mutex_unlock(&m->job->lock);
	(void)pthread_mutex_lock(&m->lock);
	r->next = m->requests;
	m->requests = r;
	(void)pthread_mutex_unlock(&m->lock);
}

/* With the lock. */
static void delist(struct rig_rmt_machine *m, struct rig_rmt_request *r)
{
	struct rig_rmt_request **at;

	for (at = &m->requests; *at && *at != r; at = &(*at)->next)
		;
	if (*at)
		*at = r->next;
}

/* Answers whether the answer came. */
static bool await_answer(struct rig_rmt_machine *m, struct rig_rmt_request *r, unsigned ms)
{
	struct timespec end;
	int err = 0;

	(void)clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += ms / 1000;
	end.tv_nsec += (long)(ms % 1000) * 1000000L;
	end.tv_sec += end.tv_nsec / 1000000000L;
	end.tv_nsec %= 1000000000L;
	(void)pthread_mutex_lock(&m->lock);
	while (!r->done && !rig_rmt_job_over(m->job) && err != ETIMEDOUT)
		err = pthread_cond_timedwait(&m->answered, &m->lock, &end);
	delist(m, r);
	(void)pthread_mutex_unlock(&m->lock);
	return r->done;
}

static int send_request(struct rig_rmt_machine *m, uint8_t kind, const struct rig_rmt_request *r,
        const struct rig_rmt_out *out)
{
	struct rig_rmt_out head = {.bad = out->bad};
	int err;

	rig_rmt_put32(&head, r->number);
	err = rig_rmt_send(m, kind, &head, out->at, out->used);
	rig_rmt_out_free(&head);
	return err;
}

int rig_rmt_request(struct rig_rmt_machine *m, uint8_t kind, const struct rig_rmt_out *out,
        unsigned answer_ms, struct rig_rmt_out *payload)
{
	struct rig_rmt_request r = {0};
	unsigned ms = answer_ms ? answer_ms : m->job->options.answer_ms;
	bool came = false;
	int err;

	enlist(m, &r);
	err = send_request(m, kind, &r, out);
	came = await_answer(m, &r, err ? 0 : ms);
	if (!err && !came) {
		if (!rig_rmt_job_over(m->job))
			rig_rmt_job_fail(m->job, "machine %s gave no answer within %u ms", m->name, ms);
		err = over_error(m->job);
	}
	if (!err && r.answer.status)
		err = rig_error_set(r.answer.status, "%s", r.answer.text);
	if (!err && r.payload.bad)
		err = rig_error_set(-ENOMEM, "no host memory for an answer");
	if (!err && payload)
		*payload = r.payload;
	else
		rig_rmt_out_free(&r.payload);
	return err;
}

uint32_t rig_rmt_next_fetch(struct rig_remote_job *job)
{
	uint32_t next;

	(void)pthread_mutex_lock(&job->lock);
	next = job->next_fetch++;
	(void)pthread_mutex_unlock(&job->lock);
	return next;
}

/* ---- The reader of a machine ---- */

enum { LEAST_STATUS = -4095 };

static int take_answer(struct rig_rmt_machine *m, const uint8_t *bytes, size_t n)
{
	struct rig_rmt_in in = rig_rmt_in_of(bytes, n);
	struct rig_rmt_answer answer;
	struct rig_rmt_request *r;

	if (rig_rmt_answer_parse(&in, &answer) || answer.status > 0 || answer.status < LEAST_STATUS)
		return -EPROTO;
	(void)pthread_mutex_lock(&m->lock);
	if (!rig_rmt_clock_answer(m, answer.request, in.at, in.left)) {
		for (r = m->requests; r && r->number != answer.request; r = r->next)
			;
		if (r && !r->done) {
			r->answer = answer;
			rig_rmt_put_bytes(&r->payload, in.at, in.left);
			r->done = true;
			(void)pthread_cond_broadcast(&m->answered);
		}
	}
	(void)pthread_mutex_unlock(&m->lock);
	return 0;
}

/* An agent says why it ended its part, and which other machine made it do so. */
static int take_failed(struct rig_rmt_machine *m, const uint8_t *bytes, size_t n)
{
	struct rig_rmt_in in = rig_rmt_in_of(bytes, n);
	uint32_t machine = rig_rmt_get32(&in);
	char reason[RIG_RMT_REASON];

	rig_rmt_get_text(&in, reason, sizeof(reason));
	if (rig_rmt_in_end(&in))
		return -EPROTO;
	if (machine < m->job->nmachines && machine != m->index)
		rig_rmt_job_fail(m->job, "machine %s, as %s has it: %s", m->job->machines[machine].name,
		        m->name, reason);
	else
		rig_rmt_job_fail(m->job, "machine %s: %s", m->name, reason);
	return 0;
}

static int take_credit(struct rig_rmt_machine *m, const uint8_t *bytes, size_t n)
{
	struct rig_rmt_in in = rig_rmt_in_of(bytes, n);
	uint64_t count = rig_rmt_get64(&in);

	rig_rmt_bulk_credit(&m->bulk, count);
	return rig_rmt_in_end(&in);
}

static int take(struct rig_rmt_machine *m, uint8_t kind, const uint8_t *bytes, size_t n)
{
	switch (kind) {
	case RIG_RMT_BEAT:
		return 0;
	case RIG_RMT_ANSWER:
		return take_answer(m, bytes, n);
	case RIG_RMT_FAILED:
		return take_failed(m, bytes, n);
	case RIG_RMT_CREDIT:
		return take_credit(m, bytes, n);
	case RIG_RMT_DATA:
	case RIG_RMT_BULK:
	case RIG_RMT_REACHED:
	case RIG_RMT_LOST:
		return rig_rmt_proxy_take(m, kind, bytes, n);
	default:
		return -EPROTO;
	}
}

static void *read_run(void *machine)
{
	struct rig_rmt_machine *m = machine;
	const uint8_t *bytes;
	uint8_t kind = 0;
	size_t n;
	int err = 0;

	while (!err && !rig_rmt_job_over(m->job)) {
		err = rig_rmt_chan_recv(m->chan, &kind, &bytes, &n);
		if (!err)
			err = take(m, kind, bytes, n);
	}
	if (err == -ETIMEDOUT)
		rig_rmt_job_fail(m->job, "machine %s was silent for %" PRIu32 " ms", m->name,
		        m->job->options.silence_ms);
	else if (err == -EPROTO)
		rig_rmt_job_fail(
		        m->job, "machine %s: malformed: it sent what is no message (kind %u)", m->name, kind);
	else if (err)
		rig_rmt_job_fail(m->job, "machine %s: the connection ended: %s", m->name, strerror(-err));
	return NULL;
}

static void *beat_run(void *arg)
{
	struct rig_remote_job *job = arg;
	const struct timespec nap = {.tv_nsec = TICK_MS * 1000000L};
	uint64_t beat = rig_now_ns(), ping = beat, every = job->options.silence_ms / BEATS * RIG_NS_PER_MS;
	uint32_t m;

	while (!rig_rmt_job_over(job)) {
		uint64_t now;

		(void)nanosleep(&nap, NULL);
		now = rig_now_ns();
		for (m = 0; m < job->nmachines && now - beat >= every; m++)
			rig_rmt_chan_try_send(job->machines[m].chan, RIG_RMT_BEAT, NULL, 0);
		for (m = 0; m < job->nmachines && now - ping >= PING_MS * RIG_NS_PER_MS; m++)
			rig_rmt_clock_ping(&job->machines[m]);
		if (now - beat >= every)
			beat = now;
		if (now - ping >= PING_MS * RIG_NS_PER_MS)
			ping = now;
	}
	return NULL;
}

/* ---- Connecting ---- */

static int join(struct rig_rmt_machine *m)
{
	struct rig_rmt_join j = {.role = RIG_RMT_CONTROLLER, .silence_ms = m->job->options.silence_ms};
	struct rig_rmt_out out = {0};
	int err;

	memcpy(j.token, m->job->token, sizeof(j.token));
	(void)snprintf(j.machine, sizeof(j.machine), "%" PRIu32, m->index);
	rig_rmt_join_put(&out, &j);
	err = rig_rmt_send(m, RIG_RMT_JOIN, &out, NULL, 0);
	rig_rmt_out_free(&out);
	return err;
}

static int connect_one(struct rig_rmt_machine *m)
{
	struct rig_remote_job *job = m->job;
	int err = rig_rmt_chan_dial(
	        m->name, &job->key, job->options.step_ms, job->options.silence_ms, &m->chan);

	if (!err)
		err = join(m);
	if (!err) {
		err = rig_thread_start(&m->reader, RIG_THREAD_ANY, read_run, m);
		m->reading = !err;
	}
	return err ? err : rig_rmt_clock_measure(m);
}

/* Each machine dials those after it. */
static int link_one(struct rig_rmt_machine *from, const struct rig_rmt_machine *to)
{
	struct rig_rmt_out out = {0};
	char why[RIG_RMT_REASON];
	int err;

	rig_rmt_put32(&out, to->index);
	rig_rmt_put_text(&out, to->name);
	err = rig_rmt_request(from, RIG_RMT_LINK, &out, 0, NULL);
	rig_rmt_out_free(&out);
	if (!err)
		return 0;
	(void)snprintf(why, sizeof(why), "%s", rig_error());
	return rig_error_set(err, "machine %s cannot reach machine %s: %s", from->name, to->name, why);
}

static int connect_all(struct rig_remote_job *job)
{
	uint32_t i, k;
	int err = 0;

	for (i = 0; i < job->nmachines && !err; i++)
		err = connect_one(&job->machines[i]);
	for (i = 0; i < job->nmachines && !err; i++)
		for (k = i + 1; k < job->nmachines && !err; k++)
			err = link_one(&job->machines[i], &job->machines[k]);
	if (!err) {
		err = rig_thread_start(&job->beats, RIG_THREAD_ANY, beat_run, job);
		job->beating = !err;
	}
	return err;
}

static void free_job(struct rig_remote_job *job)
{
	uint32_t i;

	for (i = 0; i < job->nmachines; i++) {
		rig_rmt_chan_free(job->machines[i].chan);
		rig_rmt_bulk_fini(&job->machines[i].bulk);
		(void)pthread_cond_destroy(&job->machines[i].answered);
		(void)pthread_mutex_destroy(&job->machines[i].lock);
	}
	while (job->openers) {
		struct rig_rmt_opener *o = job->openers;

		job->openers = o->next;
		free(o);
	}
	rig_rmt_rails_free(job);
	(void)pthread_cond_destroy(&job->changed);
	(void)pthread_mutex_destroy(&job->lock);
	free(job->machines);
	sodium_memzero(job, sizeof(*job));
	free(job);
}

void rig_rmt_job_get(struct rig_remote_job *job)
{
	(void)pthread_mutex_lock(&job->lock);
	job->refs++;
	(void)pthread_mutex_unlock(&job->lock);
}

void rig_rmt_job_put(struct rig_remote_job *job)
{
	bool last;

	(void)pthread_mutex_lock(&job->lock);
	last = --job->refs == 0;
	(void)pthread_mutex_unlock(&job->lock);
	if (last)
		free_job(job);
}

/* The threads end with the connections. */
static void join_threads(struct rig_remote_job *job)
{
	uint32_t i;

	for (i = 0; i < job->nmachines; i++)
		if (job->machines[i].reading)
			(void)pthread_join(job->machines[i].reader, NULL);
	if (job->beating)
		(void)pthread_join(job->beats, NULL);
}

static void close_with(struct rig_remote_job *job, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
static void close_with(struct rig_remote_job *job, const char *format, ...)
{
	va_list args;
	bool first;

	va_start(args, format);
	first = end_job(job, false, format, args);
	va_end(args);
	if (first) {
		tell_proxies(job);
		tell_agents(job, RIG_RMT_CLOSE);
	}
	join_threads(job);
}

void rig_remote_close(struct rig_remote_job *job)
{
	/* A child's copy is left as it is: its threads and locks are the parent's. */
	if (!job || job->forked)
		return;
	rig_rmt_rails_close(job);
	close_with(job, "the job was closed");
	rig_rmt_rails_end(job);
	rig_rmt_fork_unlist(job);
	rig_rmt_job_put(job);
}

static int check(const char *const *machines, uint32_t n, const struct rig_remote_options *options)
{
	char host[RIG_RMT_HOST], port[RIG_RMT_PORT];
	uint32_t i, k;

	if (!machines || !n || n > RIG_RMT_MACHINES)
		return rig_error_set(-EINVAL, "machines: 1 to %d", RIG_RMT_MACHINES);
	if (options && options->version != RIG_EDGE_VERSION)
		return rig_error_set(-EINVAL, "options of version %" PRIu32 ", the library is of %u",
		        options->version, RIG_EDGE_VERSION);
	if (options && options->silence_ms && options->silence_ms < LEAST_SILENCE_MS)
		return rig_error_set(-EINVAL, "silence_ms is %" PRIu32 ", below %d", options->silence_ms,
		        LEAST_SILENCE_MS);
	for (i = 0; i < n; i++) {
		if (!machines[i] || strlen(machines[i]) >= RIG_RMT_NAME ||
		        rig_rmt_split_name(machines[i], host, sizeof(host), port, sizeof(port)))
			return rig_error_set(-EINVAL, "machine %" PRIu32 ": \"%s\" is no HOST:PORT", i,
			        machines[i] ? machines[i] : "");
		for (k = 0; k < i; k++)
			if (!strcmp(machines[i], machines[k]))
				return rig_error_set(-EINVAL, "machine %s is named twice", machines[i]);
	}
	return 0;
}

static void set_options(struct rig_remote_job *job, const struct rig_remote_options *options)
{
	struct rig_remote_options *o = &job->options;

	if (options)
		*o = *options;
	o->step_ms = o->step_ms ? o->step_ms : RIG_RMT_DIAL_MS;
	o->silence_ms = o->silence_ms ? o->silence_ms : RIG_RMT_SILENCE_MS;
	o->answer_ms = o->answer_ms ? o->answer_ms : RIG_RMT_ANSWER_MS;
}

static struct rig_remote_job *make_job(
        const char *const *machines, uint32_t n, const struct rig_remote_options *options)
{
	struct rig_remote_job *job = calloc(1, sizeof(*job));
	uint32_t i;

	if (!job)
		return NULL;
	job->machines = calloc(n, sizeof(*job->machines));
	if (!job->machines) {
		free(job);
		return NULL;
	}
	set_options(job, options);
	job->nmachines = n;
	job->refs = 1;
	job->next_request = job->next_fetch = 1;
	(void)pthread_mutex_init(&job->lock, NULL);
	init_cond(&job->changed);
	for (i = 0; i < n; i++) {
		struct rig_rmt_machine *m = &job->machines[i];

		m->job = job;
		m->index = i;
		(void)snprintf(m->name, sizeof(m->name), "%s", machines[i]);
		(void)pthread_mutex_init(&m->lock, NULL);
		init_cond(&m->answered);
		rig_rmt_bulk_init(&m->bulk);
	}
	return job;
}

int rig_remote_connect(const char *const *machines, uint32_t n, const char *key_file,
        const struct rig_remote_options *options, struct rig_remote_job **job)
{
	struct rig_remote_job *made;
	char why[RIG_RMT_REASON];
	int err = check(machines, n, options);

	if (err)
		return err;
	if (sodium_init() < 0)
		return rig_error_set(-ENOSYS, "the system gives no random numbers");
	made = make_job(machines, n, options);
	if (!made)
		return rig_error_set(-ENOMEM, "no host memory for a job");
	randombytes_buf(made->token, sizeof(made->token));
	err = rig_rmt_rails_open(made);
	if (!err)
		err = rig_rmt_fork_list(made);
	if (!err)
		err = rig_rmt_key_read(key_file, &made->key);
	if (!err)
		err = connect_all(made);
	if (!err) {
		*job = made;
		return 0;
	}
	(void)snprintf(why, sizeof(why), "%s", rig_error());
	rig_remote_close(made);
	return rig_error_set(err, "%s", why);
}

int rig_remote_make_key(const char *path)
{
	return rig_rmt_key_make(path);
}

/* ---- What programs ask ---- */

static int machine_of(struct rig_remote_job *job, uint32_t index, struct rig_rmt_machine **m)
{
	if (job && job->forked)
		return over_error(job);
	if (!job || index >= job->nmachines)
		return rig_error_set(
		        -EINVAL, "machine %" PRIu32 " of %" PRIu32, index, job ? job->nmachines : 0);
	*m = &job->machines[index];
	return 0;
}

static int read_list(const struct rig_rmt_out *payload, struct rig_remote_listed *listed, uint32_t room)
{
	struct rig_rmt_in in = rig_rmt_in_of(payload->at, payload->used);
	uint32_t n = rig_rmt_get32(&in), i;
	struct rig_remote_listed one;

	for (i = 0; i < n && !in.bad; i++) {
		rig_rmt_get_text(&in, one.name, sizeof(one.name));
		one.host = rig_rmt_get8(&in) == 1;
		one.busy = rig_rmt_get8(&in) == 1;
		if (i < room)
			listed[i] = one;
	}
	return rig_rmt_in_end(&in) || n > INT32_MAX ? -EPROTO : (int)n;
}

int rig_remote_list(
        struct rig_remote_job *job, uint32_t machine, struct rig_remote_listed *listed, uint32_t room)
{
	const struct rig_rmt_out none = {0};
	struct rig_rmt_out payload;
	struct rig_rmt_machine *m = NULL;
	int err = machine_of(job, machine, &m);

	if (!err)
		err = rig_rmt_request(m, RIG_RMT_LIST, &none, 0, &payload);
	if (err)
		return err;
	err = read_list(&payload, listed, room);
	rig_rmt_out_free(&payload);
	return err < 0 ? rig_error_set(err, "machine %s: malformed: a list", m->name) : err;
}

int rig_remote_clock(struct rig_remote_job *job, uint32_t machine, int64_t *ahead_ns, uint64_t *error_ns)
{
	struct rig_rmt_machine *m = NULL;
	struct rig_rmt_clock clock;
	int err = machine_of(job, machine, &m);

	if (err)
		return err;
	clock = rig_rmt_clock_now(m);
	*ahead_ns = clock.ahead;
	*error_ns = clock.error;
	return 0;
}

int rig_remote_stats(struct rig_remote_job *job, uint32_t machine, struct rig_remote_stats *stats)
{
	struct rig_rmt_machine *m = NULL;
	int err = machine_of(job, machine, &m);

	if (err)
		return err;
	rig_rmt_chan_counts(m->chan, &stats->sent, &stats->received);
	stats->round_trip_ns = rig_rmt_clock_now(m).round_trip;
	return 0;
}

static struct rig_rmt_opener *make_opener(struct rig_rmt_machine *m, const char *name, size_t n)
{
	struct rig_rmt_opener *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	memcpy(o->name, name, n);
	o->machine = m;
	o->opener = (struct rig_opener){.version = RIG_EDGE_VERSION,
	        .name = o->name,
	        .module = &rig_rmt_module,
	        .make = rig_rmt_make,
	        .arg = o};
	o->next = m->job->openers;
	m->job->openers = o;
	return o;
}

/* With the lock: the one made before, or a new one. */
static struct rig_rmt_opener *get_opener(struct rig_rmt_machine *m, const char *name, size_t n)
{
	struct rig_rmt_opener *o;

	for (o = m->job->openers; o; o = o->next)
		if (o->machine == m && strlen(o->name) == n && !memcmp(o->name, name, n))
			return o;
	return make_opener(m, name, n);
}

int rig_remote_opener(
        struct rig_remote_job *job, const char *name, const struct rig_opener **opener, const char **machine)
{
	const char *at = name ? strchr(name, '@') : NULL;
	size_t n = at ? (size_t)(at - name) : 0;
	struct rig_rmt_opener *o;
	uint32_t i;

	if (job->forked)
		return over_error(job);
	if (!n || n >= RIG_RMT_NAME)
		return rig_error_set(-EINVAL, "\"%s\" is no DEVICE@HOST:PORT", name ? name : "");
	for (i = 0; i < job->nmachines && strcmp(job->machines[i].name, at + 1) != 0; i++)
		;
	if (i == job->nmachines)
		return rig_error_set(-EINVAL, "%s: the job has no machine %s", name, at + 1);
	(void)pthread_mutex_lock(&job->lock);
	o = get_opener(&job->machines[i], name, n);
	(void)pthread_mutex_unlock(&job->lock);
	if (!o)
		return rig_error_set(-ENOMEM, "no host memory for an opener");
	*opener = &o->opener;
	if (machine)
		*machine = job->machines[i].name;
	return 0;
}
