/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rmt_post.h"
#include "thread.h"

struct rig_rmt_letter {
	struct rig_rmt_letter *next;
	uint8_t kind;
	size_t n;
	uint8_t bytes[];
};

void rig_rmt_post_init(struct rig_rmt_post *post)
{
	memset(post, 0, sizeof(*post));
	post->last = &post->first;
	(void)pthread_mutex_init(&post->lock, NULL);
	(void)pthread_cond_init(&post->some, NULL);
}

/* Waits for one. NULL: it is closed. */
static struct rig_rmt_letter *take(struct rig_rmt_post *post)
{
	struct rig_rmt_letter *letter = NULL;

	(void)pthread_mutex_lock(&post->lock);
	while (!post->first && !post->closed)
		(void)pthread_cond_wait(&post->some, &post->lock);
	if (!post->closed) {
		letter = post->first;
		post->first = letter->next;
		if (!post->first)
			post->last = &post->first;
		post->n--;
	}
	(void)pthread_mutex_unlock(&post->lock);
	return letter;
}

static void *post_run(void *arg)
{
	struct rig_rmt_post *post = arg;
	struct rig_rmt_letter *letter;

	while ((letter = take(post))) {
		(void)rig_rmt_chan_send(post->chan, letter->kind, letter->bytes, letter->n, NULL, 0);
		free(letter);
	}
	return NULL;
}

/* With the lock. */
static int put(struct rig_rmt_post *post, struct rig_rmt_chan *chan, struct rig_rmt_letter *letter)
{
	int err = 0;

	if (post->n == RIG_RMT_POSTED)
		return -ENOBUFS;
	if (!post->running) {
		post->chan = chan;
		err = rig_thread_start(&post->thread, RIG_THREAD_ANY, post_run, post);
		post->running = !err;
	}
	if (err)
		return err;
	*post->last = letter;
	post->last = &letter->next;
	post->n++;
	(void)pthread_cond_signal(&post->some);
	return 0;
}

int rig_rmt_post_send(
        struct rig_rmt_post *post, struct rig_rmt_chan *chan, uint8_t kind, const void *bytes, size_t n)
{
	struct rig_rmt_letter *letter = malloc(sizeof(*letter) + n);
	int err;

	if (!letter)
		return -ENOMEM;
	letter->next = NULL;
	letter->kind = kind;
	letter->n = n;
	if (n)
		memcpy(letter->bytes, bytes, n);
	(void)pthread_mutex_lock(&post->lock);
	err = put(post, chan, letter);
	(void)pthread_mutex_unlock(&post->lock);
	if (err)
		free(letter);
	return err;
}

void rig_rmt_post_fini(struct rig_rmt_post *post)
{
	(void)pthread_mutex_lock(&post->lock);
	post->closed = true;
	(void)pthread_cond_signal(&post->some);
	(void)pthread_mutex_unlock(&post->lock);
	if (post->running)
		(void)pthread_join(post->thread, NULL);
	while (post->first) {
		struct rig_rmt_letter *letter = post->first;

		post->first = letter->next;
		free(letter);
	}
	(void)pthread_cond_destroy(&post->some);
	(void)pthread_mutex_destroy(&post->lock);
}
