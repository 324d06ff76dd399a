/* SPDX-License-Identifier: MIT */
/*
 * Boards without rings. Their queue is host memory, and what reads it is a thread in the poller's place: the
 * worker takes units in order, waits for other devices' words, runs one operation after the other and raises
 * the word. To the rest of the driver such a board is one with a ring: rig_dev_set_board fills in the members
 * of its table that the worker serves.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "bits.h"
#include "clock.h"
#include "device.h"

#define QUEUE_UNITS 1024u /* operations and steps that a device holds */

/* The first between two looks at another device's word; then doubling. */
#define WORD_NAP_NS      (50 * RIG_NS_PER_US)
#define LOOK_NAP_NS      RIG_NS_PER_MS         /* between two looks at an operation that no interrupt ends */
#define OPERATION_NAP_NS (10 * RIG_NS_PER_MS)  /* where an interrupt ends it, which may be lost */
#define IDLE_NAP_NS      (100 * RIG_NS_PER_MS) /* where a submission ends it */
#define NAPS_A_CHECK     1024u                 /* a worker that never sleeps looks for faults so often */

enum unit_kind { UNIT_NOP, UNIT_WAIT, UNIT_RELEASE, UNIT_OPERATIONS };

/* A unit of the queue is this or, after one of kind UNIT_OPERATIONS, an operation. */
struct unit {
	uint32_t kind;
	uint32_t operations; /* that follow, contiguous */
	uint64_t address;    /* UNIT_WAIT: of the word, on the host */
	uint64_t value;
};
_Static_assert(sizeof(struct unit) <= RIG_SERIAL_OP_BYTES, "a unit holds a step or an operation");

static struct rig_dev *dev_of(struct rig_port *port)
{
	return (struct rig_dev *)((uint8_t *)port - offsetof(struct rig_dev, port));
}

/* ---- What hot and cold calls ask of the board ---- */

static int check(
        struct rig_port *port, const struct rig_part *part, const struct rig_run *run, struct rig_need *need)
{
	int room;

	memset(need, 0, sizeof(*need));
	room = dev_of(port)->worker.port->check(port, part, run, need);
	if (room != RIG_FITS)
		return room;
	if (need->units >= QUEUE_UNITS)
		return rig_error_set(RIG_NEVER, "a part of %u operations: the queue holds %u", need->units,
		        QUEUE_UNITS - 1);
	need->units++;
	return RIG_FITS;
}

static int part(struct rig_port *port, const struct rig_part *part, const struct rig_run *run,
        const struct rig_need *need, const struct rig_place *place)
{
	const struct unit head = {.kind = UNIT_OPERATIONS, .operations = need->units - 1};
	struct rig_need own_need = *need;
	struct rig_place own_place = *place;

	memcpy(place->units, &head, sizeof(head));
	own_need.units--;
	own_place.units = (uint8_t *)place->units + RIG_SERIAL_OP_BYTES;
	return dev_of(port)->worker.port->part(port, part, run, &own_need, &own_place);
}

/* Device order holds by itself, and with one queue there are no semaphores. */
static void step(struct rig_port *port, void *at, const struct rig_step *step)
{
	struct unit unit = {.kind = UNIT_NOP, .address = step->address, .value = step->value};

	(void)port;
	if (step->kind == RIG_STEP_WAIT)
		unit.kind = UNIT_WAIT;
	if (step->kind == RIG_STEP_RELEASE)
		unit.kind = UNIT_RELEASE;
	memcpy(at, &unit, sizeof(unit));
}

static void wake(struct rig_dev *dev)
{
	uint64_t one = 1;

	while (write(dev->progress.irq_fd[0], &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static void ring(struct rig_port *port, uint32_t queue, uint64_t position)
{
	struct rig_dev *dev = dev_of(port);

	(void)queue;
	atomic_store_explicit(&dev->worker.written, position, memory_order_release);
	/* `written` before `asleep`, as idle has them the other way round: one of both sees the other. */
	rig_full();
	if (atomic_load_explicit(&dev->worker.asleep, memory_order_relaxed))
		wake(dev);
}

static int enable(struct rig_port *port, uint32_t queue, uint64_t at, uint64_t units)
{
	struct rig_worker *w = &dev_of(port)->worker;

	(void)queue;
	w->units = (const uint8_t *)(uintptr_t)at;
	w->mask = units - 1;
	return 0;
}

static int start_value(struct rig_port *port, uint64_t value)
{
	atomic_store(&dev_of(port)->worker.completed, value);
	return 0;
}

static uint64_t completed(struct rig_port *port)
{
	return atomic_load_explicit(&dev_of(port)->worker.completed, memory_order_acquire);
}

static bool never_failed(struct rig_port *port)
{
	(void)port;
	return false;
}

void rig_dev_set_board(struct rig_dev *dev, const struct rig_board *board)
{
	struct rig_board *table = &dev->worker.table;

	dev->board = board;
	if (!board->serial)
		return;
	*table = *board;
	table->step_units = 1;
	table->check = check;
	table->part = part;
	table->step = step;
	table->ring = ring;
	table->enable = enable;
	table->start_value = start_value;
	table->completed = completed;
	if (!board->failed)
		table->failed = never_failed;
	dev->worker.port = board;
	dev->board = table;
}

int rig_dev_serial_describe(struct rig_dev *dev)
{
	struct rig_board_facts *facts = &dev->facts;

	if (!rig_dev_is_serial(dev))
		return 0;
	if (facts->nqueues != 1 || facts->vectors > 1)
		return rig_error_set(-EINVAL,
		        "board %s without rings has %u queues and %u interrupt vectors: one queue, at most "
		        "one vector",
		        dev->board->arch, facts->nqueues, facts->vectors);
	if (dev->options.store)
		return rig_error_set(-ENOTSUP,
		        "completion=store: board %s stores no word; use completion=poll", dev->board->arch);
	facts->unit_bytes = RIG_SERIAL_OP_BYTES;
	facts->ring_units = facts->ring_units_max = QUEUE_UNITS;
	facts->segment_bytes = 0;
	facts->may_block = true; /* submit wakes the worker by a system call */
	return 0;
}

/* ---- The worker ---- */

static bool ended(const struct rig_dev *dev)
{
	return rig_dev_must_quit(dev) || rig_dev_faulted(dev);
}

/* Until an interrupt, a submission that found the worker asleep, the end, or `ns` from now. */
static void nap(struct rig_dev *dev, uint64_t ns)
{
	struct rig_worker *w = &dev->worker;
	struct pollfd fds[] = {{.fd = dev->progress.irq_fd[0], .events = POLLIN},
	        {.fd = dev->progress.quit_fd, .events = POLLIN},
	        {.fd = rig_pci_gone_fd(dev->pci), .events = POLLIN}};
	const struct timespec timeout = {.tv_nsec = (long)ns};
	bool check = ns >= LOOK_NAP_NS;

	if (dev->options.pinned) {
		rig_pause();
		check = ++w->naps % NAPS_A_CHECK == 0;
		sched_yield();
	} else if (ppoll(fds, 3, &timeout, NULL) > 0) {
		check |= fds[2].revents != 0;
	}
	if (fds[0].revents & POLLIN || dev->options.pinned) {
		rig_dev_drain(dev->progress.irq_fd[0]);
		w->fired = true;
	}
	if (check) {
		rig_dev_watch(dev, &w->stall);
		rig_dev_check_fault(dev);
	}
}

static bool has_work(const struct rig_worker *w)
{
	return w->read != atomic_load_explicit(&w->written, memory_order_acquire);
}

static void idle(struct rig_dev *dev)
{
	struct rig_worker *w = &dev->worker;

	atomic_store_explicit(&w->asleep, !dev->options.pinned, memory_order_relaxed);
	rig_full(); /* `asleep` before `written`: see ring */
	if (!has_work(w))
		nap(dev, IDLE_NAP_NS);
	atomic_store_explicit(&w->asleep, false, memory_order_relaxed);
}

static const void *unit_at(const struct rig_worker *w, uint64_t position)
{
	return w->units + (position & w->mask) * RIG_SERIAL_OP_BYTES;
}

static bool await_word(struct rig_dev *dev, const struct unit *unit)
{
	const rig_atomic_u64 *word = (const rig_atomic_u64 *)(uintptr_t)unit->address;
	uint64_t ns = WORD_NAP_NS;

	while (rig_word_load(word) < unit->value) {
		if (ended(dev))
			return false;
		nap(dev, ns);
		ns = rig_min_u64(2 * ns, LOOK_NAP_NS);
	}
	return true;
}

/* Before it sleeps for an interrupt: poll took back what raised the last one. */
static void unmask(struct rig_dev *dev)
{
	if (dev->worker.fired && dev->facts.vectors && dev->progress.irq == RIG_IRQ_INTX)
		rig_pci_irq_unmask(dev->pci, RIG_IRQ_INTX);
	dev->worker.fired = false;
}

/* True: complete. */
static bool run_operation(struct rig_dev *dev, const void *op)
{
	const struct rig_serial *serial = dev->worker.port->serial;
	bool done = false;
	int err;

	dev->worker.running = true;
	err = serial->start(&dev->port, op);
	while (!err && !(err = serial->poll(&dev->port, op, &done)) && !done) {
		if (ended(dev))
			return false;
		unmask(dev);
		nap(dev, dev->facts.vectors ? OPERATION_NAP_NS : LOOK_NAP_NS);
	}
	if (err) {
		rig_dev_set_fault(dev, "an operation failed: %s", rig_error());
		return false;
	}
	dev->worker.running = false;
	return true;
}

static void release(struct rig_dev *dev, uint64_t value)
{
	atomic_store_explicit(&dev->worker.completed, value, memory_order_release);
	rig_dev_progress(dev);
	rig_dev_wake(dev);
}

/* The unit may be written again once the value that it belongs to is released. */
static void run_unit(struct rig_dev *dev)
{
	struct rig_worker *w = &dev->worker;
	const struct unit *unit = unit_at(w, w->read);
	uint64_t next = w->read + 1 + unit->operations;

	while (++w->read < next)
		if (!run_operation(dev, unit_at(w, w->read)))
			return;
	if (unit->kind == UNIT_WAIT && !await_word(dev, unit))
		return;
	if (unit->kind == UNIT_RELEASE)
		release(dev, unit->value);
}

void *rig_dev_serial_run(void *arg)
{
	struct rig_dev *dev = arg;

	while (!ended(dev)) {
		if (has_work(&dev->worker))
			run_unit(dev);
		else
			idle(dev);
	}
	return NULL;
}
