/* SPDX-License-Identifier: MIT */
/* Bad images, arguments, options, device strings and firmware, through rigctl: one line says what is wrong,
 * nothing is written, and the device works afterwards. */
#include <elf.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <errno.h>
#include <unistd.h>

#include "system.h"

#define GOOD_IMAGE "globals"
#define GLOBALS    "k/globals.elf globals"
#define IDS        "k/ids.elf ids out:o.bin,64 u32:0"
#define LIMITS     "k/limits.elf limits out:o.bin,64 u64:0 u64:0"
#define OUT        " out:o.bin,64"

enum { DONE = 0, LOST = 1, USAGE = 2, NOT_OPENED = 3 };

struct bad {
	const char *command; /* after "rigctl " */
	int status;
	const char *why, *also; /* both are in the line; NULL: nothing more */
};

/* Runs it; nothing may change in the folder, no process stay, and the device works. */
static void refuse(const struct bad *bad)
{
	char command[512], before[SYS_TEXT];
	struct sys_result result;

	snprintf(before, sizeof(before), "%s", sys_names());
	snprintf(command, sizeof(command), "rigctl %s", bad->command);
	sys_run(&result, command);
	sys_assert_failed(&result, bad->status, bad->why);
	if (bad->also && !strstr(result.err, bad->also))
		fail_msg("\"%s\" is not in: %s", bad->also, result.err);
	assert_string_equal(sys_names(), before);
	sys_assert_no_process();
}

static void refuse_all(const struct bad *bad, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		refuse(&bad[i]);
	sys_assert_works("sim");
}

#define REFUSE_ALL(rows) refuse_all(rows, sizeof(rows) / sizeof((rows)[0]))

/* ---- Images ---- */

struct image {
	uint8_t *bytes;
	size_t count;
	Elf64_Ehdr *header;
	Elf64_Phdr *segment;
};

static void take(struct image *image)
{
	image->count = sys_kernel_bytes(GOOD_IMAGE, &image->bytes);
	image->header = (Elf64_Ehdr *)(void *)image->bytes;
	image->segment = (Elf64_Phdr *)(void *)(image->bytes + image->header->e_phoff);
}

/* Writes it as bad.elf, runs it, gives it back. */
static void refuse_image(struct image *image, const char *why)
{
	sys_write_file("bad.elf", image->bytes, image->count);
	refuse(&(struct bad){"run sim bad.elf globals" OUT, USAGE, why, "image bad.elf"});
	free(image->bytes);
}

static Elf64_Phdr *find_segment(struct image *image, uint32_t type, unsigned nth)
{
	unsigned i;

	for (i = 0; i < image->header->e_phnum; i++)
		if (image->segment[i].p_type == type && nth-- == 0)
			return &image->segment[i];
	fail_msg("the image has no such segment");
	return NULL;
}

/* The file's bytes at an address of the image. */
static void *at_address(struct image *image, uint64_t address)
{
	unsigned i;

	for (i = 0; i < image->header->e_phnum; i++) {
		const Elf64_Phdr *p = &image->segment[i];

		if (p->p_type == PT_LOAD && address >= p->p_vaddr && address < p->p_vaddr + p->p_filesz)
			return image->bytes + p->p_offset + (address - p->p_vaddr);
	}
	fail_msg("the image has nothing at that address");
	return NULL;
}

static Elf64_Dyn *find_dynamic(struct image *image, int64_t tag)
{
	const Elf64_Phdr *p = find_segment(image, PT_DYNAMIC, 0);
	Elf64_Dyn *d = (Elf64_Dyn *)(void *)(image->bytes + p->p_offset);

	for (; d->d_tag != DT_NULL; d++)
		if (d->d_tag == tag)
			return d;
	fail_msg("the image has no such dynamic entry");
	return NULL;
}

static Elf64_Rela *first_relocation(struct image *image)
{
	return at_address(image, find_dynamic(image, DT_RELA)->d_un.d_ptr);
}

static void what_is_no_elf_file_is_refused(void **state)
{
	static const struct bad rows[] = {
	        {"run sim text.elf globals" OUT, USAGE, "text.elf", "not an ELF file"},
	        {"run sim empty.elf globals" OUT, USAGE, "empty.elf", "not an ELF file"},
	        {"run sim k globals" OUT, USAGE, "image k", "directory"},
	        {"run sim nothere.elf globals" OUT, USAGE, "nothere.elf", "No such file"},
	};

	(void)state;
	sys_write_file("text.elf", "int main(void) { return 0; }\n", 29);
	sys_write_file("empty.elf", "", 0);
	REFUSE_ALL(rows);
}

static void a_program_of_the_host_is_refused(void **state)
{
	struct image image;
	uint8_t *bytes;
	size_t count = sys_read_file(SYS_MODEL, &bytes);

	(void)state;
	sys_write_file("host.elf", bytes, count);
	free(bytes);
	refuse(&(struct bad){"run sim host.elf globals" OUT, USAGE, "host.elf", "machine"});
	unlink(sys_path("host.elf"));
	take(&image);
	image.header->e_machine = EM_X86_64;
	refuse_image(&image, "machine 62");
	sys_assert_works("sim");
}

static void another_class_order_or_type_of_elf_is_refused(void **state)
{
	struct image image;

	(void)state;
	take(&image);
	image.bytes[EI_CLASS] = ELFCLASS32;
	refuse_image(&image, "64-bit");
	take(&image);
	image.bytes[EI_DATA] = ELFDATA2MSB;
	refuse_image(&image, "little-endian");
	take(&image);
	image.header->e_type = ET_EXEC;
	refuse_image(&image, "position independent");
	take(&image);
	image.header->e_phnum = 0;
	refuse_image(&image, "program headers");
	take(&image);
	image.header->e_phoff = image.count;
	refuse_image(&image, "program headers");
	sys_assert_works("sim");
}

static void an_image_cut_anywhere_is_refused(void **state)
{
	enum { CUTS = 24 };
	struct image image;
	unsigned i;

	(void)state;
	for (i = 0; i < CUTS; i++) {
		take(&image);
		image.count = image.count * i / CUTS;
		refuse_image(&image, "bad.elf");
	}
	take(&image);
	image.count = sizeof(Elf64_Ehdr);
	refuse_image(&image, "program headers");
	take(&image);
	image.count =
	        find_segment(&image, PT_LOAD, 1)->p_offset + find_segment(&image, PT_LOAD, 1)->p_filesz - 1;
	refuse_image(&image, "truncated");
	sys_assert_works("sim");
}

static void segments_that_do_not_fit_their_file_or_each_other_are_refused(void **state)
{
	struct image image;

	(void)state;
	take(&image);
	find_segment(&image, PT_LOAD, 1)->p_vaddr = find_segment(&image, PT_LOAD, 0)->p_vaddr;
	refuse_image(&image, "overlaps");
	take(&image);
	find_segment(&image, PT_LOAD, 0)->p_memsz = find_segment(&image, PT_LOAD, 1)->p_vaddr + 1;
	refuse_image(&image, "overlaps");
	take(&image);
	find_segment(&image, PT_LOAD, 1)->p_memsz = 0x7fffffff00000000;
	refuse_image(&image, "1 GiB");
	take(&image);
	find_segment(&image, PT_LOAD, 0)->p_memsz = find_segment(&image, PT_LOAD, 0)->p_filesz - 1;
	refuse_image(&image, "truncated");
	take(&image);
	find_segment(&image, PT_LOAD, 1)->p_offset = UINT64_MAX - 16;
	refuse_image(&image, "truncated");
	sys_assert_works("sim");
}

static void relocations_of_other_kinds_or_places_are_refused_by_name(void **state)
{
	static const struct {
		uint32_t type;
		const char *name;
	} kinds[] = {{1, "R_RISCV_32"}, {2, "R_RISCV_64"}, {4, "R_RISCV_COPY"}, {5, "R_RISCV_JUMP_SLOT"},
	        {7, "R_RISCV_TLS_DTPMOD64"}, {58, "58"}};
	struct image image;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		take(&image);
		first_relocation(&image)->r_info = ELF64_R_INFO(0, kinds[i].type);
		refuse_image(&image, kinds[i].name);
	}
	take(&image);
	first_relocation(&image)->r_offset = 0x7ffffff8;
	refuse_image(&image, "in no segment");
	take(&image);
	find_dynamic(&image, DT_RELA)->d_un.d_ptr = 0x7ffffff8;
	refuse_image(&image, "relocations");
	take(&image);
	find_dynamic(&image, DT_RELA)->d_tag = DT_JMPREL;
	refuse_image(&image, "DT_RELA");
	take(&image);
	find_dynamic(&image, DT_RELASZ)->d_tag = DT_NEEDED;
	refuse_image(&image, "shared library");
	sys_assert_works("sim");
}

static void an_unknown_function_is_refused_by_name(void **state)
{
	static const struct bad rows[] = {
	        {"run sim k/globals.elf nope" OUT, USAGE, "nope", "k/globals.elf"},
	        {"run sim k/globals.elf launches" OUT, USAGE, "launches", NULL}, /* a variable */
	        {"run sim k/globals.elf rvx1_kernel_record_globals" OUT, USAGE, "rvx1_kernel_record_globals",
	                NULL},
	};

	(void)state;
	REFUSE_ALL(rows);
}

/* ---- Arguments ---- */

static void files_that_are_not_there_are_named(void **state)
{
	static const struct bad rows[] = {
	        {"run sim " GLOBALS " in:nothere.bin" OUT, USAGE, "nothere.bin", NULL},
	        {"run sim " GLOBALS " inout:nothere.bin,o.bin", USAGE, "nothere.bin", NULL},
	        {"run sim " GLOBALS " out:nowhere/o.bin,64", USAGE, "nowhere/o.bin", "No such file"},
	        {"run sim:fault=refuse-boot " GLOBALS OUT " out:k,64", USAGE, "k: Is a directory", NULL},
	        {"run sim " GLOBALS " in:empty.bin" OUT, USAGE, "empty.bin", "empty"},
	        {"run sim " GLOBALS " in:k" OUT, USAGE, "k: ", "directory"},
	        {"run sim " GLOBALS " in:" OUT, USAGE, "in:", NULL},
	};

	(void)state;
	sys_write_file("empty.bin", "", 0);
	REFUSE_ALL(rows);
}

static void buffers_larger_than_the_memory_are_refused(void **state)
{
	static const struct bad rows[] = {
	        {"run sim " GLOBALS " out:o.bin,10000000000", USAGE, "10000000000", "does not fit"},
	        {"run sim " GLOBALS " out:o.bin,18446744073709551615", USAGE, "18446744073709551615", NULL},
	        {"run sim:mem=64M " GLOBALS " out:o.bin,67108864", USAGE, "67108864", "does not fit"},
	        {"run sim k/math.elf math zero:200000000 out:o.bin,200000000 u32:0", USAGE, "200000000",
	                "does not fit"},
	};

	(void)state;
	REFUSE_ALL(rows);
}

static void empty_grids_and_groups_are_refused(void **state)
{
	static const struct bad rows[] = {
	        {"run sim " GLOBALS OUT " --grid 0", USAGE, "grid of 0 x 1 x 1", NULL},
	        {"run sim " GLOBALS OUT " --grid 3,0", USAGE, "grid of 3 x 0 x 1", NULL},
	        {"run sim " GLOBALS OUT " --grid 3,2,0", USAGE, "grid of 3 x 2 x 0", NULL},
	        {"run sim " GLOBALS OUT " --group 0", USAGE, "group of 0 x 1 x 1", NULL},
	        {"run sim " IDS " --group 3,0", USAGE, "group of 3 x 0 x 1", NULL},
	        {"run sim " IDS " --group 3,2,0", USAGE, "group of 3 x 2 x 0", NULL},
	};

	(void)state;
	REFUSE_ALL(rows);
}

static void launches_out_of_limits_are_refused(void **state)
{
	static const struct bad rows[] = {
	        {"run sim " IDS " --group 1025", USAGE, "group of 1025 x 1 x 1", "1024"},
	        {"run sim " IDS " --group 33,32", USAGE, "group of 33 x 32 x 1", "1024"},
	        {"run sim " IDS " --group 11,10,10", USAGE, "group of 11 x 10 x 10", "1024"},
	        {"run sim " IDS " --group 65536,65536", USAGE, "group of 65536 x 65536", "1024"},
	        {"run sim " IDS " --group 4294967295,4294967295,4294967295", USAGE, "group of 4294967295",
	                "1024"},
	        {"run sim " LIMITS " --group 65", USAGE, "group of 65 x 1 x 1", "64"},
	        {"run sim " IDS " --shared 65537", USAGE, "65537 bytes of shared", "65536"},
	        {"run sim " IDS " --shared 4294967295", USAGE, "4294967295 bytes of shared", "65536"},
	        {"run sim " LIMITS " --shared 1025", USAGE, "1025 bytes of shared", "1024"},
	};

	(void)state;
	REFUSE_ALL(rows);
}

static void parameters_too_short_or_too_long_are_refused(void **state)
{
	static const struct bad rows[] = {
	        {"run sim " GLOBALS, USAGE, "0 parameter bytes", "8"},
	        {"run sim " GLOBALS " u32:1", USAGE, "4 parameter bytes", "8"},
	        {"run sim k/limits.elf limits" OUT " u32:1 u32:2", USAGE, "16 parameter bytes", "24"},
	        {"run sim " GLOBALS OUT " u32:1", USAGE, "12 parameter bytes", "only 8"},
	        {"run sim " GLOBALS OUT " zero:8", USAGE, "16 parameter bytes", "only 8"},
	};

	(void)state;
	REFUSE_ALL(rows);
}

static void malformed_arguments_are_named(void **state)
{
	static const struct bad rows[] = {
	        {"run sim " GLOBALS OUT " foo", USAGE, "foo", NULL},
	        {"run sim " GLOBALS OUT " foo:1", USAGE, "foo", NULL},
	        {"run sim " GLOBALS OUT " u8:1", USAGE, "u8", NULL},
	        {"run sim " GLOBALS OUT " :1", USAGE, "ARG", NULL},
	        {"run sim " GLOBALS OUT " u32:", USAGE, "u32:", "32 bits"},
	        {"run sim " GLOBALS OUT " u32:-1", USAGE, "u32:-1", NULL},
	        {"run sim " GLOBALS OUT " u32:4294967296", USAGE, "u32:4294967296", NULL},
	        {"run sim " GLOBALS OUT " i32:2147483648", USAGE, "i32:2147483648", NULL},
	        {"run sim " GLOBALS OUT " i32:-2147483649", USAGE, "i32:-2147483649", NULL},
	        {"run sim " GLOBALS OUT " u64:18446744073709551616", USAGE, "u64:18446744073709551616", NULL},
	        {"run sim " GLOBALS OUT " f32:pi", USAGE, "f32:pi", NULL},
	        {"run sim " GLOBALS OUT " f64:", USAGE, "f64:", NULL},
	        {"run sim " GLOBALS OUT " zero:0", USAGE, "zero:0", NULL},
	        {"run sim " GLOBALS OUT " zero:1k", USAGE, "zero:1k", NULL},
	        {"run sim " GLOBALS " out:o.bin", USAGE, "out:o.bin", "BYTES"},
	        {"run sim " GLOBALS " out:o.bin,", USAGE, "out:o.bin", "BYTES"},
	        {"run sim " GLOBALS " out:o.bin,0", USAGE, "out:o.bin", "BYTES"},
	        {"run sim " GLOBALS " out:,64", USAGE, "out:,64", "FILE"},
	        {"run sim " GLOBALS " inout:o.bin", USAGE, "inout:o.bin", "OUTFILE"},
	};

	(void)state;
	REFUSE_ALL(rows);
}

static void malformed_options_are_named(void **state)
{
	static const struct bad rows[] = {
	        {"run", USAGE, "DEVICE", NULL},
	        {"run sim", USAGE, "IMAGE", NULL},
	        {"run sim k/globals.elf", USAGE, "FUNCTION", NULL},
	        {"run sim " GLOBALS OUT " --grid", USAGE, "--grid", NULL},
	        {"run sim " GLOBALS OUT " --grid x", USAGE, "--grid x", NULL},
	        {"run sim " GLOBALS OUT " --grid -1", USAGE, "--grid -1", NULL},
	        {"run sim " GLOBALS OUT " --grid 1,", USAGE, "--grid 1,", NULL},
	        {"run sim " GLOBALS OUT " --grid 1,2,3,4", USAGE, "--grid 1,2,3,4", NULL},
	        {"run sim " GLOBALS OUT " --grid 4294967296", USAGE, "--grid 4294967296", NULL},
	        {"run sim " GLOBALS OUT " --group 1;2", USAGE, "--group 1;2", NULL},
	        {"run sim " GLOBALS OUT " --shared 1k", USAGE, "--shared 1k", NULL},
	        {"run sim " GLOBALS OUT " --shared 4294967296", USAGE, "--shared 4294967296", NULL},
	        {"run sim " GLOBALS OUT " --repeat 0", USAGE, "--repeat 0", NULL},
	        {"run sim " GLOBALS OUT " --repeat 99999999", USAGE, "--repeat 99999999", NULL},
	        {"run sim " GLOBALS OUT " --nonsense 1", USAGE, "--nonsense", NULL},
	        {"nonsense", USAGE, "nonsense", NULL},
	        {"--nonsense", USAGE, "--nonsense", NULL},
	        {"info", USAGE, "DEVICE", NULL},
	        {"info sim more", USAGE, "more", NULL},
	        {"list more", USAGE, "--json", NULL},
	};

	(void)state;
	REFUSE_ALL(rows);
}

/* ---- Devices ---- */

static void malformed_device_strings_are_named(void **state)
{
	static const struct bad rows[] = {
	        {"info simm", USAGE, "simm", NULL},
	        {"info sim:", USAGE, "option", NULL},
	        {"info sim:mem", USAGE, "mem", NULL},
	        {"info sim:mem=", USAGE, "mem=", NULL},
	        {"info sim:mem=32M", USAGE, "mem=32M", "64M"},
	        {"info sim:mem=9G", USAGE, "mem=9G", "8G"},
	        {"info sim:mem=64M,aperture=128M", USAGE, "aperture", "memory"},
	        {"info sim:aperture=24M", USAGE, "aperture=24M", "power of two"},
	        {"info sim:completion=maybe", USAGE, "completion=maybe", NULL},
	        {"info sim:hang=5", USAGE, "hang=5", NULL},
	        {"info sim:hang=0s", USAGE, "hang=0s", NULL},
	        {"info sim:nonsense=1", USAGE, "nonsense", NULL},
	        {"info sim:firmware=", USAGE, "firmware=", NULL},
	        {"info sim:fault=", USAGE, "fault=", NULL},
	        {"info sim:fault=nonsense", USAGE, "fault=nonsense", "refuse-boot"},
	        {"info sim:fault=die+nonsense", USAGE, "nonsense", "refuse-boot"},
	        {"info sim:fault=late", USAGE, "late", NULL},
	        {"info sim:fault=die=x", USAGE, "die=x", NULL},
	        {"info sim:fault=die-boot=1", USAGE, "die-boot=1", NULL},
	        {"info vfio-user:", USAGE, "vfio-user:", NULL},
	        {"info vfio-user:nothere,mem=64M", USAGE, "mem", NULL},
	        {"info 0000:65:00", USAGE, "0000:65:00", NULL},
	};

	(void)state;
	REFUSE_ALL(rows);
}

static void devices_that_are_not_there_end_with_status_3(void **state)
{
	static const struct bad rows[] = {
	        {"info vfio-user:nothere", NOT_OPENED, "vfio-user:nothere", NULL},
	        {"info vfio-user:k", NOT_OPENED, "vfio-user:k", NULL},
	        {"run vfio-user:nothere " GLOBALS OUT, NOT_OPENED, "vfio-user:nothere", NULL},
	        {"info ffff:ff:1f.7", NOT_OPENED, "ffff:ff:1f.7", NULL},
	};

	(void)state;
	REFUSE_ALL(rows);
}

static void boards_that_do_not_boot_end_with_status_3(void **state)
{
	static const struct bad rows[] = {
	        {"run sim:fault=refuse-boot " GLOBALS OUT, NOT_OPENED, "refused", "sim:fault=refuse-boot"},
	        {"run sim:fault=die-boot " GLOBALS OUT, NOT_OPENED, "hung up", "sim:fault=die-boot"},
	        {"info sim:fault=refuse-boot", NOT_OPENED, "refused", NULL},
	        {"info sim:fault=die-boot", NOT_OPENED, "hung up", NULL},
	};

	(void)state;
	REFUSE_ALL(rows);
}

/* ---- Firmware ---- */

#define FIRMWARE_NAME "fw/rvx1-firmware.bin"

static void refuse_firmware(const char *why)
{
	refuse(&(struct bad){"run sim:firmware=fw " GLOBALS OUT, NOT_OPENED, why, "rvx1-firmware.bin"});
}

static void firmware_with_a_flipped_bit_is_not_run(void **state)
{
	static const unsigned parts = 12;
	uint8_t *bytes;
	size_t count = sys_read_file(SYS_FIRMWARE, &bytes);
	unsigned i;

	(void)state;
	assert_int_equal(mkdir(sys_path("fw"), 0700), 0);
	for (i = 0; i < parts; i++) {
		size_t at = i + 1 < parts ? count * i / parts : count - 1;

		bytes[at] ^= (uint8_t)(1u << i % 8);
		sys_write_file(FIRMWARE_NAME, bytes, count);
		bytes[at] ^= (uint8_t)(1u << i % 8);
		refuse_firmware("firmware");
	}
	sys_write_file(FIRMWARE_NAME, bytes, count);
	free(bytes);
	sys_assert_works("sim:firmware=fw");
	unlink(sys_path(FIRMWARE_NAME));
}

static void firmware_cut_short_is_not_run(void **state)
{
	static const unsigned parts = 8;
	uint8_t *bytes;
	size_t count = sys_read_file(SYS_FIRMWARE, &bytes);
	unsigned i;

	(void)state;
	for (i = 0; i < parts; i++) {
		sys_write_file(FIRMWARE_NAME, bytes, count * i / parts);
		refuse_firmware("firmware");
	}
	sys_write_file(FIRMWARE_NAME, bytes, count - 1);
	refuse_firmware("firmware");
	free(bytes);
	unlink(sys_path(FIRMWARE_NAME));
	assert_int_equal(mkdir(sys_path(FIRMWARE_NAME), 0700), 0);
	refuse_firmware("firmware");
	assert_int_equal(rmdir(sys_path(FIRMWARE_NAME)), 0);
	sys_assert_works("sim");
}

static void a_named_firmware_folder_that_lacks_the_image_is_not_passed_over(void **state)
{
	(void)state;
	refuse_firmware("not in fw");
	sys_assert_works("sim");
}

/* Puts an empty folder over the build's firmware, for this process and what it starts. */
static int hide_firmware(void *arg)
{
	char build[] = SYS_BUILD "/firmware";

	(void)arg;
	if (unshare(CLONE_NEWNS) && unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return errno;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) || mount("none", build, "tmpfs", 0, NULL))
		return errno;
	return 0;
}

static void firmware_that_is_nowhere_is_said_with_where_it_was_looked_for(void **state)
{
	const struct sys_before before = {hide_firmware, NULL};
	struct sys_process p;
	struct sys_result result;

	(void)state;
	sys_start_before(&p, "rigctl run sim " GLOBALS OUT, &before);
	sys_finish(&p, &result);
	if (result.status == 126)
		skip(); /* no mount namespaces here */
	sys_assert_failed(&result, NOT_OPENED, "rvx1-firmware.bin");
	assert_non_null(strstr(result.err, SYS_BUILD "/firmware"));
	assert_non_null(strstr(result.err, "RIG_FIRMWARE_DIR"));
	assert_int_equal(access(sys_path("o.bin"), F_OK), -1);
	sys_assert_works("sim");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(what_is_no_elf_file_is_refused),
	        cmocka_unit_test(a_program_of_the_host_is_refused),
	        cmocka_unit_test(another_class_order_or_type_of_elf_is_refused),
	        cmocka_unit_test(an_image_cut_anywhere_is_refused),
	        cmocka_unit_test(segments_that_do_not_fit_their_file_or_each_other_are_refused),
	        cmocka_unit_test(relocations_of_other_kinds_or_places_are_refused_by_name),
	        cmocka_unit_test(an_unknown_function_is_refused_by_name),
	        cmocka_unit_test(files_that_are_not_there_are_named),
	        cmocka_unit_test(buffers_larger_than_the_memory_are_refused),
	        cmocka_unit_test(empty_grids_and_groups_are_refused),
	        cmocka_unit_test(launches_out_of_limits_are_refused),
	        cmocka_unit_test(parameters_too_short_or_too_long_are_refused),
	        cmocka_unit_test(malformed_arguments_are_named),
	        cmocka_unit_test(malformed_options_are_named),
	        cmocka_unit_test(malformed_device_strings_are_named),
	        cmocka_unit_test(devices_that_are_not_there_end_with_status_3),
	        cmocka_unit_test(boards_that_do_not_boot_end_with_status_3),
	        cmocka_unit_test(firmware_with_a_flipped_bit_is_not_run),
	        cmocka_unit_test(firmware_cut_short_is_not_run),
	        cmocka_unit_test(a_named_firmware_folder_that_lacks_the_image_is_not_passed_over),
	        cmocka_unit_test(firmware_that_is_nowhere_is_said_with_where_it_was_looked_for),
	};

	return cmocka_run_group_tests(tests, sys_setup, sys_teardown);
}
