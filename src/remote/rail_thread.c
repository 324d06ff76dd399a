/* SPDX-License-Identifier: MIT */
#include <pthread.h>

#include "rail_private.h"
#include "rig_barrier.h"

enum {
	EVENTS = 32, /* of one look */
};

/* Where nothing says that an operation can go on: short enough that a provider with several pieces before
   it does not run out of them. */
#define RECHECK_NS (100 * RIG_NS_PER_US)

/* What a look found. */
struct look {
	bool active;
	bool moved;
	bool broken;
	bool waits; /* for what nothing wakes it */
};

static void take_events(struct rig_rail_link *link, struct look *look)
{
	struct rig_conn_event events[EVENTS];
	int n = rig_conn_read(link->conn, events, EVENTS);

	for (int i = 0; i < n; i++) {
		if (events[i].op)
			rig_rail_written(link, (struct rig_rail_op *)events[i].op);
		else
			rig_rail_landed(link, events[i].note);
	}
	if (n < 0)
		rig_rail_link_break(link, "%s", rig_error());
	look->active = n > 0;
}

static struct look look_once(struct rig_rail_link *link)
{
	struct look look = {false, false, false, false};

	rig_rail_link_lock(link);
	link->stalled = false;
	take_events(link, &look);
	rig_rail_run(link);
	/* Who sent waits for this side to have read, too. */
	if (look.active || link->wrote)
		rig_conn_ring(link->conn);
	look.active |= link->wrote;
	look.moved = link->moved;
	look.broken = link->broken[0];
	look.waits = link->stalled || (link->open && rig_conn_by_bell(link->conn));
	link->wrote = link->moved = false;
	rig_rail_link_unlock(link);
	return look;
}

/* Looking found nothing for a while. Whether the link stands. */
static bool rest(struct rig_rail_link *link, const struct look *look)
{
	if (rig_conn_gone(link->conn)) {
		rig_rail_link_lock(link);
		rig_rail_link_break(link, "the other side closed the data connection");
		(void)pthread_mutex_unlock(&link->lock);
		return false;
	}
	rig_rails_add(&link->rails->stats.sleeps, 1);
	rig_conn_sleep(link->conn, look->waits ? RECHECK_NS : RIG_CLOCK_NEVER);
	return true;
}

static bool goes_on(const struct rig_rail_link *link)
{
	return !__atomic_load_n(&link->quit, __ATOMIC_ACQUIRE) && !rig_rails_over(link->rails);
}

void *rig_rail_thread(void *arg)
{
	struct rig_rail_link *link = arg;
	const struct rig_rails_options *options = &link->rails->options;
	uint64_t last = rig_clock_ns();

	(void)pthread_setname_np(pthread_self(), "rail");
	while (goes_on(link)) {
		struct look look = look_once(link);
		bool stands = !look.broken;

		if (look.moved && options->moved)
			options->moved(options->arg);
		if (look.active)
			last = rig_clock_ns();
		else if (stands && rig_clock_ns() - last < options->spin_ns)
			rig_pause();
		else if (stands)
			stands = rest(link, &look);
		if (!stands) {
			rig_rails_fail(link->rails, link->broken);
			break;
		}
	}
	return NULL;
}
