/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "fabric.h"
#include "rail_delay.h"
#include "rail_private.h"

enum {
	CONNS = 16,     /* at a time */
	HELD = 4096,    /* of a connection */
	EVENTS = 32,    /* told in one look */
	COUNTS = 16384, /* watched */
	GIVE = 3,       /* of four looks, how many begin or tell something */
	LATEST = 50,    /* overtake one at most, of writes and again of events: 128 together */
};

/* Sleeps while something is held. */
#define NAP_NS (50 * RIG_NS_PER_US)

struct write {
	const char *from;
	const struct rig_fabric_memory *source;
	size_t bytes;
	const struct rig_fabric_target *to;
	uint64_t offset, number;
	uint32_t note;
	struct rig_conn_op *op;
	uint64_t sum; /* of the bytes, once begun */
};

struct event {
	struct rig_conn_event event;
	struct write write; /* of an op */
	uint64_t number;
};

/* A connection's functions are called by one thread at a time; `held` is read by its sleeper too. */
struct late {
	struct rig_conn *conn;
	struct write writes[HELD], begun[HELD];
	struct event events[HELD];
	unsigned nwrites, nbegun, nevents;
	uint64_t written, begun_all, happened, told; /* ever */
	uint64_t random;
	unsigned held; /* atomic */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct late *late[CONNS];
static unsigned spoilt, overtaken;

int __real_rig_conn_write(struct rig_conn *conn, const void *from, const struct rig_fabric_memory *source,
        size_t bytes, const struct rig_fabric_target *to, uint64_t offset, uint32_t note,
        struct rig_conn_op *op);
int __wrap_rig_conn_write(struct rig_conn *conn, const void *from, const struct rig_fabric_memory *source,
        size_t bytes, const struct rig_fabric_target *to, uint64_t offset, uint32_t note,
        struct rig_conn_op *op);
int __real_rig_conn_read(struct rig_conn *conn, struct rig_conn_event *events, size_t room);
int __wrap_rig_conn_read(struct rig_conn *conn, struct rig_conn_event *events, size_t room);
void __real_rig_conn_sleep(struct rig_conn *conn, uint64_t ns);
void __wrap_rig_conn_sleep(struct rig_conn *conn, uint64_t ns);
void __real_rig_conn_close(struct rig_conn *conn);
void __wrap_rig_conn_close(struct rig_conn *conn);
void __real_rig_rail_raise(uint64_t *count, uint64_t c);
void __wrap_rig_rail_raise(uint64_t *count, uint64_t c);

unsigned rail_delay_spoilt(void)
{
	return __atomic_load_n(&spoilt, __ATOMIC_ACQUIRE);
}

unsigned rail_delay_overtaken(void)
{
	return __atomic_load_n(&overtaken, __ATOMIC_ACQUIRE);
}

/* ---- Connections ---- */

/* The connection's, or with `make` a new one. */
static struct late *late_of(struct rig_conn *conn, bool make)
{
	struct late *found = NULL;
	unsigned i, free_place = CONNS;

	(void)pthread_mutex_lock(&lock);
	for (i = 0; i < CONNS && !found; i++) {
		if (late[i] && late[i]->conn == conn)
			found = late[i];
		else if (!late[i])
			free_place = i;
	}
	if (!found && make && free_place < CONNS) {
		found = calloc(1, sizeof(*found));
		if (found)
			*found = (struct late){.conn = conn, .random = free_place + 1};
		late[free_place] = found;
	}
	(void)pthread_mutex_unlock(&lock);
	if (make && !found)
		abort();
	return found;
}

static void count_held(struct late *l)
{
	__atomic_store_n(&l->held, l->nwrites + l->nevents, __ATOMIC_RELEASE);
}

static uint64_t sum_of(const struct write *w)
{
	uint64_t sum = w->bytes;
	size_t i;

	for (i = 0; i < w->bytes; i++)
		sum = (sum ^ (uint8_t)w->from[i]) * UINT64_C(0x100000001b3);
	return sum;
}

/* ---- What happened ---- */

static void add_event(struct late *l, const struct rig_conn_event *event, const struct write *write)
{
	if (l->nevents == HELD)
		abort();
	l->events[l->nevents++] = (struct event){*event, write ? *write : (struct write){0}, l->happened++};
}

/* The begun write that is done. */
static struct write take_begun(struct late *l, const struct rig_conn_op *op)
{
	unsigned i;
	struct write w;

	for (i = 0; i < l->nbegun && l->begun[i].op != op; i++)
		;
	if (i == l->nbegun)
		abort();
	w = l->begun[i];
	l->begun[i] = l->begun[--l->nbegun];
	return w;
}

/* Any of n, but none that would overtake more than LATEST; the first of those numbers, where `passed` of all
   have gone and it has waited for long. However many are held: a reader may be slow. */
static unsigned pick(struct late *l, const uint64_t *numbers, unsigned n, uint64_t passed)
{
	unsigned first = 0, at = test_draw(&l->random, n), i;

	for (i = 1; i < n; i++)
		if (numbers[i] < numbers[first])
			first = i;
	if (passed >= numbers[first] + LATEST || numbers[at] >= numbers[first] + LATEST)
		return first;
	if (at != first)
		(void)__atomic_fetch_add(&overtaken, 1, __ATOMIC_RELAXED);
	return at;
}

/* Until here nobody may have written to the source. */
static struct rig_conn_event tell_one(struct late *l)
{
	uint64_t numbers[HELD];
	unsigned at, i;
	struct event e;

	for (i = 0; i < l->nevents; i++)
		numbers[i] = l->events[i].number;
	at = pick(l, numbers, l->nevents, l->told++);
	e = l->events[at];
	if (e.event.op && sum_of(&e.write) != e.write.sum)
		(void)__atomic_fetch_add(&spoilt, 1, __ATOMIC_RELEASE);
	l->events[at] = l->events[--l->nevents];
	return e.event;
}

/* ---- Writes ---- */

/* Whether the provider takes more. */
static bool begin_one(struct late *l)
{
	uint64_t numbers[HELD];
	unsigned at, i;
	struct write w;
	struct rig_conn_event done = {0};
	int code;

	for (i = 0; i < l->nwrites; i++)
		numbers[i] = l->writes[i].number;
	at = pick(l, numbers, l->nwrites, l->begun_all);
	w = l->writes[at];
	done.op = w.op;
	w.sum = sum_of(&w);
	code = __real_rig_conn_write(l->conn, w.from, w.source, w.bytes, w.to, w.offset, w.note, w.op);
	/* What fails is told by the next read. */
	if (code < 0)
		return false;
	l->begun_all++;
	if (code == 1)
		add_event(l, &done, &w);
	else
		l->begun[l->nbegun++] = w;
	l->writes[at] = l->writes[--l->nwrites];
	return true;
}

int __wrap_rig_conn_write(struct rig_conn *conn, const void *from, const struct rig_fabric_memory *source,
        size_t bytes, const struct rig_fabric_target *to, uint64_t offset, uint32_t note,
        struct rig_conn_op *op)
{
	struct late *l = late_of(conn, true);

	if (l->nwrites == HELD)
		return -EAGAIN;
	l->writes[l->nwrites++] = (struct write){from, source, bytes, to, offset, l->written++, note, op, 0};
	count_held(l);
	/* Who reads may be asleep: it does not know of this one. */
	rig_conn_wake(conn);
	return 0;
}

static int read_real(struct late *l)
{
	struct rig_conn_event events[EVENTS];
	int n = __real_rig_conn_read(l->conn, events, EVENTS), i;

	for (i = 0; i < n; i++) {
		struct write w = {0};

		if (events[i].op)
			w = take_begun(l, events[i].op);
		add_event(l, &events[i], &w);
	}
	return n;
}

int __wrap_rig_conn_read(struct rig_conn *conn, struct rig_conn_event *events, size_t room)
{
	struct late *l = late_of(conn, true);
	unsigned most = test_draw(&l->random, 4) < GIVE ? test_draw(&l->random, EVENTS) : 0, given = 0;
	/* What a slow reader has not taken stays with the provider. */
	int n = l->nevents < HELD / 2 ? read_real(l) : 0;
	bool began = false;

	while (n >= 0 && most && l->nwrites && begin_one(l)) {
		most--;
		began = true;
	}
	if (began)
		rig_conn_ring(conn);
	most = test_draw(&l->random, 4) < GIVE ? test_draw(&l->random, (uint32_t)room) + 1 : 0;
	while (n >= 0 && given < most && l->nevents)
		events[given++] = tell_one(l);
	count_held(l);
	return n < 0 ? n : (int)given;
}

void __wrap_rig_conn_sleep(struct rig_conn *conn, uint64_t ns)
{
	struct late *l = late_of(conn, true);

	__real_rig_conn_sleep(conn, __atomic_load_n(&l->held, __ATOMIC_ACQUIRE) && ns > NAP_NS ? NAP_NS : ns);
}

void __wrap_rig_conn_close(struct rig_conn *conn)
{
	unsigned i;

	__real_rig_conn_close(conn);
	(void)pthread_mutex_lock(&lock);
	for (i = 0; i < CONNS && conn; i++)
		if (late[i] && late[i]->conn == conn) {
			free(late[i]);
			late[i] = NULL;
		}
	(void)pthread_mutex_unlock(&lock);
}

/* ---- Counts ---- */

struct watched {
	const uint64_t *count;
	uint64_t most;
};

static struct watched watched[COUNTS];

/* The count's place, or a free one. With the lock. */
static struct watched *place_of(const uint64_t *count)
{
	size_t start = (uintptr_t)count / 128, i;

	for (i = 0; i < COUNTS; i++) {
		struct watched *w = &watched[(start + i) % COUNTS];

		if (!w->count || w->count == count)
			return w;
	}
	abort();
}

void __wrap_rig_rail_raise(uint64_t *count, uint64_t c)
{
	struct watched *w;

	(void)pthread_mutex_lock(&lock);
	w = place_of(count);
	w->count = count;
	if (w->most < c)
		w->most = c;
	(void)pthread_mutex_unlock(&lock);
	__real_rig_rail_raise(count, c);
}

uint64_t rail_delay_stored(const struct rig_remote_end *end, enum rig_remote_count count)
{
	uint64_t most;

	(void)pthread_mutex_lock(&lock);
	most = place_of((const uint64_t *)((const char *)end->counts.at + count))->most;
	(void)pthread_mutex_unlock(&lock);
	return most;
}

void rail_delay_forget(void)
{
	(void)pthread_mutex_lock(&lock);
	memset(watched, 0, sizeof(watched));
	(void)pthread_mutex_unlock(&lock);
}
