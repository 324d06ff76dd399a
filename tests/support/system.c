/* SPDX-License-Identifier: MIT */
#include "system.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MARK_NAME     "RIG_TEST_MARK"
#define SOCKET_NAME   "board.sock"
#define PATH_BYTES    600
#define NAMES_BYTES   4096
#define MAX_PIDS      256
#define NAP_NS        2000000L
#define NOT_STARTED   126
#define GLOBALS_WORDS 8
#define WORKS_FILE    "works.bin"
#define LISTENS_FLAG  0x10000u /* in /proc/net/unix */

static char folder[64];
static char mark[96]; /* NAME=VALUE */

/* ---- The folder ---- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

int sys_setup(void **state)
{
	const char *value = strchr(mark, '=');

	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/rigsys-XXXXXX");
	if (!mkdtemp(folder) || symlink(SYS_KERNELS, sys_path("k"))) {
		print_error("no private folder: %s\n", strerror(errno));
		return -1;
	}
	snprintf(mark, sizeof(mark), "%s=%s", MARK_NAME, folder);
	value = strchr(mark, '=') + 1;
	return setenv(MARK_NAME, value, 1) || setenv("TMPDIR", folder, 1);
}

int sys_teardown(void **state)
{
	(void)state;
	nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	return sys_find(NULL, NULL, 0) ? -1 : 0;
}

const char *sys_folder(void)
{
	return folder;
}

const char *sys_path(const char *name)
{
	static char paths[4][PATH_BYTES];
	static unsigned next;
	char *path = paths[next++ % 4];

	snprintf(path, PATH_BYTES, "%s/%s", folder, name);
	return path;
}

const char *sys_names(void)
{
	static char texts[2][NAMES_BYTES];
	static unsigned next;
	char *text = texts[next++ % 2];
	struct dirent **list = NULL;
	int i, n = scandir(folder, &list, NULL, alphasort);
	size_t used = 0;

	if (n < 0)
		fail_msg("%s: %s", folder, strerror(errno));
	*text = 0;
	for (i = 0; i < n; i++) {
		if (list[i]->d_name[0] != '.' && used < NAMES_BYTES - 1)
			used += (size_t)snprintf(text + used, NAMES_BYTES - used, "%s ", list[i]->d_name);
		free(list[i]);
	}
	free(list);
	return text;
}

void sys_write_file(const char *name, const void *bytes, size_t count)
{
	FILE *file = fopen(sys_path(name), "we");

	if (!file || fwrite(bytes, 1, count, file) != count || fclose(file))
		fail_msg("writing %s: %s", name, strerror(errno));
}

size_t sys_read_file(const char *path, uint8_t **bytes)
{
	FILE *file = fopen(path, "re");
	struct stat st;
	size_t count;

	if (!file || fstat(fileno(file), &st))
		fail_msg("%s: %s", path, strerror(errno));
	count = (size_t)st.st_size;
	*bytes = malloc(count + 1);
	if (!*bytes || fread(*bytes, 1, count, file) != count)
		fail_msg("reading %s: %s", path, strerror(errno));
	fclose(file);
	return count;
}

size_t sys_kernel_bytes(const char *kernel, uint8_t **bytes)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "%s/%s.elf", SYS_KERNELS, kernel);
	return sys_read_file(path, bytes);
}

/* ---- Waiting ---- */

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void sys_nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
}

void sys_await(bool (*ready)(void *arg), void *arg, const char *what)
{
	uint64_t end = now_ms() + SYS_DEADLINE_MS;

	while (!ready(arg)) {
		if (now_ms() > end)
			fail_msg("waiting for %s took longer than %u ms", what, (unsigned)SYS_DEADLINE_MS);
		sys_nap();
	}
}

/* ---- Programs ---- */

/* Splits the text in place; the first word becomes a path of this build. */
static void split(char *text, char **argv)
{
	unsigned n = 0;
	char *word;

	while ((word = strsep(&text, " ")) && n < SYS_ARGS - 1)
		argv[n++] = word;
	argv[n] = NULL;
	if (!strcmp(argv[0], "rigctl"))
		argv[0] = (char *)(uintptr_t)SYS_RIGCTL;
	else if (!strcmp(argv[0], "rvx1-model"))
		argv[0] = (char *)(uintptr_t)SYS_MODEL;
}

static int open_output(void)
{
	int fd = memfd_create("output", MFD_CLOEXEC);

	if (fd < 0)
		fail_msg("a file for output: %s", strerror(errno));
	return fd;
}

static void become(const struct sys_process *p, char **argv, const struct sys_before *before)
{
	int err = 0, null = open("/dev/null", O_RDONLY);

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that is killed leaves nothing that serves */
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(p->out, STDOUT_FILENO) < 0 ||
	        dup2(p->err, STDERR_FILENO) < 0 || chdir(folder))
		_exit(NOT_STARTED);
	if (before)
		err = before->call(before->arg);
	if (!err)
		execv(argv[0], argv);
	dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerror(err ? err : errno));
	_exit(NOT_STARTED);
}

void sys_start_before(struct sys_process *p, const char *command, const struct sys_before *before)
{
	char *argv[SYS_ARGS], *text = strdup(command);

	if (!text)
		fail_msg("no memory");
	split(text, argv);
	p->out = open_output();
	p->err = open_output();
	fflush(NULL);
	p->pid = fork();
	if (p->pid == 0)
		become(p, argv, before);
	if (p->pid < 0)
		fail_msg("fork: %s", strerror(errno));
	setpgid(p->pid,
	        p->pid); /* here too: it may not have come to that when the caller signals the group */
	free(text);
}

void sys_start(struct sys_process *p, const char *command)
{
	sys_start_before(p, command, NULL);
}

static void collect(int fd, char text[SYS_TEXT])
{
	ssize_t n = pread(fd, text, SYS_TEXT - 1, 0);

	if (n < 0)
		fail_msg("reading output: %s", strerror(errno));
	text[n] = 0;
	close(fd);
}

void sys_finish(struct sys_process *p, struct sys_result *result)
{
	uint64_t end = now_ms() + SYS_DEADLINE_MS;
	int status;
	pid_t done;

	while ((done = waitpid(p->pid, &status, WNOHANG)) == 0 && now_ms() < end)
		sys_nap();
	if (done == 0) {
		kill(p->pid, SIGKILL);
		waitpid(p->pid, &status, 0);
	}
	collect(p->out, result->out);
	collect(p->err, result->err);
	if (done != p->pid)
		fail_msg("a program did not end; it said: %s", result->err);
	result->status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void sys_run(struct sys_result *result, const char *command)
{
	struct sys_process p;

	sys_start(&p, command);
	sys_finish(&p, result);
}

void sys_assert_failed(const struct sys_result *result, int status, const char *why)
{
	const char *end = strchr(result->err, '\n');

	if (result->status != status)
		fail_msg("exit status %d, not %d: %s", result->status, status, result->err);
	if (!end || end[1] || end == result->err)
		fail_msg("stderr is not one line: \"%s\"", result->err);
	if (!strstr(result->err, why))
		fail_msg("\"%s\" is not in: %s", why, result->err);
	if (*result->out)
		fail_msg("a failed program printed \"%s\"", result->out);
}

void sys_assert_done(const struct sys_result *result)
{
	if (result->status)
		fail_msg("exit status %d: %s", result->status, result->err);
}

void sys_assert_works(const char *device)
{
	/* What globals.k.c says of its answers. */
	static const uint64_t expected[GLOBALS_WORDS] = {1, 41, 42, 610, 'e' + 3, 14, 40, 'z'};
	char command[PATH_BYTES];
	struct sys_result result;
	uint8_t *bytes;

	snprintf(command, sizeof(command), "rigctl run %s k/globals.elf globals out:%s,%zu", device,
	        WORKS_FILE, sizeof(expected));
	sys_run(&result, command);
	sys_assert_done(&result);
	assert_int_equal(sys_read_file(sys_path(WORKS_FILE), &bytes), sizeof(expected));
	assert_memory_equal(bytes, expected, sizeof(expected));
	free(bytes);
	unlink(sys_path(WORKS_FILE));
}

/* ---- What is left behind ---- */

/* Whether a process carries the mark. A zombie has no environment any more. */
static bool is_marked(const char *pid)
{
	char path[300], text[1 << 16], *at;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/environ", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = 0;
	for (at = text; at < text + n; at += strlen(at) + 1)
		if (!strcmp(at, mark))
			return true;
	return false;
}

static bool is_named(const char *pid, const char *name)
{
	char path[300], comm[64] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (!fgets(comm, sizeof(comm), file))
		comm[0] = 0;
	fclose(file);
	comm[strcspn(comm, "\n")] = 0;
	return !strcmp(comm, name);
}

unsigned sys_find(const char *name, pid_t *pids, unsigned n)
{
	DIR *dir = opendir("/proc");
	unsigned found = 0;

	if (!dir)
		fail_msg("/proc: %s", strerror(errno));
	for (const struct dirent *e; (e = readdir(dir));) {
		if (e->d_name[0] < '0' || e->d_name[0] > '9' || !is_marked(e->d_name))
			continue;
		if (name && !is_named(e->d_name, name))
			continue;
		if (found < n)
			pids[found] = (pid_t)atoi(e->d_name);
		found++;
	}
	closedir(dir);
	return found;
}

static bool has_none(void *arg)
{
	(void)arg;
	return !sys_find(NULL, NULL, 0);
}

void sys_assert_no_process(void)
{
	sys_await(has_none, NULL, "every process to be gone");
}

static bool has_models(void *arg)
{
	return sys_find("rvx1-model", NULL, 0) == *(unsigned *)arg;
}

void sys_await_models(unsigned n)
{
	sys_await(has_models, &n, "the models to start or end");
}

/* ---- A served model ---- */

static bool has_socket(void *arg)
{
	struct stat st;

	(void)arg;
	return !stat(sys_path(SOCKET_NAME), &st) && S_ISSOCK(st.st_mode);
}

/* A bound socket refuses clients until it listens. */
static bool listens(void *arg)
{
	const char *path = sys_path(SOCKET_NAME);
	char line[PATH_BYTES], *at;
	bool found = false;
	unsigned flags;
	FILE *file = fopen("/proc/net/unix", "re");

	(void)arg;
	if (!file)
		fail_msg("/proc/net/unix: %s", strerror(errno));
	while (!found && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = 0;
		at = strrchr(line, ' ');
		found = at && !strcmp(at + 1, path) && sscanf(line, "%*s %*s %*s %x", &flags) == 1 &&
		        flags & LISTENS_FLAG;
	}
	fclose(file);
	return found;
}

void sys_serve(struct sys_process *p, const char *options)
{
	char command[PATH_BYTES];

	snprintf(command, sizeof(command), "rvx1-model --socket %s%s%s", sys_path(SOCKET_NAME),
	        *options ? " " : "", options);
	sys_start(p, command);
	sys_await(listens, NULL, "the model's socket");
}

void sys_serve_end(struct sys_process *p)
{
	struct sys_result result;

	kill(p->pid, SIGTERM);
	sys_finish(p, &result);
	sys_assert_done(&result);
	if (has_socket(NULL))
		fail_msg("the model left its socket");
}

const char *sys_served(void)
{
	static char text[PATH_BYTES];

	snprintf(text, sizeof(text), "vfio-user:%s", sys_path(SOCKET_NAME));
	return text;
}
