/* SPDX-License-Identifier: MIT */
#include "fake.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bits.h"
#include "rig_pci.h"
#include "error.h"
#include "le.h"
#include "pci_private.h"
#include "range.h"

enum { CONFIG_BYTES = 4096, MAPS_DEFAULT = 64, MAPS_MOST = 1024, VECTORS_MOST = 64 };

struct rig_fake {
	struct rig_fake_options o;
	const struct rig_vfio_sink *sink; /* while open */
	unsigned char *memory[RIG_VFIO_REGIONS];
	uint64_t bytes[RIG_VFIO_REGIONS];
	int fd[RIG_VFIO_REGIONS];
	unsigned open_count, resets, slow, slow_left;
	int refusal; /* what resets answer */
	_Atomic uint64_t fail_at;
	atomic_bool failed, dead, vanished;
	_Atomic uint64_t calls;

	pthread_mutex_t lock; /* of what follows */
	struct rig_vfio_map map[MAPS_MOST];
	unsigned maps;
	int irq[RIG_IRQ_KINDS][VECTORS_MOST]; /* the function's descriptors, -1 */
};

/* -- The test's side -- */

static int make_memory(struct rig_fake *k, unsigned region, uint64_t bytes)
{
	k->bytes[region] = bytes;
	if (bytes == 0)
		return 0;
	k->fd[region] = memfd_create("rig-fake", MFD_CLOEXEC);
	if (k->fd[region] < 0 || ftruncate(k->fd[region], (off_t)bytes) < 0)
		return -errno;
	k->memory[region] = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, k->fd[region], 0);
	if (k->memory[region] == MAP_FAILED) {
		k->memory[region] = NULL;
		return -errno;
	}
	return 0;
}

static void make_config(struct rig_fake *k)
{
	unsigned char *c = k->memory[RIG_VFIO_CONFIG];

	rig_put_le16(c + RIG_PCI_VENDOR_ID, k->o.vendor ? k->o.vendor : 0x1234);
	rig_put_le16(c + RIG_PCI_DEVICE_ID, k->o.device ? k->o.device : 0x5258);
	rig_put_le32(c + RIG_PCI_REVISION, k->o.class_code << 8 | 1);
	rig_put_le16(c + RIG_PCI_SUBSYSTEM_VENDOR, 0x1234);
	rig_put_le16(c + RIG_PCI_SUBSYSTEM, 1);
}

int rig_fake_make(struct rig_fake **out, const struct rig_fake_options *options)
{
	struct rig_fake *k = calloc(1, sizeof(*k));
	int err = 0;

	*out = NULL;
	if (!k)
		return -ENOMEM;
	k->o = *options;
	pthread_mutex_init(&k->lock, NULL);
	memset(k->irq, 0xff, sizeof(k->irq));
	for (unsigned i = 0; i < RIG_VFIO_REGIONS; i++)
		k->fd[i] = -1;
	for (unsigned i = 0; i < RIG_VFIO_BARS && !err; i++)
		err = options->bar_bytes[i] > RIG_FAKE_BAR_MOST ? -EINVAL
		                                                : make_memory(k, i, options->bar_bytes[i]);
	for (unsigned i = 0; i < RIG_IRQ_KINDS && !err; i++)
		err = options->irqs[i] > VECTORS_MOST ? -EINVAL : 0;
	if (!err)
		err = make_memory(k, RIG_VFIO_CONFIG, CONFIG_BYTES);
	if (err) {
		rig_fake_free(k);
		return err;
	}
	make_config(k);
	*out = k;
	return 0;
}

void rig_fake_free(struct rig_fake *k)
{
	if (!k)
		return;
	for (unsigned i = 0; i < RIG_VFIO_REGIONS; i++) {
		if (k->memory[i])
			munmap(k->memory[i], k->bytes[i]);
		if (k->fd[i] >= 0)
			close(k->fd[i]);
	}
	pthread_mutex_destroy(&k->lock);
	free(k);
}

void rig_fake_fail_at(struct rig_fake *k, uint64_t at)
{
	k->fail_at = at;
	k->failed = false;
}

bool rig_fake_failed(const struct rig_fake *k)
{
	return k->failed;
}

void *rig_fake_memory(const struct rig_fake *k, unsigned region)
{
	return k->memory[region];
}

unsigned rig_fake_maps(const struct rig_fake *k)
{
	return k->maps;
}

struct rig_vfio_map rig_fake_map(const struct rig_fake *k, unsigned i)
{
	return k->map[i];
}

/* With the lock held; within one mapping. */
static int reach(struct rig_fake *k, uint64_t iova, uint64_t len, unsigned prot, unsigned char **at)
{
	for (unsigned i = 0; i < k->maps; i++) {
		const struct rig_vfio_map *m = &k->map[i];

		if (iova < m->iova || !rig_span_fits(iova - m->iova, len, m->bytes))
			continue;
		*at = (unsigned char *)m->host + (iova - m->iova);
		return (m->prot & prot) ? 0 : -EACCES;
	}
	return -EFAULT;
}

/* As every transport: 8 aligned bytes at once, because they may be a word that others read meanwhile. */
static bool is_word(const void *at, uint64_t len)
{
	return len == sizeof(uint64_t) && (uintptr_t)at % sizeof(uint64_t) == 0;
}

int rig_fake_dma_read(struct rig_fake *k, uint64_t iova, void *buf, uint64_t len)
{
	unsigned char *at;
	int err;

	pthread_mutex_lock(&k->lock);
	err = reach(k, iova, len, RIG_DMA_READ, &at);
	if (!err && is_word(at, len)) {
		uint64_t word = __atomic_load_n((const uint64_t *)(const void *)at, __ATOMIC_ACQUIRE);

		memcpy(buf, &word, sizeof(word));
	} else if (!err) {
		memcpy(buf, at, len);
	}
	pthread_mutex_unlock(&k->lock);
	return err;
}

int rig_fake_dma_ask(struct rig_fake *k, uint64_t iova, void *buf, uint64_t len)
{
	return k->sink->dma_read(k->sink->arg, iova, buf, len);
}

int rig_fake_dma_write(struct rig_fake *k, uint64_t iova, const void *buf, uint64_t len)
{
	unsigned char *at;
	int err;

	pthread_mutex_lock(&k->lock);
	err = reach(k, iova, len, RIG_DMA_WRITE, &at);
	if (!err && is_word(at, len)) {
		uint64_t word;

		memcpy(&word, buf, sizeof(word));
		__atomic_store_n((uint64_t *)(void *)at, word, __ATOMIC_RELEASE);
	} else if (!err) {
		memcpy(at, buf, len);
	}
	pthread_mutex_unlock(&k->lock);
	return err;
}

bool rig_fake_fire(struct rig_fake *k, unsigned kind, unsigned vector)
{
	uint64_t one = 1;
	bool on;

	pthread_mutex_lock(&k->lock);
	on = k->irq[kind][vector] >= 0 && write(k->irq[kind][vector], &one, sizeof(one)) == sizeof(one);
	pthread_mutex_unlock(&k->lock);
	return on;
}

unsigned rig_fake_connected(const struct rig_fake *k)
{
	unsigned n = 0;

	for (unsigned kind = 0; kind < RIG_IRQ_KINDS; kind++)
		for (unsigned i = 0; i < VECTORS_MOST; i++)
			n += k->irq[kind][i] >= 0;
	return n;
}

void rig_fake_die(struct rig_fake *k, const char *why)
{
	atomic_store(&k->dead, true);
	k->sink->gone(k->sink->arg, why);
}

void rig_fake_vanish(struct rig_fake *k)
{
	atomic_store(&k->vanished, true);
}

void rig_fake_slow_reset(struct rig_fake *k, unsigned reads)
{
	k->slow = reads;
}

void rig_fake_revoke(struct rig_fake *k, uint64_t iova)
{
	pthread_mutex_lock(&k->lock);
	for (unsigned i = 0; i < k->maps; i++)
		if (k->map[i].iova == iova)
			k->map[i].prot = 0;
	pthread_mutex_unlock(&k->lock);
}

void rig_fake_refuse_reset(struct rig_fake *k, int err)
{
	k->refusal = err;
}

unsigned rig_fake_resets(const struct rig_fake *k)
{
	return k->resets;
}

unsigned rig_fake_open_count(const struct rig_fake *k)
{
	return k->open_count;
}

/* -- The table's side -- */

/* Every member that can fail starts here. */
static int enter(struct rig_fake *k, const char *what)
{
	uint64_t left = atomic_load(&k->fail_at);

	atomic_fetch_add(&k->calls, 1);
	if (atomic_load(&k->dead))
		return rig_vfio_fail(ENODEV, NULL, "fake: %s", what);
	while (left > 0 && !atomic_compare_exchange_weak(&k->fail_at, &left, left - 1))
		;
	if (left == 1) {
		k->failed = true;
		return rig_vfio_fail(EIO, NULL, "fake: %s fails as asked", what);
	}
	return 0;
}

static int attach(void *transport, const struct rig_vfio_sink *sink)
{
	struct rig_fake *k = transport;
	int err = enter(k, "attach");

	if (err)
		return err;
	k->sink = sink;
	k->open_count++;
	return 0;
}

static void close_transport(void *transport)
{
	struct rig_fake *k = transport;

	if (k->sink)
		k->open_count--;
	k->sink = NULL;
	k->maps = 0;
	memset(k->irq, 0xff, sizeof(k->irq));
}

/* The fake is the test's, in the child as well. */
static void forked(void *transport)
{
	(void)transport;
}

static int device(void *transport, struct rig_vfio_device *out)
{
	struct rig_fake *k = transport;
	int err = enter(k, "device");

	out->resets = !k->o.no_reset;
	out->peers = k->o.peers ? k->o.peers : RIG_VFIO_PEERS_FILE;
	out->bdf = k->o.bdf;
	memcpy(out->bus, k->o.bus, sizeof(out->bus));
	out->dma_page = (uint64_t)sysconf(_SC_PAGESIZE);
	out->dma_maps = k->o.dma_maps ? k->o.dma_maps : MAPS_DEFAULT;
	return err;
}

static int region(void *transport, unsigned index, struct rig_vfio_region *out)
{
	struct rig_fake *k = transport;
	int err = enter(k, "region");

	if (err)
		return err;
	*out = (struct rig_vfio_region){
	        .bytes = k->bytes[index], .readable = true, .writable = true, .fd = -1};
	if (index < RIG_VFIO_BARS && k->o.areas[index] > 0) {
		out->fd = k->fd[index];
		out->areas = k->o.areas[index];
		memcpy(out->area, k->o.area[index], out->areas * sizeof(out->area[0]));
	}
	return 0;
}

static int irqs(void *transport, unsigned kind, unsigned *count)
{
	struct rig_fake *k = transport;

	*count = k->o.irqs[kind];
	return enter(k, "irqs");
}

static int iova(void *transport, struct rig_ranges *out)
{
	int err = enter(transport, "iova");

	return err ? err : rig_ranges_add(out, 0, UINT64_MAX);
}

static bool unready(struct rig_fake *k, unsigned index, uint64_t offset)
{
	if (atomic_load(&k->vanished))
		return true;
	if (index != RIG_VFIO_CONFIG || offset != RIG_PCI_VENDOR_ID || k->slow_left == 0)
		return false;
	k->slow_left--;
	return true;
}

/* A register is read at once, beside a test's thread that changes it. */
static void copy_out(void *to, const void *from, uint64_t len)
{
	uint64_t qword;
	uint32_t dword;
	uint16_t word;

	if (len == sizeof(qword) && rig_is_aligned((uintptr_t)from, sizeof(qword))) {
		qword = __atomic_load_n((const uint64_t *)from, __ATOMIC_ACQUIRE);
		memcpy(to, &qword, sizeof(qword));
	} else if (len == sizeof(dword) && rig_is_aligned((uintptr_t)from, sizeof(dword))) {
		dword = __atomic_load_n((const uint32_t *)from, __ATOMIC_RELAXED);
		memcpy(to, &dword, sizeof(dword));
	} else if (len == sizeof(word) && rig_is_aligned((uintptr_t)from, sizeof(word))) {
		word = __atomic_load_n((const uint16_t *)from, __ATOMIC_RELAXED);
		memcpy(to, &word, sizeof(word));
	} else {
		memcpy(to, from, len);
	}
}

static void copy_in(void *to, const void *from, uint64_t len)
{
	uint64_t qword;
	uint32_t dword;
	uint16_t word;

	if (len == sizeof(qword) && rig_is_aligned((uintptr_t)to, sizeof(qword))) {
		memcpy(&qword, from, sizeof(qword));
		__atomic_store_n((uint64_t *)to, qword, __ATOMIC_RELEASE);
	} else if (len == sizeof(dword) && rig_is_aligned((uintptr_t)to, sizeof(dword))) {
		memcpy(&dword, from, sizeof(dword));
		__atomic_store_n((uint32_t *)to, dword, __ATOMIC_RELAXED);
	} else if (len == sizeof(word) && rig_is_aligned((uintptr_t)to, sizeof(word))) {
		memcpy(&word, from, sizeof(word));
		__atomic_store_n((uint16_t *)to, word, __ATOMIC_RELAXED);
	} else {
		memcpy(to, from, len);
	}
}

static int read_region(void *transport, unsigned index, uint64_t offset, void *buf, uint64_t len)
{
	struct rig_fake *k = transport;
	struct rig_fake_access a = {.region = index, .offset = offset, .len = len, .data = buf};
	int err = enter(k, "read");

	if (err)
		return err;
	if (!rig_span_fits(offset, len, k->bytes[index]))
		return rig_vfio_fail(EINVAL, NULL, "fake: reading outside a region");
	if (unready(k, index, offset))
		memset(buf, 0xff, len);
	else
		copy_out(buf, k->memory[index] + offset, len);
	if (k->o.hook)
		k->o.hook(k->o.hook_arg, &a);
	return 0;
}

static int write_region(void *transport, unsigned index, uint64_t offset, const void *buf, uint64_t len)
{
	struct rig_fake *k = transport;
	struct rig_fake_access a = {
	        .region = index, .write = true, .offset = offset, .len = len, .data = (void *)(uintptr_t)buf};
	int err = enter(k, "write");

	if (err)
		return err;
	if (!rig_span_fits(offset, len, k->bytes[index]))
		return rig_vfio_fail(EINVAL, NULL, "fake: writing outside a region");
	if (k->o.hook)
		k->o.hook(k->o.hook_arg, &a);
	if (!atomic_load(&k->vanished))
		copy_in(k->memory[index] + offset, buf, len);
	return 0;
}

static int dma_map(void *transport, const struct rig_vfio_map *map)
{
	struct rig_fake *k = transport;
	int err = enter(k, "dma_map");

	if (err)
		return err;
	pthread_mutex_lock(&k->lock);
	for (unsigned i = 0; i < k->maps; i++) {
		if (map->iova < k->map[i].iova + k->map[i].bytes && k->map[i].iova < map->iova + map->bytes)
			err = -EEXIST;
	}
	if (!err && k->maps == MAPS_MOST)
		err = -ENOSPC;
	if (!err)
		k->map[k->maps++] = *map;
	pthread_mutex_unlock(&k->lock);
	return err ? rig_vfio_fail(err, NULL, "fake: dma_map") : 0;
}

static int dma_unmap(void *transport, uint64_t at, uint64_t bytes)
{
	struct rig_fake *k = transport;
	int err = enter(k, "dma_unmap");

	if (err)
		return err;
	err = -ENOENT;
	pthread_mutex_lock(&k->lock);
	for (unsigned i = 0; i < k->maps && err; i++) {
		if (k->map[i].iova == at && k->map[i].bytes == bytes) {
			k->map[i] = k->map[--k->maps];
			err = 0;
		}
	}
	pthread_mutex_unlock(&k->lock);
	return err ? rig_vfio_fail(err, NULL, "fake: dma_unmap") : 0;
}

static int export_region(void *transport, unsigned index, uint64_t offset, uint64_t bytes, int *fd)
{
	struct rig_fake *k = transport;
	int err = enter(k, "export");

	*fd = -1;
	if (!err && !k->o.exports)
		err = rig_vfio_fail(ENOTSUP, NULL, "fake: no BAR as a dma-buf");
	if (!err && !rig_span_fits(offset, bytes, k->bytes[index]))
		err = rig_vfio_fail(EINVAL, NULL, "fake: exporting outside a region");
	if (!err)
		*fd = memfd_create("fake-dma-buf", MFD_CLOEXEC);
	return err;
}

static int irq_set(void *transport, const struct rig_vfio_irq *irq)
{
	struct rig_fake *k = transport;
	int err = enter(k, "irq_set");

	if (!err && irq->action == RIG_VFIO_IRQ_CONNECT &&
	        irq->first + irq->count + k->o.irqs_taken > k->o.irqs[irq->kind])
		err = rig_vfio_fail(ENOSPC, NULL, "fake: %u vectors", irq->count);
	if (err)
		return err;
	pthread_mutex_lock(&k->lock);
	if (irq->action == RIG_VFIO_IRQ_OFF)
		memset(k->irq[irq->kind], 0xff, sizeof(k->irq[0]));
	if (irq->action == RIG_VFIO_IRQ_CONNECT)
		memcpy(&k->irq[irq->kind][irq->first], irq->fds, irq->count * sizeof(int));
	pthread_mutex_unlock(&k->lock);
	return 0;
}

static int reset(void *transport, unsigned reset_ms, bool ours)
{
	static const uint16_t command = 0;
	struct rig_fake *k = transport;
	int err = enter(k, "reset");

	(void)reset_ms;
	(void)ours;
	if (!err && k->refusal)
		err = rig_vfio_fail(k->refusal, NULL, "the fake's reset");
	if (err)
		return err;
	copy_in(k->memory[RIG_VFIO_CONFIG] + RIG_PCI_COMMAND, &command, sizeof(command));
	pthread_mutex_lock(&k->lock);
	memset(k->irq, 0xff, sizeof(k->irq));
	pthread_mutex_unlock(&k->lock);
	k->slow_left = k->slow;
	k->slow = 0;
	k->resets++;
	return 0;
}

static bool reset_hits(void *transport, const char *bdf)
{
	const struct rig_fake *k = transport;

	return k->o.resets_too && (!bdf || strcmp(bdf, k->o.resets_too) == 0);
}

static uint64_t messages(const void *transport)
{
	const struct rig_fake *k = transport;

	return atomic_load(&k->calls);
}

const struct rig_vfio_ops rig_fake_ops = {
        .name = "fake",
        .attach = attach,
        .close = close_transport,
        .forked = forked,
        .device = device,
        .region = region,
        .irqs = irqs,
        .iova = iova,
        .read = read_region,
        .write = write_region,
        .dma_map = dma_map,
        .dma_unmap = dma_unmap,
        .export = export_region,
        .irq_set = irq_set,
        .reset = reset,
        .reset_hits = reset_hits,
        .messages = messages,
};
