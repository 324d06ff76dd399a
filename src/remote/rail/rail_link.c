/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "rail_blob.h"
#include "rail_private.h"
#include "thread.h"

void rig_rail_link_break(struct rig_rail_link *link, const char *format, ...)
{
	va_list args;
	int n;

	if (link->broken[0])
		return;
	n = snprintf(link->broken, sizeof(link->broken), "the rails to %s: ", link->name);
	va_start(args, format);
	(void)vsnprintf(link->broken + n, sizeof(link->broken) - (size_t)n, format, args);
	va_end(args);
}

/* ---- Making -------------------------------------------------------------------------------------------- */

static int make_ops(struct rig_rail_link *link)
{
	size_t depth = rig_conn_depth(link->conn);

	link->ops = calloc(depth, sizeof(*link->ops));
	if (!link->ops)
		return rig_error_set(-ENOMEM, "no memory for a link's operations");
	for (size_t i = 0; i < depth; i++) {
		link->ops[i].next = link->free_ops;
		link->free_ops = &link->ops[i];
	}
	return 0;
}

static int make_mailbox(struct rig_rail_link *link)
{
	struct rig_fabric *fabric = link->rails->fabric;
	int code = rig_fabric_register(
	        fabric, link->mailbox, sizeof(link->mailbox), &link->mailbox_memory, &link->mailbox_target);

	return code ? code
	            : rig_fabric_register(
	                      fabric, link->letter, sizeof(link->letter), &link->letter_memory, NULL);
}

static struct rig_rail_link *new_link(struct rig_rails *rails, const char *name)
{
	struct rig_rail_link *link = calloc(1, sizeof(*link));

	if (!link)
		return NULL;
	link->rails = rails;
	link->queue_end = &link->queue;
	(void)snprintf(link->name, sizeof(link->name), "%s", name);
	(void)pthread_mutex_init(&link->lock, NULL);
	rig_parcels_init(&link->parcels);
	rig_rooms_init(&link->rooms);
	return link;
}

static void write_hello(const struct rig_rail_link *link, enum rig_rail_blob_kind kind,
        struct rig_rail_hello *hello, struct rig_rail_blob *blob)
{
	(void)snprintf(hello->provider, sizeof(hello->provider), "%s", link->rails->provider);
	hello->piece = link->rails->options.piece;
	hello->mailbox = link->mailbox_target;
	rig_rail_blob_hello(blob, kind, hello);
}

static int check_hello(const struct rig_rails *rails, const struct rig_rail_hello *hello)
{
	if (strcmp(hello->provider, rails->provider) != 0)
		return rig_error_set(-EPROTO, "the other side's rails are over %s, here they are over %s",
		        hello->provider, rails->provider);
	if (hello->piece != rails->options.piece)
		return rig_error_set(-EPROTO, "rails here send %zu bytes at once, the other side's %llu",
		        rails->options.piece, (unsigned long long)hello->piece);
	return 0;
}

/* The rest of a link whose connection was begun. */
static int complete_link(struct rig_rail_link *link)
{
	int code = make_ops(link);

	return code ? code : make_mailbox(link);
}

int rig_rail_link_offer(
        struct rig_rails *rails, const char *name, struct rig_rail_blob *offer, struct rig_rail_link **made)
{
	struct rig_rail_link *link;
	struct rig_rail_hello hello = {.piece = 0};
	int code = rig_rails_check(rails);

	if (code)
		return code;
	link = new_link(rails, name);
	if (!link)
		return rig_error_set(-ENOMEM, "no memory for a link");
	code = rig_conn_listen(rails->fabric, &hello.address, &link->conn);
	if (!code)
		code = complete_link(link);
	if (code) {
		rig_rail_link_free(link);
		return code;
	}
	write_hello(link, RIG_BLOB_OFFER, &hello, offer);
	*made = link;
	return 0;
}

static int dial(struct rig_rail_link *link, const struct rig_rail_blob *offer, struct rig_rail_blob *answer)
{
	struct rig_rail_hello theirs, mine = {.piece = 0};
	int code = rig_rail_parse_hello(offer, RIG_BLOB_OFFER, &theirs);

	if (!code)
		code = check_hello(link->rails, &theirs);
	if (!code)
		code = rig_conn_dial(link->rails->fabric, &theirs.address, &mine.address, &link->conn);
	if (!code)
		code = complete_link(link);
	if (code)
		return code;
	link->peer_mailbox = theirs.mailbox;
	write_hello(link, RIG_BLOB_ANSWER, &mine, answer);
	return 0;
}

int rig_rail_link_accept(struct rig_rails *rails, const char *name, const struct rig_rail_blob *offer,
        struct rig_rail_blob *answer, struct rig_rail_link **made)
{
	struct rig_rail_link *link;
	int code = rig_rails_check(rails);

	if (code)
		return code;
	link = new_link(rails, name);
	if (!link)
		return rig_error_set(-ENOMEM, "no memory for a link");
	code = dial(link, offer, answer);
	if (code) {
		rig_rail_link_free(link);
		return code;
	}
	*made = link;
	return 0;
}

/* Gives a link that stands to its engine, with its thread. */
static int keep(struct rig_rail_link *link)
{
	struct rig_rails *rails = link->rails;
	int code;

	(void)pthread_mutex_lock(&rails->lock);
	code = rig_rails_check(rails);
	if (!code) {
		code = rig_thread_start(&link->thread, RIG_THREAD_ANY, rig_rail_thread, link);
		if (code)
			(void)rig_error_set(code, "cannot start a link's thread: %s", strerror(-code));
	}
	if (!code) {
		link->stands = link->has_thread = true;
		link->next = rails->links;
		rails->links = link;
		rails->stats.links++;
	}
	(void)pthread_mutex_unlock(&rails->lock);
	return code;
}

int rig_rail_link_finish(
        struct rig_rail_link *link, const struct rig_rail_blob *answer, const struct rig_deadline *deadline)
{
	struct rig_rail_hello theirs;
	uint64_t refused = 0;
	int code = 0;

	if (answer) {
		code = rig_rail_parse_hello(answer, RIG_BLOB_ANSWER, &theirs);
		if (!code)
			code = check_hello(link->rails, &theirs);
		if (code)
			return code;
		link->peer_mailbox = theirs.mailbox;
	}
	code = rig_conn_finish(link->conn, answer ? &theirs.address : NULL, deadline, &refused);
	rig_rails_add(&link->rails->stats.refused, refused);
	return code ? code : keep(link);
}

/* ---- Ending -------------------------------------------------------------------------------------------- */

void rig_rail_link_put(struct rig_rail_link *link)
{
	if (link && !link->stands && rig_rails_here(link->rails)) {
		rig_rail_link_down(link);
		rig_rail_link_free(link);
	}
}

void rig_rail_link_quit(struct rig_rail_link *link)
{
	__atomic_store_n(&link->quit, true, __ATOMIC_RELEASE);
	rig_conn_wake(link->conn);
}

static void drop_queue(struct rig_rail_link *link)
{
	while (link->queue) {
		struct rig_rail_half *half = link->queue;

		link->queue = half->queue_next;
		half->queued = false;
		rig_rail_half_put(half);
	}
	link->queue_end = &link->queue;
}

static void drop_slots(struct rig_rail_link *link)
{
	for (uint32_t i = 0; i < link->nslots; i++) {
		struct rig_rail_half *half = link->slots[i];

		if (!half)
			continue;
		half->retired = true;
		rig_registry_remove(half);
		rig_fabric_unregister(&half->sink);
		rig_fabric_unregister(&half->source);
		link->slots[i] = NULL;
		rig_rail_half_put(half);
	}
}

/* Where no parcel is under way the connection stays: the other side, which may hear of the cause a moment
   later, would take its end for the cause. */
void rig_rail_link_cut(struct rig_rail_link *link)
{
	rig_rail_link_lock(link);
	link->dead = true;
	rig_parcels_close(link);
	if (rig_parcels_some(link))
		rig_conn_cut(link->conn);
	rig_parcels_abort(link);
	(void)pthread_mutex_unlock(&link->lock);
	rig_parcels_tell(link);
}

void rig_rail_link_down(struct rig_rail_link *link)
{
	if (link->has_thread) {
		rig_rail_link_quit(link);
		(void)pthread_join(link->thread, NULL);
		link->has_thread = false;
	}
	rig_rail_link_lock(link);
	link->dead = true;
	rig_parcels_close(link);
	/* Before the memory: nothing of the provider's is left that could write there. */
	rig_conn_close(link->conn);
	link->conn = NULL;
	rig_parcels_abort(link);
	drop_queue(link);
	drop_slots(link);
	rig_fabric_unregister(&link->mailbox_memory);
	rig_fabric_unregister(&link->letter_memory);
	rig_rooms_close(link);
	(void)pthread_mutex_unlock(&link->lock);
	rig_parcels_tell(link);
	rig_rail_look(link);
}

void rig_rail_link_free(struct rig_rail_link *link)
{
	rig_conn_close(link->conn);
	rig_fabric_unregister(&link->mailbox_memory);
	rig_fabric_unregister(&link->letter_memory);
	(void)pthread_mutex_destroy(&link->lock);
	rig_parcels_fini(&link->parcels);
	rig_rooms_fini(&link->rooms);
	free(link->slots);
	free(link->ops);
	free(link);
}
