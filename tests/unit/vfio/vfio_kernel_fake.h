/* SPDX-License-Identifier: MIT */
#ifndef VFIO_KERNEL_FAKE_H
#define VFIO_KERNEL_FAKE_H

/*
 * A kernel for tests of src/vfio/kernel: nodes, containers, iommufds and two functions of one group, with
 * a tree of sysfs files in a folder of its own. Its descriptors are real ones (memfds), so leaks are counted
 * and BARs can be mapped. Each ioctl is checked for its argsz and can be told to fail. One at a time; not for
 * threads.
 */

#include <stdbool.h>
#include <stdint.h>

#include "kernel_sys.h"

enum {
	FAKE_KERNEL_FUNCTIONS = 2,
	FAKE_KERNEL_MAPS = 64,
	FAKE_KERNEL_IRQS = 5,
	FAKE_KERNEL_VECTORS = 4,
	FAKE_KERNEL_REGION_SHIFT = 24, /* regions lie so far apart in a device's descriptor */
};

#define FAKE_KERNEL_BDF0 "0000:65:00.0"
#define FAKE_KERNEL_BDF1 "0000:65:00.1"

struct fake_kernel_function {
	int device_fd; /* the kernel's own copy: its memory */
	uint32_t flags;
	int irq[FAKE_KERNEL_IRQS][FAKE_KERNEL_VECTORS]; /* copies of what is connected, -1 */
	unsigned irq_start, irq_count;                  /* of the last connection */
	unsigned resets, hot_resets;
	char token[40];         /* who opens it must give it, "" for none */
	unsigned char uuid[16]; /* that was set as a physical function's, so often: */
	unsigned tokens;
	bool attached;
};

struct fake_kernel {
	struct rig_kenv env;
	char root[64], lock_dir[80];
	bool viable;
	bool no_cdev, no_iommu_node; /* nodes that are not there */
	bool exports;                /* BARs as dma-bufs */
	bool no_dmabuf_maps;         /* iommufd takes none */
	bool binds_token;            /* iommufd takes the owner's token */
	const char *fail_path;       /* this node cannot be opened: fail_path_errno */
	int fail_path_errno;
	unsigned fail_path_times; /* so often; 0: always */
	unsigned hot_group;       /* of the function that a hot reset would hit too */
	unsigned vectors_free;    /* 0: all; else more are answered by how many there are */
	bool hot_alone;           /* a hot reset hits one function only */
	bool hot_owned;           /* all functions of a hot reset are the iommufd's */
	unsigned joins;           /* of the group to a container */
	uint64_t entry_limit;
	unsigned file_maps; /* mappings made by file */
	unsigned fail_nr;   /* this ioctl (the number after ';') fails with fail_errno; 0: none */
	int fail_errno;
	unsigned fail_times;       /* so often; 0: always */
	unsigned closed_mapped;    /* descriptors of a function that went while it was mapped */
	unsigned calls, fail_call; /* system calls so far; the one that fails with EIO, 0: none */
	uint64_t unmap_less;       /* type1's unmap undoes so many bytes less */
	bool tells_pa;             /* no-IOMMU: GET_PA exists */
	uint64_t pa_step;          /* physically contiguous so far; 0: all of it */
	unsigned exported;         /* dma-bufs made */
	struct {
		uint64_t iova, bytes;
		unsigned dmabuf; /* of the function with this number less 1; 0: of none */
		bool revoked;    /* that function was reset since */
	} map[FAKE_KERNEL_MAPS];
	unsigned maps;
	struct fake_kernel_function function[FAKE_KERNEL_FUNCTIONS];
};

/* Makes the tree: both functions in group 12, bound to vfio-pci, with cdevs; 1234:5258, D0. */
void fake_kernel_init(struct fake_kernel *kernel);
void fake_kernel_fini(struct fake_kernel *kernel);

/* Writes text to a file of the tree, with its folders; NULL removes the file. */
void fake_kernel_file(struct fake_kernel *kernel, const char *path, const char *text);
/* Removes a folder of the tree, with all in it. */
void fake_kernel_remove(struct fake_kernel *kernel, const char *path);
/* Makes a link of the tree, in place of what was there. */
/* Gives a function to another driver than VFIO's: what VFIO made for it goes. */
void fake_kernel_bind(struct fake_kernel *kernel, const char *bdf, const char *driver);
void fake_kernel_link(struct fake_kernel *kernel, const char *path, const char *target);

#endif
