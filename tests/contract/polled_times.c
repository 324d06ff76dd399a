/* SPDX-License-Identifier: MIT */
/* Times and measures of the polled driver: stamps around a value's work, written at once or in settle. */
#include "polled_state.h"

#define SECOND UINT64_C(1000000000)

static void lie_about(struct device *d, uint64_t *start, uint64_t *end)
{
	if (lies(d->p, half_times))
		*end = 0;
	if (lies(d->p, overlapping))
		*start -= SECOND;
	if (lies(d->p, far_times)) {
		*start += SECOND;
		*end += SECOND;
	}
	if (lies(d->p, as_asked)) { /* in the order in which they are asked for */
		if (*start < d->last_end)
			*start = d->last_end;
		*end = *start + 1;
		d->last_end = *end;
	}
}

static void write_pair(struct device *d, struct rig_times *pair, uint64_t start, uint64_t end)
{
	lie_about(d, &start, &end);
	pair->start = start;
	pair->end = end;
	if (lies(d->p, beside_times))
		pair[1] = *pair;
}

static struct stamp *stamp_of(struct device *d, uint64_t value)
{
	struct stamp *s = &d->stamps[value % STAMPS];

	return s->value == value && s->pair ? s : NULL;
}

/* With the lock, before the value is queued. What an older value left there is written first. */
void polled_keep_stamp(struct device *d, uint64_t value, struct rig_times *times)
{
	struct stamp *s = &d->stamps[value % STAMPS];

	if (s->pair && !s->written)
		write_pair(d, s->pair, s->start, s->end);
	memset(s, 0, sizeof(*s));
	s->value = value;
	s->pair = times;
}

/* With the lock, before the word shows the value. */
void polled_stamp(struct device *d, uint64_t value, const struct value *v, uint64_t start, uint64_t end)
{
	struct stamp *s;
	uint32_t i;

	if (!d->p->o.settle) {
		if (d->p->o.times)
			write_pair(d, v->times, start, end);
		return;
	}
	s = stamp_of(d, value);
	if (!s)
		return;
	s->start = start;
	s->end = end;
	for (i = 0; i < v->nparts; i++) {
		struct rig_run run = {.args = v->args};
		const struct rig_block *block;

		if (v->parts[i].kind != RIG_LAUNCH)
			continue;
		block = rig_launch_block(&run, &v->parts[i].u.launch);
		if (lies(d->p, measures_nothing))
			continue;
		s->rows[s->nrows][0] = lies(d->p, half_row) ? 0 : 1;
		s->rows[s->nrows][1] = start;
		s->rows[s->nrows][2] = end;
		s->rows[s->nrows++][3] = (uint64_t)block->groups[0] * block->groups[1] * block->groups[2];
	}
}

int polled_d_settle(void *self, uint64_t value, const char **failure)
{
	struct device *d = self;
	struct stamp *s;

	(void)failure;
	lock(d->p);
	while (lies(d->p, settle_waits) && d->done < d->last)
		polled_nap(d->p, 1);
	s = stamp_of(d, value);
	if (s && s->written && lies(d->p, resettles))
		s->pair->end++;
	if (s && !s->written && !lies(d->p, settles_nothing)) {
		write_pair(d, s->pair, s->start, s->end);
		s->written = true;
	}
	unlock(d->p);
	return RIG_OK;
}

int polled_d_measures(void *self, uint64_t value, uint64_t *out, const char **failure)
{
	struct device *d = self;
	struct stamp *s;

	(void)failure;
	lock(d->p);
	s = stamp_of(d, value);
	if (s && out)
		memcpy(out, s->rows, (s->nrows + (lies(d->p, long_row) ? 1 : 0)) * sizeof(s->rows[0]));
	if (s && (!out || lies(d->p, reads_once)))
		s->nrows = 0;
	unlock(d->p);
	return RIG_OK;
}
