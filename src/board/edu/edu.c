/* SPDX-License-Identifier: MIT */
/*
 * QEMU's edu device, after its specification (docs/specs/edu.rst of QEMU, "MMIO area spec" and "DMA
 * controller"). It has no rings: it computes one factorial or moves up to 4,096 bytes at a time, into or out
 * of a buffer of its own.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "bits.h"
#include "rig_board.h"
#include "rig_edu.h"

#define BAR         0u
#define REGISTERS   0x100u /* bytes of the BAR that are registers */
#define ID          0x00u  /* 0xRRrr00ed: major and minor revision */
#define LIVENESS    0x04u  /* reads the complement of what was written */
#define FACTORIAL   0x08u  /* write n; n! once STATUS_COMPUTING is clear */
#define STATUS      0x20u
#define IRQ_STATUS  0x24u /* why it interrupts */
#define IRQ_ACK     0x64u /* clears the bits written */
#define DMA_SOURCE  0x80u /* 64 bits, as the next two */
#define DMA_TARGET  0x88u
#define DMA_COUNT   0x90u
#define DMA_COMMAND 0x98u

#define ID_MASK          0xFF00FFFFu
#define ID_VALUE         0x010000EDu
#define STATUS_COMPUTING 0x01u
#define STATUS_INTERRUPT 0x80u /* interrupt when computed */
#define DMA_RUN          0x01u
#define DMA_TO_MEMORY    0x02u
#define DMA_INTERRUPT    0x04u /* interrupt when moved */

#define PATTERN 0x5A5A0FF0u /* for the liveness check */

#define BUFFER       0x40000u /* where the engine's addresses show the buffer */
#define BUFFER_BYTES 4096u
#define DMA_BITS     28u
#define BUS_END      (UINT64_C(1) << DMA_BITS)

/* The engine's direction says which of its addresses is which; ours tell by themselves: the buffer lies
   beyond the bus. */
#define BOARD_VA (UINT64_C(1) << 32)

/* A transfer takes about 100 ms, and a value should not look like a hang. */
#define MOST_ROWS 64u
#define HANG_MS   30000

struct operation {
	uint32_t command; /* of the DMA engine; 0: a factorial */
	uint32_t n;       /* or bytes to move */
	uint64_t source;
	uint64_t target; /* also where the factorial goes */
};
_Static_assert(sizeof(struct operation) <= RIG_SERIAL_OP_BYTES, "an operation fits the queue's");

/* All of a port's state: the window on the registers. */
static struct rig_win *regs_of(struct rig_port *port)
{
	return (struct rig_win *)port->state;
}

/* ---- Boot ---- */

static int identify(struct rig_port *port)
{
	int err = rig_port_window(port, BAR, 0, REGISTERS, RIG_WIN_LIVE, regs_of(port));
	uint32_t id = err ? 0 : rig_win_load32(regs_of(port), ID);

	if (!err && (id & ID_MASK) != ID_VALUE)
		err = rig_error_set(-ENODEV,
		        "identification 0x%08x: this port drives edu revision 1 (0x%08x)", id, ID_VALUE);
	return err;
}

static int check_liveness(struct rig_port *port)
{
	const struct rig_win *regs = regs_of(port);
	uint32_t read;

	rig_win_store32(regs, LIVENESS, PATTERN);
	read = rig_win_load32(regs, LIVENESS);
	return read == ~PATTERN ? 0
	                        : rig_error_set(-EIO, "liveness: wrote 0x%08x, read 0x%08x", PATTERN, read);
}

static void acknowledge(const struct rig_win *regs)
{
	uint32_t why = rig_win_load32(regs, IRQ_STATUS);

	if (why)
		rig_win_store32(regs, IRQ_ACK, why);
}

/* There may be no reset, so what a process before us started ends here. */
static int settle(struct rig_port *port)
{
	const struct rig_win *regs = regs_of(port);
	const struct rig_port_until moved = {DMA_COMMAND, DMA_RUN, 0, "DMA command"};
	const struct rig_port_until computed = {STATUS, STATUS_COMPUTING, 0, "status"};
	int err = rig_port_wait32(port, regs, &moved, NULL);

	if (!err)
		err = rig_port_wait32(port, regs, &computed, NULL);
	if (!err)
		acknowledge(regs);
	return err;
}

static const struct rig_board_stage stages[] = {
        {"identification", identify}, {"liveness", check_liveness}, {"settling", settle}};

static int describe(struct rig_port *port, struct rig_board_facts *facts)
{
	(void)port;
	facts->queues[0] =
	        (struct rig_queue){.name = "EDU:0", .runs = RIG_RUNS(RIG_WORDS) | RIG_RUNS(RIG_COPY)};
	facts->nqueues = 1;
	facts->has_copy_engine = true;
	facts->copy_engine = 0;
	facts->pools[0] = (struct rig_board_pool){.pa = BUFFER, .bytes = BUFFER_BYTES};
	facts->npools = 1;
	facts->board_va = BOARD_VA;
	facts->system_bits = DMA_BITS;
	facts->vectors = 1;
	facts->hang_ms = HANG_MS;
	return 0;
}

/* ---- Parts ---- */

/* The side's address, and whether all its rows lie in the buffer; else they lie on the bus. */
static int resolve(const struct rig_copy_part *copy, const struct rig_copy_side *side,
        const struct rig_run *run, uint64_t *address, bool *board)
{
	uint64_t span;
	int err;

	if (__builtin_mul_overflow(copy->rows - 1, side->pitch, &span) ||
	        __builtin_add_overflow(span, copy->row_bytes, &span))
		return rig_error_set(-EINVAL, "a copy's rows reach past 2^64");
	err = rig_side_address(side, run, span, address);
	if (err)
		return err;
	*board = *address >= BOARD_VA;
	if (*board ? rig_span_fits(*address - BOARD_VA - BUFFER, span, BUFFER_BYTES)
	           : rig_span_fits(*address, span, BUS_END))
		return 0;
	return rig_error_set(-EINVAL,
	        "0x%" PRIx64 " + 0x%" PRIx64 " is in neither the buffer nor %u-bit memory", *address, span,
	        DMA_BITS);
}

/* The first row as an operation. */
static int plan_copy(const struct rig_copy_part *copy, const struct rig_run *run, struct operation *op)
{
	bool from_board, to_board;
	int err;

	if (copy->fill || !copy->row_bytes || !copy->rows || copy->rows > MOST_ROWS)
		return rig_error_set(
		        -EINVAL, "edu copies 1 to %u rows of at least 1 byte, and fills none", MOST_ROWS);
	err = resolve(copy, &copy->src, run, &op->source, &from_board);
	if (!err)
		err = resolve(copy, &copy->dst, run, &op->target, &to_board);
	if (err)
		return err;
	if (from_board == to_board)
		return rig_error_set(
		        -EINVAL, "edu copies between its buffer and host memory, not inside either");
	op->command = DMA_RUN | DMA_INTERRUPT | (from_board ? DMA_TO_MEMORY : 0);
	op->n = (uint32_t)copy->row_bytes; /* at most the buffer's, which one side is in */
	*(from_board ? &op->source : &op->target) -= BOARD_VA;
	return 0;
}

static int check_words(const struct rig_words_part *words)
{
	uint32_t i;

	if (!words->count || words->count % RIG_EDU_REQUEST_WORDS)
		return rig_error_set(
		        RIG_NEVER, "%u words: a request has %u", words->count, RIG_EDU_REQUEST_WORDS);
	for (i = 0; i < words->count; i += RIG_EDU_REQUEST_WORDS) {
		const uint32_t *w = &words->words[i];

		if (w[0] != RIG_EDU_FACTORIAL || w[3] || w[2] % 4 || !rig_span_fits(w[2], 4, BUS_END))
			return rig_error_set(RIG_NEVER, "word %u: no factorial to a multiple of 4 below 2^%u",
			        i, DMA_BITS);
	}
	return RIG_FITS;
}

static int check(
        struct rig_port *port, const struct rig_part *part, const struct rig_run *run, struct rig_need *need)
{
	struct operation first;

	(void)port;
	if (part->kind == RIG_WORDS) {
		need->units = part->u.words.count / RIG_EDU_REQUEST_WORDS;
		return check_words(&part->u.words);
	}
	need->units = (uint32_t)part->u.copy.rows;
	return plan_copy(&part->u.copy, run, &first) ? RIG_NEVER : RIG_FITS;
}

static void put_requests(const uint32_t *words, uint32_t count, uint8_t *at)
{
	for (; count--; words += RIG_EDU_REQUEST_WORDS, at += RIG_SERIAL_OP_BYTES) {
		const struct operation op = {.n = words[1], .target = words[2]}; /* the address has 28 bits */

		memcpy(at, &op, sizeof(op));
	}
}

static int part(struct rig_port *port, const struct rig_part *part, const struct rig_run *run,
        const struct rig_need *need, const struct rig_place *place)
{
	const struct rig_copy_part *copy = &part->u.copy;
	struct operation op;
	uint32_t i;

	(void)port;
	if (part->kind == RIG_WORDS) {
		put_requests(part->u.words.words, need->units, place->units);
		return 0;
	}
	if (plan_copy(copy, run, &op))
		return -EINVAL;
	for (i = 0; i < need->units; i++) {
		memcpy((uint8_t *)place->units + (size_t)i * RIG_SERIAL_OP_BYTES, &op, sizeof(op));
		op.source += copy->src.pitch;
		op.target += copy->dst.pitch;
	}
	return 0;
}

/* ---- Operations ---- */

static int start(struct rig_port *port, const void *at)
{
	const struct rig_win *regs = regs_of(port);
	const struct operation *op = at;

	if (!op->command) {
		rig_win_store32(regs, STATUS, STATUS_INTERRUPT);
		rig_win_store32(regs, FACTORIAL, op->n);
		return 0;
	}
	rig_win_store64(regs, DMA_SOURCE, op->source);
	rig_win_store64(regs, DMA_TARGET, op->target);
	rig_win_store64(regs, DMA_COUNT, op->n);
	/* What the host wrote before the command, because the engine reads it from then on. */
	rig_before_doorbell();
	rig_win_store32(regs, DMA_COMMAND, op->command);
	return 0;
}

static int poll(struct rig_port *port, const void *at, bool *done)
{
	const struct rig_win *regs = regs_of(port);
	const struct operation *op = at;
	uint32_t result;

	*done = op->command ? !(rig_win_load32(regs, DMA_COMMAND) & DMA_RUN)
	                    : !(rig_win_load32(regs, STATUS) & STATUS_COMPUTING);
	acknowledge(regs);
	rig_from_device(); /* that it is done before the bytes that it moved */
	if (op->command || !*done)
		return 0;
	result = RIG_WIN_LE32(rig_win_load32(regs, FACTORIAL));
	return rig_port_dma_write(port, op->target, &result, sizeof(result));
}

/* Faults it has none; but the look finds out that it is gone. */
static bool failed(struct rig_port *port)
{
	rig_win_load32(regs_of(port), ID);
	return false;
}

/* Nothing stops a transfer; it ends by itself, and the driver takes away its access to memory. */
static void halt(struct rig_port *port)
{
	if (rig_win_bytes(regs_of(port))) /* else the boot got no window */
		rig_win_store32(regs_of(port), STATUS, 0);
}

static const struct rig_board_id ids[] = {{0x1234, 0x11E8}};

static const struct rig_serial serial = {.start = start, .poll = poll};

extern const struct rig_board edu_board;
const struct rig_board edu_board = {
        .version = RIG_BOARD_VERSION,
        .arch = "edu",
        .ids = ids,
        .nids = 1,
        .dma_bits = DMA_BITS,
        .state_bytes = sizeof(struct rig_win),
        .stages = stages,
        .nstages = sizeof(stages) / sizeof(stages[0]),
        .serial = &serial,
        .describe = describe,
        .check = check,
        .part = part,
        .failed = failed,
        .halt = halt,
};
