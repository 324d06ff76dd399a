/* SPDX-License-Identifier: MIT */
/* Bytes that go by the rails' links: parcels of rail.h, to the controller and between agents. */
#ifndef AGENT_PARCEL_H
#define AGENT_PARCEL_H

#include "rail.h"
#include "rmt_frames.h"

struct device;
struct pending;
struct session;
struct staging;

/*
 * A fetch whose bytes go by a parcel. Both happen once, in any order: its bytes are ready here, or refused;
 * the other agent claims it. The record is there from the first of them until both are done with: until the
 * bytes have gone, or the refusal. The other agent is told of a refusal once, and of none after bytes.
 */
struct claim {
	struct claim *next;
	uint32_t fetch, machine;
	bool claimed, ready, flying;
	bool given_up; /* claimed, and refused since: the bytes go nowhere once they are ready */
	bool refused;  /* not claimed yet */
	struct rig_parcel_ticket ticket;
	struct device *d;
	struct staging *staging;
	uint64_t bytes;
};

/* Waits for a part's bytes from the controller; and for a fetch's from another agent, as fetch_take does.
   Both return only when nothing writes to `to` any more. -ECONNABORTED: the link has ended. */
int parcel_take(struct device *d, uint64_t value, uint32_t part, uint8_t *to, uint64_t bytes);
int parcel_fetch(struct device *d, const struct rig_rmt_side *src, uint8_t *to, uint64_t bytes);
/* Sends the parcels of a value's outgoing bytes, and waits until its staging memory is free again. */
void parcels_send(struct device *d, struct pending *p);
/* What a fetch wants is in p->out, which it takes. */
void parcel_ready(struct device *d, struct pending *p);
/* CLAIM and UNCLAIM messages; -EPROTO. */
int parcel_claim(struct session *s, uint32_t machine, const uint8_t *bytes, size_t n);
int parcel_unclaim(struct session *s, uint32_t machine, const uint8_t *bytes, size_t n);
/* Nothing is sent for the controller's ticket. */
void parcel_give_up(struct session *s, uint32_t number);
/* The bytes of a fetch, by parcel, are ready nowhere: says so to the agent that wants them, once. */
void parcel_refuse(struct session *s, uint32_t machine, uint32_t fetch, const char *why);
/* Nobody takes what comes for the parts of the work, from `first` on, from other agents. */
void sources_give_up(struct session *s, const struct rig_rmt_work *work, uint32_t first);
/* The SUBMIT message is never work: nothing is sent for its tickets, and nobody takes its sources. */
void submit_give_up(struct session *s, const uint8_t *submit, size_t n);
/* The device's threads have ended: fetches of which nothing was sent are refused; waits for the others. */
void parcels_halt(struct device *d);
void parcels_free(struct session *s);

#endif
