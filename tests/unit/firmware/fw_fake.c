/* SPDX-License-Identifier: MIT */
#include "fw_fake.h"

#include "test.h"
#include <stdlib.h>
#include <string.h>

#include "fw_io.h"

#define REGS_BYTES      RVX1_BAR_REGS_BYTES
#define ENGINES_BYTES   0x1000u
#define DOORBELLS_BYTES (RVX1_MAX_QUEUES * RVX1_DOORBELL_PITCH)
#define LOG_ENTRIES     4096u
#define MOST_PASSES     1000u

static struct {
	uint8_t *memory, *regs, *engines, *doorbells, *system;
	uint64_t pushed[FAKE_QUEUES];
	uint64_t log[LOG_ENTRIES];
	unsigned nlog;
} fake;

/* NULL: system memory that does not answer. Any other address that is nowhere fails the test, as it halts the
 * processor. */
static uint8_t *find(uint64_t address, unsigned width)
{
	assert_int_equal(address % width, 0);
	if (address < FAKE_MEMORY)
		return fake.memory + address;
	if (address - RVX1_CP_REGS < REGS_BYTES)
		return fake.regs + (address - RVX1_CP_REGS);
	if (address - RVX1_CP_ENGINES < ENGINES_BYTES)
		return fake.engines + (address - RVX1_CP_ENGINES);
	if (address - RVX1_CP_DOORBELLS < DOORBELLS_BYTES)
		return fake.doorbells + (address - RVX1_CP_DOORBELLS);
	if (address - FAKE_SYSTEM < FAKE_BUS_BYTES)
		return fake.system + (address - FAKE_SYSTEM);
	if (address >> 56 != RVX1_SYSTEM >> 56)
		fail_msg("the firmware used address 0x%llx, which is nowhere", (unsigned long long)address);
	return NULL;
}

/* Section 5.4: the first error is kept. */
static void miss(uint64_t address, uint32_t access)
{
	if (fake_engine32(RVX1_BUS_ERROR))
		return;
	memcpy(fake.engines + RVX1_BUS_ERROR, &access, sizeof(access));
	memcpy(fake.engines + RVX1_BUS_ADDRESS, &address, sizeof(address));
}

static uint64_t load(uint64_t address, unsigned width)
{
	const uint8_t *at = find(address, width);
	uint64_t value = 0;

	if (!at) {
		miss(address, RVX1_ACCESS_READ);
		return UINT64_MAX;
	}
	memcpy(&value, at, width);
	return value;
}

/* Section 5.3: what a write of CTRL does. */
static void control(uint64_t engine, uint64_t value)
{
	uint32_t state = fake_engine32((uint32_t)engine + RVX1_ENGINE_STATE);

	if (value == RVX1_ENGINE_START) {
		assert_int_equal(state, RVX1_ENGINE_IDLE);
		fake_end_job((uint32_t)engine, RVX1_ENGINE_RUNNING);
	} else {
		assert_int_equal(value, RVX1_ENGINE_ACK);
		assert_int_equal(state, RVX1_ENGINE_DONE);
		fake_end_job((uint32_t)engine, RVX1_ENGINE_IDLE);
	}
}

static void store(uint64_t address, uint64_t value, unsigned width)
{
	uint8_t *at = find(address, width);

	if (!at) {
		miss(address, RVX1_ACCESS_WRITE);
		return;
	}
	assert_true(fake.nlog < LOG_ENTRIES);
	fake.log[fake.nlog++] = address;
	memcpy(at, &value, width);
	if (address == RVX1_CP_ENGINES + RVX1_COMPUTE || address == RVX1_CP_ENGINES + RVX1_COPIER)
		control(address - RVX1_CP_ENGINES, value);
}

uint32_t fw_load32(uint64_t address)
{
	return (uint32_t)load(address, 4);
}

uint64_t fw_load64(uint64_t address)
{
	return load(address, 8);
}

void fw_store32(uint64_t address, uint32_t value)
{
	store(address, value, 4);
}

void fw_store64(uint64_t address, uint64_t value)
{
	store(address, value, 8);
}

void fw_acquire(void)
{
}

void fw_release(void)
{
}

void fw_sleep(void)
{
}

void fake_init(struct fw *fw)
{
	memset(&fake, 0, sizeof(fake));
	memset(fw, 0, sizeof(*fw));
	fake.memory = calloc(1, FAKE_MEMORY);
	fake.regs = calloc(1, REGS_BYTES);
	fake.engines = calloc(1, ENGINES_BYTES);
	fake.doorbells = calloc(1, DOORBELLS_BYTES);
	fake.system = calloc(1, FAKE_BUS_BYTES);
	assert_true(fake.memory && fake.regs && fake.engines && fake.doorbells && fake.system);
	fake_set_reg32(RVX1_ID, RVX1_ID_VALUE);
	fake_set_reg32(RVX1_REVISION, RVX1_REVISION_VALUE);
	fake_set_reg32(RVX1_QUEUES, FAKE_QUEUES);
	fake_set_reg64(RVX1_MEMORY_BYTES, FAKE_MEMORY);
	assert_true(fw_boot(fw));
}

void fake_fini(void)
{
	free(fake.memory);
	free(fake.regs);
	free(fake.engines);
	free(fake.doorbells);
	free(fake.system);
}

uint32_t fake_reg32(uint32_t offset)
{
	return fw_load32(RVX1_CP_REGS + offset);
}

uint64_t fake_reg64(uint32_t offset)
{
	return fw_load64(RVX1_CP_REGS + offset);
}

void fake_set_reg32(uint32_t offset, uint32_t value)
{
	memcpy(fake.regs + offset, &value, sizeof(value));
}

void fake_set_reg64(uint32_t offset, uint64_t value)
{
	memcpy(fake.regs + offset, &value, sizeof(value));
}

uint64_t fake_word(uint64_t address)
{
	return fw_load64(address);
}

void fake_set_word(uint64_t address, uint64_t value)
{
	memcpy(find(address, 8), &value, sizeof(value));
}

uint64_t fake_status(uint32_t offset)
{
	return fake_reg64(RVX1_STATUS + offset);
}

uint64_t fake_read(unsigned queue)
{
	return fake_status(RVX1_STATUS_QUEUE + queue * RVX1_STATUS_PITCH + RVX1_STATUS_READ);
}

void fake_enable(unsigned queue)
{
	uint32_t base = RVX1_QUEUE_BASE + queue * RVX1_QUEUE_PITCH;

	fake_set_reg64(base + RVX1_QUEUE_RING, FAKE_RING(queue));
	fake_set_reg32(base + RVX1_QUEUE_ENTRIES, FAKE_ENTRIES);
	fake_set_reg64(base + RVX1_QUEUE_START, 0);
	fake_set_reg32(base + RVX1_QUEUE_CTRL, RVX1_QUEUE_ENABLE);
}

void fake_push(unsigned queue, const struct rvx1_packet *packet)
{
	uint64_t slot = fake.pushed[queue]++ % FAKE_ENTRIES;
	uint8_t *doorbell = fake.doorbells + queue * RVX1_DOORBELL_PITCH + RVX1_DOORBELL_WRITE;

	memcpy(fake.memory + FAKE_RING(queue) + slot * sizeof(*packet), packet, sizeof(*packet));
	memcpy(doorbell, &fake.pushed[queue], sizeof(fake.pushed[queue]));
}

void fake_push_word(unsigned queue, unsigned opcode, uint32_t arg, uint64_t address, uint64_t value)
{
	struct rvx1_packet p = {.opcode = (uint8_t)opcode, .arg = arg};

	p.u.word.address = address;
	p.u.word.value = value;
	fake_push(queue, &p);
}

uint32_t fake_engine32(uint32_t offset)
{
	uint32_t value;

	memcpy(&value, fake.engines + offset, sizeof(value));
	return value;
}

uint64_t fake_engine64(uint32_t offset)
{
	uint64_t value;

	memcpy(&value, fake.engines + offset, sizeof(value));
	return value;
}

void fake_set_engine64(uint32_t offset, uint64_t value)
{
	memcpy(fake.engines + offset, &value, sizeof(value));
}

void fake_end_job(uint32_t engine, uint32_t state)
{
	memcpy(fake.engines + engine + RVX1_ENGINE_STATE, &state, sizeof(state));
}

void fake_run(struct fw *fw)
{
	unsigned n = 0;

	while (fw_pass(fw))
		assert_true(n++ < MOST_PASSES);
}

int fake_stored(uint64_t address)
{
	for (unsigned i = 0; i < fake.nlog; i++)
		if (fake.log[i] == address)
			return (int)i;
	return -1;
}

void fake_log_clear(void)
{
	fake.nlog = 0;
}
