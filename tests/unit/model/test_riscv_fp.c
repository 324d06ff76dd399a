/* SPDX-License-Identifier: MIT */
/* What the differential test cannot show without QEMU: the two implementations of floating point agree with
 * each other, modes that do not exist are refused, and some results that are known. */
#include <math.h>
#include <string.h>
#include "test.h"
#include "riscv_machine.h"
#include "rv_core.h"
#include "rv_soft.h"

enum {
	F_RD = 1,
	F_RS1 = 2,
	F_RS2 = 3,
	F_RS3 = 4,
	X_REG = 10,
	OPERANDS = 20000,
	MANY = 10,
};
#define CODE MACHINE_CODE
#define BOX  UINT64_C(0xffffffff00000000)

static uint32_t encode(unsigned code, unsigned rm)
{
	const struct rv_insn *insn = rv_isa_insn(code);
	bool to_x = insn->format == RV_FMT_XF_RM || insn->format == RV_FMT_XF || insn->format == RV_FMT_XFF;
	bool from_x = insn->format == RV_FMT_FX_RM || insn->format == RV_FMT_FX;
	uint32_t rd = to_x ? X_REG : F_RD;
	uint32_t rs1 = from_x ? X_REG : F_RS1;
	uint32_t fields = rd << 7 | rs1 << 15 | (uint32_t)F_RS2 << 20 | (uint32_t)F_RS3 << 27 | rm << 12;

	return insn->match | (fields & ~insn->mask);
}

static bool has_rm(unsigned code)
{
	return !(rv_isa_insn(code)->mask & 7u << 12);
}

static void rounding_modes_that_do_not_exist_are_illegal(void **state)
{
	struct machine *m = machine_new();
	unsigned tried = 0;

	(void)state;
	for (unsigned code = RV_OP_fmadd_s; code < RV_OP_COUNT; code++) {
		if (!has_rm(code))
			continue;
		for (unsigned rm = 0; rm < 8; rm++) {
			for (unsigned frm = 0; frm < 8; frm++) {
				bool bad = rm == 5 || rm == 6 || (rm == 7 && frm > 4);

				m->hart.pc = MACHINE_CODE_AT(m, CODE, encode(code, rm), I_ECALL) - 8;
				rv_bus_flush(m->bus, CODE, 1);
				m->hart.fcsr = frm << RV_FRM_SHIFT;
				assert_int_equal(rv_run(m->bus, &m->hart, MANY), bad ? RV_ILLEGAL : RV_ECALL);
				assert_int_equal(m->hart.pc, CODE + (bad ? 0 : 4));
				tried++;
			}
		}
	}
	/* For each format 4 fused, 4 of two operands, a root, 4 integers each way; 2 between the formats. */
	assert_int_equal(tried, (2 * 17 + 2) * 64);
	machine_free(m);
}

static uint64_t scramble(uint64_t *seed)
{
	uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* Exponents close together or anywhere, few or many fraction bits. */
static uint64_t operand(uint64_t *seed, bool is_single)
{
	unsigned fraction = is_single ? 23 : 52;
	uint64_t bias = is_single ? 127 : 1023;
	uint64_t value = scramble(seed);

	if (scramble(seed) % 4 != 0) {
		uint64_t field = bias - 3 + scramble(seed) % 7;

		value &= (UINT64_C(1) << fraction) - 1;
		if (scramble(seed) % 2)
			value &= ~((UINT64_C(1) << scramble(seed) % fraction) - 1);
		value |= field << fraction | (scramble(seed) & 1) << (is_single ? 31 : 63);
	}
	return is_single ? value | BOX : value;
}

/* The result by integers alone, of the instructions for which the interpreter may use the host. */
static bool by_integers(const struct rv_hart *hart, unsigned code, struct rv_fenv env, uint64_t *result)
{
	uint64_t box = env.format == &rv_single ? UINT32_MAX : UINT64_MAX;
	uint64_t a = hart->f[F_RS1] & box, b = hart->f[F_RS2] & box, c = hart->f[F_RS3] & box;
	const struct rv_float *format = env.format;

	switch (code) {
	case RV_OP_fadd_s:
	case RV_OP_fadd_d:
		*result = rv_soft_add(env, a, b);
		return true;
	case RV_OP_fsub_s:
	case RV_OP_fsub_d:
		*result = rv_soft_add(env, a, rv_soft_negate(format, b));
		return true;
	case RV_OP_fmul_s:
	case RV_OP_fmul_d:
		*result = rv_soft_mul(env, a, b);
		return true;
	case RV_OP_fdiv_s:
	case RV_OP_fdiv_d:
		*result = rv_soft_div(env, a, b);
		return true;
	case RV_OP_fsqrt_s:
	case RV_OP_fsqrt_d:
		*result = rv_soft_sqrt(env, a);
		return true;
	case RV_OP_fmadd_s:
	case RV_OP_fmadd_d:
		*result = rv_soft_fma(env, a, b, c);
		return true;
	case RV_OP_fnmsub_s:
	case RV_OP_fnmsub_d:
		*result = rv_soft_fma(env, rv_soft_negate(format, a), b, c);
		return true;
	case RV_OP_fcvt_s_d:
		*result = rv_soft_convert(env, &rv_double, hart->f[F_RS1]);
		return true;
	case RV_OP_fcvt_s_l:
	case RV_OP_fcvt_d_l:
		*result = rv_soft_from_int(env, hart->x[X_REG] >> 63,
		        hart->x[X_REG] >> 63 ? 0 - hart->x[X_REG] : hart->x[X_REG]);
		return true;
	case RV_OP_fcvt_s_lu:
	case RV_OP_fcvt_d_lu:
		*result = rv_soft_from_int(env, false, hart->x[X_REG]);
		return true;
	default:
		return false;
	}
}

static void run_with(struct machine *m, struct rv_hart *hart, uint32_t flags)
{
	hart->pc = CODE;
	hart->fcsr = flags;
	assert_int_equal(rv_run(m->bus, hart, MANY), RV_ECALL);
}

static void assert_agreement(struct machine *m, unsigned code)
{
	bool gives_single = !(rv_isa_insn(code)->match & 1u << 25);
	uint32_t flags = 0;
	struct rv_fenv env = {gives_single ? &rv_single : &rv_double, RV_RNE, &flags};
	bool known;
	uint64_t result;

	m->other = m->hart;
	known = by_integers(&m->hart, code, env, &result);
	run_with(m, &m->hart, RV_NX);
	run_with(m, &m->other, 0);
	assert_int_equal(m->hart.x[X_REG], m->other.x[X_REG]);
	assert_int_equal(m->hart.f[F_RD], m->other.f[F_RD]);
	assert_int_equal(m->hart.fcsr, m->other.fcsr | RV_NX);
	if (!known)
		return;
	assert_int_equal(m->hart.f[F_RD], gives_single ? result | BOX : result);
	assert_int_equal(m->other.fcsr, flags);
}

/* Whether the inexact flag is up already must make no difference, nor who computes. */
static void host_arithmetic_and_integers_agree(void **state)
{
	struct machine *m = machine_new();
	uint64_t seed = 1;

	(void)state;
	for (unsigned code = RV_OP_fmadd_s; code < RV_OP_COUNT; code++) {
		bool gives_single = !(rv_isa_insn(code)->match & 1u << 25);
		bool takes_single = gives_single != (code == RV_OP_fcvt_s_d || code == RV_OP_fcvt_d_s);
		bool truncates = rv_isa_insn(code)->format == RV_FMT_XF_RM;

		MACHINE_CODE_AT(m, CODE, encode(code, has_rm(code) && truncates ? RV_RTZ : RV_RNE), I_ECALL);
		rv_bus_flush(m->bus, CODE, 1);
		for (unsigned i = 0; i < OPERANDS / 4; i++) {
			for (unsigned reg = F_RS1; reg <= F_RS3; reg++)
				m->hart.f[reg] = operand(&seed, takes_single);
			m->hart.x[X_REG] = scramble(&seed) >> scramble(&seed) % 64;
			assert_agreement(m, code);
		}
	}
	machine_free(m);
}

static uint64_t from_double(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* Operands of a few bits often give exact results, of which no flag may be raised: what is left after the
 * result is taken away, by the host's fused multiplication, tells. */
static void quotients_and_roots_are_the_host_s_and_inexact_when_something_is_left(void **state)
{
	uint64_t seed = 2;

	(void)state;
	for (unsigned i = 0; i < 5 * OPERANDS; i++) {
		uint32_t flags = 0;
		struct rv_fenv env = {&rv_double, RV_RNE, &flags};
		double x = ldexp(1 + (double)(scramble(&seed) >> scramble(&seed) % 64), -20);
		double y = ldexp(1 + (double)(scramble(&seed) >> scramble(&seed) % 64), -20);

		assert_int_equal(rv_soft_div(env, from_double(x), from_double(y)), from_double(x / y));
		assert_int_equal(flags, fma(x / y, y, -x) != 0 ? RV_NX : 0);
		flags = 0;
		assert_int_equal(rv_soft_sqrt(env, from_double(x)), from_double(sqrt(x)));
		assert_int_equal(flags, fma(sqrt(x), sqrt(x), -x) != 0 ? RV_NX : 0);
	}
}

struct known {
	enum rv_rm rm;
	uint64_t a, b, sum;
	uint32_t flags;
};

static void rounding_modes_decide_ties_and_overflow_as_the_standard_says(void **state)
{
	/* 1 + half a step; -1 - half a step; the largest + itself; 1 - 1 */
	static const struct known cases[] = {
	        {RV_RNE, 0x3f800000, 0x33800000, 0x3f800000, RV_NX},
	        {RV_RTZ, 0x3f800000, 0x33800000, 0x3f800000, RV_NX},
	        {RV_RDN, 0x3f800000, 0x33800000, 0x3f800000, RV_NX},
	        {RV_RUP, 0x3f800000, 0x33800000, 0x3f800001, RV_NX},
	        {RV_RMM, 0x3f800000, 0x33800000, 0x3f800001, RV_NX},
	        {RV_RDN, 0xbf800000, 0xb3800000, 0xbf800001, RV_NX},
	        {RV_RUP, 0xbf800000, 0xb3800000, 0xbf800000, RV_NX},
	        {RV_RMM, 0xbf800000, 0xb3800000, 0xbf800001, RV_NX},
	        {RV_RNE, 0x7f7fffff, 0x7f7fffff, 0x7f800000, RV_OF | RV_NX},
	        {RV_RTZ, 0x7f7fffff, 0x7f7fffff, 0x7f7fffff, RV_OF | RV_NX},
	        {RV_RDN, 0x7f7fffff, 0x7f7fffff, 0x7f7fffff, RV_OF | RV_NX},
	        {RV_RDN, 0xff7fffff, 0xff7fffff, 0xff800000, RV_OF | RV_NX},
	        {RV_RUP, 0x7f7fffff, 0x7f7fffff, 0x7f800000, RV_OF | RV_NX},
	        {RV_RMM, 0x7f7fffff, 0x7f7fffff, 0x7f800000, RV_OF | RV_NX},
	        {RV_RNE, 0x3f800000, 0xbf800000, 0x00000000, 0},
	        {RV_RDN, 0x3f800000, 0xbf800000, 0x80000000, 0},
	        {RV_RNE, 0x7f800000, 0xff800000, 0x7fc00000, RV_NV},
	        {RV_RNE, 0x7f800001, 0x3f800000, 0x7fc00000, RV_NV},
	        {RV_RNE, 0xffc12345, 0x3f800000, 0x7fc00000, 0},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t flags = 0;
		struct rv_fenv env = {&rv_single, cases[i].rm, &flags};

		assert_int_equal(rv_soft_add(env, cases[i].a, cases[i].b), cases[i].sum);
		assert_int_equal(flags, cases[i].flags);
	}
}

static void underflow_is_decided_after_rounding(void **state)
{
	uint32_t flags = 0;
	struct rv_fenv env = {&rv_single, RV_RNE, &flags};

	(void)state;
	/* (1 - 2^-24) of the least normal fits 24 bits, so it is tiny, though packing rounds it up. */
	assert_int_equal(rv_soft_mul(env, 0x00ffffff, 0x3f000000), 0x00800000);
	assert_int_equal(flags, RV_UF | RV_NX);
	/* (1 - 2^-46) of it rounds up to it at 24 bits already: not tiny. */
	flags = 0;
	assert_int_equal(rv_soft_mul(env, 0x007fffff, 0x3f800001), 0x00800000);
	assert_int_equal(flags, RV_NX);
	/* Exact subnormals raise nothing. */
	flags = 0;
	assert_int_equal(rv_soft_mul(env, 0x00800000, 0x3f000000), 0x00400000);
	assert_int_equal(flags, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(rounding_modes_that_do_not_exist_are_illegal),
	        cmocka_unit_test(host_arithmetic_and_integers_agree),
	        cmocka_unit_test(quotients_and_roots_are_the_host_s_and_inexact_when_something_is_left),
	        cmocka_unit_test(rounding_modes_decide_ties_and_overflow_as_the_standard_says),
	        cmocka_unit_test(underflow_is_decided_after_rounding),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
