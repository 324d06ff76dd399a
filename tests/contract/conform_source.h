/* SPDX-License-Identifier: MIT */
/* Sources of devices as rig-conform's command line names them. */
#ifndef CONFORM_SOURCE_H
#define CONFORM_SOURCE_H

#include "conform.h"

struct conform_named;

/* DEVICE, and SECOND (NULL: none) as the device of index 1 where DEVICE names one device only. A
   module's file is loaded here. 0, or a negative errno with rig_error(). */
int conform_source_make(const char *device, const char *second, struct conform_named **out);
const struct conform_source *conform_source_of(const struct conform_named *named);
void conform_source_free(struct conform_named *named);

#endif
