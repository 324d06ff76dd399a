/* SPDX-License-Identifier: MIT */
#include "tlsf.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "bits.h"

/*
 * Sizes are counted in granules ("units"). A class is (row, column): sizes below COLUMNS have a class each in
 * row 0; row r > 0 holds [COLUMNS << (r - 1), COLUMNS << r) in COLUMNS equal steps.
 */
enum {
	COLUMN_BITS = 5,
	COLUMNS = 1 << COLUMN_BITS,
	ROWS = RIG_BITS_U64 - COLUMN_BITS + 1,
	FIRST_RECORDS = 64,
	MAX_RECORDS = 4096, /* chunks double up to this: 256 KiB at a time */
	FIRST_BUCKETS = 64,
	RECORDS_PER_ALLOC = 2, /* a piece splits a gap before it and a rest behind it off its block */
};

struct block {
	uint64_t at;
	uint64_t units;
	struct block *below, *above; /* neighbours by address */
	struct block *prev, *next;   /* free: the class list. used: next is the hash chain. spare: next */
	bool used;
};

struct chunk {
	struct chunk *next;
	struct block records[];
};

struct class
{
	unsigned row, column;
};

struct rig_tlsf {
	uint64_t rows;          /* bit r: some column of row r has a free block */
	uint32_t columns[ROWS]; /* bit c of [r]: class (r, c) has a free block */
	struct block *lists[ROWS][COLUMNS];
	unsigned shift; /* log2 of the granule */
	uint64_t free_units;
	uint64_t pieces;

	struct block **buckets; /* used blocks by address */
	unsigned bucket_bits;

	struct block *spare;
	uint64_t spares;
	size_t next_records; /* records of the next chunk */
	struct chunk *chunks;
};

/* The class a free block of `units` (not 0) is listed in. */
static struct class class_of(uint64_t units)
{
	unsigned top;

	if (units < COLUMNS)
		return (struct class){.row = 0, .column = (unsigned)units};
	top = rig_ilog2(units);
	return (struct class){
	        .row = top - COLUMN_BITS + 1,
	        .column = (unsigned)(units >> (top - COLUMN_BITS)) & (COLUMNS - 1),
	};
}

/* The lowest class all of whose blocks hold `units`; false when sizes end before it. */
static bool class_above(uint64_t units, struct class *class)
{
	uint64_t step;

	if (units >= COLUMNS) {
		step = RIG_BIT64(rig_ilog2(units) - COLUMN_BITS);
		if (!rig_add_u64(units, step - 1, &units))
			return false;
	}
	*class = class_of(units);
	return true;
}

static void list_in(struct rig_tlsf *t, struct block *b)
{
	struct class class = class_of(b->units);
	struct block **head = &t->lists[class.row][class.column];

	b->used = false;
	b->prev = NULL;
	b->next = *head;
	if (*head)
		(*head)->prev = b;
	*head = b;
	t->columns[class.row] |= UINT32_C(1) << class.column;
	t->rows |= RIG_BIT64(class.row);
	t->free_units += b->units;
}

static void list_out(struct rig_tlsf *t, struct block *b)
{
	struct class class = class_of(b->units);
	struct block **head = &t->lists[class.row][class.column];

	if (b->prev)
		b->prev->next = b->next;
	else
		*head = b->next;
	if (b->next)
		b->next->prev = b->prev;
	t->free_units -= b->units;
	if (*head)
		return;
	t->columns[class.row] &= ~(UINT32_C(1) << class.column);
	if (!t->columns[class.row])
		t->rows &= ~RIG_BIT64(class.row);
}

static int stock_records(struct rig_tlsf *t)
{
	size_t count = t->next_records;
	struct chunk *chunk = malloc(sizeof(*chunk) + count * sizeof(chunk->records[0]));

	if (!chunk)
		return -ENOMEM;
	chunk->next = t->chunks;
	t->chunks = chunk;
	for (size_t i = count; i-- > 0;) {
		chunk->records[i].next = t->spare;
		t->spare = &chunk->records[i];
	}
	t->spares += count;
	if (t->next_records < MAX_RECORDS)
		t->next_records *= 2;
	return 0;
}

static struct block *take_record(struct rig_tlsf *t)
{
	struct block *b = t->spare;

	t->spare = b->next;
	t->spares--;
	return b;
}

static void drop_record(struct rig_tlsf *t, struct block *b)
{
	b->next = t->spare;
	t->spare = b;
	t->spares++;
}

static struct block **bucket_of(const struct rig_tlsf *t, uint64_t at)
{
	/* Fibonacci hashing: 2^64 over the golden ratio spreads addresses of one stride. */
	uint64_t mixed = (at >> t->shift) * UINT64_C(0x9e3779b97f4a7c15);

	return &t->buckets[mixed >> (RIG_BITS_U64 - t->bucket_bits)];
}

static void hash_in(const struct rig_tlsf *t, struct block *b)
{
	struct block **bucket = bucket_of(t, b->at);

	b->next = *bucket;
	*bucket = b;
}

/* The link that leads to the used block at `at`, or NULL. */
static struct block **find(const struct rig_tlsf *t, uint64_t at)
{
	for (struct block **link = bucket_of(t, at); *link; link = &(*link)->next)
		if ((*link)->at == at)
			return link;
	return NULL;
}

/* Double the buckets. Without memory the chains just grow longer. */
static void widen_hash(struct rig_tlsf *t)
{
	size_t count = (size_t)1 << t->bucket_bits;
	struct block **old = t->buckets;
	struct block **wider = calloc(count * 2, sizeof(*wider));

	if (!wider)
		return;
	t->buckets = wider;
	t->bucket_bits++;
	for (size_t i = 0; i < count; i++) {
		for (struct block *b = old[i], *next; b; b = next) {
			next = b->next;
			hash_in(t, b);
		}
	}
	free(old);
}

/* Where in the free block a piece of `units` at `align` begins; false when it does not fit. */
static bool place(
        const struct rig_tlsf *t, const struct block *b, uint64_t units, uint64_t align, uint64_t *at)
{
	uint64_t start, gap;

	if (!rig_align_up(b->at, align, &start))
		return false;
	gap = (start - b->at) >> t->shift;
	if (gap > b->units || units > b->units - gap)
		return false;
	*at = start;
	return true;
}

/* The first block of the classes from `class` up. */
static struct block *first_from(const struct rig_tlsf *t, struct class class)
{
	uint32_t columns = t->columns[class.row] & (UINT32_MAX << class.column);
	uint64_t rows;

	if (!columns) {
		rows = class.row + 1 < ROWS ? t->rows & (UINT64_MAX << (class.row + 1)) : 0;
		if (!rows)
			return NULL;
		class.row = rig_lowest_bit(rows);
		columns = t->columns[class.row];
	}
	return t->lists[class.row][rig_lowest_bit(columns)];
}

/* The first block that fits in any class from `class` up, list by list: only before saying no. */
static struct block *search_from(
        const struct rig_tlsf *t, struct class class, uint64_t units, uint64_t align, uint64_t *at)
{
	for (unsigned row = class.row; row < ROWS; row++) {
		for (unsigned column = row == class.row ? class.column : 0; column < COLUMNS; column++)
			for (struct block *b = t->lists[row][column]; b; b = b->next)
				if (place(t, b, units, align, at))
					return b;
	}
	return NULL;
}

static struct block *choose(const struct rig_tlsf *t, uint64_t units, uint64_t align, uint64_t *at)
{
	uint64_t padded;
	struct class class;
	struct block *b;

	if (class_above(units, &class)) {
		b = first_from(t, class);
		if (b && place(t, b, units, align, at))
			return b;
	}
	if (rig_add_u64(units, (align >> t->shift) - 1, &padded) && class_above(padded, &class)) {
		b = first_from(t, class);
		if (b && place(t, b, units, align, at))
			return b;
	}
	return search_from(t, class_of(units), units, align, at);
}

/* Cut `b` so that it keeps `units`; the rest becomes a block of its own above it. */
static struct block *split(struct rig_tlsf *t, struct block *b, uint64_t units)
{
	struct block *rest = take_record(t);

	rest->at = b->at + (units << t->shift);
	rest->units = b->units - units;
	rest->below = b;
	rest->above = b->above;
	if (rest->above)
		rest->above->below = rest;
	b->above = rest;
	b->units = units;
	return rest;
}

/* Join `b` and the block above it into `b`. */
static void join(struct rig_tlsf *t, struct block *b)
{
	struct block *gone = b->above;

	b->units += gone->units;
	b->above = gone->above;
	if (b->above)
		b->above->below = b;
	drop_record(t, gone);
}

int rig_tlsf_open(struct rig_tlsf **out, uint64_t base, uint64_t size, uint64_t granule)
{
	struct rig_tlsf *t;
	struct block *all;

	if (!rig_is_pow2(granule) || !rig_is_aligned(base, granule))
		return -EINVAL;
	size = rig_align_down(size, granule);
	if (size == 0 || size - 1 > UINT64_MAX - base)
		return -EINVAL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->shift = rig_ilog2(granule);
	t->next_records = FIRST_RECORDS;
	t->bucket_bits = rig_ilog2(FIRST_BUCKETS);
	t->buckets = calloc(FIRST_BUCKETS, sizeof(struct block *));
	if (!t->buckets || stock_records(t)) {
		rig_tlsf_close(t);
		return -ENOMEM;
	}
	all = take_record(t);
	*all = (struct block){.at = base, .units = size >> t->shift};
	list_in(t, all);
	*out = t;
	return 0;
}

void rig_tlsf_close(struct rig_tlsf *t)
{
	if (!t)
		return;
	for (struct chunk *chunk = t->chunks, *next; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	free(t->buckets);
	free(t);
}

/* `units` of the free block `b` from `start` on become a piece. Records are in stock. */
static void hand_out(struct rig_tlsf *t, struct block *b, uint64_t start, uint64_t units)
{
	list_out(t, b);
	if (start != b->at) {
		struct block *gap = b;

		b = split(t, gap, (start - gap->at) >> t->shift);
		list_in(t, gap);
	}
	if (b->units > units)
		list_in(t, split(t, b, units));
	b->used = true;
	hash_in(t, b);
	if (++t->pieces > RIG_BIT64(t->bucket_bits))
		widen_hash(t);
}

int rig_tlsf_alloc(struct rig_tlsf *t, uint64_t bytes, uint64_t align, uint64_t *at)
{
	uint64_t granule = RIG_BIT64(t->shift);
	uint64_t start, units;
	struct block *b;

	if (bytes == 0 || (align && !rig_is_pow2(align)))
		return -EINVAL;
	if (t->spares < RECORDS_PER_ALLOC && stock_records(t))
		return -ENOMEM;
	align = rig_max_u64(align, granule);
	units = ((bytes - 1) >> t->shift) + 1;
	b = choose(t, units, align, &start);
	if (!b)
		return -ENOMEM;
	hand_out(t, b, start, units);
	*at = start;
	return 0;
}

/* The free block that has all of [at, at + units). */
static struct block *find_free(const struct rig_tlsf *t, uint64_t at, uint64_t units)
{
	for (unsigned row = 0; row < ROWS; row++) {
		for (unsigned column = 0; column < COLUMNS; column++)
			for (struct block *b = t->lists[row][column]; b; b = b->next)
				if (at >= b->at && rig_span_fits((at - b->at) >> t->shift, units, b->units))
					return b;
	}
	return NULL;
}

int rig_tlsf_take(struct rig_tlsf *t, uint64_t at, uint64_t bytes)
{
	struct block *b;

	if (bytes == 0 || !rig_is_aligned(at | bytes, RIG_BIT64(t->shift)))
		return -EINVAL;
	if (t->spares < RECORDS_PER_ALLOC && stock_records(t))
		return -ENOMEM;
	b = find_free(t, at, bytes >> t->shift);
	if (!b)
		return -EBUSY;
	hand_out(t, b, at, bytes >> t->shift);
	return 0;
}

int rig_tlsf_free(struct rig_tlsf *t, uint64_t at)
{
	struct block **link = find(t, at);
	struct block *b;

	if (!link)
		return -ENOENT;
	b = *link;
	*link = b->next;
	t->pieces--;
	if (b->above && !b->above->used) {
		list_out(t, b->above);
		join(t, b);
	}
	if (b->below && !b->below->used) {
		b = b->below;
		list_out(t, b);
		join(t, b);
	}
	list_in(t, b);
	return 0;
}

uint64_t rig_tlsf_bytes(const struct rig_tlsf *t, uint64_t at)
{
	struct block **link = find(t, at);

	return link ? (*link)->units << t->shift : 0;
}

uint64_t rig_tlsf_free_bytes(const struct rig_tlsf *t)
{
	return t->free_units << t->shift;
}

uint64_t rig_tlsf_largest(const struct rig_tlsf *t)
{
	uint64_t most = 0;
	unsigned row;

	if (!t->rows)
		return 0;
	row = rig_ilog2(t->rows);
	for (const struct block *b = t->lists[row][rig_ilog2(t->columns[row])]; b; b = b->next)
		most = rig_max_u64(most, b->units);
	return most << t->shift;
}

uint64_t rig_tlsf_pieces(const struct rig_tlsf *t)
{
	return t->pieces;
}
