/* SPDX-License-Identifier: MIT */
/* Good: what libm and the compiler's arithmetic answer, for the host to compare. A thread a number. */
#include <rvx1/kernel.h>

#include <math.h>

#define RESULTS 16

struct math {
	uint64_t in, out; /* addresses of count doubles and of count * 16 doubles */
	uint32_t count;
};

static void integers(double *out, int64_t x)
{
	int64_t divisor = (x & 7) - 3; /* also zero, which RISC-V defines */

	out[0] = (double)(x / (divisor ? divisor : 5));
	out[1] = (double)(x % 1000003);
	out[2] = (double)((uint32_t)x / 7u);
}

void math(const struct math *p)
{
	uint64_t i = rvx1_global_id(0);

	if (i >= p->count)
		return;
	double x = ((const double *)p->in)[i], *out = (double *)p->out + RESULTS * i;

	out[0] = sin(x);
	out[1] = cos(x);
	out[2] = exp(x / 64);
	out[3] = log(fabs(x) + 1);
	out[4] = sqrt(fabs(x));
	out[5] = pow(fabs(x) + 0.5, 1.5);
	out[6] = fma(x, x, 1.0 / 3);
	out[7] = floor(x) + ceil(x) + rint(x);
	out[8] = atan2(x, 3);
	out[9] = fmod(x, 0.7);
	out[10] = (double)sinf((float)x);
	out[11] = (double)sqrtf(fabsf((float)x));
	out[12] = (double)expf((float)x / 64);
	integers(out + 13, (int64_t)(x * 1000));
}

RVX1_KERNEL(math, struct math, 0, 0);
