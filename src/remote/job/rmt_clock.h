/* SPDX-License-Identifier: MIT */
/* A machine's clock, as far as it is known here. */
#ifndef RMT_CLOCK_H
#define RMT_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rig_rmt_machine;

/* The offset of a machine's clock, from the exchange that bounds it best. */
struct rig_rmt_clock {
	int64_t ahead;
	uint64_t error, at; /* of then, in this machine's time; it grows with the time since */
	uint64_t round_trip;
};

void rig_rmt_clock_ping(struct rig_rmt_machine *m);
/* An answer came; whether it was the ping's. With the lock. */
bool rig_rmt_clock_answer(struct rig_rmt_machine *m, uint32_t number, const uint8_t *payload, size_t bytes);
int rig_rmt_clock_measure(struct rig_rmt_machine *m);
/* The clock as it stands, its error grown to now. */
struct rig_rmt_clock rig_rmt_clock_now(struct rig_rmt_machine *m);
/* The same with the machine's lock. */
struct rig_rmt_clock rig_rmt_clock_now_locked(const struct rig_rmt_machine *m);

#endif
