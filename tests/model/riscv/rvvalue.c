/* SPDX-License-Identifier: MIT */
#include <string.h>
#include "rvvalue.h"

#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))
#define BOX          UINT64_C(0xffffffff00000000)

/* SplitMix64. */
uint64_t rvrandom_next(struct rvrandom *random)
{
	uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

uint32_t rvrandom_below(struct rvrandom *random, uint32_t limit)
{
	return (uint32_t)((rvrandom_next(random) >> 32) * limit >> 32);
}

bool rvrandom_chance(struct rvrandom *random, unsigned percent)
{
	return rvrandom_below(random, 100) < percent;
}

uint64_t rvvalue_int(struct rvrandom *random)
{
	static const uint64_t edges[] = {0, 1, 2, 31, 32, 63, 64, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff,
	        0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 0x7fffffffffffffff, 0x8000000000000000,
	        0x8000000000000001, 0xffffffff80000000, 0xffffffff7fffffff, 0x5555555555555555};
	uint64_t value;

	if (rvrandom_chance(random, 30))
		return rvrandom_next(random);
	if (rvrandom_chance(random, 30)) /* around a power of two, where conversions round */
		value = (UINT64_C(1) << rvrandom_below(random, 64)) + rvrandom_below(random, 5) - 2;
	else
		value = edges[rvrandom_below(random, COUNT(edges))];
	return rvrandom_chance(random, 40) ? 0 - value : value;
}

void rvvalue_ints(struct rvrandom *random, uint64_t out[2])
{
	static const uint64_t least[] = {UINT64_C(1) << 63, UINT64_C(0xffffffff80000000), 0x80000000};

	out[0] = rvvalue_int(random);
	out[1] = rvvalue_int(random);
	if (rvrandom_chance(random, 10))
		out[1] = 0;
	if (rvrandom_chance(random, 15)) { /* the overflow of division */
		out[0] = least[rvrandom_below(random, COUNT(least))];
		out[1] = UINT64_MAX;
	}
}

struct shape {
	unsigned fraction;
	unsigned bias;
	unsigned bits;
};
static const struct shape single = {23, 127, 32};
static const struct shape twice = {52, 1023, 64};

static uint64_t ones(unsigned count)
{
	return count == 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
}

static uint64_t make(const struct shape *shape, uint64_t sign, int64_t exp, uint64_t fraction)
{
	int64_t field = exp + shape->bias;

	if (field < 0)
		field = 0;
	if (field > 2 * (int64_t)shape->bias)
		field = 2 * (int64_t)shape->bias;
	return sign << (shape->bits - 1) | (uint64_t)field << shape->fraction |
	       (fraction & ones(shape->fraction));
}

/* A number with an exponent near `exp` and few or many bits set. */
static uint64_t near(struct rvrandom *random, const struct shape *shape, int64_t exp)
{
	uint64_t fraction = rvrandom_next(random);

	if (rvrandom_chance(random, 40)) /* trailing zeros make exact results and ties */
		fraction &= ~ones(rvrandom_below(random, shape->fraction + 1));
	else if (rvrandom_chance(random, 30))
		fraction |= ones(rvrandom_below(random, shape->fraction + 1));
	return make(shape, rvrandom_below(random, 2), exp + (int64_t)rvrandom_below(random, 5) - 2, fraction);
}

/* Exactly this exponent, and next to a power of two. */
static uint64_t beside(struct rvrandom *random, const struct shape *shape, int64_t exp)
{
	return make(shape, rvrandom_below(random, 2), exp, (uint64_t)rvrandom_below(random, 5) - 2);
}

static uint64_t special(struct rvrandom *random, const struct shape *shape)
{
	uint64_t infinity = ones(shape->bits - 1 - shape->fraction) << shape->fraction;
	uint64_t quiet = UINT64_C(1) << (shape->fraction - 1);
	uint64_t least = UINT64_C(1) << shape->fraction;
	uint64_t one = (uint64_t)shape->bias << shape->fraction;
	const uint64_t values[] = {0, 0, 1, 2, least - 1, least, least + 1, infinity - 1, infinity,
	        infinity | 1, infinity | quiet, infinity | quiet | 5, infinity | (quiet - 1), one, one,
	        one + 1, one - 1, one + least, one - least, ones(shape->bits - 1)};
	uint64_t sign = rvrandom_below(random, 2);

	return sign << (shape->bits - 1) | values[rvrandom_below(random, COUNT(values))];
}

/* Exponents that meet: results at the limits, at integers' limits, and anywhere. */
static int64_t exponent(struct rvrandom *random, const struct shape *shape)
{
	int64_t bias = shape->bias;
	int64_t fraction = shape->fraction;
	const int64_t exps[] = {0, 0, 1, -1, 31, 32, 63, 64, fraction, -fraction, bias, 1 - bias, -bias / 2,
	        bias / 2, 1 - bias + fraction};

	if (rvrandom_chance(random, 30))
		return (int64_t)rvrandom_below(random, 2 * shape->bias) - bias;
	return exps[rvrandom_below(random, COUNT(exps))];
}

static int64_t exponent_of(const struct shape *shape, uint64_t bits)
{
	uint64_t field = bits >> shape->fraction & ones(shape->bits - 1 - shape->fraction);

	return (int64_t)field - shape->bias;
}

static uint64_t minus_product(const struct shape *shape, uint64_t a, uint64_t b)
{
	double x, y;
	float u, v;

	if (shape == &twice) {
		memcpy(&x, &a, sizeof(x));
		memcpy(&y, &b, sizeof(y));
		x = -(x * y);
		memcpy(&a, &x, sizeof(a));
		return a;
	}
	memcpy(&u, &a, sizeof(u));
	memcpy(&v, &b, sizeof(v));
	u = -(u * v);
	a = 0;
	memcpy(&a, &u, sizeof(u));
	return a;
}

/* A sum that cancels, a product or quotient at a limit, or anything. */
static void fill_related(struct rvrandom *random, const struct shape *shape, uint64_t out[3])
{
	int64_t first = exponent(random, shape);

	out[0] = near(random, shape, first);
	out[1] = near(random, shape,
	        rvrandom_chance(random, 40)   ? first
	        : rvrandom_chance(random, 30) ? 1 - (int64_t)shape->bias - first
	        : rvrandom_chance(random, 30) ? (int64_t)shape->bias - first
	                                      : exponent(random, shape));
	out[2] = near(random, shape, exponent_of(shape, out[0]) + exponent_of(shape, out[1]));
	if (rvrandom_chance(random, 30)) /* a fused sum of which only rounding is left */
		out[2] = minus_product(shape, out[0], out[1]) ^ rvrandom_below(random, 2);
}

/* A product about the least normal number, from just below and just above. */
static void fill_least(struct rvrandom *random, const struct shape *shape, uint64_t out[3])
{
	int64_t first = (int64_t)rvrandom_below(random, shape->bias) - shape->bias / 2;
	int64_t least = 1 - (int64_t)shape->bias;

	out[0] = beside(random, shape, first);
	out[1] = beside(random, shape, least - first - (int64_t)rvrandom_below(random, 2));
	out[2] = beside(random, shape, least - (int64_t)shape->fraction - 2);
}

/* About half a unit in the last place added to a number, or to its product with about one. */
static void fill_half(struct rvrandom *random, const struct shape *shape, uint64_t out[3])
{
	int64_t first = (int64_t)rvrandom_below(random, shape->bias) - shape->bias / 2;
	int64_t half = first - (int64_t)shape->fraction - 1;

	out[0] = make(shape, rvrandom_below(random, 2), first, rvrandom_next(random));
	out[1] = rvrandom_chance(random, 50) ? beside(random, shape, half) : make(shape, 0, 0, 0);
	out[2] = beside(random, shape, half);
}

static void fill(struct rvrandom *random, const struct shape *shape, uint64_t out[3])
{
	if (rvrandom_chance(random, 15))
		fill_least(random, shape, out);
	else if (rvrandom_chance(random, 15))
		fill_half(random, shape, out);
	else
		fill_related(random, shape, out);
	for (unsigned i = 0; i < 3; i++)
		if (rvrandom_chance(random, 10))
			out[i] = special(random, shape);
}

void rvvalue_singles(struct rvrandom *random, uint64_t out[3])
{
	fill(random, &single, out);
	for (unsigned i = 0; i < 3; i++) {
		out[i] |= BOX;
		if (rvrandom_chance(random, 3))
			out[i] = rvrandom_next(random);
	}
}

void rvvalue_doubles(struct rvrandom *random, uint64_t out[3])
{
	fill(random, &twice, out);
}
