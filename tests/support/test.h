/* SPDX-License-Identifier: MIT */
#ifndef TEST_H
#define TEST_H

/* What every cmocka program begins with: <cmocka.h> needs the headers before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
