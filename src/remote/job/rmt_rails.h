/* SPDX-License-Identifier: MIT */
/* A job's rails, and the parcels that go over their links, as the rest of the controller sees them. */
#ifndef RMT_RAILS_H
#define RMT_RAILS_H

#include <stdbool.h>

#include "rig_remote.h"
#include "rmt_frames.h"

struct rig_rmt_machine;
struct made; /* a rail of the job's */

int rig_rmt_rails_open(struct rig_remote_job *job);
void rig_rmt_rails_fail(struct rig_remote_job *job, const char *why);
/* In the order of a job's end: while agents answer; once its threads are gone; with its last reference. */
void rig_rmt_rails_close(struct rig_remote_job *job);
void rig_rmt_rails_end(struct rig_remote_job *job);
void rig_rmt_rails_free(struct rig_remote_job *job);
/* Whether these are pages that stand for an area of a rail on that machine. */
bool rig_rmt_rails_window(
        struct rig_rmt_machine *m, const void *at, uint64_t bytes, uint64_t *rail, enum rig_rmt_area *area);
/* The rail of that number, of which the ends stay for work under way; NULL: there is none. */
struct made *rig_rmt_rails_keep(struct rig_remote_job *job, uint64_t id);
/* May ask agents: not for readers, nor with a lock. */
void rig_rmt_rails_let(struct made *made);
void rig_rmt_rails_host(struct rig_rmt_machine *m, struct rig_remote_host *host);

/* ---- Parcels: any thread, with no lock of a proxy's, as who is told takes it. ---- */
/* Whether parcels go between the machine and here, or between two; the first call makes the link. */
bool rig_rmt_parcels_here(struct rig_rmt_machine *m);
bool rig_rmt_parcels_between(struct rig_rmt_machine *a, struct rig_rmt_machine *b);
typedef void rig_rmt_told(void *arg, int err);
/* As rig_rail_expect, rig_rail_send and rig_rail_unexpect. */
int rig_rmt_parcel_expect(struct rig_rmt_machine *m, void *at, uint64_t bytes, rig_rmt_told *landed,
        void *arg, struct rig_rmt_ticket *ticket);
int rig_rmt_parcel_send(struct rig_rmt_machine *m, const void *from, uint64_t bytes,
        const struct rig_rmt_ticket *ticket, rig_rmt_told *sent, void *arg);
void rig_rmt_parcel_void(struct rig_rmt_machine *m, uint32_t number);

#endif
