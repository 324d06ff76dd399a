/* SPDX-License-Identifier: MIT */
/* A law in a process of its own: what it says comes through a pipe, what ends it otherwise is its failure. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "conform.h"

#define MS 1000000u

static _Noreturn void end(struct conform *c, enum conform_end how, const char *format, va_list args)
{
	char text[CONFORM_TEXT];

	text[0] = (char)('0' + how);
	(void)vsnprintf(text + 1, sizeof(text) - 1, format, args);
	if (write(c->out, text, strlen(text)) < 0)
		_exit(126);
	_exit(how == CONFORM_FAILED);
}

void conform_fail(struct conform *c, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	end(c, CONFORM_FAILED, format, args);
}

void conform_skip(struct conform *c, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	end(c, CONFORM_SKIPPED, format, args);
}

static void run_inside(const struct conform_law *law, const struct conform_source *source, int out)
{
	struct conform c = {source, out};

	law->run(&c);
}

/* Reads what the law says until it ends or its time is over. How many bytes there are; text is terminated. */
static size_t listen_to(int in, char text[CONFORM_TEXT], uint64_t deadline)
{
	struct pollfd poll_in = {.fd = in, .events = POLLIN};
	size_t have = 0;
	ssize_t n = 1;

	while (n && have + 1 < CONFORM_TEXT) {
		uint64_t now = rig_now_ns();
		int ready = now < deadline ? poll(&poll_in, 1, (int)((deadline - now) / MS) + 1) : 0;

		if (ready < 0 && errno == EINTR)
			continue;
		if (ready <= 0)
			break;
		n = read(in, text + have, CONFORM_TEXT - 1 - have);
		if (n < 0)
			break;
		have += (size_t)n;
	}
	text[have] = 0;
	return have;
}

/* Waits until the child has ended; false if it had to be killed. */
static bool wait_for(pid_t child, uint64_t deadline, int *status)
{
	struct timespec nap = {.tv_nsec = MS};
	pid_t ended;

	while ((ended = waitpid(child, status, WNOHANG)) == 0 && rig_now_ns() < deadline)
		(void)nanosleep(&nap, NULL);
	if (ended)
		return true;
	(void)kill(child, SIGKILL);
	(void)waitpid(child, status, 0);
	return false;
}

static void judge(
        struct conform_result *result, const char *said, size_t bytes, bool in_time, int status, uint64_t ms)
{
	result->end = CONFORM_FAILED;
	if (bytes && said[0] >= '0' && said[0] <= '2') {
		result->end = (enum conform_end)(said[0] - '0');
		(void)snprintf(result->text, sizeof(result->text), "%s", said + 1);
		/* A sanitizer that found something says so by the status. */
		if (result->end != CONFORM_FAILED && !(WIFEXITED(status) && !WEXITSTATUS(status))) {
			result->end = CONFORM_FAILED;
			(void)snprintf(result->text, sizeof(result->text),
			        "its process ended with status 0x%x, after the law", status);
		}
	} else if (!in_time) {
		(void)snprintf(result->text, sizeof(result->text), "did not end within %llu s",
		        (unsigned long long)(ms / 1000));
	} else if (WIFSIGNALED(status)) {
		(void)snprintf(result->text, sizeof(result->text), "ended by signal %d (%s)",
		        WTERMSIG(status), strsignal(WTERMSIG(status)));
	} else {
		(void)snprintf(result->text, sizeof(result->text),
		        "its process exited with %d, without a result", WEXITSTATUS(status));
	}
}

static _Noreturn void be_child(const struct conform_law *law, const struct conform_source *source, int out)
{
	static const int crashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
	struct conform c = {source, out};
	size_t i;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* A crash ends this process, whatever the caller makes of one in its own. */
	for (i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
		(void)signal(crashes[i], SIG_DFL);
	law->run(&c);
	_exit(write(out, "0", 1) == 1 ? 0 : 126);
}

void conform_run(const struct conform_law *law, const struct conform_source *source, uint64_t deadline_ms,
        bool inside, struct conform_result *result)
{
	uint64_t start = rig_now_ns(), deadline = start + deadline_ms * MS;
	char said[CONFORM_TEXT];
	int ends[2], status = 0;
	size_t bytes;
	bool in_time;
	pid_t child;

	memset(result, 0, sizeof(*result));
	if (inside) {
		run_inside(law, source, STDERR_FILENO);
		return;
	}
	result->end = CONFORM_FAILED;
	if (pipe2(ends, O_CLOEXEC)) {
		(void)snprintf(result->text, sizeof(result->text), "no pipe: %s", strerror(errno));
		return;
	}
	(void)fflush(NULL);
	child = fork();
	if (child == 0) {
		(void)close(ends[0]);
		be_child(law, source, ends[1]);
	}
	(void)close(ends[1]);
	if (child > 0) {
		bytes = listen_to(ends[0], said, deadline);
		in_time = wait_for(child, deadline, &status);
		judge(result, said, bytes, in_time, status, deadline_ms);
	} else {
		(void)snprintf(result->text, sizeof(result->text), "no process: %s", strerror(errno));
	}
	(void)close(ends[0]);
	result->ns = rig_now_ns() - start;
}
