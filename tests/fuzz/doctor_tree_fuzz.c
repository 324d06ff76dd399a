/* SPDX-License-Identifier: MIT */
/*
 * Any tree of files as a machine that the doctor looks at: it ends, stays in the tree, and says only what
 * prints.
 *
 * An input is records with a byte 0x1e between them: a letter, a path up to the end of the line, and what is
 * in it: 'f' a file with these bytes, 'l' a link to this target, 'p' a pipe. Another letter is no record.
 */
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

enum { BETWEEN = 0x1e, MOST_RECORDS = 128, PATH_BYTES = 200, TARGET_BYTES = 256 };

static char root[] = "/dev/shm/rig-doctor-fuzz-XXXXXX";

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	return at->level ? remove(path) : 0;
}

static void end(void)
{
	(void)nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	(void)rmdir(root);
}

/* The folder of the path's last part, made if it is not there; what is written stays below the root. */
static int open_folder(char *path, char **last)
{
	int at = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC), next;
	char *part, *rest = path;

	while (at >= 0 && (part = strsep(&rest, "/")) && rest) {
		if (!*part)
			continue;
		(void)mkdirat(at, part, 0700);
		next = strcmp(part, "..") == 0
		               ? -1
		               : openat(at, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		close(at);
		at = next;
	}
	*last = part;
	return at;
}

static void write_file(int folder, const char *name, const uint8_t *bytes, size_t length)
{
	int fd = openat(
	        folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

	if (fd < 0)
		return;
	if (write(fd, bytes, length) < 0)
		abort();
	close(fd);
}

static void make(char kind, char *path, const uint8_t *bytes, size_t length)
{
	char *name, target[TARGET_BYTES + 1] = "";
	int folder = open_folder(path, &name);

	memcpy(target, bytes, length < TARGET_BYTES ? length : TARGET_BYTES);
	if (folder >= 0 && kind == 'f')
		write_file(folder, name, bytes, length);
	else if (folder >= 0 && kind == 'l')
		(void)!symlinkat(target, folder, name);
	else if (folder >= 0)
		(void)mkfifoat(folder, name, 0600);
	if (folder >= 0)
		close(folder);
}

static void make_record(const uint8_t *bytes, size_t length)
{
	const uint8_t *line_end = memchr(bytes, '\n', length);
	size_t n = line_end ? (size_t)(line_end - bytes) : 0;
	char path[PATH_BYTES + 1] = "";

	if (!n || n - 1 > PATH_BYTES || !strchr("flp", *bytes))
		return;
	memcpy(path, bytes + 1, n - 1);
	make((char)*bytes, path, line_end + 1, length - n - 1);
}

static void make_tree(const uint8_t *bytes, size_t length)
{
	for (unsigned i = 0; length && i < MOST_RECORDS; i++) {
		const uint8_t *stop = memchr(bytes, BETWEEN, length);
		size_t n = stop ? (size_t)(stop - bytes) : length;

		make_record(bytes, n);
		n += stop != NULL;
		bytes += n;
		length -= n;
	}
}

static void check_text(const char *text, size_t room)
{
	if (strnlen(text, room) == room)
		abort();
	for (; *text; text++)
		if (*text != '\n' && (*text < ' ' || *text > '~'))
			abort();
}

static void examine(const char *bdf, enum rig_doctor_way way)
{
	const struct rig_doctor_ask ask = {.root = root, .bdf = bdf, .way = way};
	enum rig_severity worst = RIG_NOTE;
	struct rig_diagnosis d;
	char line[512];

	if (rig_doctor_examine(&ask, &d) || d.count > RIG_DIAGNOSIS_FINDINGS)
		abort();
	for (unsigned i = 0; i < d.count; i++) {
		check_text(d.finding[i].file, RIG_FINDING_FILE);
		check_text(d.finding[i].content, RIG_FINDING_CONTENT);
		check_text(d.finding[i].command, RIG_FINDING_COMMAND);
		if (d.finding[i].severity > worst)
			worst = d.finding[i].severity;
	}
	if (worst != d.verdict && !d.cut)
		abort();
	rig_doctor_line(&d, line, sizeof(line));
	check_text(line, sizeof(line));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	static bool begun;

	if (!begun && (!mkdtemp(root) || atexit(end)))
		abort();
	begun = true;
	make_tree(bytes, length);
	examine("0000:65:00.0", RIG_DOCTOR_ANY);
	examine("0000:65:00.0", RIG_DOCTOR_IOMMUFD);
	examine("10000:e1:00.0", RIG_DOCTOR_NOIOMMU);
	(void)nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}
