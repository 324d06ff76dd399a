/* SPDX-License-Identifier: MIT */
#ifndef RIG_VFIO_USER_ANSWER_H
#define RIG_VFIO_USER_ANSWER_H

/*
 * Answers to the device's DMA commands, sent in order by the thread that receives, which must not wait for
 * the other side to receive: that may itself be waiting for bytes of its own to be received. What cannot go
 * out at once is kept and goes out between messages. Private to the vfio-user channel; one thread uses it.
 *
 * The lock given to rig_vuser_answers_init keeps messages whole: callers hold it while they send one. It is
 * held from the first byte of an answer to its last, also from one function here to the next. A socket on
 * which nobody else sends has no lock.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* The most bytes kept. A device process that leaves more unread is waited for, as long as for an answer. */
enum { RIG_VUSER_ANSWERS_BYTES = 16 << 20 };

struct rig_vuser_kept;

struct rig_vuser_answers {
	int fd;
	int other_fd;         /* received from as well, -1: none */
	unsigned deadline_ms; /* without one byte taken */
	pthread_mutex_t *send_lock;
	struct rig_vuser_kept *first, **last;
	size_t bytes;   /* of all that is kept */
	bool locked;    /* part of the first is sent */
	uint64_t since; /* of the last byte that went out, in nanoseconds */
};

void rig_vuser_answers_init(
        struct rig_vuser_answers *a, int fd, unsigned deadline_ms, pthread_mutex_t *send_lock);

/* From now on answers go to the socket fd, which only they use, and messages come from the one before as
 * well. Nothing has been sent. */
void rig_vuser_answers_move(struct rig_vuser_answers *a, int fd);

/* Sends iov, or keeps a copy of it. -ETIMEDOUT: too much is kept, and the device process takes nothing;
 * -ENOMEM; or what sendmsg(2) said. */
int rig_vuser_answers_send(struct rig_vuser_answers *a, struct iovec *iov, int n);

/* Before the thread waits for a message: returns once there are bytes to receive or nothing is kept; sends
 * what is kept meanwhile. 0, -ETIMEDOUT or what sendmsg(2) said. */
int rig_vuser_answers_idle(struct rig_vuser_answers *a);

/* Drops what is kept and lets go of the lock. */
void rig_vuser_answers_fini(struct rig_vuser_answers *a);

#endif
