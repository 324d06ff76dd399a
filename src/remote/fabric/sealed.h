/* SPDX-License-Identifier: MIT */
/*
 * Data connections of our own: TCP, on which every write is records of authenticated encryption. fabric.h's
 * provider "sealed". Private to src/remote/fabric; calls and their answers are those of fabric.h.
 *
 * Keys: each side draws a key pair for the connection, and the two addresses, which go over the
 * authenticated control connection, carry the public halves and a token each. crypto_kx makes a key a
 * direction of them, bound by BLAKE2b to both tokens; every RIG_SEALED_REKEY records BLAKE2b makes the next.
 * The cipher is AES-256-GCM where both processors have it, else ChaCha20-Poly1305 (RFC 8439).
 *
 * A record on the wire: 24 bytes in the clear, little-endian, which are authenticated with the rest
 *   0   4  bytes of the payload; bit 31: the last of its write, so that its note is told
 *   4   4  note
 *   8   8  key of the memory that it is for
 *   16  8  where in that
 * then the payload's ciphertext and a tag of 16 bytes. The nonce is the record's number in its direction, so
 * one that was changed, dropped, repeated or moved does not authenticate: "authentication failed" ends the
 * connection. The first record of each direction has no payload and is the greeting: who cannot make it does
 * not have the keys.
 *
 * The receiver reads ciphertext into memory of its own and opens it into the memory that it registered,
 * under a lock that unregistering takes: nobody else writes here, and nothing lands once the memory is taken
 * back. A record that fails its check leaves zeros there, and nobody was told of what it carried.
 */
#ifndef RIG_SEALED_H
#define RIG_SEALED_H

#include <pthread.h>

#include "fabric.h"

enum {
	RIG_SEALED_HEAD = 24,
	RIG_SEALED_TAG = 16,
	RIG_SEALED_MOST = 128 << 10, /* bytes of a payload: two of them fit a core's cache */
	RIG_SEALED_BUCKETS = 256,
};
#define RIG_SEALED_LAST  (UINT32_C(1) << 31)
#define RIG_SEALED_REKEY (UINT64_C(1) << 20) /* records */

/* ---- Memory that peers may write (sealed_targets.c) ---- */

struct rig_sealed_target {
	struct rig_sealed_target *next;
	uint64_t key;
	unsigned char *at;
	size_t bytes;
};

struct rig_sealed_targets {
	pthread_rwlock_t lock; /* readers write to the memory */
	struct rig_sealed_target *bucket[RIG_SEALED_BUCKETS];
};

void rig_sealed_targets_init(struct rig_sealed_targets *targets);
void rig_sealed_targets_fini(struct rig_sealed_targets *targets);
/* A random key for it. -ENOMEM, -EIO. */
int rig_sealed_target_add(struct rig_sealed_targets *targets, void *at, size_t bytes, uint64_t *key);
/* When it returns nothing writes there any more. */
void rig_sealed_target_remove(struct rig_sealed_targets *targets, uint64_t key);
/* With the lock: [offset, offset + bytes) of the target, or NULL. */
unsigned char *rig_sealed_target_find(
        const struct rig_sealed_targets *targets, uint64_t key, uint64_t offset, size_t bytes);

/* ---- Records (sealed_record.c); no I/O ---- */

/* One direction. */
struct rig_sealed_way {
	uint64_t number; /* of the next record */
	uint8_t key[32];
	bool aes, seals;
	struct evp_cipher_ctx_st *cipher; /* libcrypto's, with the key */
};

struct rig_sealed_keys {
	uint8_t public_key[32], secret_key[32];
};

/* What a record is besides its payload. */
struct rig_sealed_head {
	uint32_t bytes;
	bool last;
	uint32_t note;
	uint64_t key, offset;
};

bool rig_sealed_has_aes(void);
/* A new pair. -ENOSYS: libsodium does not start. */
int rig_sealed_keys_make(struct rig_sealed_keys *keys);
/* Both directions; `peer` is the other side's address and `mine` this one's. -EPROTO: a public key that is
 * none. The keys are wiped. */
int rig_sealed_ways(struct rig_sealed_keys *keys, bool dialler, const struct rig_conn_address *mine,
        const struct rig_conn_address *peer, struct rig_sealed_way *out, struct rig_sealed_way *in);
void rig_sealed_wipe(struct rig_sealed_way *way);

/* Writes the record's bytes, HEAD + head.bytes + TAG. -EIO, -ENOMEM: libcrypto's. */
int rig_sealed_seal(
        struct rig_sealed_way *way, const struct rig_sealed_head *head, const void *payload, uint8_t *out);
/* Bytes of the whole record whose first HEAD bytes are these; 0: none is so long. */
size_t rig_sealed_record_bytes(const uint8_t *record);
void rig_sealed_parse(const uint8_t *record, struct rig_sealed_head *head);
/* Checks a whole record and writes its payload, in one pass: `to` is not to be looked at before the answer
 * is 0. -EBADMSG, with zeros there: not authentic; it stays the next one. */
int rig_sealed_open(struct rig_sealed_way *way, const uint8_t *record, uint8_t *to);

/* ---- Connections (sealed.c), behind those of fabric.h ---- */

struct rig_sealed;

int rig_sealed_listen(struct rig_fabric *fabric, struct rig_conn_address *mine, struct rig_sealed **made);
int rig_sealed_dial(struct rig_fabric *fabric, const struct rig_conn_address *peer,
        struct rig_conn_address *mine, struct rig_sealed **made);
int rig_sealed_finish(struct rig_sealed *s, const struct rig_conn_address *peer,
        const struct rig_deadline *deadline, uint64_t *refused);
void rig_sealed_cut(struct rig_sealed *s);
void rig_sealed_close(struct rig_sealed *s);
int rig_sealed_write(struct rig_sealed *s, const void *from, size_t bytes, const struct rig_fabric_target *to,
        uint64_t offset, uint32_t note);
int rig_sealed_read(struct rig_sealed *s, struct rig_conn_event *events, size_t room);
bool rig_sealed_gone(struct rig_sealed *s);
bool rig_sealed_unsent(const struct rig_sealed *s);
void rig_sealed_sleep(struct rig_sealed *s, uint64_t ns);
void rig_sealed_wake(struct rig_sealed *s);

#endif
