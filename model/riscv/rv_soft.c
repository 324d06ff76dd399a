/* SPDX-License-Identifier: MIT */
#include "rv_soft.h"

__extension__ typedef unsigned __int128 u128;

const struct rv_float rv_single = {.fraction = 23, .bias = 127};
const struct rv_float rv_double = {.fraction = 52, .bias = 1023};

enum kind {
	ZERO,
	FINITE,
	INFINITE,
	QUIET,
	SIGNALING,
};

/* A value taken apart: (-1)^negative * sig * 2^(exp - 63), bit 63 of sig set when FINITE. */
struct num {
	enum kind kind;
	bool negative;
	int exp;
	uint64_t sig;
};

#define SIG_TOP   63
#define WIDE_BITS 128
/* Where operands of an addition are put in 128 bits: two bits of headroom above, the rest catches what
 * alignment shifts out. */
#define ADD_TOP 125

static unsigned sign_bit(const struct rv_float *format)
{
	return format == &rv_double ? 63 : 31;
}

static uint64_t fraction_mask(const struct rv_float *format)
{
	return (UINT64_C(1) << format->fraction) - 1;
}

/* The exponent field of infinities and NaNs. */
static int top_field(const struct rv_float *format)
{
	return 2 * format->bias + 1;
}

static uint64_t infinity(const struct rv_float *format)
{
	return (uint64_t)top_field(format) << format->fraction;
}

static uint64_t nan_of(const struct rv_float *format)
{
	return infinity(format) | UINT64_C(1) << (format->fraction - 1);
}

static uint64_t with_sign(const struct rv_float *format, bool negative, uint64_t magnitude)
{
	return (uint64_t)negative << sign_bit(format) | magnitude;
}

static struct num unpack(const struct rv_float *format, uint64_t a)
{
	uint64_t fraction = a & fraction_mask(format);
	int field = (int)(a >> format->fraction) & top_field(format);
	struct num n = {.kind = FINITE, .negative = a >> sign_bit(format) & 1};
	unsigned shift;

	if (field == top_field(format)) {
		n.kind = fraction == 0 ? INFINITE : fraction >> (format->fraction - 1) ? QUIET : SIGNALING;
	} else if (field != 0) {
		n.sig = UINT64_C(1) << SIG_TOP | fraction << (SIG_TOP - format->fraction);
		n.exp = field - format->bias;
	} else if (fraction != 0) {
		shift = (unsigned)__builtin_clzll(fraction);
		n.sig = fraction << shift;
		n.exp = SIG_TOP - (int)shift + 1 - format->bias - (int)format->fraction;
	} else {
		n.kind = ZERO;
	}
	return n;
}

static bool is_nan(struct num n)
{
	return n.kind == QUIET || n.kind == SIGNALING;
}

static uint64_t invalid(struct rv_fenv env)
{
	*env.flags |= RV_NV;
	return nan_of(env.format);
}

/* The NaN an operation on these operands gives. */
static uint64_t propagate(struct rv_fenv env, struct num a, struct num b)
{
	if (a.kind == SIGNALING || b.kind == SIGNALING)
		*env.flags |= RV_NV;
	return nan_of(env.format);
}

/* Whether a magnitude goes up to the next one: `rest` is what is cut off, in units where `half` is half a
 * step, `sticky` that something nonzero lies below. */
static bool rounds_up(struct rv_fenv env, bool negative, bool odd, uint64_t rest, uint64_t half, bool sticky)
{
	bool inexact = rest != 0 || sticky;

	switch (env.rm) {
	case RV_RNE:
		return rest > half || (rest == half && (sticky || odd));
	case RV_RDN:
		return negative && inexact;
	case RV_RUP:
		return !negative && inexact;
	case RV_RMM:
		return rest >= half;
	default:
		return false;
	}
}

static uint64_t overflow(struct rv_fenv env, bool negative)
{
	bool to_infinity = env.rm == RV_RNE || env.rm == RV_RMM || (env.rm == RV_RUP && !negative) ||
	                   (env.rm == RV_RDN && negative);

	*env.flags |= RV_OF | RV_NX;
	return with_sign(env.format, negative, infinity(env.format) - (to_infinity ? 0 : 1));
}

/* A significand with what is below its 64 bits. */
struct cut {
	uint64_t sig;
	bool sticky;
};

static struct cut shift_right(struct cut cut, unsigned count)
{
	if (count == 0)
		return cut;
	if (count > SIG_TOP)
		return (struct cut){0, cut.sticky || cut.sig != 0};
	return (struct cut){cut.sig >> count, cut.sticky || cut.sig << (64 - count) != 0};
}

/* The stored significand: cut off `drop` bits, rounded. */
static uint64_t round_cut(struct rv_fenv env, bool negative, struct cut cut, bool *inexact)
{
	unsigned drop = SIG_TOP - env.format->fraction;
	uint64_t half = UINT64_C(1) << (drop - 1);
	uint64_t rest = cut.sig & (2 * half - 1);
	uint64_t kept = cut.sig >> drop;

	*inexact = rest != 0 || cut.sticky;
	return kept + rounds_up(env, negative, kept & 1, rest, half, cut.sticky);
}

/* Tiny after rounding: with an unbounded exponent, the rounded value is still below the least normal. */
static bool stays_tiny(struct rv_fenv env, bool negative, int exp, struct cut cut)
{
	bool inexact;

	if (exp < -env.format->bias)
		return true;
	return round_cut(env, negative, cut, &inexact) >> (env.format->fraction + 1) == 0;
}

/* Round and pack a value taken apart; bit 63 of cut.sig is set. */
static uint64_t pack(struct rv_fenv env, bool negative, int exp, struct cut cut)
{
	const struct rv_float *format = env.format;
	int least = 1 - format->bias;
	bool tiny = exp < least && stays_tiny(env, negative, exp, cut);
	uint64_t base = 0;
	bool inexact;
	uint64_t magnitude;

	if (exp > format->bias)
		return overflow(env, negative);
	if (exp < least)
		cut = shift_right(cut, (unsigned)(least - exp));
	else
		base = (uint64_t)(exp - least) << format->fraction;
	/* The implied bit adds one to the exponent field, and so does a carry out of rounding. */
	magnitude = base + round_cut(env, negative, cut, &inexact);
	if (magnitude >= infinity(format))
		return overflow(env, negative);
	if (inexact)
		*env.flags |= tiny ? RV_UF | RV_NX : RV_NX;
	return with_sign(format, negative, magnitude);
}

/* sig * 2^scale for any sig but 0; its lowest bit may stand for anything nonzero below. */
static uint64_t pack_wide(struct rv_fenv env, bool negative, int scale, u128 sig)
{
	uint64_t high = (uint64_t)(sig >> 64);
	unsigned zeros = (unsigned)(high ? __builtin_clzll(high) : 64 + __builtin_clzll((uint64_t)sig));

	sig <<= zeros;
	return pack(env, negative, scale - (int)zeros + WIDE_BITS - 1,
	        (struct cut){(uint64_t)(sig >> 64), (uint64_t)sig != 0});
}

static u128 shift_right_wide(u128 sig, unsigned count)
{
	if (count == 0)
		return sig;
	if (count >= WIDE_BITS)
		return sig != 0;
	return sig >> count | (sig << (WIDE_BITS - count) != 0);
}

static uint64_t zero_sum(struct rv_fenv env, bool a_negative, bool b_negative)
{
	bool negative = a_negative == b_negative ? a_negative : env.rm == RV_RDN;

	return with_sign(env.format, negative, 0);
}

/* A term of a sum: sig * 2^scale, sig below 2^(ADD_TOP + 1) with its top bit there or one lower. */
struct term {
	bool negative;
	int scale;
	u128 sig;
};

static uint64_t sum(struct rv_fenv env, struct term a, struct term b)
{
	struct term swap = a;

	if (a.scale < b.scale) {
		a = b;
		b = swap;
	}
	b.sig = shift_right_wide(b.sig, (unsigned)(a.scale - b.scale));
	if (a.negative == b.negative)
		return pack_wide(env, a.negative, a.scale, a.sig + b.sig);
	if (a.sig == b.sig)
		return zero_sum(env, a.negative, b.negative);
	if (a.sig > b.sig)
		return pack_wide(env, a.negative, a.scale, a.sig - b.sig);
	return pack_wide(env, b.negative, a.scale, b.sig - a.sig);
}

static struct term term_of(struct num n)
{
	return (struct term){n.negative, n.exp - ADD_TOP, (u128)n.sig << (ADD_TOP - SIG_TOP)};
}

uint64_t rv_soft_add(struct rv_fenv env, uint64_t a, uint64_t b)
{
	struct num x = unpack(env.format, a);
	struct num y = unpack(env.format, b);

	if (is_nan(x) || is_nan(y))
		return propagate(env, x, y);
	if (x.kind == INFINITE)
		return y.kind == INFINITE && x.negative != y.negative ? invalid(env) : a;
	if (y.kind == INFINITE)
		return b;
	if (x.kind == ZERO)
		return y.kind == ZERO ? zero_sum(env, x.negative, y.negative) : b;
	if (y.kind == ZERO)
		return a;
	return sum(env, term_of(x), term_of(y));
}

uint64_t rv_soft_mul(struct rv_fenv env, uint64_t a, uint64_t b)
{
	struct num x = unpack(env.format, a);
	struct num y = unpack(env.format, b);
	bool negative = x.negative != y.negative;

	if (is_nan(x) || is_nan(y))
		return propagate(env, x, y);
	if (x.kind == INFINITE || y.kind == INFINITE) {
		if (x.kind == ZERO || y.kind == ZERO)
			return invalid(env);
		return with_sign(env.format, negative, infinity(env.format));
	}
	if (x.kind == ZERO || y.kind == ZERO)
		return with_sign(env.format, negative, 0);
	return pack_wide(env, negative, x.exp + y.exp - 2 * SIG_TOP, (u128)x.sig * y.sig);
}

uint64_t rv_soft_div(struct rv_fenv env, uint64_t a, uint64_t b)
{
	struct num x = unpack(env.format, a);
	struct num y = unpack(env.format, b);
	bool negative = x.negative != y.negative;
	u128 dividend = (u128)x.sig << 64;
	u128 quotient;

	if (is_nan(x) || is_nan(y))
		return propagate(env, x, y);
	if (x.kind == y.kind && x.kind != FINITE)
		return invalid(env);
	if (x.kind == INFINITE || y.kind == ZERO) {
		*env.flags |= x.kind == FINITE ? RV_DZ : 0;
		return with_sign(env.format, negative, infinity(env.format));
	}
	if (x.kind == ZERO || y.kind == INFINITE)
		return with_sign(env.format, negative, 0);
	quotient = dividend / y.sig;
	return pack_wide(env, negative, x.exp - y.exp - 65, quotient << 1 | (dividend % y.sig != 0));
}

/* The root of a value in [2^126, 2^128), rounded down, by one bit a step. */
static uint64_t root(u128 value, bool *rest)
{
	uint64_t result = 0;

	for (uint64_t bit = UINT64_C(1) << SIG_TOP; bit != 0; bit >>= 1) {
		uint64_t trial = result | bit;

		if ((u128)trial * trial <= value)
			result = trial;
	}
	*rest = (u128)result * result != value;
	return result;
}

uint64_t rv_soft_sqrt(struct rv_fenv env, uint64_t a)
{
	struct num x = unpack(env.format, a);
	/* The scale under the root must be even, with as many bits as fit. */
	int scale = x.exp - SIG_TOP;
	unsigned shift = scale % 2 == 0 ? 64 : 63;
	uint64_t result;
	bool rest;

	if (is_nan(x))
		return propagate(env, x, x);
	if (x.kind == ZERO)
		return a;
	if (x.negative)
		return invalid(env);
	if (x.kind == INFINITE)
		return a;
	result = root((u128)x.sig << shift, &rest);
	return pack_wide(env, false, (scale - (int)shift) / 2 - 1, (u128)result << 1 | rest);
}

/* The product, exact: its low bits are zero, so two can be given up for headroom. */
static struct term product_of(struct num x, struct num y)
{
	return (struct term){
	        x.negative != y.negative, x.exp + y.exp - 2 * SIG_TOP + 2, (u128)x.sig * y.sig >> 2};
}

uint64_t rv_soft_fma(struct rv_fenv env, uint64_t a, uint64_t b, uint64_t c)
{
	struct num x = unpack(env.format, a);
	struct num y = unpack(env.format, b);
	struct num z = unpack(env.format, c);
	bool negative = x.negative != y.negative;
	bool infinite = x.kind == INFINITE || y.kind == INFINITE;
	bool zero = x.kind == ZERO || y.kind == ZERO;

	/* Infinity times zero is invalid even with a quiet NaN as addend. */
	if (infinite && zero)
		return invalid(env);
	if (is_nan(x) || is_nan(y) || is_nan(z)) {
		propagate(env, x, y);
		return propagate(env, z, z);
	}
	if (infinite) {
		if (z.kind == INFINITE && z.negative != negative)
			return invalid(env);
		return with_sign(env.format, negative, infinity(env.format));
	}
	if (z.kind == INFINITE)
		return c;
	if (zero)
		return z.kind == ZERO ? zero_sum(env, negative, z.negative) : c;
	if (z.kind == ZERO)
		return pack_wide(env, negative, x.exp + y.exp - 2 * SIG_TOP, (u128)x.sig * y.sig);
	return sum(env, product_of(x, y), term_of(z));
}

uint64_t rv_soft_negate(const struct rv_float *format, uint64_t value)
{
	return value ^ UINT64_C(1) << sign_bit(format);
}

uint64_t rv_soft_convert(struct rv_fenv env, const struct rv_float *from, uint64_t a)
{
	struct num x = unpack(from, a);

	switch (x.kind) {
	case ZERO:
		return with_sign(env.format, x.negative, 0);
	case INFINITE:
		return with_sign(env.format, x.negative, infinity(env.format));
	case FINITE:
		return pack(env, x.negative, x.exp, (struct cut){x.sig, false});
	default:
		return propagate(env, x, x);
	}
}

uint64_t rv_soft_from_int(struct rv_fenv env, bool negative, uint64_t magnitude)
{
	return magnitude == 0 ? 0 : pack_wide(env, negative, 0, magnitude);
}

static uint64_t saturate(struct rv_fenv env, bool negative, unsigned bits, bool is_signed)
{
	uint64_t largest = UINT64_MAX >> (64 - bits + is_signed);

	*env.flags |= RV_NV;
	if (negative)
		return is_signed ? ~largest : 0;
	return !is_signed && bits == 32 ? UINT64_MAX : largest;
}

/* The integer part of |x| rounded, x.exp at most 63; what is lost shows in *inexact. */
static uint64_t to_magnitude(struct rv_fenv env, struct num x, bool *inexact)
{
	/* Integer and fraction side by side in 128 bits. */
	u128 fixed = shift_right_wide((u128)x.sig << 64, (unsigned)(SIG_TOP - x.exp));
	uint64_t whole = (uint64_t)(fixed >> 64);
	uint64_t rest = (uint64_t)fixed;

	*inexact = rest != 0;
	return whole + rounds_up(env, x.negative, whole & 1, rest, UINT64_C(1) << 63, false);
}

uint64_t rv_soft_to_int(struct rv_fenv env, uint64_t a, unsigned bits, bool is_signed)
{
	struct num x = unpack(env.format, a);
	uint64_t limit = UINT64_MAX >> (64 - bits + is_signed);
	bool inexact;
	uint64_t magnitude;

	if (is_nan(x))
		return saturate(env, false, bits, is_signed);
	if (x.kind == ZERO)
		return 0;
	if (x.kind == INFINITE || x.exp > SIG_TOP)
		return saturate(env, x.negative, bits, is_signed);
	magnitude = to_magnitude(env, x, &inexact);
	if (x.negative)
		limit = is_signed ? limit + 1 : 0;
	if (magnitude > limit)
		return saturate(env, x.negative, bits, is_signed);
	*env.flags |= inexact ? RV_NX : 0;
	if (x.negative)
		return 0 - magnitude;
	return bits == 32 ? (uint64_t)(int32_t)magnitude : magnitude;
}

/* Bit patterns in the order of the numbers, -0 just below +0. */
static int64_t ordinal(const struct rv_float *format, uint64_t a)
{
	uint64_t magnitude = a & ((UINT64_C(1) << sign_bit(format)) - 1);

	return a >> sign_bit(format) & 1 ? -1 - (int64_t)magnitude : (int64_t)magnitude;
}

enum rv_order rv_soft_compare(struct rv_fenv env, uint64_t a, uint64_t b, bool signaling)
{
	struct num x = unpack(env.format, a);
	struct num y = unpack(env.format, b);

	if (is_nan(x) || is_nan(y)) {
		propagate(env, x, y);
		*env.flags |= signaling ? RV_NV : 0;
		return RV_UNORDERED;
	}
	if (x.kind == ZERO && y.kind == ZERO)
		return RV_EQUAL;
	if (a == b)
		return RV_EQUAL;
	return ordinal(env.format, a) < ordinal(env.format, b) ? RV_LESS : RV_GREATER;
}

/* For a NaN among them: the other one, or the canonical NaN. */
static bool pick_number(struct rv_fenv env, uint64_t a, uint64_t b, uint64_t *result)
{
	struct num x = unpack(env.format, a);
	struct num y = unpack(env.format, b);

	if (!is_nan(x) && !is_nan(y))
		return false;
	propagate(env, x, y);
	*result = !is_nan(x) ? a : !is_nan(y) ? b : nan_of(env.format);
	return true;
}

uint64_t rv_soft_min(struct rv_fenv env, uint64_t a, uint64_t b)
{
	uint64_t result;

	if (pick_number(env, a, b, &result))
		return result;
	return ordinal(env.format, a) < ordinal(env.format, b) ? a : b;
}

uint64_t rv_soft_max(struct rv_fenv env, uint64_t a, uint64_t b)
{
	uint64_t result;

	if (pick_number(env, a, b, &result))
		return result;
	return ordinal(env.format, a) > ordinal(env.format, b) ? a : b;
}

uint64_t rv_soft_classify(const struct rv_float *format, uint64_t a)
{
	struct num x = unpack(format, a);
	/* fclass counts from -infinity (bit 0) to +infinity (bit 7), then the NaNs. */
	bool subnormal = x.kind == FINITE && x.exp < 1 - format->bias;
	unsigned from_infinity = x.kind == INFINITE ? 0 : x.kind == ZERO ? 3 : subnormal ? 2 : 1;

	if (is_nan(x))
		return x.kind == SIGNALING ? 1 << 8 : 1 << 9;
	return UINT64_C(1) << (x.negative ? from_infinity : 7 - from_infinity);
}
