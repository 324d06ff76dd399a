/* SPDX-License-Identifier: MIT */
#include "liar_rails.h"

#include <string.h>

#include "clock.h"

enum { FINISH_S = 20, TRANSFER = 5000, PARCEL = 600000, LONG = 1 << 20 };

static const struct rig_remote_transfer one = {.length = TRANSFER};

static void set_blob(struct rig_rmt_rail *r, const struct rig_rail_blob *blob)
{
	r->nblob = (uint32_t)blob->bytes;
	memcpy(r->blob, blob->at, blob->bytes);
}

static int make_link(struct liar_rails *r, const struct liar_asks *asks)
{
	static const struct rig_rails_options options = {.spin_ns = 0};
	struct rig_deadline deadline = rig_deadline_in(NULL, FINISH_S * RIG_NS_PER_S);
	struct rig_rmt_rail accept = {.op = RIG_RMT_RAIL_ACCEPT,
	                            .peer = RIG_RMT_HERE_PEER,
	                            .name = "a liar",
	                            .provider = "tcp"},
	                    finish = {.op = RIG_RMT_RAIL_FINISH, .peer = RIG_RMT_HERE_PEER};
	struct rig_rail_blob blob;
	int err = rig_rails_open(&options, &r->engine);

	if (!err)
		err = rig_rail_link_offer(r->engine, "the agent", &blob, &r->link);
	if (err)
		return err;
	set_blob(&accept, &blob);
	err = asks->ask(asks->arg, &accept, NULL, &blob);
	if (!err)
		err = rig_rail_link_finish(r->link, &blob, &deadline);
	return err ? err : asks->ask(asks->arg, &finish, NULL, &blob);
}

static int make_rail(struct liar_rails *r, const struct liar_asks *asks, uint64_t id)
{
	const struct rig_remote_end **end = &r->ends[id - 1];
	struct rig_rmt_rail make = {.op = RIG_RMT_RAIL_MAKE,
	                            .peer = RIG_RMT_HERE_PEER,
	                            .rail = id,
	                            .nsend = 1,
	                            .nreceive = 1},
	                    join = {.op = RIG_RMT_RAIL_JOIN, .rail = id};
	struct rig_rail_blob mine, its;
	int err = rig_rail_make(r->link, id, &one, 1, &one, 1, &mine, end);

	if (err)
		return err;
	err = asks->ask(asks->arg, &make, &one, &its);
	set_blob(&join, &mine);
	if (!err)
		err = asks->ask(asks->arg, &join, NULL, &mine);
	return err ? err : rig_rail_join(*end, &its);
}

int liar_rails_begin(struct liar_rails *r, const struct liar_asks *asks)
{
	int err = make_link(r, asks);

	for (uint64_t id = 1; id <= LIAR_RAILS && !err; id++)
		err = make_rail(r, asks, id);
	return err;
}

void liar_rails_act(struct liar_rails *r, struct liar *l)
{
	const struct rig_remote_end **end = &r->ends[liar_draw(l, LIAR_RAILS)];

	if (!*end)
		return;
	if (!liar_once_in(l, 30)) {
		(*end)->ready((*end)->ready_arg, 1 + liar_draw(l, 50));
		return;
	}
	rig_remote_end_put(*end);
	*end = NULL;
}

static void sent(void *arg, int err)
{
	(void)arg;
	(void)err;
}

void liar_rails_ticket(struct liar_rails *r, const uint8_t *bytes, size_t n)
{
	static const uint64_t sizes[] = {PARCEL, PARCEL, LONG, 1};
	static uint8_t from[LONG];
	struct rig_rmt_want want;
	struct rig_parcel_ticket ticket;

	if (!r->link || rig_rmt_want_parse(bytes, n, &want))
		return;
	ticket = (struct rig_parcel_ticket){.number = want.ticket.number,
	        .bytes = sizes[want.value % 4],
	        .address = want.ticket.address,
	        .key = want.ticket.key};
	if (want.value % 5)
		(void)rig_rail_send(r->link, from, &ticket, sent, NULL);
}

void liar_rails_end(struct liar_rails *r)
{
	for (int i = 0; i < LIAR_RAILS; i++)
		rig_remote_end_put(r->ends[i]);
	if (!r->engine)
		return;
	rig_rail_link_put(r->link);
	rig_rails_close(r->engine);
}
