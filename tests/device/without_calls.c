/* SPDX-License-Identifier: MIT */
/*
 * without_calls COMMAND ...: runs the command, whose first thread must make no system call from its first
 * getppid(2) to its second. Exit status 1 and the call's number if it makes one; else the command's.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define AT_CALL (SIGTRAP | 0x80) /* PTRACE_O_TRACESYSGOOD */

enum { FAILED = 126 };

static _Noreturn void end(int status, const char *what)
{
	fprintf(stderr, "without_calls: %s: %s\n", what, strerror(errno));
	exit(status);
}

/* The number of the call that the stopped process begins; -1: it is at the end of one. */
static long call_of(pid_t pid)
{
	struct __ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, (void *)sizeof(info), &info) < 0)
		end(FAILED, "PTRACE_GET_SYSCALL_INFO");
	return info.op == PTRACE_SYSCALL_INFO_ENTRY ? (long)info.entry.nr : -1;
}

/* Counts a call; what lies between the two marks is to be nothing. */
static void look(pid_t pid, unsigned *marks)
{
	long call = call_of(pid);

	if (call == SYS_getppid) {
		++*marks;
	} else if (call >= 0 && *marks == 1) {
		kill(pid, SIGKILL);
		fprintf(stderr, "without_calls: system call %ld\n", call);
		exit(1);
	}
}

static int follow(pid_t pid)
{
	unsigned marks = 0;
	int status, pass = 0;

	for (;;) {
		if (ptrace(PTRACE_SYSCALL, pid, NULL, (void *)(long)pass) < 0 || waitpid(pid, &status, 0) < 0)
			end(FAILED, "following the command");
		if (!WIFSTOPPED(status))
			break;
		pass = WSTOPSIG(status) == AT_CALL || WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
		if (WSTOPSIG(status) == AT_CALL)
			look(pid, &marks);
	}
	if (marks != 2)
		fprintf(stderr, "without_calls: %u marks of 2\n", marks);
	return marks == 2 && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
	int status;
	pid_t pid;

	if (argc < 2)
		return FAILED;
	pid = fork();
	if (pid < 0)
		end(FAILED, "fork");
	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			end(FAILED, "PTRACE_TRACEME");
		execvp(argv[1], argv + 1);
		end(FAILED, argv[1]);
	}
	if (waitpid(pid, &status, 0) < 0 || !WIFSTOPPED(status) ||
	        ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)) < 0)
		end(FAILED, "taking the command");
	return follow(pid);
}
