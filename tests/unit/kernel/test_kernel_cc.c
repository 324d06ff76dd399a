/* SPDX-License-Identifier: MIT */
/* scripts/rvx1-cc: images as docs/kernels.md describes them, and what it refuses. */
#include "test.h"
#include <elf.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rvx1/kernel_record.h>

#define TEXT_BYTES 8192u
#define BAD_USAGE  2
#define HEAD       "#include <rvx1/kernel.h>\n"

static char folder[] = "/tmp/rvx1-cc-test-XXXXXX";
static char message[TEXT_BYTES]; /* of the last run */

static int make_folder(void **state)
{
	(void)state;
	if (!getenv("RVX1_CC_SCRIPT") || !mkdtemp(folder) || chdir(folder))
		return -1;
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	return system("cd / && rm -rf \"$OLDPWD\"") ? -1 : 0;
}

static void write_source(const char *name, const char *text)
{
	FILE *file = fopen(name, "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

/* The exit status of `environment rvx1-cc arguments`; what it said is in message. */
static int compile(const char *environment, const char *arguments)
{
	char command[TEXT_BYTES];

	snprintf(command, sizeof(command), "%s \"$RVX1_CC_SCRIPT\" %s 2>&1", environment, arguments);
	FILE *pipe = popen(command, "r");

	assert_non_null(pipe);
	message[fread(message, 1, sizeof(message) - 1, pipe)] = 0;
	int status = pclose(pipe);

	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 127)
		fail_msg("%s", message);
	return WEXITSTATUS(status);
}

static bool toolchain_is_there(void)
{
	write_source("probe.c", HEAD);
	if (compile("", "probe.c -o probe.elf") == 0)
		return true;
	return !strstr(message, "Debian package");
}

/* An error of the sources: status 1, the text said, and no image. */
static void refuse(const char *source, const char *text)
{
	if (!toolchain_is_there())
		skip();
	write_source("bad.c", source);
	unlink("bad.elf");
	assert_int_equal(compile("", "bad.c"), 1);
	if (!strstr(message, text))
		fail_msg("does not name \"%s\": %s", text, message);
	assert_int_not_equal(access("bad.elf", F_OK), 0);
}

struct image {
	int fd;
	Elf *elf;
};

static struct image open_image(const char *name)
{
	struct image i = {.fd = open(name, O_RDONLY | O_CLOEXEC)};

	assert_true(i.fd >= 0);
	elf_version(EV_CURRENT);
	i.elf = elf_begin(i.fd, ELF_C_READ, NULL);
	assert_non_null(i.elf);
	return i;
}

static void close_image(struct image *i)
{
	elf_end(i->elf);
	close(i->fd);
}

/* The data of the section of that type, or NULL. */
static Elf_Data *section(struct image *i, uint32_t type, GElf_Shdr *header)
{
	Elf_Scn *s = NULL;

	while ((s = elf_nextscn(i->elf, s)))
		if (gelf_getshdr(s, header) && header->sh_type == type)
			return elf_getdata(s, NULL);
	return NULL;
}

static bool find_symbol(struct image *i, const char *name, GElf_Sym *symbol)
{
	GElf_Shdr header;
	Elf_Data *data = section(i, SHT_DYNSYM, &header);

	assert_non_null(data);
	for (int n = 0; gelf_getsym(data, n, symbol); n++)
		if (!strcmp(elf_strptr(i->elf, header.sh_link, symbol->st_name), name))
			return true;
	return false;
}

/* The record's bytes, at its address in a segment. */
static void read_record(struct image *i, const GElf_Sym *symbol, struct rvx1_kernel_record *record)
{
	GElf_Phdr p;

	for (int n = 0; gelf_getphdr(i->elf, n, &p); n++)
		if (p.p_type == PT_LOAD && symbol->st_value - p.p_vaddr < p.p_filesz) {
			assert_false(p.p_flags & PF_W);
			assert_int_equal(pread(i->fd, record, sizeof(*record),
			                         (off_t)(p.p_offset + symbol->st_value - p.p_vaddr)),
			        sizeof(*record));
			return;
		}
	fail_msg("the record is in no segment");
}

static void an_image_exports_kernels_and_their_records(void **state)
{
	struct rvx1_kernel_record record;
	GElf_Sym symbol;

	(void)state;
	if (!toolchain_is_there())
		skip();
	write_source("two.k.c", HEAD "struct p { uint64_t a; uint32_t b; };\n"
	                             "void f(const struct p *p) { *(uint32_t *)p->a = p->b; }\n"
	                             "RVX1_KERNEL(g, void, 0, 0);\n"
	                             "RVX1_KERNEL(f, struct p, 64, 4096);\n"
	                             "void g(const void *p) { (void)p; rvx1_barrier(); }\n");
	assert_int_equal(compile("", "two.k.c -Wall -Wextra -Werror"), 0);
	struct image i = open_image("two.elf");

	assert_true(find_symbol(&i, "f", &symbol));
	assert_int_equal(GELF_ST_TYPE(symbol.st_info), STT_FUNC);
	assert_true(find_symbol(&i, RVX1_KERNEL_RECORD_PREFIX "f", &symbol));
	assert_int_equal(symbol.st_size, sizeof(record));
	read_record(&i, &symbol, &record);
	assert_int_equal(record.version, RVX1_KERNEL_RECORD_VERSION);
	assert_int_equal(record.params_bytes, 16);
	assert_int_equal(record.threads, 64);
	assert_int_equal(record.shared, 4096);
	assert_true(find_symbol(&i, RVX1_KERNEL_RECORD_PREFIX "g", &symbol));
	read_record(&i, &symbol, &record);
	assert_int_equal(record.params_bytes, 0);
	close_image(&i);
}

static void libraries_small_atomics_and_tables_need_relative_relocations_only(void **state)
{
	GElf_Shdr header;
	GElf_Rela rela;
	GElf_Sym symbol;
	int n = 0;

	(void)state;
	if (!toolchain_is_there())
		skip();
	write_source("many.c",
	        HEAD "#include <math.h>\n#include <string.h>\n"
	             "double (*const ops[])(double) = {sin, exp, sqrt, tgamma};\n"
	             "static const char *const names[] = {\"a\", \"b\"};\n"
	             "void f(const void *p) { uint8_t *b = (uint8_t *)p; uint16_t *h = (uint16_t *)p;\n"
	             " __atomic_fetch_add(b, 1, 5); __atomic_exchange_n(h, 2, 5);\n"
	             " memcpy(b, names[b[1] & 1], b[2]); *(double *)p = ops[b[3] & 3](*(double *)p);\n"
	             " *h = (uint16_t)(*(uint64_t *)p % 1000003); }\n");
	assert_int_equal(compile("", "many.c -o many.elf"), 0);
	struct image i = open_image("many.elf");
	Elf_Data *data = section(&i, SHT_RELA, &header);

	assert_non_null(data);
	for (; gelf_getrela(data, n, &rela); n++)
		assert_int_equal(GELF_R_TYPE(rela.r_info), R_RISCV_RELATIVE);
	assert_true(n >= 6);
	assert_false(find_symbol(&i, "memcpy", &symbol));
	close_image(&i);
}

static void sources_may_be_several_in_folders_with_spaces(void **state)
{
	(void)state;
	if (!toolchain_is_there())
		skip();
	assert_int_equal(system("mkdir -p 'a b'"), 0);
	write_source("a b/one.c", HEAD "int two(void);\nvoid f(const void *p) { *(int *)p = two() + N; }\n");
	write_source("a b/two.c", "int two(void) { return 2; }\n");
	assert_int_equal(compile("", "'a b/one.c' 'a b/two.c' -D 'N=(1 + 1)' -o 'a b/x y.elf'"), 0);
	assert_int_equal(access("a b/x y.elf", R_OK), 0);
}

static void an_installed_script_needs_no_source_tree(void **state)
{
	(void)state;
	if (!toolchain_is_there())
		skip();
	assert_int_equal(
	        system("t=$(dirname \"$RVX1_CC_SCRIPT\")/.. && "
	               "mkdir -p i/bin i/include i/libexec/rig-vfio && cp \"$RVX1_CC_SCRIPT\" i/bin/ && "
	               "cp -r \"$t/include/rvx1\" i/include/ && cp -r \"$t/kernel\" i/libexec/rig-vfio/"),
	        0);
	assert_int_equal(compile("RVX1_CC_SCRIPT=i/bin/rvx1-cc;", "probe.c -o installed.elf"), 0);
}

static void an_undefined_symbol_is_named(void **state)
{
	(void)state;
	refuse(HEAD "int nowhere(void);\nvoid f(const void *p) { *(int *)p = nowhere(); }\n", "nowhere");
}

static void thread_local_storage_is_named(void **state)
{
	(void)state;
	refuse("__thread int mine;\nvoid f(const void *p) { mine = p != 0; }\n", "mine");
}

static void a_kernel_of_another_type_does_not_compile(void **state)
{
	(void)state;
	refuse(HEAD "int f(const void *p) { return p != 0; }\nRVX1_KERNEL(f, void, 0, 0);\n",
	        "conflicting types");
	refuse(HEAD "void f(const void *p, int n) { (void)p; (void)n; }\nRVX1_KERNEL(f, void, 0, 0);\n",
	        "conflicting types");
	refuse(HEAD "void f(const void *p) { (void)p; }\nRVX1_KERNEL(f, void, 1025, 0);\n", "more threads");
}

static void bad_usage_is_told_from_bad_sources(void **state)
{
	(void)state;
	assert_int_equal(compile("", ""), BAD_USAGE);
	assert_int_equal(compile("", "-o"), BAD_USAGE);
	assert_int_equal(compile("", "--nonsense x.c"), BAD_USAGE);
	assert_int_equal(compile("", "x.o"), BAD_USAGE);
	assert_int_equal(compile("", "--help"), 0);
	assert_non_null(strstr(message, "usage: rvx1-cc"));
}

static void a_missing_tool_is_named_with_its_package(void **state)
{
	(void)state;
	write_source("k.c", HEAD);
	assert_int_equal(compile("RVX1_LD=/nowhere/ld", "k.c"), 1);
	assert_non_null(strstr(
	        message, "/nowhere/ld is missing: install the Debian package binutils-riscv64-linux-gnu"));
	assert_int_equal(compile("RVX1_CC=/nowhere/cc", "k.c"), 1);
	assert_non_null(strstr(message, "gcc-riscv64-unknown-elf"));
}

static void a_missing_source_is_named(void **state)
{
	(void)state;
	if (!toolchain_is_there())
		skip();
	assert_int_equal(compile("", "missing.c"), 1);
	assert_non_null(strstr(message, "missing.c: cannot be read"));
}

static void a_name_that_two_sources_define_is_named(void **state)
{
	(void)state;
	if (!toolchain_is_there())
		skip();
	write_source("one.c", HEAD "void add(const void *p) { (void)p; }\nRVX1_KERNEL(add, void, 0, 0);\n");
	write_source("two.c", HEAD "void add(const void *p) { (void)p; }\nRVX1_KERNEL(add, void, 0, 0);\n");
	assert_int_equal(compile("", "one.c two.c -o both.elf"), 1);
	assert_non_null(strstr(message, "multiple definition of `add'"));
	assert_non_null(strstr(message, "two of the sources define the same name"));
}

static void sources_without_a_record_are_compiled_with_a_note(void **state)
{
	(void)state;
	if (!toolchain_is_there())
		skip();
	write_source("bare.c", HEAD "void add(const void *p) { (void)p; }\n");
	assert_int_equal(compile("", "bare.c"), 0);
	assert_non_null(strstr(message, "note: no RVX1_KERNEL"));
	write_source("bare.c", HEAD "void add(const void *p) { (void)p; }\nRVX1_KERNEL(add, void, 0, 0);\n");
	assert_int_equal(compile("", "bare.c"), 0);
	assert_string_equal(message, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(an_image_exports_kernels_and_their_records),
	        cmocka_unit_test(libraries_small_atomics_and_tables_need_relative_relocations_only),
	        cmocka_unit_test(sources_may_be_several_in_folders_with_spaces),
	        cmocka_unit_test(an_installed_script_needs_no_source_tree),
	        cmocka_unit_test(an_undefined_symbol_is_named),
	        cmocka_unit_test(thread_local_storage_is_named),
	        cmocka_unit_test(a_kernel_of_another_type_does_not_compile),
	        cmocka_unit_test(bad_usage_is_told_from_bad_sources),
	        cmocka_unit_test(a_missing_tool_is_named_with_its_package),
	        cmocka_unit_test(a_missing_source_is_named),
	        cmocka_unit_test(a_name_that_two_sources_define_is_named),
	        cmocka_unit_test(sources_without_a_record_are_compiled_with_a_note),
	};

	return cmocka_run_group_tests_name("rvx1-cc", tests, make_folder, remove_folder);
}
