/* SPDX-License-Identifier: MIT */
/*
 * The instructions of F and D on registers. The truth is rv_soft.c; rv_host.h is used where it comes to the
 * same, which is nearly always.
 */
#include <string.h>
#include "rv_core.h"
#include "rv_host.h"
#include "rv_soft.h"

#define SIGN_S UINT64_C(0x80000000)
#define SIGN_D (UINT64_C(1) << 63)

static double as_double(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static uint64_t from_double(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static float as_single(uint64_t bits)
{
	uint32_t low = (uint32_t)bits;
	float value;

	memcpy(&value, &low, sizeof(value));
	return value;
}

static uint64_t from_single(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* A single as an operand: anything not NaN-boxed is the canonical NaN. */
static uint64_t get_s(const struct rv_hart *hart, unsigned reg)
{
	uint64_t value = hart->f[reg];

	return value >= RV_NAN_BOX ? value & UINT32_MAX : RV_SINGLE_NAN;
}

static void set_s(struct rv_hart *hart, unsigned reg, uint64_t value)
{
	hart->f[reg] = value | RV_NAN_BOX;
}

static uint64_t get_d(const struct rv_hart *hart, unsigned reg)
{
	return hart->f[reg];
}

static void set_d(struct rv_hart *hart, unsigned reg, uint64_t value)
{
	hart->f[reg] = value;
}

static unsigned mode(const struct rv_hart *hart, const struct rv_slot *op)
{
	return op->rm == RV_RM_DYN ? hart->fcsr >> RV_FRM_SHIFT : op->rm;
}

static struct rv_fenv env_s(struct rv_hart *hart, unsigned rm)
{
	return (struct rv_fenv){&rv_single, (enum rv_rm)rm, &hart->fcsr};
}

static struct rv_fenv env_d(struct rv_hart *hart, unsigned rm)
{
	return (struct rv_fenv){&rv_double, (enum rv_rm)rm, &hart->fcsr};
}

/* Raise what a host result lost; false when it cannot be used. With inexact up already there is nothing to
 * find out, so `lost` is an expression that is not evaluated then. */
#define USABLE(plain, lost) ((plain) && ((hart->fcsr & RV_NX) || raise_lost(hart, lost)))

static bool raise_lost(struct rv_hart *hart, int lost)
{
	if (lost == UNSURE)
		return false;
	hart->fcsr |= (uint32_t)lost;
	return true;
}

/* One instruction with a rounding mode: `fast` on the host operands x, y, z gives r, of which `lost` tells
 * what rounding took; `soft` does it on the bit patterns a, b, c. `t` is s or d. */
#define ARITHMETIC(name, t, stall, fast, lost, soft)                                                         \
	bool rv_exec_##name(struct rv_hart *hart, const struct rv_slot *op)                                  \
	{                                                                                                    \
		unsigned rm = mode(hart, op);                                                                \
		uint64_t a = get_##t(hart, op->rs1);                                                         \
		uint64_t b = get_##t(hart, op->rs2);                                                         \
		uint64_t c = get_##t(hart, op->rs3);                                                         \
		host_##t##_type x = host_##t##_value(a), y = host_##t##_value(b), z = host_##t##_value(c);   \
		host_##t##_type r = fast;                                                                    \
                                                                                                             \
		(void)b, (void)c, (void)y, (void)z;                                                          \
		if (rm > RV_RMM)                                                                             \
			return false;                                                                        \
		hart->count.stalls += stall;                                                                 \
		if (rm == RV_RNE && USABLE(plain_##t(r), lost))                                              \
			set_##t(hart, op->rd, host_##t##_bits(r));                                           \
		else                                                                                         \
			set_##t(hart, op->rd, soft);                                                         \
		return true;                                                                                 \
	}
#define host_s_type   float
#define host_d_type   double
#define host_s_value  as_single
#define host_d_value  as_double
#define host_s_bits   from_single
#define host_d_bits   from_double
#define host_s_digits FLT_MANT_DIG
#define host_d_digits DBL_MANT_DIG
#define NEG_S(value)  rv_soft_negate(&rv_single, value)
#define NEG_D(value)  rv_soft_negate(&rv_double, value)

ARITHMETIC(fadd_s, s, RV_STALL_FP, x + y, lost_sum_s(x, y, r), rv_soft_add(env_s(hart, rm), a, b))
ARITHMETIC(fadd_d, d, RV_STALL_FP, x + y, lost_sum_d(x, y, r), rv_soft_add(env_d(hart, rm), a, b))
ARITHMETIC(fsub_s, s, RV_STALL_FP, x - y, lost_sum_s(x, -y, r), rv_soft_add(env_s(hart, rm), a, NEG_S(b)))
ARITHMETIC(fsub_d, d, RV_STALL_FP, x - y, lost_sum_d(x, -y, r), rv_soft_add(env_d(hart, rm), a, NEG_D(b)))
ARITHMETIC(fmul_s, s, RV_STALL_FP, x *y, lost_product_s(x, y, r), rv_soft_mul(env_s(hart, rm), a, b))
ARITHMETIC(fmul_d, d, RV_STALL_FP, x *y, lost_product_d(x, y, r), rv_soft_mul(env_d(hart, rm), a, b))
ARITHMETIC(fdiv_s, s, RV_STALL_FPDIV, x / y, lost_quotient_s(x, y, r), rv_soft_div(env_s(hart, rm), a, b))
ARITHMETIC(fdiv_d, d, RV_STALL_FPDIV, x / y, lost_quotient_d(x, y, r), rv_soft_div(env_d(hart, rm), a, b))
ARITHMETIC(fsqrt_s, s, RV_STALL_FPDIV, sqrtf(x), lost_root_s(x, r), rv_soft_sqrt(env_s(hart, rm), a))
ARITHMETIC(fsqrt_d, d, RV_STALL_FPDIV, sqrt(x), lost_root_d(x, r), rv_soft_sqrt(env_d(hart, rm), a))
ARITHMETIC(fmadd_s, s, RV_STALL_FP, fmaf(x, y, z), lost_fused_s(x, y, z, r),
        rv_soft_fma(env_s(hart, rm), a, b, c))
ARITHMETIC(fmadd_d, d, RV_STALL_FP, fma(x, y, z), lost_fused_d(x, y, z, r),
        rv_soft_fma(env_d(hart, rm), a, b, c))
ARITHMETIC(fmsub_s, s, RV_STALL_FP, fmaf(x, y, -z), lost_fused_s(x, y, -z, r),
        rv_soft_fma(env_s(hart, rm), a, b, NEG_S(c)))
ARITHMETIC(fmsub_d, d, RV_STALL_FP, fma(x, y, -z), lost_fused_d(x, y, -z, r),
        rv_soft_fma(env_d(hart, rm), a, b, NEG_D(c)))
ARITHMETIC(fnmsub_s, s, RV_STALL_FP, fmaf(-x, y, z), lost_fused_s(-x, y, z, r),
        rv_soft_fma(env_s(hart, rm), NEG_S(a), b, c))
ARITHMETIC(fnmsub_d, d, RV_STALL_FP, fma(-x, y, z), lost_fused_d(-x, y, z, r),
        rv_soft_fma(env_d(hart, rm), NEG_D(a), b, c))
ARITHMETIC(fnmadd_s, s, RV_STALL_FP, fmaf(-x, y, -z), lost_fused_s(-x, y, -z, r),
        rv_soft_fma(env_s(hart, rm), NEG_S(a), b, NEG_S(c)))
ARITHMETIC(fnmadd_d, d, RV_STALL_FP, fma(-x, y, -z), lost_fused_d(-x, y, -z, r),
        rv_soft_fma(env_d(hart, rm), NEG_D(a), b, NEG_D(c)))

bool rv_exec_fcvt_s_d(struct rv_hart *hart, const struct rv_slot *op)
{
	unsigned rm = mode(hart, op);
	uint64_t a = get_d(hart, op->rs1);
	float r = (float)as_double(a);

	if (rm > RV_RMM)
		return false;
	hart->count.stalls += RV_STALL_FP;
	if (rm == RV_RNE && USABLE(plain_s(r), lost_if((double)r != as_double(a))))
		set_s(hart, op->rd, from_single(r));
	else
		set_s(hart, op->rd, rv_soft_convert(env_s(hart, rm), &rv_double, a));
	return true;
}

bool rv_exec_fcvt_d_s(struct rv_hart *hart, const struct rv_slot *op)
{
	unsigned rm = mode(hart, op);
	uint64_t a = get_s(hart, op->rs1);
	double r = as_single(a);

	if (rm > RV_RMM)
		return false;
	hart->count.stalls += RV_STALL_FP;
	if (plain_d(r)) /* always exact */
		set_d(hart, op->rd, from_double(r));
	else
		set_d(hart, op->rd, rv_soft_convert(env_d(hart, rm), &rv_single, a));
	return true;
}

/* From integers: `type` is the operand's C type. */
#define FROM_INT(name, t, type)                                                                              \
	bool rv_exec_##name(struct rv_hart *hart, const struct rv_slot *op)                                  \
	{                                                                                                    \
		unsigned rm = mode(hart, op);                                                                \
		type value = (type)hart->x[op->rs1];                                                         \
		bool negative = value < 1 && value != 0;                                                     \
		uint64_t magnitude = negative ? 0 - (uint64_t)value : (uint64_t)value;                       \
		host_##t##_type r = (host_##t##_type)value;                                                  \
                                                                                                             \
		if (rm > RV_RMM)                                                                             \
			return false;                                                                        \
		hart->count.stalls += RV_STALL_FP;                                                           \
		if (rm == RV_RNE && USABLE(true, lost_digits(magnitude, host_##t##_digits)))                 \
			set_##t(hart, op->rd, host_##t##_bits(r));                                           \
		else                                                                                         \
			set_##t(hart, op->rd, rv_soft_from_int(env_##t(hart, rm), negative, magnitude));     \
		return true;                                                                                 \
	}

FROM_INT(fcvt_s_w, s, int32_t)
FROM_INT(fcvt_s_wu, s, uint32_t)
FROM_INT(fcvt_s_l, s, int64_t)
FROM_INT(fcvt_s_lu, s, uint64_t)
FROM_INT(fcvt_d_w, d, int32_t)
FROM_INT(fcvt_d_wu, d, uint32_t)
FROM_INT(fcvt_d_l, d, int64_t)
FROM_INT(fcvt_d_lu, d, uint64_t)

/* To integers: C's conversion truncates. Below 2^31 every target can hold the result of a positive value. */
static bool host_to_int(struct rv_hart *hart, unsigned rm, double value, uint64_t *result)
{
	const double limit = 2147483648.0;

	if (rm != RV_RTZ || !(value >= 0 && value < limit))
		return false;
	*result = (uint64_t)value;
	hart->fcsr |= (uint32_t)lost_if((double)*result != value);
	return true;
}

#define TO_INT(name, t, width, is_signed)                                                                    \
	bool rv_exec_##name(struct rv_hart *hart, const struct rv_slot *op)                                  \
	{                                                                                                    \
		unsigned rm = mode(hart, op);                                                                \
		uint64_t a = get_##t(hart, op->rs1);                                                         \
		uint64_t result;                                                                             \
                                                                                                             \
		if (rm > RV_RMM)                                                                             \
			return false;                                                                        \
		hart->count.stalls += RV_STALL_FP;                                                           \
		if (!host_to_int(hart, rm, (double)host_##t##_value(a), &result))                            \
			result = rv_soft_to_int(env_##t(hart, rm), a, width, is_signed);                     \
		hart->x[op->rd] = result;                                                                    \
		return true;                                                                                 \
	}

TO_INT(fcvt_w_s, s, 32, true)
TO_INT(fcvt_wu_s, s, 32, false)
TO_INT(fcvt_l_s, s, 64, true)
TO_INT(fcvt_lu_s, s, 64, false)
TO_INT(fcvt_w_d, d, 32, true)
TO_INT(fcvt_wu_d, d, 32, false)
TO_INT(fcvt_l_d, d, 64, true)
TO_INT(fcvt_lu_d, d, 64, false)

/* Instructions without a rounding mode: `to` is f (an f register of type t) or x. */
#define SIMPLE_F(name, t, value)                                                                             \
	bool rv_exec_##name(struct rv_hart *hart, const struct rv_slot *op)                                  \
	{                                                                                                    \
		uint64_t a = get_##t(hart, op->rs1);                                                         \
		uint64_t b = get_##t(hart, op->rs2);                                                         \
                                                                                                             \
		set_##t(hart, op->rd, value);                                                                \
		return true;                                                                                 \
	}
#define SIMPLE_X(name, t, value)                                                                             \
	bool rv_exec_##name(struct rv_hart *hart, const struct rv_slot *op)                                  \
	{                                                                                                    \
		uint64_t a = get_##t(hart, op->rs1);                                                         \
		uint64_t b = get_##t(hart, op->rs2);                                                         \
                                                                                                             \
		(void)b;                                                                                     \
		hart->x[op->rd] = value;                                                                     \
		return true;                                                                                 \
	}

SIMPLE_F(fsgnj_s, s, (a & ~SIGN_S) | (b & SIGN_S))
SIMPLE_F(fsgnj_d, d, (a & ~SIGN_D) | (b & SIGN_D))
SIMPLE_F(fsgnjn_s, s, (a & ~SIGN_S) | (~b & SIGN_S))
SIMPLE_F(fsgnjn_d, d, (a & ~SIGN_D) | (~b & SIGN_D))
SIMPLE_F(fsgnjx_s, s, a ^ (b & SIGN_S))
SIMPLE_F(fsgnjx_d, d, a ^ (b & SIGN_D))
SIMPLE_F(fmin_s, s, rv_soft_min(env_s(hart, RV_RNE), a, b))
SIMPLE_F(fmin_d, d, rv_soft_min(env_d(hart, RV_RNE), a, b))
SIMPLE_F(fmax_s, s, rv_soft_max(env_s(hart, RV_RNE), a, b))
SIMPLE_F(fmax_d, d, rv_soft_max(env_d(hart, RV_RNE), a, b))
/* Comparisons of numbers raise nothing, and are the host's. */
#define COMPARE(name, t, operator, signaling, outcome)                                                       \
	SIMPLE_X(name, t,                                                                                    \
	        isunordered(host_##t##_value(a), host_##t##_value(b))                                        \
	                ? rv_soft_compare(env_##t(hart, RV_RNE), a, b, signaling) outcome                    \
	                : host_##t##_value(a)                                                                \
	                  operator host_##t##_value(b))

COMPARE(feq_s, s, ==, false, == RV_EQUAL)
COMPARE(feq_d, d, ==, false, == RV_EQUAL)
COMPARE(flt_s, s, <, true, == RV_LESS)
COMPARE(flt_d, d, <, true, == RV_LESS)
COMPARE(fle_s, s, <=, true, <= RV_EQUAL)
COMPARE(fle_d, d, <=, true, <= RV_EQUAL)
SIMPLE_X(fclass_s, s, rv_soft_classify(&rv_single, a))
SIMPLE_X(fclass_d, d, rv_soft_classify(&rv_double, a))
/* Moves take the bits as they are, boxed or not. */
SIMPLE_X(fmv_x_w, d, (uint64_t)(int32_t)a)
SIMPLE_X(fmv_x_d, d, a)

bool rv_exec_fmv_w_x(struct rv_hart *hart, const struct rv_slot *op)
{
	set_s(hart, op->rd, hart->x[op->rs1] & UINT32_MAX);
	return true;
}

bool rv_exec_fmv_d_x(struct rv_hart *hart, const struct rv_slot *op)
{
	set_d(hart, op->rd, hart->x[op->rs1]);
	return true;
}
