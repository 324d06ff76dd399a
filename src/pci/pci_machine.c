/* SPDX-License-Identifier: MIT */
/* The machine's functions, and what stands in the way of one. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bdf.h"
#include "doctor.h"
#include "pci_machine.h"
#include "rig_pci.h"

#define DEVICES "/sys/bus/pci/devices"

struct found {
	struct rig_bdf *at;
	size_t count;
};

static int compare(const void *a, const void *b)
{
	return rig_bdf_compare(a, b);
}

static int add(struct found *l, const char *name)
{
	struct rig_bdf bdf, *more;

	if (!rig_bdf_parse(name, &bdf))
		return 0;
	more = realloc(l->at, (l->count + 1) * sizeof(*more));
	if (!more)
		return rig_error_set(-ENOMEM, "no host memory for a list of functions");
	l->at = more;
	l->at[l->count++] = bdf;
	return 0;
}

static int find(const char *root, struct found *l)
{
	struct dirent *entry;
	char path[PATH_MAX];
	int err = 0;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "%s" DEVICES, root);
	dir = opendir(path);
	if (!dir)
		return rig_error_set(-ENOENT, "this machine shows no PCI bus (" DEVICES ")");
	while (!err && (entry = readdir(dir)))
		err = add(l, entry->d_name);
	closedir(dir);
	if (l->count)
		qsort(l->at, l->count, sizeof(*l->at), compare);
	return err;
}

int rig_machine_list(const char *root, int (*each)(void *arg, const struct rig_ksysfs *function), void *arg)
{
	struct found l = {0};
	struct rig_ksysfs sysfs;
	char name[RIG_BDF_TEXT];
	int err = find(root, &l);

	/* What cannot be read has left meanwhile. */
	for (size_t i = 0; i < l.count && !err; i++)
		if (!rig_ksysfs_read(root, rig_bdf_print(&l.at[i], name), &sysfs))
			err = each(arg, &sysfs);
	free(l.at);
	return err;
}

struct lister {
	int (*each)(void *arg, const struct rig_pci_listed *listed);
	void *arg;
};

static int list_one(void *arg, const struct rig_ksysfs *s)
{
	const struct lister *lister = arg;
	struct rig_pci_listed listed = {.vendor = (uint16_t)s->vendor,
	        .device = (uint16_t)s->device,
	        .class_code = s->class_code,
	        .group = s->group};

	(void)snprintf(listed.address, sizeof(listed.address), "%s", s->bdf);
	(void)snprintf(listed.driver, sizeof(listed.driver), "%.63s", s->driver);
	return lister->each(lister->arg, &listed);
}

int rig_pci_list(int (*each)(void *arg, const struct rig_pci_listed *listed), void *arg)
{
	struct lister lister = {each, arg};

	return rig_machine_list("", list_one, &lister);
}

int rig_pci_doctor(
        const char *address, int (*each)(void *arg, const struct rig_pci_finding *finding), void *arg)
{
	struct rig_diagnosis *diagnosis = calloc(1, sizeof(*diagnosis));
	struct rig_doctor_ask ask = {.root = "", .bdf = address};
	int err = diagnosis ? rig_doctor_examine(&ask, diagnosis)
	                    : rig_error_set(-ENOMEM, "no host memory for a diagnosis");

	if (err == -EINVAL)
		(void)rig_error_set(err, "\"%s\": a PCI address as 0000:65:00.0", address);
	for (unsigned i = 0; !err && i < diagnosis->count; i++) {
		const struct rig_finding *f = &diagnosis->finding[i];
		struct rig_pci_finding told = {.id = f->id,
		        .severity = (enum rig_pci_severity)f->severity,
		        .text = f->text,
		        .file = f->file,
		        .content = f->content,
		        .command = f->command};

		err = each(arg, &told);
	}
	free(diagnosis);
	return err;
}
