/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include <openssl/evp.h>
#include <sodium.h>

#include "le.h"
#include "sealed.h"

enum { NONCE = 12 };

static const char label[] = "rig-vfio sealed 1";

bool rig_sealed_has_aes(void)
{
	return sodium_init() >= 0 && crypto_aead_aes256gcm_is_available();
}

int rig_sealed_keys_make(struct rig_sealed_keys *keys)
{
	if (sodium_init() < 0)
		return rig_error_set(-ENOSYS, "libsodium does not start");
	(void)crypto_kx_keypair(keys->public_key, keys->secret_key);
	return 0;
}

/* libcrypto's: of AES-GCM it has the instructions of newer processors, and is twice as fast as libsodium. */
static const EVP_CIPHER *cipher_of(const struct rig_sealed_way *way)
{
	return way->aes ? EVP_aes_256_gcm() : EVP_chacha20_poly1305();
}

static int use_key(struct rig_sealed_way *way)
{
	if (!way->cipher)
		way->cipher = EVP_CIPHER_CTX_new();
	if (!way->cipher ||
	        EVP_CipherInit_ex(way->cipher, cipher_of(way), NULL, way->key, NULL, way->seals) != 1)
		return rig_error_set(-ENOMEM, "libcrypto makes no cipher for a data connection");
	return 0;
}

/* The key of one direction: what the exchange gave, for these two tokens and this cipher. */
static int derive(struct rig_sealed_way *way, const uint8_t *exchanged,
        const struct rig_conn_address *dialler, const struct rig_conn_address *listener, bool aes)
{
	const uint8_t cipher = aes;
	crypto_generichash_state hash;

	way->aes = aes;
	(void)crypto_generichash_init(&hash, exchanged, crypto_kx_SESSIONKEYBYTES, sizeof(way->key));
	(void)crypto_generichash_update(&hash, (const uint8_t *)label, sizeof(label));
	(void)crypto_generichash_update(&hash, dialler->token, sizeof(dialler->token));
	(void)crypto_generichash_update(&hash, listener->token, sizeof(listener->token));
	(void)crypto_generichash_update(&hash, &cipher, sizeof(cipher));
	(void)crypto_generichash_final(&hash, way->key, sizeof(way->key));
	return use_key(way);
}

int rig_sealed_ways(struct rig_sealed_keys *keys, bool dialler, const struct rig_conn_address *mine,
        const struct rig_conn_address *peer, struct rig_sealed_way *out, struct rig_sealed_way *in)
{
	const struct rig_conn_address *first = dialler ? mine : peer, *second = dialler ? peer : mine;
	uint8_t rx[crypto_kx_SESSIONKEYBYTES], tx[crypto_kx_SESSIONKEYBYTES];
	bool aes = mine->aes && peer->aes;
	int bad =
	        dialler ? crypto_kx_client_session_keys(rx, tx, keys->public_key, keys->secret_key, peer->key)
	                : crypto_kx_server_session_keys(
	                          rx, tx, keys->public_key, keys->secret_key, peer->key);

	int code = bad ? rig_error_set(-EPROTO, "the other side's key for the data connection is none") : 0;

	sodium_memzero(keys, sizeof(*keys));
	out->seals = true;
	if (!code)
		code = derive(out, tx, first, second, aes);
	if (!code)
		code = derive(in, rx, first, second, aes);
	sodium_memzero(rx, sizeof(rx));
	sodium_memzero(tx, sizeof(tx));
	return code;
}

void rig_sealed_wipe(struct rig_sealed_way *way)
{
	EVP_CIPHER_CTX_free(way->cipher);
	sodium_memzero(way, sizeof(*way));
}

static void write_head(const struct rig_sealed_head *head, uint8_t *to)
{
	rig_put_le32(to, head->bytes | (head->last ? RIG_SEALED_LAST : 0));
	rig_put_le32(to + 4, head->note);
	rig_put_le64(to + 8, head->key);
	rig_put_le64(to + 16, head->offset);
}

void rig_sealed_parse(const uint8_t *record, struct rig_sealed_head *head)
{
	uint32_t bytes = rig_get_le32(record);

	*head = (struct rig_sealed_head){.bytes = bytes & ~RIG_SEALED_LAST,
	        .last = bytes & RIG_SEALED_LAST,
	        .note = rig_get_le32(record + 4),
	        .key = rig_get_le64(record + 8),
	        .offset = rig_get_le64(record + 16)};
}

size_t rig_sealed_record_bytes(const uint8_t *record)
{
	struct rig_sealed_head head;

	rig_sealed_parse(record, &head);
	return head.bytes > RIG_SEALED_MOST ? 0 : (size_t)RIG_SEALED_HEAD + head.bytes + RIG_SEALED_TAG;
}

static void make_nonce(const struct rig_sealed_way *way, uint8_t nonce[NONCE])
{
	memset(nonce, 0, NONCE);
	rig_put_le64(nonce + NONCE - 8, way->number);
}

/* The record is over: the next has the next number, and now and then another key. */
static int move_on(struct rig_sealed_way *way)
{
	if (++way->number % RIG_SEALED_REKEY)
		return 0;
	(void)crypto_generichash(way->key, sizeof(way->key), (const uint8_t *)label, sizeof(label), way->key,
	        sizeof(way->key));
	return use_key(way);
}

/* The nonce, and the head as what is authenticated beside the payload. */
static bool start(struct rig_sealed_way *way, const uint8_t *head)
{
	uint8_t nonce[NONCE];
	int n;

	make_nonce(way, nonce);
	return EVP_CipherInit_ex(way->cipher, NULL, NULL, NULL, nonce, -1) == 1 &&
	       EVP_CipherUpdate(way->cipher, NULL, &n, head, RIG_SEALED_HEAD) == 1;
}

int rig_sealed_seal(
        struct rig_sealed_way *way, const struct rig_sealed_head *head, const void *payload, uint8_t *out)
{
	uint8_t *cipher = out + RIG_SEALED_HEAD, *tag = cipher + head->bytes;
	int n;

	write_head(head, out);
	if (!start(way, out) ||
	        (head->bytes && EVP_CipherUpdate(way->cipher, cipher, &n, payload, (int)head->bytes) != 1) ||
	        EVP_CipherFinal_ex(way->cipher, tag, &n) != 1 ||
	        EVP_CIPHER_CTX_ctrl(way->cipher, EVP_CTRL_AEAD_GET_TAG, RIG_SEALED_TAG, tag) != 1)
		return rig_error_set(-EIO, "libcrypto seals no record");
	return move_on(way);
}

int rig_sealed_open(struct rig_sealed_way *way, const uint8_t *record, uint8_t *to)
{
	const uint8_t *cipher = record + RIG_SEALED_HEAD;
	uint8_t tag[RIG_SEALED_TAG];
	struct rig_sealed_head head;
	bool good;
	int n;

	rig_sealed_parse(record, &head);
	memcpy(tag, cipher + head.bytes, sizeof(tag));
	good = start(way, record) &&
	       (!head.bytes || EVP_CipherUpdate(way->cipher, to, &n, cipher, (int)head.bytes) == 1) &&
	       EVP_CIPHER_CTX_ctrl(way->cipher, EVP_CTRL_AEAD_SET_TAG, RIG_SEALED_TAG, tag) == 1 &&
	       EVP_CipherFinal_ex(way->cipher, tag, &n) == 1;
	if (!good) {
		memset(to, 0, head.bytes);
		return -EBADMSG;
	}
	return move_on(way);
}
