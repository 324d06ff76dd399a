/* SPDX-License-Identifier: MIT */
/* Taking a function through the kernel: which way, what is refused and how it is said, and that nothing is
 * left. */
#include "test.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "counters.h"
#include "rig_pci.h"
#include "vfio_kernel_bench.h"
#include "vfio_ops.h"

static void refused(enum rig_pci_transport which, int err, const char *words)
{
	struct test_counts before;
	struct rig_pci *f;

	test_counts_take(&before);
	assert_int_equal(open_by(which, FAKE_KERNEL_BDF0, &f), err);
	says(words);
	assert_null(strchr(rig_error(), '\n'));
	test_counts_same(&before);
}

static void each_way_opens_and_leaves_nothing(void **state)
{
	static const struct {
		enum rig_pci_transport which;
		const char *name;
	} ways[] = {{RIG_PCI_TYPE1, "type1"}, {RIG_PCI_IOMMUFD, "iommufd"}};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct test_counts before;
		struct rig_pci *f;

		test_counts_take(&before);
		f = take(ways[i].which, FAKE_KERNEL_BDF0);
		assert_string_equal(rig_pci_info(f)->transport, ways[i].name);
		assert_string_equal(rig_pci_info(f)->bdf, FAKE_KERNEL_BDF0);
		assert_int_equal(rig_pci_info(f)->vendor, 0x1234);
		assert_true(rig_pci_info(f)->resets);
		rig_pci_close(f);
		test_counts_same(&before);
	}
}

static void the_device_node_comes_first_and_the_log_says_so(void **state)
{
	struct rig_pci *f = take(RIG_PCI_ANY, FAKE_KERNEL_BDF0);

	(void)state;
	assert_string_equal(rig_pci_info(f)->transport, "iommufd");
	assert_non_null(strstr(logged, "through iommufd"));
	rig_pci_close(f);
}

static void without_an_iommufd_it_is_type1_and_the_log_says_why(void **state)
{
	struct rig_pci *f;

	(void)state;
	kernel.no_iommu_node = true;
	f = take(RIG_PCI_ANY, FAKE_KERNEL_BDF0);
	assert_string_equal(rig_pci_info(f)->transport, "type1");
	assert_non_null(strstr(logged, "/dev/iommu"));
	rig_pci_close(f);
}

static void a_kernel_without_device_nodes_is_driven_through_type1(void **state)
{
	struct rig_pci *f;

	(void)state;
	fake_kernel_file(&kernel, "/sys/bus/pci/devices/" FAKE_KERNEL_BDF0 "/vfio-dev/vfio0/dev", NULL);
	assert_int_equal(rmdir(strcat(strcpy((char[256]){0}, kernel.root),
	                         "/sys/bus/pci/devices/" FAKE_KERNEL_BDF0 "/vfio-dev/vfio0")),
	        0);
	refused(RIG_PCI_IOMMUFD, -ENOTSUP, "no node below /dev/vfio/devices");
	f = take(RIG_PCI_ANY, FAKE_KERNEL_BDF0);
	assert_string_equal(rig_pci_info(f)->transport, "type1");
	rig_pci_close(f);
}

static void every_attempt_is_told_with_its_way_its_step_and_its_node(void **state)
{
	struct rig_pci_failed failed;
	struct rig_kernel_want want = {.bdf = FAKE_KERNEL_BDF0, .failed = &failed};
	struct rig_pci *f;

	(void)state;
	kernel.no_cdev = true;
	kernel.viable = false;
	assert_int_equal(open_want(&want, &f), -EBUSY);
	assert_int_equal(failed.count, 2);
	assert_int_equal(failed.attempt[0].way, RIG_PCI_IOMMUFD);
	assert_int_equal(failed.attempt[0].step, RIG_PCI_STEP_NODE);
	assert_int_equal(failed.attempt[0].err, -EACCES);
	assert_string_equal(failed.attempt[0].node, "/dev/vfio/devices/vfio0");
	assert_int_equal(failed.attempt[1].way, RIG_PCI_TYPE1);
	assert_int_equal(failed.attempt[1].step, RIG_PCI_STEP_VIABLE);
	assert_string_equal(failed.attempt[1].node, "");
	assert_string_equal(failed.attempt[1].text, rig_error());
	want.bdf = "0000:99:00.0";
	assert_int_equal(open_want(&want, &f), -ENOENT);
	assert_int_equal(failed.count, 1);
	assert_int_equal(failed.attempt[0].way, RIG_PCI_ANY);
	assert_int_equal(failed.attempt[0].step, RIG_PCI_STEP_ABSENT);
}

static void a_function_with_another_driver_names_it(void **state)
{
	(void)state;
	fake_kernel_bind(&kernel, FAKE_KERNEL_BDF0, "amdgpu");
	refused(RIG_PCI_ANY, -EBUSY, "amdgpu");
}

static void a_second_binding_is_said_to_be_one(void **state)
{
	(void)state;
	kernel.fail_nr = 118;
	kernel.fail_errno = EINVAL;
	refused(RIG_PCI_IOMMUFD, -EBUSY, "opening /dev/vfio/devices/vfio0");
}

static void no_iommu_is_never_taken_unasked(void **state)
{
	(void)state;
	fake_kernel_file(&kernel, "/sys/kernel/iommu_groups/12/name", "vfio-noiommu\n");
	refused(RIG_PCI_ANY, -ENODEV, "no IOMMU group");
	refused(RIG_PCI_TYPE1, -ENODEV, "no IOMMU group");
	refused(RIG_PCI_IOMMUFD, -ENODEV, "no IOMMU group");
}

static void no_iommu_behind_an_iommu_is_refused(void **state)
{
	(void)state;
	refused(RIG_PCI_NOIOMMU, -EINVAL, "behind an IOMMU");
}

static void a_sleeping_function_is_not_touched(void **state)
{
	(void)state;
	fake_kernel_file(&kernel, "/sys/bus/pci/devices/" FAKE_KERNEL_BDF0 "/power_state", "D3cold\n");
	refused(RIG_PCI_TYPE1, -ENODEV, "D3cold");
}

/* vfio-pci answers the vendor id from a copy: ones are seen in the class. */
static void a_function_that_answers_ones_is_refused(void **state)
{
	static const unsigned char ones[4] = {0xff, 0xff, 0xff, 0xff};
	off_t class = ((off_t)RIG_VFIO_CONFIG << FAKE_KERNEL_REGION_SHIFT) + 8;

	(void)state;
	assert_int_equal(pwrite(kernel.function[0].device_fd, ones, 4, class), 4);
	refused(RIG_PCI_TYPE1, -ENODEV, "all ones");
}

static void an_open_function_that_leaves_is_noticed(void **state)
{
	static const unsigned char ones[4] = {0xff, 0xff, 0xff, 0xff};
	off_t class = ((off_t)RIG_VFIO_CONFIG << FAKE_KERNEL_REGION_SHIFT) + 8;
	struct rig_pci *f = take(RIG_PCI_TYPE1, FAKE_KERNEL_BDF0);
	const char *why;

	(void)state;
	assert_int_equal(rig_pci_check(f), 0);
	assert_int_equal(pwrite(kernel.function[0].device_fd, ones, 4, class), 4);
	assert_int_equal(rig_pci_check(f), -ENODEV);
	assert_true(rig_pci_gone(f, &why));
	rig_pci_close(f);
}

static void an_identity_that_changed_is_refused(void **state)
{
	(void)state;
	fake_kernel_file(&kernel, "/sys/bus/pci/devices/" FAKE_KERNEL_BDF0 "/vendor", "0x10de\n");
	refused(RIG_PCI_TYPE1, -ENODEV, "0x10de");
}

static void a_function_that_this_process_has_is_not_taken_again(void **state)
{
	struct rig_pci *f = take(RIG_PCI_TYPE1, FAKE_KERNEL_BDF0);

	(void)state;
	refused(RIG_PCI_ANY, -EBUSY, "by this process");
	rig_pci_close(f);
	rig_pci_close(take(RIG_PCI_IOMMUFD, FAKE_KERNEL_BDF0));
}

static void the_process_that_holds_a_function_is_named(void **state)
{
	int ready[2], end[2], status;
	char byte = 0, pid[32];
	pid_t child;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(end), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct rig_pci *f;

		close(end[1]);
		if (open_by(RIG_PCI_TYPE1, FAKE_KERNEL_BDF0, &f))
			_exit(1);
		if (write(ready[1], &byte, 1) != 1 || read(end[0], &byte, 1) != 0)
			_exit(1);
		_exit(0); /* not closed: the end of the process is the end of the lock */
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	snprintf(pid, sizeof(pid), "process %ld (", (long)child);
	refused(RIG_PCI_ANY, -EBUSY, pid);
	close(end[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	rig_pci_close(take(RIG_PCI_TYPE1, FAKE_KERNEL_BDF0));
	close(end[0]);
	close(ready[0]);
	close(ready[1]);
}

static unsigned count_open(void)
{
	unsigned n = 0;

	for (int fd = 3; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* The child closes the parent's descriptors: the lock and the device end with the parent, whatever its
 * children do. */
static void a_child_of_fork_has_none_of_it_and_the_parent_keeps_all(void **state)
{
	unsigned before = count_open();
	struct rig_pci *f = take(RIG_PCI_IOMMUFD, FAKE_KERNEL_BDF0);
	pid_t child = fork();
	int status;

	(void)state;
	assert_true(child >= 0);
	if (child == 0) {
		uint32_t v;
		bool ok = rig_pci_gone(f, NULL) && rig_pci_config_read(f, 0, 2, &v) == -ENODEV;

		rig_pci_close(f);
		/* What is left are the copies that the fake itself holds. */
		for (unsigned n = RIG_IRQ_ERR; n <= RIG_IRQ_REQ; n++)
			before += kernel.function[0].irq[n][0] >= 0;
		_exit(ok && count_open() == before ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(rig_pci_check(f), 0);
	refused(RIG_PCI_ANY, -EBUSY, "by this process");
	rig_pci_close(f);
	assert_int_equal(count_open(), before);
}

static void nothing_is_left_whichever_system_call_fails(void **state)
{
	static const enum rig_pci_transport ways[] = {RIG_PCI_TYPE1, RIG_PCI_IOMMUFD, RIG_PCI_ANY};

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		unsigned failed = 0;

		for (unsigned n = 1;; n++) {
			struct test_counts before;
			struct rig_pci *f;
			int err;

			test_counts_take(&before);
			kernel.calls = 0;
			kernel.fail_call = n;
			err = open_by(ways[i], FAKE_KERNEL_BDF0, &f);
			kernel.fail_call = 0;
			if (err)
				assert_true(strlen(rig_error()) > 0);
			failed += err != 0;
			rig_pci_close(f);
			test_counts_same(&before);
			if (!err && kernel.calls < n)
				break;
		}
		assert_true(failed > 8);
	}
}

static void open_given(const struct rig_pci_fds *fds, const char *name)
{
	const struct rig_kernel_want want = {.bdf = FAKE_KERNEL_BDF0, .fds = fds};
	struct rig_pci_taking o = {0};
	struct test_counts before;
	struct rig_pci *f = NULL;

	test_counts_take(&before);
	if (rig_kernel_open(&kernel.env, &want, &log_all, &o.ops, &o.transport) || rig_pci_take(&f, &o))
		fail_msg("%s", rig_error());
	assert_string_equal(rig_pci_info(f)->transport, name);
	rig_pci_close(f);
	test_counts_same(&before);
}

static void the_callers_descriptors_serve_and_stay_the_callers(void **state)
{
	const struct rig_ksys *sys = kernel.env.sys;
	struct rig_pci_fds type1 = {.iommufd = -1}, iommufd = {.container = -1, .group = -1};

	(void)state;
	type1.container = sys->open("/dev/vfio/vfio", O_RDWR);
	type1.group = sys->open("/dev/vfio/12", O_RDWR);
	type1.device = sys->ioctl(type1.group, 0x3b00 | 106, (void *)(uintptr_t)FAKE_KERNEL_BDF0);
	open_given(&type1, "type1");
	assert_int_equal(kernel.joins, 1);
	open_given(&type1, "type1"); /* it has joined a container before: not again */
	assert_int_equal(kernel.joins, 1);
	iommufd.iommufd = sys->open("/dev/iommu", O_RDWR);
	iommufd.device = sys->open("/dev/vfio/devices/vfio0", O_RDWR);
	open_given(&iommufd, "iommufd");
	assert_false(kernel.function[0].attached);
	assert_int_equal(sys->close(type1.container), 0);
	assert_int_equal(sys->close(type1.group), 0);
	assert_int_equal(sys->close(type1.device), 0);
	assert_int_equal(sys->close(iommufd.iommufd), 0);
	assert_int_equal(sys->close(iommufd.device), 0);
}

static void bars_have_their_bus_addresses_and_their_holes(void **state)
{
	struct rig_pci *f = take(RIG_PCI_TYPE1, FAKE_KERNEL_BDF0);
	const struct rig_pci_info *info = rig_pci_info(f);
	struct rig_win low, hole;

	(void)state;
	assert_int_equal(info->bar[0].bytes, 0x10000);
	assert_true(info->bar[0].mappable);
	assert_int_equal(info->bar[0].bus, 0xfe000000);
	assert_int_equal(info->bar[2].bus, 0x4000000000);
	assert_int_equal(info->bar[1].bytes, 0);
	assert_int_equal(rig_pci_window(f, 0, 0, 0x4000, 0, &low), 0);
	assert_non_null(rig_win_host(&low));
	/* Over the hole there is no pointer, and every access still works. */
	assert_int_equal(rig_pci_window(f, 0, 0, 0, 0, &hole), 0);
	assert_null(rig_win_host(&hole));
	rig_win_store32(&hole, 0x4010, 0x12345678);
	assert_int_equal(rig_win_load32(&hole, 0x4010), 0x12345678);
	rig_win_store32(&hole, 0x5010, 0x9abcdef0);
	assert_int_equal(rig_win_load32(&hole, 0x5010), 0x9abcdef0);
	rig_pci_close(f);
}

static void what_is_mapped_of_a_function_goes_before_its_descriptors(void **state)
{
	static const enum rig_pci_transport ways[] = {RIG_PCI_TYPE1, RIG_PCI_IOMMUFD};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct rig_pci *f = take(ways[i], FAKE_KERNEL_BDF0);
		struct rig_win win;

		assert_int_equal(rig_pci_window(f, 2, 0, 4096, 0, &win), 0);
		assert_non_null(rig_win_host(&win));
		rig_pci_close(f);
		assert_int_equal(kernel.closed_mapped, 0);
	}
}

/* As a child between fork and exec has it. */
static void a_function_that_is_let_go_of_a_moment_later_is_waited_for(void **state)
{
	enum { LOOKS = 3 };

	(void)state;
	kernel.fail_path = "/dev/vfio/12";
	kernel.fail_path_errno = EBUSY;
	kernel.fail_path_times = LOOKS;
	rig_pci_close(take(RIG_PCI_TYPE1, FAKE_KERNEL_BDF0));
	assert_null(kernel.fail_path);
	kernel.fail_nr = 118;
	kernel.fail_errno = EINVAL;
	kernel.fail_times = LOOKS;
	rig_pci_close(take(RIG_PCI_IOMMUFD, FAKE_KERNEL_BDF0));
	assert_int_equal(kernel.fail_nr, 0);
}

/* ---- Forks beside opens and closes ---- */

enum { FORKS = 400, FDS_LOOKED_AT = 128 };

static atomic_bool forked_enough;

static int begin(void *arg, struct rig_pci_taking *o)
{
	const struct rig_kernel_want want = {.bdf = FAKE_KERNEL_BDF0, .which = RIG_PCI_TYPE1};

	(void)arg;
	return rig_kernel_open(&kernel.env, &want, &log_all, &o->ops, &o->transport);
}

static void *open_and_close(void *arg)
{
	(void)arg;
	while (!atomic_load(&forked_enough)) {
		const struct rig_pci_taking o = {.begin = begin};
		struct rig_pci *f = NULL;

		if (rig_pci_take(&f, &o))
			return strdup(rig_error());
		rig_pci_close(f);
	}
	return NULL;
}

/* Groups, containers and locks. What the child of a program with threads may call. */
static int inherited(void)
{
	int n = 0;

	for (int fd = 0; fd < FDS_LOOKED_AT; fd++) {
		char path[32], name[256];
		ssize_t bytes;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		bytes = readlink(path, name, sizeof(name) - 1);
		name[bytes > 0 ? bytes : 0] = 0;
		n += strstr(name, "memfd:fake-kernel") || strstr(name, "/lock/");
	}
	return n;
}

static void a_child_has_nothing_of_a_function_that_is_opened_or_closed_meanwhile(void **state)
{
	pthread_t thread;
	void *failed;
	int bad = 0;

	(void)state;
	atomic_store(&forked_enough, false);
	assert_int_equal(pthread_create(&thread, NULL, open_and_close, NULL), 0);
	for (int i = 0; i < FORKS; i++) {
		int status;
		pid_t child = fork();

		if (!child)
			_exit(inherited());
		assert_true(child > 0);
		assert_int_equal(waitpid(child, &status, 0), child);
		bad += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
	}
	atomic_store(&forked_enough, true);
	assert_int_equal(pthread_join(thread, &failed), 0);
	if (failed)
		fail_msg("%s", (const char *)failed);
	assert_int_equal(bad, 0);
}

enum { FORK_SECONDS = 60 };

/* A kernel's function, opened as src/open opens one: with forks held. */
static int begin_here(void *arg, struct rig_pci_taking *o)
{
	(void)arg;
	return rig_kernel_open(&kernel.env,
	        &(struct rig_kernel_want){.bdf = FAKE_KERNEL_BDF0, .which = RIG_PCI_TYPE1}, o->log, &o->ops,
	        &o->transport);
}

static void fork_at(void *arg, int level, const char *text)
{
	unsigned *lines = arg;
	pid_t child = fork();

	(void)level;
	(void)text;
	if (!child)
		_exit(0);
	*lines += waitpid(child, NULL, 0) == child;
}

static void what_logs_may_fork_while_a_function_is_opened(void **state)
{
	unsigned lines = 0;
	const struct rig_log log = {.fn = fork_at, .arg = &lines};
	const struct rig_pci_taking o = {.begin = begin_here, .log = &log};
	struct rig_pci *f;

	(void)state;
	alarm(FORK_SECONDS); /* or it would wait for ever */
	assert_int_equal(rig_pci_take(&f, &o), 0);
	alarm(0);
	assert_true(lines > 0);
	rig_pci_close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        KERNEL_TEST(each_way_opens_and_leaves_nothing),
	        KERNEL_TEST(what_logs_may_fork_while_a_function_is_opened),
	        KERNEL_TEST(the_device_node_comes_first_and_the_log_says_so),
	        KERNEL_TEST(without_an_iommufd_it_is_type1_and_the_log_says_why),
	        KERNEL_TEST(a_kernel_without_device_nodes_is_driven_through_type1),
	        KERNEL_TEST(every_attempt_is_told_with_its_way_its_step_and_its_node),
	        KERNEL_TEST(a_function_with_another_driver_names_it),
	        KERNEL_TEST(a_second_binding_is_said_to_be_one),
	        KERNEL_TEST(what_is_mapped_of_a_function_goes_before_its_descriptors),
	        KERNEL_TEST(a_function_that_is_let_go_of_a_moment_later_is_waited_for),
	        KERNEL_TEST(a_child_has_nothing_of_a_function_that_is_opened_or_closed_meanwhile),
	        KERNEL_TEST(no_iommu_is_never_taken_unasked),
	        KERNEL_TEST(no_iommu_behind_an_iommu_is_refused),
	        KERNEL_TEST(a_sleeping_function_is_not_touched),
	        KERNEL_TEST(a_function_that_answers_ones_is_refused),
	        KERNEL_TEST(an_open_function_that_leaves_is_noticed),
	        KERNEL_TEST(an_identity_that_changed_is_refused),
	        KERNEL_TEST(a_function_that_this_process_has_is_not_taken_again),
	        KERNEL_TEST(the_process_that_holds_a_function_is_named),
	        KERNEL_TEST(a_child_of_fork_has_none_of_it_and_the_parent_keeps_all),
	        KERNEL_TEST(nothing_is_left_whichever_system_call_fails),
	        KERNEL_TEST(the_callers_descriptors_serve_and_stay_the_callers),
	        KERNEL_TEST(bars_have_their_bus_addresses_and_their_holes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
