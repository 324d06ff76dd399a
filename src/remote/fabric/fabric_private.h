/* SPDX-License-Identifier: MIT */
/* Shared by the sources of fabric.h. */
#ifndef RIG_FABRIC_PRIVATE_H
#define RIG_FABRIC_PRIVATE_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>

#include "fabric.h"
#include "fabric_bell.h"
#include "sealed.h"

/* The few symbols of libfabric; all else goes through tables of what these make. */
struct rig_fabric_calls {
	int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags,
	        const struct fi_info *hints, struct fi_info **info);
	void (*freeinfo)(struct fi_info *info);
	struct fi_info *(*dupinfo)(const struct fi_info *info);
	int (*fabric)(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
	const char *(*strerror)(int code);
};

/* Loads libfabric on first use. It stays loaded. -ENODEV: not there. */
int rig_fabric_load(const struct rig_fabric_calls **calls);

/* What signals do, to put it back after libfabric's providers installed handlers of their own. */
struct rig_fabric_signals;
struct rig_fabric_signals *rig_fabric_signals_save(void);
void rig_fabric_signals_restore(struct rig_fabric_signals *saved); /* frees it; NULL is allowed */

enum { RIG_FABRIC_NODE = 256 };

struct rig_fabric {
	bool sealed; /* and then of the rest these alone */
	char node[RIG_FABRIC_NODE];
	uint16_t first_port, last_port;
	struct rig_sealed_targets targets;

	const struct rig_fabric_calls *calls;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	bool connected;     /* endpoints connect (tcp, verbs) or need no connection (shm) */
	bool key_chosen;    /* memory keys are ours to choose */
	bool by_address;    /* writes name addresses, else offsets from the registered memory */
	bool local_memory;  /* sources are registered too */
	bool note_receives; /* each note takes a posted receive */
};

/* Puts "WHAT: libfabric's text" into rig_error(). */
int rig_fabric_error(const struct rig_fabric *fabric, int code, const char *what);

enum rig_conn_state {
	RIG_CONN_LISTENING,
	RIG_CONN_DIALLING,
	RIG_CONN_STANDS,
	RIG_CONN_BROKEN,
};

struct rig_conn {
	struct rig_fabric *fabric;
	struct rig_sealed *sealed; /* and then of the rest only depth */
	enum rig_conn_state state;
	struct fid_eq *eq;
	struct fid_pep *listener;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_av *av; /* without connections */
	fi_addr_t peer;
	size_t depth;
	size_t injected;       /* since the last write that is told of */
	int wake_fd;           /* connected */
	int cq_fd, eq_fd;      /* connected */
	struct rig_bell *bell; /* without connections: ours, at which we sleep */
	struct rig_bell *peer_bell;
	bool woken;    /* atomic: a wake that no sleep has seen */
	bool has_kept; /* an event that was read on the way to sleep */
	struct rig_conn_event kept;
	uint8_t token[RIG_FABRIC_TOKEN];      /* that the peer presents to us */
	uint8_t peer_token[RIG_FABRIC_TOKEN]; /* that we present, once known */
	uint8_t greeting[RIG_FABRIC_TOKEN];   /* without connections: what the peer presented */
};

/* ---- For the two ways to connect, called by fabric_conn.c ---- */

int rig_conn_open_queues(struct rig_conn *conn);
int rig_conn_post_receives(struct rig_conn *conn);

int rig_conn_meet_listen(struct rig_conn *conn, struct rig_conn_address *mine);
int rig_conn_meet_dial(
        struct rig_conn *conn, const struct rig_conn_address *peer, struct rig_conn_address *mine);
int rig_conn_meet_finish(
        struct rig_conn *conn, const struct rig_conn_address *peer, const struct rig_deadline *deadline);

int rig_conn_link_listen(struct rig_conn *conn, struct rig_conn_address *mine);
int rig_conn_link_dial(
        struct rig_conn *conn, const struct rig_conn_address *peer, struct rig_conn_address *mine);
int rig_conn_link_finish(struct rig_conn *conn, const struct rig_conn_address *peer,
        const struct rig_deadline *deadline, uint64_t *refused);

/* Refuses who asks and closes the listener; nothing if there is none. */
void rig_conn_stop_listening(struct rig_conn *conn);

/* The connection's socket is closed where the process executes another program, which would keep it open. */
void rig_conn_keep_from_programs(struct rig_conn *conn);

/* Ends the connections to the listener but the peer's; their number. */
unsigned rig_conn_end_strangers(struct rig_conn *conn);

/* Whether what a peer said its address is is one: a socket address of the length of its family. */
bool rig_conn_is_socket_address(const struct rig_conn_address *peer);

/* Whether two tokens are one, in a time that does not depend on where they differ. */
bool rig_conn_same_token(const uint8_t *a, const uint8_t *b);

#endif
