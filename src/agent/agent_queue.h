/* SPDX-License-Identifier: MIT */
/* Messages on their way from a session's reader to the thread that takes them. Any thread. */
#ifndef AGENT_QUEUE_H
#define AGENT_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct item {
	struct item *next;
	uint8_t kind;
	size_t bytes;
	size_t cost; /* of the queue's bound */
	uint8_t payload[];
};

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t some;
	struct item *head, **tail;
	size_t most, held; /* bytes, items' own among them */
	bool closed;
};

enum {
	QUEUE_OF_DEVICE =
	        768 << 20, /* more than a controller that keeps to its own bound has under way for one */
	QUEUE_OF_CONTROL = 128 << 20,
};

/* Holds at most so many bytes, what an item takes beside its payload among them: who sends nothing, often, is
   bounded too. */
void queue_init(struct queue *q, size_t most);
void queue_fini(struct queue *q);
/* False: no memory, closed, or more than a controller may have under way. */
bool queue_push(struct queue *q, uint8_t kind, const void *payload, size_t bytes);
/* For what must not fail: an item is made before it is needed (NULL: no memory), and is the queue's then. */
struct item *queue_item(uint8_t kind);
void queue_put(struct queue *q, struct item *item);
/* The next item, the caller's to free; waits at most `ms`. NULL: closed, or nothing came. */
struct item *queue_pop(struct queue *q, unsigned ms);
/* The same of the next item whose kind does not stay: those that do keep their order. */
struct item *queue_pop_past(struct queue *q, bool (*stays)(uint8_t kind), unsigned ms);
/* No item comes out any more. */
void queue_close(struct queue *q);
bool queue_is_closed(struct queue *q);

#endif
