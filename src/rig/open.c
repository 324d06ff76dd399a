/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "rt.h"

/* A name that some thread is opening: one at a time does. */
struct name {
	struct name *next;
	unsigned users; /* threads that open it or wait to */
	pthread_mutex_t lock;
	char text[RT_NAME_BYTES];
};

static struct name *names; /* under the registry's lock */

static uint64_t real_clock(void *arg)
{
	(void)arg;
	return rig_now_ns();
}

/* A thread that was opening does not exist in the child. */
void rig_rt_names_reborn(void)
{
	struct name *name;

	for (name = names; name; name = name->next)
		(void)pthread_mutex_init(&name->lock, NULL);
}

static struct name *find_name(const char *text)
{
	struct name *name;

	for (name = names; name && strcmp(name->text, text) != 0; name = name->next)
		;
	return name;
}

static struct name *get_name(const char *text)
{
	struct name *name, *made = calloc(1, sizeof(*made));

	if (!made)
		return NULL;
	(void)pthread_mutex_init(&made->lock, NULL);
	(void)snprintf(made->text, sizeof(made->text), "%s", text);
	rig_rt_lock(&rig_rt_registry);
	name = find_name(text);
	if (!name) {
		made->next = names;
		names = name = made;
		made = NULL;
	}
	name->users++;
	rig_rt_unlock(&rig_rt_registry);
	free(made);
	return name;
}

static void put_name(struct name *name)
{
	struct name **at;

	rig_rt_lock(&rig_rt_registry);
	if (--name->users) {
		rig_rt_unlock(&rig_rt_registry);
		return;
	}
	for (at = &names; *at != name; at = &(*at)->next)
		;
	*at = name->next;
	rig_rt_unlock(&rig_rt_registry);
	(void)pthread_mutex_destroy(&name->lock);
	free(name);
}

int rig_rt_version_check(const char *what, uint32_t version)
{
	if (version == RIG_EDGE_VERSION)
		return 0;
	return rig_error_set(-EINVAL, "the %s has contract version %" PRIu32 ", this library %u", what,
	        version, RIG_EDGE_VERSION);
}

static int check_opener(const struct rig_opener *opener, const struct rig_open_options *options)
{
	int code;

	if (!opener)
		return rig_error_set(-EINVAL, "the opener is NULL");
	code = rig_rt_version_check("opener", opener->version);
	if (!code && options)
		code = rig_rt_version_check("open options", options->version);
	if (code)
		return code;
	if (!opener->module || !opener->make)
		return rig_error_set(-EINVAL, "the opener's module or make is NULL");
	code = rig_rt_version_check("driver", opener->module->version);
	if (code)
		return code;
	if (!opener->name || !opener->name[0] || strlen(opener->name) >= RT_NAME_BYTES ||
	        strchr(opener->name, '@'))
		return rig_error_set(
		        -EINVAL, "the opener's name must have 1 to %u bytes and no '@'", RT_NAME_BYTES - 1);
	if (options && options->machine &&
	        (!options->machine[0] ||
	                strlen(opener->name) + 1 + strlen(options->machine) >= RT_NAME_BYTES))
		return rig_error_set(-EINVAL, "the machine's name and %s must have at most %u bytes together",
		        opener->name, RT_NAME_BYTES - 2);
	if (options && options->hang_ms < -1)
		return rig_error_set(-EINVAL, "options.hang_ms is %" PRId64 ", below -1", options->hang_ms);
	if (rig_locks_held())
		return rig_error_set(-EINVAL, "%s: this thread holds a lock of the library and may not open",
		        opener->name);
	return 0;
}

static struct rig_device *make_device(const char *name)
{
	struct rig_device *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->dead = calloc(1, sizeof(*d->dead));
	if (!d->dead) {
		free(d);
		return NULL;
	}
	(void)snprintf(d->name, sizeof(d->name), "%s", name);
	d->dead->remedy = "";
	(void)snprintf(d->dead->name, sizeof(d->dead->name), "%s", name);
	/* One for the program, one for the device's life. */
	atomic_init(&d->refs, 2);
	return d;
}

static void drop_device(struct rig_device *d)
{
	free(d->dead);
	free(d);
}

/* A reason that begins with the device's name, as what was asked for, is not given it again. */
static bool is_named(const char *why, const char *name)
{
	size_t length = strlen(name);

	return !strncmp(why, name, length) && why[length] == ':';
}

static int call_make(struct rig_device *d, const struct rig_opener *opener)
{
	char why[RT_REASON_BYTES] = "";
	int code = opener->make(opener->arg, &rig_rt_words[d->slot], &d->handle, why, sizeof(why));

	if (code > 0)
		code = -EIO;
	if (code && is_named(why, d->name))
		return rig_error_set(code, "%s", why);
	if (code)
		return rig_error_set(code, "%s: %s", d->name, why[0] ? why : strerror(-code));
	d->module = opener->module;
	d->base = rig_rt_word(d->slot);
	return 0;
}

/* ---- Facts ---- */

static int check_copy_engine(const char *name, const struct rig_facts *facts)
{
	if (!facts->has_copy_engine)
		return 0;
	if (facts->copy_engine < 0 || (uint32_t)facts->copy_engine >= facts->nqueues)
		return rig_error_set(-EINVAL,
		        "%s: facts.copy_engine is %" PRId32 ", not the index of one of %" PRIu32 " queues",
		        name, facts->copy_engine, facts->nqueues);
	if (!(facts->queues[facts->copy_engine].runs & RIG_RUNS(RIG_COPY)))
		return rig_error_set(-EINVAL,
		        "%s: facts.copy_engine names queue %" PRId32 ", whose runs lacks RIG_COPY", name,
		        facts->copy_engine);
	return 0;
}

static int check_edge(const char *name, const struct rig_facts *facts)
{
	const struct rig_driver *hot;

	if (!facts->edge)
		return rig_error_set(-EINVAL, "%s: facts.edge is NULL, not the device's C state", name);
	hot = rig_driver_of(facts->edge);
	if (!hot)
		return rig_error_set(-EINVAL,
		        "%s: the first member of facts.edge is NULL, not its struct rig_driver", name);
	if (hot->version != RIG_EDGE_VERSION)
		return rig_error_set(-EINVAL,
		        "%s: its struct rig_driver has contract version %" PRIu32 ", this library %u", name,
		        hot->version, RIG_EDGE_VERSION);
	return 0;
}

static int check_facts(const char *name, const struct rig_facts *facts)
{
	int code = check_copy_engine(name, facts);

	if (code)
		return code;
	if (facts->has_hang_ms && facts->hang_ms < 1)
		return rig_error_set(
		        -EINVAL, "%s: facts.hang_ms is %" PRId64 ", below 1", name, facts->hang_ms);
	if (facts->has_cache_bytes && facts->cache_bytes < 1)
		return rig_error_set(
		        -EINVAL, "%s: facts.cache_bytes is %" PRId64 ", below 1", name, facts->cache_bytes);
	if (facts->alignment < 1 || (facts->alignment & (facts->alignment - 1)))
		return rig_error_set(-EINVAL, "%s: facts.alignment is %" PRId64 ", not a power of two", name,
		        facts->alignment);
	return check_edge(name, facts);
}

static int read_facts(struct rig_device *d)
{
	const char *fault = NULL;
	struct rig_location at;
	int code;

	d->facts.version = RIG_EDGE_VERSION;
	code = d->module->facts(d->handle, &d->facts, &fault);
	if (code)
		return rig_error_set(code == RIG_FAULT ? -EIO : code, "%s: %s", d->name,
		        fault ? fault : "the driver gave no facts");
	memset(&at, 0, sizeof(at));
	d->module->locate(d->handle, d->facts.word, &at);
	d->own_word = !at.has_host || at.host != (const void *)&rig_rt_words[d->slot];
	code = check_facts(d->name, &d->facts);
	if (code)
		return code;
	d->edge = d->facts.edge;
	d->hot = rig_driver_of(d->edge);
	d->store.budget = d->facts.budget;
	return 0;
}

static void set_options(struct rig_device *d, const struct rig_open_options *options)
{
	d->now = options && options->now ? options->now : real_clock;
	d->now_arg = options ? options->arg : NULL;
	d->hang_ms = d->facts.has_hang_ms ? d->facts.hang_ms : 0;
	if (options && options->hang_ms)
		d->hang_ms = options->hang_ms > 0 ? options->hang_ms : 0;
	d->watchdog = options && options->watchdog;
}

/* A handle that opened but will not be a device: it is stopped all the same, and rig_error is kept. */
static void end_handle(struct rig_device *d)
{
	char text[RT_REASON_BYTES];
	const char *ignored = NULL;

	rig_rt_error_keep(text);
	d->module->stop(d->handle, text);
	if (d->own_word)
		(void)d->module->free(d->handle, d->facts.word, &ignored);
	d->module->release(d->handle);
	rig_rt_error_back(text);
}

static int open_slot(
        struct rig_device *d, const struct rig_opener *opener, const struct rig_open_options *options)
{
	int code = rig_rt_slot_take(&d->slot);

	if (code)
		return rig_error_set(code, "%s: all %u slots of the word array are in use or worn out",
		        opener->name, RIG_WORD_COUNT - 1);
	code = call_make(d, opener);
	if (code)
		goto give_slot;
	code = read_facts(d);
	if (code)
		goto stop;
	set_options(d, options);
	return 0;
stop:
	end_handle(d);
give_slot:
	rig_rt_slot_give(d->slot);
	return code;
}

/* The device of that name whose stop has not returned, visited, or NULL. */
static struct rig_device *find_open(const char *name)
{
	struct rig_device *d;

	rig_rt_lock(&rig_rt_registry);
	for (d = rig_rt_devices; d; d = d->next)
		if (rig_rt_life_of(d) < RT_ENDED && strcmp(d->name, name) == 0 && rig_rt_visit_try(d))
			break;
	rig_rt_unlock(&rig_rt_registry);
	return d;
}

/* With the name's lock: no other open of it runs. */
static int await_earlier(const char *name)
{
	struct rig_device *d = find_open(name);
	int code = 0;

	if (d && rig_rt_is_live(d))
		code = rig_error_set(-EBUSY,
		        "%s is open in this process: close it first, or make an opener of another name",
		        name);
	else if (d) {
		rig_rt_hook(RT_HOOK_EARLIER, d);
		rig_rt_await_end(d);
	}
	if (d && !code)
		rig_rt_reap(d);
	rig_rt_visit_end(d);
	if (!code)
		rig_rt_await_released(name);
	return code;
}

static int open_named(
        const struct rig_opener *opener, const struct rig_open_options *options, struct rig_device **device)
{
	struct rig_device *d;
	int code = await_earlier(opener->name);

	if (code)
		return code;
	d = make_device(opener->name);
	if (!d)
		return rig_error_set(-ENOMEM, "%s: no host memory for a device", opener->name);
	code = open_slot(d, opener, options);
	if (code) {
		drop_device(d);
		return code;
	}
	rig_rt_enlist(d);
	*device = d;
	return 0;
}

int rig_open_with(
        const struct rig_opener *opener, const struct rig_open_options *options, struct rig_device **device)
{
	struct rig_opener remote;
	struct name *name;
	char full[RT_NAME_BYTES];
	int code = check_opener(opener, options);

	if (!code)
		code = rig_rt_given(device, "device");
	if (code)
		return code;
	if (options && options->machine) {
		(void)snprintf(full, sizeof(full), "%s@%s", opener->name, options->machine);
		remote = *opener;
		remote.name = full;
		opener = &remote;
	}
	if (rig_rt_failed())
		return rig_error_set(-ECANCELED, "%s: the process failed: %s", opener->name, rig_failure());
	code = rig_rt_init();
	if (code)
		return code;
	name = get_name(opener->name);
	if (!name)
		return rig_error_set(-ENOMEM, "%s: no host memory for its name", opener->name);
	rig_rt_drain_all();
	/* Not counted in rig_locks_held: make may lock under it. */
	(void)pthread_mutex_lock(&name->lock);
	code = open_named(opener, options, device);
	(void)pthread_mutex_unlock(&name->lock);
	put_name(name);
	if (code)
		return code;
	if (rig_rt_failed())
		rig_rt_lose(*device, rig_failure(), false);
	if ((*device)->watchdog)
		code = rig_rt_watchdog_start(*device);
	if (code) {
		(void)rig_close(*device);
		rig_device_put(*device);
	}
	return code;
}

int rig_open(const struct rig_opener *opener, struct rig_device **device)
{
	return rig_open_with(opener, NULL, device);
}

int rig_close(struct rig_device *device)
{
	bool mine;

	if (!device)
		return 0;
	if (!rig_rt_is_live(device) && rig_rt_life_of(device) == RT_LIVE)
		return 0;
	/* A loss meanwhile ends the wait, which is all that close wants of it. */
	if (rig_rt_is_live(device))
		(void)rig_rt_wait_value(device, rig_rt_submitted(device));
	rig_rt_lock(&device->lock);
	mine = rig_rt_lose_locked(device, "closed", false);
	rig_rt_unlock(&device->lock);
	if (mine)
		rig_rt_lose_finish(device);
	rig_rt_await_end(device);
	rig_rt_reap(device);
	/* Its work held memory of others back, which may be all that keeps devices closed before. */
	rig_rt_drain_all();
	/* So that the last reference of the program is the last. */
	rig_rt_await_visits(device);
	return 0;
}
