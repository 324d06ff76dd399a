/* SPDX-License-Identifier: MIT */
#ifndef VFIO_KERNEL_BENCH_H
#define VFIO_KERNEL_BENCH_H

/* The scripted kernel of a test program, made anew for each test, and functions taken of it. */

#include "vfio_kernel.h"
#include "log.h"
#include "pci.h"
#include "vfio_kernel_fake.h"

extern struct fake_kernel kernel;
/* What was logged since the test began, without separators. */
extern char logged[2048];
extern const struct rig_log log_all;

/* Fixtures of each test. */
int kernel_setup(void **state);
int kernel_teardown(void **state);

#define KERNEL_TEST(name) cmocka_unit_test_setup_teardown(name, kernel_setup, kernel_teardown)

/* Opens a function: rig_kernel_open's or rig_pci_open's answer, and NULL in *out if it is an error. */
int open_want(const struct rig_kernel_want *want, struct rig_pci **out);
int open_by(enum rig_pci_transport which, const char *bdf, struct rig_pci **out);
/* The same; an error fails the running cmocka test. */
struct rig_pci *take(enum rig_pci_transport which, const char *bdf);

/* Fails the running cmocka test unless the last error's text has the words. */
void says(const char *words);

#endif
