/* SPDX-License-Identifier: MIT */
/* rig-agent: opens this machine's devices for controllers elsewhere. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "agent.h"
#include "rig.h"
#include "thread.h"

enum {
	EXIT_USE = 2,
	BACKLOG = 16,
	END_S = 30,      /* for sessions to stop their devices, once the agent is told to end */
	OPEN_LOOKS = 10, /* at a device that another job seems to have */
	OPEN_LOOK_MS = 50,
	HELP_COLUMN = 22,
	RETRY_MS = 200, /* after accept failed */
};

#define DEFAULT_LISTEN "127.0.0.1:7447"
#define HOST_DEVICE    "CPU"

static const char summary[] = "serve this machine's devices to controllers on other machines";
static const char description[] =
        "Each DEVICE is a device string as rigctl takes it (sim, sim:OPTION,..., vfio-user:PATH, "
        "0000:65:00.0), alone or after NAME=. It is opened when a controller first asks for it, and closed "
        "with that controller's connection. Without a name, sims are RVX1:0, RVX1:1 and so on, and others "
        "are named as their string. The machine's memory is served as CPU. A device is one controller's at a "
        "time. Programs use the devices through rig_remote.h, and rigctl through --via.";

static const struct {
	const char *name, *text;
} help_rows[] = {
        {"--key FILE", "the job's key: a file of mode 0600, the same on every machine (needed)"},
        {"--listen HOST:PORT", "where to listen; " DEFAULT_LISTEN " by default, port 0 takes a free one"},
        {"--node ADDRESS",
                "the address of rails' data connections; by default the one that the controller reached"},
        {"--make-key FILE", "make FILE with a new key and exit"},
        {"-v, --verbose", "say on stderr when jobs begin, end and fail"},
        {"-h, --help", "print this"},
        {"--version", "print the version"},
};

enum { HELP_ROWS = sizeof(help_rows) / sizeof(help_rows[0]) };

static int complain(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int complain(int status, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "rig-agent: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return status;
}

void agent_log(const struct agent *agent, const char *format, ...)
{
	char text[1024];
	va_list args;

	if (!agent->verbose)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "rig-agent: %s\n", text);
}

static int print_help(void)
{
	unsigned i;

	printf("usage: rig-agent --key FILE [OPTION ...] [NAME=]DEVICE ...\n       rig-agent --make-key "
	       "FILE\n\n%s\n\n%s\n\n",
	        summary, description);
	for (i = 0; i < HELP_ROWS; i++)
		printf("  %-*s %s\n", HELP_COLUMN, help_rows[i].name, help_rows[i].text);
	return 0;
}

/* A line of text for troff. */
static void troff(const char *text)
{
	for (; *text; text++) {
		if (*text == '-')
			fputs("\\-", stdout);
		else
			putchar(*text);
	}
	putchar('\n');
}

static int print_man(void)
{
	unsigned i;

	printf(".\\\" Made by rig-agent --man\n.TH RIG\\-AGENT 1 \"\" \"rig\\-vfio %s\" \"User "
	       "Commands\"\n.SH NAME\n"
	       "rig\\-agent \\- ",
	        RIG_VERSION);
	troff(summary);
	printf(".SH SYNOPSIS\n.B rig\\-agent\n\\-\\-key FILE [OPTION ...] [NAME=]DEVICE ...\n.br\n.B "
	       "rig\\-agent\n"
	       "\\-\\-make\\-key FILE\n.SH DESCRIPTION\n");
	troff(description);
	printf(".SH OPTIONS\n");
	for (i = 0; i < HELP_ROWS; i++) {
		printf(".TP\n");
		troff(help_rows[i].name);
		troff(help_rows[i].text);
	}
	printf(".SH EXIT STATUS\n0 after SIGTERM or SIGINT, once all devices are stopped; 1 if it could not "
	       "listen; 2 "
	       "for bad usage.\n.SH FILES\nThe key file is refused if others than its owner may read or "
	       "write it.\n"
	       ".SH SEE ALSO\nrigctl(1)\n");
	return 0;
}

/* ---- What is served ---- */

static int serve(struct agent *agent, struct rig_opener *opener, const char *name, bool host)
{
	struct served *served = &agent->served[agent->nserved];
	uint32_t i;

	if (agent->nserved == AGENT_DEVICES)
		return complain(EXIT_USE, "more than %d devices", AGENT_DEVICES);
	for (i = 0; i < agent->nserved; i++)
		if (!strcmp(agent->served[i].name, name))
			return complain(EXIT_USE, "two devices are named %s", name);
	served->name = strdup(name);
	served->opener = opener;
	served->host = host;
	if (!served->name)
		return complain(1, "no memory");
	agent->nserved++;
	return 0;
}

static int serve_text(struct agent *agent, const char *text, unsigned *sims)
{
	const char *equals = strchr(text, '='), *colon = strpbrk(text, ":,"), *device = text;
	char name[RIG_RMT_NAME] = "";
	struct rig_vfio_options options = {.version = RIG_EDGE_VERSION};
	struct rig_opener *opener;

	/* An option of the device string has a '=' too, but after its ':' or ','. A name may have a ':'. */
	if (equals && (!colon || equals < colon || !strncmp(text, "RVX", 3))) {
		snprintf(name, sizeof(name), "%.*s", (int)(equals - text), text);
		device = equals + 1;
	} else if (!strcmp(text, "sim") || !strncmp(text, "sim:", 4)) {
		snprintf(name, sizeof(name), "RVX1:%u", (*sims)++);
	}
	options.name = *name ? name : NULL;
	if (rig_vfio_opener(device, &options, &opener))
		return complain(EXIT_USE, "%s: %s", text, rig_error());
	return serve(agent, opener, opener->name, false);
}

static struct served *find_served(struct agent *agent, const char *name)
{
	uint32_t i;

	for (i = 0; i < agent->nserved && strcmp(agent->served[i].name, name) != 0; i++)
		;
	return i < agent->nserved ? &agent->served[i] : NULL;
}

/* Its controller may have vanished this moment, and the agent not have noticed: some looks. With the lock. */
static void await_end(struct agent *agent, const struct served *served, const struct session *session)
{
	unsigned looks = 0;

	while (served->holder && served->holder != session && looks < OPEN_LOOKS) {
		struct timespec end;

		(void)clock_gettime(CLOCK_REALTIME, &end);
		end.tv_nsec += OPEN_LOOK_MS * 1000000L;
		end.tv_sec += end.tv_nsec / 1000000000L;
		end.tv_nsec %= 1000000000L;
		(void)pthread_cond_timedwait(&agent->changed, &agent->lock, &end);
		if (served->holder && !atomic_load(&served->holder->ended))
			looks++;
	}
}

int agent_take(struct session *session, const char *name, struct served **served)
{
	struct agent *agent = session->agent;
	struct served *found = find_served(agent, name);
	int err = 0;

	if (!found)
		return rig_error_set(-ENOENT, "the agent serves no %s", name);
	(void)pthread_mutex_lock(&agent->lock);
	if (!found->host) {
		await_end(agent, found, session);
		if (found->stuck)
			err = rig_error_set(
			        -EBUSY, "%s could not be stopped: restart its machine's agent", name);
		else if (found->holder)
			err = rig_error_set(-EBUSY, "%s is open for another job", name);
		else
			found->holder = session;
	}
	(void)pthread_mutex_unlock(&agent->lock);
	*served = found;
	return err;
}

static void give(struct session *session, const char *name, bool stuck)
{
	struct agent *agent = session->agent;
	struct served *served = find_served(agent, name);

	(void)pthread_mutex_lock(&agent->lock);
	if (served && served->holder == session) {
		served->holder = NULL;
		served->stuck = stuck;
	}
	(void)pthread_cond_broadcast(&agent->changed);
	(void)pthread_mutex_unlock(&agent->lock);
}

void agent_give(struct session *session, const char *name)
{
	give(session, name, false);
}

void agent_keep(struct session *session, const char *name)
{
	give(session, name, true);
}

uint32_t agent_take_word(struct agent *agent)
{
	uint32_t i;

	(void)pthread_mutex_lock(&agent->lock);
	for (i = 1; i < sizeof(agent->words) && agent->words[i]; i++)
		;
	if (i < sizeof(agent->words))
		agent->words[i] = true;
	(void)pthread_mutex_unlock(&agent->lock);
	return i < sizeof(agent->words) ? i : 0;
}

void agent_give_word(struct agent *agent, uint32_t slot)
{
	(void)pthread_mutex_lock(&agent->lock);
	agent->words[slot] = false;
	(void)pthread_mutex_unlock(&agent->lock);
}

/* ---- Listening ---- */

static int listen_at(const char *name)
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

/* For who started it: where it listens, also with port 0. */
static void print_where(int fd)
{
	struct sockaddr_storage at;
	socklen_t n = sizeof(at);
	char host[64], port[16];

	if (getsockname(fd, (struct sockaddr *)&at, &n) ||
	        getnameinfo((struct sockaddr *)&at, n, host, sizeof(host), port, sizeof(port),
	                NI_NUMERICHOST | NI_NUMERICSERV))
		return;
	printf(strchr(host, ':') ? "listening at [%s]:%s\n" : "listening at %s:%s\n", host, port);
	(void)fflush(stdout);
}

/* Without a descriptor left, who dials is told so by the connection's end, with the one kept for that. */
static void refuse_for_descriptors(const struct agent *agent, int listener, int *spare)
{
	const struct timespec nap = {.tv_nsec = RETRY_MS * 1000000L};
	int fd;

	agent_log(agent, "no descriptor is left for a connection");
	(void)close(*spare);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		(void)close(fd);
	*spare = dup(listener);
	if (*spare < 0)
		(void)nanosleep(&nap, NULL);
}

static bool may_serve(struct agent *agent)
{
	bool may;

	(void)pthread_mutex_lock(&agent->lock);
	may = agent->nstrangers < AGENT_STRANGERS;
	if (may)
		agent->nstrangers++;
	(void)pthread_mutex_unlock(&agent->lock);
	return may;
}

static void start_session(struct agent *agent, int fd)
{
	struct served_socket *socket = malloc(sizeof(*socket));
	pthread_t thread;

	if (socket && may_serve(agent)) {
		*socket = (struct served_socket){agent, fd};
		if (!rig_thread_start(&thread, RIG_THREAD_ANY, session_run, socket)) {
			(void)pthread_detach(thread);
			return;
		}
		(void)pthread_mutex_lock(&agent->lock);
		agent->nstrangers--;
		(void)pthread_mutex_unlock(&agent->lock);
	}
	agent_log(agent, "a connection was refused: as many as may be are at their proof");
	free(socket);
	(void)close(fd);
}

static void accept_all(struct agent *agent, int listener, int signals)
{
	struct pollfd polls[] = {{.fd = listener, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
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
			refuse_for_descriptors(agent, listener, &spare);
	}
	(void)close(spare);
}

static void end_sessions(struct agent *agent)
{
	struct timespec end;
	struct session *s;
	int err = 0;

	(void)clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += END_S;
	(void)pthread_mutex_lock(&agent->lock);
	for (s = agent->sessions; s; s = s->next)
		rig_rmt_chan_shut(s->chan);
	while (agent->nsessions && !err)
		err = pthread_cond_timedwait(&agent->changed, &agent->lock, &end);
	(void)pthread_mutex_unlock(&agent->lock);
}

static int run(struct agent *agent, const char *listen_name)
{
	sigset_t set;
	int listener = listen_at(listen_name), signals;

	if (listener < 0)
		return complain(1, "%s", rig_error());
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)pthread_sigmask(SIG_BLOCK, &set, NULL);
	signals = signalfd(-1, &set, SFD_CLOEXEC);
	if (signals < 0 || !rig_words())
		return complain(1, "cannot start: %s", strerror(errno));
	print_where(listener);
	accept_all(agent, listener, signals);
	(void)close(listener);
	end_sessions(agent);
	return 0;
}

/* ---- Options ---- */

struct chosen {
	const char *key, *listen, *make_key;
};

/* The number of arguments taken, 0: no option; negative: an exit status, made positive by the caller. */
static int take_option(struct agent *agent, struct chosen *chosen, int left, char **argv)
{
	const struct {
		const char *name;
		const char **value;
	} valued[] = {{"--key", &chosen->key}, {"--listen", &chosen->listen},
	        {"--make-key", &chosen->make_key}, {"--node", &agent->node}};
	unsigned i;

	if (!strcmp(argv[0], "-v") || !strcmp(argv[0], "--verbose")) {
		agent->verbose = true;
		return 1;
	}
	for (i = 0; i < sizeof(valued) / sizeof(valued[0]); i++)
		if (!strcmp(argv[0], valued[i].name)) {
			if (left < 2)
				return -complain(EXIT_USE, "%s takes a value", argv[0]);
			*valued[i].value = argv[1];
			return 2;
		}
	return argv[0][0] == '-' ? -complain(EXIT_USE, "no option %s: --help tells more", argv[0]) : 0;
}

static int read_arguments(struct agent *agent, struct chosen *chosen, int argc, char **argv)
{
	unsigned sims = 0;
	int i, err = 0;

	for (i = 1; i < argc && !err;) {
		int taken = take_option(agent, chosen, argc - i, argv + i);

		if (taken < 0)
			return -taken;
		if (!taken)
			err = serve_text(agent, argv[i], &sims);
		i += taken ? taken : 1;
	}
	return err;
}

static struct agent agent;

int main(int argc, char **argv)
{
	struct chosen chosen = {.listen = DEFAULT_LISTEN};
	struct rig_opener host;
	int err;

	if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")))
		return print_help();
	if (argc == 2 && !strcmp(argv[1], "--man"))
		return print_man();
	if (argc == 2 && !strcmp(argv[1], "--version"))
		return printf("rig-agent %s\n", RIG_VERSION) < 0;
	(void)pthread_mutex_init(&agent.lock, NULL);
	(void)pthread_cond_init(&agent.changed, NULL);
	rig_host_opener(HOST_DEVICE, &host);
	err = serve(&agent, &host, HOST_DEVICE, true);
	if (!err)
		err = read_arguments(&agent, &chosen, argc, argv);
	if (err)
		return err;
	if (chosen.make_key)
		return rig_rmt_key_make(chosen.make_key) ? complain(1, "%s", rig_error()) : 0;
	if (!chosen.key)
		return complain(EXIT_USE, "it needs --key FILE; --make-key FILE makes one");
	if (rig_rmt_key_read(chosen.key, &agent.key))
		return complain(1, "%s", rig_error());
	return run(&agent, chosen.listen);
}
