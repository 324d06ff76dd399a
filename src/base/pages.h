/* SPDX-License-Identifier: MIT */
/* Anonymous memory of whole pages. Any thread. */
#ifndef RIG_PAGES_H
#define RIG_PAGES_H

#include <stddef.h>

/* `bytes` of zeros, from 1, at a page's start; from 2 MiB on at a huge page's start, where the system may
   give huge pages: copies then walk fewer of them. NULL with errno. */
void *rig_pages_map(size_t bytes);

/* The same bytes. NULL is allowed. */
void rig_pages_unmap(void *at, size_t bytes);

#endif
