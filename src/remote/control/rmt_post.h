/* SPDX-License-Identifier: MIT */
/*
 * What a reader has to say. A reader that waits for its own connection to take bytes reads nothing meanwhile,
 * and where both sides do so, neither goes on. So it posts: a thread of the post's, started with the first
 * message, sends them in their order.
 */
#ifndef RMT_POST_H
#define RMT_POST_H

#include <pthread.h>

#include "rmt_chan.h"

enum { RIG_RMT_POSTED = 4096 }; /* that wait at most: a peer that has more told reads nothing */

struct rig_rmt_letter;

struct rig_rmt_post {
	pthread_mutex_t lock;
	pthread_cond_t some;
	struct rig_rmt_letter *first, **last;
	struct rig_rmt_chan *chan;
	unsigned n;
	bool closed, running;
	pthread_t thread;
};

void rig_rmt_post_init(struct rig_rmt_post *post);
/* The channel is shut. Waits for the thread; what was not sent is dropped. */
void rig_rmt_post_fini(struct rig_rmt_post *post);

/* Has the message sent, always on the same channel; waits for nothing. Any thread. -ENOMEM; -ENOBUFS: too
   many wait; or the thread could not be started. A message that then cannot be sent shuts the channel. */
int rig_rmt_post_send(
        struct rig_rmt_post *post, struct rig_rmt_chan *chan, uint8_t kind, const void *bytes, size_t n);

#endif
