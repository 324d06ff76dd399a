/* SPDX-License-Identifier: MIT */
/*
 * Host arithmetic that stands in for rv_soft.h, rounding to nearest even. A result is used when it is
 * *plain*: then the operands were finite, nothing overflowed, nothing was tiny, and inexact is the only flag
 * there can be. Whether it is raised is told by lost_*(): what rounding took away, computed without error
 * (Knuth's sum, Dekker's product by fma, Boldo and Muller's error of a fused multiplication), never by
 * looking at the host's flags.
 *
 * lost_*() answer 0 (exact), RV_NX (inexact), or UNSURE where the argument does not hold, near the limits.
 * Compile with -ffp-contract=off: each operation here must round.
 */
#ifndef RV_HOST_H
#define RV_HOST_H

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include "rv_soft.h"

#define UNSURE (-1)
/* Below, an error term could be subnormal; above, a sum of two could overflow. */
#define SMALL_PRODUCT 0x1p-900
#define LARGE_PRODUCT 0x1p+1000

_Static_assert(FLT_EVAL_METHOD == 0, "the host must round each operation to its own type");

/* Strictly above the least normal: that one may have been tiny before rounding. */
static inline bool plain_d(double value)
{
	return fabs(value) > DBL_MIN && fabs(value) <= DBL_MAX;
}

static inline bool plain_s(float value)
{
	return fabsf(value) > FLT_MIN && fabsf(value) <= FLT_MAX;
}

static inline int lost_if(bool inexact)
{
	return inexact ? RV_NX : 0;
}

/* x + y - sum, where sum is x + y rounded. */
static inline double sum_error_d(double x, double y, double sum)
{
	double y_part = sum - x;
	double x_part = sum - y_part;

	return (x - x_part) + (y - y_part);
}

static inline int lost_sum_d(double x, double y, double sum)
{
	double error = sum_error_d(x, y, sum);

	return isfinite(error) ? lost_if(error != 0) : UNSURE;
}

static inline int lost_product_d(double x, double y, double product)
{
	return fabs(product) > SMALL_PRODUCT ? lost_if(fma(x, y, -product) != 0) : UNSURE;
}

static inline int lost_quotient_d(double x, double y, double quotient)
{
	return fabs(x) > SMALL_PRODUCT ? lost_if(fma(quotient, y, -x) != 0) : UNSURE;
}

static inline int lost_root_d(double x, double root)
{
	return x > SMALL_PRODUCT ? lost_if(fma(root, root, -x) != 0) : UNSURE;
}

static inline int lost_fused_d(double x, double y, double z, double result)
{
	double high = x * y;
	double low = fma(x, y, -high);
	double lower = z + low;
	double lower_error = sum_error_d(z, low, lower);
	double upper = high + lower;
	double error = (upper - result) + sum_error_d(high, lower, upper) + lower_error;

	if (x == 0 || y == 0)
		return 0; /* the result is plain, so it is z */
	if (!(fabs(high) > SMALL_PRODUCT && fabs(high) < LARGE_PRODUCT) || !isfinite(error))
		return UNSURE;
	return lost_if(error != 0);
}

/* Of singles: a product of two is exact as a double. */
static inline int lost_sum_s(float x, float y, float sum)
{
	float y_part = sum - x;
	float x_part = sum - y_part;
	float error = (x - x_part) + (y - y_part);

	return isfinite(error) ? lost_if(error != 0) : UNSURE;
}

static inline int lost_product_s(float x, float y, float product)
{
	return lost_if((double)x * y != product);
}

static inline int lost_quotient_s(float x, float y, float quotient)
{
	return lost_if((double)quotient * y != x);
}

static inline int lost_root_s(float x, float root)
{
	return lost_if((double)root * root != x);
}

static inline int lost_fused_s(float x, float y, float z, float result)
{
	double product = (double)x * y;
	double sum = product + z;

	return lost_if(sum_error_d(product, z, sum) != 0 || sum != result);
}

/* Whether an integer has more significant bits than `digits`. */
static inline int lost_digits(uint64_t magnitude, int digits)
{
	return magnitude == 0 ? 0 : lost_if(magnitude >> __builtin_ctzll(magnitude) >> digits != 0);
}

#endif
