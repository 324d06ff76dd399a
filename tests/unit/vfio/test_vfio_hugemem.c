/* SPDX-License-Identifier: MIT */
/* Memory for arenas beside other threads that map at the same time, with and without huge pages. */

#include "test.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "hugemem.h"

#define BYTES (UINT64_C(2) << 20)

void *__real_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t off);
void *__wrap_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t off);

static bool intrude;   /* another thread maps where a mapping is about to be placed, or failed to be */
static unsigned fails; /* so many placed mappings fail as where huge pages are out */
static unsigned replaced;
static unsigned char *theirs[8];
static unsigned ntheirs;

static void map_theirs(void *at)
{
	unsigned char *p = __real_mmap(at, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_equal(p, at);
	memset(p, 0x5a, 4096);
	theirs[ntheirs++] = p;
}

/* A mapping in place of another that fails leaves a hole, as Linux does for huge pages. */
void *__wrap_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t off)
{
	if (fd < 0 || !at)
		return __real_mmap(at, bytes, prot, flags, fd, off);
	if (flags & MAP_FIXED) {
		replaced++;
		munmap(at, bytes);
	}
	if (intrude && ntheirs < 8)
		map_theirs(at);
	if (fails) {
		fails--;
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return __real_mmap(at, bytes, prot, flags, fd, off);
}

static int begin(void **state)
{
	(void)state;
	intrude = false;
	fails = replaced = ntheirs = 0;
	return 0;
}

static void assert_theirs(void)
{
	for (unsigned i = 0; i < ntheirs; i++) {
		assert_int_equal(theirs[i][0], 0x5a);
		assert_int_equal(theirs[i][4095], 0x5a);
		munmap(theirs[i], 4096);
	}
}

static void what_another_thread_maps_meanwhile_stays(void **state)
{
	struct rig_hugemem m = {0};

	(void)state;
	intrude = true;
	assert_int_equal(rig_hugemem_open(&m, BYTES), 0);
	assert_int_equal((uintptr_t)m.host % RIG_HUGEMEM_ALIGN, 0);
	assert_int_equal(ntheirs, 8);
	assert_int_equal(replaced, 0);
	assert_theirs();
	rig_hugemem_close(&m);
}

static void what_another_thread_maps_where_one_failed_stays(void **state)
{
	struct rig_hugemem m = {0};

	(void)state;
	intrude = true;
	fails = 8;
	(void)rig_hugemem_open(&m, BYTES);
	assert_true(ntheirs > 0);
	assert_theirs();
	rig_hugemem_close(&m);
}

static void memory_is_aligned_and_there(void **state)
{
	struct rig_hugemem m = {0};

	(void)state;
	assert_int_equal(rig_hugemem_open(&m, BYTES + 1), 0);
	assert_int_equal((uintptr_t)m.host % RIG_HUGEMEM_ALIGN, 0);
	assert_true(m.bytes > BYTES);
	memset(m.host, 0xa5, m.bytes);
	rig_hugemem_close(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup(what_another_thread_maps_meanwhile_stays, begin),
	        cmocka_unit_test_setup(what_another_thread_maps_where_one_failed_stays, begin),
	        cmocka_unit_test_setup(memory_is_aligned_and_there, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
