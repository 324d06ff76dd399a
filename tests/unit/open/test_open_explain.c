/* SPDX-License-Identifier: MIT */
/* Messages of an open that fails are the doctor's, on the same tree. */
#include "test.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "counters.h"
#include "doctor.h"
#include "take.h"
#include "vfio_kernel_bench.h"
#include "vfio_ops.h"

#define DEVICE   "/sys/bus/pci/devices/" FAKE_KERNEL_BDF0
#define MATE     "/sys/bus/pci/devices/" FAKE_KERNEL_BDF1
#define GROUP    "/sys/kernel/iommu_groups/12"
#define DRIVERS  "../../../bus/pci/drivers/"
#define USER     "Uid:\t1000\t1000\t1000\t1000\nGid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\n"
#define TOKEN    "bd8d9d2b-5a5f-4f5a-a211-f591514ba1f3"
#define LIMIT(n) "Max locked memory         " n "            " n "            bytes     \n"

static void file(const char *path, const char *text)
{
	fake_kernel_file(&kernel, path, text);
}

/* -- What is the matter with the machine -- */

static void unbound(void)
{
	file(DEVICE "/driver", NULL);
}

static void foreign(void)
{
	fake_kernel_bind(&kernel, FAKE_KERNEL_BDF0, "amdgpu");
}

static void no_module(void)
{
	unbound();
	file("/sys/bus/pci/drivers/amdgpu/bind", "");
}

static void not_viable(void)
{
	fake_kernel_bind(&kernel, FAKE_KERNEL_BDF1, "snd_hda_intel");
	kernel.viable = false;
}

/* A disk of the function is the machine's root. */
static void add_disk(const char *device)
{
	char path[160], target[256];

	snprintf(path, sizeof(path), "%s/ata1/host0/block/sda1/dev", device);
	file(path, "8:1\n");
	snprintf(target, sizeof(target), "%s%s/ata1/host0/block/sda1", kernel.root, device);
	fake_kernel_link(&kernel, "/sys/class/block/sda1", target);
	file("/proc/self/mountinfo", "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n");
}

static void in_use(void)
{
	add_disk(DEVICE);
	fake_kernel_bind(&kernel, FAKE_KERNEL_BDF0, "ahci");
}

static void mate_in_use(void)
{
	add_disk(MATE);
	fake_kernel_bind(&kernel, FAKE_KERNEL_BDF1, "ahci");
	kernel.viable = false;
}

static void iommu_off(void)
{
	file(DEVICE "/iommu_group", NULL);
	fake_kernel_remove(&kernel, "/sys/kernel/iommu_groups");
	file("/proc/cmdline", "quiet\n");
	file("/proc/cpuinfo", "vendor_id : GenuineIntel\n");
}

static void iommu_absent(void)
{
	iommu_off();
	file("/sys/firmware/acpi/tables/APIC", "");
}

static void no_group(void)
{
	file(DEVICE "/iommu_group", NULL);
}

static void no_protection(void)
{
	file(GROUP "/name", "vfio-noiommu\n");
}

static void forbidden(const char *node, const char *nodes)
{
	file("/proc/self/status", USER);
	file("/dev/vfio", nodes);
	kernel.fail_path = node;
	kernel.fail_path_errno = EACCES;
}

static void group_forbidden(void)
{
	forbidden("/dev/vfio/12", "600 0 0 /dev/vfio/12\n666 0 0 /dev/vfio/vfio\n");
}

static void cdev_forbidden(void)
{
	forbidden("/dev/vfio/devices/vfio0",
	        "660 0 0 /dev/vfio/12\n600 0 0 /dev/vfio/devices/vfio0\n666 0 0 /dev/iommu\n");
}

static void held_by(const char *node)
{
	file("/proc/4711/comm", "trainer\n");
	fake_kernel_link(&kernel, "/proc/4711/fd/3", node);
	kernel.fail_path = node;
	kernel.fail_path_errno = EBUSY;
}

static void group_held(void)
{
	held_by("/dev/vfio/12");
}

static void cdev_held(void)
{
	held_by("/dev/vfio/devices/vfio0");
	kernel.fail_path = NULL;
	kernel.fail_nr = 118; /* the kernel lets it be opened, and refuses to bind it again */
	kernel.fail_errno = EINVAL;
}

static int lock_fd = -1;

static void locked(void)
{
	char path[128];

	file("/proc/4711/comm", "trainer\n");
	file("/run/rig-vfio/" FAKE_KERNEL_BDF0, "4711 (trainer)\n");
	snprintf(kernel.lock_dir, sizeof(kernel.lock_dir), "%s/run/rig-vfio", kernel.root);
	snprintf(path, sizeof(path), "%s/" FAKE_KERNEL_BDF0, kernel.lock_dir);
	lock_fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(lock_fd, LOCK_EX), 0);
}

static void little_to_lock(void)
{
	file("/proc/self/status", USER "VmLck:\t       0 kB\nVmPin:\t       0 kB\n");
	file("/proc/self/limits", LIMIT("524288"));
}

static void owned_virtual(void)
{
	fake_kernel_link(&kernel, DEVICE "/physfn", "../" FAKE_KERNEL_BDF1);
	strcpy(kernel.function[0].token, TOKEN);
}

static void locked_down(void)
{
	no_protection();
	file("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
	kernel.fail_nr = 102;
	kernel.fail_errno = EPERM;
}

static void asleep(void)
{
	file(DEVICE "/power_state", "D3cold\n");
}

/* What opening should have woken. */
static void dozing(void)
{
	file(DEVICE "/power_state", "D3hot\n");
}

static void no_link(void)
{
	static const unsigned char ones[4] = {0xff, 0xff, 0xff, 0xff};
	off_t class = ((off_t)RIG_VFIO_CONFIG << FAKE_KERNEL_REGION_SHIFT) + 8;

	assert_int_equal(pwrite(kernel.function[0].device_fd, ones, 4, class), 4);
	file(DEVICE "/config", "\xff\xff\xff\xff");
	file(DEVICE "/current_link_width", "0\n");
}

static void firmware_region(void)
{
	file(GROUP "/reserved_regions", "0x00000000bf7f0000 0x00000000bf7fffff direct\n");
	kernel.fail_nr = 102;
	kernel.fail_errno = EINVAL;
}

static void no_remapping(void)
{
	file("/proc/interrupts", "  0:  42  IO-APIC  2-edge  timer\n");
	file("/sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts", "N\n");
	kernel.fail_nr = 102;
	kernel.fail_errno = EPERM;
}

static void absent(void)
{
	fake_kernel_remove(&kernel, DEVICE);
}

static void no_type1(void)
{
	file("/sys/module/iommufd/x", "");
	kernel.fail_nr = 101;
	kernel.fail_errno = EINVAL;
}

static void no_iommufd(void)
{
	file("/sys/module/vfio_iommu_type1/x", "");
	kernel.no_iommu_node = true;
}

static void old_kernel(void)
{
	fake_kernel_remove(&kernel, DEVICE "/vfio-dev");
	file("/proc/sys/kernel/osrelease", "6.1.0\n");
}

/* -- How it is met -- */

/* Opens as src/open does: with the explanation of a failure. */
static int open_explained(const struct rig_kernel_want *want, struct rig_pci **out)
{
	struct rig_spec spec = {.kind = RIG_SPEC_PCI, .path = FAKE_KERNEL_BDF0, .transport = want->which};
	struct rig_kernel_want all = *want;
	struct rig_pci_failed failed;
	int err;

	snprintf(spec.token, sizeof(spec.token), "%s", want->token ? want->token : "");
	all.failed = &failed;
	err = open_want(&all, out);
	return err && failed.count ? rig_explain(kernel.root, &spec, &failed) : err;
}

static int attempt(enum rig_pci_transport which)
{
	const struct rig_kernel_want want = {.bdf = FAKE_KERNEL_BDF0, .which = which};
	struct rig_pci *f;
	int err = open_explained(&want, &f);

	rig_pci_close(f);
	return err;
}

#define ILL(name, tree, way, error, ...)                                                                     \
	{                                                                                                    \
		.id = name, .fall_ill = tree, .which = way, .err = error, __VA_ARGS__                        \
	}

static const struct illness {
	const char *id;
	void (*fall_ill)(void);
	enum rig_pci_transport which;
	int err;
	struct rig_doctor_seen seen; /* what the attempt saw and the tree does not hold */
} illnesses[] = {
        ILL("absent", absent, RIG_PCI_ANY, -ENOENT),
        ILL("driver", unbound, RIG_PCI_ANY, -ENODEV),
        ILL("driver", foreign, RIG_PCI_ANY, -EBUSY),
        ILL("in-use", in_use, RIG_PCI_ANY, -EBUSY),
        ILL("mate-in-use", mate_in_use, RIG_PCI_TYPE1, -EBUSY),
        ILL("power", dozing, RIG_PCI_TYPE1, -ENODEV, .seen = {.open = true}),
        ILL("vfio-pci", no_module, RIG_PCI_ANY, -ENODEV),
        ILL("back-end", no_type1, RIG_PCI_TYPE1, -ENOTSUP),
        ILL("back-end", no_iommufd, RIG_PCI_IOMMUFD, -ENOENT),
        ILL("no-node", old_kernel, RIG_PCI_IOMMUFD, -ENOTSUP),
        ILL("group-mate", not_viable, RIG_PCI_TYPE1, -EBUSY),
        ILL("iommu-off", iommu_off, RIG_PCI_TYPE1, -ENODEV),
        ILL("iommu-absent", iommu_absent, RIG_PCI_TYPE1, -ENODEV),
        ILL("no-group", no_group, RIG_PCI_TYPE1, -ENODEV),
        ILL("noiommu", no_protection, RIG_PCI_TYPE1, -ENODEV),
        ILL("noiommu", no_protection, RIG_PCI_IOMMUFD, -ENODEV),
        ILL("noiommu", no_protection, RIG_PCI_ANY, -ENODEV),
        ILL("permission", group_forbidden, RIG_PCI_TYPE1, -EACCES),
        ILL("permission", cdev_forbidden, RIG_PCI_IOMMUFD, -EACCES),
        ILL("holder", group_held, RIG_PCI_TYPE1, -EBUSY),
        ILL("holder", cdev_held, RIG_PCI_IOMMUFD, -EBUSY),
        ILL("holder", locked, RIG_PCI_ANY, -EBUSY),
        ILL("rmrr", firmware_region, RIG_PCI_TYPE1, -EINVAL),
        ILL("no-remapping", no_remapping, RIG_PCI_TYPE1, -EPERM),
        ILL("token", owned_virtual, RIG_PCI_TYPE1, -EACCES),
        ILL("token", owned_virtual, RIG_PCI_IOMMUFD, -EACCES),
        ILL("lockdown", locked_down, RIG_PCI_NOIOMMU, -EPERM),
        ILL("power", asleep, RIG_PCI_TYPE1, -ENODEV),
        ILL("power", asleep, RIG_PCI_IOMMUFD, -ENODEV),
        ILL("link", no_link, RIG_PCI_TYPE1, -ENODEV),
};

/* -- Both on one tree -- */

static void contains(const struct illness *i, const char *message, const char *text, size_t n)
{
	char part[RIG_FINDING_COMMAND];

	snprintf(part, sizeof(part), "%.*s", (int)n, text);
	if (!strstr(message, part))
		fail_msg("%s: \"%s\" does not say \"%s\"", i->id, message, part);
}

static void carries(const struct illness *i, const char *message, const struct rig_finding *f)
{
	contains(i, message, f->text, strlen(f->text));
	contains(i, message, f->file, strlen(f->file));
	contains(i, message, f->content, strlen(f->content));
	for (const char *at = f->command; *at;) {
		size_t n = strcspn(at, "\n");
		size_t mark = *at == '#' ? 2 : 0; /* what is done by hand */

		contains(i, message, at + mark, n - mark);
		at += n + (at[n] == '\n');
	}
}

static void examine(const struct illness *i, struct rig_diagnosis *d)
{
	static const enum rig_doctor_way ways[] = {[RIG_PCI_ANY] = RIG_DOCTOR_ANY,
	        [RIG_PCI_IOMMUFD] = RIG_DOCTOR_IOMMUFD,
	        [RIG_PCI_TYPE1] = RIG_DOCTOR_TYPE1,
	        [RIG_PCI_NOIOMMU] = RIG_DOCTOR_NOIOMMU};
	const struct rig_doctor_ask ask = {
	        .root = kernel.root, .bdf = FAKE_KERNEL_BDF0, .way = ways[i->which], .seen = i->seen};

	assert_int_equal(rig_doctor_examine(&ask, d), 0);
}

static void compare(const struct illness *i, const char *message)
{
	struct rig_diagnosis *d = calloc(1, sizeof(*d));
	bool found = false;

	assert_non_null(d);
	examine(i, d);
	for (unsigned n = 0; n < d->count; n++) {
		bool it = strcmp(d->finding[n].id, i->id) == 0;

		found |= it;
		if (it || (d->finding[n].severity > RIG_NOTE && strcmp(i->id, "lockdown") != 0))
			carries(i, message, &d->finding[n]);
	}
	if (!found)
		fail_msg("the doctor does not find %s", i->id);
	free(d);
}

static void a_refusal_carries_every_word_that_the_doctor_says_of_the_same_tree(void **state)
{
	for (size_t n = 0; n < sizeof(illnesses) / sizeof(illnesses[0]); n++) {
		const struct illness *i = &illnesses[n];
		struct test_counts before;
		char message[2048];
		int err;

		assert_int_equal(kernel_setup(state), 0);
		i->fall_ill();
		test_counts_take(&before);
		err = attempt(i->which);
		snprintf(message, sizeof(message), "%s", rig_error());
		test_counts_same(&before);
		if (err != i->err)
			fail_msg("%s, transport %d: %d, not %d: %s", i->id, i->which, err, i->err, message);
		assert_null(strchr(message, '\n'));
		compare(i, message);
		if (lock_fd >= 0)
			close(lock_fd);
		lock_fd = -1;
		assert_int_equal(kernel_teardown(state), 0);
	}
}

static void on_a_machine_that_is_well_the_doctor_finds_nothing_in_the_way(void **state)
{
	struct rig_diagnosis *d = calloc(1, sizeof(*d));

	(void)state;
	assert_non_null(d);
	for (enum rig_pci_transport which = RIG_PCI_ANY; which <= RIG_PCI_TYPE1; which++) {
		examine(&(struct illness){.which = which}, d);
		assert_int_equal(d->verdict, RIG_NOTE);
		assert_int_equal(attempt(which), 0);
	}
	free(d);
}

/* -- Nodes -- */

static void each_errno_of_a_node_has_its_remedy_for_a_host_and_a_container(void **state)
{
	static const struct {
		int err;
		const char *host, *container;
	} rows[] = {{ENOENT, "on a host load the modules", "in a container hand it in"},
	        {ENXIO, "udevadm trigger", "a container start again"},
	        {ENODEV, "udevadm trigger", "a container start again"},
	        {EACCES, "rigctl bind --user NAME", "also for a container"},
	        {EPERM, "in a service DeviceAllow", "to the container"}};
	static const char *const nodes[] = {
	        "/dev/vfio/vfio", "/dev/vfio/12", "/dev/vfio/devices/vfio0", "/dev/iommu"};

	for (size_t n = 0; n < sizeof(nodes) / sizeof(nodes[0]); n++) {
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			enum rig_pci_transport which = n < 2 ? RIG_PCI_TYPE1 : RIG_PCI_IOMMUFD;

			kernel.fail_path = nodes[n];
			kernel.fail_path_errno = rows[i].err;
			assert_int_equal(attempt(which), -rows[i].err);
			says(nodes[n]);
			says(rows[i].host);
			says(rows[i].container);
		}
	}
	(void)state;
}

/* The function's own lock names this process, and is not what stands in its way. */
static void this_process_is_not_called_another_one(void **state)
{
	char path[64], pid[32];

	(void)state;
	snprintf(pid, sizeof(pid), "%ld", (long)getpid());
	snprintf(path, sizeof(path), "%s (test_vfio_kern)\n", pid);
	file("/run/rig-vfio/" FAKE_KERNEL_BDF0, path);
	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	file(path, "test_vfio_kern\n");
	kernel.fail_path = "/dev/vfio/12";
	kernel.fail_path_errno = EBUSY;
	assert_int_equal(attempt(RIG_PCI_TYPE1), -EBUSY);
	says("this process's own");
	assert_null(strstr(rig_error(), pid));
}

static void a_second_binding_by_who_cannot_be_seen_is_said_to_be_that(void **state)
{
	(void)state;
	kernel.fail_nr = 118;
	kernel.fail_errno = EINVAL;
	assert_int_equal(attempt(RIG_PCI_IOMMUFD), -EBUSY);
	says("a process of another user");
}

/* -- auto -- */

/* In a container that has one way's nodes, the other's absence is no reason. */
static void of_two_ways_the_one_that_is_there_is_told(void **state)
{
	(void)state;
	kernel.no_iommu_node = true;
	kernel.viable = false;
	assert_int_equal(attempt(RIG_PCI_ANY), -EBUSY);
	says("group 12 is not viable");
	assert_null(strstr(rig_error(), "iommufd: "));
	assert_null(strstr(rig_error(), "/dev/iommu"));
}

static void of_two_ways_that_are_not_there_both_are_told(void **state)
{
	(void)state;
	kernel.no_iommu_node = true;
	kernel.fail_path = "/dev/vfio/vfio";
	kernel.fail_path_errno = ENOENT;
	assert_int_equal(attempt(RIG_PCI_ANY), -ENOENT);
	says("opening /dev/vfio/vfio");
	says("and through iommufd: ");
	says("opening /dev/iommu");
}

static void a_node_that_is_closed_is_told_where_the_other_way_is_not_there(void **state)
{
	(void)state;
	cdev_forbidden();
	kernel.fail_nr = 101; /* no type1 */
	kernel.fail_errno = EINVAL;
	assert_int_equal(attempt(RIG_PCI_ANY), -EACCES);
	says("/dev/vfio/devices/vfio0");
}

/* -- Memory -- */

static const struct rig_spec type1 = {
        .kind = RIG_SPEC_PCI, .path = FAKE_KERNEL_BDF0, .transport = RIG_PCI_TYPE1};

static void memory_that_could_not_be_mapped_is_explained_by_the_limit(void **state)
{
	char why[1024] = "mapping";

	(void)state;
	little_to_lock();
	rig_explain_memory(kernel.root, &type1, -EIO, why, sizeof(why));
	assert_string_equal(why, "mapping");
	rig_explain_memory(kernel.root, &type1, -ENOMEM, why, sizeof(why));
	assert_int_equal(strncmp(why, "mapping; ", 9), 0);
	assert_non_null(strstr(why, "limit 512 KiB, needed 65536 KiB"));
	assert_null(strchr(why, '\n'));
}

static void a_limit_that_will_be_met_later_is_told_at_the_open(void **state)
{
	(void)state;
	rig_explain_limit(kernel.root, &type1, &log_all);
	assert_string_equal(logged, "");
	file("/proc/self/status", USER);
	file("/proc/self/limits", LIMIT("8388608"));
	rig_explain_limit(kernel.root, &type1, &log_all);
	assert_non_null(strstr(logged, "limit 8192 KiB, needed 65536 KiB"));
}

/* -- The token of a virtual function's owner -- */

static void the_owners_token_opens_a_virtual_function(void **state)
{
	static const enum rig_pci_transport ways[] = {RIG_PCI_TYPE1, RIG_PCI_IOMMUFD, RIG_PCI_ANY};
	struct rig_kernel_want want = {.bdf = FAKE_KERNEL_BDF0, .token = TOKEN};
	struct rig_pci *f;

	(void)state;
	owned_virtual();
	kernel.binds_token = true;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		want.which = ways[i];
		if (open_explained(&want, &f))
			fail_msg("%s", rig_error());
		rig_pci_close(f);
	}
	assert_int_equal(kernel.function[0].tokens, 0); /* only a physical function's owner sets one */
}

static void another_token_is_refused_and_said_to_be_another(void **state)
{
	struct rig_kernel_want want = {
	        .bdf = FAKE_KERNEL_BDF0, .token = "00000000-0000-0000-0000-000000000000"};
	struct rig_pci *f;

	(void)state;
	owned_virtual();
	kernel.binds_token = true;
	for (want.which = RIG_PCI_IOMMUFD; want.which <= RIG_PCI_TYPE1; want.which++) {
		assert_int_equal(open_explained(&want, &f), -EACCES);
		says("with the token given");
	}
}

static void a_kernel_whose_nodes_take_no_token_is_driven_through_type1(void **state)
{
	struct rig_kernel_want want = {.bdf = FAKE_KERNEL_BDF0, .token = TOKEN, .which = RIG_PCI_IOMMUFD};
	struct rig_pci *f;

	(void)state;
	owned_virtual();
	assert_int_equal(open_explained(&want, &f), -ENOTSUP);
	says("transport=type1");
	want.which = RIG_PCI_ANY;
	assert_int_equal(open_explained(&want, &f), 0);
	assert_string_equal(rig_pci_info(f)->transport, "type1");
	rig_pci_close(f);
}

static void the_owner_of_a_physical_function_sets_the_token(void **state)
{
	static const unsigned char uuid[16] = {0xbd, 0x8d, 0x9d, 0x2b, 0x5a, 0x5f, 0x4f, 0x5a, 0xa2, 0x11,
	        0xf5, 0x91, 0x51, 0x4b, 0xa1, 0xf3};
	struct rig_kernel_want want = {.bdf = FAKE_KERNEL_BDF0, .token = TOKEN, .which = RIG_PCI_TYPE1};
	struct rig_pci *f;

	(void)state;
	assert_int_equal(open_explained(&want, &f), 0);
	assert_int_equal(kernel.function[0].tokens, 1);
	assert_memory_equal(kernel.function[0].uuid, uuid, sizeof(uuid));
	rig_pci_close(f);
	kernel.fail_nr = 117;
	kernel.fail_errno = ENOTTY;
	assert_int_equal(open_explained(&want, &f), -ENOTSUP);
	says("takes no token");
}

/* What the kernel says of one that is neither, and of a virtual one whose physical one is not VFIO's. */
static void a_token_that_the_kernel_does_not_want_is_said_to_be_too_much(void **state)
{
	struct rig_kernel_want want = {.bdf = FAKE_KERNEL_BDF0, .token = TOKEN, .which = RIG_PCI_TYPE1};
	struct rig_pci *f;

	(void)state;
	kernel.fail_nr = 106;
	kernel.fail_errno = EINVAL;
	assert_int_equal(open_explained(&want, &f), -EINVAL);
	says("leave vf-token out");
}

static void a_token_has_one_form(void **state)
{
	unsigned char uuid[16];

	(void)state;
	assert_true(rig_pci_token_parse(TOKEN, uuid));
	assert_int_equal(uuid[0], 0xbd);
	assert_int_equal(uuid[15], 0xf3);
	assert_true(rig_pci_token_parse("BD8D9D2B-5A5F-4F5A-A211-F591514BA1F3", uuid));
	assert_int_equal(uuid[3], 0x2b);
	assert_false(rig_pci_token_parse("", uuid));
	assert_false(rig_pci_token_parse("bd8d9d2b-5a5f-4f5a-a211-f591514ba1f", uuid));
	assert_false(rig_pci_token_parse(TOKEN "0", uuid));
	assert_false(rig_pci_token_parse("bd8d9d2b5a5f-4f5a-a211-f591514ba1f3-", uuid));
	assert_false(rig_pci_token_parse("xd8d9d2b-5a5f-4f5a-a211-f591514ba1f3", uuid));
}

static void one_reason_of_both_ways_is_said_once(void **state)
{
	const char *again;

	(void)state;
	no_protection();
	assert_int_equal(attempt(RIG_PCI_ANY), -ENODEV);
	again = strstr(rig_error(), "given out without an IOMMU");
	assert_non_null(again);
	assert_null(strstr(again + 1, "given out without an IOMMU"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_refusal_carries_every_word_that_the_doctor_says_of_the_same_tree),
	        KERNEL_TEST(on_a_machine_that_is_well_the_doctor_finds_nothing_in_the_way),
	        KERNEL_TEST(each_errno_of_a_node_has_its_remedy_for_a_host_and_a_container),
	        KERNEL_TEST(this_process_is_not_called_another_one),
	        KERNEL_TEST(a_second_binding_by_who_cannot_be_seen_is_said_to_be_that),
	        KERNEL_TEST(of_two_ways_the_one_that_is_there_is_told),
	        KERNEL_TEST(of_two_ways_that_are_not_there_both_are_told),
	        KERNEL_TEST(a_node_that_is_closed_is_told_where_the_other_way_is_not_there),
	        KERNEL_TEST(memory_that_could_not_be_mapped_is_explained_by_the_limit),
	        KERNEL_TEST(a_limit_that_will_be_met_later_is_told_at_the_open),
	        KERNEL_TEST(the_owners_token_opens_a_virtual_function),
	        KERNEL_TEST(another_token_is_refused_and_said_to_be_another),
	        KERNEL_TEST(a_kernel_whose_nodes_take_no_token_is_driven_through_type1),
	        KERNEL_TEST(the_owner_of_a_physical_function_sets_the_token),
	        KERNEL_TEST(a_token_that_the_kernel_does_not_want_is_said_to_be_too_much),
	        KERNEL_TEST(a_token_has_one_form),
	        KERNEL_TEST(one_reason_of_both_ways_is_said_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
