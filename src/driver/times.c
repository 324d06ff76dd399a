/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bits.h"
#include "clock.h"
#include "device.h"
#include "times.h"

#define STAMP_BYTES (128u << 10) /* for all values that are not converted */
#define MOST_OPEN   4096u
#define MOST_KEPT   16384u
#define MOST_ROWS   65536u
#define TICK_NS     (10 * RIG_NS_PER_MS)
#define MOST_WAIT   RIG_NS_PER_S
/* A reading that was interrupted says little: the poller, which has time, then takes another. */
#define TICK_READS 3u
#define SHORT_NS   (20 * RIG_NS_PER_US)
#define NONE       UINT64_MAX /* a stamp that the work has not written; a value of which nothing is kept */

enum { WORD = sizeof(uint64_t), STAMPS_A_LAUNCH = 2, ROW_HEAD = 3 };

/* A timed value. Its piece: the end, the starts, then of each launch start, end and counters. */
struct rig_timed {
	uint64_t value;
	struct rig_times *times;
	uint64_t submitted_ns; /* no stamp is earlier */
	uint64_t at, behind;   /* its piece: offset, and position of what follows */
	uint64_t kept;         /* position, or NONE */
	uint32_t starts, launches;
};

struct rig_kept {
	uint64_t value;
	uint64_t row; /* position */
	uint32_t launches;
	bool dropped;
};

static uint32_t launch_words(const struct rig_dev_times *t)
{
	return STAMPS_A_LAUNCH + t->counters;
}

static uint64_t *row_at(const struct rig_dev_times *t, uint64_t position)
{
	return &t->rows[position % MOST_ROWS * (ROW_HEAD + t->counters)];
}

static struct rig_timed *open_at(const struct rig_dev_times *t, uint64_t position)
{
	return &t->open[position % MOST_OPEN];
}

static struct rig_kept *kept_at(const struct rig_dev_times *t, uint64_t position)
{
	return &t->kept[position % MOST_KEPT];
}

/* ---- The clock ---- */

/* False: the function is gone. */
static bool read_clock(struct rig_dev *dev, uint64_t *took)
{
	struct rig_times_point point = {.before = rig_now_ns()};

	point.ticks = dev->board->clock(&dev->port);
	point.after = rig_now_ns();
	*took = point.after - point.before;
	if (point.ticks == UINT64_MAX)
		return false;
	pthread_mutex_lock(&dev->times.lock);
	rig_times_clock_add(&dev->times.clock, &point);
	pthread_mutex_unlock(&dev->times.lock);
	return true;
}

void rig_dev_times_tick(struct rig_dev *dev)
{
	struct rig_dev_times *t = &dev->times;
	uint64_t timed, value, now, took;
	unsigned i;

	if (!rig_dev_times_wanted(t))
		return;
	timed = atomic_load_explicit(&t->timed, memory_order_relaxed);
	value = rig_word_load(dev->word);
	now = rig_now_ns();
	if (value != t->ticked)
		t->wait_ns = TICK_NS;
	if (now - t->last_ns < t->wait_ns)
		return;
	for (i = 0; i < TICK_READS && read_clock(dev, &took) && took > SHORT_NS; i++)
		;
	t->last_ns = now;
	t->ticked = value;
	t->wait_ns = rig_min_u64(2 * t->wait_ns, MOST_WAIT);
	if (value >= timed)
		atomic_store_explicit(&t->covered, timed, memory_order_relaxed);
}

int rig_dev_times_open(struct rig_dev *dev)
{
	struct rig_dev_times *t = &dev->times;
	uint64_t took;
	uint32_t i;
	int err;

	if (!dev->facts.clock_hz)
		return 0;
	for (i = 0; i < dev->facts.ncounters; i++)
		t->counters += dev->facts.counters[i].values;
	t->clock.hz = dev->facts.clock_hz;
	t->clock.ppm = dev->facts.clock_ppm;
	/* Pages of these that are not used take no memory. */
	t->open = calloc(MOST_OPEN, sizeof(*t->open));
	t->kept = calloc(MOST_KEPT, sizeof(*t->kept));
	t->rows = calloc(MOST_ROWS * (size_t)(ROW_HEAD + t->counters), WORD);
	t->copy = calloc(STAMP_BYTES / WORD, WORD);
	if (!t->open || !t->kept || !t->rows || !t->copy)
		return rig_error_set(-ENOMEM, "out of host memory for times");
	err = rig_dev_shared_alloc(dev, STAMP_BYTES, false, &dev->stamps);
	if (err)
		return rig_error_set(err, "%u bytes for stamps (error %d)", STAMP_BYTES, err);
	t->segment = (struct rig_segment){.bytes = STAMP_BYTES, .mask = STAMP_BYTES - 1};
	read_clock(dev, &took);
	return 0;
}

void rig_dev_times_close(struct rig_dev *dev)
{
	rig_dev_shared_free(dev, &dev->stamps);
	free(dev->times.open);
	free(dev->times.kept);
	free(dev->times.rows);
	free(dev->times.copy);
}

/* ---- Conversion ---- */

/* The device may write a stamp at any time: each is read once, and what was read is then judged and used. The
   end is read first, because it says whether the others are to be read yet. */
static uint64_t read_end(const struct rig_dev *dev, const struct rig_timed *v)
{
	return __atomic_load_n((const uint64_t *)(const void *)(dev->stamps.host + v->at), __ATOMIC_RELAXED);
}

static void copy_stamps(struct rig_dev *dev, const struct rig_timed *v, uint64_t end)
{
	const uint64_t *piece = (const uint64_t *)(const void *)(dev->stamps.host + v->at);
	uint64_t *copy = dev->times.copy, i;
	uint64_t words = 1 + v->starts + (uint64_t)v->launches * launch_words(&dev->times);

	copy[0] = end;
	for (i = 1; i < words; i++)
		copy[i] = __atomic_load_n(&piece[i], __ATOMIC_RELAXED);
}

static int bad_stamp(struct rig_dev *dev, const struct rig_timed *v, const char *what)
{
	rig_dev_set_fault(dev, "the times of value %llu: %s", (unsigned long long)v->value, what);
	return -EIO;
}

/* Of the copied stamps: the earliest start. */
static uint64_t start_of(const uint64_t *copy, const struct rig_timed *v)
{
	uint64_t start = copy[1];
	uint32_t i;

	for (i = 1; i < v->starts; i++)
		start = rig_min_u64(start, copy[1 + i]);
	return start;
}

/* Whether the copied stamps can be those of the value: all there, and in order. */
static bool are_sound(const struct rig_dev_times *t, const struct rig_timed *v)
{
	const uint64_t *copy = t->copy;
	uint64_t start = start_of(copy, v), end = copy[0];
	uint32_t i, at = 1 + v->starts;

	if (start < t->end_ticks)
		return false;
	for (i = 0; i < v->starts; i++)
		if (copy[1 + i] > end)
			return false;
	for (i = 0; i < v->launches; i++, at += launch_words(t))
		if (copy[at] < start || copy[at + 1] < copy[at] || copy[at + 1] > end)
			return false;
	return true;
}

/* When that was, and that it is inside [least, most]. False: it cannot have been between submit and now. */
static bool place(struct rig_dev *dev, const struct rig_timed *v, uint64_t ticks,
        const struct rig_times_range *in, uint64_t *ns)
{
	struct rig_dev_times *t = &dev->times;
	struct rig_times_range range = {v->submitted_ns, rig_now_ns()};
	uint64_t error;
	bool sound;

	pthread_mutex_lock(&t->lock);
	sound = rig_times_clock_at(&t->clock, ticks, &range, ns);
	pthread_mutex_unlock(&t->lock);
	if (!sound)
		return false;
	*ns = rig_min_u64(rig_max_u64(*ns, in->least), in->most);
	error = rig_times_error(&range, *ns);
	if (error > atomic_load_explicit(&t->worst, memory_order_relaxed))
		atomic_store_explicit(&t->worst, error, memory_order_relaxed);
	return true;
}

static bool fill_rows(struct rig_dev *dev, const struct rig_timed *v, const struct rig_kept *kept)
{
	struct rig_dev_times *t = &dev->times;
	const struct rig_times_range inside = {v->times->start, v->times->end};
	uint32_t i, c, at = 1 + v->starts;

	for (i = 0; i < v->launches; i++, at += launch_words(t)) {
		uint64_t *row = row_at(t, kept->row + i);

		row[0] = 1;
		if (!place(dev, v, t->copy[at], &inside, &row[1]) ||
		        !place(dev, v, t->copy[at + 1], &inside, &row[2]))
			return false;
		for (c = 0; c < t->counters; c++)
			row[ROW_HEAD + c] = t->copy[at + STAMPS_A_LAUNCH + c];
	}
	return true;
}

static bool is_kept(const struct rig_dev_times *t, uint64_t position)
{
	return position != NONE && position >= t->kept_first && !kept_at(t, position)->dropped;
}

static int convert(struct rig_dev *dev, const struct rig_timed *v, uint64_t end)
{
	struct rig_dev_times *t = &dev->times;
	struct rig_times_range in = {t->end, UINT64_MAX};
	struct rig_times times;

	copy_stamps(dev, v, end);
	if (end == NONE || start_of(t->copy, v) == NONE)
		return bad_stamp(dev, v, "the work did not write its stamps");
	if (!are_sound(t, v))
		return bad_stamp(dev, v, "a stamp is out of order");
	if (!place(dev, v, start_of(t->copy, v), &in, &times.start))
		return bad_stamp(dev, v, "the clock cannot have shown the start's stamp then");
	in.least = times.start;
	if (!place(dev, v, end, &in, &times.end))
		return bad_stamp(dev, v, "the clock cannot have shown the end's stamp then");
	*v->times = times;
	t->end = times.end;
	t->end_ticks = end;
	if (is_kept(t, v->kept) && !fill_rows(dev, v, kept_at(t, v->kept)))
		return bad_stamp(dev, v, "the clock cannot have shown a launch's stamp then");
	return 0;
}

/* Whether a reading of the clock is newer than a value's end. */
static bool is_covered(struct rig_dev_times *t, uint64_t end)
{
	bool covered;

	pthread_mutex_lock(&t->lock);
	covered = t->clock.count && t->clock.point[t->clock.count - 1].ticks >= end;
	pthread_mutex_unlock(&t->lock);
	return covered;
}

/* What to do with a value whose end no reading covers. */
enum uncovered { STOP, GUESS, READ };

/* Values up to `value`, which the word shows, in order. READ reads the clock at most once: it never goes
   back, so that a reading after the values is not below their ends. */
static int convert_to(struct rig_dev *dev, uint64_t value, enum uncovered uncovered)
{
	struct rig_dev_times *t = &dev->times;
	uint64_t took;
	int err = 0;

	while (!err && t->first != t->last) {
		const struct rig_timed *v = open_at(t, t->first);
		uint64_t end = read_end(dev, v);

		if (v->value > value || (uncovered == STOP && !is_covered(t, end)))
			break;
		if (uncovered == READ && !is_covered(t, end) && read_clock(dev, &took) && !is_covered(t, end))
			err = bad_stamp(dev, v, "the end's stamp is missing or above the clock");
		else
			err = convert(dev, v, end);
		t->segment.head = v->behind;
		t->first++;
	}
	return err;
}

/* ---- Submission ---- */

static void plan_stamps(
        const struct rig_dev *dev, const struct rig_plan *plan, uint32_t launches, struct rig_timing *timing)
{
	const uint32_t step = dev->board->step_units;
	uint32_t q;

	*timing = (struct rig_timing){.launches = launches};
	for (q = 0; q < dev->facts.nqueues; q++) {
		if (!(plan->used >> q & 1))
			continue;
		timing->starts++;
		timing->units[q] = (1 + (launches ? (uint64_t)plan->launches[q] : 0)) * step;
	}
	timing->units[plan->release] += step;
	timing->bytes = (1 + timing->starts + (uint64_t)launches * launch_words(&dev->times)) * WORD;
}

/* Whether the largest rings and the stamps' memory hold it. */
static bool can_hold(const struct rig_dev *dev, const struct rig_plan *plan, const struct rig_timing *timing)
{
	uint32_t q;

	for (q = 0; q < dev->facts.nqueues; q++)
		if (plan->used >> q & 1 &&
		        !rig_dev_grown_units(dev, plan->units[q] + timing->units[q], plan->largest[q]))
			return false;
	return timing->bytes <= STAMP_BYTES;
}

void rig_dev_times_plan(const struct rig_dev *dev, const struct rig_plan *plan, struct rig_timing *timing)
{
	uint32_t q, launches = 0;

	for (q = 0; q < dev->facts.nqueues; q++)
		launches += plan->launches[q];
	plan_stamps(dev, plan, launches, timing);
	if (launches && !can_hold(dev, plan, timing)) /* more than can be measured: none is */
		plan_stamps(dev, plan, 0, timing);
}

static bool has_room(const struct rig_segment *stamps, uint64_t open, const struct rig_timing *timing)
{
	return open < MOST_OPEN && rig_segment_room(stamps, timing->bytes, WORD) == RIG_RING_FITS;
}

int rig_dev_times_room(const struct rig_dev *dev, const struct rig_timing *timing)
{
	const struct rig_dev_times *t = &dev->times;
	uint64_t value = rig_word_load(dev->word), first = t->first;
	struct rig_segment stamps = t->segment;

	if (has_room(&stamps, t->last - first, timing))
		return RIG_FITS;
	for (; first != t->last && open_at(t, first)->value <= value; first++)
		stamps.head = open_at(t, first)->behind;
	return has_room(&stamps, t->last - first, timing) ? RIG_FITS : RIG_LATER;
}

/* Room for the launches' rows: the position among kept, or NONE. */
static uint64_t keep(struct rig_dev_times *t, uint64_t value, uint32_t launches)
{
	if (!launches || t->kept_last - t->kept_first == MOST_KEPT ||
	        launches > MOST_ROWS - (t->row_last - t->row_first))
		return NONE;
	*kept_at(t, t->kept_last) =
	        (struct rig_kept){.value = value, .row = t->row_last, .launches = launches};
	t->row_last += launches;
	return t->kept_last++;
}

bool rig_dev_times_begin(
        struct rig_dev *dev, struct rig_timing *timing, uint64_t value, struct rig_times *times)
{
	struct rig_dev_times *t = &dev->times;
	struct rig_timed *v;
	uint64_t *piece, i, reached = rig_word_load(dev->word);

	if (convert_to(dev, reached, STOP))
		return false;
	if (!has_room(&t->segment, t->last - t->first, timing) && convert_to(dev, reached, GUESS))
		return false;
	v = open_at(t, t->last++);
	rig_segment_take(&t->segment, timing->bytes, WORD, &v->at);
	v->behind = t->segment.tail;
	v->value = value;
	v->times = times;
	v->kept = keep(t, value, timing->launches);
	if (v->kept == NONE)
		timing->launches = 0;
	v->starts = timing->starts;
	v->launches = timing->launches;
	piece = (uint64_t *)(void *)(dev->stamps.host + v->at);
	for (i = 0; i < timing->bytes / WORD; i++)
		__atomic_store_n(&piece[i], NONE, __ATOMIC_RELAXED);
	timing->address = dev->stamps.step_address + v->at;
	atomic_store_explicit(&t->timed, value, memory_order_relaxed);
	v->submitted_ns = rig_now_ns();
	return true;
}

uint64_t rig_dev_times_start(struct rig_timing *timing)
{
	return timing->address + (1 + (uint64_t)timing->start++) * WORD;
}

uint64_t rig_dev_times_launch(const struct rig_dev *dev, struct rig_timing *timing)
{
	uint64_t before = (uint64_t)timing->launch++ * launch_words(&dev->times);

	return timing->address + (1 + timing->starts + before) * WORD;
}

/* ---- The contract ---- */

static int answer(struct rig_dev *dev, int err, const char **failure)
{
	if (!err)
		return RIG_OK;
	*failure = dev->progress.fault;
	return RIG_FAILED;
}

int rig_dev_settle(void *self, uint64_t value, const char **failure)
{
	return answer(self, convert_to(self, value, READ), failure);
}

/* The value's place among kept, or NONE. */
static uint64_t find(const struct rig_dev_times *t, uint64_t value)
{
	uint64_t first = t->kept_first, last = t->kept_last;

	while (first != last) {
		uint64_t at = first + (last - first) / 2;

		if (kept_at(t, at)->value < value)
			first = at + 1;
		else
			last = at;
	}
	if (first == t->kept_last || kept_at(t, first)->value != value || kept_at(t, first)->dropped)
		return NONE;
	return first;
}

static void drop(struct rig_dev_times *t, uint64_t position)
{
	kept_at(t, position)->dropped = true;
	while (t->kept_first != t->kept_last && kept_at(t, t->kept_first)->dropped)
		t->row_first += kept_at(t, t->kept_first++)->launches;
}

int rig_dev_measures(void *self, uint64_t value, uint64_t *out, const char **failure)
{
	struct rig_dev *dev = self;
	struct rig_dev_times *t = &dev->times;
	uint64_t at = find(t, value), words = ROW_HEAD + t->counters;
	uint32_t i;
	int err;

	if (at == NONE)
		return RIG_OK;
	if (!out) {
		drop(t, at);
		return RIG_OK;
	}
	err = convert_to(dev, value, READ);
	for (i = 0; !err && i < kept_at(t, at)->launches; i++)
		memcpy(out + i * words, row_at(t, kept_at(t, at)->row + i), words * WORD);
	return answer(dev, err, failure);
}
