/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "bits.h"
#include "error.h"
#include "le.h"
#include "pci_private.h"

/*
 * The transport side of windows. Parts that are mapped are reached as memory here too: through a window of
 * their own, because only rig_win.h touches device memory.
 */

static const struct rig_region *region_of(const struct rig_win *win)
{
	const struct rig_pci *f = win->far_side;

	return &f->region[RIG_VFIO_BAR0 + win->bar];
}

/* All of [off, off + len) as mapped memory, if one area has it. */
static struct rig_win direct(const struct rig_win *win, uint64_t off, uint64_t len, bool write)
{
	struct rig_win d = {.at = NULL, .len = len};
	uint64_t run, at = win->start + off;
	const struct rig_region_area *m;

	if (win->flags & RIG_WIN_MESSAGES)
		return d;
	m = rig_region_find(region_of(win), at, len, &run);
	if (m && run == len && (m->writable || !write))
		d.at = m->at + (at - m->offset);
	return d;
}

static uint64_t load_direct(const struct rig_win *d, unsigned width)
{
	switch (width) {
	case 1:
		return rig_win_load8(d, 0);
	case 2:
		return rig_win_load16(d, 0);
	case 4:
		return rig_win_load32(d, 0);
	default:
		return rig_win_load64(d, 0);
	}
}

static void store_direct(const struct rig_win *d, unsigned width, uint64_t value)
{
	switch (width) {
	case 1:
		rig_win_store8(d, 0, (uint8_t)value);
		break;
	case 2:
		rig_win_store16(d, 0, (uint16_t)value);
		break;
	case 4:
		rig_win_store32(d, 0, (uint32_t)value);
		break;
	default:
		rig_win_store64(d, 0, value);
		break;
	}
}

static bool takes(const struct rig_win *win, uint64_t off, uint64_t len)
{
	const struct rig_pci *f = win->far_side;

	return rig_span_fits(off, len, win->len) && !rig_gone_is(&f->gone);
}

static uint64_t load(const struct rig_win *win, uint64_t off, unsigned width)
{
	struct rig_pci *f = win->far_side;
	unsigned char bytes[sizeof(uint64_t)] = {0};
	struct rig_win d;

	if (!takes(win, off, width))
		return UINT64_MAX;
	d = direct(win, off, width, false);
	if (d.at)
		return load_direct(&d, width);
	if (f->ops->read(f->transport, RIG_VFIO_BAR0 + win->bar, win->start + off, bytes, width))
		return UINT64_MAX;
	return rig_get_le64(bytes);
}

static void store(const struct rig_win *win, uint64_t off, unsigned width, uint64_t value)
{
	struct rig_pci *f = win->far_side;
	unsigned char bytes[sizeof(uint64_t)];
	struct rig_win d;

	if (!takes(win, off, width))
		return;
	d = direct(win, off, width, true);
	if (d.at) {
		store_direct(&d, width, value);
		return;
	}
	rig_put_le64(bytes, value);
	(void)f->ops->write(f->transport, RIG_VFIO_BAR0 + win->bar, win->start + off, bytes, width);
}

/* One piece of a bulk access that is all mapped or all not: its length. */
static uint64_t piece(const struct rig_win *win, uint64_t off, uint64_t len)
{
	uint64_t run;

	if (win->flags & RIG_WIN_MESSAGES)
		return len;
	(void)rig_region_find(region_of(win), win->start + off, len, &run);
	return run;
}

static void read_bulk(const struct rig_win *win, uint64_t off, void *buf, uint64_t len)
{
	struct rig_pci *f = win->far_side;
	unsigned char *to = buf;

	while (len > 0) {
		uint64_t n = takes(win, off, len) ? piece(win, off, len) : 0;
		struct rig_win d;

		if (n == 0) {
			memset(to, 0xff, len);
			return;
		}
		d = direct(win, off, n, false);
		if (d.at)
			rig_win_read(&d, 0, to, n);
		else if (f->ops->read(f->transport, RIG_VFIO_BAR0 + win->bar, win->start + off, to, n))
			memset(to, 0xff, n);
		off += n;
		to += n;
		len -= n;
	}
}

static void write_bulk(const struct rig_win *win, uint64_t off, const void *buf, uint64_t len)
{
	struct rig_pci *f = win->far_side;
	const unsigned char *from = buf;

	while (len > 0) {
		uint64_t n = takes(win, off, len) ? piece(win, off, len) : 0;
		struct rig_win d;

		if (n == 0)
			return;
		d = direct(win, off, n, true);
		if (d.at)
			rig_win_write(&d, 0, from, n);
		else
			(void)f->ops->write(
			        f->transport, RIG_VFIO_BAR0 + win->bar, win->start + off, from, n);
		off += n;
		from += n;
		len -= n;
	}
}

static void suspect(const struct rig_win *win)
{
	(void)rig_pci_check(win->far_side);
}

static const struct rig_win_ops window_ops = {
        .load = load,
        .store = store,
        .read = read_bulk,
        .write = write_bulk,
        .suspect = suspect,
};

int rig_pci_window(
        struct rig_pci *f, unsigned bar, uint64_t off, uint64_t len, unsigned flags, struct rig_win *out)
{
	const struct rig_vfio_region *r = bar < RIG_PCI_BARS ? &f->region[RIG_VFIO_BAR0 + bar].info : NULL;
	int err;

	*out = (struct rig_win){.ops = &window_ops, .far_side = f, .start = off, .bar = bar, .flags = flags};
	if (!r || r->bytes == 0 || off >= r->bytes || !rig_span_fits(off, len, r->bytes))
		return rig_vfio_fail(EINVAL, NULL,
		        "a window of %#" PRIx64 " bytes at %#" PRIx64 " of BAR %u, which has %#" PRIx64, len,
		        off, bar, r ? r->bytes : 0);
	if (!r->readable && !r->writable)
		return rig_vfio_fail(EACCES, NULL, "BAR %u can be neither read nor written", bar);
	err = rig_pci_memory_decode(f, true);
	if (err)
		return err;
	out->len = len ? len : r->bytes - off;
	out->at = direct(out, 0, out->len, true).at;
	return 0;
}

unsigned rig_pci_areas(const struct rig_pci *f, unsigned bar, struct rig_pci_area *areas, unsigned room)
{
	const struct rig_region *r = bar < RIG_PCI_BARS ? &f->region[RIG_VFIO_BAR0 + bar] : NULL;
	unsigned count = r ? r->mapped : 0;

	for (unsigned i = 0; i < count && i < room; i++)
		areas[i] = (struct rig_pci_area){r->area[i].offset, r->area[i].bytes};
	return count;
}

static int check_access(const struct rig_win *win, uint64_t off, unsigned width)
{
	if (width > sizeof(uint64_t) || !rig_is_pow2(width) || !rig_is_aligned(off, width) ||
	        !rig_span_fits(off, width, win->len))
		return rig_vfio_fail(EINVAL, NULL, "%u bytes at %#" PRIx64 " of a window of %#" PRIx64, width,
		        off, win->len);
	return 0;
}

int rig_win_load(const struct rig_win *win, uint64_t off, unsigned width, uint64_t *value)
{
	struct rig_win one = *win;
	int err = check_access(win, off, width);

	*value = UINT64_MAX;
	if (err)
		return err;
	if (!win->at) {
		*value = win->ops->load(win, off, width);
		return 0;
	}
	one.at += off;
	*value = load_direct(&one, width);
	return 0;
}

int rig_win_store(const struct rig_win *win, uint64_t off, unsigned width, uint64_t value)
{
	struct rig_win one = *win;
	int err = check_access(win, off, width);

	if (err)
		return err;
	if (!win->at) {
		win->ops->store(win, off, width, value);
		return 0;
	}
	one.at += off;
	store_direct(&one, width, value);
	return 0;
}
