/* SPDX-License-Identifier: MIT */
/* The address that rails are offered at is this machine's: who dials another's would only be told that nobody
   answers. */
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent.h"

enum { LIST = 512, NUMERIC = 64 };

/* Every address of this machine can be bound to, and no other. */
static bool is_ours(const struct addrinfo *a)
{
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool ours = fd >= 0 && !bind(fd, a->ai_addr, a->ai_addrlen);

	if (fd >= 0)
		(void)close(fd);
	return ours;
}

static bool is_address(const struct ifaddrs *i)
{
	return i->ifa_addr && (i->ifa_addr->sa_family == AF_INET || i->ifa_addr->sa_family == AF_INET6);
}

static void append(char *list, const struct sockaddr *at)
{
	size_t used = strlen(list),
	       n = at->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	char text[NUMERIC];

	if (!getnameinfo(at, (socklen_t)n, text, sizeof(text), NULL, 0, NI_NUMERICHOST))
		(void)snprintf(list + used, LIST - used, "%s%s", used ? ", " : "", text);
}

static void list_ours(char list[LIST])
{
	struct ifaddrs *all, *i;

	list[0] = 0;
	if (getifaddrs(&all))
		return;
	for (i = all; i; i = i->ifa_next)
		if (is_address(i))
			append(list, i->ifa_addr);
	freeifaddrs(all);
}

int agent_check_node(const char *node)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *found, *a;
	char ours[LIST];
	int err = getaddrinfo(node, NULL, &hints, &found);

	if (err)
		return rig_error_set(-EINVAL, "--node %s: %s", node, gai_strerror(err));
	for (a = found; a && !is_ours(a); a = a->ai_next)
		;
	freeaddrinfo(found);
	if (a)
		return 0;
	list_ours(ours);
	return rig_error_set(
	        -EADDRNOTAVAIL, "--node %s is no address of this machine, which has %s", node, ours);
}
