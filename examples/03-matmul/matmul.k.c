/* SPDX-License-Identifier: MIT */
/*
 * c = a b for matrices of floats, row by row in memory. A group of 16 x 16 threads makes a tile of c, one
 * element a thread: it brings a tile of a and one of b to shared memory, all threads use both, and so on
 * along the inner dimension. Launch with ceil(columns / 16) x ceil(rows / 16) groups and MATMUL_SHARED bytes
 * of shared memory.
 */
#include <rvx1/kernel.h>

#define TILE          16
#define MATMUL_SHARED (2 * TILE * TILE * 4)

struct matmul {
	uint64_t a, b, c; /* addresses: rows x inner, inner x columns, rows x columns floats */
	uint32_t rows, columns, inner;
};

struct tiles {
	float a[TILE][TILE], b[TILE][TILE];
};

/* The element, or zero outside the matrix. */
static float element(uint64_t matrix, uint32_t rows, uint32_t columns, uint64_t row, uint64_t column)
{
	return row < rows && column < columns ? ((const float *)matrix)[row * columns + column] : 0;
}

void matmul(const struct matmul *p)
{
	struct tiles *t = rvx1_shared();
	uint32_t x = rvx1_thread_id(0), y = rvx1_thread_id(1);
	uint64_t column = rvx1_global_id(0), row = rvx1_global_id(1);
	float sum = 0;

	for (uint64_t k = 0; k < p->inner; k += TILE) {
		t->a[y][x] = element(p->a, p->rows, p->inner, row, k + x);
		t->b[y][x] = element(p->b, p->inner, p->columns, k + y, column);
		rvx1_barrier(); /* the tiles are whole before anyone uses them */
		for (unsigned i = 0; i < TILE; i++)
			sum += t->a[y][i] * t->b[i][x];
		rvx1_barrier(); /* everyone has used them before the next ones overwrite them */
	}
	if (row < p->rows && column < p->columns)
		((float *)p->c)[row * p->columns + column] = sum;
}

RVX1_KERNEL(matmul, struct matmul, TILE *TILE, MATMUL_SHARED);
