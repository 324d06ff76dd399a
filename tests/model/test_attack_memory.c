/* SPDX-License-Identifier: MIT */
/* Memory that cannot be had is refused in words, and costs no device. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "system_device.h"

#define MIB  ((uint64_t)1 << 20)
#define PAGE 4096u

static struct rig_device *device;

static int open_device(void **state)
{
	(void)state;
	device = sys_open("sim:mem=64M");
	return 0;
}

static int close_device(void **state)
{
	(void)state;
	assert_false(rig_lost(device, NULL));
	sys_device_works(device);
	sys_close(device);
	return 0;
}

static void assert_refused(int answer, int code, const char *why)
{
	assert_int_equal(answer, code);
	if (!strstr(rig_error(), why))
		fail_msg("\"%s\" is not in: %s", why, rig_error());
}

/* If it were tried, this process should be the one that the system ends for it. */
static void offer_to_be_ended(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, "1000", 4) < 0)
		fail_msg("oom_score_adj: %s", strerror(errno));
	close(fd);
}

static void pinned_memory_beyond_what_the_system_has_is_refused(void **state)
{
	static const unsigned bits[] = {46, 52, 62, 63};
	struct rig_buffer *buffer;
	size_t i;

	(void)state;
	offer_to_be_ended();
	for (i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
		assert_refused(rig_buffer_create(device, RIG_PINNED, UINT64_C(1) << bits[i], &buffer),
		        -ENOMEM, "more than the system has");
}

enum { MANY = 1024 };

static void pinned_memory_without_a_descriptor_left_is_refused(void **state)
{
	int held[MANY], n = 0, answer;
	struct rig_buffer *buffer;
	struct rlimit old, few;
	char why[512];

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = old;
	few.rlim_cur = MANY;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	while (n < MANY && (held[n] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)) >= 0)
		n++;
	answer = rig_buffer_create(device, RIG_PINNED, 32 * MIB, &buffer);
	strcpy(why, rig_error());
	while (n > 0)
		close(held[--n]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	(void)rig_error_set(0, "%s", why);
	assert_refused(answer, -ENOMEM, "EMFILE");
	sys_ok(rig_buffer_create(device, RIG_PINNED, 32 * MIB, &buffer));
	rig_buffer_put(buffer);
}

static void host_memory_that_is_not_there_is_refused(void **state)
{
	uint8_t *at = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rig_buffer *buffer;

	(void)state;
	assert_true(at != MAP_FAILED);
	assert_int_equal(munmap(at + PAGE, PAGE), 0);
	assert_refused(rig_buffer_of_host(device, at, 2 * PAGE, &buffer), -ENOTSUP, "unmapped");
	assert_refused(rig_buffer_of_host(device, at, UINT64_C(1) << 62, &buffer), -ENOTSUP, "unmapped");
	/* To the very end of the addresses, and past it. */
	assert_refused(rig_buffer_of_host(device, at, 0 - (uint64_t)(uintptr_t)at, &buffer), -ENOTSUP,
	        "does not map");
	assert_refused(rig_buffer_of_host(device, at, UINT64_MAX - PAGE, &buffer), -ENOTSUP, "does not map");
	assert_refused(rig_buffer_of_host(device, at, UINT64_MAX, &buffer), -EINVAL, "map_host");
	assert_int_equal(mprotect(at, PAGE, PROT_READ), 0);
	assert_refused(rig_buffer_of_host(device, at, PAGE, &buffer), -ENOTSUP, "read-only");
	assert_int_equal(munmap(at, PAGE), 0);
}

#define ON_A_DEVICE(test) cmocka_unit_test_setup_teardown(test, open_device, close_device)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        ON_A_DEVICE(pinned_memory_beyond_what_the_system_has_is_refused),
	        ON_A_DEVICE(pinned_memory_without_a_descriptor_left_is_refused),
	        ON_A_DEVICE(host_memory_that_is_not_there_is_refused),
	};

	return cmocka_run_group_tests(tests, sys_setup, sys_teardown);
}
