/* SPDX-License-Identifier: MIT */
/*
 * without_memlock KIB COMMAND ...: runs the command with RLIMIT_MEMLOCK of so many KiB, and without
 * CAP_IPC_LOCK, which would exempt it.
 */
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

enum { FAILED = 126 };

int main(int argc, char **argv)
{
	struct rlimit limit;

	if (argc < 3)
		return FAILED;
	limit.rlim_cur = limit.rlim_max = strtoul(argv[1], NULL, 10) << 10;
	/* Out of the bounding set: exec of a program by root does not bring it back. */
	if (prctl(PR_CAPBSET_DROP, CAP_IPC_LOCK, 0, 0, 0) == 0 && setrlimit(RLIMIT_MEMLOCK, &limit) == 0)
		execvp(argv[2], argv + 2);
	fprintf(stderr, "without_memlock: %s\n", strerror(errno));
	return FAILED;
}
