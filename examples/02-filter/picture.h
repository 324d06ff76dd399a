/* SPDX-License-Identifier: MIT */
/* PNG files as RGBA pixels, by libpng's simplified interface. */
#ifndef PICTURE_H
#define PICTURE_H

#include <stdint.h>

struct picture {
	uint32_t width, height;
	uint8_t *pixels; /* width * height of red, green, blue, alpha; the caller frees it */
	uint64_t bytes;
};

/* Reads any PNG, 8-bit RGBA whatever it was. Ends the program with the reason on failure. */
struct picture picture_read(const char *path);

/* Ends the program, leaving no file, if it could not write one of this name. Before work whose result would
   be lost. */
void picture_check_output(const char *path);
void picture_write(const char *path, const struct picture *picture);

#endif
