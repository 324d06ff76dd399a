/* SPDX-License-Identifier: MIT */
/* The groups of laws, one a file laws_NAME.c. */
#ifndef CONFORM_GROUPS_H
#define CONFORM_GROUPS_H

#include "conform.h"

extern const struct conform_group conform_opening, conform_facts, conform_memory, conform_room, conform_work,
        conform_code, conform_times, conform_ending, conform_threads, conform_runtime;

#endif
