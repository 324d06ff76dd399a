/* SPDX-License-Identifier: MIT */
#ifndef RIG_DOCTOR_H
#define RIG_DOCTOR_H

/*
 * What stands between a PCI function and a program that drives it through VFIO, and the command that removes
 * it. rigctl doctor prints it; an open that fails says it of what it met (src/open/take.c).
 *
 * The answer is a function of the files below a root and of nothing else: /sys, /proc, /dev/vfio and
 * /run/rig-vfio of this machine ("") or of a captured tree (docs/doctor.md). Files are read; nothing is
 * opened that does anything, written or asked by ioctl. A file that is missing says nothing: no finding comes
 * from its absence alone, but where the absence is the point (a module that is not loaded), and then the
 * folder it should be in must be there.
 *
 * Any thread. Blocks for as long as reading files takes.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rig_severity {
	RIG_NOTE, /* to know; nothing to do */
	RIG_FIX,  /* in the way, and the finding's command removes it */
	RIG_STOP, /* in the way, and nothing that can be typed on this machine removes it */
};

enum {
	RIG_DIAGNOSIS_FINDINGS = 48,
	RIG_FINDING_FILE = 160,
	RIG_FINDING_CONTENT = 400,
	RIG_FINDING_COMMAND = 400,
};

struct rig_finding {
	const char *id; /* one word, for scripts: it does not change */
	enum rig_severity severity;
	const char *text;                  /* what is the matter, one sentence without a full stop */
	char file[RIG_FINDING_FILE];       /* the evidence: a file, without the root */
	char content[RIG_FINDING_CONTENT]; /* and what it says */
	char command[RIG_FINDING_COMMAND]; /* "" if there is none; more than one are separated by newlines */
};

struct rig_diagnosis {
	enum rig_severity verdict; /* the worst */
	unsigned count;
	struct rig_finding finding[RIG_DIAGNOSIS_FINDINGS]; /* in the table's order */
	bool cut;                                           /* there were more; the verdict knows them */
};

/* How the function is to be reached. */
enum rig_doctor_way {
	RIG_DOCTOR_ANY, /* one of iommufd and type1 is enough */
	RIG_DOCTOR_IOMMUFD,
	RIG_DOCTOR_TYPE1,
	RIG_DOCTOR_NOIOMMU,
};

/* What an attempt has shown beside the files; all zero before one. */
struct rig_doctor_seen {
	bool open;         /* the function is open, which wakes it: whatever sleeps now stays asleep */
	bool ones;         /* its configuration space answered all ones */
	bool full;         /* the kernel refused another mapping */
	bool unlocked;     /* the kernel refused to pin memory */
	bool denied;       /* opening a node answered EPERM */
	bool certain;      /* memlock: only what the kernel counts without doubt */
	uint64_t mappings; /* that there are in the function's address space */
	uint64_t pinned;   /* bytes of them */
};

struct rig_doctor_ask {
	const char *root; /* "" for this machine; without a '/' at its end */
	const char *bdf;  /* "0000:65:00.0"; NULL: the machine alone */
	uint64_t pin;     /* bytes of host memory that will be pinned for the function; 0: RIG_DOCTOR_PIN */
	unsigned mask;    /* bits of the function's DMA addresses; 0: what sysfs says, if it does */
	enum rig_doctor_way way;
	bool token;       /* the owner's token is known, and will be sent */
	const char *only; /* ids with a space between them: nothing else is looked for. NULL: everything */
	struct rig_doctor_seen seen;
	/* The name of what drives functions of this kind, NULL for nothing, and the bits of their DMA
	 * addresses, 0 if it does not say; may be NULL: then it is not said. */
	const char *(*port)(unsigned vendor, unsigned device, unsigned *mask);
};

/* A device's first arena of DMA memory, and the rings and tables in it. */
#define RIG_DOCTOR_PIN (UINT64_C(64) << 20)

/* -EINVAL: bdf is no PCI address. A function that is not there is a finding. */
int rig_doctor_examine(const struct rig_doctor_ask *ask, struct rig_diagnosis *out);

/* The findings as one line, for an error: what is the matter, the evidence, the commands. "" for nothing. */
void rig_doctor_line(const struct rig_diagnosis *diagnosis, char *line, size_t bytes);

/* "note", "fix", "stop". */
const char *rig_severity_name(enum rig_severity severity);

/* -- For who binds and unbinds -- */

/* Whether the machine works through this function: a disk of it is mounted, swapped to or part of one that
 * is, or an interface of it (or one on top of it) has addresses or a route. text then says which: one phrase.
 * What cannot be told counts as in use. */
bool rig_doctor_in_use(const char *root, const char *bdf, char *text, size_t bytes);

/* Calls each for every block device of the function, with its name below /dev, until it answers other than 0,
 * which is the answer. */
int rig_doctor_disks(const char *root, const char *bdf, int (*each)(void *arg, const char *disk), void *arg);

/* Whether a process has the function open, as far as this user may see: by the lock of kernel_sys.h,
 * or by a descriptor of its group or node. text then names the process: "4711 (rigctl)", and file the
 * evidence. */
bool rig_doctor_holder(
        const char *root, const char *bdf, char *text, size_t bytes, char *file, size_t file_bytes);

/* Calls each for every process that has a node open which the function's kernel driver made
 * (/dev/dri/card0, /dev/nvidia0), as far as this user may see, until it answers other than 0, which is
 * the answer. Such a driver waits in an unbind for the last of them, without an end. who: "4711
 * (python3)"; node: its path; file: the evidence. */
int rig_doctor_driver_holders(const char *root, const char *bdf,
        int (*each)(void *arg, const char *who, const char *node, const char *file), void *arg);

#endif
