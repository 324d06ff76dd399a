/* SPDX-License-Identifier: MIT */
/* rigctl doctor, bind, reset and regs: exit statuses, JSON, dry runs, dumps. */
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "machine_tree.h"
#include "system.h"

static struct tree tree;

static int setup(void **state)
{
	(void)state;
	tree_init(&tree);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	tree_fini(&tree);
	return 0;
}

static void doctor(struct sys_result *result, int status, const char *arguments)
{
	char command[256];

	snprintf(command, sizeof(command), "rigctl doctor --root %s%s%s", tree.root, *arguments ? " " : "",
	        arguments);
	sys_run(result, command);
	assert_string_equal(result->err, "");
	assert_int_equal(result->status, status);
}

static void assert_out(const struct sys_result *result, const char *words)
{
	if (!strstr(result->out, words))
		fail_msg("not said: %s\n%s", words, result->out);
}

static void the_exit_status_is_the_verdict(void **state)
{
	struct sys_result result;

	(void)state;
	doctor(&result, 0, TREE_BDF);
	assert_out(&result, TREE_BDF ": usable\n");
	tree_mate(&tree, "snd_hda_intel");
	doctor(&result, 1, TREE_BDF);
	assert_out(&result, "fix   group-mate: ");
	assert_out(&result, "      $ rigctl bind " TREE_MATE);
	assert_out(&result, TREE_BDF ": usable after the commands shown\n");
	tree_file(&tree, TREE_GROUP "/reserved_regions", "0x00000000bf7f0000 0x00000000bf7fffff direct\n");
	doctor(&result, 2, TREE_BDF);
	assert_out(&result, TREE_BDF ": not usable here\n");
	/* The worst first. */
	assert_int_equal(strncmp(result.out, "stop  rmrr: ", 12), 0);
	doctor(&result, 0, "");
	assert_out(&result, "this machine: usable\n");
}

static void bad_usage_says_so_in_one_line(void **state)
{
	struct sys_result result;

	(void)state;
	sys_run(&result, "rigctl doctor --root /nowhere/at/all");
	sys_assert_failed(&result, 2, "no such folder");
	sys_run(&result, "rigctl doctor --pin 0");
	sys_assert_failed(&result, 2, "--pin 0: a size");
	sys_run(&result, "rigctl doctor --mask 65");
	sys_assert_failed(&result, 2, "1 to 64 bits");
	sys_run(&result, "rigctl doctor --what");
	sys_assert_failed(&result, 2, "--what");
	sys_run(&result, "rigctl doctor 65:00.0");
	assert_int_equal(result.status, 2);
}

static struct json_object *member(struct json_object *o, const char *name)
{
	struct json_object *value;

	if (!json_object_object_get_ex(o, name, &value))
		fail_msg("no member %s", name);
	return value;
}

static void findings_as_json_are_an_object_of_the_same(void **state)
{
	struct json_object *o, *first;
	struct sys_result result;

	(void)state;
	tree_bind(&tree, TREE_BDF, "nouveau");
	doctor(&result, 1, "--json " TREE_BDF);
	o = json_tokener_parse(result.out);
	assert_non_null(o);
	assert_string_equal(json_object_get_string(member(o, "device")), TREE_BDF);
	assert_int_equal(json_object_get_int(member(o, "status")), 1);
	first = json_object_array_get_idx(member(o, "findings"), 0);
	assert_string_equal(json_object_get_string(member(first, "id")), "driver");
	assert_string_equal(json_object_get_string(member(first, "severity")), "fix");
	assert_string_equal(json_object_get_string(member(first, "content")), "nouveau");
	assert_string_equal(json_object_get_string(json_object_array_get_idx(member(first, "commands"), 0)),
	        "rigctl bind " TREE_BDF);
	json_object_put(o);
}

static void sim_needs_its_files_and_says_where_they_are(void **state)
{
	struct sys_result result;

	(void)state;
	sys_run(&result, "rigctl doctor sim");
	sys_assert_done(&result);
	assert_out(&result, "rvx1-model");
	assert_out(&result, "sim: usable\n");
	sys_run(&result, "rigctl doctor sim:firmware=/nowhere/at/all");
	assert_int_equal(result.status, 1);
	assert_out(&result, "/nowhere/at/all");
	sys_run(&result, "rigctl doctor vfio-user:/nowhere/at/all");
	assert_int_equal(result.status, 1);
}

static void a_captured_machine_says_what_the_machine_says(void **state)
{
	struct sys_result here, there;
	char command[512];

	(void)state;
	snprintf(command, sizeof(command), SYS_SOURCE "/scripts/capture-machine %s",
	        sys_path("machine.tar.gz"));
	if (system(command) != 0)
		fail_msg("%s", command);
	snprintf(command, sizeof(command), "mkdir %s && tar -xzf %s -C %s", sys_path("machine"),
	        sys_path("machine.tar.gz"), sys_path("machine"));
	if (system(command) != 0)
		fail_msg("%s", command);
	sys_run(&here, "rigctl doctor --pin 1K");
	snprintf(command, sizeof(command), "rigctl doctor --pin 1K --root %s", sys_path("machine"));
	sys_run(&there, command);
	assert_int_equal(here.status, there.status);
	assert_string_equal(here.out, there.out);
}

/* -- bind -- */

static void a_dry_run_prints_what_would_be_written(void **state)
{
	struct sys_result result;
	char command[256];

	(void)state;
	tree_bind(&tree, TREE_BDF, "nouveau");
	tree_mate(&tree, "snd_hda_intel");
	tree_file(&tree, TREE_DRIVERS "vfio-pci/bind", "");
	snprintf(command, sizeof(command), "rigctl bind --root %s --dry-run --group --user 1000 " TREE_BDF,
	        tree.root);
	sys_run(&result, command);
	sys_assert_done(&result);
	assert_out(&result, "echo vfio-pci > " TREE_DEVICES TREE_BDF "/driver_override\n"
	                    "echo " TREE_BDF " > " TREE_DRIVERS "nouveau/unbind\n"
	                    "echo " TREE_BDF " > /sys/bus/pci/drivers_probe\n");
	assert_out(&result, "echo " TREE_MATE " > " TREE_DRIVERS "snd_hda_intel/unbind\n");
	assert_out(&result, "chown 1000 /dev/vfio/12\n");
	assert_out(&result, "# " TREE_BDF ": nouveau to vfio-pci\n");
	tree_assert(&tree, TREE_BDF, "driver group-mate");
}

static void a_dry_run_of_unbind_prints_for_the_whole_group(void **state)
{
	struct sys_result result;
	char command[256];

	(void)state;
	tree_bind(&tree, TREE_BDF, "vfio-pci");
	tree_mate(&tree, "vfio-pci");
	snprintf(command, sizeof(command), "rigctl unbind --root %s --dry-run --group " TREE_BDF, tree.root);
	sys_run(&result, command);
	sys_assert_done(&result);
	assert_out(&result, "echo " TREE_BDF " > " TREE_DRIVERS "vfio-pci/unbind\n");
	assert_out(&result, "echo " TREE_MATE " > " TREE_DRIVERS "vfio-pci/unbind\n");
	assert_out(&result, "echo " TREE_BDF " > /sys/bus/pci/drivers_probe\n");
	assert_out(&result, "echo " TREE_MATE " > /sys/bus/pci/drivers_probe\n");
	tree_assert(&tree, TREE_BDF, "");
}

/* The tree's files take what is written, and no kernel acts on it. */
static void a_bind_that_does_not_happen_is_a_failure(void **state)
{
	struct sys_result result;
	char command[256];

	(void)state;
	tree_bind(&tree, TREE_BDF, "nouveau");
	tree_file(&tree, TREE_DRIVERS "vfio-pci/bind", "");
	snprintf(command, sizeof(command), "rigctl bind --root %s " TREE_BDF, tree.root);
	sys_run(&result, command);
	sys_assert_failed(&result, 1, "vfio-pci did not take " TREE_BDF);
	sys_run(&result, "rigctl bind");
	sys_assert_failed(&result, 2, "an ADDRESS");
	sys_run(&result, "rigctl bind 0000:65:00.0 --user nobody-has-this-name");
	sys_assert_failed(&result, 2, "no such user");
	sys_run(&result, "rigctl unbind 0000:65:00.0 --user 1000");
	sys_assert_failed(&result, 2, "--user");
}

/* -- reset and regs -- */

static void a_reset_says_how_long_it_took(void **state)
{
	struct sys_result result;

	(void)state;
	sys_run(&result, "rigctl reset sim");
	sys_assert_done(&result);
	assert_out(&result, "sim over vfio-user: reset, ready after ");
	sys_run(&result, "rigctl reset sim:fault=refuse-reset");
	assert_int_equal(result.status, 1);
	sys_run(&result, "rigctl reset");
	sys_assert_failed(&result, 2, "a DEVICE");
}

static void registers_have_names_and_two_dumps_a_difference(void **state)
{
	struct sys_result result;

	(void)state;
	sys_run(&result, "rigctl regs sim ID CP_STATE QUEUE1");
	sys_assert_done(&result);
	assert_out(&result, "\nID                       0 0x00000 4 0x31585652\n");
	assert_out(&result, "\nQUEUE1.RING              0 0x00440 8 0x0000000000000000\n");
	assert_null(strstr(result.out, "QUEUE0"));
	sys_run(&result, "rigctl regs sim:mem=128M --save a.regs");
	sys_assert_done(&result);
	sys_run(&result, "rigctl regs sim:mem=256M --save b.regs");
	sys_assert_done(&result);
	sys_run(&result, "rigctl regs --diff a.regs b.regs MEMORY_BYTES ID");
	assert_int_equal(result.status, 1);
	assert_string_equal(result.err, "");
	assert_string_equal(
	        result.out, "MEMORY_BYTES             0x0000000008000000 -> 0x0000000010000000\n");
	sys_run(&result, "rigctl regs --diff a.regs b.regs ID");
	sys_assert_done(&result);
	assert_string_equal(result.out, "no difference\n");
	sys_run(&result, "rigctl regs --diff a.regs /nowhere/at/all");
	sys_assert_failed(&result, 2, "/nowhere/at/all");
	sys_run(&result, "rigctl regs --help");
	assert_out(&result, "0 no difference, 1 there is one, 2 trouble");
}

static void dumps_and_names_that_are_none_are_refused(void **state)
{
	struct sys_result result;

	(void)state;
	sys_run(&result, "rigctl regs sim NO_SUCH_REGISTER");
	sys_assert_failed(&result, 2, "no register of that name");
	sys_write_file("bad.regs", "hello\n", 6);
	sys_run(&result, "rigctl regs --diff bad.regs bad.regs");
	sys_assert_failed(&result, 2, "line 1 is no line of a dump");
	sys_run(&result, "rigctl regs --diff bad.regs");
	sys_assert_failed(&result, 2, "--diff");
	sys_run(&result, "rigctl regs sim --save /nowhere/at/all");
	sys_assert_failed(&result, 1, "/nowhere/at/all");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(the_exit_status_is_the_verdict),
	        TEST(bad_usage_says_so_in_one_line),
	        TEST(findings_as_json_are_an_object_of_the_same),
	        TEST(sim_needs_its_files_and_says_where_they_are),
	        TEST(a_captured_machine_says_what_the_machine_says),
	        TEST(a_dry_run_prints_what_would_be_written),
	        TEST(a_dry_run_of_unbind_prints_for_the_whole_group),
	        TEST(a_bind_that_does_not_happen_is_a_failure),
	        TEST(a_reset_says_how_long_it_took),
	        TEST(registers_have_names_and_two_dumps_a_difference),
	        TEST(dumps_and_names_that_are_none_are_refused),
	};

	return cmocka_run_group_tests(tests, sys_setup, sys_teardown);
}
