/* SPDX-License-Identifier: MIT */
/* Functions below the driver: interrupt lines, resets of a bus, one address space for a group. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "vfio_kernel.h"
#include "lab_device.h"
#include "pci.h"
#include "raw.h"

#define FIRED_MS 20000 /* an interrupt comes within it, also on a loaded machine */
#define GIB      (UINT64_C(1) << 30)
#define CALLS    16u /* the most that a piece of an arena may take: memory, map, and what is asked before */

/* edu, in QEMU's docs/specs/edu. */
#define EDU_LIVENESS 0x04u
#define EDU_RAISE    0x60u
#define EDU_ACK      0x64u

static struct rig_pci *take(const char *address, const char *transport)
{
	static const enum rig_pci_transport which[] = {[RAW_TYPE1] = RIG_PCI_TYPE1,
	        [RAW_IOMMUFD] = RIG_PCI_IOMMUFD,
	        [RAW_NOIOMMU] = RIG_PCI_NOIOMMU};
	struct rig_kernel_want want = {.bdf = address, .which = which[raw_transport_of(transport)]};
	const struct rig_pci_taking options = {.begin = rig_kernel_begin, .arg = &want, .name = address};
	struct rig_pci *f;

	if (rig_pci_take(&f, &options))
		lab_fail("%s", rig_error());
	return f;
}

static struct rig_win window(struct rig_pci *f)
{
	struct rig_win win;

	if (rig_pci_window(f, 0, 0, 0, 0, &win))
		lab_fail("BAR0: %s", rig_error());
	return win;
}

static void pci_must(int err, const char *what)
{
	if (err)
		lab_fail("%s: %s", what, rig_error());
}

/* Whether the descriptor was signalled within `ms`; it is not afterwards. */
static bool fires(int fd, int ms)
{
	struct pollfd polled = {.fd = fd, .events = POLLIN};
	uint64_t count;

	return poll(&polled, 1, ms) == 1 && read(fd, &count, sizeof(count)) == sizeof(count);
}

void check_claim(char **argument)
{
	int fd = open(argument[0], O_RDONLY | O_EXCL | O_CLOEXEC);

	lab_check(fd >= 0, "the disk can be claimed");
	puts("claimed");
	fflush(stdout);
	pause();
}

/* argument: edu's address, the transport. */
void check_intx(char **argument)
{
	struct rig_pci *f = take(argument[0], argument[1]);
	struct rig_win win = window(f);
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	lab_check(rig_pci_irq_count(f, RIG_IRQ_INTX) == 1, "edu has an interrupt line");
	pci_must(rig_pci_irq_enable(f, RIG_IRQ_INTX, 0, 1, &fd), "enabling INTx");
	rig_win_store32(&win, EDU_RAISE, 1);
	lab_check(fires(fd, FIRED_MS), "a raised line interrupts");
	rig_win_store32(&win, EDU_RAISE, 2);
	lab_check(!fires(fd, 0), "the line is masked once it interrupted");
	pci_must(rig_pci_irq_unmask(f, RIG_IRQ_INTX), "unmasking");
	lab_check(fires(fd, FIRED_MS), "a line that is still raised interrupts again once it is unmasked");
	rig_win_store32(&win, EDU_ACK, 3);
	pci_must(rig_pci_irq_unmask(f, RIG_IRQ_INTX), "unmasking");
	lab_check(!fires(fd, 0), "a line that was acknowledged does not");
	rig_win_store32(&win, EDU_RAISE, 1);
	lab_check(fires(fd, FIRED_MS), "until it is raised again");
	rig_win_store32(&win, EDU_ACK, 1);
	pci_must(rig_pci_irq_disable(f, RIG_IRQ_INTX), "disabling INTx");
	close(fd);
	rig_pci_close(f);
}

static void answers(struct rig_pci *f, uint32_t word)
{
	struct rig_win win = window(f);

	rig_win_store32(&win, EDU_LIVENESS, word);
	lab_check(rig_win_load32(&win, EDU_LIVENESS) == ~word, "the function answers");
}

static int reset_of(struct rig_pci *f, const char *when, bool bus)
{
	int err = bus ? rig_pci_reset_bus(f) : rig_pci_reset(f);

	printf("a reset %s: %d: %s\n", when, err, err ? rig_error() : "done");
	return err;
}

static void must_run(const char *command)
{
	if (system(command) != 0)
		lab_fail("%s: failed", command);
}

/* Two functions of a bus that have no reset of their own. argument: their addresses, the transport, what
   unbinds the second and binds it. Of one group it is enough to have one, because nobody else can have the
   other; without an IOMMU functions have no group in common, and no reset is offered. */
void check_hot(char **argument)
{
	struct rig_pci *one = take(argument[0], argument[2]), *other;
	enum raw_transport transport = raw_transport_of(argument[2]);

	if (transport == RAW_NOIOMMU) {
		lab_check(reset_of(one, "without a group", false) == -ENOTSUP, "no reset is offered");
		answers(one, 0x12345678);
		rig_pci_close(one);
		return;
	}
	lab_check(!reset_of(one, "of the whole group", false), "a group that is this process's may be reset");
	must_run(argument[3]);
	lab_check(reset_of(one, "without the other", false) < 0,
	        "a reset that hits a function of nobody's is refused");
	if (transport == RAW_IOMMUFD)
		lab_check(strstr(rig_error(), argument[1]), "and the text names that function");
	must_run(argument[4]);
	other = take(argument[1], argument[2]);
	lab_check(reset_of(one, "with both", false) == -EBUSY,
	        "one that hits a function of this process's is refused unless asked for");
	lab_check(strstr(rig_error(), argument[1]), "and the text names that function");
	answers(other, 0x01020304);
	lab_check(!reset_of(one, "of both", true), "asked for, the bus is reset");
	answers(one, 0x12345678);
	answers(other, 0x87654321);
	rig_pci_close(other);
	answers(one, 0x55AA55AA);
	rig_pci_close(one);
}

/* argument: two devices of a group, and what resets the first. */
void check_group(char **argument)
{
	struct rig_device *one = lab_open(argument[0]), *other = lab_open(argument[1]);
	unsigned spaces = lab_descriptors("/dev/vfio/vfio") + lab_descriptors("/dev/iommu");

	printf("%u containers\n", spaces);
	lab_check(spaces == 1, "two functions of a group are in one container");
	lab_close(other);
	lab_close(one);
	check_pair(argument);
}

static struct rig_vfio_stats stats_of(struct rig_device *device)
{
	const struct rig_vfio_record *record = rig_capability(device, &rig_vfio_key);
	struct rig_vfio_stats stats;

	record->stats(record, &stats);
	return stats;
}

#define MOST_PIECES 1024u

/* argument: the device, and MiB of each piece (where no IOMMU joins pages a piece lies within one). */
void check_arena(char **argument)
{
	uint64_t piece = (argument[1] ? lab_number(argument[1]) : 1024) << 20, pieces = GIB / piece;
	struct rig_device *device = lab_open(argument[0]);
	const struct rig_vfio_record *record = rig_capability(device, &rig_vfio_key);
	struct rig_vfio_stats before = stats_of(device), after;
	struct rig_buffer *buffers[MOST_PIECES];
	uint64_t i, calls;

	lab_check(pieces <= MOST_PIECES, "pieces of 1 MiB at least");
	for (i = 0; i < pieces; i++)
		lab_must(rig_buffer_create(device, RIG_PINNED, piece, &buffers[i]), "pinned buffer");
	after = stats_of(device);
	calls = after.messages - before.messages;
	printf("%s, %s: 1 GiB of arena in pieces of %llu MiB: %llu calls or messages, %llu mappings, %llu "
	       "bytes "
	       "mapped, %llu bytes of tables\n",
	        record->transport, record->host_pages, (unsigned long long)piece >> 20,
	        (unsigned long long)calls, (unsigned long long)(after.dma_maps - before.dma_maps),
	        (unsigned long long)(after.dma_bytes - before.dma_bytes),
	        (unsigned long long)(after.table_bytes - before.table_bytes));
	lab_check(after.dma_bytes - before.dma_bytes >= GIB - (UINT64_C(64) << 20), "the memory is mapped");
	lab_check(after.dma_bytes - before.dma_bytes <= GIB + (UINT64_C(64) << 20), "and not much more");
	lab_check(calls <= CALLS * pieces, "by few calls");
	for (i = 0; i < pieces; i++)
		rig_buffer_put(buffers[i]);
	lab_close(device);
}
