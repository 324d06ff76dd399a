/* SPDX-License-Identifier: MIT */
/*
 * For kernels: C functions that threads of RVX-1 run (docs/kernels.md, docs/rvx1.md section 11). Compiled by
 * scripts/rvx1-cc, never for the host.
 *
 * A kernel takes one pointer, to const void or to a const struct of its packed parameters, and returns
 * nothing:
 *
 *	struct scale { uint64_t data; uint32_t count; float factor; };
 *	void scale(const struct scale *p) { ... }
 *	RVX1_KERNEL(scale, struct scale, 0, 0);
 *
 * Every thread of the grid runs the function once. Dimension d is 0, 1 or 2; others answer 0. All indices are
 * of this thread and do not change while it runs. Atomics are the compiler's __atomic builtins.
 */
#ifndef RVX1_KERNEL_H
#define RVX1_KERNEL_H

#include <stdint.h>

#include <rvx1/kernel_record.h>
#include <rvx1/regs.h>

#ifndef __riscv
#error "rvx1/kernel.h is for kernels: compile them with rvx1-cc"
#endif

/* The compiler may keep the value, and knows that it has 32 bits. */
#define RVX1_CSR_READ_(csr)                                                                                  \
	(__extension__({                                                                                     \
		uint64_t value_;                                                                             \
		__asm__("csrr %0, %1" : "=r"(value_) : "i"(csr));                                            \
		if (value_ > UINT32_MAX)                                                                     \
			__builtin_unreachable();                                                             \
		(uint32_t) value_;                                                                           \
	}))

#define RVX1_CSR_OF_(first, d)                                                                               \
	((d) == 0          ? RVX1_CSR_READ_((first))                                                         \
	        : (d) == 1 ? RVX1_CSR_READ_((first) + 1)                                                     \
	        : (d) == 2 ? RVX1_CSR_READ_((first) + 2)                                                     \
	                   : 0)

/* The thread's index in its group. */
static inline uint32_t rvx1_thread_id(unsigned d)
{
	return RVX1_CSR_OF_(RVX1_CSR_THREAD_ID, d);
}

/* The group's index in the grid. */
static inline uint32_t rvx1_group_id(unsigned d)
{
	return RVX1_CSR_OF_(RVX1_CSR_GROUP_ID, d);
}

/* Threads a group. */
static inline uint32_t rvx1_group_size(unsigned d)
{
	return RVX1_CSR_OF_(RVX1_CSR_GROUP_SIZE, d);
}

/* Groups in the grid. */
static inline uint32_t rvx1_grid_size(unsigned d)
{
	return RVX1_CSR_OF_(RVX1_CSR_GRID_SIZE, d);
}

/* The thread's index in the grid: group_id * group_size + thread_id. */
static inline uint64_t rvx1_global_id(unsigned d)
{
	return (uint64_t)rvx1_group_id(d) * rvx1_group_size(d) + rvx1_thread_id(d);
}

/* Waits for every thread of the group; their earlier accesses are visible to each other after it. Every
 * thread of the group must come to it: one that ends instead is a BARRIER fault. */
static inline void rvx1_barrier(void)
{
	__asm__ volatile(".word %0" : : "i"(RVX1_INSN_BARRIER) : "memory");
}

/* The group's shared memory: rvx1_shared_bytes() bytes, zero when the group starts. */
static inline void *rvx1_shared(void)
{
	return (void *)RVX1_SHARED_BASE;
}

static inline uint32_t rvx1_shared_bytes(void)
{
	return RVX1_CSR_READ_(RVX1_CSR_SHARED_BYTES);
}

/*
 * Declares function `name` a kernel, anywhere at file level, before or after its definition. `type` is what
 * its pointer points to, without const: a struct, whose size a launch's parameters must have, or void (none
 * stated). `threads` and `shared`: the most threads and shared bytes a group, 0: none stated. A function of
 * another type does not compile.
 */
#define RVX1_KERNEL(name, type, threads_, shared_)                                                           \
	__attribute__((visibility("default"))) void name(const type *);                                      \
	extern const struct rvx1_kernel_record rvx1_kernel_record_##name;                                    \
	_Static_assert(__extension__(sizeof(type) <= RVX1_KERNEL_MOST_PARAMS),                               \
	        "more parameters than a launch can have");                                                   \
	_Static_assert((threads_) <= RVX1_MAX_GROUP_THREADS, "more threads than a group can have");          \
	_Static_assert((shared_) <= RVX1_MAX_SHARED, "more shared memory than a group can have");            \
	__attribute__((visibility("default"), used))                                                         \
	const struct rvx1_kernel_record rvx1_kernel_record_##name = {                                        \
	        RVX1_KERNEL_RECORD_VERSION,                                                                  \
	        __extension__(__builtin_types_compatible_p(type, void) ? 0 : sizeof(type)),                  \
	        (threads_),                                                                                  \
	        (shared_),                                                                                   \
	}

#endif
