/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <sched.h>

#include "rail_private.h"
#include "rig_barrier.h"

enum {
	EVENTS = 32,      /* of one look */
	RESTS_LEAST = 16, /* struct patience */
	RESTS_MOST = 4096,
};

/* Where nothing says that an operation can go on: short enough that a provider with several pieces before
   it does not run out of them. */
#define RECHECK_NS (100 * RIG_NS_PER_US)

/* Between two yields while looking; and what only another thread's turn makes a yield take. */
#define YIELD_NS (4 * RIG_NS_PER_US)
#define AWAY_NS  (5 * RIG_NS_PER_US)

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
	link->budget = RIG_LOOK_THREAD;
	take_events(link, &look);
	/* A rail's piece comes between any two of parcels, and rails first, until that leaves a parcel no
	   room. */
	if (link->parcels.passed_over)
		(void)rig_parcel_send(link);
	rig_rail_run(link);
	while (rig_parcel_send(link))
		rig_rail_run(link);
	/* Who sent waits for this side to have read, too. */
	if (look.active || link->wrote)
		rig_conn_ring(link->conn);
	look.active |= link->wrote || !link->budget;
	look.moved = link->moved;
	look.broken = link->broken[0];
	look.waits = (link->stalled && !rig_conn_unsent(link->conn)) ||
	             (link->open && rig_conn_by_bell(link->conn));
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

/*
 * How long looking pays. Where other threads want the CPU it costs all of them, this one's waiters among
 * them, several times what it saves: a yield that comes back late says so, and then the link sleeps at once
 * for some rests, each time that it finds the same twice as many.
 */
struct patience {
	uint64_t last;    /* something moved */
	uint64_t yielded; /* the last yield */
	uint32_t rests;   /* to come without looking before */
	uint32_t next;    /* that many, should the CPU be wanted again */
};

static void be_rewarded(struct patience *p, bool looked)
{
	p->last = p->yielded = rig_clock_ns();
	if (looked)
		p->next = RESTS_LEAST;
}

static void lose_patience(struct patience *p)
{
	p->rests = p->next;
	p->next = 2 * p->next < RESTS_MOST ? 2 * p->next : RESTS_MOST;
}

/* Whether to look once more, rather than sleep. */
static bool has_patience(struct patience *p, uint64_t spin_ns)
{
	uint64_t now = rig_clock_ns();

	if (p->rests || now - p->last >= spin_ns)
		return false;
	if (now - p->yielded < YIELD_NS) {
		rig_pause();
		return true;
	}
	(void)sched_yield();
	p->yielded = rig_clock_ns();
	if (p->yielded - now < AWAY_NS)
		return true;
	lose_patience(p);
	return false;
}

void *rig_rail_thread(void *arg)
{
	struct rig_rail_link *link = arg;
	const struct rig_rails_options *options = &link->rails->options;
	struct patience patience = {rig_clock_ns(), 0, 0, RESTS_LEAST};
	bool looked = false;

	(void)pthread_setname_np(pthread_self(), "rail");
	while (goes_on(link)) {
		struct look look = look_once(link);
		bool stands = !look.broken;

		rig_parcels_tell(link);
		if (look.moved && options->moved)
			options->moved(options->arg);
		if (look.active) {
			be_rewarded(&patience, looked);
			looked = false;
		} else if (stands && has_patience(&patience, options->spin_ns)) {
			looked = true;
		} else if (stands) {
			looked = false;
			patience.rests -= patience.rests > 0;
			stands = rest(link, &look);
		}
		if (!stands) {
			rig_rails_fail(link->rails, link->broken);
			break;
		}
	}
	if (rig_rails_why(link->rails))
		rig_rail_link_cut(link);
	return NULL;
}
