/* SPDX-License-Identifier: MIT */
/* Memory that the other side writes by itself: see rail_private.h. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "pages.h"
#include "rail_private.h"

/* A room serves what is at least a quarter of it, or small. */
enum { WASTE = 4, SMALL = 64 << 10 };

void rig_rooms_init(struct rig_rail_rooms *rooms)
{
	(void)pthread_mutex_init(&rooms->lock, NULL);
}

void rig_rooms_fini(struct rig_rail_rooms *rooms)
{
	(void)pthread_mutex_destroy(&rooms->lock);
}

static void free_room(struct rig_rail_room *room)
{
	rig_fabric_unregister(&room->memory);
	rig_pages_unmap(room->at, room->bytes);
	free(room);
}

static int make_room(struct rig_rail_link *link, size_t bytes, struct rig_rail_room **made)
{
	struct rig_rail_room *room = calloc(1, sizeof(*room));
	int code;

	if (!room)
		return rig_error_set(-ENOMEM, "no memory for a rail");
	room->bytes = bytes;
	room->at = rig_pages_map(bytes);
	if (!room->at) {
		free(room);
		return rig_error_set(
		        -ENOMEM, "no memory for %zu bytes of a rail: %s", bytes, strerror(errno));
	}
	/* A fork makes no copies of pages that a device or a peer writes. */
	(void)madvise(room->at, room->bytes, MADV_DONTFORK);
	code = rig_fabric_register(link->rails->fabric, room->at, room->bytes, &room->memory, &room->target);
	if (code) {
		free_room(room);
		return code;
	}
	*made = room;
	return 0;
}

static bool fits(const struct rig_rail_room *room, size_t bytes)
{
	return room->bytes >= bytes && (room->bytes <= SMALL || room->bytes / WASTE <= bytes);
}

/* With the lock. NULL: none that is kept. */
static struct rig_rail_room *take_kept(struct rig_rail_link *link, size_t bytes)
{
	struct rig_rail_room **at = &link->rooms.kept, *room;

	while (*at && !fits(*at, bytes))
		at = &(*at)->next;
	room = *at;
	if (room) {
		*at = room->next;
		link->rooms.kept_bytes -= room->bytes;
		rig_rails_add(&link->rails->stats.kept, -(uint64_t)room->bytes);
	}
	return room;
}

int rig_room_take(struct rig_rail_link *link, size_t bytes, struct rig_rail_room **taken)
{
	struct rig_rail_rooms *rooms = &link->rooms;
	struct rig_rail_room *room;
	bool full;
	int code;

	(void)pthread_mutex_lock(&rooms->lock);
	room = take_kept(link, bytes);
	full = rooms->kept_bytes > RIG_RAIL_KEPT;
	(void)pthread_mutex_unlock(&rooms->lock);
	*taken = room;
	if (room)
		return 0;
	if (full)
		return rig_error_set(-ENOMEM,
		        "%s may still write to more than %zu bytes, none of which are of use now", link->name,
		        RIG_RAIL_KEPT);
	code = make_room(link, bytes, &room);
	if (code)
		return code;
	(void)pthread_mutex_lock(&rooms->lock);
	if (rooms->closed) {
		code = rig_error_set(-ECONNABORTED, "the rails to %s have ended", link->name);
	} else {
		room->all_next = rooms->all;
		rooms->all = room;
	}
	(void)pthread_mutex_unlock(&rooms->lock);
	if (code)
		free_room(room);
	else
		*taken = room;
	return code;
}

void rig_room_give(struct rig_rail_link *link, struct rig_rail_room *room)
{
	struct rig_rail_rooms *rooms = &link->rooms;
	bool closed;

	if (!room)
		return;
	(void)pthread_mutex_lock(&rooms->lock);
	closed = rooms->closed;
	if (!closed) {
		room->used = true;
		room->next = rooms->kept;
		rooms->kept = room;
		rooms->kept_bytes += room->bytes;
		rig_rails_add(&link->rails->stats.kept, room->bytes);
	}
	(void)pthread_mutex_unlock(&rooms->lock);
	if (closed)
		free_room(room);
}

void rig_rooms_close(struct rig_rail_link *link)
{
	struct rig_rail_rooms *rooms = &link->rooms;
	struct rig_rail_room *room;

	(void)pthread_mutex_lock(&rooms->lock);
	rooms->closed = true;
	for (room = rooms->all; room; room = room->all_next)
		rig_fabric_unregister(&room->memory);
	rooms->all = NULL;
	while ((room = rooms->kept)) {
		rooms->kept = room->next;
		rig_rails_add(&link->rails->stats.kept, -(uint64_t)room->bytes);
		free_room(room);
	}
	rooms->kept_bytes = 0;
	(void)pthread_mutex_unlock(&rooms->lock);
}
