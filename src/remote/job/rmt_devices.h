/* SPDX-License-Identifier: MIT */
/*
 * The devices of a machine that somebody here stands for: what a machine's reader brings goes to the device
 * of that number, and the end of the job to all. A device embeds struct rig_rmt_device; the job knows no more
 * of it.
 */
#ifndef RMT_DEVICES_H
#define RMT_DEVICES_H

#include <stddef.h>
#include <stdint.h>

enum { RIG_RMT_DEVICES = 64 }; /* that a machine opens for a job over its life */

struct rig_remote_job;
struct rig_rmt_machine;

/* Both are called with the table's lock, which keeps the device, and send nothing. */
struct rig_rmt_device {
	/* A message of it came, by the machine's reader: DATA, REACHED or TICKET. 0, -EPROTO or -ENOMEM. */
	int (*take)(struct rig_rmt_device *d, uint8_t kind, const uint8_t *payload, size_t bytes);
	/* It is lost: the agent says so, or the job is over. Once at least, and after that to no effect. */
	void (*lose)(struct rig_rmt_device *d, const char *reason);
};

/* From here on it is told; what its machine said before of its loss, and the end of the job, at once. */
void rig_rmt_devices_add(struct rig_rmt_machine *m, uint32_t id, struct rig_rmt_device *d);
/* Nothing where it is not the one of that number. Returns once nobody tells it anything. */
void rig_rmt_devices_remove(struct rig_rmt_machine *m, uint32_t id, const struct rig_rmt_device *d);
/* A reader's message, to whom it is about; one that is gone is nobody's. -EPROTO, -ENOMEM. */
int rig_rmt_devices_take(struct rig_rmt_machine *m, uint8_t kind, const uint8_t *payload, size_t bytes);
/* All are lost, and whoever waits for an answer looks again. */
void rig_rmt_devices_lose(struct rig_rmt_machine *m, const char *reason);
void rig_rmt_devices_free(struct rig_rmt_machine *m);

#endif
