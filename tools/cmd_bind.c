/* SPDX-License-Identifier: MIT */
/* rigctl bind and unbind. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bind.h"
#include "rigctl.h"

/* -- This machine -- */

static int write_file_at(void *arg, const char *path, const char *text)
{
	size_t n = strlen(text);
	ssize_t done;
	int fd, err;
	char full[PATH_MAX];

	snprintf(full, sizeof(full), "%s%s", (const char *)arg, path);
	fd = open(full, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	done = write(fd, text, n);
	err = done < 0 ? -errno : (size_t)done == n ? 0 : -EIO;
	close(fd);
	return err;
}

static int own_node(void *arg, const char *path, uid_t user, uid_t *was)
{
	char full[PATH_MAX];
	struct stat s;

	snprintf(full, sizeof(full), "%s%s", (const char *)arg, path);
	if (stat(full, &s) || chown(full, user, (gid_t)-1))
		return -errno;
	*was = s.st_uid;
	return 0;
}

/* Mounts, in whatever namespace, and volumes of every kind open their disks exclusively. */
static bool is_held(void *arg, const char *disk)
{
	char full[PATH_MAX];
	int fd;

	snprintf(full, sizeof(full), "%s/dev/%s", (const char *)arg, disk);
	for (char *at = full; *at; at++)
		if (*at == '!')
			*at = '/';
	fd = open(full, O_RDONLY | O_EXCL | O_CLOEXEC);
	if (fd < 0)
		return errno == EBUSY;
	close(fd);
	return false;
}

/* -- A dry run -- */

static int print_write(void *arg, const char *path, const char *text)
{
	(void)arg;
	printf("echo %.*s > %s\n", (int)strcspn(text, "\n"), text, path);
	return 0;
}

static int print_own(void *arg, const char *path, uid_t user, uid_t *was)
{
	(void)arg;
	*was = user;
	printf("chown %u %s\n", (unsigned)user, path);
	return 0;
}

/* -- The commands -- */

struct bind_args {
	const char *address, *root;
	bool dry;
	struct bind bind;
};

static int find_user(const char *name, uid_t *user)
{
	const struct passwd *entry = getpwnam(name);
	char *end;
	unsigned long id = strtoul(name, &end, 10);

	if (entry)
		*user = entry->pw_uid;
	else if (end != name && !*end && *name != '-' && id < UINT_MAX)
		*user = (uid_t)id;
	else
		return complain(EXIT_USAGE, "--user %s: no such user", name);
	return 0;
}

static int take_value(struct bind_args *a, const char *option, const char *value)
{
	if (!value)
		return complain(EXIT_USAGE, "%s: a value must follow", option);
	if (!strcmp(option, "--driver"))
		a->bind.driver = value;
	else if (!strcmp(option, "--root"))
		a->root = value;
	else if (!strcmp(option, "--user"))
		return a->bind.hand = true, find_user(value, &a->bind.user);
	else
		return complain(EXIT_USAGE, "no option %s", option);
	return 0;
}

static int parse(struct bind_args *a, int argc, char **argv, bool binds)
{
	int err = 0;

	for (int i = 1; i < argc && !err; i++) {
		if (!strcmp(argv[i], "--dry-run"))
			a->dry = true;
		else if (!strcmp(argv[i], "--group"))
			a->bind.group = true;
		else if (argv[i][0] == '-' && (binds || !strcmp(argv[i], "--root")))
			err = take_value(a, argv[i], argv[i + 1]), i++;
		else if (argv[i][0] == '-')
			err = complain(EXIT_USAGE, "no option %s", argv[i]);
		else if (a->address)
			err = complain(EXIT_USAGE, "%s: one ADDRESS", argv[i]);
		else
			a->address = argv[i];
	}
	if (!err && !a->address)
		err = complain(EXIT_USAGE, "an ADDRESS, as 0000:65:00.0; rigctl list shows them");
	return err;
}

static int report(const struct bind_args *a, int err)
{
	return complain(err == -EINVAL ? EXIT_USAGE : EXIT_FAILED, "%s%s", a->bind.why,
	        err == -EACCES || err == -EPERM ? ": it needs root" : "");
}

static struct bind_io io_of(const struct bind_args *a)
{
	return (struct bind_io){.root = a->root,
	        .dry = a->dry,
	        .write = a->dry ? print_write : write_file_at,
	        .own = a->dry ? print_own : own_node,
	        .busy = is_held,
	        .arg = (void *)(uintptr_t)a->root};
}

static int run_bind(int argc, char **argv)
{
	struct bind_args a = {.root = "", .bind = {.driver = "vfio-pci"}};
	struct bind *b = &a.bind;
	struct bind_io io;
	int err = parse(&a, argc, argv, true);

	if (err)
		return err;
	io = io_of(&a);
	b->io = &io;
	err = bind_function(b, a.address);
	if (err)
		return report(&a, err);
	for (unsigned i = 0; i < b->count; i++)
		printf("%s%s: %s to %s\n", a.dry ? "# " : "", b->member[i].bdf,
		        *b->member[i].driver ? b->member[i].driver : "no driver", b->driver);
	if (!b->count)
		printf("%s is with %s already\n", a.address, b->driver);
	if (*b->note)
		printf("%s%s (rigctl bind --group %s)\n", a.dry ? "# " : "", b->note, a.address);
	return EXIT_DONE;
}

static int run_unbind(int argc, char **argv)
{
	struct bind_args a = {.root = ""};
	struct bind_io io;
	int err = parse(&a, argc, argv, false);

	if (err)
		return err;
	io = io_of(&a);
	a.bind.io = &io;
	err = unbind_function(&a.bind, a.address);
	if (err)
		return report(&a, err);
	for (unsigned i = 0; i < a.bind.count && !a.dry; i++)
		printf("%s: to %s\n", a.bind.member[i].bdf,
		        *a.bind.member[i].driver ? a.bind.member[i].driver : "no driver");
	return EXIT_DONE;
}

static const struct option_help bind_options[] = {
        {"--group", "every function of its IOMMU group, but bridges"},
        {"--dry-run", "print what would be written, and change nothing"},
        {"--user NAME", "give the group's node, and the function's own, to this user"},
        {"--driver NAME", "this driver instead of vfio-pci"},
        {"--root DIR", "files below this folder (for tests)"},
        {NULL, NULL},
};

const struct command command_bind = {
        .name = "bind",
        .synopsis = "ADDRESS [--group] [--dry-run] [--user NAME] [--driver NAME]",
        .summary = "give a PCI function to vfio-pci",
        .text = "By driver_override, so that no other function of the same kind is taken. What fails is "
                "undone. Refused: a "
                "function with a disk that is mounted, swapped to or part of what is; with a network "
                "interface that has "
                "addresses or routes, or carries one that has; with virtual functions.",
        .options = bind_options,
        .run = run_bind,
};

static const struct option_help unbind_options[] = {
        {"--group", "every function of its IOMMU group that bind took"},
        {"--dry-run", "print what would be written, and change nothing"},
        {"--root DIR", "files below this folder (for tests)"},
        {NULL, NULL},
};

const struct command command_unbind = {
        .name = "unbind",
        .synopsis = "ADDRESS [--group] [--dry-run]",
        .summary = "give a PCI function back to its kernel driver",
        .text = "To whichever driver wants it; there may be none. What fails is undone. Refused while a "
                "process holds the function.",
        .options = unbind_options,
        .run = run_unbind,
};
