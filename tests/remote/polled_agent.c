/* SPDX-License-Identifier: MIT */
/*
 * An agent of test drivers (polled.h), which have what no board of this machine has.
 *   polled-agent KEYFILE [OPTIONS ...]
 * serves P0 with the first options (polled_parse), P1 with the second, and so on, until SIGTERM.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "agent.h"
#include "polled.h"

enum { MOST = 4, END_S = 60 };

static struct agent agent;
static struct polled *drivers[MOST];
static char names[MOST][16];

static int serve(int n, char **options)
{
	struct polled_options o;
	int i;

	for (i = 0; i < n && i < MOST; i++) {
		if (polled_parse(options[i], &o))
			return -1;
		snprintf(names[i], sizeof(names[i]), "P%d", i);
		o.name = names[i];
		drivers[i] = polled_new(&o);
		if (!drivers[i] || agent_serve(&agent, polled_opener(drivers[i]), false))
			return -1;
	}
	return 0;
}

/* Whether each driver was used as the contract has it. */
static int judge(void)
{
	int i, bad = 0;

	for (i = 0; i < MOST && drivers[i]; i++)
		if (polled_breach(drivers[i])) {
			fprintf(stderr, "%s: %s\n", names[i], polled_breach(drivers[i]));
			bad = 1;
		}
	return bad;
}

static struct rig_rmt_key key;

int main(int argc, char **argv)
{
	char where[RIG_RMT_NAME];
	sigset_t set;
	int listener, ending;

	agent_init(&agent);
	agent.verbose = true;
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	ending = signalfd(-1, &set, SFD_CLOEXEC);
	listener = agent_listen("127.0.0.1:0");
	agent.key = &key;
	if (argc < 2 || ending < 0 || listener < 0 || rig_rmt_key_read(argv[1], &key) ||
	        serve(argc - 2, argv + 2) || agent_where(listener, where, sizeof(where))) {
		fprintf(stderr, "polled-agent: %s\n", rig_error());
		return 1;
	}
	printf("listening at %s\n", where);
	(void)fflush(stdout);
	agent_accept(&agent, listener, ending);
	(void)close(listener);
	return agent_end(&agent, END_S) ? judge() : 1;
}
