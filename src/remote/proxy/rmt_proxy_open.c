/* SPDX-License-Identifier: MIT */
/* Openers of proxies, as programs ask for them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rmt_proxy.h"

static struct rig_rmt_opener *make_opener(struct rig_rmt_machine *m, const char *name, size_t n)
{
	struct rig_rmt_opener *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	memcpy(o->name, name, n);
	o->machine = m;
	o->opener = (struct rig_opener){.version = RIG_EDGE_VERSION,
	        .name = o->name,
	        .module = &rig_rmt_module,
	        .make = rig_rmt_make,
	        .arg = o};
	o->next = m->job->openers;
	m->job->openers = o;
	return o;
}

/* With the lock: the one made before, or a new one. */
static struct rig_rmt_opener *get_opener(struct rig_rmt_machine *m, const char *name, size_t n)
{
	struct rig_rmt_opener *o;

	for (o = m->job->openers; o; o = o->next)
		if (o->machine == m && strlen(o->name) == n && !memcmp(o->name, name, n))
			return o;
	return make_opener(m, name, n);
}

int rig_remote_opener(
        struct rig_remote_job *job, const char *name, const struct rig_opener **opener, const char **machine)
{
	const char *at = name ? strchr(name, '@') : NULL;
	size_t n = at ? (size_t)(at - name) : 0;
	struct rig_rmt_opener *o;
	uint32_t i;

	if (job->forked)
		return rig_rmt_over_error(job);
	if (!n || n >= RIG_RMT_NAME)
		return rig_error_set(-EINVAL, "\"%s\" is no DEVICE@HOST:PORT", name ? name : "");
	for (i = 0; i < job->nmachines && strcmp(job->machines[i].name, at + 1) != 0; i++)
		;
	if (i == job->nmachines)
		return rig_error_set(-EINVAL, "%s: the job has no machine %s", name, at + 1);
	(void)pthread_mutex_lock(&job->lock);
	o = get_opener(&job->machines[i], name, n);
	(void)pthread_mutex_unlock(&job->lock);
	if (!o)
		return rig_error_set(-ENOMEM, "no host memory for an opener");
	*opener = &o->opener;
	if (machine)
		*machine = job->machines[i].name;
	return 0;
}
