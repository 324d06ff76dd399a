/* SPDX-License-Identifier: MIT */
/* QEMU's edu device driven by hand: registers, DMA and an interrupt, with no board and no runtime.
   usage: function DEVICE, a PCI address or vfio-user:PATH */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rig_pci.h>

enum { ID = 0x00, FACTORIAL = 0x08, STATUS = 0x20, IRQ_STATUS = 0x24, IRQ_ACK = 0x64 };
enum { SOURCE = 0x80, TARGET = 0x88, COUNT = 0x90, COMMAND = 0x98 };
enum { BUSY = 1, RUN = 1, TO_MEMORY = 2, INTERRUPT = 4, BUFFER = 0x40000, BYTES = 4096 };

static void must(int answer, const char *what)
{
	if (answer >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, rig_error());
	exit(1);
}

/* Moves the page to the device's buffer or back, and waits for the interrupt. */
static void move(const struct rig_win *regs, const struct rig_dma *page, unsigned direction, int event)
{
	uint64_t fired;

	rig_win_store64(regs, direction ? SOURCE : TARGET, BUFFER);
	rig_win_store64(regs, direction ? TARGET : SOURCE, page->iova);
	rig_win_store64(regs, COUNT, BYTES);
	rig_before_doorbell();
	rig_win_store32(regs, COMMAND, RUN | direction | INTERRUPT);
	must(read(event, &fired, sizeof(fired)) == sizeof(fired) ? 0 : -1, "interrupt");
	rig_win_store32(regs, IRQ_ACK, rig_win_load32(regs, IRQ_STATUS));
}

int main(int argc, char **argv)
{
	int event = eventfd(0, EFD_CLOEXEC);
	struct rig_win regs;
	struct rig_pci *f;
	struct rig_dma page;

	must(rig_pci_open(argc > 1 ? argv[1] : "", NULL, &f), "open");
	must(rig_pci_window(f, 0, 0, 0x100, RIG_WIN_LIVE, &regs), "window");
	must(rig_pci_set_dma_mask(f, 28), "mask");
	must(rig_dma_alloc(f, BYTES, BYTES, &page), "memory");
	must(rig_pci_irq_enable(f, RIG_IRQ_MSI, 0, 1, &event), "interrupt");
	must(rig_pci_bus_master(f, true), "bus mastering");

	rig_win_store32(&regs, FACTORIAL, 10);
	while (rig_win_load32(&regs, STATUS) & BUSY && !rig_pci_gone(f, NULL))
		;
	memset(page.host, 0x5a, BYTES);
	move(&regs, &page, 0, event);
	memset(page.host, 0, BYTES);
	move(&regs, &page, TO_MEMORY, event);
	printf("edu 0x%08" PRIx32 " over %s: 10! is %" PRIu32 ", and byte 4095 came back as 0x%02x\n",
	        rig_win_load32(&regs, ID), rig_pci_info(f)->transport, rig_win_load32(&regs, FACTORIAL),
	        ((unsigned char *)page.host)[BYTES - 1]);
	rig_pci_close(f);
	return 0;
}
