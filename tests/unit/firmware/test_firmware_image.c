/* SPDX-License-Identifier: MIT */
/* Packed firmware images: firmware/image/fw_image.h, and the image of this build. */
#include "test.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rvx1_firmware_manifest.h>

#include "fw_image.h"

#define PAYLOAD 64u

struct image {
	struct rvx1_fw_header header;
	uint8_t payload[PAYLOAD];
};

static struct image good(void)
{
	struct image i = {
	        .header =
	                {
	                        .magic = RVX1_FW_MAGIC,
	                        .format = RVX1_FW_FORMAT,
	                        .version = 0x010203,
	                        .load_address = RVX1_FW_BASE,
	                        .entry = RVX1_FW_BASE,
	                        .payload_bytes = PAYLOAD,
	                        .area_bytes = RVX1_FW_AREA,
	                },
	};

	return i;
}

static int parse(const struct image *i, struct rig_fw_image *out)
{
	return rig_fw_parse((const uint8_t *)i, sizeof(*i), out);
}

static void a_good_image_is_described(void **state)
{
	struct image i = good();
	struct rig_fw_image out;

	(void)state;
	i.header.entry = RVX1_FW_BASE + PAYLOAD - 2;
	assert_int_equal(parse(&i, &out), 0);
	assert_ptr_equal(out.payload, i.payload);
	assert_int_equal(out.payload_bytes, PAYLOAD);
	assert_int_equal(out.load_address, RVX1_FW_BASE);
	assert_int_equal(out.area_bytes, RVX1_FW_AREA);
	assert_int_equal(out.entry, RVX1_FW_BASE + PAYLOAD - 2);
	assert_int_equal(out.version, 0x010203);
}

static void what_is_no_image_is_told_from_a_broken_one(void **state)
{
	struct image i = good();
	struct rig_fw_image out;

	(void)state;
	assert_int_equal(rig_fw_parse((const uint8_t *)&i, 0, &out), -ENOEXEC);
	assert_int_equal(rig_fw_parse((const uint8_t *)&i, sizeof(i.header) - 1, &out), -ENOEXEC);
	i.header.magic ^= 1;
	assert_int_equal(parse(&i, &out), -ENOEXEC);
	i = good();
	i.header.format++;
	assert_int_equal(parse(&i, &out), -ENOEXEC);
}

static void an_image_cut_short_or_too_long_is_refused(void **state)
{
	struct image i = good();
	struct rig_fw_image out;

	(void)state;
	for (size_t n = sizeof(i.header); n < sizeof(i); n++)
		assert_int_equal(rig_fw_parse((const uint8_t *)&i, n, &out), -EMSGSIZE);
	i.header.payload_bytes--;
	assert_int_equal(parse(&i, &out), -EMSGSIZE);
	i.header.payload_bytes = UINT64_MAX;
	assert_int_equal(parse(&i, &out), -EMSGSIZE);
}

static void check_bad(size_t field, uint64_t value)
{
	struct image i = good();
	struct rig_fw_image out;

	memcpy((uint8_t *)&i + field, &value, sizeof(value));
	if (parse(&i, &out) != -EINVAL)
		fail_msg("field at %zu passes with 0x%llx", field, (unsigned long long)value);
}

#define LOAD  offsetof(struct image, header.load_address)
#define ENTRY offsetof(struct image, header.entry)
#define AREA  offsetof(struct image, header.area_bytes)

static void addresses_outside_the_firmwares_area_are_refused(void **state)
{
	(void)state;
	check_bad(LOAD, RVX1_FW_BASE - 8);
	check_bad(LOAD, RVX1_FW_BASE + 8); /* the area then ends outside */
	check_bad(LOAD, RVX1_FW_BASE + 4);
	check_bad(LOAD, UINT64_MAX - 7);
	check_bad(LOAD, 0);
	check_bad(AREA, RVX1_FW_AREA + 1);
	check_bad(AREA, UINT64_MAX);
	check_bad(AREA, PAYLOAD - 1);
	check_bad(AREA, 0);
	check_bad(ENTRY, RVX1_FW_BASE - 2);
	check_bad(ENTRY, RVX1_FW_BASE + 1);
	check_bad(ENTRY, RVX1_FW_BASE + PAYLOAD);
	check_bad(ENTRY, 0);
	check_bad(ENTRY, UINT64_MAX - 1);
}

static void an_empty_payload_is_refused(void **state)
{
	struct image i = good();
	struct rig_fw_image out;

	(void)state;
	i.header.payload_bytes = 0;
	assert_int_equal(rig_fw_parse((const uint8_t *)&i, sizeof(i.header), &out), -EINVAL);
}

/* The image of this build. */
static uint8_t *read_image(size_t *length)
{
	const char *build = getenv("RIG_BUILD_DIR");
	uint8_t *bytes = malloc(RVX1_FW_AREA);
	char path[4096];

	if (!build || !bytes)
		fail_msg("RIG_BUILD_DIR is not set");
	snprintf(path, sizeof(path), "%s/firmware/%s", build, RVX1_FIRMWARE_FILE);
	FILE *file = fopen(path, "rb");

	if (!file)
		fail_msg("%s: cannot be read", path);
	*length = fread(bytes, 1, RVX1_FW_AREA, file);
	fclose(file);
	return bytes;
}

static void this_builds_image_is_the_one_of_the_manifest(void **state)
{
	static const uint8_t digest[RVX1_FW_DIGEST] = RVX1_FIRMWARE_DIGEST;
	struct rig_fw_image image;
	size_t length;
	uint8_t *bytes = read_image(&length);

	(void)state;
	assert_int_equal(length, RVX1_FIRMWARE_BYTES);
	assert_int_equal(rig_fw_verify(bytes, length, digest), 0);
	assert_int_equal(rig_fw_parse(bytes, length, &image), 0);
	assert_int_equal(image.version, RVX1_FIRMWARE_VERSION);
	free(bytes);
}

static void a_flipped_bit_or_a_missing_byte_is_another_digest(void **state)
{
	static const uint8_t digest[RVX1_FW_DIGEST] = RVX1_FIRMWARE_DIGEST;
	size_t length;
	uint8_t *bytes = read_image(&length);

	(void)state;
	for (size_t at = 0; at < length; at += 97) {
		bytes[at] ^= 0x10;
		assert_int_equal(rig_fw_verify(bytes, length, digest), -EBADMSG);
		bytes[at] ^= 0x10;
	}
	assert_int_equal(rig_fw_verify(bytes, length - 1, digest), -EBADMSG);
	assert_int_equal(rig_fw_verify(bytes, 0, digest), -EBADMSG);
	assert_int_equal(rig_fw_verify(bytes, length, digest), 0);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_good_image_is_described),
	        cmocka_unit_test(what_is_no_image_is_told_from_a_broken_one),
	        cmocka_unit_test(an_image_cut_short_or_too_long_is_refused),
	        cmocka_unit_test(addresses_outside_the_firmwares_area_are_refused),
	        cmocka_unit_test(an_empty_payload_is_refused),
	        cmocka_unit_test(this_builds_image_is_the_one_of_the_manifest),
	        cmocka_unit_test(a_flipped_bit_or_a_missing_byte_is_another_digest),
	};

	return cmocka_run_group_tests_name("firmware: packed image", tests, NULL, NULL);
}
