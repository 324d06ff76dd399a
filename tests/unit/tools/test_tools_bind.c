/* SPDX-License-Identifier: MIT */
/* rigctl bind on a tree: what is written, in which order, and that a failure leaves all as before. */
#include "machine_tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bind.h"

enum { RECORD = 4096 };

/* A kernel, as far as files show: an unbind takes the driver's link away, a probe follows driver_override. */
struct fixture {
	struct tree tree;
	struct bind_io io;
	struct bind bind;
	char record[RECORD];
	unsigned writes, fail_at; /* the write that fails, from 1; 0: none */
	unsigned owns, own_fails; /* likewise of the changes of owner */
	uid_t owner[2];           /* of the group's node and the function's own */
	const char *probe_fails;  /* this function's probe finds no driver; NULL: none */
	const char *native;       /* the driver that a probe without override finds */
};

static void record(struct fixture *f, const char *path, const char *text)
{
	const char *last = strrchr(path, '/');

	/* Enough of the path to tell, without what all have in common. */
	while (last > path && last[-1] != '/')
		last--;
	snprintf(f->record + strlen(f->record), RECORD - strlen(f->record), "%.*s>%s ",
	        (int)strcspn(text, "\n"), text, last);
}

static void override_of(struct fixture *f, const char *bdf, char *to, size_t bytes)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s" TREE_DEVICES "%s/driver_override", f->tree.root, bdf);
	file = fopen(path, "re");
	if (!file || !fgets(to, (int)bytes, file))
		*to = 0;
	if (file)
		(void)fclose(file);
	to[strcspn(to, "\n")] = 0;
	if (!strcmp(to, "(null)"))
		*to = 0;
}

static void probe(struct fixture *f, const char *bdf)
{
	char driver[64];

	override_of(f, bdf, driver, sizeof(driver));
	if (f->probe_fails && !strcmp(f->probe_fails, bdf) && *driver)
		return;
	if (!*driver && f->native)
		snprintf(driver, sizeof(driver), "%s", f->native);
	if (*driver)
		tree_bind(&f->tree, bdf, driver);
}

static int do_write(void *arg, const char *path, const char *text)
{
	struct fixture *f = arg;
	const char *name = strrchr(path, '/') + 1;
	char driver[64];

	record(f, path, text);
	if (++f->writes == f->fail_at)
		return -EIO;
	if (!strcmp(name, "driver_override"))
		tree_file(&f->tree, path, text);
	else if (!strcmp(name, "unbind"))
		tree_bind(&f->tree, text, "");
	else if (!strcmp(name, "drivers_probe"))
		probe(f, text);
	else if (sscanf(path, TREE_DRIVERS "%63[^/]/bind", driver) == 1)
		tree_bind(&f->tree, text, driver);
	return 0;
}

static int do_own(void *arg, const char *path, uid_t user, uid_t *was)
{
	struct fixture *f = arg;
	uid_t *owner = &f->owner[strstr(path, "/devices/") != NULL];

	if (++f->owns == f->own_fails)
		return -EPERM;
	*was = *owner;
	*owner = user;
	snprintf(f->record + strlen(f->record), RECORD - strlen(f->record), "chown %u %s ", (unsigned)user,
	        path);
	return 0;
}

static bool is_busy(void *arg, const char *disk)
{
	(void)arg;
	return strcmp(disk, "sdz") == 0;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	if (!f)
		return -1;
	tree_init(&f->tree);
	tree_bind(&f->tree, TREE_BDF, "nouveau");
	tree_attribute(&f->tree, TREE_BDF, "driver_override", "(null)\n");
	f->native = "nouveau";
	f->io = (struct bind_io){
	        .root = f->tree.root, .write = do_write, .own = do_own, .busy = is_busy, .arg = f};
	f->bind = (struct bind){.io = &f->io, .driver = "vfio-pci"};
	tree_file(&f->tree, TREE_DRIVERS "vfio-pci/bind", "");
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	tree_fini(&f->tree);
	free(f);
	return 0;
}

static void assert_driver(struct fixture *f, const char *bdf, const char *driver)
{
	char path[256], target[256] = "";

	snprintf(path, sizeof(path), "%s" TREE_DEVICES "%s/driver", f->tree.root, bdf);
	if (readlink(path, target, sizeof(target) - 1) < 0)
		*target = 0;
	assert_string_equal(*target ? strrchr(target, '/') + 1 : "", driver);
}

static void assert_refused(struct fixture *f, int err, const char *why)
{
	assert_int_equal(bind_function(&f->bind, TREE_BDF), err);
	if (!strstr(f->bind.why, why))
		fail_msg("it says: %s", f->bind.why);
	assert_string_equal(f->record, "");
}

static void one_function_is_bound_by_its_override_alone(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(bind_function(&f->bind, TREE_BDF), 0);
	assert_string_equal(f->record, "vfio-pci>" TREE_BDF "/driver_override " TREE_BDF
	                               ">nouveau/unbind " TREE_BDF ">pci/drivers_probe ");
	assert_driver(f, TREE_BDF, "vfio-pci");
	assert_int_equal(f->bind.count, 1);
	assert_string_equal(f->bind.member[0].driver, "nouveau");
	assert_string_equal(f->bind.note, "");
}

static void an_address_of_a_long_domain_or_in_capitals_is_written_as_sysfs_names_it(void **state)
{
	struct fixture *f = *state;

	tree_function(&f->tree, "pci10000:e0", "10000:e1:00.0", "nvme", 13);
	assert_int_equal(bind_function(&f->bind, "00010000:E1:00.0"), 0);
	assert_driver(f, "10000:e1:00.0", "vfio-pci");
	assert_string_equal(f->bind.member[0].bdf, "10000:e1:00.0");
	assert_int_equal(unbind_function(&f->bind, "10000:E1:00.0"), 0);
	assert_string_equal(f->bind.member[0].bdf, "10000:e1:00.0");
	assert_int_equal(bind_function(&f->bind, "65:00.0"), -EINVAL);
	assert_non_null(strstr(f->bind.why, "no PCI address"));
}

static void what_hangs_behind_a_vmd_is_refused_and_said_so(void **state)
{
	struct fixture *f = *state;

	tree_function(&f->tree, "pci0000:64", "0000:64:05.5", "vmd", 13);
	tree_function(&f->tree, "pci0000:64/0000:64:05.5/pci10000:e0", "10000:e1:00.0", "nvme", 13);
	assert_int_equal(bind_function(&f->bind, "10000:e1:00.0"), -EBUSY);
	assert_non_null(strstr(f->bind.why, "Intel VMD"));
	assert_non_null(strstr(f->bind.why, "0000:64:05.5"));
	assert_string_equal(f->record, "");
}

static void what_is_bound_already_is_left_alone(void **state)
{
	struct fixture *f = *state;

	tree_bind(&f->tree, TREE_BDF, "vfio-pci");
	assert_int_equal(bind_function(&f->bind, TREE_BDF), 0);
	assert_int_equal(f->bind.count, 0);
	assert_string_equal(f->record, "");
}

/* For every k, the k-th write fails: the function is with its old driver again, without an override. */
static void a_write_that_fails_leaves_all_as_before(void **state)
{
	struct fixture *f = *state;
	char override[64];

	tree_mate(&f->tree, "nouveau");
	f->bind.group = true;
	for (unsigned k = 1; k <= 6; k++) {
		f->writes = 0;
		f->fail_at = k;
		assert_int_equal(bind_function(&f->bind, TREE_BDF), -EIO);
		assert_null(strstr(f->bind.why, "and "));
		assert_driver(f, TREE_BDF, "nouveau");
		assert_driver(f, TREE_MATE, "nouveau");
		override_of(f, TREE_BDF, override, sizeof(override));
		assert_string_equal(override, "");
		override_of(f, TREE_MATE, override, sizeof(override));
		assert_string_equal(override, "");
	}
	f->writes = f->fail_at = 0;
	assert_int_equal(bind_function(&f->bind, TREE_BDF), 0);
	assert_int_equal(f->writes, 6);
}

static void a_driver_that_does_not_take_the_function_is_undone(void **state)
{
	struct fixture *f = *state;

	f->probe_fails = TREE_BDF;
	assert_int_equal(bind_function(&f->bind, TREE_BDF), -EIO);
	assert_non_null(strstr(f->bind.why, "did not take " TREE_BDF));
	assert_driver(f, TREE_BDF, "nouveau");
}

static void a_mate_that_fails_undoes_the_others(void **state)
{
	struct fixture *f = *state;

	tree_mate(&f->tree, "snd_hda_intel");
	f->probe_fails = TREE_MATE;
	f->bind.group = true;
	assert_int_equal(bind_function(&f->bind, TREE_BDF), -EIO);
	assert_driver(f, TREE_BDF, "nouveau");
	assert_driver(f, TREE_MATE, "snd_hda_intel");
}

static void what_could_not_be_undone_is_said(void **state)
{
	struct fixture *f = *state;

	f->probe_fails = TREE_BDF;
	f->fail_at = 5; /* override, unbind, probe, override, bind */
	assert_int_equal(bind_function(&f->bind, TREE_BDF), -EIO);
	assert_non_null(strstr(f->bind.why, TREE_BDF " is now with no driver instead of nouveau"));
}

static void a_group_is_bound_whole_but_its_bridges(void **state)
{
	struct fixture *f = *state;

	tree_mate(&f->tree, "snd_hda_intel");
	tree_function(&f->tree, "pci0000:64", "0000:64:02.0", "pcieport", 12);
	tree_attribute(&f->tree, "0000:64:02.0", "class", "0x060400\n");
	f->bind.group = true;
	assert_int_equal(bind_function(&f->bind, TREE_BDF), 0);
	assert_int_equal(f->bind.count, 2);
	assert_driver(f, TREE_BDF, "vfio-pci");
	assert_driver(f, TREE_MATE, "vfio-pci");
	assert_driver(f, "0000:64:02.0", "pcieport");
}

static void mates_that_stay_in_the_way_are_noted(void **state)
{
	struct fixture *f = *state;

	tree_mate(&f->tree, "snd_hda_intel");
	assert_int_equal(bind_function(&f->bind, TREE_BDF), 0);
	assert_string_equal(f->bind.note, "group mates are in the way: " TREE_MATE " is with snd_hda_intel");
	assert_driver(f, TREE_MATE, "snd_hda_intel");
}

static void the_nodes_are_handed_to_a_user(void **state)
{
	struct fixture *f = *state;

	f->bind.hand = true;
	f->bind.user = 1000;
	assert_int_equal(bind_function(&f->bind, TREE_BDF), 0);
	assert_non_null(strstr(f->record, "chown 1000 /dev/vfio/12 chown 1000 /dev/vfio/devices/vfio0 "));
}

/* Also of what was bound already, whose node stays. */
static void a_node_that_cannot_be_handed_over_leaves_all_as_before(void **state)
{
	struct fixture *f = *state;

	f->bind.hand = true;
	f->bind.user = 1000;
	for (unsigned k = 1; k <= 2; k++) {
		f->owner[0] = f->owner[1] = 7;
		f->owns = 0;
		f->own_fails = k;
		assert_int_equal(bind_function(&f->bind, TREE_BDF), -EPERM);
		assert_non_null(
		        strstr(f->bind.why, k == 1 ? "giving /dev/vfio/12 " : "giving /dev/vfio/devices/"));
		assert_null(strstr(f->bind.why, "and "));
		assert_int_equal(f->owner[0], 7);
		assert_int_equal(f->owner[1], 7);
		assert_driver(f, TREE_BDF, "nouveau");
	}
}

static void a_dry_run_writes_what_a_run_would(void **state)
{
	struct fixture *f = *state;
	char dry[RECORD];

	f->io.dry = true;
	f->fail_at = 0;
	tree_mate(&f->tree, "nouveau");
	f->bind.group = true;
	/* Recorded, and not done. */
	f->probe_fails = TREE_BDF;
	assert_int_equal(bind_function(&f->bind, TREE_BDF), 0);
	strcpy(dry, f->record);
	tree_bind(&f->tree, TREE_BDF, "nouveau");
	tree_bind(&f->tree, TREE_MATE, "nouveau");
	tree_attribute(&f->tree, TREE_BDF, "driver_override", "(null)\n");
	tree_attribute(&f->tree, TREE_MATE, "driver_override", "(null)\n");
	f->io.dry = false;
	f->probe_fails = NULL;
	f->record[0] = 0;
	assert_int_equal(bind_function(&f->bind, TREE_BDF), 0);
	assert_string_equal(dry, f->record);
}

static void a_mounted_disk_is_refused_before_anything_is_written(void **state)
{
	struct fixture *f = *state;

	tree_disk(&f->tree, TREE_BDF, "sda1", "8:1\n");
	assert_refused(f, -EBUSY, "the machine works through " TREE_BDF ": /dev/sda1 is mounted on /");
}

static void a_driver_whose_node_a_process_has_open_is_left_alone(void **state)
{
	struct fixture *f = *state;

	tree_file(&f->tree, "/proc/4711/comm", "python3\n");
	tree_node(&f->tree, "/proc/4711/fd/5", "/dev/nouveau0");
	assert_refused(f, -EBUSY, "process 4711 (python3) has /dev/nouveau0 open");
}

static void a_disk_that_somebody_holds_is_refused(void **state)
{
	struct fixture *f = *state;

	tree_disk(&f->tree, TREE_BDF, "sdz", "65:0\n");
	assert_refused(f, -EBUSY, "/dev/sdz is in use");
}

static void the_machines_network_is_refused_also_for_a_mate(void **state)
{
	struct fixture *f = *state;

	tree_mate(&f->tree, "e1000e");
	tree_interface(&f->tree, TREE_MATE, "eth0");
	f->bind.group = true;
	assert_refused(f, -EBUSY, "through " TREE_MATE ": interface eth0 has the default route");
}

static void virtual_functions_bridges_and_missing_drivers_are_refused(void **state)
{
	struct fixture *f = *state;

	tree_attribute(&f->tree, TREE_BDF, "sriov_numvfs", "2\n");
	assert_refused(f, -EBUSY, "2 virtual functions");
	tree_attribute(&f->tree, TREE_BDF, "sriov_numvfs", "0\n");
	tree_attribute(&f->tree, TREE_BDF, "class", "0x060400\n");
	assert_refused(f, -EINVAL, "bridge");
	tree_attribute(&f->tree, TREE_BDF, "class", "0x120000\n");
	tree_file(&f->tree, TREE_DRIVERS "vfio-pci", NULL);
	assert_refused(f, -ENOENT, "modprobe vfio-pci");
	f->bind.driver = "../../x";
	assert_refused(f, -ENOENT, "no driver");
}

static void an_unbind_gives_back_to_whoever_wants_it(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(bind_function(&f->bind, TREE_BDF), 0);
	f->record[0] = 0;
	assert_int_equal(unbind_function(&f->bind, TREE_BDF), 0);
	assert_string_equal(f->record,
	        ">" TREE_BDF "/driver_override " TREE_BDF ">vfio-pci/unbind " TREE_BDF ">pci/drivers_probe ");
	assert_driver(f, TREE_BDF, "nouveau");
	assert_string_equal(f->bind.member[0].driver, "nouveau");
}

/* spdk#595: the kernel would wait for the process. */
static void an_unbind_is_refused_while_a_process_has_the_function(void **state)
{
	struct fixture *f = *state;

	tree_bind(&f->tree, TREE_BDF, "vfio-pci");
	tree_file(&f->tree, "/run/rig-vfio/" TREE_BDF, "4711 (rigctl)\n");
	tree_file(&f->tree, "/proc/4711/comm", "rigctl\n");
	assert_int_equal(unbind_function(&f->bind, TREE_BDF), -EBUSY);
	assert_non_null(strstr(f->bind.why, "4711 (rigctl)"));
	assert_string_equal(f->record, "");
}

static void a_whole_group_is_given_back_but_who_was_not_taken(void **state)
{
	struct fixture *f = *state;

	tree_mate(&f->tree, "nouveau");
	tree_function(&f->tree, "pci0000:64", "0000:64:02.0", "pcieport", 12);
	tree_attribute(&f->tree, "0000:64:02.0", "class", "0x060400\n");
	f->bind.group = true;
	assert_int_equal(bind_function(&f->bind, TREE_BDF), 0);
	assert_int_equal(unbind_function(&f->bind, TREE_BDF), 0);
	assert_int_equal(f->bind.count, 2);
	assert_driver(f, TREE_BDF, "nouveau");
	assert_driver(f, TREE_MATE, "nouveau");
	assert_driver(f, "0000:64:02.0", "pcieport");
	/* One of them alone, asked for by the other. */
	f->bind.group = false;
	assert_int_equal(bind_function(&f->bind, TREE_MATE), 0);
	f->bind.group = true;
	assert_int_equal(unbind_function(&f->bind, TREE_BDF), 0);
	assert_int_equal(f->bind.count, 1);
	assert_driver(f, TREE_MATE, "nouveau");
	assert_int_equal(unbind_function(&f->bind, TREE_BDF), -EINVAL);
}

/* For every k, the k-th write fails; those of the probes are no failure. */
static void an_unbind_that_fails_leaves_the_group_with_vfio(void **state)
{
	struct fixture *f = *state;
	char override[64];

	tree_mate(&f->tree, "nouveau");
	f->bind.group = true;
	assert_int_equal(bind_function(&f->bind, TREE_BDF), 0);
	for (unsigned k = 1; k <= 4; k++) {
		f->writes = 0;
		f->fail_at = k;
		assert_int_equal(unbind_function(&f->bind, TREE_BDF), -EIO);
		assert_null(strstr(f->bind.why, "and "));
		assert_driver(f, TREE_BDF, "vfio-pci");
		assert_driver(f, TREE_MATE, "vfio-pci");
		override_of(f, TREE_BDF, override, sizeof(override));
		assert_string_equal(override, "vfio-pci");
		override_of(f, TREE_MATE, override, sizeof(override));
		assert_string_equal(override, "vfio-pci");
	}
	f->writes = f->fail_at = 0;
	assert_int_equal(unbind_function(&f->bind, TREE_BDF), 0);
	assert_int_equal(f->writes, 6);
}

static void a_mate_that_a_process_has_keeps_the_group(void **state)
{
	struct fixture *f = *state;

	tree_mate(&f->tree, "vfio-pci");
	tree_bind(&f->tree, TREE_BDF, "vfio-pci");
	tree_file(&f->tree, "/run/rig-vfio/" TREE_MATE, "4711 (rigctl)\n");
	tree_file(&f->tree, "/proc/4711/comm", "rigctl\n");
	f->bind.group = true;
	assert_int_equal(unbind_function(&f->bind, TREE_BDF), -EBUSY);
	assert_string_equal(f->record, "");
}

/* Whoever wrote its override: it is not pulled away from a machine that works through it. */
static void what_another_driver_has_by_its_override_is_not_pulled_from_under_a_mount(void **state)
{
	struct fixture *f = *state;

	tree_attribute(&f->tree, TREE_BDF, "driver_override", "nouveau\n");
	tree_disk(&f->tree, TREE_BDF, "sda1", "8:1\n");
	assert_int_equal(unbind_function(&f->bind, TREE_BDF), -EBUSY);
	assert_string_equal(f->record, "");
}

static void a_function_that_bind_did_not_take_is_not_unbound(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(unbind_function(&f->bind, TREE_BDF), -EINVAL);
	assert_string_equal(f->record, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(one_function_is_bound_by_its_override_alone),
	        TEST(an_address_of_a_long_domain_or_in_capitals_is_written_as_sysfs_names_it),
	        TEST(what_hangs_behind_a_vmd_is_refused_and_said_so),
	        TEST(what_is_bound_already_is_left_alone),
	        TEST(a_write_that_fails_leaves_all_as_before),
	        TEST(a_driver_that_does_not_take_the_function_is_undone),
	        TEST(a_mate_that_fails_undoes_the_others),
	        TEST(what_could_not_be_undone_is_said),
	        TEST(a_group_is_bound_whole_but_its_bridges),
	        TEST(mates_that_stay_in_the_way_are_noted),
	        TEST(the_nodes_are_handed_to_a_user),
	        TEST(a_node_that_cannot_be_handed_over_leaves_all_as_before),
	        TEST(a_dry_run_writes_what_a_run_would),
	        TEST(a_mounted_disk_is_refused_before_anything_is_written),
	        TEST(a_driver_whose_node_a_process_has_open_is_left_alone),
	        TEST(a_disk_that_somebody_holds_is_refused),
	        TEST(the_machines_network_is_refused_also_for_a_mate),
	        TEST(virtual_functions_bridges_and_missing_drivers_are_refused),
	        TEST(an_unbind_gives_back_to_whoever_wants_it),
	        TEST(an_unbind_is_refused_while_a_process_has_the_function),
	        TEST(a_whole_group_is_given_back_but_who_was_not_taken),
	        TEST(an_unbind_that_fails_leaves_the_group_with_vfio),
	        TEST(a_mate_that_a_process_has_keeps_the_group),
	        TEST(what_another_driver_has_by_its_override_is_not_pulled_from_under_a_mount),
	        TEST(a_function_that_bind_did_not_take_is_not_unbound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
