/* SPDX-License-Identifier: MIT */
/* Records of sealed data connections: what is sealed opens as it was, and nothing else does. */
#include "test.h"
#include <errno.h>
#include <string.h>

#include "sealed.h"

enum { PAYLOAD = 1000, RECORD = RIG_SEALED_HEAD + PAYLOAD + RIG_SEALED_TAG };

static const struct rig_sealed_head head = {
        .bytes = PAYLOAD, .last = true, .note = 7, .key = UINT64_C(0x1122334455667788), .offset = 4096};

struct sides {
	struct rig_conn_address address[2]; /* the listener's, the dialler's */
	struct rig_sealed_keys keys[2];
	struct rig_sealed_way out[2], in[2];
};

static void make_address(struct sides *s, int i, bool aes)
{
	assert_int_equal(rig_sealed_keys_make(&s->keys[i]), 0);
	memset(&s->address[i], 0, sizeof(s->address[i]));
	memset(s->address[i].token, 0x10 + i, sizeof(s->address[i].token));
	memcpy(s->address[i].key, s->keys[i].public_key, sizeof(s->address[i].key));
	s->address[i].aes = aes;
}

static int derive(struct sides *s, int i, const struct rig_conn_address *peer)
{
	return rig_sealed_ways(&s->keys[i], i == 1, &s->address[i], peer, &s->out[i], &s->in[i]);
}

static void begin(struct sides *s, bool aes)
{
	memset(s, 0, sizeof(*s));
	for (int i = 0; i < 2; i++)
		make_address(s, i, aes);
	for (int i = 0; i < 2; i++)
		assert_int_equal(derive(s, i, &s->address[!i]), 0);
}

static void end(struct sides *s)
{
	for (int i = 0; i < 2; i++) {
		rig_sealed_wipe(&s->out[i]);
		rig_sealed_wipe(&s->in[i]);
	}
}

static void make_record(struct sides *s, uint8_t record[RECORD])
{
	uint8_t payload[PAYLOAD];

	memset(payload, 0x5a, sizeof(payload));
	assert_int_equal(rig_sealed_seal(&s->out[1], &head, payload, record), 0);
}

static void what_is_sealed_opens_as_it_was_both_ways_with_either_cipher(void **state)
{
	(void)state;
	for (int aes = 0; aes <= rig_sealed_has_aes(); aes++) {
		struct sides s;
		struct rig_sealed_head read;
		uint8_t record[RECORD], payload[PAYLOAD];

		begin(&s, aes);
		assert_memory_not_equal(s.out[0].key, s.out[1].key, sizeof(s.out[0].key));
		for (int round = 0; round < 3; round++) {
			make_record(&s, record);
			assert_null(memmem(record, sizeof(record), "\x5a\x5a\x5a\x5a\x5a\x5a", 6));
			assert_int_equal(rig_sealed_record_bytes(record), RECORD);
			rig_sealed_parse(record, &read);
			assert_true(read.bytes == head.bytes && read.last == head.last &&
			            read.note == head.note && read.key == head.key &&
			            read.offset == head.offset);
			assert_int_equal(rig_sealed_open(&s.in[0], record, payload), 0);
			for (int i = 0; i < PAYLOAD; i++)
				assert_int_equal(payload[i], 0x5a);
		}
		assert_int_equal(
		        rig_sealed_seal(&s.out[0], &(struct rig_sealed_head){.last = true}, NULL, record), 0);
		assert_int_equal(rig_sealed_open(&s.in[1], record, payload), 0);
		end(&s);
	}
}

/* Any bit of it, the head's too; and then the record itself still opens. */
static void a_record_of_which_a_bit_was_changed_does_not_open_and_leaves_zeros(void **state)
{
	(void)state;
	for (int aes = 0; aes <= rig_sealed_has_aes(); aes++) {
		static const uint8_t zeros[PAYLOAD];
		struct sides s;
		uint8_t record[RECORD], payload[PAYLOAD];

		begin(&s, aes);
		make_record(&s, record);
		for (size_t bit = 0; bit < RECORD * 8; bit += bit < RIG_SEALED_HEAD * 8 ? 1 : 61) {
			record[bit / 8] ^= (uint8_t)(1u << bit % 8);
			/* A length that was changed names another end of the record. */
			if (rig_sealed_record_bytes(record) == RECORD) {
				memset(payload, 0xee, sizeof(payload));
				assert_int_equal(rig_sealed_open(&s.in[0], record, payload), -EBADMSG);
				assert_memory_equal(payload, zeros, sizeof(zeros));
			}
			record[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
		assert_int_equal(rig_sealed_open(&s.in[0], record, payload), 0);
		end(&s);
	}
}

static void a_record_that_is_repeated_dropped_or_comes_back_does_not_open(void **state)
{
	struct sides s;
	uint8_t first[RECORD], second[RECORD], payload[PAYLOAD];

	(void)state;
	begin(&s, rig_sealed_has_aes());
	make_record(&s, first);
	make_record(&s, second);
	assert_int_equal(rig_sealed_open(&s.in[0], second, payload), -EBADMSG);
	assert_int_equal(rig_sealed_open(&s.in[1], first, payload), -EBADMSG);
	assert_int_equal(rig_sealed_open(&s.in[0], first, payload), 0);
	assert_int_equal(rig_sealed_open(&s.in[0], first, payload), -EBADMSG);
	assert_int_equal(rig_sealed_open(&s.in[0], second, payload), 0);
	end(&s);
}

static void keys_move_on_together_and_an_old_one_is_of_no_use(void **state)
{
	struct sides s;
	uint8_t record[RECORD], payload[PAYLOAD], before[32];

	(void)state;
	begin(&s, rig_sealed_has_aes());
	memcpy(before, s.out[1].key, sizeof(before));
	s.out[1].number = s.in[0].number = RIG_SEALED_REKEY - 1;
	for (int i = 0; i < 2; i++) {
		make_record(&s, record);
		assert_int_equal(rig_sealed_open(&s.in[0], record, payload), 0);
	}
	assert_memory_not_equal(s.out[1].key, before, sizeof(before));
	assert_memory_equal(s.out[1].key, s.in[0].key, sizeof(before));
	end(&s);
}

/* Each part of the addresses that the other side did not get as it was sent. */
static void keys_are_bound_to_both_tokens_both_public_keys_and_the_cipher(void **state)
{
	(void)state;
	for (int what = 0; what < 4; what++) {
		struct rig_sealed_keys other;
		struct rig_conn_address seen;
		struct sides s = {.out = {{0}}};
		uint8_t record[RECORD], payload[PAYLOAD];

		make_address(&s, 0, rig_sealed_has_aes());
		make_address(&s, 1, rig_sealed_has_aes());
		assert_int_equal(derive(&s, 1, &s.address[0]), 0);
		seen = s.address[1];
		assert_int_equal(rig_sealed_keys_make(&other), 0);
		if (what == 0)
			seen.token[31] ^= 1;
		else if (what == 1)
			s.address[0].token[0] ^= 1;
		else if (what == 2)
			memcpy(seen.key, other.public_key, sizeof(seen.key));
		else
			seen.aes = false;
		assert_int_equal(derive(&s, 0, &seen), 0);
		make_record(&s, record);
		if (what < 3 || rig_sealed_has_aes())
			assert_int_equal(rig_sealed_open(&s.in[0], record, payload), -EBADMSG);
		end(&s);
	}
}

static void a_public_key_that_is_none_is_refused(void **state)
{
	struct sides s = {.out = {{0}}};
	struct rig_conn_address seen;

	(void)state;
	make_address(&s, 0, false);
	make_address(&s, 1, false);
	seen = s.address[1];
	memset(seen.key, 0, sizeof(seen.key)); /* of small order: X25519 gives zeros */
	assert_int_equal(derive(&s, 0, &seen), -EPROTO);
	end(&s);
}

static void a_length_that_no_record_has_is_none(void **state)
{
	uint8_t record[RIG_SEALED_HEAD] = {0};

	(void)state;
	assert_int_equal(rig_sealed_record_bytes(record), RIG_SEALED_HEAD + RIG_SEALED_TAG);
	memcpy(record, (uint8_t[]){0x00, 0x00, 0x02, 0x80}, 4);
	assert_int_equal(rig_sealed_record_bytes(record), RIG_SEALED_HEAD + RIG_SEALED_MOST + RIG_SEALED_TAG);
	record[0] = 1;
	assert_int_equal(rig_sealed_record_bytes(record), 0);
	memset(record, 0xff, 4);
	assert_int_equal(rig_sealed_record_bytes(record), 0);
}

static void memory_is_found_by_its_key_within_its_bounds_until_it_is_removed(void **state)
{
	static const struct {
		uint64_t offset;
		size_t bytes;
		bool found;
	} cases[] = {{0, 64, true}, {63, 1, true}, {64, 0, true}, {64, 1, false}, {0, 65, false},
	        {UINT64_MAX, 2, false}, {65, 0, false}};
	struct rig_sealed_targets targets;
	uint8_t memory[64], other[64];
	uint64_t key, key2;

	(void)state;
	rig_sealed_targets_init(&targets);
	assert_int_equal(rig_sealed_target_add(&targets, memory, sizeof(memory), &key), 0);
	assert_int_equal(rig_sealed_target_add(&targets, other, sizeof(other), &key2), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_ptr_equal(rig_sealed_target_find(&targets, key, cases[i].offset, cases[i].bytes),
		        cases[i].found ? memory + cases[i].offset : NULL);
	assert_null(rig_sealed_target_find(&targets, key ^ key2 ^ 1, 0, 1));
	rig_sealed_target_remove(&targets, key);
	assert_null(rig_sealed_target_find(&targets, key, 0, 1));
	assert_ptr_equal(rig_sealed_target_find(&targets, key2, 0, 1), other);
	rig_sealed_target_remove(&targets, key2);
	rig_sealed_targets_fini(&targets);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(what_is_sealed_opens_as_it_was_both_ways_with_either_cipher),
	        cmocka_unit_test(a_record_of_which_a_bit_was_changed_does_not_open_and_leaves_zeros),
	        cmocka_unit_test(a_record_that_is_repeated_dropped_or_comes_back_does_not_open),
	        cmocka_unit_test(keys_move_on_together_and_an_old_one_is_of_no_use),
	        cmocka_unit_test(keys_are_bound_to_both_tokens_both_public_keys_and_the_cipher),
	        cmocka_unit_test(a_public_key_that_is_none_is_refused),
	        cmocka_unit_test(a_length_that_no_record_has_is_none),
	        cmocka_unit_test(memory_is_found_by_its_key_within_its_bounds_until_it_is_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
