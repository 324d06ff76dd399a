/* SPDX-License-Identifier: MIT */
#ifndef RIG_WRITABLE_H
#define RIG_WRITABLE_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the process may read and write all of so many bytes, as the system lists its mappings now. True
   where it does not say. A range that wraps is none. */
bool rig_is_writable(const void *at, uint64_t bytes);

#endif
