/* SPDX-License-Identifier: MIT */
/*
 * What the firmware does to the world outside its own memory: accesses of exactly one width at processor
 * addresses (docs/rvx1.md, section 5.2), their order, and sleep. Addresses are checked by the caller: a wrong
 * one halts the processor. On the processor these are single instructions. On a host, a test defines them.
 */
#ifndef FW_IO_H
#define FW_IO_H

#include <stdint.h>

#ifdef __riscv

static inline uint32_t fw_load32(uint64_t address)
{
	return *(const volatile uint32_t *)address;
}

static inline uint64_t fw_load64(uint64_t address)
{
	return *(const volatile uint64_t *)address;
}

static inline void fw_store32(uint64_t address, uint32_t value)
{
	*(volatile uint32_t *)address = value;
}

static inline void fw_store64(uint64_t address, uint64_t value)
{
	*(volatile uint64_t *)address = value;
}

/* Loads before it come before loads and stores after it. */
static inline void fw_acquire(void)
{
	__asm__ volatile("fence r,rw" : : : "memory");
}

/* Loads and stores before it come before stores after it. */
static inline void fw_release(void)
{
	__asm__ volatile("fence rw,w" : : : "memory");
}

/* Until there may be something to do (section 5.2). */
static inline void fw_sleep(void)
{
	__asm__ volatile("wfi" : : : "memory");
}

#else

uint32_t fw_load32(uint64_t address);
uint64_t fw_load64(uint64_t address);
void fw_store32(uint64_t address, uint32_t value);
void fw_store64(uint64_t address, uint64_t value);
void fw_acquire(void);
void fw_release(void);
void fw_sleep(void);

#endif

#endif
