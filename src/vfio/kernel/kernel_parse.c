/* SPDX-License-Identifier: MIT */
#include "kernel_parse.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "bits.h"
#include "vfio_kernel.h"
#include "kernel_abi.h"
#include "range.h"
#include "vfio_ops.h"

/* More capabilities than any structure has: a chain that loops ends here. */
enum { CAPS_MOST = 64 };

const void *rig_kparse_cap(const void *at, size_t len, uint32_t first, unsigned id, size_t bytes)
{
	uint32_t off = first;

	for (unsigned n = 0; n < CAPS_MOST && off != 0; n++) {
		struct rig_kvfio_cap cap;

		if (!rig_span_fits(off, sizeof(cap), len))
			return NULL;
		memcpy(&cap, (const char *)at + off, sizeof(cap));
		if (cap.id == id)
			return rig_span_fits(off, bytes, len) ? (const char *)at + off : NULL;
		off = cap.next;
	}
	return NULL;
}

/* How many entries of 16 bytes follow a head of 16 bytes at `cap`, no more than there are. */
static bool holds(const void *at, size_t len, const void *cap, uint64_t entries)
{
	uint64_t off = (uint64_t)((const char *)cap - (const char *)at);

	return entries <= len && rig_span_fits(off, 16 + entries * 16, len);
}

static int add_area(struct rig_vfio_region *out, uint64_t page, uint64_t offset, uint64_t bytes)
{
	const struct rig_vfio_area *last = out->areas ? &out->area[out->areas - 1] : NULL;

	if (bytes == 0)
		return 0;
	if (!rig_span_fits(offset, bytes, out->bytes) || (last && offset < last->offset + last->bytes))
		return -EPROTO;
	if (!rig_is_aligned(offset, page) || bytes < page)
		return 0;
	if (out->areas == RIG_VFIO_AREAS)
		return -E2BIG;
	out->area[out->areas++] =
	        (struct rig_vfio_area){.offset = offset, .bytes = rig_align_down(bytes, page)};
	return 0;
}

static int add_areas(const void *at, size_t len, uint32_t caps, uint64_t page, struct rig_vfio_region *out)
{
	const void *cap =
	        rig_kparse_cap(at, len, caps, RIG_KVFIO_CAP_SPARSE, sizeof(struct rig_kvfio_sparse));
	struct rig_kvfio_sparse sparse;
	int err = 0;

	if (!cap)
		return add_area(out, page, 0, out->bytes);
	memcpy(&sparse, cap, sizeof(sparse));
	if (!holds(at, len, cap, sparse.areas))
		return -EPROTO;
	for (uint32_t i = 0; i < sparse.areas && !err; i++) {
		uint64_t area[2];

		memcpy(area, (const char *)cap + sizeof(sparse) + i * sizeof(area), sizeof(area));
		err = add_area(out, page, area[0], area[1]);
	}
	if (err == -E2BIG) { /* by reads and writes of the descriptor */
		out->areas = 0;
		err = 0;
	}
	return err;
}

int rig_kparse_region(const void *at, size_t len, uint64_t page, struct rig_vfio_region *out)
{
	struct rig_kvfio_region_info info;

	if (len < sizeof(info))
		return -EPROTO;
	memcpy(&info, at, sizeof(info));
	out->bytes = info.bytes;
	out->readable = (info.flags & RIG_KVFIO_REGION_READ) != 0;
	out->writable = (info.flags & RIG_KVFIO_REGION_WRITE) != 0;
	out->fd_offset = info.offset;
	out->areas = 0;
	if (!(info.flags & RIG_KVFIO_REGION_MMAP) || info.bytes == 0)
		return 0;
	return add_areas(at, len, (info.flags & RIG_KVFIO_REGION_CAPS) ? info.caps : 0, page, out);
}

static int add_ranges(const void *at, size_t len, uint32_t caps, struct rig_ranges *ranges)
{
	const void *cap = rig_kparse_cap(
	        at, len, caps, RIG_KVFIO_CAP_IOVA_RANGES, sizeof(struct rig_kvfio_iova_ranges));
	struct rig_kvfio_iova_ranges head;
	int err = 0;

	if (!cap)
		return rig_ranges_add(ranges, 0, UINT64_MAX);
	memcpy(&head, cap, sizeof(head));
	if (!holds(at, len, cap, head.ranges))
		return -EPROTO;
	for (uint32_t i = 0; i < head.ranges && !err; i++) {
		uint64_t range[2];

		memcpy(range, (const char *)cap + sizeof(head) + i * sizeof(range), sizeof(range));
		err = range[1] < range[0] ? -EPROTO : rig_ranges_add(ranges, range[0], range[1]);
	}
	return err;
}

int rig_kparse_type1(const void *at, size_t len, struct rig_ktype1_info *out, struct rig_ranges *ranges)
{
	struct rig_kvfio_iommu_info info = {0};
	struct rig_kvfio_dma_avail avail;
	const void *cap;
	uint32_t caps;

	if (len < offsetof(struct rig_kvfio_iommu_info, caps))
		return -EPROTO;
	memcpy(&info, at, rig_min_u64(len, sizeof(info)));
	caps = (info.flags & RIG_KVFIO_IOMMU_CAPS) ? info.caps : 0;
	out->pgsizes = (info.flags & RIG_KVFIO_IOMMU_PGSIZES) ? info.pgsizes : 0;
	out->avail = UINT64_MAX;
	cap = rig_kparse_cap(at, len, caps, RIG_KVFIO_CAP_DMA_AVAIL, sizeof(avail));
	if (cap) {
		memcpy(&avail, cap, sizeof(avail));
		out->avail = avail.avail;
	}
	return add_ranges(at, len, caps, ranges);
}

bool rig_pci_token_parse(const char *text, unsigned char *uuid)
{
	static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
	unsigned nibbles = 0;

	for (size_t i = 0; form[i]; i++) {
		char c = text[i];
		int value = c <= '9' ? c - '0' : (c | ('a' ^ 'A')) - 'a' + 10;

		if (form[i] == '-' ? c != '-' : !isxdigit((unsigned char)c))
			return false;
		if (form[i] == '-')
			continue;
		uuid[nibbles / 2] = (unsigned char)(nibbles % 2 ? uuid[nibbles / 2] << 4 | value : value);
		nibbles++;
	}
	return !text[sizeof(form) - 1];
}
