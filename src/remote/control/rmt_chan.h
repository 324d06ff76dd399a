/* SPDX-License-Identifier: MIT */
/*
 * A connection: TCP, the proof of the key both ways, then messages, encrypted and authenticated.
 *
 * A record on the wire is the length of its ciphertext, four bytes, and the ciphertext (crypto_secretstream,
 * XChaCha20-Poly1305) of one message: a kind, one byte, and its payload. The length is authenticated with the
 * ciphertext, the order by the stream; each direction has a key of its own, which moves on every
 * RIG_RMT_REKEY bytes. What was not proven, or does not authenticate, ends the connection.
 *
 * One thread receives. Any thread sends; messages of different threads do not mix. Nobody holds a lock of the
 * sender while receiving, so two ends that both send do not wait for each other as long as both receive.
 */
#ifndef RMT_CHAN_H
#define RMT_CHAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rmt_key.h"

enum {
	RIG_RMT_PAYLOAD = 256 << 10, /* bytes of a payload at most */
	RIG_RMT_DIAL_MS = 10000,     /* for connection and proof */
	RIG_RMT_HOST = 256,
	RIG_RMT_PORT = 32,
	RIG_RMT_SILENCE_MS = 10000, /* without a byte received, or sent while some wait */
};
#define RIG_RMT_REKEY (UINT64_C(1) << 30)

struct rig_rmt_chan;

/* "HOST:PORT", "[V6]:PORT". Parts that do not fit or are empty: -EINVAL with rig_error(). */
int rig_rmt_split_name(const char *name, char *host, size_t host_bytes, char *port, size_t port_bytes);

/* Within `ms`; `silence_ms` is the connection's bound from then on. -ETIMEDOUT, -ECONNREFUSED and other
   errnos of the network, -EACCES: another key; -EPROTO, -EPROTONOSUPPORT; texts in rig_error(). */
int rig_rmt_chan_dial(const char *name, const struct rig_rmt_key *key, unsigned ms, unsigned silence_ms,
        struct rig_rmt_chan **chan);
/* The other end, on an accepted socket, which becomes the channel's, or is closed. */
int rig_rmt_chan_accept(
        int fd, const struct rig_rmt_key *key, unsigned ms, unsigned silence_ms, struct rig_rmt_chan **chan);
/* From the next call on. */
void rig_rmt_chan_set_silence(struct rig_rmt_chan *chan, unsigned silence_ms);
/* Nobody may use it any more. NULL is allowed. */
void rig_rmt_chan_free(struct rig_rmt_chan *chan);

/* One message, head and body its payload. Blocks while the network takes no bytes, at most the bound: then
   -ETIME. Once it failed, it fails always, and so does rig_rmt_chan_recv, with the same, after what had come
   until then. */
int rig_rmt_chan_send(struct rig_rmt_chan *chan, uint8_t kind, const void *head, size_t head_bytes,
        const void *body, size_t body_bytes);
/* The same of a short message, without waiting: nothing, if some thread is sending or the network takes no
   bytes now. Whether it was sent. */
bool rig_rmt_chan_try_send(struct rig_rmt_chan *chan, uint8_t kind, const void *head, size_t head_bytes);
/* The next message; *payload lives until the next call. Blocks at most the bound. -ECONNRESET: the peer
   ended or broke the connection; -ETIMEDOUT; -EBADMSG: not authentic; what a send failed with. */
int rig_rmt_chan_recv(struct rig_rmt_chan *chan, uint8_t *kind, const uint8_t **payload, size_t *bytes);
/* What a send or recv that answered `err` says of the peer, after its name and a colon. Pure. */
void rig_rmt_chan_end_text(int err, unsigned silence_ms, char *text, size_t bytes);
/* Ends it for both threads and the peer: calls under way and later ones fail soon. Any thread. */
void rig_rmt_chan_shut(struct rig_rmt_chan *chan);

/* In a forked child: closes its copy of the descriptor, so that the connection ends with the parent; every
   call fails from then on. Takes no lock. */
void rig_rmt_chan_disown(struct rig_rmt_chan *chan);

/* The peer's address, as numbers. */
const char *rig_rmt_chan_peer(const struct rig_rmt_chan *chan);
/* This end's address, as numbers, without the port. */
void rig_rmt_chan_local(const struct rig_rmt_chan *chan, char *host, size_t bytes);
/* Bytes sent and received since the proof. */
void rig_rmt_chan_counts(struct rig_rmt_chan *chan, uint64_t *sent, uint64_t *received);

/* The plain-text length of a record whose length field is `length`; -EPROTO if no record has it. Pure. */
int rig_rmt_record_bytes(uint32_t length);

#endif
