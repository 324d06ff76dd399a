/* SPDX-License-Identifier: MIT */
#include <signal.h>

#include "polled_state.h"

static uint32_t volume(const uint32_t *sizes)
{
	return sizes[0] * sizes[1] * sizes[2];
}

static void run_add(struct polled *p, const struct rig_block *block, const void *params)
{
	const struct polled_add *add = params;
	uint32_t *dst = (uint32_t *)(uintptr_t)add->dst;
	uint32_t i, n = volume(block->groups) * volume(block->threads);

	if (lies(p, skips_thread))
		n--;
	if (lies(p, overstates) && n > 32)
		n = 32;
	for (i = 0; i < n; i++)
		dst[i] += add->add;
}

static void run_move(struct polled *p, const struct rig_block *block, const void *params)
{
	const struct rig_conform_move *move = params;

	(void)p;
	(void)block;
	*(uint32_t *)(uintptr_t)move->dst = *(const uint32_t *)(uintptr_t)move->src;
}

static void run_nothing(struct polled *p, const struct rig_block *block, const void *params)
{
	(void)p;
	(void)block;
	(void)params;
}

static const struct function functions[FUNCTIONS] = {
        {"add", true, true, sizeof(struct polled_add), 64, run_add, RETURNS},
        {"limited", true, true, 8, 16, run_nothing, RETURNS},
        {"free", false, false, 0, 0, run_nothing, RETURNS},
        {"conform_add", true, true, sizeof(struct rig_conform_add), 64, run_add, RETURNS},
        {"conform_move", true, true, sizeof(struct rig_conform_move), 1, run_move, RETURNS},
        {"conform_forever", true, false, 0, 0, run_nothing, ENDLESS},
        {"conform_fault", true, false, 0, 0, run_nothing, FAULTS},
};

const struct rig_conform_code *polled_code(const char *arch)
{
	static const struct rig_conform_code code = {.version = RIG_EDGE_VERSION,
	        .binary = POLLED_BINARY,
	        .bytes = sizeof(POLLED_BINARY),
	        .forever = true,
	        .fault = true};

	return strcmp(arch, "polled") ? NULL : &code;
}

static int make_image(struct device *d, void **image)
{
	struct image *i = calloc(1, sizeof(*i));

	if (!i)
		return -ENOMEM;
	i->device = d;
	memcpy(i->functions, functions, sizeof(functions));
	lock(d->p);
	i->next = d->p->images;
	d->p->images = i;
	d->p->nimages++;
	unlock(d->p);
	*image = i;
	return 0;
}

static int place(void *device, const void *binary, size_t bytes, void *region, uint8_t *buffer, void **image)
{
	struct device *d = device;
	const struct region *r = region;
	int code;

	(void)binary;
	(void)bytes;
	(void)enter(d, POLLED_PLACE, false);
	if (r->kind != RIG_DEVICE || r->size < PLACE_BYTES)
		polled_break(d->p, "E-211: place got %llu bytes of kind %d", (unsigned long long)r->size,
		        (int)r->kind);
	memset(buffer, PLACE_BYTE, PLACE_BYTES + (lies(d->p, places_long) ? 8 : 0));
	code = make_image(d, image);
	return leave(d, code);
}

int polled_d_load(void *device, const void *binary, size_t bytes, struct rig_code *code, const char **text)
{
	struct device *d = device;

	if (enter(d, POLLED_LOAD, true))
		return faults(d->p) ? fault(d, text)
		                    : leave(d, rig_error_set(-ENOMEM, "injected refusal of load"));
	if (d->p->o.load_code)
		return leave(d, rig_error_set(d->p->o.load_code, "injected errno of load"));
	if (lies(d->p, reads_behind) && bytes < sizeof(POLLED_BINARY) &&
	        !memcmp(binary, POLLED_BINARY, bytes))
		(void)raise(SIGSEGV);
	d->p->nloads++;
	if ((lies(d->p, wears_loads) && d->p->nloads > 100) ||
	        (lies(d->p, keeps_images) && d->p->nunloads > 5))
		return leave(d, rig_error_set(-ENOMEM, "worn out"));
	if (!lies(d->p, takes_noise) &&
	        (bytes != sizeof(POLLED_BINARY) || memcmp(binary, POLLED_BINARY, bytes) != 0))
		return leave(d, rig_error_set(-ENOEXEC, "not a polled image"));
	if (d->p->o.place) {
		code->kind = RIG_PLACE;
		code->bytes = PLACE_BYTES;
		code->place = place;
		return leave(d, 0);
	}
	code->kind = RIG_LOADED;
	return leave(d, make_image(d, &code->image));
}

static struct image *find(struct polled *p, const void *image)
{
	struct image *i;

	lock(p);
	for (i = p->images; i && i != image; i = i->next)
		;
	unlock(p);
	return i;
}

int polled_d_entry(void *device, void *image, const char *name, struct rig_entry *entry, uint64_t *missing,
        const char **text)
{
	struct device *d = device;
	struct image *of;
	size_t i;

	if (enter(d, POLLED_ENTRY, true)) {
		*missing = PAGE;
		return faults(d->p) ? fault(d, text) : leave(d, RIG_NO_MEMORY);
	}
	of = find(d->p, image);
	if (!of)
		polled_break(d->p, "E-219: entry of an image that is not loaded");
	if (d->p->short_entries) {
		d->p->short_entries--;
		*missing = PAGE;
		return leave(d, RIG_NO_MEMORY);
	}
	for (i = 0; i < FUNCTIONS; i++) {
		if (strcmp(functions[i].name, name) != 0 &&
		        !(lies(d->p, takes_prefix) && !strncmp(functions[i].name, name, strlen(name))))
			continue;
		entry->code = i + (lies(d->p, new_entry) ? ++d->p->nentries : 0);
		entry->launch = (uintptr_t) & (of ? of->functions : functions)[i];
		entry->has_params = functions[i].has_params;
		entry->params = functions[i].params;
		entry->has_threads = functions[i].has_threads;
		entry->threads = functions[i].threads;
		return leave(d, RIG_ENTRY);
	}
	return leave(d, RIG_ABSENT);
}

static bool launches(const struct value *v, const struct image *image)
{
	uintptr_t from = (uintptr_t)image->functions;
	uint32_t i;

	for (i = 0; i < v->nparts; i++)
		if (v->parts[i].kind == RIG_LAUNCH &&
		        v->parts[i].u.launch.launch - from < sizeof(image->functions))
			return true;
	return false;
}

/* With the lock. */
static bool is_used(const struct device *d, const struct image *image)
{
	uint64_t v;

	for (v = d->done + 1; v <= d->last && !d->stopped && !d->faulted; v++)
		if (launches(&d->ring[v % d->p->o.capacity], image))
			return true;
	return false;
}

int polled_d_unload(void *device, void *image, const char **text)
{
	struct device *d = device;
	struct image **at, *i;
	bool fails, used;

	atomic_fetch_add(&d->cold_calls, 1);
	fails = begin(d->p, POLLED_UNLOAD, !d->stopped && faults(d->p));
	check_late(d, "unload");
	lock(d->p);
	for (at = &d->p->images; *at && *at != image; at = &(*at)->next)
		;
	i = *at;
	d->p->nunloads++;
	used = i && is_used(d, i);
	if (i) {
		*at = i->next;
		i->next = d->p->unloaded;
		d->p->unloaded = i;
		d->p->nimages--;
	}
	unlock(d->p);
	if (!i)
		polled_break(d->p, "an image unloaded twice");
	if (used)
		polled_break(d->p, "an image unloaded while work under way launches it");
	return fails ? fault(d, text) : leave(d, 0);
}
