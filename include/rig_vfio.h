/* SPDX-License-Identifier: MIT */
/*
 * Openers for PCI functions and for the bundled model of the reference board (librig_vfio).
 *
 * A device string names what to open:
 *   sim[:OPTION,...]   a model of RVX-1 of this process's own, which ends with the device
 *   vfio-user:PATH     a device process that listens on the UNIX socket PATH
 *   0000:65:00.0       a PCI function through the kernel's VFIO; a domain has four to eight hex digits, and
 *                      0000:6E:00.0 is 0000:6e:00.0
 * Options, for every form after a ',' (for sim after the first ':'):
 *   completion=poll|store  how the timeline word advances; poll is the default
 *   hang=TIME              lost after so long without progress: 500ms, 2s; otherwise the board's default,
 *                          of sim what RIG_SIM_HANG of the environment says: a busy machine may starve a
 *                          model
 *   poller=CPU             the thread that watches for completions is pinned to that CPU and never sleeps; by
 *                          default it sleeps until the function's interrupt
 *   firmware=DIR           the folder of the firmware image
 *   dma=bus|dmabuf         what rig_buffer_dma answers: bus addresses, the default, which serve functions
 *                          that no IOMMU translates for; or dma-bufs, of a PCI function on Linux 6.19 or
 *                          later
 * of a PCI function alone:
 *   transport=auto|iommufd|type1|noiommu  auto takes iommufd (the function's device node) where it exists and
 *                          serves, else type1 (its group); noiommu never unasked: the device then reaches all
 *                          memory
 *   vf-token=UUID          of a virtual function whose physical one is VFIO's too: what that one's owner set;
 *                          of a physical function: sets it
 * and of sim alone:
 *   mem=SIZE               board memory: 64M to 8G; 256M is the default
 *   aperture=SIZE          of it that the host maps: a power of two, at least 16M; all of it is the default
 *   queues=N               2 to 8; 2 is the default: COMPUTE:0, COPY:0, COMPUTE:1 and so on
 *   clock-hz=N, clock-drift=PPM, clock-step=US/MS
 *                          the board's clock: its nominal frequency (1000000 to 4000000000), how far it is
 *                          off that (-100 to 100), and how far and how often it jumps ahead (1 to 1000000
 *                          each); as rvx1-model --clock-hz, --clock-drift-ppm, --clock-step
 *   fault=NAME[=N][+...]   misbehaviour, as rvx1-model --fault: hang, late=MS, halt, die, die-boot,
 *                          refuse-boot, bus, dma-unmapped, corrupt-stamp, lose-irq, gone=MS, slow-boot=MS,
 *                          refuse-reset
 * SIZE takes K, M and G.
 *
 * The function is reset when it is opened, and when it is closed with work that did not end well. Where it
 * has no reset of its own, a reset of its bus serves, which hits all functions there: only if every one of
 * them is this process's to reset and none but this one is open. Else it is not reset, which the log says
 * with their addresses: before the boot it opens all the same; memory that work of it may still reach after
 * a loss is kept until the process exits.
 *
 * submit commits its value itself.
 *
 * Times: on a board with a clock (rvx1) a timed value's work stamps that clock, and settle, or a later
 * submit, converts. How exact that is: the clock is read between two looks at the host's, once when the
 * device is made, by settle where no reading is newer than the value's end, and by the driver's thread about
 * every 10 ms while timed values complete (up to a second apart while one goes on). A time is off by at most
 * half of what the two readings around it took, plus 600 parts per million of the time between them (100 of
 * the board's clock, 500 that the host's may be slewed), plus a jump of the board's clock between them, and
 * never by more than the time between them. stats.times_error_ns is the largest such bound among the times
 * that were given. A value whose stamps are missing or cannot be true (out of order, or not between its
 * submit and now) is a fault of the device. The pair stays 0 without a clock, for a value that was the first
 * to be timed while the queues were full, and where no memory is left for a ring that holds its stamps.
 * measures gives each launch's cycles, instructions, bytes read and bytes written. Rows of 65,536 launches,
 * of 16,384 values, are kept until measures gives them up; launches beyond that are not measured, and neither
 * are those of a value with more than 2,700, or with more than half of what the largest ring holds.
 *
 * Any number of sim devices may be open at once, each under its own name. A second handle of a vfio-user
 * device opens only once the first is released: its process serves one client.
 */
#ifndef RIG_VFIO_H
#define RIG_VFIO_H

#include "rig_edge.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A PCI function's descriptors, opened by a process with more rights (docs/porting.md, "A worker without
 * rights"); -1: none. `device` must be there, and with it either
 *   group and container   the group's node and /dev/vfio/vfio, joined or not, and device from the group; or
 *   iommufd               /dev/iommu, and device from the function's own node, bound to it and not attached.
 * Who closes what: they stay the caller's, who closes them whenever it likes once make has returned, also if
 * make failed. make works with copies of its own (close-on-exec), and the end of the device closes those and
 * takes the function out of the address space that make put it in. The function is free for others when the
 * last copy is closed, in every process that has one: a parent that keeps its own keeps the function.
 * No node is opened and no lock of the function is taken: who opened them sees to it that nobody else drives
 * it.
 */
struct rig_vfio_fds {
	int device, group, container, iommufd;
};

/* Of every opener; NULL means all zero. Copied. */
struct rig_vfio_options {
	uint32_t version; /* RIG_EDGE_VERSION */
	/* The device's name; NULL: the device string up to its options, "sim" numbered from 0. */
	const char *name;
	bool guard; /* survive mapped BARs that vanish: a process-wide SIGBUS handler, chained */
	/* One line of text about opening, booting, stopping; from any thread. level 0 is an error, 3
	   debugging. */
	void (*log)(void *arg, int level, const char *text);
	void *log_arg;
	const struct rig_vfio_fds *fds; /* of a PCI function; NULL: make opens what it needs. Copied */
	const char *vf_token; /* as the option vf-token, which comes before it; NULL: none. Copied */
};

/* Makes an opener for a device string. Opens nothing and does no I/O. 0 with *out, which rig_vfio_opener_free
   ends (devices it made live on), or -EINVAL with rig_error() naming the option and what it takes, or
   -ENOMEM. */
RIG_API int rig_vfio_opener(
        const char *device, const struct rig_vfio_options *options, struct rig_opener **out);
RIG_API void rig_vfio_opener_free(struct rig_opener *opener);

/* The capability of every device of these openers: compare with rig_facts.capability.key. */
RIG_API extern const struct rig_key rig_vfio_key;

struct rig_vfio_stats {
	uint64_t messages;  /* to the device process, or system calls of a kernel transport, since the open */
	uint64_t served;    /* DMA messages answered for the device */
	uint64_t dma_maps;  /* DMA mappings now */
	uint64_t dma_bytes; /* of them */
	uint64_t table_bytes; /* of page tables */
	uint64_t bus_bytes;   /* kept until the process exits because it gave their bus addresses out: of this
	                       open of the function and of those before it */
	uint64_t memory_free; /* bytes of board memory not handed out */
	uint64_t times_error_ns; /* the most by which a time that settle or measures gave may be off */
	uint64_t dmabuf_bytes;   /* freed, and kept while others have references to dma-bufs of them */
};

/* The record under rig_vfio_key; lives as long as the device. */
struct rig_vfio_record {
	uint32_t version;
	const char *transport;  /* "vfio-user", "iommufd", "type1", "noiommu" */
	const char *board;      /* "rvx1" */
	const char *firmware;   /* its version and digest */
	const char *host_pages; /* where pinned memory comes from */
	uint16_t vendor, device;
	uint64_t memory_bytes;   /* board memory that programs may have */
	uint64_t aperture_bytes; /* board memory that the host maps */
	bool simulated_bus;      /* bus addresses are of a simulated bus: no other function can use them */
	void (*stats)(const struct rig_vfio_record *record, struct rig_vfio_stats *stats);
};

#ifdef __cplusplus
}
#endif

#endif
