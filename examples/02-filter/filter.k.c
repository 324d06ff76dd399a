/* SPDX-License-Identifier: MIT */
/* Turns a picture into an ink drawing: edges in dark lines (Sobel), the rest in a few paler colours. A thread
 * a pixel. */
#include <rvx1/kernel.h>

#include <math.h>

#define EDGE_STRENGTH 1.25f /* how dark an edge of given contrast is */
#define COLOUR_STEPS  5u    /* levels a colour is rounded to */
#define WHITE         255u

struct filter {
	uint64_t src, dst; /* addresses of width * height pixels: red, green, blue, alpha, a byte each */
	uint32_t width, height;
	uint32_t left, top; /* pixel of this launch's first thread */
};

static uint32_t clamp(int64_t at, uint32_t end)
{
	return at < 0 ? 0 : at >= (int64_t)end ? end - 1 : (uint32_t)at;
}

/* Brightness of the pixel at (x, y), 0 to 255; outside the picture that of the nearest pixel in it. */
static float luma(const struct filter *p, int64_t x, int64_t y)
{
	const uint8_t *c =
	        (const uint8_t *)p->src + 4 * ((uint64_t)clamp(y, p->height) * p->width + clamp(x, p->width));

	return 0.299f * c[0] + 0.587f * c[1] + 0.114f * c[2];
}

/* How much the brightness changes around (x, y). */
static float contrast(const struct filter *p, int64_t x, int64_t y)
{
	float nw = luma(p, x - 1, y - 1), n = luma(p, x, y - 1), ne = luma(p, x + 1, y - 1);
	float w = luma(p, x - 1, y), e = luma(p, x + 1, y);
	float sw = luma(p, x - 1, y + 1), s = luma(p, x, y + 1), se = luma(p, x + 1, y + 1);
	float dx = ne + 2 * e + se - nw - 2 * w - sw;
	float dy = sw + 2 * s + se - nw - 2 * n - ne;

	return sqrtf(dx * dx + dy * dy);
}

/* A colour in few steps, and half way to white. */
static uint32_t pale(uint32_t colour)
{
	uint32_t step = (colour * (COLOUR_STEPS - 1) + WHITE / 2) / WHITE;

	return (step * WHITE / (COLOUR_STEPS - 1) + WHITE) / 2;
}

void filter(const struct filter *p)
{
	uint64_t x = p->left + rvx1_global_id(0), y = p->top + rvx1_global_id(1);

	if (x >= p->width || y >= p->height)
		return;
	uint64_t at = 4 * (y * p->width + x);
	const uint8_t *from = (const uint8_t *)p->src + at;
	uint8_t *to = (uint8_t *)p->dst + at;
	float paper = 1.0f - EDGE_STRENGTH * contrast(p, (int64_t)x, (int64_t)y) / WHITE;

	if (paper < 0)
		paper = 0;
	for (unsigned i = 0; i < 3; i++)
		to[i] = (uint8_t)(paper * (float)pale(from[i]));
	to[3] = from[3];
}

RVX1_KERNEL(filter, struct filter, 0, 0);
