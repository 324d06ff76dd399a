/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent_queue.h"
#include "cond.h"

void queue_init(struct queue *q, size_t most)
{
	memset(q, 0, sizeof(*q));
	q->most = most;
	q->tail = &q->head;
	(void)pthread_mutex_init(&q->lock, NULL);
	rig_cond_init(&q->some);
}

void queue_fini(struct queue *q)
{
	while (q->head) {
		struct item *item = q->head;

		q->head = item->next;
		free(item);
	}
	(void)pthread_cond_destroy(&q->some);
	(void)pthread_mutex_destroy(&q->lock);
}

bool queue_push(struct queue *q, uint8_t kind, const void *payload, size_t bytes)
{
	struct item *item = malloc(sizeof(*item) + bytes);
	bool pushed;

	if (!item)
		return false;
	item->next = NULL;
	item->kind = kind;
	item->bytes = bytes;
	item->cost = sizeof(*item) + bytes;
	if (bytes)
		memcpy(item->payload, payload, bytes);
	(void)pthread_mutex_lock(&q->lock);
	pushed = !q->closed && item->cost <= q->most - q->held;
	if (pushed) {
		*q->tail = item;
		q->tail = &item->next;
		q->held += item->cost;
		(void)pthread_cond_signal(&q->some);
	}
	(void)pthread_mutex_unlock(&q->lock);
	if (!pushed)
		free(item);
	return pushed;
}

struct item *queue_item(uint8_t kind)
{
	struct item *item = calloc(1, sizeof(*item));

	if (item)
		item->kind = kind;
	return item;
}

void queue_put(struct queue *q, struct item *item)
{
	(void)pthread_mutex_lock(&q->lock);
	*q->tail = item;
	q->tail = &item->next;
	(void)pthread_cond_signal(&q->some);
	(void)pthread_mutex_unlock(&q->lock);
}

/* With the lock: where the first item is that does not stay. */
static struct item **first_past(struct queue *q, bool (*stays)(uint8_t kind))
{
	struct item **at;

	for (at = &q->head; *at && stays && stays((*at)->kind); at = &(*at)->next)
		;
	return at;
}

struct item *queue_pop_past(struct queue *q, bool (*stays)(uint8_t kind), unsigned ms)
{
	struct item **at, *item = NULL;
	struct timespec end = rig_cond_end_ms(ms);

	(void)pthread_mutex_lock(&q->lock);
	while (!*(at = first_past(q, stays)) && !q->closed)
		if (pthread_cond_timedwait(&q->some, &q->lock, &end) == ETIMEDOUT)
			break;
	at = first_past(q, stays);
	if (*at && !q->closed) {
		item = *at;
		*at = item->next;
		if (!item->next)
			q->tail = at;
		q->held -= item->cost;
	}
	(void)pthread_mutex_unlock(&q->lock);
	return item;
}

struct item *queue_pop(struct queue *q, unsigned ms)
{
	return queue_pop_past(q, NULL, ms);
}

void queue_close(struct queue *q)
{
	(void)pthread_mutex_lock(&q->lock);
	q->closed = true;
	(void)pthread_cond_broadcast(&q->some);
	(void)pthread_mutex_unlock(&q->lock);
}

bool queue_is_closed(struct queue *q)
{
	bool closed;

	(void)pthread_mutex_lock(&q->lock);
	closed = q->closed;
	(void)pthread_mutex_unlock(&q->lock);
	return closed;
}
