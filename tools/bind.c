/* SPDX-License-Identifier: MIT */
#include "bind.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor.h"
#include "kernel_sysfs.h"

#define DEVICES "/sys/bus/pci/devices"
#define DRIVERS "/sys/bus/pci/drivers"
#define PROBE   "/sys/bus/pci/drivers_probe"

/* An empty line takes an override away. */
#define NO_OVERRIDE "\n"

#define CLASS_BRIDGE 0x06u

enum { PATH_TEXT = 160, USE_TEXT = 256 };

static int fail(struct bind *b, int err, const char *format, ...) __attribute__((format(printf, 3, 4)));

static int fail(struct bind *b, int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(b->why, sizeof(b->why), format, args);
	va_end(args);
	return err;
}

static void also(char *text, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void also(char *text, size_t bytes, const char *format, ...)
{
	size_t at = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + at, bytes - at, format, args);
	va_end(args);
}

static int put(struct bind *b, const char *path, const char *text)
{
	int err = b->io->write(b->io->arg, path, text);

	if (err)
		return fail(b, err, "writing %.*s to %s: %s", (int)strcspn(text, "\n"), text, path,
		        strerror(-err));
	return 0;
}

static int put_device(struct bind *b, const char *bdf, const char *attribute, const char *text)
{
	char path[PATH_TEXT];

	snprintf(path, sizeof(path), DEVICES "/%s/%s", bdf, attribute);
	return put(b, path, text);
}

static int put_driver(struct bind *b, const char *driver, const char *attribute, const char *bdf)
{
	char path[PATH_TEXT];

	snprintf(path, sizeof(path), DRIVERS "/%s/%s", driver, attribute);
	return put(b, path, bdf);
}

static void driver_of(const struct bind *b, const char *bdf, char *to)
{
	char path[PATH_TEXT];

	snprintf(path, sizeof(path), DEVICES "/%s/driver", bdf);
	(void)rig_ksysfs_link(b->io->root, path, to, BIND_NAME);
}

static void override_of(const struct bind *b, const char *bdf, char *to)
{
	char path[PATH_TEXT];

	snprintf(path, sizeof(path), DEVICES "/%s/driver_override", bdf);
	if (!rig_ksysfs_line(b->io->root, path, to, BIND_NAME) || !strcmp(to, "(null)"))
		*to = 0;
}

/* -- Who may not be taken -- */

static int is_busy(void *arg, const char *disk)
{
	struct bind *b = arg;

	if (!b->io->busy || !b->io->busy(b->io->arg, disk))
		return 0;
	fail(b, -EBUSY, "/dev/%s is in use: mounted somewhere, or part of a volume", disk);
	return 1;
}

/* The kernel would wait, without an end, until the process lets go. */
static int check_holder(struct bind *b, const char *bdf)
{
	char text[USE_TEXT], file[PATH_TEXT];

	if (rig_doctor_holder(b->io->root, bdf, text, sizeof(text), file, sizeof(file)))
		return fail(b, -EBUSY, "%s is held by process %s: end it first", bdf, text);
	return 0;
}

static int check_virtuals(struct bind *b, const char *bdf)
{
	char path[PATH_TEXT], line[32];

	snprintf(path, sizeof(path), DEVICES "/%s/sriov_numvfs", bdf);
	if (rig_ksysfs_line(b->io->root, path, line, sizeof(line)) && strtol(line, NULL, 10) > 0)
		return fail(b, -EBUSY, "%s has %s virtual functions, which would vanish: echo 0 > %s first",
		        bdf, line, path);
	return 0;
}

static int name_holder(void *arg, const char *who, const char *node, const char *file)
{
	struct bind *b = arg;

	(void)file;
	return fail(b, -EBUSY,
	        "process %s has %s open, and its driver would wait for it without an end: end it first", who,
	        node);
}

/* What hangs behind a VMD would be bound, and no open of it could succeed. */
static int check_vmd(struct bind *b, const char *bdf)
{
	const struct rig_doctor_ask ask = {.root = b->io->root, .bdf = bdf, .only = "vmd"};
	struct rig_diagnosis *found = calloc(1, sizeof(*found));
	char line[BIND_TEXT - USE_TEXT];
	int err = 0;

	if (!found)
		return fail(b, -ENOMEM, "out of memory");
	if (!rig_doctor_examine(&ask, found) && found->count) {
		rig_doctor_line(found, line, sizeof(line));
		err = fail(b, -EBUSY, "%s: %s", bdf, line);
	}
	free(found);
	return err;
}

/* What says most about why comes first: who has a disk mounted also has its driver's node open. */
static int check_member(struct bind *b, const char *bdf)
{
	char use[USE_TEXT];
	int err;

	if (rig_doctor_in_use(b->io->root, bdf, use, sizeof(use)))
		return fail(b, -EBUSY, "the machine works through %s: %s", bdf, use);
	if (rig_doctor_disks(b->io->root, bdf, is_busy, b))
		return -EBUSY;
	err = rig_doctor_driver_holders(b->io->root, bdf, name_holder, b);
	return err ? err : check_virtuals(b, bdf);
}

/* -- Collecting -- */

static void add_member(struct bind *b, const struct rig_ksysfs_member *f)
{
	struct bind_member *m = &b->member[b->count++];

	memset(m, 0, sizeof(*m));
	(void)rig_bdf_name(f->name, m->bdf);
	snprintf(m->driver, sizeof(m->driver), "%s", f->driver);
	m->vfio = f->vfio;
	override_of(b, m->bdf, m->override);
}

/* Functions that can be given to another driver; what else a group has stays where it is. */
static bool is_candidate(const struct rig_ksysfs_member *m)
{
	return rig_ksysfs_is_function(m) && !m->bridge && m->class_code >> 16 != CLASS_BRIDGE;
}

static struct rig_ksysfs_member as_member(const struct rig_ksysfs *s)
{
	struct rig_ksysfs_member m = {.bus = "pci", .class_code = s->class_code, .vfio = s->vfio};

	strcpy(m.name, s->bdf);
	strcpy(m.driver, s->driver);
	return m;
}

static int collect(void *arg, const struct rig_ksysfs_member *m)
{
	struct bind *b = arg;

	if (!is_candidate(m) || !strcmp(m->driver, b->driver))
		return 0;
	if (b->count == BIND_MEMBERS)
		return fail(b, -E2BIG, "the group has more than %d functions", BIND_MEMBERS);
	add_member(b, m);
	return 0;
}

/* For the note: what a bind of one function leaves in the way. */
static int note_mate(void *arg, const struct rig_ksysfs_member *m)
{
	struct bind *b = arg;

	if (rig_ksysfs_is_viable(m, rig_ksysfs_release(b->io->root)) || !strcmp(m->name, b->member[0].bdf))
		return 0;
	also(b->note, sizeof(b->note), "%s%s is with %s",
	        *b->note ? ", " : "group mates are in the way: ", m->name, m->driver);
	return 0;
}

static int no_function(struct bind *b, int err, const char *bdf)
{
	return fail(b, err, "no function %s on this machine: rigctl list shows what there is", bdf);
}

static int gather(struct bind *b, const char *bdf)
{
	struct rig_ksysfs_member alone;
	struct rig_ksysfs s;
	int err = rig_ksysfs_read(b->io->root, bdf, &s);

	b->count = 0;
	b->why[0] = b->note[0] = 0;
	b->group_number = -1;
	if (err)
		return no_function(b, err, bdf);
	b->group_number = s.group;
	alone = as_member(&s);
	if (s.class_code >> 16 == CLASS_BRIDGE)
		return fail(b, -EINVAL, "%s is a bridge, which stays with its driver", bdf);
	if (!b->group)
		return collect(b, &alone);
	if (s.group < 0)
		return fail(b, -EINVAL, "%s is in no IOMMU group: bind it without --group", bdf);
	return rig_ksysfs_group(b->io->root, s.group, collect, b);
}

/* -- One function -- */

static bool changed(const struct bind *b, const char *bdf, const char *driver)
{
	char now[BIND_NAME];

	driver_of(b, bdf, now);
	return b->io->dry || !strcmp(now, driver);
}

static int take(struct bind *b, const struct bind_member *m)
{
	int err = put_device(b, m->bdf, "driver_override", b->driver);

	if (!err && *m->driver)
		err = put_driver(b, m->driver, "unbind", m->bdf);
	if (!err)
		err = put(b, PROBE, m->bdf);
	if (!err && !changed(b, m->bdf, b->driver))
		err = fail(b, -EIO, "%s did not take %s (dmesg says why)", b->driver, m->bdf);
	return err;
}

static void put_override_back(struct bind *b, const struct bind_member *m)
{
	char now[BIND_NAME];

	override_of(b, m->bdf, now);
	if (strcmp(now, m->override) != 0)
		(void)put_device(b, m->bdf, "driver_override", *m->override ? m->override : NO_OVERRIDE);
}

static void put_driver_back(struct bind *b, const struct bind_member *m)
{
	char now[BIND_NAME];

	driver_of(b, m->bdf, now);
	if (!strcmp(now, m->driver))
		return;
	if (*now)
		(void)put_driver(b, now, "unbind", m->bdf);
	if (*m->driver)
		(void)put_driver(b, m->driver, "bind", m->bdf);
}

/* Step by step, whichever of take's or release's steps were done; what is not as before is added to `why`. */
static void give_back(struct bind *b, const struct bind_member *m)
{
	char why[BIND_TEXT], now[BIND_NAME];

	memcpy(why, b->why, sizeof(why));
	put_override_back(b, m);
	put_driver_back(b, m);
	memcpy(b->why, why, sizeof(why));
	driver_of(b, m->bdf, now);
	if (strcmp(now, m->driver) != 0)
		also(b->why, sizeof(b->why), "; and %s is now with %s instead of %s", m->bdf,
		        *now ? now : "no driver", *m->driver ? m->driver : "none");
	override_of(b, m->bdf, now);
	if (strcmp(now, m->override) != 0)
		also(b->why, sizeof(b->why),
		        "; and the driver_override of %s is now \"%s\" instead of \"%s\"", m->bdf, now,
		        m->override);
}

/* -- The node -- */

static int hand_node(struct bind *b, const char *path, uid_t *was)
{
	int err = b->io->own(b->io->arg, path, b->user, was);

	return err ? fail(b, err, "giving %s to user %u: %s", path, (unsigned)b->user, strerror(-err)) : 0;
}

/* The node outlives give_back where another function of the group stays with the driver. */
static void give_node_back(struct bind *b, const char *path, uid_t was)
{
	uid_t now;
	int err = b->io->own(b->io->arg, path, was, &now);

	if (err)
		also(b->why, sizeof(b->why), "; and %s is now user %u's instead of %u's: %s", path,
		        (unsigned)b->user, (unsigned)was, strerror(-err));
}

/* The group's node, and the function's own where the kernel has one. */
static int hand_nodes(struct bind *b, const char *bdf)
{
	struct rig_ksysfs s;
	char path[PATH_TEXT], own[PATH_TEXT];
	uid_t was, unused;
	int err;

	if (!b->hand)
		return 0;
	err = rig_ksysfs_read(b->io->root, bdf, &s);
	if (err)
		return no_function(b, err, bdf);
	if (s.group < 0)
		return fail(b, -ENOENT, "%s is in no group, so there is no node to give away", bdf);
	snprintf(path, sizeof(path), "/dev/vfio/%s%d", s.noiommu ? "noiommu-" : "", s.group);
	err = hand_node(b, path, &was);
	if (err || !*s.cdev)
		return err;
	snprintf(own, sizeof(own), "/dev/vfio/devices/%s", s.cdev);
	err = hand_node(b, own, &unused);
	if (err)
		give_node_back(b, path, was);
	return err;
}

/* -- All -- */

static int check_all(struct bind *b)
{
	char path[PATH_TEXT];
	int err = 0;

	for (unsigned i = 0; i < b->count && !err; i++) {
		err = check_vmd(b, b->member[i].bdf);
		if (!err)
			err = check_member(b, b->member[i].bdf);
	}
	snprintf(path, sizeof(path), "%s" DRIVERS "/%s/bind", b->io->root, b->driver);
	if (!err && (strchr(b->driver, '/') || access(path, F_OK)))
		err = fail(b, -ENOENT, "no driver %s: modprobe %s", b->driver, b->driver);
	return err;
}

static int no_address(struct bind *b, const char *text)
{
	b->count = 0;
	return fail(b, -EINVAL, "\"%.32s\" is no PCI address: write it as 0000:65:00.0", text);
}

int bind_function(struct bind *b, const char *address)
{
	char bdf[RIG_BDF_TEXT];
	unsigned done = 0;
	int err = rig_bdf_name(address, bdf) ? gather(b, bdf) : no_address(b, address);

	if (!err)
		err = check_all(b);
	if (err)
		return err;
	while (done < b->count && !err)
		err = take(b, &b->member[done++]);
	if (!err)
		err = hand_nodes(b, bdf);
	while (err && done)
		give_back(b, &b->member[--done]);
	if (!err && !b->group && b->group_number >= 0 && b->count)
		(void)rig_ksysfs_group(b->io->root, b->group_number, note_mate, b);
	if (err)
		b->count = 0;
	return err;
}

/* -- Back -- */

/* No driver of vfio's: by its override alone it may be what the machine works through. */
static bool is_taken(const struct bind_member *m)
{
	return m->vfio || *m->override;
}

static int collect_taken(void *arg, const struct rig_ksysfs_member *m)
{
	struct bind *b = arg;

	if (!is_candidate(m))
		return 0;
	if (b->count == BIND_MEMBERS)
		return fail(b, -E2BIG, "the group has more than %d functions", BIND_MEMBERS);
	add_member(b, m);
	b->count -= !is_taken(&b->member[b->count - 1]);
	return 0;
}

static int gather_taken(struct bind *b, const char *bdf)
{
	struct rig_ksysfs_member alone;
	struct rig_ksysfs s;
	int err = rig_ksysfs_read(b->io->root, bdf, &s);

	b->count = 0;
	b->why[0] = b->note[0] = 0;
	b->group_number = -1;
	if (err)
		return no_function(b, err, bdf);
	b->group_number = s.group;
	alone = as_member(&s);
	if (b->group && s.group < 0)
		return fail(b, -EINVAL, "%s is in no IOMMU group: unbind it without --group", bdf);
	err = b->group ? rig_ksysfs_group(b->io->root, s.group, collect_taken, b) : collect_taken(b, &alone);
	if (!err && !b->count)
		err = fail(b, -EINVAL, "%s is with %s, and rigctl bind did not put it there%s", bdf,
		        *s.driver ? s.driver : "no driver", b->group ? "; nor its group mates" : "");
	return err;
}

static int check_taken(struct bind *b)
{
	int err = 0;

	for (unsigned i = 0; i < b->count && !err; i++) {
		err = check_holder(b, b->member[i].bdf);
		if (!err && !b->member[i].vfio)
			err = check_member(b, b->member[i].bdf);
	}
	return err;
}

static int release(struct bind *b, const struct bind_member *m)
{
	int err = put_device(b, m->bdf, "driver_override", NO_OVERRIDE);

	if (!err && *m->driver)
		err = put_driver(b, m->driver, "unbind", m->bdf);
	return err;
}

/* After all were released, since a driver may want the functions of its group together. */
static void find_drivers(struct bind *b)
{
	for (unsigned i = 0; i < b->count; i++) {
		(void)put(b, PROBE, b->member[i].bdf); /* that no driver wants it is no failure */
		driver_of(b, b->member[i].bdf, b->member[i].driver);
	}
	b->why[0] = 0;
}

int unbind_function(struct bind *b, const char *address)
{
	char bdf[RIG_BDF_TEXT];
	unsigned done = 0;
	int err = rig_bdf_name(address, bdf) ? gather_taken(b, bdf) : no_address(b, address);

	if (!err)
		err = check_taken(b);
	while (!err && done < b->count)
		err = release(b, &b->member[done++]);
	if (err) {
		while (done)
			give_back(b, &b->member[--done]);
		b->count = 0;
		return err;
	}
	find_drivers(b);
	return 0;
}
