/* SPDX-License-Identifier: MIT */
#include "peer.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "bits.h"
#include "error.h"
#include "pci_private.h"

static int check(const struct rig_pci *peer, unsigned bar, uint64_t off, uint64_t bytes, uint64_t page)
{
	uint64_t size = bar < RIG_PCI_BARS ? peer->info.bar[bar].bytes : 0;

	if (bytes == 0 || !rig_is_aligned(off | bytes, page) || !rig_span_fits(off, bytes, size))
		return rig_vfio_fail(EINVAL, "use whole pages inside the BAR",
		        "[%#" PRIx64 ", +%#" PRIx64 ") of BAR %u, which has %#" PRIx64
		        ", in pages of %#" PRIx64,
		        off, bytes, bar, size, page);
	return 0;
}

int rig_pci_export(struct rig_pci *f, unsigned bar, uint64_t off, uint64_t bytes, int *fd)
{
	int err = check(f, bar, off, bytes, (uint64_t)sysconf(_SC_PAGESIZE));

	*fd = -1;
	if (err)
		return err;
	if (rig_gone_is(&f->gone))
		return rig_gone_fail(&f->gone);
	if (!f->ops->export)
		return rig_vfio_fail(ENOTSUP, NULL, "%s exports no BARs", f->info.transport);
	/* A function that does not answer in its BARs has nothing to export. */
	err = rig_pci_memory_decode(f, true);
	return err ? err
	           : rig_gone_settle(
	                     &f->gone, f->ops->export(f->transport, RIG_VFIO_BAR0 + bar, off, bytes, fd));
}

/* Where this process has the range mapped: an IOMMU maps it from there. */
static unsigned char *mapped_at(const struct rig_pci *peer, unsigned bar, uint64_t off, uint64_t bytes)
{
	const struct rig_region_area *area;
	uint64_t run;

	area = rig_region_find(&peer->region[RIG_VFIO_BAR0 + bar], off, bytes, &run);
	return area && run == bytes ? area->at + (off - area->offset) : NULL;
}

static int by_bus(const struct rig_pci *peer, unsigned bar, uint64_t off, uint64_t bytes, struct rig_dma *out)
{
	if (!peer->info.bar[bar].bus)
		return rig_vfio_fail(ENOTSUP, NULL, "BAR %u of the peer has no bus address", bar);
	*out = (struct rig_dma){.iova = peer->info.bar[bar].bus + off, .bytes = bytes, .fd = -1};
	return 0;
}

static int map(struct rig_pci *f, struct rig_mapping *m, int fd, struct rig_dma *out)
{
	int err;

	pthread_mutex_lock(&f->dma_lock);
	err = rig_dma_make(f, m, 0, fd, 0);
	pthread_mutex_unlock(&f->dma_lock);
	if (!err)
		*out = (struct rig_dma){
		        .iova = m->iova, .bytes = m->bytes, .fd = -1, .handle = rig_dma_handle(f)};
	return err;
}

int rig_pci_map_peer(struct rig_pci *f, struct rig_pci *peer, unsigned bar, uint64_t off, uint64_t bytes,
        unsigned prot, struct rig_dma *out)
{
	struct rig_mapping m = {.bytes = bytes, .prot = prot};
	int fd = -1, err = check(peer, bar, off, bytes, f->info.dma_page);

	*out = (struct rig_dma){.fd = -1};
	if (err)
		return err;
	if (!f->ops->export || !peer->ops->export)
		return rig_vfio_fail(ENOTSUP, NULL, "%s and %s have no path to each other", f->info.transport,
		        peer->info.transport);
	if (f->info.physical)
		return by_bus(peer, bar, off, bytes, out);
	m.host = mapped_at(peer, bar, off, bytes);
	if (!m.host)
		return rig_vfio_fail(ENOTSUP, NULL, "that part of BAR %u of the peer cannot be mapped", bar);
	/* iommufd refuses memory that is not RAM by address; type1 takes no dma-bufs, and ignores it. */
	err = rig_pci_export(peer, bar, off, bytes, &fd);
	if (err)
		err = rig_pci_memory_decode(peer, true);
	if (!err)
		err = map(f, &m, fd, out);
	if (err == -EFAULT && fd < 0)
		rig_vfio_also("a BAR behind iommufd needs Linux 6.19 or later; transport=type1 maps it on "
		              "older kernels");
	if (fd >= 0)
		close(fd);
	return err;
}
