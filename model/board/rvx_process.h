/* SPDX-License-Identifier: MIT */
/*
 * What the process owes its parent and its terminal. The parent's way to end it is the socket: it exits when
 * the other end is closed, whoever closed it and why.
 */
#ifndef RVX_PROCESS_H
#define RVX_PROCESS_H

#include <signal.h>

struct rvx_stop {
	const volatile sig_atomic_t *asked; /* not 0 after SIGTERM, SIGINT or SIGHUP */
	sigset_t unblocked;                 /* the mask for sleeping: these signals arrive only then */
};

/* Closes every descriptor but stdio and `fd` (-1: none): what a parent leaked is not ours to keep alive. */
void rvx_process_close_others(int fd);

/*
 * With fd >= 0 the process leaves the terminal's process group: Ctrl-C is for the parent. Signals that end it
 * are told by *stop. A client that shrinks the memory it shared must not end the board: a page of nothing
 * takes its place. 0 or a negative errno.
 */
int rvx_process_prepare(int fd, struct rvx_stop *stop);

#endif
