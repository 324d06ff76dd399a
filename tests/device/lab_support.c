/* SPDX-License-Identifier: MIT */
#include "lab_device.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXIT_SKIPPED 77
#define LEVEL_DEBUG  3 /* of rig_vfio_options.log */
#define PATH_BYTES   300
#define MAX_FDS      256
#define GROUPS       3u
#define THREADS      8u
#define IDS_WORDS    16u /* of a thread: tests/kernels/ids.k.c */
#define IDS_LINEAR   13u /* the word that is the thread's place */
#define IDS_LAST     15u /* the word that is always this: */
#define IDS_MARK     0x1D5u

struct ids_params {
	uint64_t out;
	uint32_t capacity;
};

static _Noreturn void leave(int status, const char *format, va_list list)
{
	vfprintf(stderr, format, list);
	fputc('\n', stderr);
	exit(status);
}

void lab_fail(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	leave(1, format, list);
}

void lab_skip(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	leave(EXIT_SKIPPED, format, list);
}

void lab_must(int answer, const char *what)
{
	if (answer < 0)
		lab_fail("%s answered %d: %s", what, answer, rig_error());
}

void lab_check(bool so, const char *what)
{
	if (!so)
		lab_fail("not so: %s", what);
}

unsigned long lab_number(const char *text)
{
	char *end;
	unsigned long n = strtoul(text ? text : "", &end, 0);

	if (!text || !*text || *end)
		lab_fail("an argument should be a number: %s", text ? text : "none");
	return n;
}

/* ---- Devices and work ---- */

static void say(void *arg, int level, const char *text)
{
	(void)arg;
	if (level < LEVEL_DEBUG)
		fprintf(stderr, "log: %s\n", text);
}

int lab_try_open(const char *text, struct rig_device **device)
{
	const struct rig_vfio_options options = {.version = RIG_EDGE_VERSION, .guard = true, .log = say};
	struct rig_opener *opener;
	int err;

	lab_must(rig_vfio_opener(text, &options, &opener), text);
	err = rig_open(opener, device);
	rig_vfio_opener_free(opener);
	return err;
}

struct rig_device *lab_open(const char *text)
{
	struct rig_device *device;

	lab_must(lab_try_open(text, &device), "open");
	return device;
}

void lab_close(struct rig_device *device)
{
	lab_must(rig_close(device), "close");
	rig_device_put(device);
}

void lab_work_make(struct lab_work *work, struct rig_device *device, const char *name, const void *params,
        uint32_t param_bytes, struct rig_buffer *buffer, uint32_t groups, uint32_t threads)
{
	const struct rig_ref ref = {.at = 0, .slot = 0};
	const char *folder = getenv("RIG_LAB_IMAGES");
	struct rig_work part = {.kind = RIG_LAUNCH};
	struct rig_description description = {
	        .version = RIG_EDGE_VERSION, .parts = &part, .nparts = 1, .writes = buffer != NULL};
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "%s/%s.elf", folder ? folder : "/lab", name);
	*work = (struct lab_work){.device = device};
	lab_must(rig_image_load_file(device, path, &work->image), path);
	part.u.launch = (struct rig_launch_work){.image = work->image,
	        .function = name,
	        .params = param_bytes,
	        .refs = &ref,
	        .nrefs = buffer != NULL};
	lab_must(rig_submission_make(device, &description, &work->submission), name);
	lab_must(rig_run_make(work->submission, &work->run), "run");
	lab_must(rig_run_grid(work->run, 0, groups, 1, 1), "grid");
	lab_must(rig_run_group(work->run, 0, threads, 1, 1), "group");
	if (param_bytes)
		lab_must(rig_run_params(work->run, 0, 0, params, param_bytes), "parameters");
	if (buffer)
		lab_must(rig_run_buffer(work->run, 0, buffer), "buffer of the run");
}

struct rig_point lab_work_submit(struct lab_work *work)
{
	struct rig_point point;

	lab_must(rig_submit(work->submission, work->run, NULL, 0, &point), "submit");
	return point;
}

void lab_work_end(struct lab_work *work)
{
	rig_run_put(work->run);
	rig_submission_put(work->submission);
	rig_image_put(work->image);
}

void lab_works(struct rig_device *device)
{
	const struct ids_params params = {.capacity = GROUPS * THREADS};
	uint32_t words[GROUPS * THREADS][IDS_WORDS];
	struct rig_buffer *buffer;
	struct lab_work work;
	uint32_t i;

	lab_must(rig_buffer_create(device, RIG_DEVICE, sizeof(words), &buffer), "buffer");
	memset(words, 0, sizeof(words));
	lab_must(rig_buffer_write(buffer, 0, words, sizeof(words)), "write");
	lab_work_make(&work, device, "ids", &params, sizeof(params), buffer, GROUPS, THREADS);
	lab_must(rig_wait(lab_work_submit(&work)), "wait");
	lab_must(rig_buffer_read(buffer, 0, words, sizeof(words)), "read");
	for (i = 0; i < GROUPS * THREADS; i++)
		if (words[i][IDS_LINEAR] != i || words[i][IDS_LAST] != IDS_MARK)
			lab_fail("thread %u wrote %u and 0x%x", i, words[i][IDS_LINEAR], words[i][IDS_LAST]);
	lab_work_end(&work);
	rig_buffer_put(buffer);
}

struct rig_point lab_endless(struct lab_work *work, struct rig_device *device)
{
	lab_works(device);
	lab_work_make(work, device, "loop_forever", NULL, 0, NULL, 1, 1);
	return lab_work_submit(work);
}

/* ---- Counts ---- */

static bool is_called(int fd, const char *name)
{
	char path[PATH_BYTES], link[PATH_BYTES];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, link, sizeof(link) - 1);
	return n > 0 && (size_t)n >= strlen(name) && !strncmp(link, name, strlen(name));
}

int lab_descriptor(const char *name)
{
	for (int fd = 0; fd < MAX_FDS; fd++)
		if (is_called(fd, name))
			return fd;
	return -1;
}

unsigned lab_descriptors(const char *name)
{
	unsigned n = 0;

	for (int fd = 0; fd < MAX_FDS; fd++)
		n += is_called(fd, name);
	return n;
}

static unsigned long entries(const char *path)
{
	unsigned long n = 0;
	DIR *dir = opendir(path);
	struct dirent *entry;

	if (!dir)
		lab_fail("%s cannot be read", path);
	while ((entry = readdir(dir)))
		n += entry->d_name[0] != '.';
	closedir(dir);
	return n;
}

static unsigned long count_mappings(void)
{
	FILE *file = fopen("/proc/self/maps", "re");
	char line[PATH_BYTES], mode[8];
	unsigned long n = 0;

	while (file && fgets(line, sizeof(line), file))
		n += (sscanf(line, "%*s %7s", mode) == 1 && mode[3] == 's') || strstr(line, "/memfd:") ||
		     strstr(line, "anon_inode") || strstr(line, "/dev/");
	if (file)
		fclose(file);
	return n;
}

/* A line "Name:   123 kB" of /proc/self/status; 0 if there is none. */
static unsigned long status_of(const char *name)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[PATH_BYTES];
	unsigned long n = 0;

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, name, strlen(name)) && line[strlen(name)] == ':')
			n = strtoul(line + strlen(name) + 1, NULL, 10);
	if (file)
		fclose(file);
	return n;
}

struct lab_counts lab_count(void)
{
	return (struct lab_counts){.fds = entries("/proc/self/fd"),
	        .mappings = count_mappings(),
	        .threads = entries("/proc/self/task"),
	        .locked_kb = status_of("VmLck"),
	        .pinned_kb = status_of("VmPin")};
}

static void same(const char *what, unsigned long before, unsigned long after)
{
	if (before != after)
		lab_fail("%s: %lu before, %lu after", what, before, after);
}

void lab_same(const struct lab_counts *before, const struct lab_counts *after)
{
	same("open descriptors", before->fds, after->fds);
	same("mappings", before->mappings, after->mappings);
	same("threads", before->threads, after->threads);
	same("kB of locked memory", before->locked_kb, after->locked_kb);
	same("kB of pinned memory", before->pinned_kb, after->pinned_kb);
}
