/* SPDX-License-Identifier: MIT */
#include "test.h"
#include <stdio.h>
#include <string.h>

#include "allocs.h"
#include "boards.h"
#include "fake_edu.h"

#define BAR_BYTES (1u << 20)

/* The specification's registers: 32-bit accesses below 0x80, 32 or 64 bits from there on. */
enum {
	REG_ID = 0x00,
	REG_LIVE = 0x04,
	REG_FACTORIAL = 0x08,
	REG_STATUS = 0x20,
	REG_IRQ_STATUS = 0x24,
	REG_IRQ_RAISE = 0x60,
	REG_IRQ_ACK = 0x64,
	REG_WIDE = 0x80,
	REG_SOURCE = 0x80,
	REG_TARGET = 0x88,
	REG_COUNT = 0x90,
	REG_COMMAND = 0x98,
};

#define DEVICE_ID        0x010000EDu
#define COMPUTING        0x01u
#define WANTS_IRQ        0x80u
#define RUN              0x01u
#define FROM_DEVICE      0x02u
#define RAISES           0x04u
#define IRQ_OF_DMA       0x100u
#define IRQ_OF_FACTORIAL 0x001u
#define BUFFER_AT        0x40000u
#define ADDRESS_BITS     28u

/* ---- The device. All with the lock held. ---- */

static void breach(struct fake_edu *e, const char *what, uint64_t value)
{
	if (!e->breaches++)
		snprintf(e->breach, sizeof(e->breach), "%s: 0x%llx", what, (unsigned long long)value);
}

static void raise_irq(struct fake_edu *e, uint32_t bits)
{
	bool was = e->irq_status != 0;

	e->irq_status |= bits;
	e->interrupts++;
	if (e->o.irq == FAKE_EDU_MSI)
		rig_fake_fire(e->fake, RIG_IRQ_MSI, 0);
	if (e->o.irq == FAKE_EDU_INTX && !was) /* a level that is up stays up */
		rig_fake_fire(e->fake, RIG_IRQ_INTX, 0);
}

static void transfer(struct fake_edu *e)
{
	bool out = e->command & FROM_DEVICE;
	uint64_t board = out ? e->source : e->target, bus = out ? e->target : e->source;
	uint64_t mask = (1ull << ADDRESS_BITS) - 1;
	uint8_t *at;
	int err;

	if (board < BUFFER_AT || board - BUFFER_AT > FAKE_EDU_BUFFER || !e->count ||
	        e->count > FAKE_EDU_BUFFER - (board - BUFFER_AT)) {
		breach(e, "a transfer outside the buffer at", board);
		return;
	}
	if (bus > mask)
		breach(e, "an address of more than 28 bits", bus);
	bus &= mask;
	at = e->buffer + (board - BUFFER_AT);
	if (bus + e->count > e->highest)
		e->highest = bus + e->count;
	err = out ? rig_fake_dma_write(e->fake, bus, at, e->count)
	          : rig_fake_dma_read(e->fake, bus, at, e->count);
	if (err)
		breach(e, "a transfer of memory that is not mapped at", bus);
}

static void compute(struct fake_edu *e)
{
	uint32_t n = e->factorial, product = 1;

	for (; n; n--)
		product *= n;
	e->factorial = product;
}

static bool finish(struct fake_edu *e)
{
	if (e->command & RUN) {
		if (!e->stale)
			transfer(e);
		e->stale = false;
		e->command &= ~(uint64_t)RUN;
		if (e->command & RAISES)
			raise_irq(e, IRQ_OF_DMA);
		return true;
	}
	if (!(e->status & COMPUTING))
		return false;
	compute(e);
	e->status &= ~COMPUTING;
	if (e->status & WANTS_IRQ)
		raise_irq(e, IRQ_OF_FACTORIAL);
	return true;
}

static void begin(struct fake_edu *e)
{
	e->operations++;
	e->left = e->o.reads;
	if (!e->o.held && !e->left)
		finish(e);
}

/* The register of an operation under way was read. */
static void look(struct fake_edu *e, bool under_way)
{
	if (under_way && !e->o.held && e->left && !--e->left)
		finish(e);
}

static uint64_t load(struct fake_edu *e, uint64_t offset)
{
	switch (offset) {
	case REG_ID:
		return e->o.id ? e->o.id : DEVICE_ID;
	case REG_LIVE:
		return e->live;
	case REG_FACTORIAL:
		if (e->status & COMPUTING)
			breach(e, "the factorial is read while it is computed", e->factorial);
		return e->factorial;
	case REG_STATUS:
		look(e, e->status & COMPUTING);
		return e->status;
	case REG_IRQ_STATUS:
		return e->irq_status;
	case REG_SOURCE:
		return e->source;
	case REG_TARGET:
		return e->target;
	case REG_COUNT:
		return e->count;
	case REG_COMMAND:
		look(e, e->command & RUN);
		return e->command;
	default:
		breach(e, "a read of no register at", offset);
		return UINT64_MAX;
	}
}

static void store_dma(struct fake_edu *e, uint64_t offset, uint64_t value)
{
	if (e->command & RUN) {
		breach(e, "a DMA register is written while the engine runs", offset);
		return;
	}
	if (offset == REG_SOURCE)
		e->source = value;
	if (offset == REG_TARGET)
		e->target = value;
	if (offset == REG_COUNT)
		e->count = value;
	if (offset != REG_COMMAND)
		return;
	e->command = value;
	if (value & RUN)
		begin(e);
}

static void store(struct fake_edu *e, uint64_t offset, uint64_t value)
{
	switch (offset) {
	case REG_LIVE:
		e->live = e->o.deaf ? (uint32_t)value : ~(uint32_t)value;
		break;
	case REG_FACTORIAL:
		if (e->status & COMPUTING) {
			breach(e, "a number is written while one is computed", value);
			break;
		}
		e->factorial = (uint32_t)value;
		e->status |= COMPUTING;
		begin(e);
		break;
	case REG_STATUS:
		e->status = (e->status & ~WANTS_IRQ) | ((uint32_t)value & WANTS_IRQ);
		break;
	case REG_IRQ_RAISE:
		raise_irq(e, (uint32_t)value);
		break;
	case REG_IRQ_ACK:
		e->irq_status &= ~(uint32_t)value;
		break;
	case REG_SOURCE:
	case REG_TARGET:
	case REG_COUNT:
	case REG_COMMAND:
		store_dma(e, offset, value);
		break;
	default:
		breach(e, "a write of no register at", offset);
	}
}

static void hook(void *arg, struct rig_fake_access *a)
{
	struct fake_edu *e = arg;
	uint64_t value = 0;

	if (a->region != RIG_VFIO_BAR0)
		return;
	if (!a->write && *(const uint8_t *)a->data == 0xFF) /* rig_fake_vanish: there is no device any more */
		return;
	pthread_mutex_lock(&e->lock);
	if (a->len != 4 && !(a->len == 8 && a->offset >= REG_WIDE)) {
		breach(e, "an access of a width that is not allowed", a->len);
	} else if (a->write) {
		memcpy(&value, a->data, a->len);
		store(e, a->offset, value);
	} else {
		value = load(e, a->offset);
		memcpy(a->data, &value, a->len);
	}
	pthread_mutex_unlock(&e->lock);
}

/* ---- The test's side ---- */

void fake_edu_init(struct fake_edu *e, const struct fake_edu_options *options)
{
	static const struct fake_edu_options none;
	struct rig_fake_options o = {.vendor = 0x1234,
	        .device = 0x11E8,
	        .class_code = 0x00FF00,
	        .bar_bytes = {BAR_BYTES},
	        .hook = hook,
	        .hook_arg = e};

	memset(e, 0, sizeof(*e));
	e->o = options ? *options : none;
	o.no_reset = e->o.no_reset;
	o.irqs[RIG_IRQ_MSI] = e->o.irq == FAKE_EDU_MSI;
	o.irqs[RIG_IRQ_INTX] = e->o.irq != FAKE_EDU_NO_IRQ;
	pthread_mutex_init(&e->lock, NULL);
	if (e->o.running) {
		e->stale = true;
		e->command = RUN | FROM_DEVICE;
		e->left = 3;
	}
	assert_int_equal(rig_fake_make(&e->fake, &o), 0);
}

void fake_edu_free(struct fake_edu *e)
{
	assert_int_equal(rig_fake_maps(e->fake), 0);
	assert_int_equal(rig_fake_connected(e->fake), 0);
	assert_int_equal(rig_fake_open_count(e->fake), 0);
	rig_fake_free(e->fake);
	pthread_mutex_destroy(&e->lock);
	if (e->breaches)
		fail_msg("edu's specification was not kept: %s", e->breach);
	memset(e, 0, sizeof(*e));
}

static void released(void *arg)
{
	((struct fake_edu *)arg)->released++;
}

int fake_edu_open(void *arg, rig_atomic_u64 *word, void **device, char *why, size_t why_bytes)
{
	struct fake_edu *e = arg;
	struct rig_driver_options driver = {.boot_ms = 1000};
	struct rig_pci_taking taken = {
	        .ops = &rig_fake_ops, .transport = e->fake, .ended = released, .ended_arg = e};
	struct rig_pci *pci;
	int err = rig_pci_take(&pci, &taken);

	if (err) {
		snprintf(why, why_bytes, "%s", rig_error());
		return err;
	}
	return rig_driver_make(pci, rig_board_find(rig_pci_info(pci)->vendor, rig_pci_info(pci)->device),
	        &driver, word, device, why, why_bytes);
}

int fake_edu_make(struct fake_edu *e, const struct fake_edu_options *options)
{
	int err;

	fake_edu_init(e, options);
	e->word = rig_words() + 1;
	__atomic_store_n((uint64_t *)e->word, e->o.start, __ATOMIC_RELEASE);
	rig_fake_fail_at(e->fake, e->o.fail_at);
	test_allocs_fail_at(e->o.fail_allocation);
	err = fake_edu_open(e, e->word, &e->device, e->why, sizeof(e->why));
	e->dev = e->device;
	return err;
}

void fake_edu_close(struct fake_edu *e)
{
	if (e->device) {
		rig_driver_module.stop(e->device, NULL);
		rig_driver_module.release(e->device);
		assert_int_equal(e->released, 1);
	}
	fake_edu_free(e);
}

bool fake_edu_finish(struct fake_edu *e)
{
	bool any;

	pthread_mutex_lock(&e->lock);
	any = finish(e);
	pthread_mutex_unlock(&e->lock);
	return any;
}

unsigned fake_edu_started(struct fake_edu *e)
{
	unsigned n;

	pthread_mutex_lock(&e->lock);
	n = e->operations;
	pthread_mutex_unlock(&e->lock);
	return n;
}
