/* SPDX-License-Identifier: MIT */
#ifndef RIG_BARRIER_H
#define RIG_BARRIER_H

/*
 * Ordering between the processor and a device, named by purpose. The only header with inline assembly.
 *
 * Device memory here means windows (rig_win.h); shared memory means host memory that the device reads and
 * writes by DMA, rings and status words say. A use carries a comment of the form "A before B, because C".
 * Nothing here waits for a device: these order accesses of the calling thread as the device sees them.
 *
 * x86-64: stores are seen in program order, and so are loads, so most of these only hold back the compiler.
 * Two cases need an instruction: a store followed by a load (rig_full), and write-combined stores, which
 * leave their buffer in any order (rig_wc_flush).
 * arm64: the outer shareable domain, since a device is not in the inner one; dsb where a store to device
 * memory must not start before shared memory is written.
 */

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__x86_64__)
#define RIG_ASM_STORES()  __asm__ __volatile__("" ::: "memory")
#define RIG_ASM_LOADS()   __asm__ __volatile__("" ::: "memory")
#define RIG_ASM_DEVICE()  __asm__ __volatile__("" ::: "memory")
#define RIG_ASM_COMBINE() __asm__ __volatile__("sfence" ::: "memory")
#define RIG_ASM_FULL()    __asm__ __volatile__("mfence" ::: "memory")
#define RIG_ASM_PAUSE()   __asm__ __volatile__("pause")
#elif defined(__aarch64__)
#define RIG_ASM_STORES()  __asm__ __volatile__("dmb oshst" ::: "memory")
#define RIG_ASM_LOADS()   __asm__ __volatile__("dmb oshld" ::: "memory")
#define RIG_ASM_DEVICE()  __asm__ __volatile__("dsb st" ::: "memory")
#define RIG_ASM_COMBINE() __asm__ __volatile__("dsb st" ::: "memory")
#define RIG_ASM_FULL()    __asm__ __volatile__("dsb sy" ::: "memory")
#define RIG_ASM_PAUSE()   __asm__ __volatile__("yield")
#else
#error "rig_barrier.h: no barriers for this architecture (x86-64 and arm64 are known)"
#endif

/* Stores to shared memory before it are seen by the device before stores to shared memory after it: a
 * packet's body before the header word that publishes it. */
static inline void rig_to_device(void)
{
	RIG_ASM_STORES();
}

/* Loads of shared memory before it happen before loads after it: the completion word before the results. */
static inline void rig_from_device(void)
{
	RIG_ASM_LOADS();
}

/* Stores to shared memory before it are seen by the device before the store to a window (a doorbell) after
 * it. */
static inline void rig_before_doorbell(void)
{
	RIG_ASM_DEVICE();
}

/* Stores before it are complete before the first store of a write-combined sequence after it. */
static inline void rig_wc_start(void)
{
	RIG_ASM_COMBINE();
}

/* Write-combined stores before it have left the processor before any store after it. */
static inline void rig_wc_flush(void)
{
	RIG_ASM_COMBINE();
}

/* Every access before it, loads and stores to shared memory and to windows, happens before every one after
 * it. For "store mine, then look at yours" on both sides. */
static inline void rig_full(void)
{
	RIG_ASM_FULL();
}

/* Between two looks of a spin loop: gives the sibling thread the core's resources. Orders nothing. */
static inline void rig_pause(void)
{
	RIG_ASM_PAUSE();
}

#ifdef __cplusplus
}
#endif

#endif
