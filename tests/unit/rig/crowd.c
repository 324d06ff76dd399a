/* SPDX-License-Identifier: MIT */
/* The devices of a crowd. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "crowd.h"

#define WRITE_BINARY "/tmp/rig-crowd-XXXXXX"

/* ---- The Io library: memory; it counts its regions ---- */

static atomic_uint io_regions;

struct io_region {
	uint8_t *at;
};

static uint64_t io_budget(void *device)
{
	(void)device;
	return UINT64_C(1) << 40;
}

static int io_alloc(void *device, uint64_t bytes, void **region, const char **fault)
{
	struct io_region *r = malloc(sizeof(*r));

	(void)device;
	(void)fault;
	r->at = aligned_alloc(CROWD_PAGE, (bytes + CROWD_PAGE - 1) / CROWD_PAGE * CROWD_PAGE);
	atomic_fetch_add(&io_regions, 1);
	*region = r;
	return 0;
}

static int io_free(void *device, void *region, const char **fault)
{
	struct io_region *r = region;

	(void)device;
	(void)fault;
	atomic_fetch_sub(&io_regions, 1);
	free(r->at);
	free(r);
	return 0;
}

static int io_read(void *device, void *region, uint64_t at, void *dst, uint64_t bytes, const char **fault)
{
	(void)device;
	(void)fault;
	memcpy(dst, ((struct io_region *)region)->at + at, bytes);
	return 0;
}

static int io_write(
        void *device, void *region, uint64_t at, const void *src, uint64_t bytes, const char **fault)
{
	(void)device;
	(void)fault;
	memcpy(((struct io_region *)region)->at + at, src, bytes);
	return 0;
}

static int io_pages(void *device, void *region, void **pages, const char **fault)
{
	(void)device;
	(void)fault;
	*pages = ((struct io_region *)region)->at;
	return 0;
}

static void io_prefetch(void *device, void *region, uint64_t at, uint64_t bytes)
{
	(void)device;
	(void)region;
	(void)at;
	(void)bytes;
}

static void io_stop(void *device)
{
	(void)device;
}

static int io_make(void *arg, void **device, char *why, size_t why_bytes)
{
	(void)why;
	(void)why_bytes;
	*device = arg;
	return 0;
}

static const struct rig_key io_key = {"crowd"};
static const struct rig_io_module io_module = {RIG_EDGE_VERSION, &io_key, io_budget, io_alloc, io_free,
        io_read, io_write, io_pages, io_prefetch, io_stop, io_stop};

/* ---- Seats ---- */

/* The one that is lost is of another kind from seed to seed. */
static struct polled *make_polled(enum crowd_seat seat, uint64_t seed)
{
	struct polled_options o = {.completion = RIG_STORE, .maps_host = true, .peers = true};

	/* Queues that stay wait for each other alone: for the one that is lost they wait on the host. */
	o.waits.stores = true;
	switch (seat) {
	case CROWD_PLAIN:
		o.name = "plain";
		o.capacity = 8;
		o.settle = true;
		break;
	case CROWD_BLOCK:
		o.name = "block";
		o.may_block = o.batch = o.thread = o.times = true;
		o.capacity = 4;
		break;
	default:
		o.name = "lost";
		o.completion = RIG_HOST;
		o.waits.hosts = o.thread = o.has_bus = o.settle = true;
		o.may_block = seed & 8;
		o.batch = seed & 16;
		o.own_word = seed & 32;
		o.place = seed & 64;
		o.capacity = seed & 128 ? 2 : 0;
	}
	return polled_new(&o);
}

static int open_at(struct world *w, enum crowd_seat seat, struct rig_device **d)
{
	struct rig_opener opener;

	if (seat == CROWD_IO)
		return rig_open_io(&w->io, d);
	if (seat != CROWD_HOST)
		return rig_open(polled_opener(w->polled[seat]), d);
	rig_host_opener("host", &opener);
	return rig_open(&opener, d);
}

bool crowd_seat_open(struct world *w, struct crowd *t, enum crowd_seat seat)
{
	struct opening *o = calloc(1, sizeof(*o));
	int code = open_at(w, seat, &o->d);

	if (code) {
		free(o);
		if (!w->fails)
			(void)crowd_wrong(
			        t, "an open at seat %d answered %d: %s", (int)seat, code, rig_error());
		return false;
	}
	o->seat = seat;
	o->values = calloc(CROWD_VALUES, sizeof(*o->values));
	atomic_init(&o->latest, rig_submitted(o->d));
	atomic_init(&o->ending, w->fails);
	(void)pthread_mutex_lock(&w->lock);
	o->next = w->openings;
	w->openings = o;
	w->seats[seat] = o;
	(void)pthread_mutex_unlock(&w->lock);
	return true;
}

void crowd_seat_close(struct world *w, enum crowd_seat seat, bool faults)
{
	struct opening *o = w->seats[seat];

	atomic_store(&o->ending, true);
	if (faults) {
		polled_fail(w->polled[seat], POLLED_CALLS, 1 + w->seed % 7, POLLED_FAULTS);
		(void)rig_wait_device(o->d, rig_submitted(o->d));
	}
	(void)rig_close(o->d);
	atomic_store(&o->ended, true);
	if (faults)
		polled_fail(w->polled[seat], POLLED_CALLS, 0, POLLED_FAULTS);
}

/* ---- What is shared ---- */

static bool share(struct world *w, struct crowd *t)
{
	static const uint8_t zeroes[CROWD_BYTES];
	struct rig_ref ref = {.at = offsetof(struct polled_add, dst), .slot = 0};
	struct rig_work part = {.kind = RIG_LAUNCH};
	struct rig_description description = {
	        .version = RIG_EDGE_VERSION, .parts = &part, .nparts = 1, .writes = 1};
	struct rig_device *plain = w->seats[CROWD_PLAIN]->d, *block = w->seats[CROWD_BLOCK]->d;

	part.u.launch = (struct rig_launch_work){NULL, "add", sizeof(struct polled_add), &ref, 1};
	if (rig_image_load(plain, POLLED_BINARY, sizeof(POLLED_BINARY), &w->adder))
		return crowd_wrong(t, "%s", rig_error());
	part.u.launch.image = w->adder;
	if (rig_submission_make(plain, &description, &w->add) ||
	        rig_buffer_create(plain, RIG_DEVICE, CROWD_BYTES, &w->sum) ||
	        rig_buffer_write(w->sum, 0, zeroes, CROWD_BYTES) ||
	        rig_buffer_create(block, RIG_DEVICE, CROWD_BYTES, &w->baton) ||
	        rig_buffer_write(w->baton, 0, zeroes, CROWD_BYTES) ||
	        rig_buffer_borrow(plain, w->baton, &w->baton_borrowed))
		return crowd_wrong(t, "%s", rig_error());
	return true;
}

static void end_sharing(struct world *w)
{
	rig_buffer_put(w->baton_borrowed);
	rig_buffer_put(w->baton);
	rig_buffer_put(w->sum);
	rig_submission_put(w->add);
	rig_image_put(w->adder);
}

static void write_binary(struct world *w)
{
	int fd;

	(void)strcpy(w->binary, WRITE_BINARY);
	fd = mkstemp(w->binary);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, POLLED_BINARY, sizeof(POLLED_BINARY)), sizeof(POLLED_BINARY));
	(void)close(fd);
	(void)snprintf(w->trace, sizeof(w->trace), "%s.json", w->binary);
}

void crowd_world_init(struct world *w, uint64_t seed, bool fails)
{
	struct crowd opener = {.w = w, .op = "init"};
	struct polled_options o = {.name = "common", .thread = true, .settle = true};
	static const char *const names[CROWD_MOST] = {"own0", "own1", "own2", "own3", "own4", "own5"};
	unsigned i;

	memset(w, 0, sizeof(*w));
	w->seed = seed;
	w->fails = fails;
	w->other_key.name = "nobody's";
	w->io = (struct rig_io_opener){RIG_EDGE_VERSION, "io", &io_module, io_make, &io_regions};
	(void)pthread_mutex_init(&w->lock, NULL);
	(void)pthread_mutex_init(&w->baton_lock, NULL);
	write_binary(w);
	w->common = polled_new(&o);
	for (i = 0; i < CROWD_MOST; i++) {
		o.name = names[i];
		w->own[i] = polled_new(&o);
		(void)snprintf(w->host_names[i], sizeof(w->host_names[i]), "host%u", i);
	}
	for (i = 0; i <= CROWD_LOST; i++)
		w->polled[i] = make_polled((enum crowd_seat)i, seed);
	for (i = 0; i < CROWD_SEATS; i++)
		if (!crowd_seat_open(w, &opener, (enum crowd_seat)i))
			fail_msg("%s", opener.text);
	if (!share(w, &opener))
		fail_msg("%s", opener.text);
}

/* All that the openings were asked for came to the driver and back. */
static const char *check_polled(struct polled *p)
{
	const char *breach = polled_breach(p);

	if (!breach && polled_left(p))
		breach = "a region, an image or a handle is left";
	if (!breach && polled_held(p))
		breach = "memory is left";
	if (!breach && polled_count(p, POLLED_STOP) != polled_count(p, POLLED_RELEASE))
		breach = "a handle was stopped and not released";
	return breach;
}

static const char *end_polled(struct polled *p, const char *before)
{
	const char *breach = check_polled(p);
	static char text[512];

	if (breach && !before)
		(void)snprintf(text, sizeof(text), "%s: %s", polled_opener(p)->name, breach);
	polled_free(p);
	return before ? before : breach ? text : NULL;
}

static void close_all(struct world *w)
{
	struct opening *o, *next;

	/* Twice: a device that another's work holds back is given back once that is closed too. */
	for (o = w->openings; o; o = o->next)
		(void)rig_close(o->d);
	for (o = w->openings; o; o = next) {
		next = o->next;
		rig_device_put(o->d);
		free(o->values);
		free(o);
	}
}

const char *crowd_world_fini(struct world *w)
{
	const char *wrong = NULL;
	unsigned i;

	end_sharing(w);
	close_all(w);
	if (rig_devices(NULL, 0))
		wrong = "a device is open";
	if (!wrong && atomic_load(&io_regions))
		wrong = "a region of the Io library is left";
	if (!wrong && atomic_load(&w->kept) != atomic_load(&w->unkept))
		wrong = "a kept object was not put, or twice";
	for (i = 0; i <= CROWD_LOST; i++)
		wrong = end_polled(w->polled[i], wrong);
	for (i = 0; i < CROWD_MOST; i++)
		wrong = end_polled(w->own[i], wrong);
	wrong = end_polled(w->common, wrong);
	(void)unlink(w->binary);
	(void)unlink(w->trace);
	return wrong;
}
