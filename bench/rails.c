/* SPDX-License-Identifier: MIT */
/*
 * A rail between two processes of this machine, as a ping-pong: bench-rails PROVIDER BYTES COUNT HOW
 * HOW is who answers: "rail", the thread of the link as soon as it has stored arrived: what the rail takes;
 * or "host", a thread of each process that looks at arrived, as work on the host does.
 * Prints the time of one way and the rate. bench/rails.sh runs it beside the floor.
 */
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rail.h"

#define DEADLINE_NS (30 * RIG_NS_PER_S)

static const struct rig_remote_end *end;
static uint64_t answered, last;
static bool begins;
static sem_t done;

static void die(const char *what)
{
	fprintf(stderr, "bench-rails: %s: %s\n", what, rig_error());
	exit(1);
}

/* The child answers c with c; the parent answers c with c + 1. */
static void answer(void)
{
	uint64_t arrived = rig_remote_load(end, RIG_REMOTE_ARRIVED);

	while (answered < arrived) {
		answered++;
		if (begins && answered == last)
			(void)sem_post(&done);
		else
			end->ready(end->ready_arg, begins ? answered + 1 : answered);
	}
}

static void moved(void *arg)
{
	(void)arg;
	if (__atomic_load_n(&end, __ATOMIC_ACQUIRE))
		answer();
}

static void put(int fd, const struct rig_rail_blob *blob)
{
	if (send(fd, blob, sizeof(*blob), MSG_NOSIGNAL) != sizeof(*blob))
		die("send");
}

static void get(int fd, struct rig_rail_blob *blob)
{
	if (recv(fd, blob, sizeof(*blob), MSG_WAITALL) != sizeof(*blob))
		die("receive");
}

static struct rig_rail_link *make_link(struct rig_rails *rails, int fd)
{
	struct rig_deadline deadline = rig_deadline_in(NULL, DEADLINE_NS);
	struct rig_rail_blob mine, theirs;
	struct rig_rail_link *link;

	if (begins) {
		if (rig_rail_link_offer(rails, "child", &mine, &link))
			die("offer");
		put(fd, &mine);
		get(fd, &theirs);
	} else {
		get(fd, &theirs);
		if (rig_rail_link_accept(rails, "parent", &theirs, &mine, &link))
			die("accept");
		put(fd, &mine);
	}
	if (rig_rail_link_finish(link, begins ? &theirs : NULL, &deadline))
		die("link");
	return link;
}

static void make_rail(struct rig_rail_link *link, int fd, size_t bytes)
{
	struct rig_remote_transfer t = {0, 0, (int64_t)bytes};
	const struct rig_remote_end *made;
	struct rig_rail_blob mine, theirs;

	if (rig_rail_make(link, 1, &t, 1, &t, 1, &mine, &made))
		die("rail");
	/* Pages, before anything is measured. */
	memset(made->outbound.at, begins, made->outbound.bytes);
	memset(made->inbound.at, begins, made->inbound.bytes);
	__atomic_store_n(&end, made, __ATOMIC_RELEASE);
	put(fd, &mine);
	get(fd, &theirs);
	if (rig_rail_join(made, &theirs))
		die("join");
}

static void look(void)
{
	uint64_t seen = answered;

	while (rig_remote_load(end, RIG_REMOTE_ARRIVED) == seen)
		(void)sched_yield();
	answer();
}

static void run(size_t bytes, uint64_t count, bool host)
{
	uint64_t warm = count / 10 + 1, start, ns;

	for (int part = 0; part < 2; part++) {
		last += part ? count : warm;
		start = rig_now_ns();
		end->ready(end->ready_arg, answered + 1);
		while (host && answered < last)
			look();
		(void)sem_wait(&done);
	}
	ns = rig_now_ns() - start;
	printf("%.2f %.1f\n", (double)ns / 2e3 / (double)count,
	        2e3 * (double)bytes * (double)count / (double)ns);
}

int main(int argc, char **argv)
{
	struct rig_rails_options options = {.spin_ns = UINT64_MAX};
	struct rig_rails_stats stats;
	struct rig_rails *rails;
	uint64_t count;
	size_t bytes;
	bool host;
	int fds[2];
	pid_t pid;

	if (argc != 5) {
		fprintf(stderr, "usage: bench-rails PROVIDER BYTES COUNT rail|host\n");
		return 2;
	}
	options.provider = argv[1];
	bytes = strtoull(argv[2], NULL, 0);
	count = strtoull(argv[3], NULL, 0);
	host = !strcmp(argv[4], "host");
	options.moved = host ? NULL : moved;
	(void)sem_init(&done, 0, 0);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		die("socketpair");
	pid = fork();
	begins = pid != 0;
	if (rig_rails_open(&options, &rails))
		die("open");
	make_rail(make_link(rails, fds[!begins]), fds[!begins], bytes);
	while (!begins && host)
		look();
	if (!begins)
		(void)pause();
	run(bytes, count, host);
	rig_rails_stats(rails, &stats);
	fprintf(stderr, "%llu writes, %llu wakes, %llu sleeps\n", (unsigned long long)stats.writes,
	        (unsigned long long)stats.wakes, (unsigned long long)stats.sleeps);
	rig_rails_stop(rails);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	rig_remote_end_put(end);
	rig_rails_close(rails);
	return 0;
}
