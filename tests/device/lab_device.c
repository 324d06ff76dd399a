/* SPDX-License-Identifier: MIT */
#include "lab_device.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	int least; /* arguments */
	void (*run)(char **argument);
	const char *arguments;
} checks[] = {
        {"works", 1, check_works, "DEVICE: opens, runs a kernel, closes"},
        {"cycle", 2, check_cycle, "DEVICE N: does that N times, and holds as much as before"},
        {"endless", 1, check_endless, "DEVICE: prints \"running\", and runs until it is killed"},
        {"lost", 3, check_lost,
                "DEVICE again|gone COMMAND [WORDS]: the command, run while the device works, loses it, in "
                "these "
                "words"},
        {"leaves", 2, check_leaves,
                "DEVICE COMMAND [WORDS]: the same, but afterwards it only waits to be killed"},
        {"signalled", 2, check_signalled, "DEVICE error|request: the kernel's message loses the device"},
        {"sleeper", 1, check_sleeper, "DEVICE: an interrupt comes while a program waits"},
        {"quiet", 1, check_quiet, "DEVICE: submit and poll call nobody"},
        {"pair", 2, check_pair, "DEVICE DEVICE [COMMAND]: both work, the loss of the first leaves the other"},
        {"outside", 2, check_outside,
                "DEVICE TRANSPORT: the IOMMU refuses, and the device's fault is reported"},
        {"many", 3, check_many, "DEVICE N WORDS: more than N mappings are refused, in these words"},
        {"edu", 1, check_edu, "EDU: it copies and computes"},
        {"beside", 2, check_edu_beside,
                "DEVICE EDU: edu copies and computes while the board uses addresses beyond edu's"},
        {"arena", 1, check_arena, "DEVICE: 1 GiB of pinned memory, in calls and bytes"},
        {"claim", 1, check_claim, "FILE: claims a disk as who mounts it does, says so, and waits"},
        {"intx", 2, check_intx, "ADDRESS TRANSPORT: edu interrupts by a line, once an unmask"},
        {"hot", 5, check_hot,
                "ADDRESS ADDRESS TRANSPORT UNBIND BIND: a reset that hits both functions needs both"},
        {"group", 2, check_group,
                "DEVICE DEVICE COMMAND: two functions of a group have one address space, and one resets"},
        {"churn", 3, check_churn, "DEVICE DEVICE N: a thread each opens and closes it N times"},
        {"spares", 2, check_spares, "EDU EDU: opening and closing the second leaves the first alone"},
        {"astray", 1, check_astray,
                "DEVICE: whose first copy writes outside of the maps: it is lost, and opens again"},
        {"peer", 2, check_peer, "DEVICE DEVICE: the second's engine writes into the first's memory"},
        {"no_peer", 2, check_no_peer, "DEVICE DEVICE: it cannot, and is told what the kernel lacks"},
        {"lender", 2, check_lender, "DEVICE DEVICE: the first hangs and is lost, the second works on"},
        {"dmabuf", 1, check_dmabuf, "DEVICE,dma=dmabuf: its dma-bufs are taken by iommufd, and keep memory"},
        {"no_dmabuf", 1, check_no_dmabuf, "DEVICE,dma=dmabuf: it has none, and says why"},
};

int main(int argc, char **argv)
{
	size_t i, n = sizeof(checks) / sizeof(checks[0]);

	/* In the order of what goes to standard error. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 0; i < n && argc > 1; i++)
		if (!strcmp(checks[i].name, argv[1]) && argc - 2 >= checks[i].least) {
			checks[i].run(argv + 2);
			return 0;
		}
	for (i = 0; i < n; i++)
		fprintf(stderr, "lab_device %s %s\n", checks[i].name, checks[i].arguments);
	return 2;
}
