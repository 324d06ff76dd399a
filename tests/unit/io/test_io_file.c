/* SPDX-License-Identifier: MIT */
/* Files as buffers. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rig_file.h"
#include "rig_help.h"

#define BYTES 10000u

static char folder[] = "/tmp/rig-file-XXXXXX";
static char path[128], fresh[128];

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	(void)snprintf(path, sizeof(path), "%s/file", folder);
	(void)snprintf(fresh, sizeof(fresh), "%s/fresh", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	(void)unlink(path);
	(void)unlink(fresh);
	return rmdir(folder);
}

static void fill_file(uint8_t *bytes)
{
	FILE *file = fopen(path, "w");
	unsigned i;

	for (i = 0; i < BYTES; i++)
		bytes[i] = (uint8_t)(i * 17 + i / 256);
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, BYTES, file), BYTES);
	assert_int_equal(fclose(file), 0);
	(void)unlink(fresh);
}

static struct rig_device *open_files(void)
{
	struct rig_io_opener opener;
	struct rig_device *d;

	rig_file_opener("files", &opener);
	assert_ok(rig_open_io(&opener, &d));
	return d;
}

static void close_files(struct rig_device *d)
{
	assert_ok(rig_close(d));
	rig_device_put(d);
}

static unsigned count_descriptors(void)
{
	unsigned n = 0;
	int fd;

	for (fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void a_file_is_read_at_any_offset(void **state)
{
	struct rig_device *d = open_files();
	uint8_t bytes[BYTES], got[BYTES];
	struct rig_buffer *buffer;
	unsigned before;
	uint64_t at;

	(void)state;
	fill_file(bytes);
	before = count_descriptors();
	assert_ok(rig_file_buffer(d, path, RIG_READ, &buffer));
	assert_int_equal(rig_buffer_bytes(buffer), BYTES);
	for (at = 0; at < BYTES; at += 997) {
		assert_ok(rig_buffer_read(buffer, at, got, BYTES - at));
		assert_memory_equal(got, bytes + at, BYTES - at);
	}
	assert_int_equal(rig_buffer_write(buffer, 0, got, 1), -EBADF);
	assert_false(rig_lost(d, NULL));
	rig_buffer_put(buffer);
	assert_int_equal(count_descriptors(), before);
	close_files(d);
}

static void writes_are_in_the_file_and_never_make_it_longer(void **state)
{
	struct rig_device *d = open_files();
	uint8_t bytes[BYTES], byte = 0xee;
	struct rig_buffer *buffer;
	struct stat st;
	int fd;

	(void)state;
	fill_file(bytes);
	assert_ok(rig_file_buffer(d, path, RIG_WRITE, &buffer));
	assert_ok(rig_buffer_write(buffer, BYTES - 1, &byte, 1));
	assert_ok(rig_file_sync(buffer));
	fd = open(path, O_RDWR);
	assert_int_equal(pread(fd, bytes, 2, BYTES - 1), 1);
	assert_int_equal(bytes[0], 0xee);
	/* Cut short by someone else. */
	assert_int_equal(ftruncate(fd, 100), 0);
	assert_int_equal(rig_buffer_read(buffer, 50, bytes, 51), -EIO);
	assert_int_equal(rig_buffer_write(buffer, 200, bytes, 1), -EIO);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 100);
	(void)close(fd);
	rig_buffer_put(buffer);
	assert_false(rig_lost(d, NULL));
	close_files(d);
}

static void a_new_file_is_never_made_over_another(void **state)
{
	struct rig_device *d = open_files();
	struct rig_buffer *buffer;
	uint8_t bytes[BYTES], got[4] = {1, 1, 1, 1};

	(void)state;
	fill_file(bytes);
	assert_int_equal(rig_file_create(d, path, 4, &buffer), -EEXIST);
	assert_ok(rig_file_create(d, fresh, 4, &buffer));
	assert_ok(rig_buffer_read(buffer, 0, got, 4));
	assert_memory_equal(got, "\0\0\0", 4);
	rig_buffer_put(buffer);
	assert_int_equal(unlink(fresh), 0);
	assert_int_equal(rig_file_create(d, fresh, INT64_MAX, &buffer), -EFBIG);
	assert_int_equal(access(fresh, F_OK), -1);
	close_files(d);
}

static void what_is_no_file_is_refused(void **state)
{
	struct polled_options o = help_options();
	struct bench b = help_open(&o);
	struct rig_device *d = open_files();
	struct rig_buffer *buffer;
	uint8_t bytes[BYTES];
	unsigned before;

	(void)state;
	fill_file(bytes);
	before = count_descriptors();
	assert_int_equal(rig_file_buffer(d, "/nowhere/file", RIG_READ, &buffer), -ENOENT);
	assert_int_equal(rig_file_buffer(d, folder, RIG_READ, &buffer), -EINVAL);
	assert_int_equal(rig_file_buffer(d, "/dev/null", RIG_READ, &buffer), -EINVAL);
	assert_int_equal(rig_file_buffer(b.d, path, RIG_READ, &buffer), -EINVAL);
	assert_int_equal(rig_file_create(b.d, fresh, 4, &buffer), -EINVAL);
	assert_int_equal(access(fresh, F_OK), -1);
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(rig_file_buffer(d, path, RIG_READ, &buffer), -EINVAL);
	assert_int_equal(rig_buffer_create(d, RIG_DEVICE, 10, &buffer), -EINVAL);
	assert_int_equal(count_descriptors(), before);
	buffer = help_buffer(b.d, 10);
	assert_int_equal(rig_file_sync(buffer), -EINVAL);
	rig_buffer_put(buffer);
	help_close(&b);
	close_files(d);
}

/* Through the engine of a device that writes the borrowed pages. */
static void write_through_borrow(struct bench *b, struct rig_buffer *file)
{
	struct rig_buffer *borrowed, *src = help_buffer(b->d, BYTES);
	struct rig_submission *s = help_copy(b->d, BYTES);
	struct rig_run_args *run;
	uint8_t ones[BYTES];

	memset(ones, 1, sizeof(ones));
	assert_ok(rig_buffer_write(src, 0, ones, sizeof(ones)));
	assert_ok(rig_buffer_borrow(b->d, file, &borrowed));
	run = help_copy_run(s, src, borrowed);
	assert_ok(rig_wait(help_submit(s, run)));
	rig_run_put(run);
	rig_submission_put(s);
	rig_buffer_put(borrowed);
	rig_buffer_put(src);
}

static void a_borrow_reaches_the_file_only_if_it_may_be_written(void **state)
{
	struct polled_options o = help_options();
	struct bench b;
	struct rig_device *d = open_files();
	struct rig_buffer *reader, *writer;
	uint8_t bytes[BYTES], got[BYTES];

	(void)state;
	o.maps_host = true;
	b = help_open(&o);
	fill_file(bytes);
	assert_ok(rig_file_buffer(d, path, RIG_READ, &reader));
	write_through_borrow(&b, reader);
	assert_ok(rig_buffer_read(reader, 0, got, BYTES));
	assert_memory_equal(got, bytes, BYTES);
	assert_ok(rig_file_buffer(d, path, RIG_WRITE, &writer));
	write_through_borrow(&b, writer);
	memset(bytes, 1, BYTES);
	assert_ok(rig_buffer_read(reader, 0, got, BYTES));
	assert_memory_equal(got, bytes, BYTES);
	rig_buffer_put(reader);
	rig_buffer_put(writer);
	help_close(&b);
	close_files(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_file_is_read_at_any_offset),
	        cmocka_unit_test(writes_are_in_the_file_and_never_make_it_longer),
	        cmocka_unit_test(a_new_file_is_never_made_over_another),
	        cmocka_unit_test(what_is_no_file_is_refused),
	        cmocka_unit_test(a_borrow_reaches_the_file_only_if_it_may_be_written),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
