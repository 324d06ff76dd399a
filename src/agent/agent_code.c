/* SPDX-License-Identifier: MIT */
/* A device's code: what a controller sends is loaded, its functions are named, and it goes once nothing
   launches it any more. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent_cold.h"

int code_take(struct device *d, struct rig_rmt_in *in, struct rig_rmt_out *out)
{
	(void)out;
	if (in->left > RIG_RMT_BINARY_BYTES - d->code.used)
		return MALFORMED;
	rig_rmt_put_bytes(&d->code, in->at, in->left);
	return 0;
}

/* Code that has memory, and not yet its bytes. */
struct placed {
	uint8_t *bytes;
	uint64_t n;
};

static int place(struct device *d, const struct rig_code *code, struct image *image, struct placed *placed)
{
	const char *fault = NULL;
	int err;

	placed->n = code->bytes ? code->bytes : 1;
	placed->bytes = calloc(1, placed->n);
	err = placed->bytes ? d->m->alloc(d->handle, RIG_DEVICE, placed->n, &image->region, &fault) : -ENOMEM;
	if (err == RIG_FAULT)
		return device_faulted(d, fault);
	if (!err)
		err = code->place(
		        d->handle, d->code.at, d->code.used, image->region, placed->bytes, &image->image);
	return err == -ENOMEM ? rig_error_set(err, "no memory for %" PRIu64 " bytes of code", placed->n)
	                      : err;
}

/* Bytes into the region of an image that is in the table. */
static int upload(struct device *d, uint32_t id, void *region, const struct placed *placed)
{
	struct staging *s;
	struct rig_location at;

	d->m->locate(d->handle, region, &at);
	if (at.has_host) {
		memcpy(at.host, placed->bytes, placed->n);
		return 0;
	}
	s = staging_take(d, placed->n);
	if (!s)
		return rig_error_set(
		        -ENOMEM, "the agent's machine has no pinned memory for %" PRIu64 " bytes", placed->n);
	memcpy(s->host, placed->bytes, placed->n);
	return hot_upload(d, s, id, at.handle, placed->n);
}

void code_drop(struct device *d, struct image *image)
{
	const char *fault = NULL;

	if (image->image)
		(void)d->m->unload(d->handle, image->image, &fault);
	if (image->region)
		(void)d->m->free(d->handle, image->region, &fault);
	memset(image, 0, sizeof(*image));
}

static int load(struct device *d, struct image *image, struct placed *placed)
{
	struct rig_code code = {.version = RIG_EDGE_VERSION};
	const char *fault = NULL;
	int err;

	(void)rig_error_set(0, "%s", "");
	err = d->m->load(d->handle, d->code.at ? d->code.at : (const void *)"", d->code.used, &code, &fault);
	if (err == RIG_FAULT)
		return device_faulted(d, fault);
	if (err)
		return err;
	image->image = code.image;
	if (code.kind == RIG_PLACE) {
		image->image = NULL;
		err = place(d, &code, image, placed);
	}
	return err;
}

/* Launches look for images, with the lock. */
static uint32_t add_image(struct device *d, const struct image *image)
{
	(void)pthread_mutex_lock(&d->lock);
	d->images[d->nimages++] = *image;
	(void)pthread_mutex_unlock(&d->lock);
	return d->nimages;
}

static int make_room(struct device *d)
{
	struct image *grown;

	(void)pthread_mutex_lock(&d->lock);
	grown = realloc(d->images, (d->nimages + 1) * sizeof(*grown));
	if (grown)
		d->images = grown;
	(void)pthread_mutex_unlock(&d->lock);
	return grown ? 0 : -ENOMEM;
}

/* 0 and its number. What fails leaves nothing. */
static int keep_image(struct device *d, struct image *image, const struct placed *placed, uint32_t *id)
{
	int err;

	*id = add_image(d, image);
	err = placed->bytes ? upload(d, *id, image->region, placed) : 0;
	if (err && !image_leave(d, *id))
		(void)image_left(d, image);
	return err;
}

int code_load(struct device *d, struct rig_rmt_in *in, struct rig_rmt_out *out)
{
	uint64_t bytes = rig_rmt_get64(in);
	struct image image = {0};
	struct placed placed = {0};
	uint32_t id;
	int err;

	if (rig_rmt_in_end(in) || (bytes != d->code.used && !d->code.bad))
		return MALFORMED;
	err = d->code.bad || make_room(d) ? rig_error_set(-ENOMEM, "the agent has no memory for the code")
	                                  : load(d, &image, &placed);
	rig_rmt_out_free(&d->code);
	d->code.bad = false;
	if (!err)
		err = keep_image(d, &image, &placed, &id);
	free(placed.bytes);
	if (err)
		code_drop(d, &image);
	else
		rig_rmt_put32(out, id);
	return err;
}

static bool is_entry(const struct function *f, uint32_t image, const struct rig_entry *entry)
{
	return f->image == image && f->entry.launch == entry->launch && f->entry.code == entry->code;
}

/* Numbers of functions are never used again, because a later image may lie where an earlier one did. */
static int add_function(struct device *d, uint32_t image, const struct rig_entry *entry, uint32_t *id)
{
	struct function *grown;
	int err = 0;

	(void)pthread_mutex_lock(&d->lock);
	for (*id = 0; *id < d->nfunctions && !is_entry(&d->functions[*id], image, entry); ++*id)
		;
	if (*id == d->nfunctions) {
		grown = realloc(d->functions, (d->nfunctions + 1) * sizeof(*grown));
		if (grown) {
			d->functions = grown;
			d->functions[d->nfunctions++] = (struct function){image, *entry};
		} else {
			err = -ENOMEM;
		}
	}
	++*id;
	(void)pthread_mutex_unlock(&d->lock);
	return err;
}

int code_entry(struct device *d, struct rig_rmt_in *in, struct rig_rmt_out *out)
{
	uint32_t id = rig_rmt_get32(in);
	struct rig_entry entry = {.version = RIG_EDGE_VERSION};
	struct rig_rmt_entry e = {0};
	const char *fault = NULL;
	char name[RIG_RMT_REASON];
	int answer;

	rig_rmt_get_text(in, name, sizeof(name));
	if (rig_rmt_in_end(in) || !id || id > d->nimages || !d->images[id - 1].image ||
	        d->images[id - 1].leaving)
		return MALFORMED;
	answer = d->m->entry(d->handle, d->images[id - 1].image, name, &entry, &e.short_bytes, &fault);
	if (answer == RIG_FAULT)
		return device_faulted(d, fault);
	e.kind = (uint32_t)answer;
	if (answer == RIG_ENTRY) {
		e.code = entry.code;
		e.launches = entry.launch != 0;
		e.has_params = entry.has_params;
		e.params = entry.params;
		e.has_threads = entry.has_threads;
		e.threads = entry.threads;
		if (add_function(d, id, &entry, &e.function))
			return rig_error_set(-ENOMEM, "the agent has no memory for a function's record");
	}
	rig_rmt_entry_put(out, &e);
	return 0;
}

/* No launch can name functions of the image any more. */
static void end_functions(struct device *d, uint32_t image)
{
	uint32_t i;

	(void)pthread_mutex_lock(&d->lock);
	for (i = 0; i < d->nfunctions; i++)
		if (d->functions[i].image == image)
			d->functions[i].image = 0;
	(void)pthread_mutex_unlock(&d->lock);
}

int code_unload(struct device *d, struct rig_rmt_in *in, struct rig_rmt_out *out)
{
	uint32_t id = rig_rmt_get32(in);

	(void)out;
	if (rig_rmt_in_end(in) || image_leave(d, id))
		return MALFORMED;
	end_functions(d, id);
	return 0;
}
