/* SPDX-License-Identifier: MIT */
/* A board at work: boot, tables, rings. */
#include "rvx_client.h"

#include "rvx1/firmware.h"
#include "rvx1/packet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka wants the lines above */
#include "test.h"

#define TABLE_BYTES 4096u
#define RING_PITCH  0x10000u
#define VALID       RVX1_PTE_V
#define KERNEL_BITS (RVX1_PTE_R | RVX1_PTE_W | RVX1_PTE_X | RVX1_PTE_U)
#define HUGE        (2ull << 20)
#define IMAGE       "/firmware/rvx1-firmware.bin"
#define PATH_BYTES  4096u

void rvx_start_code(struct rvx_client *c, uint64_t at, const uint32_t *code, size_t words)
{
	memcpy(c->memory + at, code, words * sizeof(*code));
	rvx_set64(c, RVX1_CP_ENTRY, at);
	rvx_set32(c, RVX1_CP_CTRL, RVX1_CP_CTRL_RUN);
}

static FILE *open_image(void)
{
	const char *build = getenv("RIG_BUILD_DIR");
	char path[PATH_BYTES];

	if (!build)
		return NULL;
	snprintf(path, sizeof(path), "%s%s", build, IMAGE);
	return fopen(path, "rb");
}

bool rvx_boot(struct rvx_client *c)
{
	struct rvx1_fw_header header;
	FILE *image = open_image();

	if (!image)
		return false;
	assert_int_equal(fread(&header, 1, sizeof(header), image), sizeof(header));
	assert_true(header.magic == RVX1_FW_MAGIC && header.payload_bytes <= header.area_bytes);
	assert_true(header.load_address + header.area_bytes <= c->memory_bytes);
	memset(c->memory + header.load_address, 0, header.area_bytes);
	assert_int_equal(
	        fread(c->memory + header.load_address, 1, header.payload_bytes, image), header.payload_bytes);
	fclose(image);
	rvx_set64(c, RVX1_CP_ENTRY, header.entry);
	rvx_set32(c, RVX1_CP_CTRL, RVX1_CP_CTRL_RUN);
	rvx_await_reg(c, RVX1_FW_STATE, RVX1_FW_READY);
	return true;
}

/* ---- tables; the first table of RVX_AT_TABLES is the root, its last word counts those in use ---- */

static uint64_t *table_at(struct rvx_client *c, uint64_t address)
{
	return (uint64_t *)(void *)(c->memory + address);
}

static uint64_t *used_tables(struct rvx_client *c)
{
	return table_at(c, RVX_AT_TABLES - sizeof(uint64_t));
}

void rvx_pt_clear(struct rvx_client *c)
{
	memset(c->memory + RVX_AT_TABLES, 0, TABLE_BYTES);
	*used_tables(c) = 1;
}

static uint64_t new_table(struct rvx_client *c)
{
	uint64_t address = RVX_AT_TABLES + (*used_tables(c))++ * TABLE_BYTES;

	assert_true(address < RVX_AT_RING);
	memset(c->memory + address, 0, TABLE_BYTES);
	return address;
}

static uint64_t entry_for(uint64_t address)
{
	return address >> 12 << RVX1_PTE_PPN_SHIFT | VALID;
}

void rvx_pt_leaf(struct rvx_client *c, uint64_t va, uint64_t address, uint64_t bits, unsigned level)
{
	uint64_t table = RVX_AT_TABLES;

	for (unsigned at = 3; at > level; at--) {
		uint64_t *entry = table_at(c, table) + (va >> (12 + 9 * at) & 511);
		if (!(*entry & VALID))
			*entry = entry_for(new_table(c));
		table = (*entry & RVX1_PTE_PPN_MASK) >> RVX1_PTE_PPN_SHIFT << 12;
	}
	__atomic_store_n(table_at(c, table) + (va >> (12 + 9 * level) & 511), entry_for(address) | bits,
	        __ATOMIC_RELEASE);
}

void rvx_linear(struct rvx_client *c)
{
	rvx_pt_clear(c);
	for (uint64_t at = 0; at < c->memory_bytes; at += HUGE)
		rvx_pt_leaf(c, RVX_VA_BOARD + at, at, KERNEL_BITS, 1);
	for (uint64_t at = 0; at < RVX_HOST_BYTES; at += HUGE)
		rvx_pt_leaf(c, RVX_VA_HOST + at, RVX_HOST_IOVA + at, KERNEL_BITS | RVX1_PTE_SYSTEM, 1);
	for (uint64_t at = 0; at < RVX_MSG_BYTES; at += TABLE_BYTES)
		rvx_pt_leaf(c, RVX_VA_MSG + at, RVX_MSG_IOVA + at, KERNEL_BITS | RVX1_PTE_SYSTEM, 0);
	rvx_set64(c, RVX1_PT_ROOT, RVX_AT_TABLES);
}

/* ---- rings, in board memory ---- */

static uint32_t queue_reg(const struct rvx_queue *q, uint32_t off)
{
	return RVX1_QUEUE_BASE + q->id * RVX1_QUEUE_PITCH + off;
}

void rvx_queue_open(struct rvx_client *c, struct rvx_queue *q, unsigned id, uint32_t entries)
{
	*q = (struct rvx_queue){.client = c, .id = id, .entries = entries};
	assert_true(entries * RVX1_PACKET_BYTES <= RING_PITCH);
	memset(c->memory + RVX_AT_RING + id * RING_PITCH, 0, RING_PITCH);
	rvx_set64(c, queue_reg(q, RVX1_QUEUE_RING), RVX_AT_RING + id * RING_PITCH);
	rvx_set32(c, queue_reg(q, RVX1_QUEUE_ENTRIES), entries);
	rvx_set64(c, queue_reg(q, RVX1_QUEUE_START), 0);
	rvx_set32(c, queue_reg(q, RVX1_QUEUE_CTRL), RVX1_QUEUE_ENABLE);
}

void rvx_put(struct rvx_queue *q, const struct rvx1_packet *packet)
{
	uint64_t slot = q->written++ % q->entries;

	memcpy(q->client->memory + RVX_AT_RING + q->id * RING_PITCH + slot * RVX1_PACKET_BYTES, packet,
	        sizeof(*packet));
}

void rvx_ring(struct rvx_queue *q)
{
	__atomic_store_n((uint64_t *)(void *)(q->client->doorbells + q->id * RVX1_DOORBELL_PITCH), q->written,
	        __ATOMIC_RELEASE);
}

void rvx_release(struct rvx_queue *q, uint64_t value)
{
	struct rvx1_packet packet = {.opcode = RVX1_OP_RELEASE};

	packet.u.word.value = value;
	rvx_put(q, &packet);
	rvx_ring(q);
}

void rvx_await_value(struct rvx_client *c, uint64_t value)
{
	double deadline = rvx_seconds() + RVX_DEADLINE_S;
	const uint64_t *at = (const uint64_t *)(const void *)(c->status + RVX1_STATUS_VALUE);

	while (__atomic_load_n(at, __ATOMIC_ACQUIRE) < value) {
		assert_true(rvx_serve(c));
		uint32_t fault = __atomic_load_n(
		        (const uint32_t *)(const void *)(c->status + RVX1_STATUS_FAULT), __ATOMIC_ACQUIRE);
		if (fault)
			fail_msg("fault %u at 0x%llx, pc 0x%llx, thread %u, packet %u", fault,
			        (unsigned long long)rvx_reg64(c, RVX1_FAULT_ADDRESS),
			        (unsigned long long)rvx_reg64(c, RVX1_FAULT_PC),
			        rvx_reg32(c, RVX1_FAULT_THREAD), rvx_reg32(c, RVX1_FAULT_OPCODE));
		if (rvx_seconds() > deadline)
			fail_msg("VALUE is %llu, not %llu", (unsigned long long)*at,
			        (unsigned long long)value);
	}
}

void rvx_await_fault(struct rvx_client *c, uint32_t code)
{
	double deadline = rvx_seconds() + RVX_DEADLINE_S;
	const uint32_t *at = (const uint32_t *)(const void *)(c->status + RVX1_STATUS_FAULT);

	while (!__atomic_load_n(at, __ATOMIC_ACQUIRE)) {
		assert_true(rvx_serve(c));
		if (rvx_seconds() > deadline)
			fail_msg("no fault");
	}
	assert_int_equal(__atomic_load_n(at, __ATOMIC_ACQUIRE), code);
	assert_int_equal(rvx_reg32(c, RVX1_FAULT_CODE), code);
}
