/* SPDX-License-Identifier: MIT */
/* The board as a function: its description, its BARs, what the client does to it. */
#include "rvx_state.h"

#include <errno.h>
#include <linux/pci_regs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUBSYSTEM      0x0001u
#define PCI_REVISION   0x10u
#define DOORBELL_BYTES (RVX1_MAX_QUEUES * RVX1_DOORBELL_PITCH)
#define LINE_BYTES     256u

void rvx_log(const struct rvx_board *board, enum rvx_log_level level, const char *format, ...)
{
	char line[LINE_BYTES];
	va_list args;

	if (!board->config.log)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	board->config.log(board->config.log_ctx, level, line);
}

/* ---- BARs ---- */

/* Section 2: what is off reads all ones and drops writes. */
static bool answers(const struct rvx_board *board)
{
	uint32_t pm;

	if (board->gone || !(vfu_cfg_read(board->vfu, PCI_COMMAND, 2) & PCI_COMMAND_MEMORY))
		return false;
	pm = vfu_cfg_cap(board->vfu, PCI_CAP_ID_PM);
	return !pm || !(vfu_cfg_read(board->vfu, pm + PCI_PM_CTRL, 2) & PCI_PM_CTRL_STATE_MASK);
}

static void get_regs(struct rvx_board *board, uint64_t off, void *buf, size_t len)
{
	uint64_t value;

	memset(buf, 0, len);
	if (off >= RVX1_STATUS && off < RVX1_STATUS + RVX1_STATUS_BYTES &&
	        len <= RVX1_STATUS + RVX1_STATUS_BYTES - off) {
		rvx_memory_get(buf, board->bar0.host + off, len);
	} else if (off < RVX_CONTROL_BYTES && len <= sizeof(value)) {
		value = rvx_regs_load(board, (uint32_t)off, (unsigned)len);
		memcpy(buf, &value, len);
	}
}

static int read_regs(void *ctx, uint64_t off, void *buf, size_t len)
{
	struct rvx_board *board = ctx;

	if (answers(board))
		get_regs(board, off, buf, len);
	else
		memset(buf, 0xFF, len);
	return 0;
}

static int write_regs(void *ctx, uint64_t off, const void *buf, size_t len)
{
	struct rvx_board *board = ctx;
	uint64_t value = 0;

	if (!answers(board) || off >= RVX_CONTROL_BYTES || len > sizeof(value))
		return 0;
	memcpy(&value, buf, len);
	rvx_regs_store(board, (uint32_t)off, (unsigned)len, value, RVX_HOST);
	board->stirred = true;
	return 0;
}

static int read_shared(
        struct rvx_board *board, const struct rvx_memory *memory, uint64_t off, void *buf, size_t len)
{
	if (answers(board))
		rvx_memory_get(buf, memory->host + off, len);
	else
		memset(buf, 0xFF, len);
	return 0;
}

static int write_shared(
        struct rvx_board *board, const struct rvx_memory *memory, uint64_t off, const void *buf, size_t len)
{
	if (answers(board))
		rvx_memory_put(memory->host + off, buf, len);
	board->stirred = true;
	return 0;
}

static int read_memory(void *ctx, uint64_t off, void *buf, size_t len)
{
	struct rvx_board *board = ctx;

	return read_shared(board, &board->memory, off, buf, len);
}

static int write_memory(void *ctx, uint64_t off, const void *buf, size_t len)
{
	struct rvx_board *board = ctx;

	return write_shared(board, &board->memory, off, buf, len);
}

static int read_doorbell(void *ctx, uint64_t off, void *buf, size_t len)
{
	struct rvx_board *board = ctx;

	return read_shared(board, &board->doorbells, off, buf, len);
}

static int write_doorbell(void *ctx, uint64_t off, const void *buf, size_t len)
{
	struct rvx_board *board = ctx;

	return write_shared(board, &board->doorbells, off, buf, len);
}

/* ---- system memory ---- */

static void *dma_at(void *ctx, uint64_t bus, uint64_t len, bool readable, bool writable)
{
	struct rvx_board *board = ctx;

	return vfu_dma_ptr(board->vfu, bus, len, (readable ? VFU_READ : 0u) | (writable ? VFU_WRITE : 0u));
}

static int dma_read(void *ctx, uint64_t bus, void *to, uint64_t len)
{
	struct rvx_board *board = ctx;

	return vfu_dma_read(board->vfu, bus, to, len);
}

static int dma_write(void *ctx, uint64_t bus, const void *from, uint64_t len)
{
	struct rvx_board *board = ctx;

	return vfu_dma_write(board->vfu, bus, from, len);
}

void rvx_board_forget_system(struct rvx_board *board)
{
	rvx_cp_forget(board);
	rvx_compute_forget(&board->compute, 0, 0);
	rvx_copier_forget(&board->copier);
}

/* ---- what the client does ---- */

static void unmapped(void *ctx, uint64_t iova, uint64_t len, void *host)
{
	(void)iova;
	(void)len;
	if (host)
		rvx_board_forget_system(ctx);
}

static void mapped(void *ctx, uint64_t iova, uint64_t len, void *host, unsigned prot)
{
	struct rvx_board *board = ctx;

	(void)iova;
	(void)len;
	(void)host;
	(void)prot;
	board->stirred = true;
}

static void fill_config(struct rvx_board *board)
{
	for (uint32_t off = 0; off < VFU_CONFIG_SIZE; off += sizeof(uint32_t))
		vfu_cfg_set(board->vfu, off, sizeof(uint32_t), UINT32_MAX);
}

/* Bus mastering went off: addresses of system memory may not be used any more. */
static void configured(void *ctx, uint32_t off, uint32_t len)
{
	struct rvx_board *board = ctx;
	uint16_t command = (uint16_t)vfu_cfg_read(board->vfu, PCI_COMMAND, 2);

	(void)off;
	(void)len;
	if (board->gone)
		fill_config(board);
	if ((command ^ board->command) & PCI_COMMAND_MASTER)
		rvx_board_forget_system(board);
	board->command = command;
	board->stirred = true;
}

void rvx_board_reset(struct rvx_board *board)
{
	rvx_memory_clear(&board->doorbells);
	memset(rvx_status(board), 0, RVX1_STATUS_BYTES);
	rvx_regs_reset(board);
	rvx_value_reset(board);
	rvx_irq_reset(board);
	rvx_cp_hold(board);
	rvx_board_forget_system(board);
	rvx_clock_reset(&board->clock);
	board->gone_ns = 0;
	board->command = 0;
}

static int reset(void *ctx)
{
	struct rvx_board *board = ctx;

	if (board->gone || board->mischief.plan.refuse_reset)
		return -EIO;
	rvx_board_reset(board);
	return 0;
}

static void disconnected(void *ctx)
{
	struct rvx_board *board = ctx;

	board->lost_client = true;
}

/* All ones wherever a client looks: what a function that was pulled out answers. */
void rvx_board_leave(struct rvx_board *board)
{
	rvx_log(board, RVX_LOG_INFO, "fault gone: the function leaves the bus");
	rvx_cp_hold(board);
	board->gone = true;
	memset(rvx_status(board), 0xFF, RVX1_STATUS_BYTES);
	memset(board->doorbells.host, 0xFF, board->doorbells.bytes);
	fill_config(board);
}

static void log_vfu(void *ctx, enum vfu_log_level level, const char *text)
{
	static const enum rvx_log_level levels[] = {
	        [VFU_LOG_ERROR] = RVX_LOG_ERROR,
	        [VFU_LOG_WARN] = RVX_LOG_WARN,
	        [VFU_LOG_INFO] = RVX_LOG_INFO,
	};
	struct rvx_board *board = ctx;

	rvx_log(board, levels[level], "%s", text);
}

/* ---- life ---- */

/* Section 2. */
static void describe(struct rvx_board *board, struct vfu_config *c)
{
	*c = (struct vfu_config){
	        .vendor = RVX1_PCI_VENDOR,
	        .device = RVX1_PCI_DEVICE,
	        .subsystem_vendor = RVX1_PCI_VENDOR,
	        .subsystem = SUBSYSTEM,
	        .class_code = RVX1_PCI_CLASS,
	        .revision = PCI_REVISION,
	        .msix = {RVX1_VECTORS, RVX1_BAR_REGS, RVX1_MSIX_TABLE, RVX1_MSIX_PBA},
	        .ctx = board,
	        .reset = reset,
	        .dma_mapped = mapped,
	        .dma_unmapped = unmapped,
	        .disconnected = disconnected,
	        .config_written = configured,
	        .log = log_vfu,
	};
	c->bars[RVX1_BAR_REGS] = (struct vfu_bar){
	        .size = RVX1_BAR_REGS_BYTES,
	        .read = read_regs,
	        .write = write_regs,
	        .memfd = board->bar0.fd,
	        .areas = {{RVX1_STATUS, RVX1_STATUS_BYTES}},
	        .area_count = 1,
	};
	c->bars[RVX1_BAR_MEMORY] = (struct vfu_bar){
	        .size = board->config.aperture_bytes,
	        .mem64 = true,
	        .prefetch = true,
	        .read = read_memory,
	        .write = write_memory,
	        .memfd = board->memory.fd,
	        .areas = {{0, board->config.aperture_bytes}},
	        .area_count = 1,
	};
	c->bars[RVX1_BAR_DOORBELL] = (struct vfu_bar){
	        .size = DOORBELL_BYTES,
	        .read = read_doorbell,
	        .write = write_doorbell,
	        .memfd = board->doorbells.fd,
	        .areas = {{0, DOORBELL_BYTES}},
	        .area_count = 1,
	};
}

uint64_t rvx_default_aperture(uint64_t memory_bytes)
{
	uint64_t bytes = 1;

	while (bytes <= memory_bytes / 2)
		bytes *= 2;
	return bytes;
}

static bool is_sound(const struct rvx_config *c)
{
	if (c->memory_bytes < RVX1_MIN_MEMORY || c->memory_bytes > RVX1_MAX_MEMORY ||
	        c->memory_bytes % RVX_MEMORY_STEP)
		return false;
	if (c->aperture_bytes < RVX_MIN_APERTURE || c->aperture_bytes > c->memory_bytes ||
	        (c->aperture_bytes & (c->aperture_bytes - 1)))
		return false;
	if (c->queues < RVX_MIN_QUEUES || c->queues > RVX1_MAX_QUEUES)
		return false;
	return (!c->clock_hz || (c->clock_hz >= RVX_CLOCK_MIN_HZ && c->clock_hz <= RVX_CLOCK_MAX_HZ)) &&
	       c->drift_ppm >= -RVX_CLOCK_MAX_PPM && c->drift_ppm <= RVX_CLOCK_MAX_PPM &&
	       c->clock_step_us <= RVX_CLOCK_MAX_STEP && c->clock_step_ms <= RVX_CLOCK_MAX_STEP;
}

static int open_memories(struct rvx_board *board)
{
	int err = rvx_memory_open(&board->memory, "rvx1-memory", board->config.memory_bytes);

	if (!err)
		err = rvx_memory_open(&board->bar0, "rvx1-status", RVX1_BAR_REGS_BYTES);
	if (!err)
		err = rvx_memory_open(&board->doorbells, "rvx1-doorbells", DOORBELL_BYTES);
	return err;
}

static int open_parts(struct rvx_board *board)
{
	struct vfu_config config;
	int err = open_memories(board);

	board->dma = (struct rvx_dma){board, dma_at, dma_read, dma_write};
	board->space = (struct rvx_space){.memory = &board->memory, .dma = &board->dma};
	rvx_copier_init(&board->copier, &board->space);
	if (!err)
		err = rvx_compute_open(&board->compute, &board->space, &board->clock);
	if (!err)
		err = rvx_cp_open(board);
	if (err)
		return err;
	describe(board, &config);
	return vfu_open(&config, &board->vfu);
}

int rvx_board_open(const struct rvx_config *config, struct rvx_board **out)
{
	if (!is_sound(config))
		return -EINVAL;
	struct rvx_board *board = calloc(1, sizeof(*board));
	if (!board)
		return -ENOMEM;
	board->config = *config;
	board->mischief.plan = config->plan;
	board->clock = (struct rvx_clock){.hz = config->clock_hz ? config->clock_hz : RVX_CLOCK_NOMINAL_HZ,
	        .drift_ppm = config->drift_ppm,
	        .step_us = config->clock_step_us,
	        .step_ms = config->clock_step_ms};
	int err = open_parts(board);
	if (err) {
		rvx_board_close(board);
		return err;
	}
	rvx_board_reset(board);
	*out = board;
	return 0;
}

void rvx_board_close(struct rvx_board *board)
{
	if (!board)
		return;
	vfu_close(board->vfu);
	rvx_cp_close(board);
	rvx_compute_close(&board->compute);
	rvx_memory_close(&board->doorbells);
	rvx_memory_close(&board->bar0);
	rvx_memory_close(&board->memory);
	free(board);
}

int rvx_board_attach(struct rvx_board *board, int fd)
{
	return vfu_attach_fd(board->vfu, fd);
}

int rvx_board_listen(struct rvx_board *board, const char *path)
{
	int err = vfu_listen(board->vfu, path);

	board->listening = err == 0;
	return err;
}
