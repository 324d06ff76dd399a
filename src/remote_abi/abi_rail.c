/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>

#include "rig_remote_abi.h"

/* What both records have behind them. */
struct life {
	uint64_t references;
	rig_remote_released_fn released;
	void *owner;
};

struct end {
	struct rig_remote_end fields;
	struct life life;
};

struct rail {
	struct rig_remote_rail fields;
	struct life life;
};

const struct rig_key rig_remote_key = {"rig-remote"};

static void get(struct life *life)
{
	(void)__atomic_fetch_add(&life->references, 1, __ATOMIC_RELAXED);
}

/* Whether it was the last. */
static bool put(struct life *life)
{
	return __atomic_fetch_sub(&life->references, 1, __ATOMIC_ACQ_REL) == 1;
}

static void tell(const struct life *life)
{
	if (life->released)
		life->released(life->owner);
}

/* The records are handed out const; what is behind them is not. */
static struct end *end_of(const struct rig_remote_end *end)
{
	return (struct end *)(uintptr_t)end;
}

static struct rail *rail_of(const struct rig_remote_rail *rail)
{
	return (struct rail *)(uintptr_t)rail;
}

const struct rig_remote_end *rig_remote_end_get(const struct rig_remote_end *end)
{
	if (end)
		get(&end_of(end)->life);
	return end;
}

void rig_remote_end_put(const struct rig_remote_end *end)
{
	struct life life;

	if (!end || !put(&end_of(end)->life))
		return;
	life = end_of(end)->life;
	free(end_of(end));
	tell(&life);
}

const struct rig_remote_rail *rig_remote_rail_get(const struct rig_remote_rail *rail)
{
	if (rail)
		get(&rail_of(rail)->life);
	return rail;
}

void rig_remote_rail_put(const struct rig_remote_rail *rail)
{
	const struct rig_remote_end *local;
	struct life life;

	if (!rail || !put(&rail_of(rail)->life))
		return;
	life = rail_of(rail)->life;
	local = rail->local;
	free(rail_of(rail));
	rig_remote_end_put(local);
	tell(&life);
}

int rig_remote_end_make(const struct rig_remote_end *fields, rig_remote_released_fn released, void *owner,
        const struct rig_remote_end **end)
{
	struct end *made;

	if (!fields->counts.at || fields->counts.bytes < RIG_REMOTE_COUNTS_BYTES)
		return rig_error_set(-EINVAL, "counts has %zu bytes, below %u", fields->counts.bytes,
		        RIG_REMOTE_COUNTS_BYTES);
	if (!fields->ready || !fields->ready_fn)
		return rig_error_set(-EINVAL, "%s is NULL", fields->ready ? "ready_fn" : "ready");
	made = malloc(sizeof(*made));
	if (!made)
		return rig_error_set(-ENOMEM, "no memory for the record of an end");
	made->fields = *fields;
	made->life = (struct life){1, released, owner};
	*end = &made->fields;
	return 0;
}

int rig_remote_rail_make(uint64_t id, const struct rig_remote_end *local, rig_remote_released_fn released,
        void *owner, const struct rig_remote_rail **rail)
{
	struct rail *made = malloc(sizeof(*made));

	if (!made)
		return rig_error_set(-ENOMEM, "no memory for the record of a rail");
	made->fields = (struct rig_remote_rail){id, rig_remote_end_get(local)};
	made->life = (struct life){1, released, owner};
	*rail = &made->fields;
	return 0;
}

struct rig_capability rig_remote_declare(const struct rig_remote_record *record)
{
	return (struct rig_capability){&rig_remote_key, record};
}
