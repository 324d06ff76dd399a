/* SPDX-License-Identifier: MIT */
#ifndef TEST_SYSTEM_H
#define TEST_SYSTEM_H

/*
 * The whole stack from outside: programs run in a private folder, with their exit status and output, and what
 * they leave behind found by a mark that every process under a test carries in its environment.
 *
 * The folder is the current one of every program started; k in it leads to the compiled test kernels.
 * Functions fail the running cmocka test when they cannot do their work. One thread.
 */

#include <sys/types.h>
#include "test.h"

/* Whether this is ThreadSanitizer, which is never idle and cannot start threads in a child of fork. */
#if defined(__SANITIZE_THREAD__)
#define SYS_TSAN 1
#else
#define SYS_TSAN 0
#endif

/* Whether this is AddressSanitizer, whose allocator a child of fork finds locked if a thread was in it. */
#if defined(__SANITIZE_ADDRESS__)
#define SYS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SYS_ASAN 1
#endif
#endif
#ifndef SYS_ASAN
#define SYS_ASAN 0
#endif

enum {
	SYS_DEADLINE_MS = 120000, /* of everything waited for here */
	SYS_TEXT = 8192,          /* the most output kept of a program */
	SYS_ARGS = 64,
};

/* Group fixture: makes the private folder and the mark; removes the folder, and checks that no process is
 * left. */
int sys_setup(void **state);
int sys_teardown(void **state);

/* ---- Programs ---- */

struct sys_process {
	pid_t pid;
	int out, err; /* files that take its output */
};

struct sys_result {
	int status; /* exit status, or minus the signal that ended it */
	char out[SYS_TEXT], err[SYS_TEXT];
};

/* Before the program starts, in its process: a failure (errno) keeps it from starting, as exit status 126. */
struct sys_before {
	int (*call)(void *arg);
	void *arg;
};

/* Starts a program: the command's words are separated by single spaces; "rigctl" and "rvx1-model" are this
   build's. In a process group of its own, as a shell's foreground job. */
void sys_start(struct sys_process *p, const char *command);
void sys_start_before(struct sys_process *p, const char *command, const struct sys_before *before);
/* Waits for its end. */
void sys_finish(struct sys_process *p, struct sys_result *result);
/* Both. */
void sys_run(struct sys_result *result, const char *command);

/* Fails unless the program ended with the status and said why in one line on stderr, which has `why` in
 * it. */
void sys_assert_failed(const struct sys_result *result, int status, const char *why);
/* Fails, with the program's stderr, unless it ended with status 0. */
void sys_assert_done(const struct sys_result *result);

/* Runs a kernel on the device through rigctl and fails unless its answers are right. */
void sys_assert_works(const char *device);

/* ---- Files ---- */

/* The private folder, and the path of a name in it (until the next call but three). */
const char *sys_folder(void);
const char *sys_path(const char *name);
/* The names in the private folder, sorted, separated by spaces (until the next call but one). */
const char *sys_names(void);
void sys_write_file(const char *name, const void *bytes, size_t count);
/* The whole file in *bytes, which the caller frees; its size. `path` may be any. */
size_t sys_read_file(const char *path, uint8_t **bytes);
/* The image of a test kernel. */
size_t sys_kernel_bytes(const char *kernel, uint8_t **bytes);

/* ---- What is left behind ---- */

/* Living processes (no zombies) that carry the test's mark: started by it, or by what it started. The test's
   own is none. Writes at most n of them whose program has this name (NULL: any). */
unsigned sys_find(const char *name, pid_t *pids, unsigned n);
/* Waits until there is none. */
void sys_assert_no_process(void);
/* Waits until there are as many models. */
void sys_await_models(unsigned n);

/* Waits until `ready` answers true. `what` is for the message. */
void sys_await(bool (*ready)(void *arg), void *arg, const char *what);
void sys_nap(void); /* a few milliseconds, between two looks */

/* ---- A served model ---- */

/* rvx1-model that listens at board.sock in the private folder, with more options if not "". Waits until it
 * does. */
void sys_serve(struct sys_process *p, const char *options);
/* Ends it by SIGTERM: it exits with 0 and removes its socket. */
void sys_serve_end(struct sys_process *p);
/* "vfio-user:" and its path. */
const char *sys_served(void);

#endif
