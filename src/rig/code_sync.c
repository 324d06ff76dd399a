/* SPDX-License-Identifier: MIT */
/* The processor's own instructions, in one file. */
#include "rt.h"

/*
 * The library loads no host code by itself, so what a thread must see is code that the program's own loader
 * wrote: on arm64 an instruction barrier makes the thread fetch it anew; x86 does so by itself.
 */
RIG_API void rig_code_sync(void)
{
#if defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory");
#else
	atomic_signal_fence(memory_order_seq_cst);
#endif
}

void rig_rt_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}
