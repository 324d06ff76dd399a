/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <png.h>

#include "picture.h"

static void fail(const char *path, const char *why)
{
	fprintf(stderr, "%s: %s\n", path, why);
	exit(1);
}

struct picture picture_read(const char *path)
{
	struct picture picture = {0};
	png_image png = {.version = PNG_IMAGE_VERSION};

	if (!png_image_begin_read_from_file(&png, path))
		fail(path, png.message);
	png.format = PNG_FORMAT_RGBA;
	picture.width = png.width;
	picture.height = png.height;
	picture.bytes = PNG_IMAGE_SIZE(png);
	picture.pixels = malloc(picture.bytes);
	if (!picture.pixels)
		fail(path, "out of memory");
	if (!png_image_finish_read(&png, NULL, picture.pixels, 0, NULL))
		fail(path, png.message);
	return picture;
}

void picture_check_output(const char *path)
{
	bool there = !access(path, F_OK);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

	if (fd < 0)
		fail(path, strerror(errno));
	close(fd);
	if (!there)
		unlink(path);
}

void picture_write(const char *path, const struct picture *picture)
{
	png_image png = {.version = PNG_IMAGE_VERSION,
	        .width = picture->width,
	        .height = picture->height,
	        .format = PNG_FORMAT_RGBA};

	if (!png_image_write_to_file(&png, path, 0, picture->pixels, 0, NULL))
		fail(path, png.message);
}
