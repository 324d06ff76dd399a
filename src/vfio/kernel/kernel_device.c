/* SPDX-License-Identifier: MIT */
/* A device's descriptor: the same however it was got. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bits.h"
#include "error.h"
#include "kernel_abi.h"
#include "kernel_parse.h"
#include "kernel_private.h"
#include "le.h"
#include "text.h"

#define NO_VENDOR 0xffffu

/* Configuration space (PCI 3.0 section 6.1). */
enum { VENDOR_ID = 0x00, CLASS = 0x08 };

int rig_kernel_ioctl(struct rig_kernel *k, int fd, unsigned long request, void *arg)
{
	int answer;

	atomic_fetch_add_explicit(&k->calls, 1, memory_order_relaxed);
	do
		answer = k->env->sys->ioctl(fd, request, arg);
	while (answer < 0 && errno == EINTR);
	return answer < 0 ? -errno : answer;
}

/* -- Failures of opening -- */

static const char *called(const struct rig_kernel *k)
{
	return *k->sysfs.bdf ? k->sysfs.bdf : "the function";
}

int rig_kernel_fail(struct rig_kernel *k, enum rig_pci_step step, int err, const char *what, ...)
{
	struct rig_pci_attempt *t = &k->tried;
	char attempt[RIG_PCI_ATTEMPT_TEXT];
	struct rig_text text;
	va_list args;

	va_start(args, what);
	vsnprintf(attempt, sizeof(attempt), what, args);
	va_end(args);
	t->step = step;
	rig_text_init(&text, t->text, sizeof(t->text));
	rig_text_addf(&text, "%s%s%s", called(k), *attempt ? ": " : "", attempt);
	rig_text_add_errno(&text, err);
	return rig_error_set(err < 0 ? err : -err, "%s", t->text);
}

int rig_kernel_fail_node(struct rig_kernel *k, int err, const char *path)
{
	snprintf(k->tried.node, sizeof(k->tried.node), "%s", path);
	return rig_kernel_fail(k, RIG_PCI_STEP_NODE, err, "opening %s", path);
}

int rig_kernel_fail_device(struct rig_kernel *k, int err, const char *what)
{
	return rig_kernel_fail(
	        k, RIG_PCI_STEP_DEVICE, err, "%s%s", what, *k->token ? " with the token given" : "");
}

/* -- The token of a virtual function's owner -- */

char *rig_kernel_name(const struct rig_kernel *k, char *name)
{
	snprintf(name, RIG_KERNEL_NAME, "%s%s%s", k->sysfs.bdf, *k->token ? " vf_token=" : "", k->token);
	return name;
}

bool rig_kernel_token(const struct rig_kernel *k, unsigned char *uuid)
{
	return rig_pci_token_parse(k->token, uuid);
}

/* A physical function's owner sets it. A virtual one's user gave it when the function was opened. */
static int set_token(struct rig_kernel *k)
{
	struct rig_kvfio_token set = {
	        .argsz = sizeof(set), .flags = RIG_KVFIO_FEATURE_TOKEN | RIG_KVFIO_FEATURE_SET};
	int err;

	if (!rig_kernel_token(k, set.uuid) || k->sysfs.virtual)
		return 0;
	err = rig_kernel_ioctl(k, k->fd, RIG_KVFIO_DEVICE_FEATURE, &set);
	if (err == -ENOTTY)
		return rig_vfio_fail(ENOTSUP, "open it without vf-token",
		        "%s: it takes no token, having no virtual functions and being none", k->sysfs.bdf);
	return err < 0 ? rig_vfio_fail(err, NULL, "%s: setting the token", k->sysfs.bdf) : 0;
}

/* -- Facts -- */

static int get_device(struct rig_kernel *k)
{
	struct rig_kvfio_device_info info = {.argsz = sizeof(info)};
	int err = rig_kernel_ioctl(k, k->fd, RIG_KVFIO_DEVICE_GET_INFO, &info);

	if (err < 0)
		return rig_vfio_fail(err, NULL, "VFIO_DEVICE_GET_INFO");
	if (!(info.flags & RIG_KVFIO_DEVICE_PCI) || info.regions <= RIG_VFIO_CONFIG)
		return rig_vfio_fail(ENOTSUP, "bind it to vfio-pci",
		        "the descriptor is of no PCI function (flags %#x, %u regions)", info.flags,
		        info.regions);
	k->flags = info.flags;
	k->regions = info.regions;
	k->irqs = info.irqs;
	return 0;
}

static void get_irq(struct rig_kernel *k, unsigned kind)
{
	struct rig_kvfio_irq_info info = {.argsz = sizeof(info), .index = kind};

	/* ERR of a function that is no PCIe one: EINVAL. */
	if (kind >= k->irqs || rig_kernel_ioctl(k, k->fd, RIG_KVFIO_DEVICE_GET_IRQ, &info) < 0)
		return;
	k->irq_count[kind] = info.count;
	k->irq_noresize[kind] = (info.flags & RIG_KVFIO_IRQ_NORESIZE) != 0;
}

/* Before the first access to a register: a function without power, link or vendor id answers ones, or
 * hangs the bus. */
static int check_there(struct rig_kernel *k)
{
	const struct rig_ksysfs *s = &k->sysfs;
	unsigned char id[2] = {0xff, 0xff};
	unsigned vendor;
	int err;

	if (strcmp(s->power, "D3hot") == 0 || strcmp(s->power, "D3cold") == 0)
		return rig_kernel_fail(k, RIG_PCI_STEP_ASLEEP, ENODEV, "power state %s", s->power);
	err = rig_kernel_read(k, RIG_VFIO_CONFIG, 0, id, sizeof(id));
	if (err)
		return rig_vfio_fail(err, NULL, "%s: reading the vendor id", s->bdf);
	vendor = rig_get_le16(id);
	if (vendor == NO_VENDOR)
		return rig_kernel_fail(
		        k, RIG_PCI_STEP_ONES, ENODEV, "its configuration space answers all ones");
	if (s->vendor && vendor != s->vendor)
		return rig_vfio_fail(ENODEV, "remove the function and rescan the bus",
		        "%s: the vendor id reads %#06x, the system found %#06x", s->bdf, vendor, s->vendor);
	return 0;
}

int rig_kernel_identify(struct rig_kernel *k)
{
	struct rig_vfio_region config = {0};
	char bdf[sizeof(k->sysfs.bdf)];
	int err = get_device(k);

	if (!err)
		err = rig_kernel_region(k, RIG_VFIO_CONFIG, &config);
	if (err)
		return err;
	for (unsigned kind = 0; kind < RIG_IRQ_KINDS; kind++)
		get_irq(k, kind);
	/* Again: opening woke the function. */
	memcpy(bdf, k->sysfs.bdf, sizeof(bdf));
	if (*bdf)
		(void)rig_ksysfs_read(k->env->root, bdf, &k->sysfs);
	err = check_there(k);
	if (!err)
		err = set_token(k);
	if (!err && !(k->flags & RIG_KVFIO_DEVICE_RESETS)) {
		k->hot_resets = rig_kernel_hot_check(k) == 0;
		if (!k->hot_resets)
			snprintf(k->no_reset, sizeof(k->no_reset), "%s", rig_error());
	}
	return err;
}

/* The answer with all its capabilities, to be freed. */
static int get_region(struct rig_kernel *k, unsigned index, void **out, size_t *len)
{
	struct rig_kvfio_region_info head = {.argsz = sizeof(head), .index = index};
	/* A sane upper bound of RIG_VFIO_AREAS areas and a few capabilities; a kernel that wants more is
	 * not served. */
	enum { MOST = 1 << 16 };
	struct rig_kvfio_region_info *info;
	int err = rig_kernel_ioctl(k, k->fd, RIG_KVFIO_DEVICE_GET_REGION, &head);

	if (err < 0)
		return err;
	*len = rig_max_u64(sizeof(head), rig_min_u64(head.argsz, MOST));
	info = calloc(1, *len);
	if (!info)
		return -ENOMEM;
	info->argsz = (uint32_t)*len;
	info->index = index;
	err = *len > sizeof(head) ? rig_kernel_ioctl(k, k->fd, RIG_KVFIO_DEVICE_GET_REGION, info) : 0;
	if (*len == sizeof(head))
		*info = head;
	if (err < 0) {
		free(info);
		return err;
	}
	*out = info;
	return 0;
}

void rig_kernel_facts(const struct rig_kernel *k, struct rig_vfio_device *out)
{
	out->resets = (k->flags & RIG_KVFIO_DEVICE_RESETS) || k->hot_resets;
	out->bdf = *k->sysfs.bdf ? k->sysfs.bdf : NULL;
	memcpy(out->bus, k->sysfs.bar, sizeof(out->bus));
}

int rig_kernel_region(void *transport, unsigned index, struct rig_vfio_region *out)
{
	struct rig_kernel *k = transport;
	void *info = NULL;
	size_t len;
	int err;

	out->fd = -1;
	if (index >= k->regions)
		return 0;
	err = get_region(k, index, &info, &len);
	if (!err)
		err = rig_kparse_region(info, len, (uint64_t)sysconf(_SC_PAGESIZE), out);
	free(info);
	if (err)
		return rig_vfio_fail(err, NULL, "VFIO_DEVICE_GET_REGION_INFO of region %u", index);
	k->offset[index] = out->fd_offset;
	k->bytes[index] = out->bytes;
	out->fd = out->areas ? k->fd : -1;
	return 0;
}

int rig_kernel_irqs(void *transport, unsigned kind, unsigned *count)
{
	const struct rig_kernel *k = transport;

	*count = kind < RIG_IRQ_KINDS ? k->irq_count[kind] : 0;
	return 0;
}

uint64_t rig_kernel_messages(const void *transport)
{
	const struct rig_kernel *k = transport;

	return atomic_load_explicit(&k->calls, memory_order_relaxed);
}

bool rig_kernel_exports(struct rig_kernel *k)
{
	struct rig_kvfio_dma_buf probe = {.argsz = sizeof(probe),
	        .flags = RIG_KVFIO_FEATURE_DMA_BUF | RIG_KVFIO_FEATURE_GET | RIG_KVFIO_FEATURE_PROBE};

	return rig_kernel_ioctl(k, k->fd, RIG_KVFIO_DEVICE_FEATURE, &probe) >= 0;
}

int rig_kernel_export(void *transport, unsigned region, uint64_t offset, uint64_t bytes, int *fd)
{
	struct rig_kernel *k = transport;
	struct rig_kvfio_dma_buf get = {.argsz = sizeof(get),
	        .flags = RIG_KVFIO_FEATURE_DMA_BUF | RIG_KVFIO_FEATURE_GET,
	        .region = region,
	        .open_flags = O_RDWR | O_CLOEXEC,
	        .ranges = 1,
	        .offset = offset,
	        .bytes = bytes};
	int answer = rig_kernel_ioctl(k, k->fd, RIG_KVFIO_DEVICE_FEATURE, &get);

	*fd = answer < 0 ? -1 : answer;
	if (answer >= 0)
		return 0;
	if (answer == -ENOTTY || answer == -EOPNOTSUPP)
		return rig_vfio_fail(ENOTSUP, RIG_VFIO_DMABUF_NEEDS,
		        "%s: this kernel exports no BAR as a dma-buf", k->sysfs.bdf);
	return rig_vfio_fail(answer, NULL, "%s: [%#" PRIx64 ", +%#" PRIx64 ") of region %u as a dma-buf",
	        k->sysfs.bdf, offset, bytes, region);
}

/* -- Accesses -- */

/* The largest access that the kernel makes as one: 8, 4, 2 or 1 bytes at a multiple of that; else what is
 * left up to the next such. */
static size_t step(uint64_t offset, uint64_t len)
{
	size_t width = 8;

	while (width > 1 && (!rig_is_aligned(offset, width) || width > len))
		width /= 2;
	return width;
}

static int refuse(struct rig_kernel *k, int err, const char *what, unsigned region, uint64_t offset)
{
	if (err == ENODEV && k->sink)
		k->sink->gone(k->sink->arg, "the kernel says that it has left");
	return rig_vfio_fail(err, NULL, "%s region %u at %#" PRIx64, what, region, offset);
}

static bool fits(const struct rig_kernel *k, unsigned region, uint64_t offset, uint64_t len)
{
	return region < RIG_VFIO_REGIONS && rig_span_fits(offset, len, k->bytes[region]);
}

static int read_all(struct rig_kernel *k, unsigned region, uint64_t offset, void *buf, uint64_t len)
{
	bool config = region == RIG_VFIO_CONFIG;

	if (!fits(k, region, offset, len))
		return refuse(k, EINVAL, "reading", region, offset);
	while (len > 0) {
		/* Configuration space takes at most 4 bytes; a BAR's bulk goes in one call, which makes
		 * the widest accesses itself. */
		size_t n = config ? rig_min_u64(step(offset, len), 4) : len;
		ssize_t got = k->env->sys->pread(k->fd, buf, n, (off_t)(k->offset[region] + offset));

		atomic_fetch_add_explicit(&k->calls, 1, memory_order_relaxed);
		if (got <= 0)
			return refuse(k, got < 0 ? errno : EIO, "reading", region, offset);
		buf = (char *)buf + got;
		offset += (uint64_t)got;
		len -= (uint64_t)got;
	}
	return 0;
}

/*
 * vfio-pci answers vendor and device id from a copy of its own. Whether the function is there says the
 * dword of revision and class, which it reads from the function: all ones there are all ones here, for who
 * asks for the vendor id to learn just that.
 */
static void unmask_absence(struct rig_kernel *k, uint64_t offset, unsigned char *buf, uint64_t len)
{
	unsigned char class[4] = {0};
	bool asks = offset == VENDOR_ID && len >= 2;

	if (asks && read_all(k, RIG_VFIO_CONFIG, CLASS, class, sizeof(class)) == 0 &&
	        rig_get_le32(class) == UINT32_MAX)
		memset(buf, 0xff, rig_min_u64(len, 4));
}

int rig_kernel_read(void *transport, unsigned region, uint64_t offset, void *buf, uint64_t len)
{
	struct rig_kernel *k = transport;
	int err = read_all(k, region, offset, buf, len);

	if (!err && region == RIG_VFIO_CONFIG)
		unmask_absence(k, offset, buf, len);
	return err;
}

int rig_kernel_write(void *transport, unsigned region, uint64_t offset, const void *buf, uint64_t len)
{
	struct rig_kernel *k = transport;
	bool config = region == RIG_VFIO_CONFIG;

	if (!fits(k, region, offset, len))
		return refuse(k, EINVAL, "writing", region, offset);
	while (len > 0) {
		size_t n = config ? rig_min_u64(step(offset, len), 4) : len;
		ssize_t put = k->env->sys->pwrite(k->fd, buf, n, (off_t)(k->offset[region] + offset));

		atomic_fetch_add_explicit(&k->calls, 1, memory_order_relaxed);
		if (put <= 0)
			return refuse(k, put < 0 ? errno : EIO, "writing", region, offset);
		buf = (const char *)buf + put;
		offset += (uint64_t)put;
		len -= (uint64_t)put;
	}
	return 0;
}
