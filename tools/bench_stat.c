/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>

#include "bench_stat.h"

#define FIRST_ROOM 256u

void bench_samples_add(struct bench_samples *samples, uint64_t ns)
{
	if (samples->count == samples->room) {
		size_t room = samples->room ? samples->room * 2 : FIRST_ROOM;
		uint64_t *more =
		        room <= BENCH_MAX_SAMPLES ? realloc(samples->ns, room * sizeof(*more)) : NULL;

		if (!more)
			return;
		samples->ns = more;
		samples->room = room;
	}
	samples->ns[samples->count++] = ns;
}

void bench_samples_free(struct bench_samples *samples)
{
	free(samples->ns);
	*samples = (struct bench_samples){0};
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

struct bench_times bench_samples_times(struct bench_samples *samples, uint32_t batch)
{
	struct bench_times times = {.samples = samples->count};
	size_t half = samples->count / 2;

	if (!samples->count)
		return times;
	qsort(samples->ns, samples->count, sizeof(*samples->ns), compare);
	times.fastest_ns = (double)samples->ns[0] / batch;
	times.median_ns = (double)samples->ns[half] / batch;
	if (samples->count % 2 == 0)
		times.median_ns = (times.median_ns + (double)samples->ns[half - 1] / batch) / 2;
	return times;
}

void bench_time_text(double ns, char *text, size_t bytes)
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	unsigned i = 0;

	while (ns >= 999.5 && i < sizeof(units) / sizeof(units[0]) - 1) {
		ns /= 1000;
		i++;
	}
	snprintf(text, bytes, "%.*f %s", ns < 9.995 ? 2 : ns < 99.95 ? 1 : 0, ns, units[i]);
}
