/* SPDX-License-Identifier: MIT */
/* What an agent serves, and who has it. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent.h"
#include "agent_session.h"
#include "clock.h"
#include "cond.h"

enum {
	OPEN_MS = 500, /* for a device that another job seems to have */
	OPEN_LOOK_MS = 50,
	ENDING_MS =
	        30000, /* for a job that ends: a stop takes 10 s at the most, a controller waits for 60 s */
};

void agent_init(struct agent *agent)
{
	(void)pthread_mutex_init(&agent->lock, NULL);
	rig_cond_init(&agent->changed);
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

static struct served *find_served(struct agent *agent, const char *name)
{
	uint32_t i;

	for (i = 0; i < agent->nserved && strcmp(agent->served[i].name, name) != 0; i++)
		;
	return i < agent->nserved ? &agent->served[i] : NULL;
}

int agent_serve(struct agent *agent, const struct rig_opener *opener, bool host)
{
	struct served *served = &agent->served[agent->nserved];

	if (agent->nserved == AGENT_DEVICES)
		return rig_error_set(-ENOSPC, "more than %d devices", AGENT_DEVICES);
	if (find_served(agent, opener->name))
		return rig_error_set(-EEXIST, "two devices are named %s", opener->name);
	served->name = strdup(opener->name);
	served->opener = opener;
	served->host = host;
	if (!served->name)
		return rig_error_set(-ENOMEM, "no memory");
	agent->nserved++;
	return 0;
}

/* Its controller may have vanished this moment, and the agent not have noticed; or its memory be on its way
   back from other devices: for a while. Who waits as its own session ends would hold up what that is to give
   back, which may be this. With the lock. */
static void await_end(struct agent *agent, const struct session *session, const struct served *served)
{
	struct rig_deadline deadline = rig_deadline_in(NULL, ENDING_MS * RIG_NS_PER_MS),
	                    patience = rig_deadline_in(NULL, OPEN_MS * RIG_NS_PER_MS);

	while (served->holder && !atomic_load(&session->ended) && !rig_deadline_passed(&deadline)) {
		if (atomic_load(&served->holder->ended))
			patience = rig_deadline_in(NULL, OPEN_MS * RIG_NS_PER_MS);
		else if (rig_deadline_passed(&patience))
			return;
		(void)rig_cond_wait_ms(&agent->changed, &agent->lock, OPEN_LOOK_MS);
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
		await_end(agent, session, found);
		if (atomic_load(&session->ended))
			err = rig_error_set(-ECANCELED, "the job has ended");
		else if (found->stuck)
			err = rig_error_set(
			        -EBUSY, "%s could not be stopped: restart its machine's agent", name);
		else if (found->holder == session)
			err = rig_error_set(
			        -EBUSY, "%s is open, or other devices still have its memory", name);
		else if (found->holder)
			err = rig_error_set(-EBUSY, "%s is open for another job", name);
		else
			found->holder = session;
	}
	(void)pthread_mutex_unlock(&agent->lock);
	*served = found;
	return err;
}

/* Of memory that this agent has given to nobody, nobody knows who had it before. */
bool agent_is_anothers(const struct session *session, const struct served *served)
{
	return !session->agent->keep_memory && !served->host && !served->fresh &&
	       (!served->known || memcmp(served->job, session->join.token, sizeof(served->job)) != 0);
}

void agent_mark(struct session *session, struct served *served)
{
	/* The host's memory is not cleared here, and several jobs have it at a time. */
	if (served->host)
		return;
	served->known = true;
	memcpy(served->job, session->join.token, sizeof(served->job));
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
