/* SPDX-License-Identifier: MIT */
/*
 * Packs the firmware's payload into the image that hosts load, and writes the manifest that a driver is
 * compiled with: pack PAYLOAD IMAGE MANIFEST. The same payload gives the same bytes, wherever and whenever it
 * runs.
 */
#include <endian.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rvx1/firmware.h>

#include "fw_version.h"

#define DIGEST_ROW 8u /* bytes of the digest a line */

struct bytes {
	uint8_t *at;
	size_t length;
};

/* The payload, behind room for its header. NULL with a message: not readable, empty, or larger than the
 * area. */
static struct bytes read_payload(const char *path)
{
	struct bytes b = {calloc(1, sizeof(struct rvx1_fw_header) + RVX1_FW_AREA), 0};
	FILE *file = fopen(path, "rb");

	if (b.at && file)
		b.length = fread(b.at + sizeof(struct rvx1_fw_header), 1, RVX1_FW_AREA, file);
	if (b.length == 0 || b.length == RVX1_FW_AREA || ferror(file)) {
		fprintf(stderr, "pack: %s: not a payload of 1 to %llu bytes\n", path, RVX1_FW_AREA - 1);
		free(b.at);
		b.at = NULL;
	}
	if (file)
		fclose(file);
	return b;
}

static void write_header(struct bytes *image)
{
	struct rvx1_fw_header header = {
	        .magic = htole64(RVX1_FW_MAGIC),
	        .format = htole32(RVX1_FW_FORMAT),
	        .version = htole32(FW_VERSION),
	        .load_address = htole64(RVX1_FW_BASE),
	        .entry = htole64(RVX1_FW_BASE),
	        .payload_bytes = htole64(image->length),
	        .area_bytes = htole64(RVX1_FW_AREA),
	};

	memcpy(image->at, &header, sizeof(header));
	image->length += sizeof(header);
}

static void write_manifest(FILE *file, const struct bytes *image)
{
	uint8_t digest[RVX1_FW_DIGEST];

	crypto_generichash(digest, sizeof(digest), image->at, image->length, NULL, 0);
	fprintf(file,
	        "/* SPDX-License-Identifier: MIT */\n"
	        "/* Made by firmware/image/pack.c: the one firmware image that this build runs. */\n"
	        "#ifndef RVX1_FIRMWARE_MANIFEST_H\n#define RVX1_FIRMWARE_MANIFEST_H\n\n"
	        "#define RVX1_FIRMWARE_FILE    \"rvx1-firmware.bin\"\n"
	        "#define RVX1_FIRMWARE_VERSION 0x%06Xu /* major << 16 | minor << 8 | patch */\n"
	        "#define RVX1_FIRMWARE_BYTES   %zuu\n"
	        "/* BLAKE2b-256 of the file */\n#define RVX1_FIRMWARE_DIGEST \\\n\t{ \\\n",
	        FW_VERSION, image->length);
	for (unsigned i = 0; i < RVX1_FW_DIGEST; i++)
		fprintf(file, "%s0x%02X,%s", i % DIGEST_ROW ? " " : "\t\t", digest[i],
		        i % DIGEST_ROW == DIGEST_ROW - 1 ? " \\\n" : "");
	fprintf(file, "\t}\n\n#endif\n");
}

/* Closes the file; whether everything reached it. */
static int finish(FILE *file, const char *path)
{
	int bad = !file || ferror(file);

	if (file && fclose(file))
		bad = 1;
	if (bad)
		fprintf(stderr, "pack: %s: cannot be written\n", path);
	return bad;
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: pack PAYLOAD IMAGE MANIFEST\n");
		return 2;
	}
	struct bytes image = read_payload(argv[1]);

	if (!image.at)
		return 1;
	write_header(&image);

	FILE *file = fopen(argv[2], "wb"), *manifest = fopen(argv[3], "w");

	if (file)
		fwrite(image.at, 1, image.length, file);
	if (manifest)
		write_manifest(manifest, &image);
	int bad = finish(file, argv[2]) | finish(manifest, argv[3]);

	free(image.at);
	return bad;
}
