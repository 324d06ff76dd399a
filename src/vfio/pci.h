/* SPDX-License-Identifier: MIT */
#ifndef RIG_PCI_TAKE_H
#define RIG_PCI_TAKE_H

/* What of a function rig_pci.h does not tell: how a transport becomes one, and the end of a driver's DMA. */

#include "rig_pci.h"

struct rig_log;
struct rig_vfio_ops;

struct rig_pci_taking {
	/* Called first, while forks of this process wait, so that no child holds what it makes: sets ops and
	 * transport. Its negative errno is the open's. Sends nothing, and logs, if at all, by options->log,
	 * which keeps lines until forks may go on. A transport's header has one (vfio_kernel.h, vfio_user.h).
	 * NULL: they are there. */
	int (*begin)(void *arg, struct rig_pci_taking *options);
	void *arg;
	const struct rig_vfio_ops *ops;
	void *transport;           /* closed by ops->close, which open calls also if it fails */
	const char *name;          /* errors begin with it; NULL: with nothing. Read during the call only */
	unsigned reset_ms;         /* for a reset, until the function is ready again; 0: RIG_PCI_RESET_MS */
	uint64_t iova_base;        /* IOVAs are placed from here upward first; 0: RIG_PCI_IOVA_BASE */
	uint64_t arena_step;       /* bytes a DMA arena grows by; 0: RIG_PCI_ARENA_STEP */
	uint64_t arena_limit;      /* bytes of all DMA arenas; 0: no limit of ours */
	const struct rig_log *log; /* NULL: silence. Copied */
	/* Called with ended_arg once the function was given back, by the close or by an open that failed; not
	 * in a child. NULL: nobody. For who started the far side. */
	void (*ended)(void *arg);
	void *ended_arg;
	bool guard; /* survive mapped windows that vanish (SIGBUS): a process-wide handler, chained */
};

#define RIG_PCI_RESET_MS   10000u
#define RIG_PCI_IOVA_BASE  (UINT64_C(4) << 30)
#define RIG_PCI_ARENA_STEP (UINT64_C(64) << 20)

/* Takes the function. On failure nothing is left behind, *out is NULL, and rig_error() is one line: what was
 * to be opened, the attempt, the errno. Errors:
 *	-ENOTSUP	the device is not a PCI function
 *	-ENODEV		the far side hung up, or configuration space reads all ones
 *	-EPROTO		the far side broke the protocol, or speaks another major version
 *	-ETIMEDOUT	no answer within the deadline
 *	other		what connect(2) and its like answered
 */
int rig_pci_take(struct rig_pci **out, const struct rig_pci_taking *options);

/* The same in a mapping of its own, at a page start, which goes with it: for what no table that maps the
 * other memory may reach. */
RIG_API int rig_dma_alloc_alone(struct rig_pci *f, uint64_t bytes, struct rig_dma *out);

/* The same of memory that is of no use where it lies: its arena does not stay for it. */
RIG_API void rig_dma_refuse(struct rig_pci *f, struct rig_dma *dma);

/* For the end of a function's work: when it returns, what the device asks of memory by message is refused,
 * for good. A message that it sent before it was reset, or before it left, may come after that, and memory is
 * given back then. */
RIG_API void rig_dma_deny(struct rig_pci *f);

#endif
