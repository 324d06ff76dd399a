/* SPDX-License-Identifier: MIT */
#include "steps.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

/* Intel's Software Developer's Manual, volume 2, sections 2.1.1 (prefixes) and 2.2.1 (REX), and the opcode
   map. */
enum {
	PREFIX_LOCK = 0xf0,
	REX_FIRST = 0x40,
	REX_LAST = 0x4f,
	OP_XCHG8 = 0x86,
	OP_XCHG = 0x87,
	OP_TWO_BYTES = 0x0f,
	OP2_SYSCALL = 0x05,
	OP2_GROUP7 = 0x01,
	GROUP7_SERIALIZE = 0xe8,
	OP2_CPUID = 0xa2,
	OP2_GROUP15 = 0xae,
	GROUP15_MFENCE = 0xf0,
	MODRM_REGISTER = 0xc0, /* both operands are registers */
	MOST_BYTES = 16,       /* an instruction has at most 15 */
};

#define AT_CALL (SIGTRAP | 0x80) /* PTRACE_O_TRACESYSGOOD */

/* -- An instruction -- */

static bool is_prefix(unsigned char byte)
{
	static const unsigned char prefixes[] = {
	        PREFIX_LOCK, 0xf2, 0xf3, 0x2e, 0x36, 0x3e, 0x26, 0x64, 0x65, 0x66, 0x67};

	return memchr(prefixes, byte, sizeof(prefixes)) || (byte >= REX_FIRST && byte <= REX_LAST);
}

static void add_two_bytes(struct test_steps *s, unsigned char op, unsigned char modrm)
{
	s->calls += op == OP2_SYSCALL;
	s->fences += op == OP2_CPUID || (op == OP2_GROUP15 && modrm == GROUP15_MFENCE) ||
	             (op == OP2_GROUP7 && modrm == GROUP7_SERIALIZE);
}

void test_steps_add(struct test_steps *s, const unsigned char *bytes, unsigned count)
{
	unsigned char padded[MOST_BYTES + 2] = {0};
	const unsigned char *at = padded;
	bool lock = false;

	memcpy(padded, bytes, count < MOST_BYTES ? count : MOST_BYTES);
	while (at < padded + MOST_BYTES && is_prefix(*at))
		lock |= *at++ == PREFIX_LOCK;
	s->instructions++;
	s->locked += lock ||
	             ((at[0] == OP_XCHG8 || at[0] == OP_XCHG) && (at[1] & MODRM_REGISTER) != MODRM_REGISTER);
	if (at[0] == OP_TWO_BYTES)
		add_two_bytes(s, at[1], at[2]);
}

/* -- A program -- */

void test_steps_mark(void)
{
	syscall(SYS_getppid);
}

/* -- Memory that is watched -- */

static const unsigned char *watched;
static unsigned watched_bytes;
static unsigned char seen[TEST_STEPS_WATCHED];

void test_steps_watch(const void *memory, unsigned bytes)
{
	watched = memory;
	watched_bytes = bytes;
}

#if defined(__x86_64__)

static void watch_step(struct test_steps *s)
{
	unsigned first = 0, end = watched_bytes, width = 0;

	if (!watched_bytes || memcmp(seen, watched, watched_bytes) == 0)
		return;
	while (seen[first] == watched[first])
		first++;
	while (seen[end - 1] == watched[end - 1])
		end--;
	while (1u << width < end - first)
		width++;
	s->stores[width]++;
	memcpy(seen, watched, watched_bytes);
}

bool test_steps_can(void)
{
	return true;
}

/* -errno, 0, or -ESRCH: it ended. */
static int go_on(pid_t pid, enum __ptrace_request how, int *status)
{
	int sign = WIFSTOPPED(*status) ? WSTOPSIG(*status) : 0;

	if (sign == SIGTRAP || sign == AT_CALL || sign == SIGSTOP)
		sign = 0;
	if (ptrace(how, pid, NULL, (void *)(long)sign) < 0 || waitpid(pid, status, 0) < 0)
		return -errno;
	return WIFSTOPPED(*status) ? 0 : -ESRCH;
}

/* Until it is back from its next mark. */
static int find_mark(pid_t pid, int *status)
{
	struct user_regs_struct regs;
	bool inside = false;
	int err;

	for (;;) {
		err = go_on(pid, PTRACE_SYSCALL, status);
		if (err)
			return err;
		if (WSTOPSIG(*status) != AT_CALL)
			continue;
		if (ptrace(PTRACE_GETREGS, pid, NULL, &regs) < 0)
			return -errno;
		if (inside && regs.orig_rax == SYS_getppid)
			return 0;
		inside = !inside;
	}
}

static int look(pid_t pid, unsigned char bytes[MOST_BYTES], bool *marks)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, pid, NULL, &regs) < 0)
		return -errno;
	for (unsigned i = 0; i < MOST_BYTES; i += sizeof(long)) {
		long word;

		errno = 0;
		word = ptrace(PTRACE_PEEKTEXT, pid, (void *)(regs.rip + i), NULL);
		if (errno && !i)
			return -errno;
		memcpy(bytes + i, &word, sizeof(word)); /* -1, no instruction, beyond a mapping's end */
	}
	*marks = bytes[0] == OP_TWO_BYTES && bytes[1] == OP2_SYSCALL && regs.rax == SYS_getppid;
	return 0;
}

/* Up to the mark, which is not counted. A signal's handler is the program's too. */
static int count_steps(pid_t pid, int *status, struct test_steps *out)
{
	unsigned char bytes[MOST_BYTES];
	bool marks;
	int err;

	if (watched_bytes)
		memcpy(seen, watched, watched_bytes);
	for (;;) {
		err = look(pid, bytes, &marks);
		if (err || marks)
			return err;
		test_steps_add(out, bytes, sizeof(bytes));
		err = go_on(pid, PTRACE_SINGLESTEP, status);
		if (err)
			return err;
		watch_step(out);
	}
}

static int trace(pid_t pid, struct test_steps *out)
{
	int status, err;

	if (waitpid(pid, &status, 0) < 0)
		return -errno;
	if (!WIFSTOPPED(status))
		return WEXITSTATUS(status) ? -WEXITSTATUS(status) : -EPROTO;
	err = ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)) < 0
	              ? -errno
	              : find_mark(pid, &status);
	if (!err)
		err = count_steps(pid, &status, out);
	while (!err)
		err = go_on(pid, PTRACE_CONT, &status);
	if (err != -ESRCH) {
		kill(pid, SIGKILL);
		(void)waitpid(pid, &status, 0);
		return err;
	}
	/* The first wait for a program that came by no mark ends with its end, too. */
	return WIFEXITED(status) && out->instructions ? WEXITSTATUS(status) : -EPROTO;
}

int test_steps_run(char *const argv[], struct test_steps *out)
{
	pid_t pid = fork();

	*out = (struct test_steps){0};
	if (pid < 0)
		return -errno;
	if (!pid) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			_exit(errno);
		/* LeakSanitizer does not work in a traced process, and would end it as failed. */
		setenv("LSAN_OPTIONS", "detect_leaks=0", 1);
		execv(argv[0], argv);
		_exit(errno);
	}
	return trace(pid, out);
}

#else

bool test_steps_can(void)
{
	return false;
}

int test_steps_run(char *const argv[], struct test_steps *out)
{
	(void)argv;
	*out = (struct test_steps){0};
	return -ENOTSUP;
}

#endif
