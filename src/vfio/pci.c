/* SPDX-License-Identifier: MIT */
#include "pci.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bits.h"
#include "error.h"
#include "pci_private.h"

/* -- The sink -- */

void rig_pci_lose(struct rig_pci *f, const char *why)
{
	if (f->orphan)
		return;
	if (rig_gone_say(&f->gone, why))
		rig_logf(&f->log, RIG_LOG_ERROR, "the function is gone: %s", why);
	pthread_mutex_lock(&f->region_lock);
	for (unsigned i = 0; i < RIG_VFIO_REGIONS && !f->blank; i++)
		rig_region_blank(&f->region[i]);
	f->blank = true;
	pthread_mutex_unlock(&f->region_lock);
}

static void on_gone(void *arg, const char *why)
{
	rig_pci_lose(arg, why);
}

static int on_dma_read(void *arg, uint64_t iova, void *buf, uint64_t len)
{
	struct rig_pci *f = arg;

	return rig_maps_read(&f->maps, iova, buf, len);
}

static int on_dma_write(void *arg, uint64_t iova, const void *buf, uint64_t len)
{
	struct rig_pci *f = arg;

	return rig_maps_write(&f->maps, iova, buf, len);
}

/* -- Opening -- */

static unsigned or_default(unsigned v, unsigned otherwise)
{
	return v ? v : otherwise;
}

/* The IOVAs that the transport takes; the list of mappings stands before the transport can ask for memory. */
static int init_maps(struct rig_pci *f, const struct rig_pci_taking *o)
{
	struct rig_ranges none = {0};

	return rig_maps_init(&f->maps, &none, (uint64_t)sysconf(_SC_PAGESIZE), 0,
	        o->iova_base ? o->iova_base : RIG_PCI_IOVA_BASE);
}

static int ask_device(struct rig_pci *f)
{
	struct rig_vfio_device d = {0};
	int err = f->ops->device(f->transport, &d);

	f->info.resets = d.resets;
	f->peers = d.peers;
	f->info.dma_page = rig_max_u64(d.dma_page, (uint64_t)sysconf(_SC_PAGESIZE));
	f->info.dma_maps = d.dma_maps;
	f->info.bdf = d.bdf;
	for (unsigned i = 0; i < RIG_PCI_BARS; i++)
		f->info.bar[i].bus = d.bus[i];
	f->info.physical = f->ops->dma_place != NULL;
	if (f->info.physical) /* an arena is one page, or it would be in pieces */
		f->arenas.step = rig_min_u64(f->arenas.step, RIG_HUGEMEM_ALIGN);
	f->maps.page = f->info.dma_page;
	f->maps.limit = d.dma_maps;
	return err;
}

static int ask_iova(struct rig_pci *f)
{
	int err = f->ops->iova(f->transport, &f->maps.free);

	return err ? err : rig_ranges_sub(&f->maps.free, 0, f->info.dma_page - 1);
}

static int ask_regions(struct rig_pci *f)
{
	int err = 0;

	for (unsigned i = 0; i < RIG_VFIO_REGIONS && !err; i++) {
		f->region[i].info.fd = -1;
		if (i != RIG_VFIO_ROM)
			err = f->ops->region(f->transport, i, &f->region[i].info);
	}
	if (!err && f->region[RIG_VFIO_CONFIG].info.bytes < RIG_PCI_COMMON_CONFIG_BYTES)
		err = rig_vfio_fail(EPROTO, NULL, "a configuration space of %llu bytes",
		        (unsigned long long)f->region[RIG_VFIO_CONFIG].info.bytes);
	return err;
}

static int ask_irqs(struct rig_pci *f)
{
	int err = 0;

	for (unsigned i = 0; i < RIG_IRQ_KINDS && !err; i++)
		err = f->ops->irqs(f->transport, i, &f->irq[i].count);
	return err;
}

static void guard_areas(struct rig_pci *f, const struct rig_region *r)
{
	for (unsigned i = 0; i < r->mapped; i++) {
		if (rig_guard_add(r->area[i].at, r->area[i].bytes, &f->gone))
			rig_logf(&f->log, RIG_LOG_WARN, "%s", rig_error());
	}
}

/* Only BARs: configuration space is reached by message, so that the far side sees each access. */
static void map_bars(struct rig_pci *f, bool guard)
{
	pthread_mutex_lock(&f->region_lock);
	for (unsigned i = 0; i < RIG_VFIO_BARS && !rig_gone_is(&f->gone); i++) {
		rig_region_map(&f->region[RIG_VFIO_BAR0 + i], &f->log);
		if (guard)
			guard_areas(f, &f->region[RIG_VFIO_BAR0 + i]);
	}
	pthread_mutex_unlock(&f->region_lock);
}

static int ask(struct rig_pci *f, bool guard)
{
	int err = f->ops->attach(f->transport, &f->sink);

	if (!err)
		err = ask_device(f);
	if (!err)
		err = ask_iova(f);
	if (!err)
		err = ask_regions(f);
	if (!err)
		err = ask_irqs(f);
	if (err)
		return rig_gone_settle(&f->gone, err);
	map_bars(f, guard);
	return rig_config_identify(f);
}

/* What the sink needs, before a transport can use it. */
static int init(struct rig_pci *f, const struct rig_pci_taking *o)
{
	int err = rig_gone_init(&f->gone);

	if (err)
		return err;
	err = init_maps(f, o);
	if (err) {
		rig_gone_fini(&f->gone);
		return err;
	}
	f->sink = (struct rig_vfio_sink){.arg = f,
	        .log = &f->log,
	        .gone = on_gone,
	        .dma_read = on_dma_read,
	        .dma_write = on_dma_write};
	f->reset_ms = or_default(o->reset_ms, RIG_PCI_RESET_MS);
	f->arenas.step = o->arena_step ? o->arena_step : RIG_PCI_ARENA_STEP;
	f->arenas.limit = o->arena_limit;
	if (o->log)
		f->log = *o->log;
	pthread_mutex_init(&f->region_lock, NULL);
	pthread_mutex_init(&f->config_lock, NULL);
	pthread_mutex_init(&f->dma_lock, NULL);
	pthread_mutex_init(&f->irq_lock, NULL);
	return 0;
}

static void fini(struct rig_pci *f)
{
	pthread_mutex_destroy(&f->irq_lock);
	pthread_mutex_destroy(&f->dma_lock);
	pthread_mutex_destroy(&f->config_lock);
	pthread_mutex_destroy(&f->region_lock);
	rig_maps_fini(&f->maps);
	rig_gone_fini(&f->gone);
}

/* What is mapped of a function keeps it open, and who was told that it is free would find it taken. Blank, so
 * that the sink leaves them alone. */
static void unmap_bars(struct rig_pci *f)
{
	pthread_mutex_lock(&f->region_lock);
	f->blank = true;
	for (unsigned i = 0; i < RIG_VFIO_REGIONS; i++)
		rig_region_unmap(&f->region[i]);
	pthread_mutex_unlock(&f->region_lock);
}

/* No child is made between the function's leaving the list and its last descriptor's end: it would keep that,
 * and the function with it. The transport's threads end before, because a callback of the log that one of
 * them is in may fork. No sink call comes after that, so what the sink uses may go. */
static void close_unseen(struct rig_pci *f)
{
	unmap_bars(f);
	if (f->ops->quiet)
		f->ops->quiet(f->transport);
	rig_fork_hold();
	rig_fork_remove(f);
	f->ops->close(f->transport);
	rig_fork_release();
}

/* Owns the options' transport, also on failure; from here on a child of fork closes it. */
static int adopt(struct rig_pci *f, const struct rig_pci_taking *o)
{
	int err = init(f, o);

	if (err) {
		o->ops->close(o->transport);
		return err;
	}
	f->ops = o->ops;
	f->transport = o->transport;
	f->info.transport = f->ops->name;
	f->info.tells = f->ops->tells;
	err = rig_fork_add(f);
	if (err) {
		f->ops->close(f->transport);
		fini(f);
	}
	return err;
}

/* What was asked for, and why it failed: each named once. Texts of the kernel's transports begin with the
 * function's address where they know it. */
static int explain(const struct rig_pci_taking *o, int err)
{
	const char *text = rig_error();
	size_t n = o->name ? strlen(o->name) : 0;

	if (!n || (strncmp(text, o->name, n) == 0 && text[n] == ':'))
		return err;
	return rig_error_set(err, "%s: %s", o->name, text);
}

/* A child that is made before the function is listed would keep what was opened, and the function with it. */
static int begin(struct rig_pci *f, struct rig_pci_taking *o)
{
	const struct rig_log *log = o->log;
	struct rig_log_late late = {0};
	struct rig_log later = rig_log_later(&late);
	int err;

	/* A callback that forks would wait for the hold for ever. */
	o->log = &later;
	rig_fork_hold();
	err = o->begin ? o->begin(o->arg, o) : 0;
	if (!err)
		err = adopt(f, o);
	if (err)
		err = explain(o, err);
	rig_fork_release();
	o->log = log;
	f->log = log ? *log : (struct rig_log){0};
	rig_log_say(&late, log);
	return err;
}

static int take(struct rig_pci *f, const struct rig_pci_taking *o)
{
	int err = ask(f, o->guard);

	if (!err)
		return 0;
	close_unseen(f);
	fini(f);
	return explain(o, err);
}

int rig_pci_take(struct rig_pci **out, const struct rig_pci_taking *options)
{
	struct rig_pci_taking o = *options;
	struct rig_pci *f = calloc(1, sizeof(*f));
	int err;

	*out = NULL;
	if (!f) {
		if (!o.begin)
			o.ops->close(o.transport);
		return rig_vfio_fail(ENOMEM, NULL, "a function");
	}
	err = begin(f, &o);
	if (!err)
		err = take(f, &o);
	if (err) {
		free(f);
		if (o.ended)
			o.ended(o.ended_arg);
		return err;
	}
	f->ended = o.ended;
	f->ended_arg = o.ended_arg;
	*out = f;
	return 0;
}

void rig_pci_close(struct rig_pci *f)
{
	void (*ended)(void *arg);
	void *arg;

	if (!f || f->orphan)
		return;
	ended = f->ended;
	arg = f->ended_arg;
	rig_irq_fini(f);
	if (!rig_gone_is(&f->gone))
		(void)rig_pci_bus_master(f, false);
	rig_peer_fini(f);
	rig_dma_fini(f);
	close_unseen(f);
	fini(f);
	free(f);
	if (ended)
		ended(arg);
}

/* -- Asking -- */

const struct rig_pci_info *rig_pci_info(const struct rig_pci *f)
{
	return &f->info;
}

bool rig_pci_gone(const struct rig_pci *f, const char **why)
{
	const char *reason = rig_gone_why(&f->gone);

	if (why)
		*why = reason;
	return reason != NULL;
}

int rig_pci_gone_fd(const struct rig_pci *f)
{
	return f->gone.fd;
}

uint64_t rig_pci_messages(const struct rig_pci *f)
{
	return f->ops->messages(f->transport);
}

void rig_pci_stats(struct rig_pci *f, struct rig_pci_stats *out)
{
	*out = (struct rig_pci_stats){.messages = rig_pci_messages(f)};
	pthread_mutex_lock(&f->dma_lock);
	out->arena_bytes = f->arenas.bytes;
	pthread_mutex_unlock(&f->dma_lock);
	pthread_mutex_lock(&f->maps.lock);
	out->served = f->maps.served;
	out->refused = f->maps.refused;
	out->maps = f->maps.count;
	out->mapped_bytes = f->maps.mapped_bytes;
	out->pinned_bytes = f->maps.pinned_bytes;
	pthread_mutex_unlock(&f->maps.lock);
}
