/* SPDX-License-Identifier: MIT */
/* Parcels (rail.h) from here: links made when the first is wanted, no call into an engine that has gone. */
#include <errno.h>

#include "rmt_rails_private.h"

/* Links the two, b NULL: the machine with here. Other threads meanwhile find none. */
static void link_them(struct rig_rmt_rails *rails, struct rig_rmt_machine *a, struct rig_rmt_machine *b)
{
	(void)pthread_mutex_lock(&rails->lock);
	if (!rig_rmt_job_over(a->job))
		(void)(b ? rig_rmt_rails_link_machines(rails, a, b) : rig_rmt_rails_link_here(rails, a));
	(void)pthread_mutex_unlock(&rails->lock);
}

static bool may_have(const struct rig_remote_job *job)
{
	return !job->options.no_bulk_rails && rig_rails_parcels_over(job->options.provider);
}

bool rig_rmt_parcels_here(struct rig_rmt_machine *m)
{
	struct rig_rmt_rails *rails = m->job->rails;

	if (!may_have(m->job))
		return false;
	if (!atomic_exchange(&m->tried, true))
		link_them(rails, m, NULL);
	return atomic_load(&rails->links[m->index]) != NULL;
}

bool rig_rmt_parcels_between(struct rig_rmt_machine *a, struct rig_rmt_machine *b)
{
	struct rig_rmt_rails *rails = a->job->rails;
	uint32_t n = a->job->nmachines;

	if (a == b || !may_have(a->job))
		return false;
	if (!atomic_exchange(&rails->tried[a->index * n + b->index], true))
		link_them(rails, a, b);
	return atomic_load(&rails->linked[a->index * n + b->index]);
}

/* With use_lock. NULL: there is none, or none any more. */
static struct rig_rail_link *link_to(const struct rig_rmt_machine *m)
{
	struct rig_rmt_rails *rails = m->job->rails;

	return rails->ended ? NULL : atomic_load(&rails->links[m->index]);
}

static int no_link(const struct rig_rmt_machine *m)
{
	return rig_error_set(-ECONNABORTED, "machine %s: no link for parcels any more", m->name);
}

int rig_rmt_parcel_expect(struct rig_rmt_machine *m, void *at, uint64_t bytes, rig_rmt_told *landed,
        void *arg, struct rig_rmt_ticket *ticket)
{
	struct rig_rail_link *link;
	struct rig_parcel_ticket made;
	int err;

	(void)pthread_mutex_lock(&m->job->rails->use_lock);
	link = link_to(m);
	err = link ? rig_rail_expect(link, at, bytes, landed, arg, &made) : no_link(m);
	(void)pthread_mutex_unlock(&m->job->rails->use_lock);
	if (!err)
		*ticket = (struct rig_rmt_ticket){made.number, made.address, made.key};
	return err;
}

int rig_rmt_parcel_send(struct rig_rmt_machine *m, const void *from, uint64_t bytes,
        const struct rig_rmt_ticket *ticket, rig_rmt_told *sent, void *arg)
{
	const struct rig_parcel_ticket to = {ticket->number, bytes, ticket->address, ticket->key};
	struct rig_rail_link *link;
	int err;

	(void)pthread_mutex_lock(&m->job->rails->use_lock);
	link = link_to(m);
	err = link ? rig_rail_send(link, from, &to, sent, arg) : no_link(m);
	(void)pthread_mutex_unlock(&m->job->rails->use_lock);
	return err;
}

void rig_rmt_parcel_void(struct rig_rmt_machine *m, uint32_t number)
{
	struct rig_rail_link *link;

	(void)pthread_mutex_lock(&m->job->rails->use_lock);
	link = link_to(m);
	/* One that the link's end resolved is no ticket any more. */
	if (link)
		(void)rig_rail_unexpect(link, number);
	(void)pthread_mutex_unlock(&m->job->rails->use_lock);
}
