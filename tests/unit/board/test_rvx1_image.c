/* SPDX-License-Identifier: MIT */
/* Kernel images: what is taken, and that everything else is refused with what is wrong with it. */
#include "test.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf_image.h"
#include "rvx1.h"

#define BASE 0x10000900000ull

static struct elf_file file;
static uint8_t placed[0x10000];

static int setup(void **state)
{
	(void)state;
	elf_image_make(&file);
	memset(placed, 0, sizeof(placed));
	return 0;
}

static void assert_refused(const char *reason)
{
	uint64_t need;

	assert_int_equal(rvx1_image_bytes(&file, sizeof(file), &need), -ENOEXEC);
	if (!strstr(rig_error(), reason))
		fail_msg("\"%s\" does not say \"%s\"", rig_error(), reason);
}

static void a_good_image_takes_whole_pages_to_the_end_of_its_last_segment(void **state)
{
	uint64_t need;

	(void)state;
	assert_int_equal(rvx1_image_bytes(&file, sizeof(file), &need), 0);
	assert_int_equal(need, 0x3000);
}

static void placing_copies_segments_and_adds_the_base_to_relative_relocations(void **state)
{
	uint64_t pointer[2];

	(void)state;
	assert_int_equal(rvx1_image_place(&file, sizeof(file), BASE, placed), 0);
	memcpy(pointer, placed + ELF_DATA, sizeof(pointer));
	assert_int_equal(pointer[0], BASE + ELF_TEXT);
	assert_int_equal(pointer[1], BASE + ELF_DATA);
	assert_memory_equal(placed + ELF_TEXT, file.text, sizeof(file.text));
	assert_int_equal(placed[0], 0);
}

static void a_function_is_found_with_what_its_record_declares(void **state)
{
	struct rig_board_function f;

	(void)state;
	assert_int_equal(rvx1_image_find(&file, sizeof(file), ELF_KERNEL, &f), 0);
	assert_int_equal(f.offset, ELF_TEXT + 4);
	assert_true(f.has_params && f.has_threads && f.has_shared);
	assert_int_equal(f.params, 12);
	assert_int_equal(f.threads, 64);
	assert_int_equal(f.shared, 512);
}

static void a_function_without_a_record_has_unknown_limits(void **state)
{
	struct rig_board_function f;

	(void)state;
	file.head.image.strings[1 + sizeof(ELF_KERNEL)] = 'x';
	assert_int_equal(rvx1_image_find(&file, sizeof(file), ELF_KERNEL, &f), 0);
	assert_false(f.has_params || f.has_threads || f.has_shared);
}

static void zeroes_of_a_record_are_unknown_limits(void **state)
{
	struct rig_board_function f;

	(void)state;
	file.record.params_bytes = file.record.threads = file.record.shared = 0;
	assert_int_equal(rvx1_image_find(&file, sizeof(file), ELF_KERNEL, &f), 0);
	assert_false(f.has_params || f.has_threads || f.has_shared);
}

static void absent_functions_and_objects_are_not_found(void **state)
{
	struct rig_board_function f;

	(void)state;
	assert_int_equal(rvx1_image_find(&file, sizeof(file), "none", &f), -ENOENT);
	assert_int_equal(rvx1_image_find(&file, sizeof(file), "", &f), -ENOENT);
	assert_int_equal(
	        rvx1_image_find(&file, sizeof(file), RVX1_KERNEL_RECORD_PREFIX ELF_KERNEL, &f), -ENOENT);
}

static void a_record_out_of_the_boards_limits_is_refused(void **state)
{
	struct rig_board_function f;

	(void)state;
	file.record.threads = RVX1_MAX_GROUP_THREADS + 1;
	assert_int_equal(rvx1_image_find(&file, sizeof(file), ELF_KERNEL, &f), -ENOEXEC);
	setup(NULL);
	file.record.shared = RVX1_MAX_SHARED + 1;
	assert_int_equal(rvx1_image_find(&file, sizeof(file), ELF_KERNEL, &f), -ENOEXEC);
	setup(NULL);
	file.record.params_bytes = RIG_PARAMS + 1;
	assert_int_equal(rvx1_image_find(&file, sizeof(file), ELF_KERNEL, &f), -ENOEXEC);
	setup(NULL);
	file.record.version++;
	assert_int_equal(rvx1_image_find(&file, sizeof(file), ELF_KERNEL, &f), -ENOEXEC);
	setup(NULL);
	file.head.image.symbol[2].st_value = 0x7000;
	assert_int_equal(rvx1_image_find(&file, sizeof(file), ELF_KERNEL, &f), -ENOEXEC);
}

static void a_function_outside_every_segment_is_refused(void **state)
{
	struct rig_board_function f;

	(void)state;
	file.head.image.symbol[1].st_value = 0x9000;
	assert_int_equal(rvx1_image_find(&file, sizeof(file), ELF_KERNEL, &f), -ENOEXEC);
	file.head.image.symbol[1].st_value = ELF_TEXT + 1;
	assert_int_equal(rvx1_image_find(&file, sizeof(file), ELF_KERNEL, &f), -ENOEXEC);
}

static void what_is_no_elf_file_for_this_board_is_refused(void **state)
{
	Elf64_Ehdr *h = &file.head.image.header;
	uint64_t need;

	(void)state;
	h->e_ident[0] = 0;
	assert_refused("not an ELF file");
	setup(NULL);
	h->e_ident[EI_CLASS] = ELFCLASS32;
	assert_refused("64-bit little-endian");
	setup(NULL);
	h->e_machine = EM_X86_64;
	assert_refused("machine 62");
	setup(NULL);
	h->e_type = ET_EXEC;
	assert_refused("position independent");
	assert_int_equal(rvx1_image_bytes("", 0, &need), -ENOEXEC);
}

static void truncated_and_misplaced_segments_are_refused(void **state)
{
	struct elf_image *e = &file.head.image;

	(void)state;
	e->segment[1].p_filesz += 1;
	assert_refused("segment 1 is truncated");
	setup(NULL);
	e->segment[1].p_offset = UINT64_MAX;
	assert_refused("segment 1 is truncated");
	setup(NULL);
	e->segment[1].p_memsz = e->segment[1].p_filesz - 1;
	assert_refused("segment 1 is truncated");
	setup(NULL);
	e->segment[1].p_vaddr = ELF_TEXT + sizeof(file.text) - 1;
	assert_refused("overlaps");
	setup(NULL);
	e->segment[1].p_memsz = UINT64_MAX;
	assert_refused("1 GiB");
	setup(NULL);
	e->segment[1].p_vaddr = UINT64_MAX - 16;
	assert_refused("1 GiB");
	setup(NULL);
	e->header.e_phnum = 65;
	assert_refused("program headers");
	setup(NULL);
	e->header.e_phoff = sizeof(file) - 8;
	assert_refused("program headers");
	setup(NULL);
	e->segment[0].p_type = e->segment[1].p_type = PT_NULL;
	e->segment[2].p_type = PT_NULL;
	assert_refused("no segment");
}

static void what_needs_a_dynamic_linker_is_refused(void **state)
{
	struct elf_image *e = &file.head.image;

	(void)state;
	e->segment[2].p_type = PT_INTERP;
	assert_refused("dynamic linker");
	setup(NULL);
	e->segment[2].p_type = PT_TLS;
	assert_refused("thread-local");
	setup(NULL);
	file.dynamic[2].d_tag = DT_NEEDED;
	assert_refused("shared library");
	setup(NULL);
	file.dynamic[2].d_tag = DT_JMPREL;
	assert_refused("R_RISCV_RELATIVE");
	setup(NULL);
	file.dynamic[2].d_tag = DT_INIT_ARRAY;
	assert_refused("initialisers");
}

static void other_relocations_are_refused_by_name(void **state)
{
	(void)state;
	file.rela[1].r_info = ELF64_R_INFO(1, 2);
	assert_refused("R_RISCV_64");
	file.rela[1].r_info = ELF64_R_INFO(1, 5);
	assert_refused("R_RISCV_JUMP_SLOT");
	file.rela[1].r_info = ELF64_R_INFO(1, 99);
	assert_refused("type 99");
}

static void relocations_outside_the_image_are_refused(void **state)
{
	(void)state;
	file.rela[0].r_offset = UINT64_MAX - 3;
	assert_refused("in no segment");
	setup(NULL);
	file.rela[0].r_offset = 0x3000;
	assert_refused("in no segment");
	setup(NULL);
	file.dynamic[1].d_un.d_val = UINT64_MAX;
	assert_refused("relocations");
	setup(NULL);
	file.dynamic[1].d_un.d_val = sizeof(file.rela) - 1;
	assert_refused("relocations");
	setup(NULL);
	file.head.image.segment[2].p_filesz = UINT64_MAX;
	assert_refused("dynamic section");
}

static void every_truncation_is_refused_or_still_whole(void **state)
{
	struct rig_board_function f;
	size_t n;

	(void)state;
	for (n = 0; n < sizeof(file); n++) {
		uint8_t *copy = malloc(n ? n : 1); /* so that a sanitizer sees a read past the end */
		uint64_t need;

		memcpy(copy, &file, n);
		assert_int_equal(rvx1_image_bytes(copy, n, &need), -ENOEXEC);
		assert_true(rvx1_image_find(copy, n, ELF_KERNEL, &f) < 0);
		free(copy);
	}
}

#define CASE(test) cmocka_unit_test_setup(test, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        CASE(a_good_image_takes_whole_pages_to_the_end_of_its_last_segment),
	        CASE(placing_copies_segments_and_adds_the_base_to_relative_relocations),
	        CASE(a_function_is_found_with_what_its_record_declares),
	        CASE(a_function_without_a_record_has_unknown_limits),
	        CASE(zeroes_of_a_record_are_unknown_limits),
	        CASE(absent_functions_and_objects_are_not_found),
	        CASE(a_record_out_of_the_boards_limits_is_refused),
	        CASE(a_function_outside_every_segment_is_refused),
	        CASE(what_is_no_elf_file_for_this_board_is_refused),
	        CASE(truncated_and_misplaced_segments_are_refused),
	        CASE(what_needs_a_dynamic_linker_is_refused),
	        CASE(other_relocations_are_refused_by_name),
	        CASE(relocations_outside_the_image_are_refused),
	        CASE(every_truncation_is_refused_or_still_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
