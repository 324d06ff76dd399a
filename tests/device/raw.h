/* SPDX-License-Identifier: MIT */
/*
 * A PCI function through the kernel's VFIO, in system calls only and without the library: what tests of the
 * machine itself use, and what tests of the library use behind its back. Every function ends the program with
 * exit status 1 and a line on standard error when the kernel refuses; one thread.
 */
#ifndef RAW_H
#define RAW_H

#include <stdbool.h>
#include <stdint.h>

enum raw_transport { RAW_TYPE1, RAW_IOMMUFD, RAW_NOIOMMU };

struct raw {
	enum raw_transport transport;
	int container; /* /dev/vfio/vfio, or /dev/iommu; -1: none */
	int group;     /* -1 with iommufd */
	int device;
	uint32_t ioas; /* iommufd's address space */
};

/* "type1", "iommufd" or "noiommu". */
enum raw_transport raw_transport_of(const char *name);

/* Opens function `address` ("0000:00:06.0"), which vfio-pci drives. */
void raw_open(struct raw *raw, const char *address, enum raw_transport transport);
/* Opens function `address` in the container of `with`, a type1 one. */
void raw_join(struct raw *raw, const char *address, const struct raw *with);
/* Takes an iommufd's function out of its address space, and leaves it bound; does nothing to others. */
void raw_detach(const struct raw *raw);
void raw_close(struct raw *raw);

/* Maps `bytes` of host memory at bus address `iova` for reads and writes, and unmaps exactly that. Not with
 * no-IOMMU. */
void raw_map(const struct raw *raw, void *host, uint64_t iova, uint64_t bytes);
void raw_unmap(const struct raw *raw, uint64_t iova, uint64_t bytes);
/* With iommufd, whose address space is not known: unmaps it from the first with a number below `ioas` that
   has exactly it. False: none has. */
bool raw_unmap_any(const struct raw *raw, uint32_t ioas, uint64_t iova, uint64_t bytes);

uint64_t raw_region_bytes(const struct raw *raw, unsigned index);
/* A mapping of the region's first bytes, for reads and writes. */
void *raw_region_map(const struct raw *raw, unsigned index, uint64_t bytes);
/* One access of 1, 2, 4 or 8 bytes by system call; little-endian. */
uint64_t raw_read(const struct raw *raw, unsigned index, uint64_t offset, unsigned bytes);
void raw_write(const struct raw *raw, unsigned index, uint64_t offset, unsigned bytes, uint64_t value);

/* Memory Space and Bus Master Enable in COMMAND. */
void raw_enable(const struct raw *raw);
/* How many vectors of MSI-X, and an eventfd that vector `vector` signals from now on. */
unsigned raw_vectors(const struct raw *raw);
int raw_vector_event(const struct raw *raw, unsigned vector);
void raw_reset(const struct raw *raw);
/* Makes the kernel signal interrupt `index` of vfio.h as if the function had caused it. */
void raw_signal(const struct raw *raw, unsigned index);

/* Unless `ok`, ends the program with what should have been. */
void raw_check(bool ok, const char *what);

#endif
