/* SPDX-License-Identifier: MIT */
/* A device string (rig_vfio.h), taken apart. Pure. */
#ifndef RIG_OPEN_SPEC_H
#define RIG_OPEN_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "vfio_kernel.h"

enum rig_spec_kind { RIG_SPEC_SIM, RIG_SPEC_VFIO_USER, RIG_SPEC_PCI };

enum { RIG_SPEC_TEXT = 256, RIG_SPEC_FAULT = 64, RIG_SPEC_STEP = 24 };

struct rig_spec {
	enum rig_spec_kind kind;
	char base[RIG_SPEC_TEXT];     /* the string up to its options; an address as Linux writes it */
	char path[RIG_SPEC_TEXT];     /* of the socket, or the PCI address */
	char firmware[RIG_SPEC_TEXT]; /* "" if not given */
	char fault[RIG_SPEC_FAULT];   /* as rvx1-model takes it: ',' between several; "" if not given */
	uint64_t memory, aperture;    /* bytes; 0 if not given */
	uint32_t queues;              /* 0 if not given */
	uint64_t clock_hz;            /* 0 if not given */
	bool has_clock_drift;
	int clock_drift;                /* parts per million */
	char clock_step[RIG_SPEC_STEP]; /* "US/MS"; "" if not given */
	int64_t hang_ms;                /* 0 if not given */
	int poller_cpu;                 /* -1 if not given */
	bool store;
	bool dmabuf;
	enum rig_pci_transport transport; /* of a PCI address; RIG_PCI_ANY if not given */
	char token[RIG_PCI_TOKEN + 1];    /* of a virtual function's owner; "" if not given */
};

/* 0, or -EINVAL with rig_error() naming the option and what it takes. */
RIG_API int rig_spec_parse(const char *device, struct rig_spec *spec);

/* Gives a sim without one a hang bound: a time, NULL for none. -EINVAL likewise. */
RIG_API int rig_spec_default(struct rig_spec *spec, const char *hang);

#endif
