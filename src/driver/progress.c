/* SPDX-License-Identifier: MIT */
/*
 * Progress: who sees that a value completed, raises the word and wakes sleepers.
 *
 * A waiter looks itself for a while. The poller, one thread a device, looks when the function's interrupt
 * says so, and every POLLER_MS (STILL_MS on a device that has been idle for a while) in case an interrupt was
 * lost; it leaves the interrupt armed, so that submit need not wake it.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "device.h"
#include "peer.h"
#include "thread.h"

/* A waiter looks itself for SPIN_NS before it blocks: waking it, by interrupt and poller, takes some 30 us,
   which adds little to a wait that took so long already. */
#define POLLER_MS        10
#define STILL_MS         100
#define STILL_AFTER_NS   RIG_NS_PER_S
#define POLLER_BURST_NS  (50 * RIG_NS_PER_US) /* it looks on so long after the last change */
#define SPIN_NS          RIG_NS_PER_MS
#define NO_VECTOR_NAP_MS 1 /* the poller's pace on a function without interrupts */
#define SPINS_A_YIELD    32u
#define STALL_NS         (100 * RIG_NS_PER_MS) /* without a move: then the board is asked */

void rig_dev_set_fault(struct rig_dev *dev, const char *format, ...)
{
	struct rig_progress *p = &dev->progress;
	bool first;
	va_list args;

	pthread_mutex_lock(&p->lock);
	first = !atomic_load_explicit(&p->faulted, memory_order_relaxed);
	if (first) {
		va_start(args, format);
		vsnprintf(p->fault, sizeof(p->fault), format, args);
		va_end(args);
		atomic_store_explicit(&p->faulted, true, memory_order_release);
	}
	pthread_cond_broadcast(&p->moved);
	pthread_mutex_unlock(&p->lock);
	if (first)
		rig_logf(&dev->options.log, RIG_LOG_ERROR, "%s", p->fault);
}

int rig_dev_fault(struct rig_dev *dev, const char **fault)
{
	*fault = dev->progress.fault;
	return RIG_FAULT;
}

static bool is_alive(struct rig_dev *dev)
{
	const struct rig_board *board = dev->board;

	return board->alive ? !board->alive(&dev->port) : !rig_pci_check(dev->pci);
}

/* A function that is being reset may answer all ones. The vendor id is read after that, because the kernel
   keeps configuration space shut meanwhile; what the board then says of itself is the reason. */
static bool check_alive(struct rig_dev *dev)
{
	const char *why;

	if (is_alive(dev))
		return true;
	if (!rig_pci_gone(dev->pci, &why) && !rig_pci_check(dev->pci)) {
		if (is_alive(dev))
			return true;
		if (!rig_pci_gone(dev->pci, &why))
			rig_dev_set_fault(dev, "%s", rig_error());
	}
	if (rig_pci_gone(dev->pci, &why))
		rig_dev_set_fault(dev, "%s", why);
	return false;
}

void rig_dev_watch(struct rig_dev *dev, struct rig_stall *stall)
{
	uint64_t value = rig_word_load(dev->word), now = rig_clock_ns();

	if (rig_pci_info(dev->pci)->tells)
		return;
	if (!stall->since || value != stall->seen ||
	        value >= atomic_load_explicit(&dev->submitted, memory_order_relaxed)) {
		*stall = (struct rig_stall){.seen = value, .since = now};
	} else if (now - stall->since >= STALL_NS) {
		stall->since = now;
		(void)check_alive(dev);
	}
}

/* The board says that it failed: in its words, unless it is the function that left or was reset. */
static void say_fault(struct rig_dev *dev)
{
	char text[RIG_FAULT_TEXT];
	const char *why;

	if ((dev->board->alive && !check_alive(dev)) || !dev->board->failed(&dev->port))
		return;
	dev->board->fault(&dev->port, text, sizeof(text));
	if (!rig_pci_gone(dev->pci, &why))
		rig_dev_set_fault(dev, "%s", text);
}

bool rig_dev_check_fault(struct rig_dev *dev)
{
	const char *why;

	if (rig_dev_faulted(dev))
		return true;
	if (dev->board->failed(&dev->port) && !rig_pci_gone(dev->pci, &why))
		say_fault(dev);
	if (rig_pci_gone(dev->pci, &why))
		rig_dev_set_fault(dev, "%s", why);
	return rig_dev_faulted(dev);
}

uint64_t rig_dev_progress(struct rig_dev *dev)
{
	uint64_t value = dev->board->completed(&dev->port);

	/* What the device shows is believed only if it was submitted. */
	if (value > atomic_load_explicit(&dev->submitted, memory_order_acquire)) {
		if (!rig_dev_check_fault(dev))
			rig_dev_set_fault(
			        dev, "the device shows value %" PRIu64 ", which was never submitted", value);
		return rig_word_load(dev->word);
	}
	if (!dev->options.store)
		rig_word_raise(dev->word, value);
	return value;
}

/* What waiters see, after a look at the device: a device that stores its word may show the value before the
   word does. */
static uint64_t look(struct rig_dev *dev)
{
	rig_dev_progress(dev);
	return rig_word_load(dev->word);
}

void rig_dev_wake(struct rig_dev *dev)
{
	/* The word before the count, as block has the count before the word: one of both sees the other. */
	rig_full();
	if (!atomic_load_explicit(&dev->progress.sleepers, memory_order_relaxed))
		return;
	pthread_mutex_lock(&dev->progress.lock);
	pthread_cond_broadcast(&dev->progress.moved);
	pthread_mutex_unlock(&dev->progress.lock);
}

/* Looks until nothing changed for a while; the last value seen. */
static uint64_t burst(struct rig_dev *dev)
{
	uint64_t last = look(dev), since = rig_clock_ns();
	unsigned spins = 0;

	rig_dev_wake(dev);
	while (rig_clock_ns() - since < POLLER_BURST_NS && !rig_dev_faulted(dev) && !rig_dev_must_quit(dev)) {
		uint64_t value = look(dev);

		if (value != last) {
			last = value;
			since = rig_clock_ns();
			rig_dev_wake(dev);
		}
		rig_pause();
		if (++spins % SPINS_A_YIELD == 0) {
			rig_dev_times_tick(dev);
			sched_yield();
		}
	}
	return last;
}

void rig_dev_drain(int fd)
{
	uint64_t count;

	while (read(fd, &count, sizeof(count)) < 0 && errno == EINTR)
		;
}

static void *spinner(void *arg)
{
	struct rig_dev *dev = arg;
	struct rig_stall stall = {0};
	uint64_t seen = look(dev);
	unsigned spins = 0;

	rig_dev_wake(dev); /* who slept before this thread ran */
	while (!rig_dev_must_quit(dev)) {
		uint64_t value = look(dev);

		if (value != seen)
			rig_dev_wake(dev);
		seen = value;
		rig_pause();
		if (++spins % SPINS_A_YIELD)
			continue;
		rig_dev_times_tick(dev);
		rig_dev_watch(dev, &stall);
		if (rig_dev_check_fault(dev))
			break;
	}
	look(dev); /* what completed before the fault */
	return NULL;
}

/* What the poller sleeps on: a descriptor a vector, then the two that end it. */
enum { QUIT = RIG_DEV_VECTORS, GONE, POLLED };

static void list_polled(struct rig_dev *dev, struct pollfd polled[POLLED])
{
	for (unsigned i = 0; i < POLLED; i++)
		polled[i] = (struct pollfd){.fd = -1, .events = POLLIN};
	for (unsigned i = 0; i < RIG_DEV_VECTORS; i++)
		polled[i].fd = dev->progress.irq_fd[i];
	polled[QUIT].fd = dev->progress.quit_fd;
	polled[GONE].fd = rig_pci_gone_fd(dev->pci);
}

/* Whether a vector interrupted. */
static bool rest(struct pollfd polled[POLLED], int ms)
{
	bool fired = false;

	if (poll(polled, POLLED, ms) <= 0)
		return false;
	for (unsigned i = 0; i < RIG_DEV_VECTORS; i++) {
		if (!(polled[i].revents & POLLIN))
			continue;
		rig_dev_drain(polled[i].fd);
		fired = true;
	}
	return fired;
}

/* How long to rest. `*since`: when work was last out, kept here. */
static int nap_ms(const struct rig_dev *dev, uint64_t seen, uint64_t *since)
{
	uint64_t now = rig_clock_ns();

	if (!dev->facts.vectors)
		return NO_VECTOR_NAP_MS;
	if (!*since || seen < atomic_load_explicit(&dev->submitted, memory_order_relaxed))
		*since = now;
	return now - *since < STILL_AFTER_NS ? POLLER_MS : STILL_MS;
}

static void *poller(void *arg)
{
	struct rig_dev *dev = arg;
	struct rig_stall stall = {0};
	struct pollfd polled[POLLED];
	uint64_t seen = look(dev), since = 0;

	rig_dev_wake(dev); /* who slept before this thread ran */
	list_polled(dev, polled);
	while (!rig_dev_must_quit(dev)) {
		bool busy;

		dev->board->arm(&dev->port, seen);
		/* Looked at once more after arming, so that what completed in between is not left to the
		   timeout. */
		busy = look(dev) != seen || rig_dev_check_fault(dev);
		busy = rest(polled, busy ? 0 : nap_ms(dev, seen, &since)) || busy;
		if (busy)
			since = 0;
		rig_dev_times_tick(dev);
		rig_dev_watch(dev, &stall);
		if (rig_dev_check_fault(dev))
			break;
		seen = busy ? burst(dev) : look(dev);
		rig_dev_wake(dev);
	}
	look(dev); /* what completed before the fault */
	return NULL;
}

/* The interrupt of a serial board may be of any kind, because the worker acknowledges and unmasks it. */
static enum rig_irq_kind pick_irq(struct rig_dev *dev)
{
	enum rig_irq_kind kind = RIG_IRQ_MSIX;

	while (rig_dev_is_serial(dev) && kind > RIG_IRQ_INTX && !rig_pci_irq_count(dev->pci, kind))
		kind--;
	return kind;
}

/* As many as the system has, in the end none. Where some are missing the poller looks at the pace of a board
   without any, and those that are there wake it earlier. */
static int arm_some(struct rig_dev *dev, enum rig_irq_kind kind, uint32_t wanted)
{
	char why[RIG_FAULT_TEXT] = "";
	uint32_t n = wanted;
	int err = -ENOSPC;

	while (n && err == -ENOSPC) {
		err = rig_pci_irq_enable(dev->pci, kind, 0, n, dev->progress.irq_fd);
		if (err == -ENOSPC && n-- == wanted)
			snprintf(why, sizeof(why), "%s", rig_error());
	}
	if (err && err != -ENOSPC)
		return rig_error_set(err, "arming %u interrupt vectors: %s", n, rig_error());
	if (n == wanted)
		return 0;
	dev->facts.vectors = 0;
	rig_logf(&dev->options.log, RIG_LOG_WARN, "%u of %u interrupt vectors, the rest is polled: %s", n,
	        wanted, why);
	return 0;
}

/* A descriptor a vector: two producers on one would keep the kernel from passing interrupts on directly. */
static int arm_vectors(struct rig_dev *dev)
{
	struct rig_progress *p = &dev->progress;
	enum rig_irq_kind kind = p->irq = pick_irq(dev);
	uint32_t n = dev->facts.vectors;

	if (n > rig_pci_irq_count(dev->pci, kind) || n > RIG_DEV_VECTORS)
		dev->facts.vectors = n = 0;
	/* The first is also what wakes a worker. */
	for (uint32_t i = 0; i < n || i == 0; i++) {
		p->irq_fd[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (p->irq_fd[i] < 0)
			return rig_error_set(-errno, "eventfd for the poller (error %d)", errno);
	}
	return n ? arm_some(dev, kind, n) : 0;
}

static void *(*poller_of(const struct rig_dev *dev))(void *)
{
	if (rig_dev_is_serial(dev))
		return rig_dev_serial_run;
	return dev->options.pinned ? spinner : poller;
}

static int start_poller(struct rig_dev *dev)
{
	struct rig_progress *p = &dev->progress;
	int cpu = dev->options.pinned ? dev->options.cpu : RIG_THREAD_ANY;
	int err = rig_thread_start(&p->poller, cpu, poller_of(dev), dev);

	if (err && dev->options.pinned)
		return rig_error_set(
		        err, "a poller on CPU %d (error %d): is there such a CPU?", dev->options.cpu, -err);
	if (err)
		return rig_error_set(err, "the poller's thread (error %d)", -err);
	p->polling = true;
	return 0;
}

int rig_dev_progress_open(struct rig_dev *dev)
{
	struct rig_progress *p = &dev->progress;
	int err;

	p->quit_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->quit_fd < 0)
		return rig_error_set(-errno, "eventfd for the poller (error %d)", errno);
	err = arm_vectors(dev);
	if (err)
		return err;
	return start_poller(dev);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void rig_dev_progress_close(struct rig_dev *dev)
{
	struct rig_progress *p = &dev->progress;
	uint64_t one = 1;

	atomic_store_explicit(&p->quit, true, memory_order_relaxed);
	if (p->polling) {
		while (write(p->quit_fd, &one, sizeof(one)) < 0 && errno == EINTR)
			;
		pthread_join(p->poller, NULL);
		p->polling = false;
		rig_pci_irq_disable(dev->pci, p->irq);
	}
	for (unsigned i = 0; i < RIG_DEV_VECTORS; i++)
		close_fd(&p->irq_fd[i]);
	close_fd(&p->quit_fd);
}

/* The value the word shows: by the device's store, or by looking. */
static bool moved(struct rig_dev *dev, uint64_t seen)
{
	if (!dev->options.store)
		rig_dev_progress(dev);
	return rig_word_load(dev->word) != seen;
}

static bool spin(struct rig_dev *dev, uint64_t seen, uint64_t until)
{
	unsigned spins = 0;

	while (!moved(dev, seen)) {
		rig_pause();
		if (++spins % SPINS_A_YIELD == 0) {
			if (rig_dev_check_fault(dev) || rig_clock_ns() >= until)
				return false;
			sched_yield();
		}
	}
	return true;
}

static void block(struct rig_dev *dev, uint64_t seen, uint64_t until)
{
	struct rig_progress *p = &dev->progress;
	struct timespec at;

	at.tv_sec = (time_t)(until / RIG_NS_PER_S);
	at.tv_nsec = (long)(until % RIG_NS_PER_S);
	pthread_mutex_lock(&p->lock);
	atomic_fetch_add_explicit(&p->sleepers, 1, memory_order_relaxed);
	rig_full();
	/* Looking at the device is the poller's: who looks may find a fault, whose text takes this lock. */
	while (rig_word_load(dev->word) == seen && !rig_dev_faulted(dev))
		if (pthread_cond_timedwait(&p->moved, &p->lock, &at))
			break;
	atomic_fetch_sub_explicit(&p->sleepers, 1, memory_order_relaxed);
	pthread_mutex_unlock(&p->lock);
}

int rig_dev_sleep(void *device, uint64_t seen, uint64_t still_ms, const char **fault)
{
	struct rig_dev *dev = device;
	uint64_t now = rig_clock_ns(), until = now;

	if (still_ms > (RIG_CLOCK_NEVER - now) / RIG_NS_PER_MS)
		still_ms = (RIG_CLOCK_NEVER - now) / RIG_NS_PER_MS;
	until += still_ms * RIG_NS_PER_MS;
	/* For no time at all it is a look, without a system call. */
	if (!spin(dev, seen, rig_min_u64(until, now + SPIN_NS)) && !rig_dev_check_fault(dev) && still_ms)
		block(dev, seen, until);
	/* Work that completed before the fault still counts: the caller judges it by the word. */
	if (!moved(dev, seen) && rig_dev_check_fault(dev))
		return rig_dev_fault(dev, fault);
	return 0;
}
