/* SPDX-License-Identifier: MIT */
#include <inttypes.h>

#include "rt.h"

static int check_copy_engine(const char *name, const struct rig_facts *facts)
{
	if (!facts->has_copy_engine)
		return 0;
	if (facts->copy_engine < 0 || (uint32_t)facts->copy_engine >= facts->nqueues)
		return rig_error_set(-EINVAL,
		        "%s: facts.copy_engine is %" PRId32 ", not the index of one of %" PRIu32 " queues",
		        name, facts->copy_engine, facts->nqueues);
	if (!(facts->queues[facts->copy_engine].runs & RIG_RUNS(RIG_COPY)))
		return rig_error_set(-EINVAL,
		        "%s: facts.copy_engine names queue %" PRId32 ", whose runs lacks RIG_COPY", name,
		        facts->copy_engine);
	return 0;
}

static int check_edge(const char *name, const struct rig_facts *facts)
{
	const struct rig_driver *hot;

	if (!facts->edge)
		return rig_error_set(-EINVAL, "%s: facts.edge is NULL, not the device's C state", name);
	hot = rig_driver_of(facts->edge);
	if (!hot)
		return rig_error_set(-EINVAL,
		        "%s: the first member of facts.edge is NULL, not its struct rig_driver", name);
	if (hot->version != RIG_EDGE_VERSION)
		return rig_error_set(-EINVAL,
		        "%s: its struct rig_driver has contract version %" PRIu32 ", this library %u", name,
		        hot->version, RIG_EDGE_VERSION);
	return 0;
}

int rig_rt_facts_check(const char *name, const struct rig_facts *facts)
{
	int code = check_copy_engine(name, facts);

	if (code)
		return code;
	if (facts->has_hang_ms && facts->hang_ms < 1)
		return rig_error_set(
		        -EINVAL, "%s: facts.hang_ms is %" PRId64 ", below 1", name, facts->hang_ms);
	if (facts->has_cache_bytes && facts->cache_bytes < 1)
		return rig_error_set(
		        -EINVAL, "%s: facts.cache_bytes is %" PRId64 ", below 1", name, facts->cache_bytes);
	if (facts->alignment < 1 || (facts->alignment & (facts->alignment - 1)))
		return rig_error_set(-EINVAL, "%s: facts.alignment is %" PRId64 ", not a power of two", name,
		        facts->alignment);
	return check_edge(name, facts);
}
