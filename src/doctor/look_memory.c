/* SPDX-License-Identifier: MIT */
/* Memory: how much may be locked, how many mappings there may be, huge pages. */
#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bits.h"
#include "doctor_private.h"
#include "text.h"
#include "tree.h"

#define LIMITS   "/proc/self/limits"
#define STATUS   "/proc/self/status"
#define ENTRIES  RIG_TYPE1 "/parameters/dma_entry_limit"
#define NODES    "/sys/devices/system/node"
#define HUGE_ALL "/sys/kernel/mm/hugepages"

/* capabilities(7) */
#define CAP_IPC_LOCK 14u
#define KIB_SHIFT    10u

/* The kernel's own dma_entry_limit. */
#define ENTRIES_USUAL 65535u

/* Mappings beside arenas: the segments and rings that a port maps by themselves. */
#define BESIDE 16u

/* -- RLIMIT_MEMLOCK -- */

static uint64_t status_bytes(const struct rig_exam *x, const char *name)
{
	char text[RIG_FIELD];

	return rig_field(x, STATUS, name, text) ? strtoull(text, NULL, 10) << KIB_SHIFT : 0;
}

/*
 * What counts already. type1 compares what this process has locked. iommufd compares what the user has
 * pinned, of which VmPin says little: other processes are not in it, and pins that are not the user's are.
 * Only what this library pinned itself is certain.
 */
static uint64_t counted(const struct rig_exam *x)
{
	const struct rig_doctor_seen *seen = &x->ask->seen;
	uint64_t pinned = seen->pinned;

	if (x->ask->way == RIG_DOCTOR_TYPE1)
		return status_bytes(x, "VmLck:");
	if (!seen->certain && pinned < status_bytes(x, "VmPin:"))
		pinned = status_bytes(x, "VmPin:");
	return pinned + (x->ask->way == RIG_DOCTOR_ANY ? status_bytes(x, "VmLck:") : 0);
}

static uint64_t bar_bytes(const struct rig_exam *x)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; x->function && i < RIG_KSYSFS_BARS; i++)
		bytes += x->s.bar_bytes[i];
	return bytes;
}

/* Pages are pinned whole. */
static uint64_t kib(uint64_t bytes)
{
	return (bytes + (1u << KIB_SHIFT) - 1) >> KIB_SHIFT;
}

static void add_notes(const struct rig_exam *x, bool below, char *text, size_t bytes)
{
	struct rig_text t;

	rig_text_init(&t, text, bytes);
	if (!below)
		rig_text_addf(&t, "; other processes of the user count too");
	if (bar_bytes(x))
		rig_text_addf(&t, "; peers that map its BARs may be charged %" PRIu64 " KiB more",
		        kib(bar_bytes(x)));
}

void rig_look_memlock(struct rig_exam *x)
{
	uint64_t limit, have = counted(x), need = x->pin + have;
	struct rig_finding *f;
	char line[RIG_FIELD], more[128] = "";

	if (!rig_field(x, LIMITS, "Max locked memory", line) || !isdigit((unsigned char)*line) ||
	        rig_has_capability(x, CAP_IPC_LOCK))
		return;
	limit = strtoull(line, NULL, 10);
	if (limit >= need && !x->ask->seen.unlocked)
		return;
	add_notes(x, limit < need, more, sizeof(more));
	if (limit >= need)
		need += limit;
	f = rig_found(x, LIMITS,
	        "limit %" PRIu64 " KiB, needed %" PRIu64 " KiB (%" PRIu64
	        " KiB to pin for the function, %" PRIu64 " KiB that count already)%s",
	        kib(limit), kib(need), kib(x->pin), kib(have), more);
	rig_command(f,
	        "ulimit -l %" PRIu64 "   # as root in that shell, or: prlimit --memlock=%" PRIu64 " --pid $$",
	        kib(need), kib(need) << KIB_SHIFT);
	rig_command(f,
	        "# for good: \"USER - memlock %" PRIu64
	        "\" in /etc/security/limits.d/rig.conf, LimitMEMLOCK= of a service",
	        kib(need));
}

/* -- dma_entry_limit -- */

/* The kernel refused one, or will refuse some of so many. */
static void found_entries(struct rig_exam *x, const char *limit, uint64_t need)
{
	const struct rig_doctor_seen *seen = &x->ask->seen;
	uint64_t more = rig_max_u64(ENTRIES_USUAL, seen->full ? 2 * strtoull(limit, NULL, 10) : need + 1);
	struct rig_finding *f;

	if (seen->full)
		f = rig_found(x, ENTRIES, "limit %s; the address space has %" PRIu64 " mappings", limit,
		        seen->mappings);
	else
		f = rig_found(x, ENTRIES,
		        "limit %s, needed about %" PRIu64 " (one each %" PRIu64 " MiB, and %u)", limit, need,
		        RIG_DOCTOR_PIN >> 20, BESIDE);
	rig_command(f, "echo %" PRIu64 " > " ENTRIES "   # before the function is opened", more);
}

void rig_look_entries(struct rig_exam *x)
{
	uint64_t need = (x->pin + RIG_DOCTOR_PIN - 1) / RIG_DOCTOR_PIN + BESIDE;
	char line[32];
	bool known = rig_ksysfs_line(x->root, ENTRIES, line, sizeof(line)) && isdigit((unsigned char)*line);

	if (x->ask->seen.full)
		found_entries(x, known ? line : "unknown", need);
	else if (known && strtoull(line, NULL, 10) <= need)
		found_entries(x, line, need);
}

/* -- Huge pages -- */

struct huge {
	const struct rig_exam *x;
	const char *folder;   /* of pools: one node's or the machine's */
	int node;             /* -1: the machine's */
	struct rig_text text; /* "2048 KiB: 12 of 64 free; ..." */
	uint64_t total, free;
	uint64_t here_free, else_free; /* on the function's node and the others */
};

static uint64_t count(const struct huge *h, const char *pool, const char *what)
{
	char path[PATH_MAX], line[32];

	snprintf(path, sizeof(path), "%s/%s/%s", h->folder, pool, what);
	return rig_ksysfs_line(h->x->root, path, line, sizeof(line)) ? strtoull(line, NULL, 10) : 0;
}

/* "hugepages-2048kB". */
static int add_pool(void *arg, const char *pool)
{
	struct huge *h = arg;
	uint64_t kib, total, free_now;

	if (sscanf(pool, "hugepages-%" SCNu64 "kB", &kib) != 1)
		return 0;
	total = count(h, pool, "nr_hugepages");
	free_now = count(h, pool, "free_hugepages");
	h->total += total;
	h->free += free_now;
	if (!total)
		return 0;
	rig_text_addf(&h->text, "%s", h->text.used ? "; " : "");
	if (h->node >= 0)
		rig_text_addf(&h->text, "node %d, ", h->node);
	rig_text_addf(&h->text, "%" PRIu64 " KiB: %" PRIu64 " of %" PRIu64 " free", kib, free_now, total);
	return 0;
}

static int add_node(void *arg, const char *name)
{
	struct huge *h = arg;
	char folder[PATH_MAX];
	uint64_t before = h->free;

	if (sscanf(name, "node%d", &h->node) != 1)
		return 0;
	snprintf(folder, sizeof(folder), NODES "/%s/hugepages", name);
	h->folder = folder;
	(void)rig_tree_each(h->x->root, folder, add_pool, h);
	*(h->x->function && h->node == h->x->s.numa ? &h->here_free : &h->else_free) += h->free - before;
	return 0;
}

static const char *count_huge(const struct rig_exam *x, struct huge *h, char *content, size_t bytes)
{
	*h = (struct huge){.x = x, .node = -1, .folder = HUGE_ALL};
	rig_text_init(&h->text, content, bytes);
	if (rig_tree_exists(x->root, NODES)) {
		(void)rig_tree_each(x->root, NODES, add_node, h);
		return NODES;
	}
	(void)rig_tree_each(x->root, HUGE_ALL, add_pool, h);
	return HUGE_ALL;
}

void rig_look_huge(struct rig_exam *x)
{
	char content[RIG_FINDING_CONTENT];
	struct huge h;
	const char *file = count_huge(x, &h, content, sizeof(content));

	if (h.total)
		(void)rig_found(x, file, "%s", content);
}

void rig_look_huge_none(struct rig_exam *x)
{
	char content[RIG_FINDING_CONTENT];
	struct huge h;

	(void)count_huge(x, &h, content, sizeof(content));
	if (h.total || !rig_tree_exists(x->root, HUGE_ALL))
		return;
	rig_command(rig_found(x, HUGE_ALL, "0 pages of every size"),
	        "echo %" PRIu64 " > " HUGE_ALL "/hugepages-2048kB/nr_hugepages",
	        (x->pin + (2u << 20) - 1) / (2u << 20));
}

void rig_look_huge_node(struct rig_exam *x)
{
	char content[RIG_FINDING_CONTENT];
	struct huge h;

	(void)count_huge(x, &h, content, sizeof(content));
	if (x->s.numa < 0 || h.here_free || !h.else_free)
		return;
	rig_command(rig_found(x, rig_attribute_path(x->s.bdf, "numa_node"), "%d; %s", x->s.numa, content),
	        "echo %" PRIu64 " > " NODES "/node%d/hugepages/hugepages-2048kB/nr_hugepages",
	        (x->pin + (2u << 20) - 1) / (2u << 20), x->s.numa);
}
