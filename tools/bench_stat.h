/* SPDX-License-Identifier: MIT */
/* Samples of a time, and what is said about them: the median and the fastest, never a mean, which one
 * interruption moves. */
#ifndef RIGCTL_BENCH_STAT_H
#define RIGCTL_BENCH_STAT_H

#include <stddef.h>
#include <stdint.h>

struct bench_times {
	double median_ns, fastest_ns; /* of an operation */
	uint64_t samples;             /* 0: nothing was measured */
};

struct bench_samples {
	uint64_t *ns;
	size_t count, room;
};

/* Adds a sample. Once BENCH_MAX_SAMPLES are there, or memory is short, it changes nothing. */
#define BENCH_MAX_SAMPLES ((size_t)1 << 17)
void bench_samples_add(struct bench_samples *samples, uint64_t ns);
void bench_samples_free(struct bench_samples *samples);

/* Sorts them. Each sample timed `batch` operations. */
struct bench_times bench_samples_times(struct bench_samples *samples, uint32_t batch);

/* "123 ns", "4.56 us", "7.89 ms" or "1.23 s": three digits. */
void bench_time_text(double ns, char *text, size_t bytes);

#endif
