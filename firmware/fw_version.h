/* SPDX-License-Identifier: MIT */
/* The firmware's version, which FW_VERSION and the packed image show (docs/rvx1.md, section 5.1). */
#ifndef FW_VERSION_H
#define FW_VERSION_H

#define FW_MAJOR   1u
#define FW_MINOR   0u
#define FW_PATCH   0u
#define FW_VERSION (FW_MAJOR << 16 | FW_MINOR << 8 | FW_PATCH)

#endif
