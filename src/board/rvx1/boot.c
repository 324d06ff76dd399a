/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "fw_image.h"
#include "rvx1.h"
#include "rvx1/firmware.h"
#include "rvx1_firmware_manifest.h"

static const uint8_t digest[RVX1_FW_DIGEST] = RVX1_FIRMWARE_DIGEST;

/* What the port keeps of board memory: firmware, then tables and rings; user code cannot reach it. */
#define BOOT_START     (RVX1_FW_BASE + RVX1_FW_AREA)
#define BOOT_END_SMALL (4ull << 20)
#define BOOT_END       (8ull << 20)
#define SMALL_MEMORY   (128ull << 20)

#define RING_UNITS 1024u
/* Rings lie in the boot pool, which has room for rings of so many units together, for the ones that these
   replace, and for tables. */
#define RINGS_UNITS       65536u
#define RINGS_UNITS_SMALL 32768u

#define SEGMENT_BYTES (1ull << 20)
#define HANG_MS       10000

#define COMPUTE_RUNS (RIG_RUNS(RIG_LAUNCH) | RIG_RUNS(RIG_WORDS) | RIG_RUNS(RIG_FILL))

static int open_windows(struct rig_port *port)
{
	struct rvx1 *rvx1 = rvx1_of(port);
	int err = rig_port_window(port, RVX1_BAR_REGS, 0, RVX1_BAR_REGS_BYTES, 0, &rvx1->regs);

	if (!err)
		err = rig_port_window(
		        port, RVX1_BAR_REGS, RVX1_STATUS, RVX1_STATUS_BYTES, RIG_WIN_LIVE, &rvx1->status);
	if (!err)
		err = rig_port_window(port, RVX1_BAR_DOORBELL, 0, 0, 0, &rvx1->doorbells);
	if (!err)
		err = rig_port_window(port, RVX1_BAR_MEMORY, 0, 0, RIG_WIN_COMBINE, &rvx1->memory);
	return err;
}

/* Sizes come from the device, so they are checked before they are used. */
static int read_limits(struct rvx1 *rvx1)
{
	const struct rig_win *regs = &rvx1->regs;

	rvx1->memory_bytes = rig_win_load64(regs, RVX1_MEMORY_BYTES);
	rvx1->aperture_bytes = rig_win_load64(regs, RVX1_APERTURE_BYTES);
	rvx1->clock_hz = rig_win_load64(regs, RVX1_CLOCK_HZ);
	rvx1->queues = rig_win_load32(regs, RVX1_QUEUES);
	rvx1->group_threads = rig_win_load32(regs, RVX1_GROUP_THREADS);
	rvx1->group_shared = rig_win_load32(regs, RVX1_GROUP_SHARED);
	rvx1->stack_slots = rig_win_load32(regs, RVX1_STACK_SLOTS);
	if (rvx1->memory_bytes < RVX1_MIN_MEMORY || rvx1->memory_bytes > RVX1_MAX_MEMORY ||
	        rvx1->aperture_bytes < BOOT_END || rvx1->aperture_bytes > rvx1->memory_bytes ||
	        rvx1->aperture_bytes > rig_win_bytes(&rvx1->memory))
		return rig_error_set(-EPROTO,
		        "MEMORY_BYTES 0x%" PRIx64 ", APERTURE_BYTES 0x%" PRIx64 ", BAR2 0x%" PRIx64
		        ": not a board of manual revision 1",
		        rvx1->memory_bytes, rvx1->aperture_bytes, rig_win_bytes(&rvx1->memory));
	if (rvx1->queues < 2 || rvx1->queues > RVX1_MAX_QUEUES || !rvx1->group_threads ||
	        rvx1->group_threads > RVX1_MAX_GROUP_THREADS || rvx1->group_shared > RVX1_MAX_SHARED ||
	        rvx1->stack_slots < rvx1->group_threads)
		return rig_error_set(-EPROTO,
		        "QUEUES %u, GROUP_THREADS %u, GROUP_SHARED %u, STACK_SLOTS %u: not a board "
		        "of manual revision 1",
		        rvx1->queues, rvx1->group_threads, rvx1->group_shared, rvx1->stack_slots);
	return 0;
}

static int identify(struct rig_port *port)
{
	struct rvx1 *rvx1 = rvx1_of(port);
	uint32_t id, revision;
	int err = open_windows(port);

	if (err)
		return err;
	id = rig_win_load32(&rvx1->regs, RVX1_ID);
	revision = rig_win_load32(&rvx1->regs, RVX1_REVISION);
	if (id != RVX1_ID_VALUE || revision >> 16 != RVX1_REVISION_VALUE >> 16)
		return rig_error_set(-ENODEV,
		        "ID 0x%08x, REVISION 0x%08x: this port drives ID 0x%08x, revision %u", id, revision,
		        RVX1_ID_VALUE, RVX1_REVISION_VALUE >> 16);
	return read_limits(rvx1);
}

int rvx1_poke(struct rig_port *port, uint64_t pa, const void *bytes, uint64_t count)
{
	struct rvx1 *rvx1 = rvx1_of(port);

	if (pa % 4 || count % 4 || pa > rvx1->aperture_bytes || count > rvx1->aperture_bytes - pa)
		return rig_error_set(-EINVAL,
		        "board memory 0x%" PRIx64 " + 0x%" PRIx64 ": whole words below 0x%" PRIx64, pa, count,
		        rvx1->aperture_bytes);
	rig_win_write(&rvx1->memory, pa, bytes, count);
	rig_wc_flush();
	return 0;
}

static int write_payload(struct rig_port *port, const struct rig_fw_image *image)
{
	uint64_t area = (image->area_bytes + 7) & ~7ull;
	uint8_t *bytes = calloc(1, area);
	int err;

	if (!bytes)
		return rig_error_set(-ENOMEM, "out of memory for %" PRIu64 " bytes of firmware", area);
	memcpy(bytes, image->payload, image->payload_bytes);
	err = rvx1_poke(port, image->load_address, bytes, area);
	free(bytes);
	return err;
}

static int load_firmware(struct rig_port *port)
{
	struct rvx1 *rvx1 = rvx1_of(port);
	struct rig_fw_image image;
	struct rig_firmware file;
	int err = rig_port_firmware(port, RVX1_FIRMWARE_FILE, &file);

	if (err)
		return err;
	err = rig_fw_verify(file.bytes, file.count, digest);
	if (err) {
		rig_error_set(err,
		        "%s, %zu bytes: its BLAKE2b-256 digest is not the one this driver was built with; "
		        "install the image that came with the library, or set RIG_FIRMWARE_DIR to its folder",
		        file.path, file.count);
		goto out;
	}
	err = rig_fw_parse(file.bytes, file.count, &image);
	if (err) {
		rig_error_set(err, "%s, %zu bytes: not an image of format %u", file.path, file.count,
		        RVX1_FW_FORMAT);
		goto out;
	}
	err = write_payload(port, &image);
	if (!err)
		rig_win_store64(&rvx1->regs, RVX1_CP_ENTRY, image.entry);
out:
	free(file.bytes);
	return err;
}

static int boot_error(struct rvx1 *rvx1, int err)
{
	uint32_t state = rig_win_load32(&rvx1->regs, RVX1_CP_STATE);
	char why[160];

	if (err == -ENODEV)
		return err;
	if (state == RVX1_CP_HALTED) {
		rvx1_halt_text(&rvx1->regs, why, sizeof(why));
		return rig_error_set(-EIO, "%s", why);
	}
	return rig_error_set(err, "the firmware did not get ready: CP_STATE %u, FW_STATE %u, FW_HEARTBEAT %u",
	        state, rig_win_load32(&rvx1->regs, RVX1_FW_STATE),
	        rig_win_load32(&rvx1->regs, RVX1_FW_HEARTBEAT));
}

/* FW_STATE never becomes READY on a halted processor, so a boot that halts is noticed by CP_STATE. */
static int await_ready(struct rig_port *port)
{
	struct rvx1 *rvx1 = rvx1_of(port);
	const struct rig_port_until ready = {RVX1_FW_STATE, UINT32_MAX, RVX1_FW_READY, "FW_STATE"};
	const struct rig_port_until halted = {RVX1_CP_STATE, UINT32_MAX, RVX1_CP_HALTED, "CP_STATE"};
	int err = rig_port_wait32(port, &rvx1->regs, &ready, &halted);

	return err ? boot_error(rvx1, err) : 0;
}

/* "1.0.0, BLAKE2b-256 " and the digest in hexadecimal. */
static void describe_firmware(struct rvx1 *rvx1)
{
	int at = snprintf(rvx1->firmware, sizeof(rvx1->firmware), "%u.%u.%u, BLAKE2b-256 ",
	        RVX1_FIRMWARE_VERSION >> 16, RVX1_FIRMWARE_VERSION >> 8 & 0xFF, RVX1_FIRMWARE_VERSION & 0xFF);

	sodium_bin2hex(rvx1->firmware + at, sizeof(rvx1->firmware) - (size_t)at, digest, sizeof(digest));
}

static int start(struct rig_port *port)
{
	struct rvx1 *rvx1 = rvx1_of(port);
	uint32_t version;
	int err;

	rig_win_store32(&rvx1->regs, RVX1_CP_CTRL, RVX1_CP_CTRL_RUN);
	err = await_ready(port);
	if (err)
		return err;
	version = rig_win_load32(&rvx1->regs, RVX1_FW_VERSION);
	if (version != RVX1_FIRMWARE_VERSION)
		return rig_error_set(-EPROTO, "the firmware says version 0x%08x; the image loaded is 0x%08x",
		        version, RVX1_FIRMWARE_VERSION);
	describe_firmware(rvx1);
	return 0;
}

const struct rig_board_stage rvx1_stages[RVX1_STAGES] = {
        {"identify", identify},
        {"firmware", load_firmware},
        {"start", start},
};

static void describe_pools(const struct rvx1 *rvx1, struct rig_board_facts *facts)
{
	uint64_t boot_end = rvx1->memory_bytes < SMALL_MEMORY ? BOOT_END_SMALL : BOOT_END;

	facts->pools[0] = (struct rig_board_pool){
	        .pa = BOOT_START, .bytes = boot_end - BOOT_START, .visible = true, .boot = true};
	facts->pools[1] = (struct rig_board_pool){
	        .pa = boot_end, .bytes = rvx1->aperture_bytes - boot_end, .visible = true};
	facts->npools = 2;
	if (rvx1->memory_bytes > rvx1->aperture_bytes)
		facts->pools[facts->npools++] = (struct rig_board_pool){
		        .pa = rvx1->aperture_bytes, .bytes = rvx1->memory_bytes - rvx1->aperture_bytes};
}

/* Queues are alike to the board (section 7). The port runs launches on those of even numbers and copies on
   the others, so that the first of each kind stands at the same place whatever their number. */
static void describe_queues(const struct rvx1 *rvx1, struct rig_board_facts *facts)
{
	static const struct rig_queue queues[RVX1_MAX_QUEUES] = {
	        {.name = "COMPUTE:0", .runs = COMPUTE_RUNS},
	        {.name = "COPY:0", .runs = RIG_RUNS(RIG_COPY)},
	        {.name = "COMPUTE:1", .runs = COMPUTE_RUNS},
	        {.name = "COPY:1", .runs = RIG_RUNS(RIG_COPY)},
	        {.name = "COMPUTE:2", .runs = COMPUTE_RUNS},
	        {.name = "COPY:2", .runs = RIG_RUNS(RIG_COPY)},
	        {.name = "COMPUTE:3", .runs = COMPUTE_RUNS},
	        {.name = "COPY:3", .runs = RIG_RUNS(RIG_COPY)},
	};

	memcpy(facts->queues, queues, rvx1->queues * sizeof(queues[0]));
	facts->nqueues = rvx1->queues;
	facts->has_copy_engine = true;
	facts->copy_engine = 1;
}

/* The most of a ring, so that all may have it. */
static uint64_t longest_ring(const struct rvx1 *rvx1)
{
	uint64_t units = rvx1->memory_bytes < SMALL_MEMORY ? RINGS_UNITS_SMALL : RINGS_UNITS;
	uint32_t rings = 2;

	while (rings < rvx1->queues)
		rings *= 2;
	return units / rings;
}

/* In the order of enum rvx1_counter, behind the two stamps. */
static void describe_clock(const struct rvx1 *rvx1, struct rig_board_facts *facts)
{
	static const struct rig_counter counters[RVX1_COUNTERS - RVX1_COUNTER_CYCLES] = {
	        [RVX1_COUNTER_CYCLES - RVX1_COUNTER_CYCLES] = {"cycles", 1},
	        [RVX1_COUNTER_INSTRUCTIONS - RVX1_COUNTER_CYCLES] = {"instructions", 1},
	        [RVX1_COUNTER_BYTES_READ - RVX1_COUNTER_CYCLES] = {"bytes read", 1},
	        [RVX1_COUNTER_BYTES_WRITTEN - RVX1_COUNTER_CYCLES] = {"bytes written", 1},
	};

	if (!rvx1->clock_hz)
		return;
	facts->clock_hz = rvx1->clock_hz;
	facts->clock_ppm = RVX1_CLOCK_PPM;
	facts->counters = counters;
	facts->ncounters = sizeof(counters) / sizeof(counters[0]);
}

int rvx1_describe(struct rig_port *port, struct rig_board_facts *facts)
{
	struct rvx1 *rvx1 = rvx1_of(port);

	describe_queues(rvx1, facts);
	describe_pools(rvx1, facts);
	describe_clock(rvx1, facts);
	facts->memory_bar = RVX1_BAR_MEMORY;
	facts->memory_bar_bytes = rvx1->aperture_bytes;
	facts->memory_host = rig_win_host(&rvx1->memory);
	facts->format = &rvx1_format;
	facts->board_va = RVX1_BOARD_VA;
	facts->system_va = RVX1_SYSTEM_VA;
	facts->system_bits = RVX1_SYSTEM_BITS;
	facts->stack_va = RVX1_STACK_VA;
	facts->stack_bytes = RVX1_STACK_BYTES;
	facts->stack_pitch = RVX1_STACK_PITCH;
	facts->stack_slots = rvx1->group_threads;
	facts->unit_bytes = RVX1_PACKET_BYTES;
	facts->ring_units = RING_UNITS;
	facts->ring_units_max = longest_ring(rvx1);
	facts->segment_bytes = SEGMENT_BYTES;
	facts->board_address = 0;
	facts->system_address = RVX1_SYSTEM;
	facts->vectors = RVX1_VECTORS;
	facts->hang_ms = HANG_MS;
	facts->may_block = !rig_win_host(&rvx1->doorbells) || !rig_win_host(&rvx1->status);
	facts->firmware = rvx1->firmware;
	return 0;
}

int rvx1_root(struct rig_port *port, uint64_t pa)
{
	rig_win_store64(&rvx1_of(port)->regs, RVX1_PT_ROOT, pa);
	return rvx1_invalidate(port, 0, 0);
}

int rvx1_invalidate(struct rig_port *port, uint64_t va, uint64_t bytes)
{
	struct rvx1 *rvx1 = rvx1_of(port);
	uint32_t request = ++rvx1->invalidations;
	const struct rig_port_until done = {RVX1_INV_ACK, UINT32_MAX, request, "INV_ACK"};

	/* The tables before the request, because the board may walk them as soon as it sees it. */
	rig_wc_flush();
	rig_win_store64(&rvx1->regs, RVX1_INV_ADDRESS, va);
	rig_win_store64(&rvx1->regs, RVX1_INV_BYTES, bytes);
	rig_win_store32(&rvx1->regs, RVX1_INV_REQUEST, request);
	return rig_port_wait32(port, &rvx1->regs, &done, NULL);
}

int rvx1_start_value(struct rig_port *port, uint64_t value)
{
	rig_win_store64(&rvx1_of(port)->regs, RVX1_VALUE_SET, value);
	return 0;
}

int rvx1_enable(struct rig_port *port, uint32_t queue, uint64_t ring, uint64_t units)
{
	const struct rig_win *regs = &rvx1_of(port)->regs;
	uint64_t base = RVX1_QUEUE_BASE + (uint64_t)queue * RVX1_QUEUE_PITCH;

	rig_win_store64(regs, base + RVX1_QUEUE_RING, ring);
	rig_win_store32(regs, base + RVX1_QUEUE_ENTRIES, (uint32_t)units);
	rig_win_store64(regs, base + RVX1_QUEUE_START, 0);
	rig_win_store32(regs, base + RVX1_QUEUE_CTRL, RVX1_QUEUE_ENABLE);
	return 0;
}

void rvx1_halt(struct rig_port *port)
{
	struct rvx1 *rvx1 = rvx1_of(port);

	/* Holds the processor in reset: nothing starts any more (section 5.1). A boot that got no window
	   started nothing. */
	if (rig_win_bytes(&rvx1->regs))
		rig_win_store32(&rvx1->regs, RVX1_CP_CTRL, 0);
}
