/* SPDX-License-Identifier: MIT */
/* Pages here that stand for a rail's areas elsewhere. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "rmt_rails_private.h"

static const char *const area_names[] = {"outbound area", "inbound area", "counts"};

/* With the list's lock. */
static size_t area_bytes(
        const struct rig_rmt_rails *rails, uint64_t id, uint32_t machine, enum rig_rmt_area area)
{
	const struct made *made = rig_rmt_rails_find(rails, id);
	unsigned i;

	for (i = 0; made && i < 2; i++)
		if (made->machine[i] == machine)
			return area == RIG_RMT_COUNTS    ? RIG_RMT_COUNTS_BYTES
			       : area == RIG_RMT_INBOUND ? made->inbound[i]
			                                 : made->outbound[i];
	return 0;
}

/* With the list's lock: the one made before, or a new one; NULL: no address space. */
static struct window *get_window(
        struct rig_rmt_rails *rails, uint64_t id, uint32_t machine, enum rig_rmt_area area, size_t bytes)
{
	struct window *w;

	for (w = rails->windows; w; w = w->next)
		if (w->rail == id && w->machine == machine && w->area == area)
			return w;
	w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (w->at == MAP_FAILED) {
		free(w);
		return NULL;
	}
	w->rail = id;
	w->machine = machine;
	w->area = area;
	w->bytes = bytes;
	w->next = rails->windows;
	rails->windows = w;
	return w;
}

static int find_area(struct rig_remote_job *job, const struct rig_remote_rail *rail, uint32_t machine,
        enum rig_rmt_area kind, struct rig_remote_area *area)
{
	struct rig_rmt_rails *rails = job->rails;
	struct window *w = NULL;
	size_t bytes;

	(void)pthread_mutex_lock(&rails->list_lock);
	bytes = area_bytes(rails, rail->id, machine, kind);
	if (bytes)
		w = get_window(rails, rail->id, machine, kind, bytes);
	(void)pthread_mutex_unlock(&rails->list_lock);
	if (!bytes)
		return rig_error_set(-ENOENT, "rail %" PRIu64 " has no %s on machine %" PRIu32, rail->id,
		        area_names[kind], machine);
	if (!w)
		return rig_error_set(-ENOMEM, "no address space for a window of %zu bytes", bytes);
	*area = (struct rig_remote_area){w->at, w->bytes};
	return 0;
}

int rig_remote_rail_area(struct rig_remote_job *job, const struct rig_remote_rail *rail, uint32_t machine,
        bool inbound, struct rig_remote_area *area)
{
	return find_area(job, rail, machine, inbound ? RIG_RMT_INBOUND : RIG_RMT_OUTBOUND, area);
}

int rig_remote_rail_counts(struct rig_remote_job *job, const struct rig_remote_rail *rail, uint32_t machine,
        struct rig_remote_area *area)
{
	return find_area(job, rail, machine, RIG_RMT_COUNTS, area);
}

bool rig_rmt_rails_window(
        struct rig_rmt_machine *m, const void *at, uint64_t bytes, uint64_t *rail, enum rig_rmt_area *area)
{
	struct rig_rmt_rails *rails = m->job->rails;
	const struct window *w;

	(void)pthread_mutex_lock(&rails->list_lock);
	for (w = rails->windows; w && (w->at != at || w->bytes != bytes || w->machine != m->index);
	        w = w->next)
		;
	if (w) {
		*rail = w->rail;
		*area = w->area;
	}
	(void)pthread_mutex_unlock(&rails->list_lock);
	return w != NULL;
}

void rig_rmt_rails_free_windows(struct rig_rmt_rails *rails)
{
	while (rails->windows) {
		struct window *w = rails->windows;

		rails->windows = w->next;
		(void)munmap(w->at, w->bytes);
		free(w);
	}
}
