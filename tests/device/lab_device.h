/* SPDX-License-Identifier: MIT */
/*
 * Promises of the library on a real function: lab_device CHECK DEVICE [ARGUMENT ...] runs one, and ends with
 * exit status 0, 77 (a reason to skip) or 1, the reason in the last line on standard error. Kernels are read
 * from $RIG_LAB_IMAGES, else /lab. Also runs with DEVICE sim, on any machine.
 */
#ifndef LAB_DEVICE_H
#define LAB_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rig.h"
#include "rig_vfio.h"

/* ---- The checks, each one promise: lab_device.c has the table and what their arguments are ---- */

void check_cycle(char **argument);
void check_endless(char **argument);
void check_lost(char **argument);
void check_leaves(char **argument);
void check_works(char **argument);
void check_sleeper(char **argument);
void check_quiet(char **argument);
void check_pair(char **argument);
void check_outside(char **argument);
void check_many(char **argument);
void check_edu(char **argument);
void check_edu_beside(char **argument);
void check_peer(char **argument);
void check_no_peer(char **argument);
void check_lender(char **argument);
void check_dmabuf(char **argument);
void check_no_dmabuf(char **argument);
void check_signalled(char **argument);
void check_arena(char **argument);
void check_claim(char **argument);
void check_intx(char **argument);
void check_hot(char **argument);
void check_group(char **argument);
void check_churn(char **argument);
void check_spares(char **argument);
void check_astray(char **argument);

/* ---- What they share ---- */

/* Ends the program with 1 and the library's reason if the answer is an error; what: the attempt. */
void lab_must(int answer, const char *what);
/* Ends the program with 1 unless it is so; what: what should be. */
void lab_check(bool so, const char *what);
_Noreturn void lab_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void lab_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));
unsigned long lab_number(const char *text);

struct rig_device *lab_open(const char *text);
/* Without ending the program: rig_open's answer. */
int lab_try_open(const char *text, struct rig_device **device);
void lab_close(struct rig_device *device);

struct lab_work {
	struct rig_device *device;
	struct rig_image *image;
	struct rig_submission *submission;
	struct rig_run_args *run;
};

/* A launch of kernel `name` of NAME.elf. The address of the buffer (NULL: none) is added to the first 8 bytes
   of the parameters, and the launch writes it. */
void lab_work_make(struct lab_work *work, struct rig_device *device, const char *name, const void *params,
        uint32_t param_bytes, struct rig_buffer *buffer, uint32_t groups, uint32_t threads);
struct rig_point lab_work_submit(struct lab_work *work);
void lab_work_end(struct lab_work *work);

/* Copies through edu's buffer, and back. */
void lab_edu_copies(struct rig_device *edu, unsigned round);

/* Runs a kernel of some groups on the device, and checks every word that it wrote. */
void lab_works(struct rig_device *device);
/* Submits a launch that never ends, once the device has done other work. */
struct rig_point lab_endless(struct lab_work *work, struct rig_device *device);

/* The first descriptor of this process that /proc/self/fd shows as `name` or something that begins so; -1.
   And how many there are. */
int lab_descriptor(const char *name);
unsigned lab_descriptors(const char *name);

struct lab_counts {
	unsigned long fds, mappings, threads, locked_kb, pinned_kb;
};

/* What this process holds: descriptors, mappings of memfds, device files and shared memory, threads, and what
   the kernel accounts as locked and pinned. */
struct lab_counts lab_count(void);
/* Ends the program, naming the count, unless both are the same. */
void lab_same(const struct lab_counts *before, const struct lab_counts *after);

#endif
