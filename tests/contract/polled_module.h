/* SPDX-License-Identifier: MIT */
#ifndef POLLED_MODULE_H
#define POLLED_MODULE_H

#include "rig_conform.h"

#define POLLED_DEVICES 2u

/* As rig_conform.h says; the text is polled_parse's. */
RIG_API const struct rig_opener *rig_conform_opener(const char *text, unsigned index);
RIG_API const struct rig_conform_code *rig_conform_code(const char *arch);

/* The first breach by the runtime that any of its devices saw, or NULL. */
const char *polled_complaint(void);

#endif
