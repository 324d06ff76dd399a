/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rig_edge.h"
#include "rmt_draft.h"

/* Room for n more. */
static int grow(struct rig_rmt_draft_list *list, size_t n)
{
	size_t size = list->size;
	struct rig_remote_transfer *at;

	if (n > RIG_RMT_RAIL_TRANSFERS - list->n)
		return rig_error_set(
		        -E2BIG, "a rail carries at most %d transfers each way", RIG_RMT_RAIL_TRANSFERS);
	while (size < list->n + n)
		size = size ? 2 * size : RIG_RMT_TRANSFERS;
	if (size == list->size)
		return 0;
	at = realloc(list->at, size * sizeof(*at));
	if (!at)
		return rig_error_set(-ENOMEM, "no host memory for a rail's transfers");
	list->at = at;
	list->size = size;
	return 0;
}

static void append(struct rig_rmt_draft_list *list, const struct rig_remote_transfer *from, size_t n)
{
	if (n)
		memcpy(list->at + list->n, from, n * sizeof(*from));
	list->n += n;
}

int rig_rmt_draft_add(struct rig_rmt_draft *draft, const struct rig_rmt_rail *rail)
{
	int err;

	if (draft->rail != rail->rail)
		rig_rmt_draft_drop(draft);
	draft->rail = rail->rail;
	err = grow(&draft->send, rail->nsend);
	if (!err)
		err = grow(&draft->receive, rail->nreceive);
	if (err)
		return err;
	append(&draft->send, rail->transfers, rail->nsend);
	append(&draft->receive, rail->transfers + rail->nsend, rail->nreceive);
	return 0;
}

void rig_rmt_draft_drop(struct rig_rmt_draft *draft)
{
	free(draft->send.at);
	free(draft->receive.at);
	memset(draft, 0, sizeof(*draft));
}
