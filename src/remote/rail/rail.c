/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "rail_private.h"

static void set_options(struct rig_rails *rails, const struct rig_rails_options *options)
{
	rails->options = *options;
	(void)snprintf(rails->provider, sizeof(rails->provider), "%s",
	        options->provider ? options->provider : RIG_RAIL_SEALED);
	if (options->spin_ns == UINT64_MAX)
		rails->options.spin_ns = RIG_RAIL_SPIN_NS;
	if (!options->piece)
		rails->options.piece = RIG_RAIL_PIECE;
	/* The caller's texts are the caller's. */
	rails->options.provider = rails->options.node = NULL;
}

int rig_rails_open(const struct rig_rails_options *options, struct rig_rails **made)
{
	struct rig_rails *rails = calloc(1, sizeof(*rails));
	int code;

	if (!rails)
		return rig_error_set(-ENOMEM, "no memory for rails");
	rails->references = 1;
	rails->pid = getpid();
	set_options(rails, options);
	code = rig_fabric_open(&(struct rig_fabric_options){.provider = options->provider ? options->provider
	                                                                                  : RIG_RAIL_SEALED,
	                               .node = options->node,
	                               .first_port = options->first_port,
	                               .last_port = options->last_port},
	        &rails->fabric);
	if (code) {
		free(rails);
		return code;
	}
	(void)pthread_mutex_init(&rails->lock, NULL);
	*made = rails;
	return 0;
}

void rig_rails_get(struct rig_rails *rails)
{
	(void)__atomic_fetch_add(&rails->references, 1, __ATOMIC_RELAXED);
}

/* The links are memory of the ends that are still held, and no more than that. */
void rig_rails_put(struct rig_rails *rails)
{
	if (__atomic_fetch_sub(&rails->references, 1, __ATOMIC_ACQ_REL) != 1)
		return;
	while (rails->links) {
		struct rig_rail_link *link = rails->links;

		rails->links = link->next;
		rig_rail_link_free(link);
	}
	(void)pthread_mutex_destroy(&rails->lock);
	free(rails);
}

bool rig_rails_here(const struct rig_rails *rails)
{
	return rails->pid == getpid();
}

int rig_rails_check(struct rig_rails *rails)
{
	if (!rig_rails_here(rails))
		return rig_error_set(-ECONNABORTED, "the job is that of the process that forked this one");
	if (__atomic_load_n(&rails->failed, __ATOMIC_ACQUIRE))
		return rig_error_set(-ECONNABORTED, "the job has failed: %s", rails->why);
	if (__atomic_load_n(&rails->stopped, __ATOMIC_ACQUIRE))
		return rig_error_set(-ECONNABORTED, "the job is closed");
	return 0;
}

static void raise_all(struct rig_rail_half *half)
{
	rig_rail_raise(rig_rail_count(half, RIG_REMOTE_READY), RIG_RAIL_FAILED);
	rig_rail_raise(rig_rail_count(half, RIG_REMOTE_SENT), RIG_RAIL_FAILED);
	rig_rail_raise(rig_rail_count(half, RIG_REMOTE_ARRIVED), RIG_RAIL_FAILED);
}

/* With the lock. Whether it is this call that fails the engine. */
static bool fail_once(struct rig_rails *rails, const char *why)
{
	if (rig_rails_over(rails))
		return false;
	(void)snprintf(rails->why, sizeof(rails->why), "%s", why);
	__atomic_store_n(&rails->failed, true, __ATOMIC_RELEASE);
	for (struct rig_rail_half *half = rails->ends; half; half = half->ends_next)
		raise_all(half);
	for (struct rig_rail_link *link = rails->links; link; link = link->next)
		rig_conn_wake(link->conn);
	return true;
}

void rig_rails_fail(struct rig_rails *rails, const char *why)
{
	bool first;

	if (!rig_rails_here(rails))
		return;
	(void)pthread_mutex_lock(&rails->lock);
	first = fail_once(rails, why);
	(void)pthread_mutex_unlock(&rails->lock);
	if (first)
		rig_logf(rails->options.log, RIG_LOG_ERROR, "rails failed: %s", rails->why);
	if (first && rails->options.failed)
		rails->options.failed(rails->options.arg, rails->why);
}

void rig_rails_stop(struct rig_rails *rails)
{
	bool before;

	if (!rig_rails_here(rails))
		return;
	(void)pthread_mutex_lock(&rails->lock);
	before = rails->stopped;
	__atomic_store_n(&rails->stopped, true, __ATOMIC_RELEASE);
	/* Whoever stopped it may have taken the connections down since. */
	for (struct rig_rail_link *link = before ? NULL : rails->links; link; link = link->next)
		rig_conn_wake(link->conn);
	(void)pthread_mutex_unlock(&rails->lock);
}

void rig_rails_down(struct rig_rails *rails)
{
	if (!rig_rails_here(rails))
		return;
	rig_rails_stop(rails);
	for (struct rig_rail_link *link = rails->links; link; link = link->next)
		rig_rail_link_down(link);
}

void rig_rails_close(struct rig_rails *rails)
{
	if (!rails || !rig_rails_here(rails))
		return;
	rig_rails_down(rails);
	rig_fabric_close(rails->fabric);
	rails->fabric = NULL;
	rig_rails_put(rails);
}

const char *rig_rails_why(struct rig_rails *rails)
{
	return __atomic_load_n(&rails->failed, __ATOMIC_ACQUIRE) ? rails->why : NULL;
}

void rig_rails_stats(struct rig_rails *rails, struct rig_rails_stats *stats)
{
	(void)pthread_mutex_lock(&rails->lock);
	stats->links = rails->stats.links;
	stats->ends = rails->stats.ends;
	(void)pthread_mutex_unlock(&rails->lock);
	stats->writes = __atomic_load_n(&rails->stats.writes, __ATOMIC_RELAXED);
	stats->bytes = __atomic_load_n(&rails->stats.bytes, __ATOMIC_RELAXED);
	stats->kept = __atomic_load_n(&rails->stats.kept, __ATOMIC_RELAXED);
	stats->wakes = __atomic_load_n(&rails->stats.wakes, __ATOMIC_RELAXED);
	stats->sleeps = __atomic_load_n(&rails->stats.sleeps, __ATOMIC_RELAXED);
	stats->refused = __atomic_load_n(&rails->stats.refused, __ATOMIC_RELAXED);
}
