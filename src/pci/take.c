/* SPDX-License-Identifier: MIT */
#include "take.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"
#include "log.h"
#include "pci.h"
#include "vfio_user.h"

enum { LINE = 1024 };

static const enum rig_doctor_way ways[] = {[RIG_PCI_ANY] = RIG_DOCTOR_ANY,
        [RIG_PCI_IOMMUFD] = RIG_DOCTOR_IOMMUFD,
        [RIG_PCI_TYPE1] = RIG_DOCTOR_TYPE1,
        [RIG_PCI_NOIOMMU] = RIG_DOCTOR_NOIOMMU};

/* -- What a failed step may come from -- */

/* By step and errno, 0 for any: the findings that are looked for, and what to say where there is none. The
 * first row that fits. */
static const struct cause {
	enum rig_pci_step step;
	int err;
	const char *ids, *otherwise;
	struct rig_doctor_seen seen;
} causes[] = {
        {RIG_PCI_STEP_ABSENT, 0, "absent", NULL, {0}},
        {RIG_PCI_STEP_DRIVER, 0, "in-use vmd denylist vfio-pci driver", NULL, {0}},
        {RIG_PCI_STEP_HELD, 0, "holder", "end that process, or wait for it", {0}},
        {RIG_PCI_STEP_GROUP, 0, "iommu-absent iommu-off no-group noiommu vmd",
                "switch the IOMMU on in firmware setup", {0}},
        {RIG_PCI_STEP_NODE, ENOENT, "node-missing vfio-pci back-end driver no-group vmd", NULL, {0}},
        {RIG_PCI_STEP_NODE, ENXIO, "node-stale vfio-pci back-end driver", NULL, {0}},
        {RIG_PCI_STEP_NODE, ENODEV, "node-stale vfio-pci back-end driver", NULL, {0}},
        {RIG_PCI_STEP_NODE, EACCES, "permission", NULL, {0}},
        {RIG_PCI_STEP_NODE, EPERM, "device-cgroup permission", NULL, {.denied = true}},
        {RIG_PCI_STEP_NODE, EBUSY, "holder",
                "who has it is not to be seen: descriptors of this process's own, made without the library, "
                "or a process of another user (rigctl doctor as root names that)",
                {0}},
        {RIG_PCI_STEP_BACK_END, 0, "back-end no-node", "modprobe vfio_iommu_type1 or iommufd", {0}},
        {RIG_PCI_STEP_VIABLE, 0, "mate-in-use group-mate vmd",
                "one of its functions is with a kernel driver: rigctl bind --group lists it with --dry-run",
                {0}},
        {RIG_PCI_STEP_ATTACH, EPERM, "rmrr no-remapping lockdown", "rigctl doctor as root may see why", {0}},
        {RIG_PCI_STEP_ATTACH, EBUSY, "rmrr holder",
                "another process has the group, or it is in another container", {0}},
        {RIG_PCI_STEP_ATTACH, 0, "rmrr", NULL, {0}},
        {RIG_PCI_STEP_DEVICE, EBUSY, "holder", "another process has it open", {0}},
        {RIG_PCI_STEP_DEVICE, EACCES, "token",
                "the token is not the one that the physical function's owner set", {0}},
        {RIG_PCI_STEP_DEVICE, EPERM, "lockdown", NULL, {0}},
        {RIG_PCI_STEP_DEVICE, 0, "power link", NULL, {0}},
        {RIG_PCI_STEP_ASLEEP, 0, "power", NULL, {.open = true}},
        {RIG_PCI_STEP_ONES, 0, "power link framebuffer", NULL, {.open = true, .ones = true}},
};

static const struct cause *cause_of(const struct rig_pci_attempt *t)
{
	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++)
		if (causes[i].step == t->step && (!causes[i].err || causes[i].err == -t->err))
			return &causes[i];
	return NULL;
}

/* A device node is a file of its own in a container, and on a host udev's. */
static const char *node_remedy(int err)
{
	switch (err) {
	case -ENOENT:
		return "there is no such node: on a host load the modules (modprobe vfio-pci; modprobe "
		       "vfio_iommu_type1 or iommufd) and bind the function, in a container hand it in "
		       "(--device)";
	case -ENXIO:
	case -ENODEV:
		return "the node is stale, its device number is no driver's any more: on a host remove it "
		       "and run "
		       "udevadm trigger, a container start again";
	case -EACCES:
		return "its owner or mode forbid it: rigctl bind --user NAME gives it to a user, on the host "
		       "also "
		       "for a container";
	case -EPERM:
		return "not its mode but a device control group forbids it: hand it in to the container "
		       "(--device), in a service DeviceAllow= it";
	default:
		return NULL;
	}
}

static const char *remedy_of(
        const struct rig_spec *spec, const struct rig_pci_attempt *t, const struct cause *cause)
{
	bool device = t->step == RIG_PCI_STEP_DEVICE, token = *spec->token;

	if (t->step == RIG_PCI_STEP_NODE && !cause->otherwise)
		return node_remedy(t->err);
	if (device && t->err == -EACCES && !token)
		return NULL;
	if (device && t->err == -EINVAL && token)
		return "leave vf-token out: it is neither a physical function with virtual ones nor a "
		       "virtual one "
		       "of a physical one that VFIO gave out";
	if (device && t->err == -EPERM && t->way == RIG_PCI_NOIOMMU)
		return "no-IOMMU needs CAP_SYS_RAWIO";
	return cause->otherwise;
}

/* What the doctor finds, in one line; "" for nothing. */
static void find(const char *root, const char *bdf, struct rig_doctor_ask ask, char *line)
{
	struct rig_diagnosis *found = calloc(1, sizeof(*found));

	*line = 0;
	ask.root = root;
	ask.bdf = bdf;
	if (found && !rig_doctor_examine(&ask, found))
		rig_doctor_line(found, line, LINE);
	free(found);
}

/* "" for nothing. */
static void find_why(
        const char *root, const struct rig_spec *spec, const struct rig_pci_attempt *t, char *line)
{
	const struct cause *cause = cause_of(t);
	const char *remedy;

	*line = 0;
	if (!cause)
		return;
	find(root, spec->path,
	        (struct rig_doctor_ask){
	                .only = cause->ids, .way = ways[t->way], .token = *spec->token, .seen = cause->seen},
	        line);
	remedy = *line ? NULL : remedy_of(spec, t, cause);
	if (remedy)
		snprintf(line, LINE, "%s", remedy);
}

/* -- An open that failed -- */

static bool is_there(const struct rig_pci_attempt *t)
{
	return t->step != RIG_PCI_STEP_BACK_END && !(t->step == RIG_PCI_STEP_NODE && t->err == -ENOENT);
}

static int tell_one(const char *root, const struct rig_spec *spec, const struct rig_pci_attempt *t)
{
	char line[LINE];

	find_why(root, spec, t, line);
	return rig_error_set(t->err, "%s%s%s", t->text, *line ? "; " : "", line);
}

static int tell_both(const char *root, const struct rig_spec *spec, const struct rig_pci_failed *failed)
{
	const struct rig_pci_attempt *first = &failed->attempt[0], *last = &failed->attempt[1];
	char line[2][LINE];
	bool same;

	for (unsigned i = 0; i < 2; i++)
		find_why(root, spec, &failed->attempt[i], line[i]);
	same = !strcmp(line[0], line[1]);
	if (same && !strcmp(first->text, last->text))
		return rig_error_set(last->err, "%s%s%s", last->text, *line[1] ? "; " : "", line[1]);
	return rig_error_set(last->err, "%s%s%s; and through iommufd: %s%s%s", last->text,
	        *line[1] ? "; " : "", line[1], first->text, !same && *line[0] ? "; " : "",
	        same ? "" : line[0]);
}

int rig_explain(const char *root, const struct rig_spec *spec, const struct rig_pci_failed *failed)
{
	const struct rig_pci_attempt *t = failed->attempt;

	if (failed->count < 2)
		return tell_one(root, spec, t);
	if (is_there(&t[0]) != is_there(&t[1]))
		return tell_one(root, spec, is_there(&t[0]) ? &t[0] : &t[1]);
	return tell_both(root, spec, failed);
}

void rig_explain_memory(const char *root, const struct rig_spec *spec, int err, char *why, size_t why_bytes)
{
	struct rig_doctor_ask ask = {.way = ways[spec->transport], .seen.open = true};
	size_t n = strlen(why);
	char line[LINE];

	if (err != -ENOMEM && err != -ENOSPC)
		return;
	ask.only = err == -ENOMEM ? "memlock" : "entry-limit";
	ask.seen.unlocked = err == -ENOMEM;
	ask.seen.full = err == -ENOSPC;
	find(root, spec->path, ask, line);
	if (*line)
		snprintf(why + n, why_bytes - n, "; %s", line);
}

void rig_explain_limit(const char *root, const struct rig_spec *spec, const struct rig_log *log)
{
	char line[LINE];

	find(root, spec->path, (struct rig_doctor_ask){.only = "memlock", .way = ways[spec->transport]},
	        line);
	if (*line)
		rig_logf(log, RIG_LOG_WARN, "%s", line);
}

/* -- Taking -- */

/* The model, started; what follows reaches it over our end of its socket. */
struct start {
	const struct rig_spec *spec;
	struct rig_sim *sim;
};

static int start(void *arg, struct rig_pci_taking *options)
{
	struct start *s = arg;
	int fd, err = rig_sim_start(s->spec, &s->sim, &fd);

	if (err)
		return err;
	options->ended = rig_sim_end;
	options->ended_arg = s->sim;
	options->name = "the device process";
	options->ops = &rig_vuser_ops;
	return rig_vuser_new(fd, RIG_VUSER_DEADLINE_MS, &options->transport);
}

int rig_take_check(const struct rig_spec *spec, const struct rig_pci_fds *fds, const char *token)
{
	unsigned char uuid[16];

	if ((fds || token) && spec->kind != RIG_SPEC_PCI)
		return rig_error_set(-EINVAL, "%s: fds and vf_token are of PCI functions", spec->base);
	if (fds && (fds->device < 0 || ((fds->group < 0 || fds->container < 0) && fds->iommufd < 0)))
		return rig_error_set(-EINVAL,
		        "%s: fds are a device with its group and container, or with its iommufd", spec->base);
	if (token && !rig_pci_token_parse(token, uuid))
		return rig_error_set(-EINVAL,
		        "vf_token \"%.64s\": a UUID, as 00112233-4455-6677-8899-aabbccddeeff", token);
	return 0;
}

int rig_take(const struct rig_spec *spec, const struct rig_take_options *how, struct rig_taken *out)
{
	struct rig_pci_failed failed = {0};
	struct start model = {spec, NULL};
	struct rig_vuser_want socket = {.path = spec->path};
	struct rig_kernel_want function = {.bdf = spec->path,
	        .which = spec->transport,
	        .fds = how->fds,
	        .token = *spec->token ? spec->token : NULL,
	        .failed = &failed};
	struct rig_pci_taking taking = {.guard = how->guard,
	        .log = how->log,
	        .reset_ms = how->reset_ms,
	        .iova_base = how->iova_base,
	        .arena_limit = how->arena_limit};
	int err;

	switch (spec->kind) {
	case RIG_SPEC_SIM:
		taking.begin = start;
		taking.arg = &model;
		break;
	case RIG_SPEC_VFIO_USER:
		taking.name = spec->base;
		taking.begin = rig_vuser_begin;
		taking.arg = &socket;
		break;
	case RIG_SPEC_PCI:
		taking.name = spec->path;
		taking.begin = rig_kernel_begin;
		taking.arg = &function;
		break;
	}
	err = rig_pci_take(&out->pci, &taking);
	out->sim = err ? NULL : model.sim;
	if (err && failed.count)
		err = rig_explain("", spec, &failed);
	if (!err && spec->kind == RIG_SPEC_PCI && spec->transport != RIG_PCI_NOIOMMU)
		rig_explain_limit("", spec, how->log);
	return err;
}
