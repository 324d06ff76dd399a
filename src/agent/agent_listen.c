/* SPDX-License-Identifier: MIT */
/* Connections come, and all end. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "agent.h"
#include "agent_session.h"
#include "cond.h"
#include "thread.h"

enum {
	BACKLOG = 16,
	RETRY_MS = 200, /* after accept failed */
};

int agent_listen(const char *name)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
	char host[RIG_RMT_HOST], port[RIG_RMT_PORT];
	struct addrinfo *list;
	int fd, one = 1, err;

	if (rig_rmt_split_name(name, host, sizeof(host), port, sizeof(port)))
		return -EINVAL;
	err = getaddrinfo(host, port, &hints, &list);
	if (err)
		return rig_error_set(-EINVAL, "%s: %s", name, gai_strerror(err));
	fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd < 0 || bind(fd, list->ai_addr, list->ai_addrlen) || listen(fd, BACKLOG)) {
		err = -errno;
		if (fd >= 0)
			(void)close(fd);
		fd = rig_error_set(err, "cannot listen at %s: %s", name, strerror(-err));
	}
	freeaddrinfo(list);
	return fd;
}

int agent_where(int listener, char *name, size_t bytes)
{
	struct sockaddr_storage at;
	socklen_t n = sizeof(at);
	char host[64], port[16];

	if (getsockname(listener, (struct sockaddr *)&at, &n))
		return -errno;
	if (getnameinfo((struct sockaddr *)&at, n, host, sizeof(host), port, sizeof(port),
	            NI_NUMERICHOST | NI_NUMERICSERV))
		return -EINVAL;
	(void)snprintf(name, bytes, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
	return 0;
}

/* Without a descriptor left, who dials is told so by the connection's end, with the one kept for that. */
static void refuse_for_descriptors(const struct agent *agent, int listener, struct pollfd *ending, int *spare)
{
	int fd;

	agent_log(agent, "no descriptor is left for a connection");
	(void)close(*spare);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		(void)close(fd);
	*spare = dup(listener);
	/* Other threads may have taken it. */
	if (fd < 0 || *spare < 0)
		(void)poll(ending, 1, RETRY_MS);
}

/* Memory, or what else the kernel has too little of, may come back. */
static void await_better(const struct agent *agent, int err, struct pollfd *ending)
{
	agent_log(agent, "a connection could not be taken: %s", strerror(err));
	(void)poll(ending, 1, RETRY_MS);
}

/* Of accept: that the connection is gone, or an interruption. */
static bool is_passing(int err)
{
	return err == EINTR || err == EAGAIN || err == ECONNABORTED;
}

/* ---- Strangers ---- */

/* A connection whose proof is not done, in its order of coming. */
struct stranger {
	struct stranger *next;
	uint64_t number, address;
	int own; /* a descriptor of ours, to end the connection by: the session closes its own */
};

/* What one who has many addresses has few of: an IPv4 address, the network of an IPv6 one. */
static uint64_t address_of(int fd)
{
	struct sockaddr_storage at = {.ss_family = AF_UNSPEC};
	socklen_t n = sizeof(at);
	uint64_t address = 0;

	(void)getpeername(fd, (struct sockaddr *)&at, &n);
	if (at.ss_family == AF_INET)
		memcpy(&address, &((struct sockaddr_in *)&at)->sin_addr, sizeof(struct in_addr));
	else if (at.ss_family == AF_INET6)
		memcpy(&address, &((struct sockaddr_in6 *)&at)->sin6_addr, sizeof(address));
	return address;
}

/* With the lock. */
static void forget(struct stranger **at)
{
	struct stranger *stranger = *at;

	*at = stranger->next;
	(void)close(stranger->own);
	free(stranger);
}

/* With the lock: ends the oldest where there are too many, of the address or of all. */
static void make_room(struct agent *agent, uint64_t address)
{
	struct stranger **at, **oldest = NULL;
	unsigned all = 0, same = 0;

	for (at = &agent->strangers; *at; at = &(*at)->next) {
		all++;
		if ((*at)->address == address && !same++)
			oldest = at;
	}
	if (same < AGENT_STRANGERS_OF_ONE)
		oldest = all < AGENT_STRANGERS ? NULL : &agent->strangers;
	if (!oldest)
		return;
	(void)shutdown((*oldest)->own, SHUT_RDWR);
	forget(oldest);
}

static int meet(struct agent *agent, int fd, uint64_t *number)
{
	struct stranger *stranger = calloc(1, sizeof(*stranger)), **at;

	if (!stranger)
		return -ENOMEM;
	*stranger = (struct stranger){.own = fcntl(fd, F_DUPFD_CLOEXEC, 0), .address = address_of(fd)};
	if (stranger->own < 0) {
		free(stranger);
		return -EMFILE;
	}
	(void)pthread_mutex_lock(&agent->lock);
	make_room(agent, stranger->address);
	for (at = &agent->strangers; *at; at = &(*at)->next)
		;
	*at = stranger;
	*number = stranger->number = ++agent->last_stranger;
	agent->nthreads++;
	(void)pthread_mutex_unlock(&agent->lock);
	return 0;
}

void agent_know(struct agent *agent, uint64_t number)
{
	struct stranger **at;

	(void)pthread_mutex_lock(&agent->lock);
	for (at = &agent->strangers; *at && (*at)->number != number; at = &(*at)->next)
		;
	if (*at)
		forget(at);
	agent->nthreads--;
	(void)pthread_cond_broadcast(&agent->changed);
	(void)pthread_mutex_unlock(&agent->lock);
}

static void start_session(struct agent *agent, int fd)
{
	struct served_socket *socket = malloc(sizeof(*socket));
	pthread_t thread;
	uint64_t number = 0;
	int err = socket ? meet(agent, fd, &number) : -ENOMEM;

	if (!err) {
		*socket = (struct served_socket){agent, fd, number};
		err = rig_thread_start(&thread, RIG_THREAD_ANY, session_run, socket);
		if (!err) {
			(void)pthread_detach(thread);
			return;
		}
		agent_know(agent, number);
	}
	agent_log(agent, "a connection was refused: %s", strerror(-err));
	free(socket);
	(void)close(fd);
}

void agent_accept(struct agent *agent, int listener, int ending)
{
	struct pollfd polls[] = {{.fd = listener, .events = POLLIN}, {.fd = ending, .events = POLLIN}};
	int spare = dup(listener), fd;

	while (poll(polls, 2, -1) >= 0 || errno == EINTR) {
		if (polls[1].revents)
			break;
		if (!(polls[0].revents & POLLIN))
			continue;
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0)
			start_session(agent, fd);
		else if (errno == EMFILE || errno == ENFILE)
			refuse_for_descriptors(agent, listener, &polls[1], &spare);
		else if (!is_passing(errno))
			await_better(agent, errno, &polls[1]);
	}
	(void)close(spare);
}

/* With the lock. */
static bool all_stopped(const struct agent *agent)
{
	uint32_t i;

	for (i = 0; i < agent->nserved && !agent->served[i].stuck; i++)
		;
	return !agent->nsessions && i == agent->nserved;
}

bool agent_end(struct agent *agent, unsigned seconds)
{
	struct timespec end = rig_cond_end_ms(seconds * UINT64_C(1000));
	const struct stranger *stranger;
	struct session *s;
	bool stopped;
	int err = 0;

	(void)pthread_mutex_lock(&agent->lock);
	agent->ending = true;
	for (stranger = agent->strangers; stranger; stranger = stranger->next)
		(void)shutdown(stranger->own, SHUT_RDWR);
	for (s = agent->sessions; s; s = s->next)
		session_fail_now(s, "the agent ends");
	while ((agent->nsessions || agent->nthreads) && !err)
		err = pthread_cond_timedwait(&agent->changed, &agent->lock, &end);
	stopped = all_stopped(agent);
	(void)pthread_mutex_unlock(&agent->lock);
	return stopped;
}
