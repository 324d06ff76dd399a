/* SPDX-License-Identifier: MIT */
/*
 * A fuzz target as an ordinary test: every file of its corpus, then inputs made from them (each cut short at
 * some lengths, some bytes changed), by a fixed sequence, so that a failure repeats.
 */
#include "test.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

#define MADE_INPUTS 64u        /* of each file */
#define MOST_BYTES  (1u << 20) /* of one file */

/* The input is copied to memory of exactly its length, so that a sanitizer sees a read past its end. */
static void run(const uint8_t *bytes, size_t length)
{
	uint8_t *copy = malloc(length ? length : 1);

	assert_non_null(copy);
	if (length)
		memcpy(copy, bytes, length);
	LLVMFuzzerTestOneInput(copy, length);
	free(copy);
}

static size_t read_file(const char *name, uint8_t *bytes)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", RIG_CORPUS, name);
	FILE *file = fopen(path, "rbe");
	if (!file)
		fail_msg("%s: cannot be read", path);
	size_t length = fread(bytes, 1, MOST_BYTES, file);
	fclose(file);
	return length;
}

/* Calls use with each file's bytes; answers the number of files. */
static unsigned each_file(void (*use)(uint8_t *bytes, size_t length))
{
	unsigned n = 0;
	uint8_t *bytes = malloc(MOST_BYTES);
	DIR *dir = opendir(RIG_CORPUS);

	assert_non_null(bytes);
	if (!dir)
		fail_msg("%s: no such folder", RIG_CORPUS);
	for (const struct dirent *e; (e = readdir(dir));) {
		if (e->d_name[0] == '.')
			continue;
		use(bytes, read_file(e->d_name, bytes));
		n++;
	}
	closedir(dir);
	free(bytes);
	return n;
}

static void use_whole(uint8_t *bytes, size_t length)
{
	run(bytes, length);
}

static uint32_t next(uint32_t *state)
{
	return *state = *state * 1664525u + 1013904223u;
}

static void use_changed(uint8_t *bytes, size_t length)
{
	uint32_t state = (uint32_t)length;

	for (unsigned i = 0; length && i < MADE_INPUTS; i++) {
		size_t cut = (next(&state) >> 8) % (length + 1), at = (next(&state) >> 8) % length;
		uint8_t was = bytes[at];

		run(bytes, cut);
		bytes[at] ^= (uint8_t)(1u << (next(&state) >> 29));
		run(bytes, length);
		bytes[at] = was;
	}
}

static void every_file_of_the_corpus_is_survived(void **state)
{
	(void)state;
	assert_true(each_file(use_whole) > 0);
}

static void cut_and_changed_files_are_survived(void **state)
{
	(void)state;
	assert_true(each_file(use_changed) > 0);
}

static void an_empty_input_is_survived(void **state)
{
	(void)state;
	run(NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_file_of_the_corpus_is_survived),
	        cmocka_unit_test(cut_and_changed_files_are_survived),
	        cmocka_unit_test(an_empty_input_is_survived),
	};

	return cmocka_run_group_tests_name(RIG_CORPUS, tests, NULL, NULL);
}
