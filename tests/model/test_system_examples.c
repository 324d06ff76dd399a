/* SPDX-License-Identifier: MIT */
/* The examples print what their READMEs say, and the filter makes of every PNG what it must. */
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "system.h"

#define README_BYTES 16384
#define LABEL        14 /* columns of the filter's labels */
#define MAX_PIXELS   64

static int setup(void **state)
{
	return sys_setup(state) || symlink(SYS_BUILD "/examples", sys_path("e")) ||
	       symlink(SYS_SOURCE "/examples", sys_path("s"));
}

/* The output that the README shows after the "$" line of its example, "wrote" and all. */
static void read_expected(const char *example, char text[README_BYTES])
{
	char name[128], *start, *end;
	uint8_t *bytes;
	size_t count;

	snprintf(name, sizeof(name), "s/%s/README.md", example);
	count = sys_read_file(sys_path(name), &bytes);
	assert_true(count < README_BYTES);
	memcpy(text, bytes, count);
	text[count] = 0;
	free(bytes);
	start = strstr(text, "\n$ build/examples/");
	assert_non_null(start);
	start = strchr(start + 1, '\n') + 1;
	end = strstr(start, "```");
	assert_non_null(end);
	*end = 0;
	memmove(text, start, strlen(start) + 1);
}

static void run_example(const char *command, struct sys_result *result)
{
	sys_run(result, command);
	sys_assert_done(result);
	assert_string_equal(result->err, "");
	sys_assert_no_process();
}

static void hello_prints_what_its_readme_says(void **state)
{
	char expected[README_BYTES];
	struct sys_result result;

	(void)state;
	read_expected("01-hello", expected);
	run_example("e/01-hello/hello", &result);
	assert_string_equal(result.out, expected);
}

static void matmul_prints_what_its_readme_says(void **state)
{
	char expected[README_BYTES];
	struct sys_result result;

	(void)state;
	read_expected("03-matmul", expected);
	run_example("e/03-matmul/matmul", &result);
	assert_string_equal(result.out, expected);
}

static void timelines_prints_what_its_readme_says_on_every_pair_of_devices(void **state)
{
	char expected[README_BYTES];
	struct sys_result result;

	(void)state;
	read_expected("04-timelines", expected);
	run_example("e/04-timelines/timelines", &result);
	assert_string_equal(result.out, expected);
	run_example("e/04-timelines/timelines sim:completion=store sim", &result);
	assert_string_equal(result.out, expected);
	run_example("e/04-timelines/timelines sim sim:completion=store,aperture=16M", &result);
	assert_string_equal(result.out, expected);
}

static void files_prints_what_its_readme_says_and_keeps_the_bytes(void **state)
{
	char expected[README_BYTES];
	struct sys_result result;
	uint8_t *in, *out;
	size_t bytes;

	(void)state;
	read_expected("05-files", expected);
	run_example("e/05-files/files", &result);
	assert_string_equal(result.out, expected);
	bytes = sys_read_file(sys_path("s/05-files/words.txt"), &in);
	assert_int_equal(sys_read_file(sys_path("files.out"), &out), bytes - 5);
	assert_memory_equal(in + 5, out, bytes - 5);
	free(in);
	free(out);
	sys_run(&result, "e/05-files/files sim e/05-files/nothing");
	sys_assert_failed(&result, 1, "No such file");
	sys_run(&result, "e/05-files/files");
	sys_assert_failed(&result, 1, "File exists");
}

/* ---- The filter ---- */

static png_bytep read_png(const char *name, png_image *image)
{
	png_bytep pixels;

	memset(image, 0, sizeof(*image));
	image->version = PNG_IMAGE_VERSION;
	if (!png_image_begin_read_from_file(image, sys_path(name)))
		fail_msg("%s: %s", name, image->message);
	image->format = PNG_FORMAT_RGBA;
	pixels = malloc(PNG_IMAGE_SIZE(*image));
	assert_non_null(pixels);
	if (!png_image_finish_read(image, NULL, pixels, 0, NULL))
		fail_msg("%s: %s", name, image->message);
	return pixels;
}

static void assert_same_picture(const char *a, const char *b)
{
	png_image one, other;
	png_bytep first = read_png(a, &one), second = read_png(b, &other);

	assert_int_equal(one.width, other.width);
	assert_int_equal(one.height, other.height);
	if (memcmp(first, second, PNG_IMAGE_SIZE(one)) != 0)
		fail_msg("%s and %s differ", a, b);
	free(first);
	free(second);
}

/* What differs from run to run: addresses, times, the word, the firmware's digest. */
static bool is_steady(const char *line)
{
	static const char *const varying[] = {"firmware", "bus addresses", "launch", "word"};
	size_t i;

	for (i = 0; i < sizeof(varying) / sizeof(varying[0]); i++)
		if (!strncmp(line, varying[i], strlen(varying[i])))
			return false;
	return true;
}

static void compare_lines(char *seen, char *expected)
{
	char *line, *want;

	while ((want = strsep(&expected, "\n"))) {
		line = strsep(&seen, "\n");
		assert_non_null(line);
		if (is_steady(want))
			assert_string_equal(line, want);
		else if (strncmp(line, want, LABEL) != 0)
			fail_msg("\"%s\", where the README has \"%s\"", line, want);
	}
	assert_null(seen);
}

static void filter_prints_and_draws_what_its_readme_says(void **state)
{
	char expected[README_BYTES];
	struct sys_result result;

	(void)state;
	read_expected("02-filter", expected);
	run_example("e/02-filter/filter s/02-filter/harbour.png out.png", &result);
	assert_non_null(strstr(result.out, "BLAKE2b-256 "));
	assert_non_null(strstr(result.out, "launch        256 x 256 pixels in "));
	assert_non_null(strstr(result.out, "(of a simulated bus)"));
	compare_lines(result.out, expected);
	assert_same_picture("out.png", "s/02-filter/harbour-ink.png");
}

static void the_picture_is_the_same_on_every_device(void **state)
{
	static const char *const devices[] = {"sim:completion=store,hang=600s", "sim:aperture=16M,hang=600s",
	        "sim:mem=64M,completion=store,hang=600s"};
	struct sys_result result;
	char command[256];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
		snprintf(command, sizeof(command), "e/02-filter/filter s/02-filter/harbour.png out.png %s",
		        devices[i]);
		run_example(command, &result);
		assert_same_picture("out.png", "s/02-filter/harbour-ink.png");
		unlink(sys_path("out.png"));
	}
}

static void write_png(const char *name, uint32_t format, uint32_t width, uint32_t height)
{
	static png_byte pixels[MAX_PIXELS * MAX_PIXELS * 8], map[256 * 4];
	png_image image = {.version = PNG_IMAGE_VERSION, .width = width, .height = height, .format = format};
	size_t i;

	for (i = 0; i < sizeof(pixels); i++)
		pixels[i] = (png_byte)(i * 7 % 251);
	for (i = 0; i < sizeof(map); i++)
		map[i] = (png_byte)(i * 5);
	image.colormap_entries = format & PNG_FORMAT_FLAG_COLORMAP ? 256 : 0;
	if (!png_image_write_to_file(&image, sys_path(name), 0, pixels, 0, map))
		fail_msg("%s: %s", name, image.message);
}

static void pictures_of_every_kind_and_size_are_filtered(void **state)
{
	static const struct {
		uint32_t format, width, height;
	} rows[] = {{PNG_FORMAT_GRAY, 1, 1}, {PNG_FORMAT_GA, 17, 3}, {PNG_FORMAT_RGB, 16, 16},
	        {PNG_FORMAT_RGBA, 1, 33}, {PNG_FORMAT_RGB_COLORMAP, 64, 5}, {PNG_FORMAT_LINEAR_RGB, 15, 31},
	        {PNG_FORMAT_LINEAR_Y, 31, 2}};
	struct sys_result result;
	png_image image;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		write_png("in.png", rows[i].format, rows[i].width, rows[i].height);
		run_example("e/02-filter/filter in.png out.png", &result);
		free(read_png("out.png", &image));
		assert_int_equal(image.width, rows[i].width);
		assert_int_equal(image.height, rows[i].height);
		unlink(sys_path("out.png"));
	}
}

static void what_is_no_picture_is_refused_and_nothing_written(void **state)
{
	static const char *const names[] = {"text.png", "cut.png", "nothere.png"};
	struct sys_result result;
	char command[256];
	uint8_t *bytes;
	size_t i, count = sys_read_file(SYS_SOURCE "/examples/02-filter/harbour.png", &bytes);

	(void)state;
	sys_write_file("text.png", "no picture", 10);
	sys_write_file("cut.png", bytes, count / 2);
	free(bytes);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(command, sizeof(command), "e/02-filter/filter %s none.png", names[i]);
		sys_run(&result, command);
		assert_int_not_equal(result.status, 0);
		assert_true(result.status > 0);
		assert_non_null(strstr(result.err, names[i]));
		assert_int_equal(access(sys_path("none.png"), F_OK), -1);
	}
	sys_assert_no_process();
}

enum { PERIOD = 16 };

/* The same block of pixels over and over, no block of one colour. */
static void write_periodic(const char *name, uint32_t width, uint32_t height)
{
	png_image image = {
	        .version = PNG_IMAGE_VERSION, .width = width, .height = height, .format = PNG_FORMAT_GRAY};
	png_bytep pixels = malloc((size_t)width * height);
	uint32_t x, y;

	assert_non_null(pixels);
	for (y = 0; y < height; y++)
		for (x = 0; x < width; x++)
			pixels[(size_t)y * width + x] = (png_byte)(x % PERIOD * 5 + y % PERIOD * 3 + 60);
	assert_true(png_image_write_to_file(&image, sys_path(name), 0, pixels, 0, NULL));
	free(pixels);
}

/* Of every pixel away from the edges. */
static void assert_periodic(const png_bytep pixels, const png_image *image)
{
	uint32_t x, y;

	for (y = PERIOD; y < image->height - 1; y++)
		for (x = PERIOD; x < image->width - 1; x++) {
			size_t at = 4 * ((size_t)y * image->width + x);
			size_t same =
			        4 * ((size_t)(PERIOD + y % PERIOD) * image->width + PERIOD + x % PERIOD);

			if (memcmp(pixels + at, pixels + same, 4) != 0 || pixels[at + 3] != 255)
				fail_msg("the pixel at %u, %u", x, y);
		}
}

static void a_large_picture_is_filtered_tile_by_tile_to_its_last_pixel(void **state)
{
	static const uint32_t sides[][2] = {{1057, 300}, {4129, 33}};
	struct sys_result result;
	png_image image;
	png_bytep out;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(sides) / sizeof(sides[0]); i++) {
		write_periodic("in.png", sides[i][0], sides[i][1]);
		run_example("e/02-filter/filter in.png out.png", &result);
		out = read_png("out.png", &image);
		assert_int_equal(image.width, sides[i][0]);
		assert_int_equal(image.height, sides[i][1]);
		assert_periodic(out, &image);
		free(out);
		unlink(sys_path("out.png"));
	}
}

static void a_result_that_could_not_be_written_is_refused_before_the_device_opens(void **state)
{
	struct sys_result result;

	(void)state;
	sys_run(&result, "e/02-filter/filter s/02-filter/harbour.png none/out.png");
	assert_int_equal(result.status, 1);
	assert_string_equal(result.out, "");
	assert_string_equal(result.err, "none/out.png: No such file or directory\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(hello_prints_what_its_readme_says),
	        cmocka_unit_test(filter_prints_and_draws_what_its_readme_says),
	        cmocka_unit_test(the_picture_is_the_same_on_every_device),
	        cmocka_unit_test(pictures_of_every_kind_and_size_are_filtered),
	        cmocka_unit_test(what_is_no_picture_is_refused_and_nothing_written),
	        cmocka_unit_test(a_large_picture_is_filtered_tile_by_tile_to_its_last_pixel),
	        cmocka_unit_test(a_result_that_could_not_be_written_is_refused_before_the_device_opens),
	        cmocka_unit_test(matmul_prints_what_its_readme_says),
	        cmocka_unit_test(timelines_prints_what_its_readme_says_on_every_pair_of_devices),
	        cmocka_unit_test(files_prints_what_its_readme_says_and_keeps_the_bytes),
	};

	return cmocka_run_group_tests(tests, setup, sys_teardown);
}
