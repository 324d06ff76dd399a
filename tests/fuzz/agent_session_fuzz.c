/* SPDX-License-Identifier: MIT */
/* Any bytes as what a controller that has the key sends an agent that serves its memory: the session comes to
   its end, and the device is free again. An input is messages: kind, two bytes of length, payload. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent.h"
#include "agent_device.h"
#include "agent_parcel.h"
#include "agent_peer.h"
#include "agent_queue.h"
#include "agent_session.h"
#include "rig.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

enum {
	ALLOC_BYTES_AT = 12, /* request, device, kind */
	PEER = 5,            /* the other agent's machine */
	SILENCE_MS = 1000,
	LOOKS = 40, /* for threads to take what came before the end */
	LOOK_US = 250,
};

static struct agent agent;
static uint8_t chan; /* whose address is the connection */
static atomic_bool shut;
static bool joined;
static const uint8_t *left;
static size_t nleft;
static uint8_t *message; /* exactly as long as it is, so that a sanitizer sees a read past its end */

/* ---- The connection ---- */

int __wrap_rig_rmt_chan_accept(
        int fd, const struct rig_rmt_key *key, unsigned ms, unsigned silence_ms, struct rig_rmt_chan **made)
{
	(void)fd;
	(void)key;
	(void)ms;
	(void)silence_ms;
	*made = (void *)&chan;
	return 0;
}

int __wrap_rig_rmt_chan_dial(const char *name, const struct rig_rmt_key *key, unsigned ms,
        unsigned silence_ms, struct rig_rmt_chan **made)
{
	(void)name;
	(void)key;
	(void)ms;
	(void)silence_ms;
	(void)made;
	return rig_error_set(-ECONNREFUSED, "nobody is there");
}

int __wrap_rig_rmt_chan_send(struct rig_rmt_chan *to, uint8_t kind, const void *head, size_t head_bytes,
        const void *body, size_t body_bytes)
{
	(void)to;
	(void)kind;
	(void)head;
	(void)body;
	if (head_bytes + body_bytes > RIG_RMT_PAYLOAD)
		return -EMSGSIZE;
	return atomic_load(&shut) ? -ECONNRESET : 0;
}

void __wrap_rig_rmt_chan_try_send(struct rig_rmt_chan *to, uint8_t kind, const void *head, size_t head_bytes)
{
	(void)to;
	(void)kind;
	(void)head;
	(void)head_bytes;
}

void __wrap_rig_rmt_chan_shut(struct rig_rmt_chan *to)
{
	(void)to;
	atomic_store(&shut, true);
}

void __wrap_rig_rmt_chan_free(struct rig_rmt_chan *to)
{
	(void)to;
}

void __wrap_rig_rmt_chan_set_silence(struct rig_rmt_chan *to, unsigned silence_ms)
{
	(void)to;
	(void)silence_ms;
}

const char *__wrap_rig_rmt_chan_peer(const struct rig_rmt_chan *to)
{
	(void)to;
	return "the fuzzer";
}

static int hand_out(const void *bytes, size_t n, const uint8_t **payload, size_t *count)
{
	free(message);
	message = malloc(n ? n : 1);
	if (!message)
		return -ENOMEM;
	if (n)
		memcpy(message, bytes, n);
	*payload = message;
	*count = n;
	return 0;
}

static int hand_out_join(const uint8_t **payload, size_t *count)
{
	const struct rig_rmt_join join = {
	        .role = RIG_RMT_CONTROLLER, .silence_ms = SILENCE_MS, .machine = "0"};
	struct rig_rmt_out out = {0};
	int err;

	rig_rmt_join_put(&out, &join);
	err = hand_out(out.at, out.used, payload, count);
	rig_rmt_out_free(&out);
	return err;
}

static bool some_wait(void)
{
	struct session *s = agent.sessions;
	bool some = false;

	for (uint32_t i = 0; s && i < s->ndevices && !some; i++) {
		struct queue *const queues[] = {&s->devices[i]->hot_queue, &s->devices[i]->cold_queue};

		for (int k = 0; k < 2; k++) {
			(void)pthread_mutex_lock(&queues[k]->lock);
			some |= queues[k]->head != NULL;
			(void)pthread_mutex_unlock(&queues[k]->lock);
		}
	}
	return some;
}

/* What another agent of the job sends comes by the same input. */
static bool take_peers(uint8_t kind, const uint8_t *bytes, size_t n)
{
	struct session *s = agent.sessions;
	int err;

	if (kind < RIG_RMT_FETCHED || kind > RIG_RMT_UNCLAIM || !s)
		return false;
	if (kind == RIG_RMT_FETCHED)
		err = fetch_put(s, bytes, n);
	else
		err = (kind == RIG_RMT_CLAIM ? parcel_claim : parcel_unclaim)(s, PEER, bytes, n);
	if (err)
		session_fail_for(s, PEER, "what another agent sent: %s", strerror(-err));
	return true;
}

static int next_message(uint8_t *kind, const uint8_t **payload, size_t *count)
{
	size_t n = (size_t)left[1] | (size_t)left[2] << 8;
	int err;

	*kind = left[0];
	n = n < nleft - 3 ? n : nleft - 3;
	err = hand_out(left + 3, n, payload, count);
	/* At most 64 KiB: the machine's memory is others' too. */
	if (!err && *kind == RIG_RMT_ALLOC && n >= ALLOC_BYTES_AT + 8)
		memset(message + ALLOC_BYTES_AT + 2, 0, 6);
	left += 3 + n;
	nleft -= 3 + n;
	return err;
}

int __wrap_rig_rmt_chan_recv(struct rig_rmt_chan *from, uint8_t *kind, const uint8_t **payload, size_t *count)
{
	(void)from;
	if (!joined) {
		joined = true;
		*kind = RIG_RMT_JOIN;
		return hand_out_join(payload, count);
	}
	while (nleft >= 3 && !atomic_load(&shut)) {
		int err = next_message(kind, payload, count);

		if (err || !take_peers(*kind, *payload, *count))
			return err;
	}
	for (int i = 0; i < LOOKS && some_wait(); i++)
		(void)usleep(LOOK_US);
	return -ECONNRESET;
}

/* No engine: its own parsers have targets of their own. */
int __wrap_rails_request(struct session *s, struct rig_rmt_in *in, struct rig_rmt_out *out)
{
	static struct rig_rmt_rail r;
	int err = rig_rmt_rail_parse(in, &r);

	(void)s;
	(void)out;
	if (err)
		return err;
	free(r.transfers);
	return rig_error_set(-ENODEV, "no rails here");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct served_socket *served = malloc(sizeof(*served));

	if (!agent.nserved) {
		static struct rig_opener host;

		agent_init(&agent);
		rig_host_opener("CPU", &host);
		if (!rig_words() || agent_serve(&agent, &host, true))
			abort();
	}
	if (!served)
		return 0;
	*served = (struct served_socket){&agent, -1, 0};
	agent.nthreads++;
	atomic_store(&shut, false);
	joined = false;
	left = bytes;
	nleft = length;
	(void)session_run(served);
	free(message);
	message = NULL;
	if (agent.nsessions || agent.served[0].holder)
		abort();
	return 0;
}
