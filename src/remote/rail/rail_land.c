/* SPDX-License-Identifier: MIT */
#include "rail_private.h"

/* Once the other side writes here no more and knows the same of this one. An end that was never joined has
   nothing to
 * tell, and cannot. */
void rig_rail_retire(struct rig_rail_half *half)
{
	struct rig_rail_link *link = half->link;

	if (half->retired || !half->peer_done || (half->joined && !half->sent_end))
		return;
	half->retired = true;
	rig_fabric_unregister(&half->sink);
	rig_fabric_unregister(&half->source);
	link->slots[half->slot] = NULL;
	rig_rail_half_put(half);
}

/* The other side's last may be overtaken by what it sent before. */
static void look_for_end(struct rig_rail_half *half)
{
	uint32_t low = (uint32_t)(half->in.done & ((1u << RIG_NOTE_BITS) - 1));

	if (!half->got_end || low != half->end_low || half->peer_done)
		return;
	half->peer_done = true;
	rig_registry_remove(half);
	rig_rail_end_sending(half);
	rig_rail_retire(half);
}

static void land_end(struct rig_rail_link *link, struct rig_rail_half *half, uint32_t low)
{
	if (half->got_end) {
		rig_rail_link_break(link, "rail %llu was ended twice", (unsigned long long)half->id);
		return;
	}
	half->got_end = true;
	half->end_low = low;
	look_for_end(half);
}

static void land_count(struct rig_rail_link *link, struct rig_rail_half *half, uint32_t low)
{
	uint64_t before = half->in.done,
	         count = half->in.n ? rig_flow_widen(&half->in, low, RIG_NOTE_BITS) : 0;

	if (!count || rig_flow_mark(&half->in, count)) {
		rig_rail_link_break(link, "rail %llu was sent count %u (mod 2^%d) where %llu was the last",
		        (unsigned long long)half->id, low, RIG_NOTE_BITS, (unsigned long long)before);
		return;
	}
	if (half->in.done != before) {
		rig_rail_raise(rig_rail_count(half, RIG_REMOTE_ARRIVED), half->in.done);
		link->moved = true;
	}
	look_for_end(half);
}

void rig_rail_landed(struct rig_rail_link *link, uint32_t note)
{
	uint32_t slot = note >> RIG_NOTE_SLOT, low = note & ((1u << RIG_NOTE_BITS) - 1);
	struct rig_rail_half *half = slot < link->nslots ? link->slots[slot] : NULL;

	if (slot == RIG_PARCEL_SLOT)
		rig_parcel_landed(link, low | (note & RIG_NOTE_END));
	else if (!half)
		rig_rail_link_break(link, "something was sent to rail end %u, which is not there", slot);
	else if (note & RIG_NOTE_END)
		land_end(link, half, low);
	else
		land_count(link, half, low);
}
