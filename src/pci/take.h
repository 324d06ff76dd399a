/* SPDX-License-Identifier: MIT */
/* A device string's function, taken; and why it could not be, with what the doctor finds of the matter. */
#ifndef RIG_OPEN_TAKE_H
#define RIG_OPEN_TAKE_H

#include <stddef.h>

#include "spec.h"

struct rig_log;
struct rig_sim; /* the bundled model as a process of our own, at the other end of a socketpair */

struct rig_taken {
	struct rig_pci *pci;
	struct rig_sim *sim; /* its process until the close, of "sim"; else NULL */
};

/* As those of struct rig_pci_options and struct rig_pci_taking. */
struct rig_take_options {
	const struct rig_pci_fds *fds;
	const struct rig_log *log;
	bool guard;
	unsigned reset_ms;
	uint64_t iova_base, arena_limit;
};

/* Whether a caller's descriptors and token, each NULL for none, go with the string. -EINVAL. */
RIG_API int rig_take_check(const struct rig_spec *spec, const struct rig_pci_fds *fds, const char *token);

/* Starts the model where the string says sim, and takes the function, whose close ends the model. Negative
 * errno with rig_error(), *out then holds nothing. */
RIG_API int rig_take(const struct rig_spec *spec, const struct rig_take_options *how, struct rig_taken *out);

/* Sets rig_error() to the attempts of an open that failed, each with what the doctor finds of it in the
 * files below root ("" for this machine), else with what helps most often. Answers the errno of what it
 * tells: where one of two ways is not there at all, that is the other's. */
int rig_explain(const char *root, const struct rig_spec *spec, const struct rig_pci_failed *failed);

/* Adds to why what the doctor finds of memory that could not be mapped for the function, if err is of
 * that. */
RIG_API void rig_explain_memory(
        const char *root, const struct rig_spec *spec, int err, char *why, size_t why_bytes);

/* Warns of an open that fits, while the first arena of DMA memory would not. */
void rig_explain_limit(const char *root, const struct rig_spec *spec, const struct rig_log *log);

/* -- sim.c -- */

/* Starts rvx1-model (found as find.h says, variable RIG_MODEL_DIR). *fd is our end, which the caller owns;
   the model ends when it is closed, by whoever ends this process too. Negative errno with rig_error(). */
int rig_sim_start(const struct rig_spec *spec, struct rig_sim **out, int *fd);

/* Ends the process at once; when it returns it does nothing any more. rig_sim_end is still owed. */
RIG_API void rig_sim_kill(void *sim);

/* After *fd was closed: waits for the process to be gone, kills it if it takes longer than a few seconds. */
void rig_sim_end(void *sim);

#endif
