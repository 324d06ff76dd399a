/* SPDX-License-Identifier: MIT */
/*
 * Whatever a vfio-user device process sends, the client's parsers stay inside the bytes they were given, and
 * what they accept keeps the promises of vfio_user_parse.h. The first byte picks the parser, the second its
 * parameter.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "vfio_user_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

enum { HEADER, VERSION, DEVICE, REGION, IRQ, READ, WRITE, DMA_READ, DMA_WRITE, PARSERS };

/* A promise broken is a crash that the fuzzer keeps. */
static void promise(int kept)
{
	if (!kept)
		abort();
}

static void version(const uint8_t *bytes, size_t length, const char **why)
{
	struct rig_vuser_caps caps;

	if (rig_vuser_parse_version(bytes, length, &caps, why))
		return;
	promise(caps.max_fds >= 1 && caps.max_xfer >= 8 && caps.max_maps >= 1 && caps.page_sizes != 0);
	/* What a message's buffer is made from, and what one sendmsg(2) carries. */
	promise(caps.max_xfer <= 16u << 20 && caps.max_fds <= 253);
	promise(!caps.twin || length > sizeof(struct rig_vuser_version));
}

static void region(const uint8_t *bytes, size_t length, unsigned index, const char **why)
{
	struct rig_vfio_region r;
	uint64_t end = 0;

	if (rig_vuser_parse_region(bytes, length, index, &r, why))
		return;
	promise(r.areas <= RIG_VFIO_AREAS && r.fd == -1);
	for (unsigned i = 0; i < r.areas; i++) {
		promise(r.area[i].bytes > 0 && r.area[i].offset >= end);
		promise(r.area[i].offset <= r.bytes && r.area[i].bytes <= r.bytes - r.area[i].offset);
		end = r.area[i].offset + r.area[i].bytes;
	}
}

static void access_reply(const uint8_t *bytes, size_t length, uint32_t count, int read, const char **why)
{
	struct rig_vuser_region_access asked = {.count = count};
	const void *data;

	if (length >= sizeof(asked)) {
		memcpy(&asked, bytes, sizeof(asked));
		asked.count = count;
	}
	if (!read)
		(void)rig_vuser_parse_region_write(bytes, length, &asked, why);
	else if (!rig_vuser_parse_region_read(bytes, length, &asked, &data, why))
		promise((const uint8_t *)data + count == bytes + length);
}

static void dma(const uint8_t *bytes, size_t length, int write, const char **why)
{
	struct rig_vuser_dma_access a;
	const void *data;

	if (rig_vuser_parse_dma(bytes, length, write, 4096, &a, &data, why))
		return;
	promise(a.count <= 4096);
	promise(write ? (const uint8_t *)data + a.count == bytes + length : data == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct rig_vuser_header header;
	struct rig_vuser_device_info info;
	const char *why = "";
	unsigned which, index, count;

	if (length < 2)
		return 0;
	which = bytes[0] % PARSERS;
	index = bytes[1];
	bytes += 2;
	length -= 2;
	switch (which) {
	case HEADER:
		if (!rig_vuser_parse_header(bytes, length, 4096, &header, &why))
			promise(header.size >= sizeof(header) && header.size <= 4096);
		break;
	case VERSION:
		version(bytes, length, &why);
		break;
	case DEVICE:
		(void)rig_vuser_parse_device(bytes, length, &info, &why);
		break;
	case REGION:
		region(bytes, length, index, &why);
		break;
	case IRQ:
		if (!rig_vuser_parse_irq(bytes, length, index, &count, &why))
			promise(count <= 2048);
		break;
	case READ:
	case WRITE:
		access_reply(bytes, length, index, which == READ, &why);
		break;
	default:
		dma(bytes, length, which == DMA_WRITE, &why);
		break;
	}
	promise(why != NULL);
	return 0;
}
