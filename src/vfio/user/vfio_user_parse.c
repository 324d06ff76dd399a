/* SPDX-License-Identifier: MIT */
#include "vfio_user_parse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bits.h"

static int wrong(const char **why, const char *what)
{
	*why = what;
	return -EPROTO;
}

/* The fixed part at the start of a payload; more may follow. */
static bool take(void *out, size_t want, const void *bytes, size_t len)
{
	if (len < want)
		return false;
	memcpy(out, bytes, want);
	return true;
}

int rig_vuser_parse_header(
        const void *bytes, size_t len, size_t max, struct rig_vuser_header *out, const char **why)
{
	if (!take(out, sizeof(*out), bytes, len))
		return wrong(why, "a message shorter than its header");
	if (out->size < sizeof(*out))
		return wrong(why, "a message that says it is shorter than its header");
	if (out->size > max)
		return wrong(why, "a message longer than was agreed");
	if (out->command == 0 || out->command >= RIG_VUSER_COMMAND_END)
		return wrong(why, "a command that is not known");
	if ((out->flags & RIG_VUSER_TYPE_MASK) > RIG_VUSER_TYPE_REPLY)
		return wrong(why, "a message that is neither command nor reply");
	return 0;
}

int rig_vuser_parse_version(const void *bytes, size_t len, struct rig_vuser_caps *out, const char **why)
{
	struct rig_vuser_version v;
	const char *json;
	size_t json_len;

	if (!take(&v, sizeof(v), bytes, len))
		return wrong(why, "a version reply shorter than its version");
	*out = (struct rig_vuser_caps){
	        .major = v.major,
	        .minor = v.minor,
	        .max_fds = RIG_VUSER_DEFAULT_FDS,
	        .max_xfer = RIG_VUSER_DEFAULT_XFER,
	        .max_maps = RIG_VUSER_DEFAULT_MAPS,
	        .page_sizes = RIG_VUSER_DEFAULT_PAGES,
	};
	json = (const char *)bytes + sizeof(v);
	json_len = len - sizeof(v);
	if (json_len == 0)
		return 0;
	if (json_len > RIG_VUSER_JSON_BYTES)
		return wrong(why, "capabilities longer than any server needs");
	if (json[json_len - 1] != '\0')
		return wrong(why, "capabilities that do not end with a NUL");
	return rig_vuser_json_read(json, out, why);
}

int rig_vuser_parse_device(const void *bytes, size_t len, struct rig_vuser_device_info *out, const char **why)
{
	if (!take(out, sizeof(*out), bytes, len))
		return wrong(why, "a device info that is too short");
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct rig_vfio_area *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int check_areas(struct rig_vfio_region *r, const char **why)
{
	uint64_t end = 0;

	qsort(r->area, r->areas, sizeof(r->area[0]), compare);
	for (unsigned i = 0; i < r->areas; i++) {
		if (!rig_span_fits(r->area[i].offset, r->area[i].bytes, r->bytes))
			return wrong(why, "a mappable area outside its region");
		if (r->area[i].offset < end)
			return wrong(why, "mappable areas that overlap");
		end = r->area[i].offset + r->area[i].bytes;
	}
	return 0;
}

static int parse_sparse(const char *at, size_t len, struct rig_vfio_region *r, const char **why)
{
	struct rig_vuser_sparse head;

	if (!take(&head, sizeof(head), at, len))
		return wrong(why, "a sparse capability that is too short");
	if (head.areas > (len - sizeof(head)) / sizeof(struct rig_vuser_area))
		return wrong(why, "a sparse capability with more areas than bytes");
	r->areas = 0;
	for (uint32_t i = 0; i < head.areas; i++) {
		struct rig_vuser_area area;

		memcpy(&area, at + sizeof(head) + i * sizeof(area), sizeof(area));
		if (area.bytes == 0)
			continue;
		if (r->areas == RIG_VFIO_AREAS) {
			r->areas = 0; /* by message */
			return 0;
		}
		r->area[r->areas++] = (struct rig_vfio_area){area.offset, area.bytes};
	}
	return check_areas(r, why);
}

/* "VFIO region capabilities": a list by offsets from the start of the info. A list only ever goes forward
 * here, so that a loop ends; no server sends another. */
static int parse_caps(const char *bytes, size_t len, uint32_t at, struct rig_vfio_region *r, const char **why)
{
	size_t floor = sizeof(struct rig_vuser_region_info);

	while (at != 0) {
		struct rig_vuser_cap cap;

		if (at < floor || at > len || len - at < sizeof(cap))
			return wrong(why, "a region capability outside the region info");
		memcpy(&cap, bytes + at, sizeof(cap));
		floor = at + sizeof(cap);
		if (cap.id == RIG_VUSER_CAP_SPARSE) {
			int err = parse_sparse(bytes + floor, len - floor, r, why);

			if (err)
				return err;
		}
		at = cap.next;
	}
	return 0;
}

static void take_region(struct rig_vfio_region *out, const struct rig_vuser_region_info *info)
{
	*out = (struct rig_vfio_region){
	        .bytes = info->bytes,
	        .readable = (info->flags & RIG_VUSER_REGION_READABLE) != 0,
	        .writable = (info->flags & RIG_VUSER_REGION_WRITABLE) != 0,
	        .fd = -1,
	        .fd_offset = info->offset,
	};
	if ((info->flags & RIG_VUSER_REGION_MAPPABLE) && info->bytes > 0) {
		out->areas = 1;
		out->area[0] = (struct rig_vfio_area){0, info->bytes};
	}
}

int rig_vuser_parse_region(
        const void *bytes, size_t len, unsigned index, struct rig_vfio_region *out, const char **why)
{
	struct rig_vuser_region_info info;
	int err;

	if (!take(&info, sizeof(info), bytes, len))
		return wrong(why, "a region info that is too short");
	if (info.index != index)
		return wrong(why, "the info of another region");
	take_region(out, &info);
	/* A list of areas longer than was asked for stays with the device process: by message. */
	if (info.argsz > RIG_VUSER_REGION_INFO_BYTES) {
		out->areas = 0;
		return 0;
	}
	if (info.argsz > len)
		return wrong(why, "a region info that is shorter than it says");
	if (!(info.flags & RIG_VUSER_REGION_CAPS) || info.cap_offset == 0)
		return 0;
	err = parse_caps(bytes, len, info.cap_offset, out, why);
	if (!err && !(info.flags & RIG_VUSER_REGION_MAPPABLE))
		out->areas = 0;
	return err;
}

int rig_vuser_parse_irq(const void *bytes, size_t len, unsigned index, unsigned *count, const char **why)
{
	struct rig_vuser_irq_info info;

	if (!take(&info, sizeof(info), bytes, len))
		return wrong(why, "an interrupt info that is too short");
	if (info.index != index)
		return wrong(why, "the info of another interrupt");
	/* PCI: MSI-X has at most 2,048 vectors (PCI 3.0 section 6.8.2.3). */
	if (info.count > 2048)
		return wrong(why, "more interrupts than a PCI function can have");
	*count = (info.flags & RIG_VUSER_IRQ_EVENTFD) ? info.count : 0;
	return 0;
}

static int parse_access(const void *bytes, size_t len, const struct rig_vuser_region_access *asked,
        size_t data, const char **why)
{
	struct rig_vuser_region_access a;

	if (!take(&a, sizeof(a), bytes, len))
		return wrong(why, "a region access reply that is too short");
	if (a.offset != asked->offset || a.region != asked->region || a.count != asked->count)
		return wrong(why, "the reply to another region access");
	if (len - sizeof(a) != data)
		return wrong(why, "a region access reply of another length than it says");
	return 0;
}

int rig_vuser_parse_region_read(const void *bytes, size_t len, const struct rig_vuser_region_access *asked,
        const void **data, const char **why)
{
	*data = (const char *)bytes + sizeof(*asked);
	return parse_access(bytes, len, asked, asked->count, why);
}

int rig_vuser_parse_region_write(
        const void *bytes, size_t len, const struct rig_vuser_region_access *asked, const char **why)
{
	return parse_access(bytes, len, asked, 0, why);
}

int rig_vuser_parse_dma(const void *bytes, size_t len, bool write, uint64_t max,
        struct rig_vuser_dma_access *out, const void **data, const char **why)
{
	*data = NULL;
	if (!take(out, sizeof(*out), bytes, len))
		return wrong(why, "a DMA command that is too short");
	if (out->count > max)
		return wrong(why, "a DMA command for more bytes than was agreed");
	if (len - sizeof(*out) != (write ? out->count : 0))
		return wrong(why, "a DMA command of another length than it says");
	if (write)
		*data = (const char *)bytes + sizeof(*out);
	return 0;
}
