/* SPDX-License-Identifier: MIT */
/*
 * raw_peer BOARD NVME: the NVMe controller writes its identification into the board's memory, through a
 * mapping of the board's BAR2 in the container of both. Registers and commands: NVM Express base
 * specification 2.0, sections 3.1.3 and 5.17.
 */
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <rvx1/regs.h>

#include "raw.h"

#define NVME_BAR 0u
#define CC       0x14u
#define CC_EN    1u
#define CC_SIZES (6u << 16 | 4u << 20) /* entries of 64 and 16 bytes, as powers of two */
#define CSTS     0x1Cu
#define CSTS_RDY 1u
#define AQA      0x24u
#define ASQ      0x28u
#define ACQ      0x30u
#define DOORBELL 0x1000u /* of the admin submission queue */
#define ENTRIES  16u

#define OP_IDENTIFY    0x06u
#define CNS_CONTROLLER 1u
#define PHASE          (1u << 16) /* of a completion's last word */
#define STATUS_SHIFT   17

#define QUEUES_IOVA 0x10000000u
#define BOARD_IOVA  0x20000000u
#define PAGE        4096u
#define SHOWN       0x40000u /* of BAR2 */
#define AT          0x10000u /* in board memory */
#define SERIAL_AT   4u       /* in the identification: its serial number, blank-padded */
#define SERIAL      "lab "   /* scripts/lab */
#define DEADLINE_S  10

struct command {
	uint32_t opcode, nsid, reserved[2];
	uint64_t metadata, prp1, prp2;
	uint32_t cdw10[6];
};
_Static_assert(sizeof(struct command) == 64, "as CC says");

static struct raw board, nvme;

static uint32_t reg(uint64_t offset)
{
	return (uint32_t)raw_read(&nvme, NVME_BAR, offset, 4);
}

static void set_reg(uint64_t offset, uint64_t value)
{
	raw_write(&nvme, NVME_BAR, offset, 4, value & UINT32_MAX);
}

static bool late(const struct timespec *start)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec - start->tv_sec > DEADLINE_S;
}

static void await_ready(uint32_t ready)
{
	struct timespec start;

	clock_gettime(CLOCK_MONOTONIC, &start);
	while ((reg(CSTS) & CSTS_RDY) != ready)
		raw_check(!late(&start), "the controller becomes ready, or not, as it is told");
}

static void start_controller(void)
{
	set_reg(CC, 0);
	await_ready(0);
	set_reg(AQA, (ENTRIES - 1) << 16 | (ENTRIES - 1));
	set_reg(ASQ, QUEUES_IOVA);
	set_reg(ASQ + 4, 0);
	set_reg(ACQ, QUEUES_IOVA + PAGE);
	set_reg(ACQ + 4, 0);
	set_reg(CC, CC_EN | CC_SIZES);
	await_ready(CSTS_RDY);
}

static void identify(uint8_t *queues)
{
	const struct command command = {
	        .opcode = OP_IDENTIFY, .prp1 = BOARD_IOVA + AT, .cdw10 = {CNS_CONTROLLER}};
	uint32_t *done = (uint32_t *)(void *)(queues + PAGE) + 3, word;
	struct timespec start;

	memcpy(queues, &command, sizeof(command));
	set_reg(DOORBELL, 1);
	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		word = __atomic_load_n(done, __ATOMIC_ACQUIRE);
		raw_check(!late(&start), "the command completes");
	} while (!(word & PHASE));
	raw_check(word >> STATUS_SHIFT == 0, "the command succeeds");
}

int main(int argc, char **argv)
{
	uint8_t *queues, *memory;

	raw_check(argc == 3, "usage: raw_peer BOARD NVME");
	raw_open(&board, argv[1], RAW_TYPE1);
	raw_join(&nvme, argv[2], &board);
	raw_enable(&board);
	raw_enable(&nvme);
	queues = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	raw_check(queues != MAP_FAILED, "the program gets memory");
	memory = raw_region_map(&board, RVX1_BAR_MEMORY, SHOWN);
	memset(memory + AT, 0, PAGE);
	raw_map(&board, queues, QUEUES_IOVA, 2 * PAGE);
	raw_map(&board, memory, BOARD_IOVA, SHOWN);
	start_controller();
	identify(queues);
	raw_check(!memcmp(memory + AT + SERIAL_AT, SERIAL, strlen(SERIAL)),
	        "the identification is in the board's memory");
	set_reg(CC, 0);
	raw_unmap(&board, BOARD_IOVA, SHOWN);
	raw_unmap(&board, QUEUES_IOVA, 2 * PAGE);
	raw_close(&nvme);
	raw_close(&board);
	return 0;
}
