/* SPDX-License-Identifier: MIT */
#include "peer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bits.h"
#include "error.h"
#include "log.h"
#include "pci_private.h"

enum { FDINFO_BYTES = 1024, PATH_BYTES = 48 };

/* What f mapped of peer. */
struct loan {
	struct loan *next;
	struct rig_pci *f, *peer;
	unsigned bar, prot;
	uint64_t off, bytes, iova;
	bool revoked;
};

/* Outermost: held while a loan is made, made again or ended, which takes locks of both functions, one after
 * the other. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct loan *loans;

/* -- Whether -- */

static bool has_bar(const struct rig_pci *f, unsigned bar)
{
	return bar < RIG_PCI_BARS && f->info.bar[bar].bytes > 0;
}

static const char *name_of(const struct rig_pci *f)
{
	return f->info.bdf ? f->info.bdf : f->info.transport;
}

int rig_pci_reaches(const struct rig_pci *f, const struct rig_pci *peer, unsigned bar)
{
	bool file = f->peers == RIG_VFIO_PEERS_FILE;

	if (!has_bar(peer, bar))
		return rig_vfio_fail(ENOTSUP, NULL, "%s has no BAR %u", name_of(peer), bar);
	if (f->peers == RIG_VFIO_PEERS_NONE)
		return rig_vfio_fail(ENOTSUP, "transport=type1 maps BARs on older kernels",
		        "%s: behind iommufd the BAR of another function " RIG_VFIO_DMABUF_NEEDS, name_of(f));
	if (file != (peer->peers == RIG_VFIO_PEERS_FILE))
		return rig_vfio_fail(ENOTSUP, NULL, "%s and %s have no path to each other", f->info.transport,
		        peer->info.transport);
	if (f->peers == RIG_VFIO_PEERS_BUS)
		return peer->info.bar[bar].bus
		               ? 0
		               : rig_vfio_fail(ENOTSUP, NULL, "BAR %u of %s has no bus address", bar,
		                         name_of(peer));
	if (!peer->info.bar[bar].mappable)
		return rig_vfio_fail(ENOTSUP, NULL, "BAR %u of %s cannot be mapped", bar, name_of(peer));
	return 0;
}

static int check(const struct rig_pci *peer, unsigned bar, uint64_t off, uint64_t bytes, uint64_t page)
{
	uint64_t size = has_bar(peer, bar) ? peer->info.bar[bar].bytes : 0;

	if (bytes == 0 || !rig_is_aligned(off | bytes, page) || !rig_span_fits(off, bytes, size))
		return rig_vfio_fail(EINVAL, "use whole pages inside the BAR",
		        "[%#" PRIx64 ", +%#" PRIx64 ") of BAR %u, which has %#" PRIx64
		        ", in pages of %#" PRIx64,
		        off, bytes, bar, size, page);
	return 0;
}

/* -- Dma-bufs -- */

int rig_pci_export(struct rig_pci *f, unsigned bar, uint64_t off, uint64_t bytes, int *fd)
{
	int err = check(f, bar, off, bytes, (uint64_t)sysconf(_SC_PAGESIZE));

	*fd = -1;
	if (err)
		return err;
	if (rig_gone_is(&f->gone))
		return rig_gone_fail(&f->gone);
	if (!f->ops->export)
		return rig_vfio_fail(ENOTSUP, NULL, "%s exports no BAR as a dma-buf", f->info.transport);
	/* A function that does not answer in its BARs has nothing to export. */
	err = rig_pci_memory_decode(f, true);
	return err ? err
	           : rig_gone_settle(
	                     &f->gone, f->ops->export(f->transport, RIG_VFIO_BAR0 + bar, off, bytes, fd));
}

/* The line "count: N" of dma-bufs: references to the file, the reader's own left out. */
bool rig_dmabuf_text_is_shared(const char *text)
{
	static const char key[] = "\ncount:";
	const char *at = strstr(text, key);

	return !at || strtol(at + sizeof(key) - 1, NULL, 10) != 1;
}

bool rig_dmabuf_is_shared(int fd)
{
	char path[PATH_BYTES], text[FDINFO_BYTES];
	ssize_t n = -1;
	int info;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = open(path, O_RDONLY | O_CLOEXEC);
	if (info >= 0) {
		n = read(info, text, sizeof(text) - 1);
		close(info);
	}
	if (n < 0)
		return true;
	text[n] = 0;
	return rig_dmabuf_text_is_shared(text);
}

/* -- Loans, with the lock held -- */

/* Where this process has the range mapped: an IOMMU maps it from there, and so far sides that map no file are
 * served. */
static unsigned char *mapped_at(const struct loan *l)
{
	const struct rig_region_area *area;
	uint64_t run;

	area = rig_region_find(&l->peer->region[RIG_VFIO_BAR0 + l->bar], l->off, l->bytes, &run);
	return area && run == l->bytes ? area->at + (l->off - area->offset) : NULL;
}

/* What is handed to f's transport; *own is a descriptor to close after it, -1 if there is none. */
static int source(const struct loan *l, struct rig_vfio_map *map, int *own)
{
	const struct rig_vfio_region *r = &l->peer->region[RIG_VFIO_BAR0 + l->bar].info;
	int err = rig_pci_memory_decode(l->peer, true);

	*own = -1;
	*map = (struct rig_vfio_map){
	        .iova = l->iova, .bytes = l->bytes, .prot = l->prot, .host = mapped_at(l), .fd = -1};
	if (err)
		return err;
	if (!map->host)
		return rig_vfio_fail(ENOTSUP, NULL, "that part of BAR %u of %s cannot be mapped", l->bar,
		        name_of(l->peer));
	if (l->f->peers == RIG_VFIO_PEERS_FILE) {
		map->fd = r->fd;
		map->fd_offset = r->fd_offset + l->off;
		return 0;
	}
	if (l->f->peers == RIG_VFIO_PEERS_DMABUF) {
		err = rig_pci_export(l->peer, l->bar, l->off, l->bytes, own);
		map->fd = *own;
	}
	return err;
}

static void drop(int fd)
{
	if (fd >= 0)
		close(fd);
}

static int lend(struct loan *l)
{
	struct rig_vfio_map map;
	struct rig_map m;
	int own, err = source(l, &map, &own);

	if (!err) {
		m = (struct rig_map){.bytes = l->bytes, .prot = l->prot, .host = map.host};
		pthread_mutex_lock(&l->f->dma_lock);
		err = rig_dma_make(l->f, &m, 0, map.fd, map.fd_offset);
		pthread_mutex_unlock(&l->f->dma_lock);
		l->iova = m.iova;
	}
	drop(own);
	if (err == -EFAULT && own >= 0)
		(void)rig_error_set(err,
		        "%s; this kernel's iommufd maps no dma-buf of a BAR: that needs Linux 6.19 or later",
		        rig_error());
	return err;
}

/* With f's dma_lock held. A function that may still reach what is not lent any more is not to be used. */
static void unmap(struct loan *l)
{
	struct rig_pci *f = l->f;

	if (!rig_gone_is(&f->gone) &&
	        rig_gone_settle(&f->gone, f->ops->dma_unmap(f->transport, l->iova, l->bytes)))
		rig_pci_lose(f, "a mapping of another function's BAR could not be undone");
}

/* The addresses are f's until it unmaps them: its tables may name them. */
static void end(struct loan *l)
{
	pthread_mutex_lock(&l->f->dma_lock);
	rig_maps_revoke(&l->f->maps, l->iova, l->bytes);
	unmap(l);
	pthread_mutex_unlock(&l->f->dma_lock);
	l->revoked = true;
}

static int map_again(struct loan *l)
{
	struct rig_vfio_map map;
	int own, err = source(l, &map, &own);

	if (!err) {
		pthread_mutex_lock(&l->f->dma_lock);
		unmap(l);
		err = rig_gone_is(&l->f->gone) ? rig_gone_fail(&l->f->gone)
		                               : l->f->ops->dma_map(l->f->transport, &map);
		if (err)
			rig_maps_revoke(&l->f->maps, l->iova, l->bytes);
		l->revoked = err != 0;
		pthread_mutex_unlock(&l->f->dma_lock);
	}
	drop(own);
	return err;
}

static void renew(struct loan *l)
{
	if (rig_gone_is(&l->f->gone) || !map_again(l))
		return;
	rig_logf(&l->f->log, RIG_LOG_ERROR, "memory of %s at %#" PRIx64 " is not reached any more: %s",
	        name_of(l->peer), l->iova, rig_error());
	if (!l->revoked)
		end(l);
}

static int undo(struct loan *l)
{
	struct rig_map was;
	int err = 0;

	pthread_mutex_lock(&l->f->dma_lock);
	if (l->revoked)
		(void)rig_maps_remove(&l->f->maps, l->iova, l->bytes, &was);
	else
		err = rig_dma_undo(l->f, l->iova, l->bytes);
	pthread_mutex_unlock(&l->f->dma_lock);
	return err;
}

/* -- Making and ending -- */

static int by_bus(const struct rig_pci *peer, unsigned bar, uint64_t off, uint64_t bytes, struct rig_dma *out)
{
	*out = (struct rig_dma){.iova = peer->info.bar[bar].bus + off, .bytes = bytes, .fd = -1};
	return 0;
}

static int make(const struct loan *wanted, struct rig_dma *out)
{
	struct loan *l = malloc(sizeof(*l));
	int err;

	if (!l)
		return rig_vfio_fail(ENOMEM, NULL, "a mapping of another function's BAR");
	*l = *wanted;
	pthread_mutex_lock(&lock);
	err = lend(l);
	if (!err) {
		l->next = loans;
		loans = l;
		*out = (struct rig_dma){.iova = l->iova, .bytes = l->bytes, .fd = -1, .handle = l};
	}
	pthread_mutex_unlock(&lock);
	if (err)
		free(l);
	return err;
}

int rig_pci_map_peer(struct rig_pci *f, struct rig_pci *peer, unsigned bar, uint64_t off, uint64_t bytes,
        unsigned prot, struct rig_dma *out)
{
	const struct loan wanted = {
	        .f = f, .peer = peer, .bar = bar, .off = off, .bytes = bytes, .prot = prot};
	int err = check(peer, bar, off, bytes, f->info.dma_page);

	*out = (struct rig_dma){.fd = -1};
	if (!err)
		err = rig_pci_reaches(f, peer, bar);
	if (err)
		return err;
	if (rig_gone_is(&f->gone) || rig_gone_is(&peer->gone))
		return rig_gone_fail(rig_gone_is(&f->gone) ? &f->gone : &peer->gone);
	return f->peers == RIG_VFIO_PEERS_BUS ? by_bus(peer, bar, off, bytes, out) : make(&wanted, out);
}

bool rig_peer_unmap(struct rig_pci *f, const void *handle, int *err)
{
	struct loan **at = &loans, *l;

	pthread_mutex_lock(&lock);
	while (*at && (*at != handle || (*at)->f != f))
		at = &(*at)->next;
	l = *at;
	if (l) {
		*at = l->next;
		*err = undo(l);
	}
	pthread_mutex_unlock(&lock);
	free(l);
	return l != NULL;
}

static bool hits(const struct rig_pci *f, const struct rig_pci *peer)
{
	return peer == f || (f->ops->reset_hits && f->ops->reset_hits(f->transport, peer->info.bdf));
}

/* Only the loans that the reset ended: the others are at work. */
void rig_peer_renew(struct rig_pci *f)
{
	pthread_mutex_lock(&lock);
	for (struct loan *l = loans; l; l = l->next)
		if (!l->revoked && l->f->peers == RIG_VFIO_PEERS_DMABUF && hits(f, l->peer))
			renew(l);
	pthread_mutex_unlock(&lock);
}

void rig_peer_fini(struct rig_pci *f)
{
	struct loan **at = &loans, *l;

	pthread_mutex_lock(&lock);
	while ((l = *at)) {
		if (l->f == f) {
			*at = l->next;
			(void)undo(l);
			free(l);
			continue;
		}
		if (l->peer == f) {
			if (!l->revoked)
				end(l);
			l->peer = NULL;
		}
		at = &l->next;
	}
	pthread_mutex_unlock(&lock);
}

/* The lists of functions are whole, because one store changes them; their memory is nobody's. */
void rig_peer_forked(void)
{
	pthread_mutex_init(&lock, NULL);
	loans = NULL;
}
