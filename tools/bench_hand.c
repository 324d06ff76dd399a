/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench_hand.h"
#include "boards.h"
#include "clock.h"
#include "pci.h"
#include "rig_edge.h"
#include "rvx1/packet.h"
#include "rvx1/regs.h"
#include "take.h"

#define PAGE        4096u
#define GIB_SHIFT   30u
#define ROOT_SHIFT  39u /* of Sv48: an entry of the root is 512 GiB, one of the next level 1 GiB */
#define ENTRIES     512u
#define SCRATCH     (64u << 10)
#define CODE        (64u << 10)
#define QUEUES      2u /* COMPUTE:0 and COPY:0 */
#define COMPUTE     0u
#define COPIES      1u
#define WAIT_MS     10000u
#define LOOK_SPINS  4096u /* between two looks at the clock and the fault flag */
#define NEVER_ARMED UINT64_MAX
#define TEXT        256u

struct queue {
	struct rvx1_packet *ring;
	uint64_t written;
};

struct bench_hand {
	struct rig_spec spec;
	struct rig_taken taken;
	const struct rig_board *board;
	struct rig_port port;
	struct rig_board_facts facts;
	struct rig_win status, doorbells;
	uint64_t at, end; /* board memory that is not given out yet */
	uint64_t window;  /* SCRATCH bytes of it, and CODE bytes for code */
	uint64_t code;
	struct queue queue[QUEUES];
	uint64_t value;
	struct rvx1_launch_packet launch;
	struct rig_dma dma;
};

/* ---- Start and end ---- */

static int take(const char *device_text, struct rig_spec *spec, struct rig_taken *out)
{
	int err = rig_spec_parse(device_text, spec);

	if (err)
		return err;
	if (spec->kind != RIG_SPEC_SIM)
		return rig_error_set(
		        -ENOTSUP, "a board to drive by hand beside it: only sim starts a second one");
	spec->fault[0] = 0;
	return rig_take(spec, &(struct rig_take_options){0}, out);
}

int bench_hand_start_and_end(const char *device_text, uint64_t *start_ns, uint64_t *end_ns)
{
	uint64_t begin = rig_clock_ns(), taken;
	struct rig_spec spec;
	struct rig_taken it;
	int err = take(device_text, &spec, &it);

	if (err)
		return err;
	taken = rig_clock_ns();
	*start_ns = taken - begin;
	rig_pci_close(it.pci);
	*end_ns = rig_clock_ns() - taken;
	return 0;
}

static int boot(struct bench_hand *hand)
{
	uint32_t i;
	int err;

	hand->board =
	        rig_board_find(rig_pci_info(hand->taken.pci)->vendor, rig_pci_info(hand->taken.pci)->device);
	if (!hand->board)
		return rig_error_set(-ENOTSUP, "no port for the board");
	hand->port.function = hand->taken.pci;
	hand->port.boot_ms = WAIT_MS;
	hand->port.firmware_dir = *hand->spec.firmware ? hand->spec.firmware : NULL;
	hand->port.state = calloc(1, hand->board->state_bytes);
	if (!hand->port.state)
		return rig_error_set(-ENOMEM, "out of host memory");
	for (i = 0; i < hand->board->nstages; i++) {
		err = hand->board->stages[i].run(&hand->port);
		if (err)
			return err;
	}
	return hand->board->describe(&hand->port, &hand->facts);
}

static int open_windows(struct bench_hand *hand)
{
	int err =
	        rig_port_window(&hand->port, RVX1_BAR_REGS, RVX1_STATUS, RVX1_STATUS_BYTES, 0, &hand->status);

	if (!err)
		err = rig_port_window(&hand->port, RVX1_BAR_DOORBELL, 0, 0, 0, &hand->doorbells);
	if (!err &&
	        (!hand->facts.memory_host || !rig_win_host(&hand->status) || !rig_win_host(&hand->doorbells)))
		err = rig_error_set(-ENOTSUP, "memory, status and doorbells are not mapped");
	return err;
}

/* The pools follow each other; the boot pool is for tables, the rest for everything else. */
static void find_memory(struct bench_hand *hand, uint64_t *boot)
{
	uint32_t i;

	for (i = 0; i < hand->facts.npools; i++) {
		const struct rig_board_pool *pool = &hand->facts.pools[i];

		if (pool->boot)
			*boot = pool->pa;
		else if (!hand->at)
			hand->at = pool->pa;
		if (!pool->boot && pool->pa + pool->bytes > hand->end)
			hand->end = pool->pa + pool->bytes;
	}
}

static int give(struct bench_hand *hand, uint64_t bytes, uint64_t *pa)
{
	bytes = (bytes + PAGE - 1) / PAGE * PAGE;
	if (bytes > hand->end - hand->at)
		return rig_error_set(-ENOMEM, "the board driven by hand has no room for %llu bytes",
		        (unsigned long long)bytes);
	*pa = hand->at;
	hand->at += bytes;
	return 0;
}

static uint64_t leaf(uint64_t address, uint64_t more)
{
	return RVX1_PTE_V | RVX1_PTE_R | RVX1_PTE_W | RVX1_PTE_X | RVX1_PTE_U | more |
	       address / PAGE << RVX1_PTE_PPN_SHIFT;
}

/* Section 6: two tables below the root, of 1 GiB pages: all of board memory, and the low half TiB of the
 * bus. */
static int map_everything(struct bench_hand *hand, uint64_t root)
{
	uint64_t tables[2] = {root + PAGE, root + 2 * PAGE};
	uint64_t *entry = (uint64_t *)(void *)(hand->facts.memory_host + root);
	uint64_t i;

	memset(entry, 0, 3 * PAGE);
	entry[hand->facts.board_va >> ROOT_SHIFT] = RVX1_PTE_V | tables[0] / PAGE << RVX1_PTE_PPN_SHIFT;
	entry[hand->facts.system_va >> ROOT_SHIFT] = RVX1_PTE_V | tables[1] / PAGE << RVX1_PTE_PPN_SHIFT;
	for (i = 0; i < ENTRIES; i++) {
		if (i << GIB_SHIFT < RVX1_MAX_MEMORY)
			((uint64_t *)(void *)(hand->facts.memory_host + tables[0]))[i] =
			        leaf(i << GIB_SHIFT, 0);
		((uint64_t *)(void *)(hand->facts.memory_host + tables[1]))[i] =
		        leaf(i << GIB_SHIFT, RVX1_PTE_SYSTEM);
	}
	rig_wc_flush();
	return hand->board->root(&hand->port, root);
}

static int open_queues(struct bench_hand *hand)
{
	uint64_t pa = 0;
	uint32_t q;
	int err = hand->board->start_value(&hand->port, 0);

	rig_win_store64(&hand->doorbells, RVX1_DOORBELL_ARM, NEVER_ARMED);
	for (q = 0; q < QUEUES && !err; q++) {
		err = give(hand, BENCH_HAND_PACKETS * RVX1_PACKET_BYTES, &pa);
		if (!err) {
			hand->queue[q].ring = (struct rvx1_packet *)(void *)(hand->facts.memory_host + pa);
			err = hand->board->enable(
			        &hand->port, q, hand->facts.board_address + pa, BENCH_HAND_PACKETS);
		}
	}
	return err;
}

static int bring_up(struct bench_hand *hand)
{
	uint64_t root = 0;
	int err = boot(hand);

	if (!err)
		err = open_windows(hand);
	if (!err && (rig_pci_set_dma_mask(hand->taken.pci, hand->facts.system_bits) ||
	                    rig_pci_bus_master(hand->taken.pci, true)))
		err = -EIO;
	if (err)
		return err;
	find_memory(hand, &root);
	err = map_everything(hand, root);
	if (!err)
		err = open_queues(hand);
	if (!err)
		err = give(hand, SCRATCH, &hand->window);
	return err ? err : give(hand, CODE, &hand->code);
}

int bench_hand_open(const char *device_text, struct bench_hand **out)
{
	struct bench_hand *hand = calloc(1, sizeof(*hand));
	int err;

	if (!hand)
		return rig_error_set(-ENOMEM, "out of host memory");
	err = take(device_text, &hand->spec, &hand->taken);
	if (err) {
		free(hand);
		return err;
	}
	err = bring_up(hand);
	if (err) {
		bench_hand_close(hand);
		return err;
	}
	*out = hand;
	return 0;
}

void bench_hand_close(struct bench_hand *hand)
{
	if (!hand)
		return;
	if (hand->board && hand->port.state)
		hand->board->halt(&hand->port);
	rig_pci_close(hand->taken.pci);
	free(hand->port.state);
	free(hand);
}

/* ---- Work ---- */

static uint64_t board_va(const struct bench_hand *hand, uint64_t pa)
{
	return hand->facts.board_va + pa;
}

static struct rvx1_packet *next(struct queue *queue)
{
	return &queue->ring[queue->written++ % BENCH_HAND_PACKETS];
}

static uint64_t release(struct bench_hand *hand, uint32_t q)
{
	struct queue *queue = &hand->queue[q];
	struct rvx1_packet *packet = next(queue);

	*packet = (struct rvx1_packet){.opcode = RVX1_OP_RELEASE};
	packet->u.word.value = ++hand->value;
	/* Packets before the doorbell, because the board reads them once it sees it. */
	rig_wc_flush();
	rig_win_store64(
	        &hand->doorbells, (uint64_t)q * RVX1_DOORBELL_PITCH + RVX1_DOORBELL_WRITE, queue->written);
	return hand->value;
}

uint64_t bench_hand_empty(struct bench_hand *hand)
{
	return release(hand, COMPUTE);
}

uint64_t bench_hand_launch(struct bench_hand *hand, unsigned launches)
{
	while (launches--)
		*next(&hand->queue[COMPUTE]) =
		        (struct rvx1_packet){.opcode = RVX1_OP_LAUNCH, .u.launch = hand->launch};
	return release(hand, COMPUTE);
}

uint64_t bench_hand_copy(struct bench_hand *hand, uint64_t dst, uint64_t src, uint64_t bytes)
{
	struct rvx1_packet *packet = next(&hand->queue[COPIES]);

	*packet = (struct rvx1_packet){.opcode = RVX1_OP_COPY};
	packet->u.copy = (struct rvx1_copy_packet){.dst = dst,
	        .src = src,
	        .row_bytes = bytes,
	        .rows = 1,
	        .dst_pitch = bytes,
	        .src_pitch = bytes};
	return release(hand, COPIES);
}

int bench_hand_wait(struct bench_hand *hand, uint64_t value)
{
	uint64_t end = 0;
	unsigned spins = 0;
	const char *why;

	while (rig_win_load64(&hand->status, RVX1_STATUS_VALUE) < value) {
		rig_pause();
		if (++spins % LOOK_SPINS)
			continue;
		if (!end)
			end = rig_clock_ns() + WAIT_MS * RIG_NS_PER_MS;
		if (rig_win_load32(&hand->status, RVX1_STATUS_FAULT) || rig_pci_gone(hand->taken.pci, &why) ||
		        rig_clock_ns() > end)
			return rig_error_set(-EIO, "the board driven by hand did not complete value %llu",
			        (unsigned long long)value);
	}
	return 0;
}

/* ---- Memory ---- */

int bench_hand_board(struct bench_hand *hand, uint64_t bytes, uint64_t *address)
{
	uint64_t at = hand->at, pa = 0;
	int err = give(hand, bytes, &pa);

	hand->at = at;
	*address = board_va(hand, pa);
	return err;
}

int bench_hand_dma(struct bench_hand *hand, uint64_t bytes, uint64_t *address, uint8_t **host)
{
	int err;

	if (hand->dma.bytes < bytes) {
		rig_dma_free(hand->taken.pci, &hand->dma);
		err = rig_dma_alloc(hand->taken.pci, bytes, PAGE, &hand->dma);
		if (err)
			return err;
	}
	*address = hand->facts.system_va + hand->dma.iova;
	*host = hand->dma.host;
	return 0;
}

int bench_hand_place(struct bench_hand *hand, const void *image, uint64_t bytes)
{
	uint64_t need, dma;
	uint8_t *host;
	int err = hand->board->image_bytes(image, bytes, &need);

	if (err)
		return err;
	if (need > CODE)
		return rig_error_set(-ENOMEM, "an image of %llu bytes", (unsigned long long)need);
	err = bench_hand_dma(hand, CODE, &dma, &host);
	if (!err)
		err = hand->board->image_place(image, bytes, board_va(hand, hand->code), host);
	return err ? err
	           : bench_hand_wait(hand, bench_hand_copy(hand, board_va(hand, hand->code), dma, need));
}

int bench_hand_load(struct bench_hand *hand, const void *image, uint64_t bytes, const char *function)
{
	struct rig_board_function found;
	uint64_t stack = 0;
	int err = hand->board->image_find(image, bytes, function, &found);

	if (!err)
		err = bench_hand_place(hand, image, bytes);
	if (!err)
		err = give(hand, hand->facts.stack_pitch, &stack);
	if (err)
		return err;
	hand->launch = (struct rvx1_launch_packet){
	        .entry = board_va(hand, hand->code) + found.offset,
	        .params = board_va(hand, hand->window),
	        .stacks = board_va(hand, stack),
	        .grid = {1, 1, 1},
	        .group = {1, 1, 1},
	        .slots = 1,
	};
	return 0;
}

uint8_t *bench_hand_window(struct bench_hand *hand)
{
	return hand->facts.memory_host + hand->window;
}

int bench_hand_map(struct bench_hand *hand, void *host, uint64_t bytes)
{
	struct rig_dma dma;
	int err = rig_dma_map_host(hand->taken.pci, host, bytes, RIG_DMA_READ | RIG_DMA_WRITE, &dma);

	if (!err)
		err = rig_dma_unmap(hand->taken.pci, &dma);
	return err;
}

int bench_hand_map_fresh(struct bench_hand *hand, uint64_t bytes)
{
	struct rig_dma dma;
	void *at = MAP_FAILED;
	int err = 0, fd = memfd_create("bench", MFD_CLOEXEC);

	if (fd >= 0 && !ftruncate(fd, (off_t)bytes))
		at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (at == MAP_FAILED) {
		err = rig_error_set(-errno, "a memfd of %llu bytes", (unsigned long long)bytes);
		goto close_fd;
	}
	err = rig_dma_map_fd(hand->taken.pci, fd, 0, bytes, at, RIG_DMA_READ | RIG_DMA_WRITE, &dma);
	if (!err)
		err = rig_dma_unmap(hand->taken.pci, &dma);
	munmap(at, bytes);
close_fd:
	if (fd >= 0)
		close(fd);
	return err;
}
