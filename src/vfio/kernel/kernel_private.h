/* SPDX-License-Identifier: MIT */
#ifndef RIG_KERNEL_PRIVATE_H
#define RIG_KERNEL_PRIVATE_H

/* What the kernel transports are made of. Private to kernel_*.c. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "vfio_kernel.h"
#include "kernel_sys.h"
#include "kernel_sysfs.h"
#include "pci.h"
#include "vfio_ops.h"

struct rig_kernel;
struct rig_kspace;
struct rig_ranges;

/* One of the three: how it gets at the device and what it does about memory. */
struct rig_kmodel {
	struct rig_vfio_ops ops; /* as the core sees it */
	/* Gets k->fd, the device's descriptor, and k->space. Undoes what it did when it fails. */
	int (*open)(struct rig_kernel *k, const struct rig_pci_fds *fds);
	/* The function leaves: rig_kernel_leave, and what must come before it. */
	void (*detach)(struct rig_kernel *k);
	/* With the space's lock held. Plain errnos: kernel_map.c has the words. NULL map: placing is all.
	   *bytes is how many are to be unmapped, and then how many were. */
	int (*map)(struct rig_kernel *k, const struct rig_vfio_map *map);
	int (*unmap)(struct rig_kernel *k, uint64_t iova, uint64_t *bytes);
};

enum { RIG_KERNEL_WATCHED = 2 }; /* ERR and REQ */

/* A function that was let go of may still be in the hands of a child between fork and exec: so long it is
 * asked for again, so often, before it counts as another's. */
#define RIG_KERNEL_HELD_NS (500 * RIG_NS_PER_MS)
#define RIG_KERNEL_LOOK_NS (2 * RIG_NS_PER_MS)

struct rig_kernel {
	struct rig_kernel *next; /* the process's functions, for hot reset */
	const struct rig_kenv *env;
	struct rig_ksysfs sysfs;        /* as it was when the function was taken; bdf "" if unknown */
	enum rig_pci_transport way;     /* that is being tried, or was taken */
	const struct rig_kmodel *model; /* of `way` */
	const struct rig_vfio_sink *sink;
	char token[RIG_PCI_TOKEN + 1]; /* "" if none was given */
	struct rig_pci_attempt tried;  /* while it is being opened */
	int lock_fd;
	int fd; /* the device */
	struct rig_kspace *space;
	uint32_t flags; /* RIG_KVFIO_DEVICE_* */
	unsigned regions, irqs;
	uint64_t offset[RIG_VFIO_REGIONS]; /* of regions in fd */
	uint64_t bytes[RIG_VFIO_REGIONS];
	unsigned irq_count[RIG_IRQ_KINDS];
	bool irq_noresize[RIG_IRQ_KINDS];
	bool irq_on[RIG_IRQ_KINDS];
	char no_reset[192]; /* why there is none, "" */
	bool hot_resets;    /* no reset of its own, but one with others, who are ours */
	/* kernel_watch.c */
	bool watching;
	pthread_t watcher;
	int quit_fd;
	int watch_fd[RIG_KERNEL_WATCHED];
	atomic_uint_fast64_t calls;
};

/* A system call, counted: the answer, or negative errno. */
int rig_kernel_ioctl(struct rig_kernel *k, int fd, unsigned long request, void *arg);

/* Of a step of opening: notes it in k->tried and answers the negative errno, with rig_error() "NAME: what:
 * ERRNO (text)", or "NAME: ERRNO (text)" for an empty what. err may have either sign. */
int rig_kernel_fail(struct rig_kernel *k, enum rig_pci_step step, int err, const char *what, ...)
        __attribute__((format(printf, 4, 5)));
/* Of opening a node. */
int rig_kernel_fail_node(struct rig_kernel *k, int err, const char *path);
/* Of getting at the device's descriptor. */
int rig_kernel_fail_device(struct rig_kernel *k, int err, const char *what);

/* -- kernel_device.c: what the three have in common -- */

/* Reads the device's facts, checks that it is a PCI function which is there: power, link, vendor id. */
int rig_kernel_identify(struct rig_kernel *k);
/* Facts that do not differ: how it resets, its address, its BARs' addresses. */
void rig_kernel_facts(const struct rig_kernel *k, struct rig_vfio_device *out);
int rig_kernel_region(void *transport, unsigned index, struct rig_vfio_region *out);
int rig_kernel_irqs(void *transport, unsigned kind, unsigned *count);
int rig_kernel_read(void *transport, unsigned region, uint64_t offset, void *buf, uint64_t len);
int rig_kernel_write(void *transport, unsigned region, uint64_t offset, const void *buf, uint64_t len);
/* Whether the kernel has dma-bufs of BARs; asks it. */
bool rig_kernel_exports(struct rig_kernel *k);
int rig_kernel_export(void *transport, unsigned region, uint64_t offset, uint64_t bytes, int *fd);
uint64_t rig_kernel_messages(const void *transport);

/* A device's name for its group, with the token if one was given, in `name`. */
enum { RIG_KERNEL_NAME = 64 };
char *rig_kernel_name(const struct rig_kernel *k, char *name);
/* The bytes of the token; false if none was given. */
bool rig_kernel_token(const struct rig_kernel *k, unsigned char *uuid);

/* -- kernel_map.c: memory in the function's space -- */

int rig_kernel_dma_map(void *transport, const struct rig_vfio_map *map);
int rig_kernel_dma_unmap(void *transport, uint64_t iova, uint64_t bytes);
/* Takes out of the set what others in the space have mapped. */
int rig_kernel_others(struct rig_kernel *k, struct rig_ranges *free);
/* Closes the device's descriptor, if there is one; then leaves the space, and nothing in it. */
void rig_kernel_leave(struct rig_kernel *k);
/* What a refused mapping is called; with the space's lock held. */
int rig_kernel_fail_map(const struct rig_kernel *k, int err, const struct rig_vfio_map *map);

/* -- kernel_irq.c -- */

int rig_kernel_irq_set(void *transport, const struct rig_vfio_irq *irq);
/* Connects the watcher's own descriptor to ERR or REQ. */
int rig_kernel_irq_watch(struct rig_kernel *k, unsigned kind);

/* ERR and REQ off: the device's descriptor may live on in another process. */
void rig_kernel_irq_unwatch(struct rig_kernel *k);

/* -- kernel_watch.c: ERR and REQ are always armed -- */

/* Starts the thread that makes the function gone when the device reports an error it cannot correct, or
 * somebody asks for the function back. */
int rig_kernel_watch_start(struct rig_kernel *k);
/* Ends the thread; then its descriptors. */
void rig_kernel_watch_stop(struct rig_kernel *k);
void rig_kernel_watch_close(struct rig_kernel *k);

/* -- kernel_reset.c -- */

/* Whether a hot reset would hit nobody but this process; with a text of who else when not. */
int rig_kernel_hot_check(struct rig_kernel *k);
int rig_kernel_reset_check(void *transport, bool ours);
bool rig_kernel_reset_hits(void *transport, const char *bdf);
int rig_kernel_reset(void *transport, unsigned reset_ms, bool ours);

/* -- kernel_select.c -- */

int rig_kernel_attach(void *transport, const struct rig_vfio_sink *sink);
void rig_kernel_quiet(void *transport);
void rig_kernel_close(void *transport);
void rig_kernel_forked(void *transport);
/* The process's functions, one call each, between lock and unlock: none comes or goes meanwhile. */
void rig_kernel_lock(void);
void rig_kernel_unlock(void);
void rig_kernel_each(void (*each)(void *arg, struct rig_kernel *k), void *arg);

/* -- kernel_iommufd.c: what no-IOMMU uses too -- */

/* k->space: the group's, or a new one in /dev/iommu. */
int rig_kiommufd_space(struct rig_kernel *k, const struct rig_pci_fds *fds, int group);
/* k->fd: the device's node, bound and attached. On failure k->fd is -1, and the space stays. */
int rig_kiommufd_device(struct rig_kernel *k, const struct rig_pci_fds *fds);
/* Maps by host address, at map->iova or where the kernel likes. With the space's lock held. The plain
 * errno: rig_kernel_fail_map has the words. */
int rig_kiommufd_map(struct rig_kernel *k, const struct rig_vfio_map *map, bool fixed, uint64_t *iova);
/* Unmaps: as rig_kmodel's. */
int rig_kiommufd_unmap(struct rig_kernel *k, uint64_t at, uint64_t *bytes);

extern const struct rig_kmodel rig_ktype1_model, rig_kiommufd_model, rig_knoiommu_model;

#endif
