/* SPDX-License-Identifier: MIT */
#ifndef RIG_HUGEMEM_H
#define RIG_HUGEMEM_H

/*
 * Memory for DMA arenas: from huge pages where the machine has them, shareable by a descriptor, populated.
 * The only user of libhugetlbfs. Private to src/vfio. Any thread.
 */

#include <stdint.h>

enum { RIG_HUGEMEM_TEXT_BYTES = 64 };

/* Arenas lie on this boundary, so that an IOVA on it means a host address on it. */
#define RIG_HUGEMEM_ALIGN (UINT64_C(2) << 20)

struct rig_hugemem {
	void *host;     /* a multiple of RIG_HUGEMEM_ALIGN */
	uint64_t bytes; /* a multiple of page */
	uint64_t page;
	int fd;                            /* close-on-exec; its byte 0 is host's */
	char text[RIG_HUGEMEM_TEXT_BYTES]; /* "2 MiB pages of hugetlbfs" */
};

/* At least bytes of zeroed memory, every page of it there, not inherited by children of fork. Tries
 * hugetlbfs, then memfd_create(MFD_HUGETLB), each with the largest page size that bytes (or 2 MiB) fills,
 * then ordinary pages. -ENOMEM, whatever is lacking, descriptors too: rig_error() says what. */
int rig_hugemem_open(struct rig_hugemem *m, uint64_t bytes);

/* A zeroed one is allowed. */
void rig_hugemem_close(struct rig_hugemem *m);

#endif
