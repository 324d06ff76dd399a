/* SPDX-License-Identifier: MIT */
/* Interrupts: eventfds of the client, masks, pending bits, the MSI-X table. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "vfu_priv.h"

#define TABLE_ENTRY 16u
#define PBA_BITS    8u /* in one byte */
#define EVENT_SIZE  sizeof(uint64_t)
#define WATCH_MASK  0
#define WATCH_UMASK 1

static void set_fd(int *slot, int fd)
{
	if (*slot >= 0)
		close(*slot);
	*slot = fd;
}

static uint8_t *control_of(struct vfu_irqs *irqs, unsigned vector)
{
	return irqs->table + (size_t)vector * TABLE_ENTRY + PCI_MSIX_ENTRY_VECTOR_CTRL;
}

static void mask_table(struct vfu_device *dev)
{
	memset(dev->irqs.table, 0, (size_t)dev->config.msix.vectors * TABLE_ENTRY);
	for (unsigned i = 0; i < dev->config.msix.vectors; i++)
		*control_of(&dev->irqs, i) = PCI_MSIX_ENTRY_CTRL_MASKBIT;
}

int vfu_irqs_init(struct vfu_device *dev)
{
	struct vfu_irqs *irqs = &dev->irqs;
	size_t vectors = dev->config.msix.vectors;

	irqs->intx.efd = irqs->err = irqs->req = -1;
	irqs->intx_watch[WATCH_MASK] = irqs->intx_watch[WATCH_UMASK] = -1;
	for (size_t i = 0; i < sizeof(irqs->msi) / sizeof(irqs->msi[0]); i++)
		irqs->msi[i].efd = -1;
	irqs->msix = calloc(vectors ? vectors : 1, sizeof(*irqs->msix));
	irqs->table = calloc(vectors ? vectors : 1, TABLE_ENTRY);
	if (!irqs->msix || !irqs->table)
		return -ENOMEM;
	for (size_t i = 0; i < vectors; i++)
		irqs->msix[i].efd = -1;
	mask_table(dev);
	return 0;
}

void vfu_irqs_fini(struct vfu_device *dev)
{
	free(dev->irqs.msix);
	free(dev->irqs.table);
	dev->irqs.msix = NULL;
	dev->irqs.table = NULL;
}

static void clear_flag(struct vfu_device *dev, uint32_t cap, uint32_t reg, uint32_t flag)
{
	if (cap)
		vfu_cfg_set(dev, cap + reg, 2, vfu_cfg_read(dev, cap + reg, 2) & ~flag);
}

static void set_flag(struct vfu_device *dev, uint32_t cap, uint32_t reg, uint32_t flag)
{
	vfu_cfg_set(dev, cap + reg, 2, vfu_cfg_read(dev, cap + reg, 2) | flag);
}

static void disable_msix(struct vfu_device *dev)
{
	for (unsigned i = 0; i < dev->config.msix.vectors; i++) {
		set_fd(&dev->irqs.msix[i].efd, -1);
		dev->irqs.msix[i].masked = false;
		dev->irqs.msix[i].pending = false;
	}
	dev->irqs.msix_on = false;
	clear_flag(dev, dev->cap_msix, PCI_MSIX_FLAGS, PCI_MSIX_FLAGS_ENABLE);
}

static void disable_msi(struct vfu_device *dev)
{
	for (unsigned i = 0; i < dev->config.msi_vectors; i++) {
		set_fd(&dev->irqs.msi[i].efd, -1);
		dev->irqs.msi[i].masked = false;
		dev->irqs.msi[i].pending = false;
	}
	dev->irqs.msi_on = false;
	clear_flag(dev, dev->cap_msi, PCI_MSI_FLAGS, PCI_MSI_FLAGS_ENABLE);
}

static void disable_intx(struct vfu_device *dev)
{
	set_fd(&dev->irqs.intx.efd, -1);
	set_fd(&dev->irqs.intx_watch[WATCH_MASK], -1);
	set_fd(&dev->irqs.intx_watch[WATCH_UMASK], -1);
	dev->irqs.intx.masked = false;
}

static void disable(struct vfu_device *dev, uint32_t index)
{
	switch (index) {
	case VFIO_PCI_INTX_IRQ_INDEX:
		disable_intx(dev);
		break;
	case VFIO_PCI_MSI_IRQ_INDEX:
		disable_msi(dev);
		break;
	case VFIO_PCI_MSIX_IRQ_INDEX:
		disable_msix(dev);
		break;
	case VFIO_PCI_ERR_IRQ_INDEX:
		set_fd(&dev->irqs.err, -1);
		break;
	default:
		set_fd(&dev->irqs.req, -1);
		break;
	}
}

void vfu_irqs_release(struct vfu_device *dev)
{
	for (uint32_t i = 0; i < VFU_IRQ_INDICES; i++)
		disable(dev, i);
}

/*
 * Assignments survive a reset, as they do in the kernel, which saves and restores the interrupt set-up
 * around its resets. What the function itself held goes: pending bits, the line, the table.
 */
void vfu_irqs_reset(struct vfu_device *dev)
{
	struct vfu_irqs *irqs = &dev->irqs;

	irqs->asserted = false;
	mask_table(dev);
	for (unsigned i = 0; i < dev->config.msix.vectors; i++) {
		irqs->msix[i].pending = false;
		if (irqs->msix[i].efd >= 0)
			*control_of(irqs, i) = 0;
	}
	for (unsigned i = 0; i < dev->config.msi_vectors; i++)
		irqs->msi[i].pending = false;
	if (irqs->msix_on)
		set_flag(dev, dev->cap_msix, PCI_MSIX_FLAGS, PCI_MSIX_FLAGS_ENABLE);
	if (irqs->msi_on)
		set_flag(dev, dev->cap_msi, PCI_MSI_FLAGS, PCI_MSI_FLAGS_ENABLE);
}

/* A full counter would block the write; whoever filled it has news enough. */
static int signal_fd(int fd)
{
	struct pollfd room = {.fd = fd, .events = POLLOUT};
	uint64_t one = 1;

	if (fd < 0)
		return 0;
	if (poll(&room, 1, 0) == 1 && (room.revents & POLLOUT))
		return write(fd, &one, sizeof(one)) == (ssize_t)sizeof(one);
	return 1;
}

static uint32_t msix_flags(const struct vfu_device *dev)
{
	return dev->cap_msix ? vfu_cfg_read(dev, dev->cap_msix + PCI_MSIX_FLAGS, 2) : 0;
}

static bool msix_used(const struct vfu_device *dev)
{
	return dev->irqs.msix_on && (msix_flags(dev) & PCI_MSIX_FLAGS_ENABLE);
}

static bool msi_used(const struct vfu_device *dev)
{
	return dev->config.msi_vectors && dev->irqs.msi_on &&
	       (vfu_cfg_read(dev, dev->cap_msi + PCI_MSI_FLAGS, 2) & PCI_MSI_FLAGS_ENABLE);
}

static int deliver(struct vfu_vector *v, bool masked)
{
	if (masked || v->masked || v->efd < 0)
		return 0;
	v->pending = false;
	return signal_fd(v->efd);
}

static int deliver_msix(struct vfu_device *dev, unsigned vector)
{
	bool masked = (msix_flags(dev) & PCI_MSIX_FLAGS_MASKALL) ||
	              (*control_of(&dev->irqs, vector) & PCI_MSIX_ENTRY_CTRL_MASKBIT);

	return deliver(&dev->irqs.msix[vector], masked);
}

/* The line is a level; the eventfd fires once and masks itself until the client unmasks (AUTOMASKED). */
static int deliver_intx(struct vfu_device *dev)
{
	struct vfu_irqs *irqs = &dev->irqs;

	if (!irqs->asserted || irqs->intx.masked || irqs->intx.efd < 0)
		return 0;
	if (vfu_cfg_read(dev, PCI_COMMAND, 2) & PCI_COMMAND_INTX_DISABLE)
		return 0;
	irqs->intx.masked = true;
	return signal_fd(irqs->intx.efd);
}

static void show_line(struct vfu_device *dev)
{
	uint8_t *status = dev->cfg + PCI_STATUS;

	if (dev->irqs.asserted)
		*status |= PCI_STATUS_INTERRUPT;
	else
		*status &= (uint8_t)~PCI_STATUS_INTERRUPT;
}

void vfu_irqs_update(struct vfu_device *dev)
{
	struct vfu_irqs *irqs = &dev->irqs;

	show_line(dev);
	if (msix_used(dev)) {
		for (unsigned i = 0; i < dev->config.msix.vectors; i++)
			if (irqs->msix[i].pending)
				deliver_msix(dev, i);
	} else if (msi_used(dev)) {
		for (unsigned i = 0; i < dev->config.msi_vectors; i++)
			if (irqs->msi[i].pending)
				deliver(&irqs->msi[i], false);
	} else {
		deliver_intx(dev);
	}
}

int vfu_irq(struct vfu_device *dev, unsigned vector)
{
	const struct vfu_config *c = &dev->config;

	if (vector >= c->msix.vectors && vector >= c->msi_vectors && !(c->intx && vector == 0))
		return -EINVAL;
	if (msix_used(dev)) {
		if (vector >= c->msix.vectors)
			return -EINVAL;
		dev->irqs.msix[vector].pending = true;
		return deliver_msix(dev, vector);
	}
	if (msi_used(dev)) {
		struct vfu_vector *v = &dev->irqs.msi[vector % c->msi_vectors];

		v->pending = true;
		return deliver(v, false);
	}
	if (!c->intx)
		return 0;
	dev->irqs.asserted = true;
	show_line(dev);
	return deliver_intx(dev);
}

void vfu_irq_clear(struct vfu_device *dev)
{
	dev->irqs.asserted = false;
	show_line(dev);
}

int vfu_irq_err(struct vfu_device *dev)
{
	return signal_fd(dev->irqs.err);
}

int vfu_irq_req(struct vfu_device *dev)
{
	return signal_fd(dev->irqs.req);
}

/*
 * One client-to-server eventfd: true if it was signalled. Never blocks, whatever the descriptor's flags
 * are.
 */
static bool fired(int fd)
{
	uint64_t value;
	struct iovec part = {.iov_base = &value, .iov_len = sizeof(value)};

	return fd >= 0 && preadv2(fd, &part, 1, -1, RWF_NOWAIT) == (ssize_t)EVENT_SIZE;
}

int vfu_irqs_watch(struct vfu_device *dev)
{
	struct vfu_irqs *irqs = &dev->irqs;
	int did = 0;

	if (fired(irqs->intx_watch[WATCH_MASK])) {
		irqs->intx.masked = true;
		did = 1;
	}
	if (fired(irqs->intx_watch[WATCH_UMASK])) {
		irqs->intx.masked = false;
		vfu_irqs_update(dev);
		did = 1;
	}
	return did;
}

static void count_all(const struct vfu_device *dev, uint32_t counts[VFU_IRQ_INDICES])
{
	counts[VFIO_PCI_INTX_IRQ_INDEX] = dev->config.intx;
	counts[VFIO_PCI_MSI_IRQ_INDEX] = dev->config.msi_vectors;
	counts[VFIO_PCI_MSIX_IRQ_INDEX] = dev->config.msix.vectors;
	counts[VFIO_PCI_ERR_IRQ_INDEX] = 1;
	counts[VFIO_PCI_REQ_IRQ_INDEX] = 1;
}

int vfu_irqs_info(struct vfu_device *dev, struct vfu_msg *msg, struct vfu_reply *reply)
{
	static const uint32_t flags[VFU_IRQ_INDICES] = {
	        [VFIO_PCI_INTX_IRQ_INDEX] =
	                VFIO_IRQ_INFO_EVENTFD | VFIO_IRQ_INFO_MASKABLE | VFIO_IRQ_INFO_AUTOMASKED,
	        [VFIO_PCI_MSI_IRQ_INDEX] = VFIO_IRQ_INFO_EVENTFD | VFIO_IRQ_INFO_MASKABLE,
	        [VFIO_PCI_MSIX_IRQ_INDEX] = VFIO_IRQ_INFO_EVENTFD | VFIO_IRQ_INFO_MASKABLE,
	        [VFIO_PCI_ERR_IRQ_INDEX] = VFIO_IRQ_INFO_EVENTFD,
	        [VFIO_PCI_REQ_IRQ_INDEX] = VFIO_IRQ_INFO_EVENTFD,
	};
	uint32_t counts[VFU_IRQ_INDICES];
	struct vfu_wire_irq_info info;
	void *body;
	int rc = vfu_parse_irq_info(msg->body, msg->len, &info);

	if (rc)
		return rc;
	count_all(dev, counts);
	info = (struct vfu_wire_irq_info){.argsz = sizeof(info),
	        .flags = flags[info.index],
	        .index = info.index,
	        .count = counts[info.index]};
	body = vfu_reply_take(reply, sizeof(info));
	if (!body)
		return -ENOMEM;
	memcpy(body, &info, sizeof(info));
	return 0;
}

/* The vector behind (index, i); NULL for error and request, which are bare descriptors. */
static struct vfu_vector *vector_of(struct vfu_device *dev, uint32_t index, uint32_t i)
{
	switch (index) {
	case VFIO_PCI_INTX_IRQ_INDEX:
		return &dev->irqs.intx;
	case VFIO_PCI_MSI_IRQ_INDEX:
		return &dev->irqs.msi[i];
	case VFIO_PCI_MSIX_IRQ_INDEX:
		return &dev->irqs.msix[i];
	default:
		return NULL;
	}
}

static int *slot_of(struct vfu_device *dev, const struct vfu_irq_set *set, uint32_t i)
{
	struct vfu_vector *v = vector_of(dev, set->index, i);

	if (v)
		return &v->efd;
	return set->index == VFIO_PCI_ERR_IRQ_INDEX ? &dev->irqs.err : &dev->irqs.req;
}

/* Only an eventfd: a write to a pipe, socket or file of the client's could block or land anywhere. */
static bool is_eventfd(int fd)
{
	static const char kind[] = "anon_inode:[eventfd]";
	char path[sizeof("/proc/self/fd/") + 12], link[sizeof(kind)];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	len = readlink(path, link, sizeof(link));
	return len < 0 || ((size_t)len == sizeof(kind) - 1 && !memcmp(link, kind, sizeof(kind) - 1));
}

static void enable(struct vfu_device *dev, uint32_t index)
{
	if (index == VFIO_PCI_MSIX_IRQ_INDEX && !dev->irqs.msix_on) {
		dev->irqs.msix_on = true;
		set_flag(dev, dev->cap_msix, PCI_MSIX_FLAGS, PCI_MSIX_FLAGS_ENABLE);
	} else if (index == VFIO_PCI_MSI_IRQ_INDEX && !dev->irqs.msi_on) {
		dev->irqs.msi_on = true;
		set_flag(dev, dev->cap_msi, PCI_MSI_FLAGS, PCI_MSI_FLAGS_ENABLE);
	}
}

/* Takes the message's descriptors, or takes assignments back where there are none. */
static void assign(struct vfu_device *dev, const struct vfu_irq_set *set, struct vfu_msg *msg)
{
	for (uint32_t i = 0; i < set->count; i++) {
		struct vfu_vector *v = vector_of(dev, set->index, set->start + i);

		set_fd(slot_of(dev, set, set->start + i), msg->fd_count ? msg->fds[i] : -1);
		if (!msg->fd_count)
			continue;
		msg->fds[i] = -1;
		if (v)
			v->masked = false;
		if (set->index == VFIO_PCI_MSIX_IRQ_INDEX)
			*control_of(&dev->irqs, set->start + i) &= (uint8_t)~PCI_MSIX_ENTRY_CTRL_MASKBIT;
	}
	if (msg->fd_count)
		enable(dev, set->index);
	vfu_irqs_update(dev);
}

/*
 * Linux/vfio.h: with eventfds, MASK and UNMASK go from the client to the device; the kernel has that for
 * INTx only.
 */
static int watch(struct vfu_device *dev, const struct vfu_irq_set *set, struct vfu_msg *msg)
{
	int *slot = &dev->irqs.intx_watch[set->action == VFU_IRQ_MASK ? WATCH_MASK : WATCH_UMASK];

	if (set->index != VFIO_PCI_INTX_IRQ_INDEX)
		return -ENOTSUP;
	set_fd(slot, msg->fd_count ? msg->fds[0] : -1);
	if (msg->fd_count)
		msg->fds[0] = -1;
	return 0;
}

static int set_eventfds(struct vfu_device *dev, const struct vfu_irq_set *set, struct vfu_msg *msg)
{
	for (size_t i = 0; i < msg->fd_count; i++)
		if (!is_eventfd(msg->fds[i]))
			return -EINVAL;
	if (set->action != VFU_IRQ_TRIGGER)
		return watch(dev, set, msg);
	assign(dev, set, msg);
	return 0;
}

/*
 * TRIGGER without descriptors fires the eventfd whatever the masks say: a client's way to try its own
 * handler.
 */
static int act(struct vfu_device *dev, const struct vfu_irq_set *set)
{
	for (uint32_t i = 0; i < set->count; i++) {
		struct vfu_vector *v = vector_of(dev, set->index, set->start + i);

		if (set->bools && !set->bools[i])
			continue;
		if (set->action == VFU_IRQ_TRIGGER)
			signal_fd(*slot_of(dev, set, set->start + i));
		else if (!v)
			return -EINVAL;
		else
			v->masked = set->action == VFU_IRQ_MASK;
	}
	vfu_irqs_update(dev);
	return 0;
}

int vfu_irqs_set(struct vfu_device *dev, struct vfu_msg *msg, struct vfu_reply *reply)
{
	uint32_t counts[VFU_IRQ_INDICES];
	struct vfu_irq_set set;
	int rc;

	(void)reply;
	count_all(dev, counts);
	rc = vfu_parse_irq_set(msg->body, msg->len, counts, msg->fd_count, &set);
	if (rc)
		return rc;
	if (set.disable) {
		disable(dev, set.index);
		vfu_irqs_update(dev);
		return 0;
	}
	return set.eventfds ? set_eventfds(dev, &set, msg) : act(dev, &set);
}

void vfu_msix_table_read(struct vfu_device *dev, uint64_t off, uint8_t *buf, size_t len)
{
	memcpy(buf, dev->irqs.table + off, len);
}

void vfu_msix_table_write(struct vfu_device *dev, uint64_t off, const uint8_t *buf, size_t len)
{
	memcpy(dev->irqs.table + off, buf, len);
	vfu_irqs_update(dev);
}

void vfu_msix_pba_read(struct vfu_device *dev, uint64_t off, uint8_t *buf, size_t len)
{
	memset(buf, 0, len);
	for (size_t bit = 0; bit < len * PBA_BITS; bit++) {
		size_t vector = off * PBA_BITS + bit;

		if (vector < dev->config.msix.vectors && dev->irqs.msix[vector].pending)
			buf[bit / PBA_BITS] |= (uint8_t)(1u << bit % PBA_BITS);
	}
}
