/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include <sodium.h>

#include "le.h"
#include "rmt_key.h"

static const uint8_t magic[4] = {'R', 'I', 'G', 'R'};
static const char generator_label[] = "rig remote 1, CPace generator";
static const char session_label[] = "rig remote 1, CPace session";
static const char dialer_label[] = "rig remote 1, the dialer's proof";
static const char acceptor_label[] = "rig remote 1, the acceptor's proof";
static const char from_dialer_label[] = "rig remote 1, bytes of the dialer";
static const char from_acceptor_label[] = "rig remote 1, bytes of the acceptor";

enum { DIALER, ACCEPTOR };

int rig_rmt_pake_init(struct rig_rmt_pake *p, bool dialer, const struct rig_rmt_key *key)
{
	memset(p, 0, sizeof(*p));
	if (sodium_init() < 0)
		return -ENOSYS;
	p->dialer = dialer;
	p->key = *key;
	randombytes_buf(p->nonce[dialer ? DIALER : ACCEPTOR], RIG_RMT_NONCE);
	crypto_core_ristretto255_scalar_random(p->scalar);
	return 0;
}

void rig_rmt_pake_fini(struct rig_rmt_pake *p)
{
	sodium_memzero(p, sizeof(*p));
}

static void put_hello(uint8_t *out, const uint8_t nonce[RIG_RMT_NONCE])
{
	memcpy(out, magic, sizeof(magic));
	rig_put_le32(out + sizeof(magic), RIG_RMT_VERSION);
	memcpy(out + 8, nonce, RIG_RMT_NONCE);
}

static int get_hello(const uint8_t *in, uint8_t nonce[RIG_RMT_NONCE])
{
	if (memcmp(in, magic, sizeof(magic)) != 0)
		return -EPROTO;
	if (rig_get_le32(in + sizeof(magic)) != RIG_RMT_VERSION)
		return -EPROTONOSUPPORT;
	memcpy(nonce, in + 8, RIG_RMT_NONCE);
	return 0;
}

/* The sender's own multiple of the generator that key and nonces make. */
static int make_point(struct rig_rmt_pake *p)
{
	crypto_hash_sha512_state h;
	uint8_t hash[64], generator[32];
	int bad;

	crypto_hash_sha512_init(&h);
	crypto_hash_sha512_update(&h, (const uint8_t *)generator_label, sizeof(generator_label));
	crypto_hash_sha512_update(&h, p->key.bytes, sizeof(p->key.bytes));
	crypto_hash_sha512_update(&h, p->nonce[0], sizeof(p->nonce));
	crypto_hash_sha512_final(&h, hash);
	crypto_core_ristretto255_from_hash(generator, hash);
	bad = crypto_scalarmult_ristretto255(p->points[p->dialer ? DIALER : ACCEPTOR], p->scalar, generator);
	sodium_memzero(hash, sizeof(hash));
	sodium_memzero(generator, sizeof(generator));
	return bad ? -EACCES : 0;
}

/* Refuses the points that make the secret one that everybody knows. */
static int make_session(struct rig_rmt_pake *p)
{
	const uint8_t *other = p->points[p->dialer ? ACCEPTOR : DIALER];
	crypto_hash_sha512_state h;
	uint8_t secret[32];

	if (!crypto_core_ristretto255_is_valid_point(other) ||
	        crypto_scalarmult_ristretto255(secret, p->scalar, other))
		return -EACCES;
	crypto_hash_sha512_init(&h);
	crypto_hash_sha512_update(&h, (const uint8_t *)session_label, sizeof(session_label));
	crypto_hash_sha512_update(&h, p->nonce[0], sizeof(p->nonce));
	crypto_hash_sha512_update(&h, secret, sizeof(secret));
	crypto_hash_sha512_update(&h, p->points[0], sizeof(p->points));
	crypto_hash_sha512_final(&h, p->session);
	sodium_memzero(secret, sizeof(secret));
	return 0;
}

static void derive(const struct rig_rmt_pake *p, const char *label, size_t n, uint8_t out[32])
{
	(void)crypto_generichash(out, 32, (const uint8_t *)label, n, p->session, sizeof(p->session));
}

void rig_rmt_pake_hello(struct rig_rmt_pake *p, uint8_t out[RIG_RMT_HELLO])
{
	put_hello(out, p->nonce[DIALER]);
}

int rig_rmt_pake_reply(struct rig_rmt_pake *p, const uint8_t hello[RIG_RMT_HELLO], uint8_t out[RIG_RMT_REPLY])
{
	int err = get_hello(hello, p->nonce[DIALER]);

	if (!err)
		err = make_point(p);
	if (err)
		return err;
	put_hello(out, p->nonce[ACCEPTOR]);
	memcpy(out + RIG_RMT_HELLO, p->points[ACCEPTOR], RIG_RMT_POINT);
	return 0;
}

int rig_rmt_pake_prove(struct rig_rmt_pake *p, const uint8_t reply[RIG_RMT_REPLY], uint8_t out[RIG_RMT_PROOF])
{
	int err = get_hello(reply, p->nonce[ACCEPTOR]);

	if (!err)
		err = make_point(p);
	if (err)
		return err;
	memcpy(p->points[ACCEPTOR], reply + RIG_RMT_HELLO, RIG_RMT_POINT);
	err = make_session(p);
	if (err)
		return err;
	memcpy(out, p->points[DIALER], RIG_RMT_POINT);
	derive(p, dialer_label, sizeof(dialer_label), out + RIG_RMT_POINT);
	return 0;
}

int rig_rmt_pake_check(struct rig_rmt_pake *p, const uint8_t proof[RIG_RMT_PROOF], uint8_t out[RIG_RMT_TAG])
{
	uint8_t expected[RIG_RMT_TAG];
	int err;

	memcpy(p->points[DIALER], proof, RIG_RMT_POINT);
	err = make_session(p);
	if (err)
		return err;
	derive(p, dialer_label, sizeof(dialer_label), expected);
	if (sodium_memcmp(expected, proof + RIG_RMT_POINT, sizeof(expected)))
		return -EACCES;
	derive(p, acceptor_label, sizeof(acceptor_label), out);
	return 0;
}

int rig_rmt_pake_end(const struct rig_rmt_pake *p, const uint8_t tag[RIG_RMT_TAG])
{
	uint8_t expected[RIG_RMT_TAG];

	derive(p, acceptor_label, sizeof(acceptor_label), expected);
	return sodium_memcmp(expected, tag, sizeof(expected)) ? -EACCES : 0;
}

void rig_rmt_pake_stream_key(const struct rig_rmt_pake *p, bool from_dialer, uint8_t key[32])
{
	if (from_dialer)
		derive(p, from_dialer_label, sizeof(from_dialer_label), key);
	else
		derive(p, from_acceptor_label, sizeof(from_acceptor_label), key);
}
