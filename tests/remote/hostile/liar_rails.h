/* SPDX-License-Identifier: MIT */
#ifndef LIAR_RAILS_H
#define LIAR_RAILS_H

/*
 * A lying controller's own rail engine, linked with the agent's as an honest one's is, so that its lies about
 * rails, steps, mapped areas and tickets are about something.
 */
#include "liar.h"
#include "rail.h"

struct liar_rails {
	struct rig_rails *engine; /* NULL: none */
	struct rig_rail_link *link;
	const struct rig_remote_end
	        *ends[LIAR_RAILS]; /* of rails 1 to LIAR_RAILS; NULL: put, or never made */
};

/* Asks the agent, and waits for the blob that it answers with. Not 0: it refused, or is gone. */
struct liar_asks {
	int (*ask)(void *arg, const struct rig_rmt_rail *r, const struct rig_remote_transfer *both,
	        struct rig_rail_blob *answer);
	void *arg;
};

/* Not 0: the agent had enough before all was made. To end in any case. */
int liar_rails_begin(struct liar_rails *r, const struct liar_asks *asks);
/* Something at this side: a count is ready, an end is put. */
void liar_rails_act(struct liar_rails *r, struct liar *l);
/* A TICKET message: what it asks for is sent, or too much, too little, or nothing. Any thread. */
void liar_rails_ticket(struct liar_rails *r, const uint8_t *bytes, size_t n);
void liar_rails_end(struct liar_rails *r);

#endif
