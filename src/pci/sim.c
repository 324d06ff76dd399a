/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "find.h"
#include "rig_edge.h"
#include "take.h"

#define MODEL_NAME "rvx1-model"
#define MODEL_FD   3 /* its end of the socketpair */
#define END_MS     5000
#define MAX_ARGS   20
#define ARG_BYTES  32

extern char **environ;

struct rig_sim {
	pid_t pid;
	/* Names the process also if the program reaps it and its number is used again; -1: none. */
	int pidfd;
};

struct arguments {
	char *argv[MAX_ARGS];
	int argc;
	char memory[ARG_BYTES], aperture[ARG_BYTES], fd[ARG_BYTES];
	char queues[ARG_BYTES], hz[ARG_BYTES], drift[ARG_BYTES];
};

static void add(struct arguments *a, const char *option, char *value)
{
	a->argv[a->argc++] = (char *)(uintptr_t)option;
	a->argv[a->argc++] = value;
}

static void add_clock(struct arguments *a, struct rig_spec *spec)
{
	if (spec->clock_hz) {
		snprintf(a->hz, sizeof(a->hz), "%" PRIu64, spec->clock_hz);
		add(a, "--clock-hz", a->hz);
	}
	if (spec->has_clock_drift) {
		snprintf(a->drift, sizeof(a->drift), "%d", spec->clock_drift);
		add(a, "--clock-drift-ppm", a->drift);
	}
	if (spec->clock_step[0])
		add(a, "--clock-step", spec->clock_step);
}

static void build(struct arguments *a, char *path, struct rig_spec *spec)
{
	memset(a, 0, sizeof(*a));
	a->argv[a->argc++] = path;
	snprintf(a->fd, sizeof(a->fd), "%d", MODEL_FD);
	add(a, "--fd", a->fd);
	if (spec->memory) {
		snprintf(a->memory, sizeof(a->memory), "%" PRIu64 "K", spec->memory >> 10);
		add(a, "--memory", a->memory);
	}
	if (spec->aperture) {
		snprintf(a->aperture, sizeof(a->aperture), "%" PRIu64 "K", spec->aperture >> 10);
		add(a, "--aperture", a->aperture);
	}
	if (spec->queues) {
		snprintf(a->queues, sizeof(a->queues), "%" PRIu32, spec->queues);
		add(a, "--queues", a->queues);
	}
	add_clock(a, spec);
	if (spec->fault[0])
		add(a, "--fault", spec->fault);
}

/* Its own process group, so that Ctrl-C at the terminal ends it by ending us. dup2 to itself would keep
   close-on-exec, so our end of the pair must not be MODEL_FD: the caller sees to that. */
static int spawn(struct arguments *a, int theirs, pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	int err;

	sigemptyset(&none);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, theirs, MODEL_FD);
	/* What the program left open for its own children is not the model's to hold. */
	posix_spawn_file_actions_addclosefrom_np(&actions, MODEL_FD + 1);
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
	err = posix_spawn(pid, a->argv[0], &actions, &attributes, a->argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return -err;
}

/* A socketpair whose ends lie above the descriptor the model is given. */
static int high_pair(int pair[2])
{
	int err, low[2];

	pair[0] = pair[1] = -1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, low))
		return -errno;
	pair[0] = fcntl(low[0], F_DUPFD_CLOEXEC, MODEL_FD + 1);
	if (pair[0] >= 0)
		pair[1] = fcntl(low[1], F_DUPFD_CLOEXEC, MODEL_FD + 1);
	err = errno;
	close(low[0]);
	close(low[1]);
	if (pair[1] >= 0)
		return 0;
	if (pair[0] >= 0)
		close(pair[0]);
	return -err;
}

int rig_sim_start(const struct rig_spec *spec, struct rig_sim **out, int *fd)
{
	struct rig_spec own = *spec;
	struct rig_sim *sim;
	char path[PATH_MAX];
	struct arguments a;
	int pair[2], err = rig_find_file(NULL, RIG_FIND_MODEL, MODEL_NAME, path, sizeof(path));

	if (err)
		return rig_error_set(err, "the model %s", path);
	sim = calloc(1, sizeof(*sim));
	if (!sim)
		return rig_error_set(-ENOMEM, "out of host memory");
	err = high_pair(pair);
	if (err) {
		free(sim);
		return rig_error_set(err, "a socketpair for the model (%s)", strerrordesc_np(-err));
	}
	build(&a, path, &own);
	err = spawn(&a, pair[1], &sim->pid);
	close(pair[1]);
	if (err) {
		close(pair[0]);
		free(sim);
		return rig_error_set(err, "starting %s: %s", path, strerrordesc_np(-err));
	}
	sim->pidfd = (int)syscall(SYS_pidfd_open, sim->pid, 0);
	*out = sim;
	*fd = pair[0];
	return 0;
}

/* Whether the process ended within `ms`. It is not reaped. */
static bool ended(const struct rig_sim *sim, int ms)
{
	struct rig_deadline until = rig_deadline_in(NULL, (uint64_t)ms * RIG_NS_PER_MS);
	struct pollfd p = {.fd = sim->pidfd, .events = POLLIN};
	int n = 0;

	while (sim->pidfd >= 0 && (n = poll(&p, 1, ms)) < 0 && errno == EINTR)
		ms = (int)(rig_deadline_left(&until) / RIG_NS_PER_MS);
	return n == 1;
}

static void send_kill(const struct rig_sim *sim)
{
	if (sim->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, sim->pidfd, SIGKILL, NULL, 0);
	else
		kill(sim->pid, SIGKILL);
}

void rig_sim_kill(void *arg)
{
	struct rig_sim *sim = arg;

	send_kill(sim);
	ended(sim, END_MS);
}

void rig_sim_end(void *arg)
{
	struct rig_sim *sim = arg;
	siginfo_t info;

	if (!ended(sim, END_MS))
		send_kill(sim);
	while (waitid(sim->pidfd >= 0 ? P_PIDFD : P_PID, (id_t)(sim->pidfd >= 0 ? sim->pidfd : sim->pid),
	               &info, WEXITED) &&
	        errno == EINTR)
		;
	if (sim->pidfd >= 0)
		close(sim->pidfd);
	free(sim);
}
