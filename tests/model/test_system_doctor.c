/* SPDX-License-Identifier: MIT */
/* rigctl doctor, bind, reset and regs: exit statuses, JSON, dry runs, dumps. */
#include <json-c/json.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "machine_tree.h"
#include "system.h"
#include "vfu.h"

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
	assert_out(&result, "fix   socket: no device process listens there\n");
}

/* -- Device processes -- */

static void ask_served(struct sys_result *result, int status)
{
	char command[256];

	snprintf(command, sizeof(command), "rigctl doctor %s", sys_served());
	sys_run(result, command);
	assert_string_equal(result->err, "");
	assert_int_equal(result->status, status);
}

static void a_device_process_is_asked_for_its_ids(void **state)
{
	struct sys_process model;
	struct sys_result result;

	(void)state;
	sys_serve(&model, "");
	ask_served(&result, 0);
	assert_out(&result, ": function 1234:5258\n");
	sys_assert_works(sys_served());
	sys_serve_end(&model);
}

static struct sockaddr_un served_address(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", sys_path("board.sock"));
	return address;
}

static int new_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	return fd;
}

static int new_client(void)
{
	const struct sockaddr_un address = served_address();
	int fd = new_socket();

	assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static int new_server(void)
{
	const struct sockaddr_un address = served_address();
	int fd = new_socket();

	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

/* One that hangs up, one that lets wait, and one that stopped listening. */
static void a_device_process_that_serves_another_client_is_busy_and_not_dead(void **state)
{
	struct sys_process model;
	struct sys_result result;
	int server, client, served;

	(void)state;
	sys_serve(&model, "");
	client = new_client();
	ask_served(&result, 1);
	assert_out(&result, "fix   socket-busy: ");
	close(client);
	sys_serve_end(&model);

	server = new_server();
	client = new_client();
	served = accept(server, NULL, NULL);
	assert_true(served >= 0);
	ask_served(&result, 1);
	assert_out(&result, "fix   socket-busy: ");
	close(server);
	ask_served(&result, 1);
	assert_out(&result, "fix   socket-busy: ");
	assert_out(&result, "ECONNREFUSED");
	close(served);
	close(client);
	assert_int_equal(unlink(sys_path("board.sock")), 0);
}

/* Bound by a relative name, in a folder below, and not listening. */
static int named_from_its_folder(const char *name)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), here = open(".", O_PATH | O_CLOEXEC);

	assert_true(fd >= 0 && here >= 0);
	assert_int_equal(mkdir(sys_path("below"), 0700), 0);
	assert_int_equal(chdir(sys_path("below")), 0);
	snprintf(at.sun_path, sizeof(at.sun_path), "%s", name);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(unlink(name), 0);
	assert_int_equal(fchdir(here), 0);
	close(here);
	assert_int_equal(rmdir(sys_path("below")), 0);
	return fd;
}

static void a_socket_whose_process_is_gone_is_dead_and_no_other_file_is_one(void **state)
{
	struct sys_result result;
	int server;

	(void)state;
	close(new_server());
	ask_served(&result, 1);
	assert_out(&result, "fix   socket-dead: ");
	assert_out(&result, "      $ rm ");
	/* A server that named it from its own folder may have it. */
	server = named_from_its_folder("board.sock");
	ask_served(&result, 1);
	assert_out(&result, "fix   socket-busy: ");
	close(server);
	assert_int_equal(unlink(sys_path("board.sock")), 0);
	sys_write_file("board.sock", "", 0);
	ask_served(&result, 2);
	assert_out(&result, "stop  socket: it is no socket\n");
	assert_int_equal(unlink(sys_path("board.sock")), 0);
	ask_served(&result, 1);
	assert_out(&result, "fix   socket: no device process listens there\n");
}

/* A function of another kind, by a process of its own. */
static pid_t serve_strange(void)
{
	const struct vfu_config config = {.vendor = 0x8086, .device = 0x0b25, .class_code = 0x088000};
	struct pollfd fds[VFU_MAX_FDS];
	struct vfu_device *dev;
	pid_t pid;

	assert_int_equal(vfu_open(&config, &dev), 0);
	assert_int_equal(vfu_listen(dev, sys_path("board.sock")), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid)
		return pid;
	for (;;) {
		size_t n = vfu_fds(dev, fds, VFU_MAX_FDS);

		(void)poll(fds, n, vfu_timeout(dev));
		(void)vfu_poll(dev);
	}
}

static void registers_of_an_unknown_function_are_a_device_not_opened_and_its_ids_are_said(void **state)
{
	pid_t pid = serve_strange();
	struct sys_result result;
	char command[256];

	(void)state;
	snprintf(command, sizeof(command), "rigctl regs %s", sys_served());
	sys_run(&result, command);
	sys_assert_failed(&result, 3, "function 8086:0b25, which no port here drives");
	ask_served(&result, 0);
	assert_out(&result, "note  port: ");
	assert_out(&result, "function 8086:0b25");
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(unlink(sys_path("board.sock")), 0);
	sys_run(&result, "rigctl regs --help");
	assert_out(&result, "status is 3 also where no port here drives the function");
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

/* -- list -- */

static void list_shows_every_address_whole_and_in_order(void **state)
{
	struct sys_result result;
	char command[256];
	const char *first, *second;

	(void)state;
	tree_function(&tree, "pci10000:e0", "10000:e1:00.0", "nvme", 13);
	snprintf(command, sizeof(command), "rigctl list --root %s", tree.root);
	sys_run(&result, command);
	sys_assert_done(&result);
	first = strstr(result.out, "\n" TREE_BDF "  ");
	second = strstr(result.out, "\n10000:e1:00.0 ");
	assert_true(first && second && first < second);
	assert_null(strstr(result.out, "\n0000:e1:00.0"));
	assert_out(&result, " vfio-pci       12 ");
	assert_out(&result, " nvme           13 ");
	snprintf(command, sizeof(command), "rigctl list --json --root %s", tree.root);
	sys_run(&result, command);
	sys_assert_done(&result);
	assert_out(&result, "\"address\":\"10000:e1:00.0\"");
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
	        TEST(a_device_process_is_asked_for_its_ids),
	        TEST(a_device_process_that_serves_another_client_is_busy_and_not_dead),
	        TEST(a_socket_whose_process_is_gone_is_dead_and_no_other_file_is_one),
	        TEST(registers_of_an_unknown_function_are_a_device_not_opened_and_its_ids_are_said),
	        TEST(a_captured_machine_says_what_the_machine_says),
	        TEST(list_shows_every_address_whole_and_in_order),
	        TEST(a_dry_run_prints_what_would_be_written),
	        TEST(a_dry_run_of_unbind_prints_for_the_whole_group),
	        TEST(a_bind_that_does_not_happen_is_a_failure),
	        TEST(a_reset_says_how_long_it_took),
	        TEST(registers_have_names_and_two_dumps_a_difference),
	        TEST(dumps_and_names_that_are_none_are_refused),
	};

	return cmocka_run_group_tests(tests, sys_setup, sys_teardown);
}
