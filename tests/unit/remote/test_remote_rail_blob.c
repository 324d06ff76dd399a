/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "test.h"

#include "rail_blob.h"

static void make_hello(struct rig_rail_hello *hello)
{
	memset(hello, 0, sizeof(*hello));
	memcpy(hello->provider, "tcp", 4);
	hello->piece = 1 << 20;
	memset(hello->address.token, 0x5a, sizeof(hello->address.token));
	hello->address.bytes = 16;
	memset(hello->address.address, 0x11, 16);
	hello->address.bell_pid = 77;
	hello->address.bell_fd = 9;
	hello->mailbox = (struct rig_fabric_target){1, UINT64_MAX};
}

static const struct rig_rail_ticket ticket = {
        .id = UINT64_MAX,
        .slot = 65533,
        .send = {3, 4},
        .receive = {5, 6},
        .inbound = {7, 8},
};

static void a_hello_is_read_as_it_was_written(void **state)
{
	struct rig_rail_hello hello, read;
	struct rig_rail_blob blob;

	(void)state;
	make_hello(&hello);
	memset(&read, 0, sizeof(read));
	rig_rail_blob_hello(&blob, RIG_BLOB_OFFER, &hello);
	assert_int_equal(rig_rail_parse_hello(&blob, RIG_BLOB_OFFER, &read), 0);
	assert_memory_equal(&hello, &read, sizeof(hello));
	assert_int_equal(rig_rail_parse_hello(&blob, RIG_BLOB_ANSWER, &read), -EPROTO);
}

static void a_ticket_is_read_as_it_was_written(void **state)
{
	struct rig_rail_ticket read;
	struct rig_rail_blob blob;

	(void)state;
	memset(&read, 0, sizeof(read));
	rig_rail_blob_ticket(&blob, &ticket);
	assert_int_equal(rig_rail_parse_ticket(&blob, &read), 0);
	assert_int_equal(read.id, ticket.id);
	assert_int_equal(read.slot, ticket.slot);
	assert_memory_equal(&read.send, &ticket.send, sizeof(read.send));
	assert_memory_equal(&read.receive, &ticket.receive, sizeof(read.receive));
	assert_memory_equal(&read.inbound, &ticket.inbound, sizeof(read.inbound));
}

static void a_blob_that_is_cut_or_too_long_is_refused(void **state)
{
	struct rig_rail_hello hello, read;
	struct rig_rail_ticket other;
	struct rig_rail_blob whole, blob;

	(void)state;
	make_hello(&hello);
	rig_rail_blob_hello(&whole, RIG_BLOB_OFFER, &hello);
	for (size_t n = 0; n <= RIG_RAIL_BLOB; n++) {
		blob = whole;
		blob.bytes = n;
		assert_int_equal(
		        rig_rail_parse_hello(&blob, RIG_BLOB_OFFER, &read), n == whole.bytes ? 0 : -EPROTO);
	}
	blob.bytes = RIG_RAIL_BLOB + 1;
	assert_int_equal(rig_rail_parse_hello(&blob, RIG_BLOB_OFFER, &read), -EPROTO);
	rig_rail_blob_ticket(&whole, &ticket);
	for (size_t n = 0; n <= RIG_RAIL_BLOB; n++) {
		blob = whole;
		blob.bytes = n;
		assert_int_equal(rig_rail_parse_ticket(&blob, &other), n == whole.bytes ? 0 : -EPROTO);
	}
	blob.bytes = SIZE_MAX;
	assert_int_equal(rig_rail_parse_ticket(&blob, &other), -EPROTO);
}

static void lengths_and_slots_out_of_bounds_are_refused(void **state)
{
	struct rig_rail_ticket far = ticket, other;
	struct rig_rail_hello hello, read;
	struct rig_rail_blob blob;

	(void)state;
	make_hello(&hello);
	hello.address.bytes = RIG_FABRIC_ADDRESS + 1;
	rig_rail_blob_hello(&blob, RIG_BLOB_OFFER, &hello);
	assert_int_equal(rig_rail_parse_hello(&blob, RIG_BLOB_OFFER, &read), -EPROTO);
	make_hello(&hello);
	memset(hello.provider, 'x', sizeof(hello.provider));
	rig_rail_blob_hello(&blob, RIG_BLOB_OFFER, &hello);
	assert_int_equal(rig_rail_parse_hello(&blob, RIG_BLOB_OFFER, &read), -EPROTO);
	far.slot = 65536;
	rig_rail_blob_ticket(&blob, &far);
	assert_int_equal(rig_rail_parse_ticket(&blob, &other), -EPROTO);
}

static void another_version_is_named(void **state)
{
	struct rig_rail_ticket other;
	struct rig_rail_blob blob;

	(void)state;
	rig_rail_blob_ticket(&blob, &ticket);
	blob.at[8] = 200;
	assert_int_equal(rig_rail_parse_ticket(&blob, &other), -EPROTO);
	assert_non_null(strstr(rig_error(), "200"));
	blob.at[0] = 'R';
	assert_int_equal(rig_rail_parse_ticket(&blob, &other), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_hello_is_read_as_it_was_written),
	        cmocka_unit_test(a_ticket_is_read_as_it_was_written),
	        cmocka_unit_test(a_blob_that_is_cut_or_too_long_is_refused),
	        cmocka_unit_test(lengths_and_slots_out_of_bounds_are_refused),
	        cmocka_unit_test(another_version_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
