/* SPDX-License-Identifier: MIT */
#ifndef TEST_VFU_CLIENT_H
#define TEST_VFU_CLIENT_H

/*
 * A function with a bit of everything, and a scripted client of it in the same thread: the client writes
 * into a socketpair, the server polls until it has nothing to do, the client reads what came back. Nothing
 * waits.
 */
#include "test.h"

#include "vfu.h"
#include "vfu_parse.h"

#define PEER_BAR0     0x2000u /* registers by callback, MSI-X inside */
#define PEER_TABLE    0x1000u
#define PEER_PBA      0x1800u
#define PEER_VECTORS  4u
#define PEER_BAR2     0x10000u /* 64-bit, prefetchable, two mappable areas of 0x4000 at 0 and 0x8000 */
#define PEER_AREA     0x4000u
#define PEER_AREA2    0x8000u
#define PEER_BAR4     0x1000u /* mappable as a whole, no callbacks */
#define PEER_BAR4_OFF 0x10000u
#define PEER_MSI      4u
#define PEER_LOGS     4096

struct peer {
	struct vfu_config config;
	struct vfu_device *dev;
	int fd; /* the client's end, -1: none */
	uint16_t id;

	/* The device's side. */
	uint8_t bar0[PEER_BAR0];
	uint8_t *mem; /* of BAR2, then BAR4 */
	int memfd;
	int reset_rc, bar_rc;
	unsigned resets, reads, writes, connects, disconnects, config_writes;
	unsigned mapped, unmapped;
	uint64_t last_iova, last_len;
	void *last_host;
	unsigned last_prot;
	uint64_t clock;
	char logs[PEER_LOGS]; /* every line, newline after each */
};

/*
 * Fills config; change it before peer_open(). peer_open() makes the device, peer_connect() a client of it
 * with handshake.
 */
void peer_init(struct peer *p);
void peer_open(struct peer *p);
void peer_attach(struct peer *p); /* without handshake */
void peer_connect(struct peer *p);
void peer_hang_up(struct peer *p);
void peer_close(struct peer *p);

/* A connected peer with the default configuration, and its end: cmocka set-up and tear-down. */
int peer_setup(void **state);
int peer_teardown(void **state);

void peer_poll(struct peer *p); /* until there is nothing to do */

/* Puts bytes into the socket as they are, with descriptors (which stay the caller's). */
void peer_raw(struct peer *p, const void *bytes, size_t len, const int *fds, size_t fd_count);

/* Sends one message; nothing is polled. */
void peer_send(struct peer *p, uint16_t id, uint16_t cmd, uint32_t flags, const void *body, size_t len,
        const int *fds, size_t fd_count);

/*
 * Takes one message if one is there: bytes of the body, -1: none, -2: the server hung up. fd: the
 * descriptor that came, or -1.
 */
long peer_recv(struct peer *p, struct vfu_wire_header *header, void *body, size_t room, int *fd);

/*
 * Command and reply: 0 or the negative errno of the reply; the reply's body must have `want` bytes and goes
 * to out.
 */
int peer_call(struct peer *p, uint16_t cmd, const void *body, size_t len, const int *fds, size_t fd_count,
        void *out, size_t want);

/* Whether the server hung up (polls first). */
bool peer_gone(struct peer *p);

/* Short forms of commands. */
int peer_version(struct peer *p, uint16_t major, uint16_t minor, const char *json);
int peer_map(struct peer *p, uint64_t iova, uint64_t size, uint32_t flags, int fd, uint64_t offset);
int peer_unmap(struct peer *p, uint64_t iova, uint64_t size, uint32_t flags, uint64_t *removed);
int peer_read(struct peer *p, uint32_t region, uint64_t off, void *buf, uint32_t len);
int peer_write(struct peer *p, uint32_t region, uint64_t off, const void *buf, uint32_t len);
uint32_t peer_cfg(struct peer *p, uint32_t off, unsigned size);
void peer_cfg_set(struct peer *p, uint32_t off, unsigned size, uint32_t value);
int peer_irqs(struct peer *p, uint32_t flags, uint32_t index, uint32_t start, uint32_t count,
        const void *data, size_t len, const int *fds, size_t fd_count);
void peer_master(struct peer *p); /* sets COMMAND.Bus Master */

/* An eventfd, and how often it was signalled since the last look. */
int peer_event(void);
uint64_t peer_events(int fd);

/* A memfd of that size. */
int peer_memfd(uint64_t size);

#endif
