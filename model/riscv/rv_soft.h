/* SPDX-License-Identifier: MIT */
/*
 * IEEE 754-2008 binary32 and binary64 in integers, with what RISC-V chose where the standard leaves a choice:
 * results that are NaN are canonical, tininess is detected after rounding, all five rounding modes.
 * Independent of the host's floating point and its environment. Values are bit patterns; a binary32 is in the
 * low half, the upper half zero.
 *
 * Pure functions; any thread. `flags` takes the exceptions by OR, in fflags layout.
 */
#ifndef RV_SOFT_H
#define RV_SOFT_H

#include <stdbool.h>
#include <stdint.h>

/* Rounding modes, as in frm. */
enum rv_rm {
	RV_RNE,
	RV_RTZ,
	RV_RDN,
	RV_RUP,
	RV_RMM,
};

enum rv_flag {
	RV_NX = 1,
	RV_UF = 2,
	RV_OF = 4,
	RV_DZ = 8,
	RV_NV = 16,
};

/* A format. `fraction` bits are stored, one more is implied. */
struct rv_float {
	unsigned fraction;
	int bias;
};
extern const struct rv_float rv_single;
extern const struct rv_float rv_double;

#define RV_SINGLE_NAN UINT64_C(0x7fc00000)

/* The format of the operands and the result, the rounding mode, where exceptions go. */
struct rv_fenv {
	const struct rv_float *format;
	enum rv_rm rm;
	uint32_t *flags;
};

uint64_t rv_soft_add(struct rv_fenv env, uint64_t a, uint64_t b);
uint64_t rv_soft_mul(struct rv_fenv env, uint64_t a, uint64_t b);
uint64_t rv_soft_div(struct rv_fenv env, uint64_t a, uint64_t b);
uint64_t rv_soft_sqrt(struct rv_fenv env, uint64_t a);
/* a * b + c, rounded once */
uint64_t rv_soft_fma(struct rv_fenv env, uint64_t a, uint64_t b, uint64_t c);

/* -value, NaN or not */
uint64_t rv_soft_negate(const struct rv_float *format, uint64_t value);

/* env.format is the result's */
uint64_t rv_soft_convert(struct rv_fenv env, const struct rv_float *from, uint64_t a);
/* (negative ? -magnitude : magnitude) */
uint64_t rv_soft_from_int(struct rv_fenv env, bool negative, uint64_t magnitude);

/* To an integer of `bits` (32 or 64) bits, saturated with NV, NaN to the largest; sign-extended to 64 bits as
 * a register holds it, also when unsigned. */
uint64_t rv_soft_to_int(struct rv_fenv env, uint64_t a, unsigned bits, bool is_signed);

enum rv_order {
	RV_LESS,
	RV_EQUAL,
	RV_GREATER,
	RV_UNORDERED,
};
/* Raises NV for a signaling NaN, and with `signaling` for any NaN. rm is not used. */
enum rv_order rv_soft_compare(struct rv_fenv env, uint64_t a, uint64_t b, bool signaling);

/* minimumNumber and maximumNumber of IEEE 754-2019, -0 below +0 */
uint64_t rv_soft_min(struct rv_fenv env, uint64_t a, uint64_t b);
uint64_t rv_soft_max(struct rv_fenv env, uint64_t a, uint64_t b);

/* The one-hot result of fclass */
uint64_t rv_soft_classify(const struct rv_float *format, uint64_t a);

#endif
