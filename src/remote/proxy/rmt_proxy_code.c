/* SPDX-License-Identifier: MIT */
/* Code of a proxy: it is loaded and known by the agent. */
#include <errno.h>
#include <stdlib.h>

#include "rmt_proxy.h"

static int send_code(struct proxy *p, const uint8_t *bytes, size_t n)
{
	struct rig_rmt_out head = {0};
	int err = 0;

	rig_rmt_put32(&head, p->id);
	while (n && !err) {
		size_t chunk = n < RIG_RMT_DATA_BYTES ? n : RIG_RMT_DATA_BYTES;

		err = rig_rmt_send(p->m, RIG_RMT_CODE, &head, bytes, chunk);
		bytes += chunk;
		n -= chunk;
	}
	rig_rmt_out_free(&head);
	return err;
}

static int request_load(
        struct proxy *p, const void *binary, size_t bytes, struct rig_rmt_out *payload, const char **fault)
{
	struct rig_rmt_out body = {0};
	int err;

	/* The bytes and the request are one: another thread's would come between. */
	(void)pthread_mutex_lock(&p->load_lock);
	err = rig_rmt_proxy_judge(p, send_code(p, binary, bytes), fault);
	rig_rmt_put64(&body, bytes);
	if (!err)
		err = rig_rmt_proxy_ask(p, RIG_RMT_LOAD, &body, payload, fault);
	(void)pthread_mutex_unlock(&p->load_lock);
	rig_rmt_out_free(&body);
	return err;
}

/* The number of an answer; takes the payload. 0: it is none. */
static uint32_t read_id(struct rig_rmt_out *payload)
{
	struct rig_rmt_in in = rig_rmt_in_of(payload->at, payload->used);
	uint32_t id = rig_rmt_get32(&in);
	bool bad = in.bad || in.left;

	rig_rmt_out_free(payload);
	return bad ? 0 : id;
}

int rig_rmt_load(void *device, const void *binary, size_t bytes, struct rig_code *code, const char **fault)
{
	struct proxy *p = device;
	struct rig_rmt_out payload;
	struct image *image;
	int err;

	if (rig_rmt_proxy_faulted(p))
		return rig_rmt_proxy_fault(p, fault);
	if (bytes > RIG_RMT_BINARY_BYTES)
		return rig_error_set(-EFBIG, "a binary of %zu bytes is no image", bytes);
	image = calloc(1, sizeof(*image));
	if (!image)
		return rig_error_set(-ENOMEM, "no host memory for an image's record");
	err = request_load(p, binary, bytes, &payload, fault);
	if (!err && !(image->id = read_id(&payload)))
		err = rig_rmt_proxy_malformed(p, fault);
	if (err) {
		free(image);
		return err;
	}
	code->kind = RIG_LOADED;
	code->image = image;
	return 0;
}

/* RIG_FAULT, or RIG_NO_MEMORY there. */
static int ask_entry(struct proxy *p, const struct image *image, const char *name, struct rig_rmt_entry *e,
        const char **fault)
{
	struct rig_rmt_out body = {0}, payload;
	struct rig_rmt_in in;
	int err;

	rig_rmt_put32(&body, image->id);
	rig_rmt_put_text(&body, name);
	err = rig_rmt_proxy_ask(p, RIG_RMT_ENTRY, &body, &payload, fault);
	rig_rmt_out_free(&body);
	if (err)
		return err == RIG_FAULT ? err : RIG_NO_MEMORY;
	in = rig_rmt_in_of(payload.at, payload.used);
	err = rig_rmt_entry_parse(&in, e);
	rig_rmt_out_free(&payload);
	return err ? rig_rmt_proxy_malformed(p, fault) : 0;
}

/* Whether the agent has named it before. */
static bool recall(struct proxy *p, const struct image *image, const char *name, struct rig_entry *entry)
{
	const struct known *k;

	(void)pthread_mutex_lock(&p->lock);
	for (k = image->known; k && strcmp(k->name, name) != 0; k = k->next)
		;
	if (k)
		*entry = k->entry;
	(void)pthread_mutex_unlock(&p->lock);
	return k;
}

/* Without memory it is asked for again. */
static void remember(struct proxy *p, struct image *image, const char *name, const struct rig_entry *entry)
{
	size_t n = strlen(name) + 1;
	struct known *k = malloc(sizeof(*k) + n);

	if (!k)
		return;
	k->entry = *entry;
	memcpy(k->name, name, n);
	(void)pthread_mutex_lock(&p->lock);
	k->next = image->known;
	image->known = k;
	(void)pthread_mutex_unlock(&p->lock);
}

int rig_rmt_entry(void *device, void *image, const char *name, struct rig_entry *entry, uint64_t *short_bytes,
        const char **fault)
{
	struct rig_rmt_entry e;
	int err;

	/* Longer than any name that a message carries: no image has it. */
	if (strlen(name) >= RIG_RMT_REASON - 1)
		return RIG_ABSENT;
	*short_bytes = 0;
	if (recall(device, image, name, entry))
		return RIG_ENTRY;
	err = ask_entry(device, image, name, &e, fault);
	if (err)
		return err;
	*short_bytes = e.short_bytes;
	entry->code = e.code;
	entry->launch = e.launches ? e.function : 0;
	entry->has_params = e.has_params;
	entry->params = e.params;
	entry->has_threads = e.has_threads;
	entry->threads = e.threads;
	if (e.kind == RIG_ENTRY)
		remember(device, image, name, entry);
	return (int)e.kind;
}

static void free_image(struct image *image)
{
	while (image->known) {
		struct known *k = image->known;

		image->known = k->next;
		free(k);
	}
	free(image);
}

int rig_rmt_unload(void *device, void *image, const char **fault)
{
	struct proxy *p = device;
	struct image *i = image;
	bool gone;

	(void)fault;
	(void)pthread_mutex_lock(&p->lock);
	gone = p->stopped || p->faulted;
	(void)pthread_mutex_unlock(&p->lock);
	if (!gone)
		rig_rmt_proxy_tell(p, RIG_RMT_UNLOAD, i->id);
	free_image(i);
	return 0;
}
