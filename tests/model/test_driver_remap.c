/* SPDX-License-Identifier: MIT */
/* Bus addresses that one kind of host memory leaves are taken by the next; work reaches each. */
#include <stdlib.h>
#include <string.h>

#include "system_device.h"

#define MIB    ((uint64_t)1 << 20)
#define OWN    (72 * MIB) /* larger than what arenas grow by: mapped for it alone, unmapped after it */
#define ROUNDS 3

/* By the copy engine: there and back. */
static void assert_reached(struct rig_device *device, struct rig_buffer *host)
{
	const uint64_t bytes = rig_buffer_bytes(host);
	struct rig_buffer *board = sys_buffer(device, RIG_DEVICE, bytes);
	uint8_t *at = rig_buffer_host(host);

	at[0] = 0x17;
	at[bytes - 1] = 0x71;
	sys_ok(rig_buffer_copy(board, 0, host, 0, bytes));
	at[0] = at[bytes - 1] = 0;
	sys_ok(rig_buffer_copy(host, 0, board, 0, bytes));
	assert_int_equal(at[0], 0x17);
	assert_int_equal(at[bytes - 1], 0x71);
	rig_buffer_put(board);
	rig_cache_trim(device, 0);
}

static void use_pinned(struct rig_device *device)
{
	struct rig_buffer *buffer = sys_buffer(device, RIG_PINNED, OWN);

	assert_reached(device, buffer);
	rig_buffer_put(buffer);
	rig_cache_trim(device, 0);
}

static void use_host(struct rig_device *device, uint64_t bytes)
{
	struct rig_buffer *buffer;
	void *host = aligned_alloc(4096, bytes);

	assert_non_null(host);
	memset(host, 0, bytes);
	sys_ok(rig_buffer_of_host(device, host, bytes, &buffer));
	assert_reached(device, buffer);
	rig_buffer_put(buffer);
	free(host);
}

static void host_memory_is_mapped_where_pinned_memory_was_and_the_other_way_round(void **state)
{
	struct rig_device *device = sys_open("sim");
	int i;

	(void)state;
	for (i = 0; i < ROUNDS; i++) {
		use_pinned(device);
		use_host(device, OWN - 3 * MIB);
		use_host(device, OWN + MIB);
	}
	sys_ok(rig_close(device));
	rig_device_put(device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(host_memory_is_mapped_where_pinned_memory_was_and_the_other_way_round),
	};

	return cmocka_run_group_tests(tests, sys_setup, sys_teardown);
}
