/* SPDX-License-Identifier: MIT */
#include "test.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig_edge.h"

static bool refused, early; /* the fork handlers, once; and the array was there before them */

/* Mappings of an array's memory. */
static unsigned mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	unsigned found = 0;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		found += strstr(line, "memfd:rig-words") != NULL;
	fclose(maps);
	return found;
}

int __real_pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void));
int __wrap_pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void));

int __wrap_pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
	early |= mappings() > 0;
	if (refused)
		return __real_pthread_atfork(prepare, parent, child);
	refused = true;
	return ENOMEM;
}

static bool stuck; /* the copy cannot be moved to its place */

void *__real_mremap(void *old, size_t old_bytes, size_t bytes, int flags, void *to);
void *__wrap_mremap(void *old, size_t old_bytes, size_t bytes, int flags, void *to);

void *__wrap_mremap(void *old, size_t old_bytes, size_t bytes, int flags, void *to)
{
	return stuck ? MAP_FAILED : __real_mremap(old, old_bytes, bytes, flags, to);
}

#define BYTES (RIG_WORD_COUNT * sizeof(uint64_t))

/* Another thread may have it from the moment it is there, without any lock. */
static void nobody_can_have_the_array_before_forks_are_minded_and_it_stays(void **state)
{
	(void)state;
	assert_null(rig_words());
	assert_non_null(strstr(rig_error(), "fork handler"));
	assert_int_equal(rig_words_fd() >= 0, true);
	assert_non_null(rig_words());
	assert_false(early);
}

static void the_array_is_page_aligned_and_zero(void **state)
{
	rig_atomic_u64 *words = rig_words();
	uint32_t i;

	(void)state;
	assert_non_null(words);
	assert_int_equal((uintptr_t)words % 4096, 0);
	for (i = 0; i < RIG_WORD_COUNT; i++)
		assert_int_equal(rig_word_load(&words[i]), 0);
}

static void there_is_one_array_a_process(void **state)
{
	(void)state;
	assert_ptr_equal(rig_words(), rig_words());
	assert_int_equal(rig_words_fd(), rig_words_fd());
}

static void a_device_that_maps_the_descriptor_sees_the_words(void **state)
{
	rig_atomic_u64 *words = rig_words();
	uint64_t *device;

	(void)state;
	device = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, rig_words_fd(), 0);
	assert_ptr_not_equal(device, MAP_FAILED);
	rig_word_raise(&words[7], 41);
	assert_int_equal(device[7], 41);
	device[8] = 99;
	assert_int_equal(rig_word_load(&words[8]), 99);
	assert_int_equal(munmap(device, BYTES), 0);
}

static void the_descriptor_is_close_on_exec(void **state)
{
	(void)state;
	assert_true(fcntl(rig_words_fd(), F_GETFD) & FD_CLOEXEC);
}

static void raising_never_lowers(void **state)
{
	rig_atomic_u64 *words = rig_words();

	(void)state;
	rig_word_raise(&words[9], UINT64_C(1) << 33);
	rig_word_raise(&words[9], 5);
	assert_int_equal(rig_word_load(&words[9]), UINT64_C(1) << 33);
}

/* Whether what is mapped of the descriptor is the array. */
static bool is_of(int fd, const rig_atomic_u64 *words)
{
	const rig_atomic_u64 *device = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
	bool same;

	if (device == MAP_FAILED)
		return false;
	rig_word_raise((rig_atomic_u64 *)&words[22], 22);
	same = rig_word_load(&device[22]) == 22;
	munmap((void *)(uintptr_t)device, BYTES);
	return same && fcntl(fd, F_GETFD) & FD_CLOEXEC;
}

/* The child's answer: 0, or the number of the step that failed. */
static int child_sees_a_private_copy(int to_parent, int from_parent)
{
	rig_atomic_u64 *words = rig_words();
	char byte = 'x';

	if (rig_word_load(&words[20]) != 3)
		return 2;
	if (!is_of(rig_words_fd(), words))
		return 3;
	/* The parent writes its word; the copy stays. */
	if (write(to_parent, &byte, 1) != 1 || read(from_parent, &byte, 1) != 1)
		return 4;
	if (rig_word_load(&words[20]) != 3)
		return 5;
	rig_word_raise(&words[21], 77);
	if (rig_word_load(&words[21]) != 77)
		return 6;
	return 0;
}

static void a_forked_child_has_a_private_copy(void **state)
{
	rig_atomic_u64 *words = rig_words();
	int there[2], back[2], status;
	char byte;
	pid_t child;

	(void)state;
	assert_int_equal(pipe(there), 0);
	assert_int_equal(pipe(back), 0);
	rig_word_raise(&words[20], 3);
	child = fork();
	if (child == 0)
		_exit(child_sees_a_private_copy(there[1], back[0]));
	assert_int_equal(read(there[0], &byte, 1), 1);
	rig_word_raise(&words[20], 4);
	assert_int_equal(write(back[1], &byte, 1), 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(rig_word_load(&words[21]), 0);
	assert_int_equal(rig_word_load(&words[22]), 0);
}

static rlim_t address_space(void)
{
	FILE *statm = fopen("/proc/self/statm", "re");
	unsigned long pages = 0;

	assert_non_null(statm);
	assert_int_equal(fscanf(statm, "%lu", &pages), 1);
	fclose(statm);
	return (rlim_t)pages * 4096;
}

/* What such a child's answer is: 0, or the number of the step that failed. Its child has the words as it. */
static int child_keeps_its_words(void)
{
	rig_atomic_u64 *words = rig_words();
	int status;
	pid_t child;

	if (rig_word_load(&words[23]) != 3)
		return 1;
	rig_word_raise(&words[23], 77);
	if (rig_word_load(&words[23]) != 77)
		return 2;
	if (rig_words_fd() >= 0) /* it would show other memory */
		return 3;
	if (mappings() != 1)
		return 4;
	stuck = false;
	child = fork();
	if (child == 0)
		_exit(rig_word_load(&words[23]) == 77 && rig_words_fd() < 0 ? 0 : 1);
	return waitpid(child, &status, 0) == child && !status ? 0 : 5;
}

static void check_child(void)
{
	rig_atomic_u64 *words = rig_words();
	int status;
	pid_t child;

	rig_word_raise(&words[23], 3);
	child = fork();
	if (child == 0)
		_exit(child_keeps_its_words());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(rig_word_load(&words[23]), 3);
}

/* Address space for half a copy: the child must not write what the parent waits for. */
static void a_child_without_room_for_a_copy_leaves_the_parents_words_alone(void **state)
{
	struct rlimit was, less;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_AS, &was), 0);
	less = (struct rlimit){.rlim_cur = address_space() + BYTES / 2, .rlim_max = was.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_AS, &less), 0);
	check_child();
	assert_int_equal(setrlimit(RLIMIT_AS, &was), 0);
}

static void a_child_whose_copy_cannot_be_put_in_place_keeps_none_of_it(void **state)
{
	(void)state;
	stuck = true;
	check_child();
	stuck = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(nobody_can_have_the_array_before_forks_are_minded_and_it_stays),
	        cmocka_unit_test(the_array_is_page_aligned_and_zero),
	        cmocka_unit_test(there_is_one_array_a_process),
	        cmocka_unit_test(a_device_that_maps_the_descriptor_sees_the_words),
	        cmocka_unit_test(the_descriptor_is_close_on_exec),
	        cmocka_unit_test(raising_never_lowers),
	        cmocka_unit_test(a_forked_child_has_a_private_copy),
	        cmocka_unit_test(a_child_without_room_for_a_copy_leaves_the_parents_words_alone),
	        cmocka_unit_test(a_child_whose_copy_cannot_be_put_in_place_keeps_none_of_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
