/* SPDX-License-Identifier: MIT */
/*
 * Inside the vfio-user server: the state of one function and what its parts offer each other. Not for users
 * of the library. Errors are negative errno; a part that finds the stream or the client beyond repair calls
 * vfu_drop().
 */
#ifndef VFU_PRIV_H
#define VFU_PRIV_H

#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <sys/un.h>

#include "vfu.h"
#include "vfu_parse.h"

#define VFU_WHY 160 /* bytes of a reason for the log */

/* A message of the client, whole. fds are the server's to close until somebody takes one (sets it to -1). */
struct vfu_msg {
	struct vfu_msg *next;
	struct vfu_wire_header header;
	size_t len; /* of body */
	size_t fd_count;
	bool fds_lost; /* more descriptors came than VFU_MAX_MSG_FDS */
	int fds[VFU_MAX_MSG_FDS];
	uint8_t body[];
};

/* Bytes that the socket did not take yet. fd, or -1, goes with the first of them and is not owned. */
struct vfu_out {
	struct vfu_out *next;
	size_t len, done;
	int fd;
	uint8_t bytes[];
};

struct vfu_conn {
	int fd; /* -1: no client */
	bool negotiated;
	bool told;     /* connected() was called */
	bool accepted; /* came through listen: others wait, so deadlines apply */
	bool dead;     /* to be taken down at the next poll */
	uint64_t deadline;
	uint16_t next_id;
	struct vfu_version version;
	bool silenced; /* a refused DMA was logged */
	bool waiting;  /* a DMA message is out and its answer is not here */

	/* The message being received: header first, then its body. */
	uint8_t head[sizeof(struct vfu_wire_header)];
	size_t got;
	struct vfu_msg *rx;
	int fds[VFU_MAX_MSG_FDS];
	size_t fd_count;
	bool fds_lost;

	/* Requests that came while a DMA message waited for its answer. */
	struct vfu_msg *first, **last;
	size_t queued, queued_bytes;

	struct vfu_out *out;
	size_t out_bytes; /* of all of out, sent or not */
};

struct vfu_map {
	uint64_t iova, size;
	uint8_t *host; /* NULL: by messages */
	unsigned prot;
	void *base; /* what munmap gets: mmap wants whole pages of the file's kind */
	size_t base_size;
};

struct vfu_maps {
	struct vfu_map *list; /* by ascending iova, never overlapping */
	size_t count, room;
};

struct vfu_vector {
	int efd; /* -1: none */
	bool masked;
	bool pending;
};

struct vfu_irqs {
	struct vfu_vector *msix;
	uint8_t *table; /* 16 bytes a vector, as the client sees it */
	bool msix_on;   /* the client assigned eventfds and did not disable */
	struct vfu_vector msi[32];
	bool msi_on;
	struct vfu_vector intx;
	bool asserted;
	int intx_watch[2]; /* client to server: mask, unmask; -1: none */
	int err, req;
};

struct vfu_listen {
	int fd; /* -1: not listening */
	struct sockaddr_un address;
	uint64_t dev, ino; /* of the socket's path, so that only our own is removed */
};

struct vfu_device {
	struct vfu_config config;
	bool in_poll;
	bool sealed; /* a client was there: the first configuration space is fixed */
	uint8_t cfg[VFU_CONFIG_SIZE];
	uint8_t cfg_first[VFU_CONFIG_SIZE];
	uint8_t cfg_mask[VFU_CONFIG_SIZE]; /* bits that the client writes */
	uint32_t cap_last;                 /* where the next capability is linked in */
	uint32_t cap_end;                  /* first free byte */
	uint32_t cap_pm, cap_express, cap_msi, cap_msix;
	struct vfu_conn conn;
	struct vfu_conn twin; /* of our commands and their answers, where the client takes a second socket */
	int twin_theirs;      /* its other end until it has gone out with the version; -1: none */
	struct vfu_maps maps;
	struct vfu_irqs irqs;
	struct vfu_listen listen;
};

/* A reply being built. data is freed by the server. fd or -1, not owned. */
struct vfu_reply {
	void *data;
	size_t len;
	int fd;
};

/* vfu_server.c */
__attribute__((format(printf, 3, 4))) void vfu_log(
        struct vfu_device *dev, enum vfu_log_level level, const char *format, ...);
__attribute__((format(printf, 2, 3))) void vfu_drop(struct vfu_device *dev, const char *format, ...);
uint64_t vfu_now(struct vfu_device *dev);
int vfu_start(struct vfu_device *dev, int fd, bool accepted);
int vfu_do_reset(struct vfu_device *dev);
void vfu_serve_meanwhile(struct vfu_device *dev); /* of the requests kept, those that need not wait */
void *vfu_reply_take(struct vfu_reply *reply, size_t len); /* len zeroed bytes as the body; NULL: no memory */

/* vfu_listen.c: accepts or refuses who waits. 1 if anybody came. */
int vfu_listen_poll(struct vfu_device *dev);
void vfu_listen_fini(struct vfu_device *dev);

/*
 * vfu_socket.c. recv: 1 a whole message, 0 nothing more now, negative: the stream ended or is lost (reason
 * in why).
 */
int vfu_socket_recv(struct vfu_conn *conn, struct vfu_msg **out, char why[VFU_WHY]);
int vfu_socket_send(struct vfu_conn *conn, const struct vfu_wire_header *header, const void *fixed,
        size_t fixed_len, const void *data, size_t len, int fd);
int vfu_socket_flush(struct vfu_conn *conn);
int vfu_socket_push(struct vfu_conn *conn, struct vfu_msg *msg);
struct vfu_msg *vfu_socket_pop(struct vfu_conn *conn);
void vfu_msg_free(struct vfu_msg *msg);
void vfu_conn_init(struct vfu_conn *conn);
void vfu_conn_fini(struct vfu_conn *conn);

/* vfu_cfg.c */
int vfu_cfg_init(struct vfu_device *dev);
void vfu_cfg_reset(struct vfu_device *dev);
int vfu_cfg_client_read(struct vfu_device *dev, uint64_t off, uint8_t *buf, size_t len);
bool vfu_cfg_is_reset(const struct vfu_device *dev, uint64_t off, const uint8_t *buf, size_t len);
int vfu_cfg_client_write(struct vfu_device *dev, uint64_t off, const uint8_t *buf, size_t len);

/* vfu_region.c */
int vfu_region_check(struct vfu_device *dev);
int vfu_region_info(struct vfu_device *dev, struct vfu_msg *msg, struct vfu_reply *reply);
int vfu_region_read(struct vfu_device *dev, struct vfu_msg *msg, struct vfu_reply *reply);
int vfu_region_write(struct vfu_device *dev, struct vfu_msg *msg, struct vfu_reply *reply);
int vfu_region_write_multi(struct vfu_device *dev, struct vfu_msg *msg, struct vfu_reply *reply);

/* vfu_irq.c */
int vfu_irqs_init(struct vfu_device *dev);
void vfu_irqs_fini(struct vfu_device *dev);
void vfu_irqs_release(struct vfu_device *dev); /* the client's assignments end */
void vfu_irqs_reset(struct vfu_device *dev);
void vfu_irqs_update(struct vfu_device *dev); /* enables or masks changed: deliver what may go */
int vfu_irqs_watch(struct vfu_device *dev);   /* serves the client-to-server eventfds: 1 if one fired */
int vfu_irqs_info(struct vfu_device *dev, struct vfu_msg *msg, struct vfu_reply *reply);
int vfu_irqs_set(struct vfu_device *dev, struct vfu_msg *msg, struct vfu_reply *reply);
void vfu_msix_table_read(struct vfu_device *dev, uint64_t off, uint8_t *buf, size_t len);
void vfu_msix_table_write(struct vfu_device *dev, uint64_t off, const uint8_t *buf, size_t len);
void vfu_msix_pba_read(struct vfu_device *dev, uint64_t off, uint8_t *buf, size_t len);

/* vfu_dma.c */
int vfu_maps_add(struct vfu_device *dev, struct vfu_msg *msg, struct vfu_reply *reply);
int vfu_maps_remove(struct vfu_device *dev, struct vfu_msg *msg, struct vfu_reply *reply);
void vfu_maps_release(struct vfu_device *dev);

/*
 * Between a private buffer and shared memory. Naturally aligned 1, 2, 4 and 8 bytes are one access:
 * acquire, release.
 */
void vfu_mem_load(void *buf, const void *mem, size_t len);
void vfu_mem_store(void *mem, const void *buf, size_t len);

#endif
