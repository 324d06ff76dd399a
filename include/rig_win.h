/* SPDX-License-Identifier: MIT */
#ifndef RIG_WIN_H
#define RIG_WIN_H

/*
 * A window: part of a function's BAR, for accesses of exact width. Accesses of registers are volatile
 * here and nowhere else.
 *
 * The far side is either mapped memory or a transport (messages to a device process, say); loads and stores
 * do the same on both, and a caller cannot tell which it has but for the time they take. Registers are
 * little-endian on the device's side; values here are the host's.
 *
 * Made by rig_pci_window (rig_pci.h) and valid until rig_pci_close; it may be copied freely and needs no
 * release. Any thread may use a window; accesses of one thread to one window reach the device in program
 * order.
 *
 * Callers keep off + width <= rig_win_bytes(win) and off a multiple of width: on a mapped window that is not
 * checked. Through a transport an access outside reads all ones and writes nothing.
 *
 * Accesses report no failure. A window whose function is gone reads all ones and drops writes; ask
 * rig_pci_gone once, after the last access, for the reason.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rig_barrier.h"
#include "rig_wide.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rig_win;

/* How a window reaches a far side that is not mapped, and what an all-ones answer means. Filled in by
 * src/vfio. Members may be called from any thread and may block up to the transport's message deadline. */
struct rig_win_ops {
	/* One access of width 1, 2, 4 or 8 at off: the value, all ones (in width bytes) when it failed. */
	uint64_t (*load)(const struct rig_win *win, uint64_t off, unsigned width);
	void (*store)(const struct rig_win *win, uint64_t off, unsigned width, uint64_t value);
	/* Bytes in any order and width. A failed read fills with 0xff. */
	void (*read)(const struct rig_win *win, uint64_t off, void *buf, uint64_t len);
	void (*write)(const struct rig_win *win, uint64_t off, const void *buf, uint64_t len);
	/* A RIG_WIN_LIVE window read all ones: checks the vendor id; may declare the function gone. */
	void (*suspect)(const struct rig_win *win);
};

/* Nothing in it reads all ones (32 and 64 bits) while the function lives: check if it does. */
#define RIG_WIN_LIVE 1u
/* A write-combined mapping where the transport offers one: see rig_wc_flush. None does yet: the kernel's VFIO
 * maps BARs uncached, and a device process's memory is ordinary memory. */
#define RIG_WIN_COMBINE 2u
/* Never mapped, though it could be (tests, and devices that must see each access). */
#define RIG_WIN_MESSAGES 4u

struct rig_win {
	volatile unsigned char *at; /* where byte 0 is mapped, NULL when reached through ops */
	const struct rig_win_ops *ops;
	void *far_side; /* of ops */
	uint64_t start; /* of byte 0, in the BAR */
	uint64_t len;
	unsigned bar;
	unsigned flags; /* RIG_WIN_* */
};

static inline uint64_t rig_win_bytes(const struct rig_win *win)
{
	return win->len;
}

/* The window's memory itself, NULL when it is not mapped. Whoever uses it gives up what windows promise:
 * exact widths, all ones once the function is gone, and working on every transport. Lives as long as the
 * function. */
static inline void *rig_win_host(const struct rig_win *win)
{
	return (void *)(uintptr_t)win->at;
}

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define RIG_WIN_LE16(v) ((uint16_t)(v))
#define RIG_WIN_LE32(v) ((uint32_t)(v))
#define RIG_WIN_LE64(v) ((uint64_t)(v))
#else
#define RIG_WIN_LE16(v) __builtin_bswap16((uint16_t)(v))
#define RIG_WIN_LE32(v) __builtin_bswap32((uint32_t)(v))
#define RIG_WIN_LE64(v) __builtin_bswap64((uint64_t)(v))
#endif

static inline uint8_t rig_win_load8(const struct rig_win *win, uint64_t off)
{
	if (win->at)
		return win->at[off];
	return (uint8_t)win->ops->load(win, off, 1);
}

static inline uint16_t rig_win_load16(const struct rig_win *win, uint64_t off)
{
	if (win->at)
		return RIG_WIN_LE16(*(const volatile uint16_t *)(const volatile void *)(win->at + off));
	return (uint16_t)win->ops->load(win, off, 2);
}

static inline uint32_t rig_win_load32(const struct rig_win *win, uint64_t off)
{
	uint32_t v =
	        win->at ? RIG_WIN_LE32(*(const volatile uint32_t *)(const volatile void *)(win->at + off))
	                : (uint32_t)win->ops->load(win, off, 4);

	if (__builtin_expect(v == UINT32_MAX && (win->flags & RIG_WIN_LIVE) != 0, 0))
		win->ops->suspect(win);
	return v;
}

static inline uint64_t rig_win_load64(const struct rig_win *win, uint64_t off)
{
	uint64_t v =
	        win->at ? RIG_WIN_LE64(*(const volatile uint64_t *)(const volatile void *)(win->at + off))
	                : win->ops->load(win, off, 8);

	if (__builtin_expect(v == UINT64_MAX && (win->flags & RIG_WIN_LIVE) != 0, 0))
		win->ops->suspect(win);
	return v;
}

static inline void rig_win_store8(const struct rig_win *win, uint64_t off, uint8_t value)
{
	if (win->at)
		win->at[off] = value;
	else
		win->ops->store(win, off, 1, value);
}

static inline void rig_win_store16(const struct rig_win *win, uint64_t off, uint16_t value)
{
	if (win->at)
		*(volatile uint16_t *)(volatile void *)(win->at + off) = RIG_WIN_LE16(value);
	else
		win->ops->store(win, off, 2, value);
}

static inline void rig_win_store32(const struct rig_win *win, uint64_t off, uint32_t value)
{
	if (win->at)
		*(volatile uint32_t *)(volatile void *)(win->at + off) = RIG_WIN_LE32(value);
	else
		win->ops->store(win, off, 4, value);
}

static inline void rig_win_store64(const struct rig_win *win, uint64_t off, uint64_t value)
{
	if (win->at)
		*(volatile uint64_t *)(volatile void *)(win->at + off) = RIG_WIN_LE64(value);
	else
		win->ops->store(win, off, 8, value);
}

/* Two 32-bit accesses, the low half first, for devices that do not take 64 bits at once. Not atomic. */
static inline uint64_t rig_win_load64_lohi(const struct rig_win *win, uint64_t off)
{
	uint64_t low = rig_win_load32(win, off);

	return low | (uint64_t)rig_win_load32(win, off + 4) << 32;
}

static inline void rig_win_store64_lohi(const struct rig_win *win, uint64_t off, uint64_t value)
{
	rig_win_store32(win, off, (uint32_t)value);
	rig_win_store32(win, off + 4, (uint32_t)(value >> 32));
}

/* Copies len bytes out of and into memory behind a window: for memory, not registers. Any alignment. Mapped
 * memory is reached as rig_wide_get and rig_wide_put do it; through a transport in any width and order. The
 * caller orders it against doorbells (rig_before_doorbell, rig_wc_flush). */
static inline void rig_win_read(const struct rig_win *win, uint64_t off, void *buf, uint64_t len)
{
	if (win->at)
		rig_wide_get(buf, (const void *)(uintptr_t)(win->at + off), len);
	else
		win->ops->read(win, off, buf, len);
}

static inline void rig_win_write(const struct rig_win *win, uint64_t off, const void *buf, uint64_t len)
{
	if (win->at)
		rig_wide_put((void *)(uintptr_t)(win->at + off), buf, len);
	else
		win->ops->write(win, off, buf, len);
}

/* Every store to the window before it has reached the device when it returns: a barrier, then a read-back of
 * the 32-bit register at off, which must be harmless to read. A device that was told to stop has been told.
 */
static inline void rig_flush_posted(const struct rig_win *win, uint64_t off)
{
	rig_full();
	(void)rig_win_load32(win, off);
}

#ifdef __cplusplus
}
#endif

#endif
