/* SPDX-License-Identifier: MIT */
/*
 * A device by descriptors that somebody else opened: from the public options down to a scripted kernel, over
 * a toy board on its function.
 */
#include "test.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "boards.h"
#include "counters.h"
#include "kernel_abi.h"
#include "rig.h"
#include "rig_vfio.h"
#include "vfio_kernel_fake.h"

#define MEMORY     (1u << 20) /* of the scripted function's BAR 2 */
#define POOL_START 0x10000u
#define BOARD_VA   0x700000000000ull
#define SYSTEM_VA  0x100000000000ull

/* ---- The kernel: in place of the library's own, which this program does not link ---- */

static struct fake_kernel kernel;
static char root[sizeof(kernel.root)], lock_dir[sizeof(kernel.lock_dir)];

static int to_open(const char *path, int flags)
{
	return kernel.env.sys->open(path, flags);
}

static int to_close(int fd)
{
	return kernel.env.sys->close(fd);
}

static int to_dup(int fd)
{
	return kernel.env.sys->dup(fd);
}

static int to_ioctl(int fd, unsigned long request, void *arg)
{
	return kernel.env.sys->ioctl(fd, request, arg);
}

static ssize_t to_pread(int fd, void *buf, size_t len, off_t off)
{
	return kernel.env.sys->pread(fd, buf, len, off);
}

static ssize_t to_pwrite(int fd, const void *buf, size_t len, off_t off)
{
	return kernel.env.sys->pwrite(fd, buf, len, off);
}

static const struct rig_ksys calls = {.open = to_open,
        .close = to_close,
        .dup = to_dup,
        .ioctl = to_ioctl,
        .pread = to_pread,
        .pwrite = to_pwrite};

const struct rig_kenv rig_kenv = {.sys = &calls, .root = root, .lock_dir = lock_dir};

/* ---- The board: likewise ---- */

static bool refuses; /* to boot */
static unsigned ran;

static int boot(struct rig_port *port)
{
	(void)port;
	return refuses ? rig_error_set(-EIO, "the toy does not boot") : 0;
}

static int describe(struct rig_port *port, struct rig_board_facts *facts)
{
	struct rig_win memory;
	int err = rig_port_window(port, 2, 0, MEMORY, 0, &memory);

	if (err)
		return err;
	facts->queues[0] = (struct rig_queue){.name = "TOY:0", .runs = RIG_RUNS(RIG_WORDS)};
	facts->nqueues = 1;
	facts->pools[0] =
	        (struct rig_board_pool){.pa = POOL_START, .bytes = MEMORY - POOL_START, .visible = true};
	facts->npools = 1;
	facts->memory_bar = 2;
	facts->memory_bar_bytes = MEMORY;
	facts->memory_host = rig_win_host(&memory);
	facts->board_va = BOARD_VA;
	facts->system_va = SYSTEM_VA;
	facts->system_bits = 36;
	facts->vectors = 1;
	facts->hang_ms = 60000;
	return 0;
}

static int check(
        struct rig_port *port, const struct rig_part *part, const struct rig_run *run, struct rig_need *need)
{
	(void)port;
	(void)run;
	need->units = part->u.words.count;
	return RIG_FITS;
}

static int part(struct rig_port *port, const struct rig_part *part, const struct rig_run *run,
        const struct rig_need *need, const struct rig_place *place)
{
	(void)port;
	(void)part;
	(void)run;
	(void)need;
	(void)place;
	return 0;
}

static int start(struct rig_port *port, const void *op)
{
	(void)port;
	(void)op;
	ran++;
	return 0;
}

static int poll(struct rig_port *port, const void *op, bool *done)
{
	(void)port;
	(void)op;
	*done = true;
	return 0;
}

static void halt(struct rig_port *port)
{
	(void)port;
}

static const struct rig_board_stage stages[] = {{"toy", boot}};
static const struct rig_serial serial = {.start = start, .poll = poll};
static const struct rig_board board = {.version = RIG_BOARD_VERSION,
        .arch = "toy",
        .state_bytes = 1,
        .stages = stages,
        .nstages = 1,
        .serial = &serial,
        .describe = describe,
        .check = check,
        .part = part,
        .halt = halt};

const struct rig_board *rig_board_find(uint16_t vendor, uint16_t device)
{
	return vendor == 0x1234 && device == 0x5258 ? &board : NULL;
}

/* ---- Help ---- */

static struct rig_vfio_fds fds;
static struct test_counts before;

static int setup(void **state)
{
	(void)state;
	(void)rig_words();
	refuses = false;
	ran = 0;
	fake_kernel_init(&kernel);
	strcpy(root, kernel.root);
	strcpy(lock_dir, kernel.lock_dir);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_kernel_fini(&kernel);
	return 0;
}

static void must(bool ok)
{
	if (!ok)
		fail_msg("%s", rig_error());
}

/* What the process with more rights does. */
static void open_type1(void)
{
	const struct rig_ksys *sys = kernel.env.sys;

	fds = (struct rig_vfio_fds){.iommufd = -1};
	fds.container = sys->open("/dev/vfio/vfio", O_RDWR);
	fds.group = sys->open("/dev/vfio/12", O_RDWR);
	fds.device =
	        sys->ioctl(fds.group, RIG_KVFIO_GROUP_GET_DEVICE_FD, (void *)(uintptr_t)FAKE_KERNEL_BDF0);
	assert_true(fds.container >= 0 && fds.group >= 0 && fds.device >= 0);
}

static void open_iommufd(void)
{
	struct rig_kvfio_bind bind = {.argsz = offsetof(struct rig_kvfio_bind, token)};
	const struct rig_ksys *sys = kernel.env.sys;

	fds = (struct rig_vfio_fds){.group = -1, .container = -1};
	bind.iommufd = fds.iommufd = sys->open("/dev/iommu", O_RDWR);
	fds.device = sys->open("/dev/vfio/devices/vfio0", O_RDWR);
	assert_true(fds.iommufd >= 0 && fds.device >= 0);
	assert_int_equal(sys->ioctl(fds.device, RIG_KVFIO_DEVICE_BIND_IOMMUFD, &bind), 0);
}

static void close_fds(void)
{
	const int all[] = {fds.device, fds.group, fds.container, fds.iommufd};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i] >= 0)
			assert_int_equal(kernel.env.sys->close(all[i]), 0);
}

static struct rig_opener *opener_with(const struct rig_vfio_fds *given)
{
	struct rig_vfio_options options = {.version = RIG_EDGE_VERSION, .fds = given};
	struct rig_opener *opener;

	must(rig_vfio_opener(FAKE_KERNEL_BDF0, &options, &opener) == 0);
	return opener;
}

static struct rig_device *open_with(const struct rig_vfio_fds *given)
{
	struct rig_opener *opener = opener_with(given);
	struct rig_device *device;

	must(rig_open(opener, &device) == 0);
	rig_vfio_opener_free(opener);
	return device;
}

/* One word through the board, and a byte of its memory there and back. */
static void work(struct rig_device *device)
{
	static const uint32_t word = 7;
	struct rig_description description = {.version = RIG_EDGE_VERSION};
	struct rig_work one = {.kind = RIG_WORDS, .u.words = {.words = &word, .count = 1}};
	struct rig_submission *submission;
	struct rig_point point;
	struct rig_buffer *buffer;
	unsigned had = ran;
	char byte = 0;

	description.parts = &one;
	description.nparts = 1;
	must(rig_submission_make(device, &description, &submission) == 0);
	must(rig_submit(submission, NULL, NULL, 0, &point) == 0);
	must(rig_wait(point) == 0);
	rig_submission_put(submission);
	assert_int_equal(ran, had + 1);
	must(rig_buffer_create(device, RIG_PINNED, 4096, &buffer) == 0);
	must(rig_buffer_write(buffer, 100, "x", 1) == 0);
	must(rig_buffer_read(buffer, 100, &byte, 1) == 0);
	assert_int_equal(byte, 'x');
	rig_buffer_put(buffer);
}

static void end(struct rig_device *device)
{
	must(rig_close(device) == 0);
	rig_device_put(device);
}

static const char *transport_of(struct rig_device *device)
{
	const struct rig_vfio_record *record = rig_capability(device, &rig_vfio_key);

	return record->transport;
}

static const struct way {
	void (*open)(void);
	const char *name;
} ways[] = {{open_type1, "type1"}, {open_iommufd, "iommufd"}};

/* ---- Tests ---- */

static void a_device_by_given_descriptors_works_and_leaves_them_to_the_caller(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct rig_device *device;

		ways[i].open();
		test_counts_take(&before);
		for (unsigned again = 0; again < 2; again++) {
			device = open_with(&fds);
			assert_string_equal(transport_of(device), ways[i].name);
			work(device);
			end(device);
			assert_int_equal(kernel.maps, 0);
			test_counts_same(&before);
		}
		assert_false(kernel.function[0].attached);
		close_fds();
	}
}

static void the_caller_may_close_its_own_as_soon_as_the_device_is_open(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct rig_device *device;

		test_counts_take(&before);
		ways[i].open();
		device = open_with(&fds);
		close_fds();
		work(device);
		end(device);
		test_counts_same(&before);
	}
}

static void no_node_is_opened_and_no_lock_is_taken(void **state)
{
	struct rig_device *device;

	(void)state;
	open_iommufd();
	kernel.no_cdev = kernel.no_iommu_node = true; /* as for a process without rights */
	kernel.fail_path = "/dev/vfio/12";
	kernel.fail_path_errno = EACCES;
	device = open_with(&fds);
	work(device);
	assert_int_equal(access(lock_dir, F_OK), -1);
	end(device);
	close_fds();
}

static void an_open_that_fails_leaves_the_descriptors_as_they_were(void **state)
{
	(void)state;
	refuses = true;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct rig_opener *opener;
		struct rig_device *device;

		ways[i].open();
		test_counts_take(&before);
		opener = opener_with(&fds);
		assert_int_equal(rig_open(opener, &device), -EIO);
		assert_non_null(strstr(rig_error(), "the toy does not boot"));
		rig_vfio_opener_free(opener);
		test_counts_same(&before);
		refuses = false;
		end(open_with(&fds));
		refuses = true;
		close_fds();
	}
}

static void descriptors_that_are_not_enough_are_refused_when_the_opener_is_made(void **state)
{
	static const struct rig_vfio_fds few[] = {
	        {-1, -1, -1, -1}, {5, -1, -1, -1}, {5, 6, -1, -1}, {5, -1, 6, -1}, {-1, -1, -1, 5}};
	struct rig_vfio_options options = {.version = RIG_EDGE_VERSION};
	struct rig_opener *opener;

	(void)state;
	for (size_t i = 0; i < sizeof(few) / sizeof(few[0]); i++) {
		options.fds = &few[i];
		assert_int_equal(rig_vfio_opener(FAKE_KERNEL_BDF0, &options, &opener), -EINVAL);
		assert_null(opener);
		assert_non_null(strstr(rig_error(), "group and container"));
	}
	options.fds = &(struct rig_vfio_fds){5, 6, 7, -1};
	assert_int_equal(rig_vfio_opener("sim", &options, &opener), -EINVAL);
	assert_non_null(strstr(rig_error(), "PCI functions"));
}

static void a_token_of_the_options_goes_down_to_the_kernel(void **state)
{
	struct rig_vfio_options options = {
	        .version = RIG_EDGE_VERSION, .vf_token = "bd8d9d2b-5a5f-4f5a-a211-f591514ba1f3"};
	struct rig_opener *opener;
	struct rig_device *device;

	(void)state;
	must(rig_vfio_opener(FAKE_KERNEL_BDF0 ",transport=type1", &options, &opener) == 0);
	must(rig_open(opener, &device) == 0);
	rig_vfio_opener_free(opener);
	assert_int_equal(kernel.function[0].tokens, 1);
	assert_int_equal(kernel.function[0].uuid[0], 0xbd);
	end(device);
	options.vf_token = "secret";
	assert_int_equal(rig_vfio_opener(FAKE_KERNEL_BDF0, &options, &opener), -EINVAL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(a_device_by_given_descriptors_works_and_leaves_them_to_the_caller),
	        TEST(the_caller_may_close_its_own_as_soon_as_the_device_is_open),
	        TEST(no_node_is_opened_and_no_lock_is_taken),
	        TEST(an_open_that_fails_leaves_the_descriptors_as_they_were),
	        TEST(descriptors_that_are_not_enough_are_refused_when_the_opener_is_made),
	        TEST(a_token_of_the_options_goes_down_to_the_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
