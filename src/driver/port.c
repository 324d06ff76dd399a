/* SPDX-License-Identifier: MIT */
/* What a board asks of the driver: windows, waits for registers, firmware files. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "device.h"
#include "find.h"

#define MAX_FIRMWARE (16u << 20)
#define WAIT_NAP_NS  (50 * RIG_NS_PER_US)
#define WAIT_SPINS   64u

int rig_port_window(struct rig_port *port, unsigned bar, uint64_t offset, uint64_t bytes, unsigned flags,
        struct rig_win *win)
{
	if (port->all_messages)
		flags |= RIG_WIN_MESSAGES;
	return rig_pci_window(port->function, bar, offset, bytes, flags, win);
}

static bool holds(const struct rig_win *win, const struct rig_port_until *until, uint32_t *value)
{
	*value = rig_win_load32(win, until->offset);
	return (*value & until->mask) == until->want;
}

int rig_port_wait32(struct rig_port *port, const struct rig_win *win, const struct rig_port_until *until,
        const struct rig_port_until *unless)
{
	struct rig_deadline deadline = rig_deadline_in(NULL, port->boot_ms * RIG_NS_PER_MS);
	uint32_t value, other;
	const char *why;
	unsigned spins = 0;

	while (!holds(win, until, &value)) {
		if (rig_pci_gone(port->function, &why))
			return rig_error_set(-ENODEV, "waiting for %s: %s", until->what, why);
		if (unless && holds(win, unless, &other))
			return rig_error_set(-ECANCELED, "waiting for %s: %s became 0x%x", until->what,
			        unless->what, other);
		if (rig_deadline_passed(&deadline))
			return rig_error_set(-ETIMEDOUT,
			        "%s & 0x%x did not become 0x%x within %u ms; last read 0x%x", until->what,
			        until->mask, until->want, port->boot_ms, value);
		if (++spins > WAIT_SPINS)
			rig_deadline_sleep(&deadline, WAIT_NAP_NS);
	}
	return 0;
}

int rig_port_dma_write(struct rig_port *port, uint64_t iova, const void *bytes, uint64_t count)
{
	int err = rig_dma_write(port->function, iova, bytes, count);

	return err ? rig_error_set(err, "writing %" PRIu64 " bytes at bus address 0x%" PRIx64 ": %s", count,
	                     iova, err == -EACCES ? "read-only memory" : "not mapped for the function")
	           : 0;
}

static int read_all(int fd, struct rig_firmware *image)
{
	uint8_t *at = malloc(MAX_FIRMWARE + 1u);
	size_t have = 0;
	ssize_t n = 1;

	if (!at)
		return rig_error_set(-ENOMEM, "out of memory for the firmware image %s", image->path);
	while (have <= MAX_FIRMWARE && n > 0) {
		n = read(fd, at + have, MAX_FIRMWARE + 1u - have);
		if (n > 0)
			have += (size_t)n;
		else if (n < 0 && errno == EINTR)
			n = 1;
	}
	if (n < 0 || have > MAX_FIRMWARE) {
		int err = n < 0 ? -errno : -EFBIG;

		free(at);
		return rig_error_set(err, "firmware image %s: %s", image->path,
		        err == -EFBIG ? "larger than 16 MiB" : "cannot be read");
	}
	image->bytes = at;
	image->count = have;
	return 0;
}

int rig_port_firmware(struct rig_port *port, const char *name, struct rig_firmware *image)
{
	int fd, err = rig_find_file(
	                port->firmware_dir, RIG_FIND_FIRMWARE, name, image->path, sizeof(image->path));

	if (err)
		return rig_error_set(err, "firmware image %s", image->path);
	fd = open(image->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		err = -errno;
		return rig_error_set(err, "firmware image %s: %s", image->path, strerrordesc_np(-err));
	}
	err = read_all(fd, image);
	close(fd);
	return err;
}
