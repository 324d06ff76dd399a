/* SPDX-License-Identifier: MIT */
/*
 * The key of a job, and the proof that both ends of a connection have it.
 *
 * A key is 32 random bytes, in a file of one line, "rig-key-1 " and 64 hexadecimal digits, that only its
 * owner may read.
 *
 * The proof is CPace, a balanced password-authenticated key exchange, over ristretto255: each side's point is
 * a random multiple of a generator that is made from the key and both nonces. Who listens, or answers in the
 * place of either side, learns nothing that a guess of the key could be tested against later: a connection
 * tests one guess, and says so by failing. The 256-bit key alone would do against guessing; the exchange
 * makes that not depend on how the key came about, and gives keys that a later loss of the file does not open
 * (forward secrecy). Steps, D the dialer, A the acceptor:
 *   D  magic, version, nonce                     RIG_RMT_HELLO bytes
 *   A  magic, version, nonce, point              RIG_RMT_REPLY
 *   D  point, proof                              RIG_RMT_PROOF
 *   A  proof                                     RIG_RMT_TAG
 * Pure functions of bytes; no I/O. Secrets are wiped by rig_rmt_pake_fini.
 */
#ifndef RMT_KEY_H
#define RMT_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RIG_RMT_VERSION 2u

enum {
	RIG_RMT_KEY = 32,
	RIG_RMT_NONCE = 32,
	RIG_RMT_POINT = 32,
	RIG_RMT_TAG = 32,
	RIG_RMT_HELLO = 8 + RIG_RMT_NONCE,
	RIG_RMT_REPLY = RIG_RMT_HELLO + RIG_RMT_POINT,
	RIG_RMT_PROOF = RIG_RMT_POINT + RIG_RMT_TAG,
};

struct rig_rmt_key {
	uint8_t bytes[RIG_RMT_KEY];
};

/* Makes the file with a new key, mode 0600. -EEXIST: there is one; else the file's errno, text in
   rig_error(). */
int rig_rmt_key_make(const char *path);
/* Reads it. -EPERM: others than its owner, this process's user or root, may read or write it; -EINVAL: no
   key; else the file's errno. */
int rig_rmt_key_read(const char *path, struct rig_rmt_key *key);
/* Room for a key in pages of its own, which are never swapped out (where RLIMIT_MEMLOCK allows) and are
 * not in a core file. NULL: no memory. Wiped by the free; NULL is allowed. */
struct rig_rmt_key *rig_rmt_key_alloc(void);
void rig_rmt_key_free(struct rig_rmt_key *key);
/* The line of a key file. -EINVAL. */
int rig_rmt_key_parse(const char *text, size_t n, struct rig_rmt_key *key);

struct rig_rmt_pake {
	bool dialer;
	struct rig_rmt_key key;
	uint8_t nonce[2][RIG_RMT_NONCE];  /* the dialer's, the acceptor's */
	uint8_t points[2][RIG_RMT_POINT]; /* likewise */
	uint8_t scalar[32];
	uint8_t session[64]; /* once both points are known */
};

/* 0 or -ENOSYS: no random numbers. */
int rig_rmt_pake_init(struct rig_rmt_pake *p, bool dialer, const struct rig_rmt_key *key);
void rig_rmt_pake_fini(struct rig_rmt_pake *p);

void rig_rmt_pake_hello(struct rig_rmt_pake *p, uint8_t out[RIG_RMT_HELLO]);
/* What a peer's bytes may answer: -EPROTO, not this protocol; -EPROTONOSUPPORT, another version of it;
   -EACCES, another key. */
int rig_rmt_pake_reply(
        struct rig_rmt_pake *p, const uint8_t hello[RIG_RMT_HELLO], uint8_t out[RIG_RMT_REPLY]);
int rig_rmt_pake_prove(
        struct rig_rmt_pake *p, const uint8_t reply[RIG_RMT_REPLY], uint8_t out[RIG_RMT_PROOF]);
int rig_rmt_pake_check(struct rig_rmt_pake *p, const uint8_t proof[RIG_RMT_PROOF], uint8_t out[RIG_RMT_TAG]);
int rig_rmt_pake_end(const struct rig_rmt_pake *p, const uint8_t tag[RIG_RMT_TAG]);

/* The key of one direction, after the proof. */
void rig_rmt_pake_stream_key(const struct rig_rmt_pake *p, bool from_dialer, uint8_t key[32]);

#endif
