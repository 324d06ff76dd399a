/* SPDX-License-Identifier: MIT */
/* Memory of one function that another reaches, and what the kernel makes of a dma-buf of it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "kernel_abi.h"
#include "lab_device.h"

#define BYTES (64u << 10)
#define PIECE (1u << 20) /* that the rest of the memory is taken in */
#define MOST  300u       /* pieces */
#define IOVA  (UINT64_C(8) << 30)
/* System memory in the board's address space, src/board/rvx1's layout: from here on. */
#define SYSTEM_VA (UINT64_C(64) << 40)

/* ---- A peer, or why there is none ---- */

/* Without dma-bufs in the kernel a function behind iommufd borrows nothing, and is told what the kernel
   lacks: argument[0] has the memory, argument[1] the engine. */
void check_no_peer(char **argument)
{
	static const enum rig_memory kinds[] = {RIG_DEVICE, RIG_MAPPED};
	struct rig_device *memory = lab_open(argument[0]), *engine = lab_open(argument[1]);
	struct rig_buffer *target, *borrowed;

	for (unsigned i = 0; i < 2; i++) {
		lab_must(rig_buffer_create(memory, kinds[i], BYTES, &target), "the target");
		lab_check(rig_buffer_borrow(engine, target, &borrowed) == -ENOTSUP,
		        "nothing is borrowed without dma-bufs");
		printf("%s\n", rig_error());
		lab_check(strstr(rig_error(), "needs Linux 6.19 or later with CONFIG_VFIO_PCI_DMABUF and "
		                              "CONFIG_PCI_P2PDMA"),
		        "the text says what the kernel lacks");
		rig_buffer_put(target);
	}
	lab_works(memory);
	lab_works(engine);
	lab_close(engine);
	lab_close(memory);
}

/* ---- The lender's loss ---- */

static int copy(struct rig_buffer *from, struct rig_buffer *to)
{
	const struct rig_work part = {.kind = RIG_COPY,
	        .u.copy = {.dst = {.slot = 1}, .src = {.slot = 0}, .row_bytes = BYTES, .rows = 1}};
	const struct rig_description description = {
	        .version = RIG_EDGE_VERSION, .parts = &part, .nparts = 1, .reads = 1, .writes = 1};
	struct rig_submission *submission;
	struct rig_run_args *run;
	struct rig_point point;
	int answer;

	lab_must(rig_submission_make(rig_buffer_device(from), &description, &submission), "a copy");
	lab_must(rig_run_make(submission, &run), "its run");
	lab_must(rig_run_buffer(run, 0, from), "its source");
	lab_must(rig_run_buffer(run, 1, to), "its destination");
	answer = rig_submit(submission, run, NULL, 0, &point);
	if (!answer)
		answer = rig_wait(point);
	rig_run_put(run);
	rig_submission_put(submission);
	return answer;
}

/* The first function, which hangs, is lost and reset; the second borrowed its memory, is told so, and works
   on. Opened anew, the first lends again. */
void check_lender(char **argument)
{
	struct rig_device *memory = lab_open(argument[0]), *engine = lab_open(argument[1]);
	struct rig_buffer *target, *borrowed, *source;
	struct lab_work forever;
	const char *reason = "";

	lab_must(rig_buffer_create(memory, RIG_MAPPED, BYTES, &target), "the target");
	lab_must(rig_buffer_create(engine, RIG_DEVICE, BYTES, &source), "the source");
	lab_must(rig_buffer_borrow(engine, target, &borrowed), "borrowing the target");
	lab_must(copy(source, borrowed), "a copy into it");
	lab_check(rig_wait(lab_endless(&forever, memory)) == RIG_LOST, "the lender hangs and is lost");
	lab_check(copy(source, borrowed) == RIG_LOST, "a use of its memory is its loss");
	lab_check(rig_lost(memory, &reason) && !rig_lost(engine, NULL), "only the lender is lost");
	printf("lost: %s\n", reason);
	lab_works(engine);
	lab_work_end(&forever);
	rig_buffer_put(borrowed);
	rig_buffer_put(target);
	rig_device_put(memory);
	lab_works(engine);
	memory = lab_open(argument[0]);
	lab_must(rig_buffer_create(memory, RIG_MAPPED, BYTES, &target), "another target");
	lab_must(rig_buffer_borrow(engine, target, &borrowed), "borrowing that");
	lab_must(copy(source, borrowed), "a copy into that");
	rig_buffer_put(borrowed);
	rig_buffer_put(target);
	rig_buffer_put(source);
	lab_close(memory);
	lab_close(engine);
}

/* ---- Dma-bufs ---- */

static int ask(struct rig_buffer *buffer, struct rig_dma_answer *answer)
{
	*answer = (struct rig_dma_answer){.version = RIG_EDGE_VERSION};
	lab_must(rig_buffer_dma(buffer, answer), "dma");
	return (int)answer->kind;
}

/* A new iommufd that has the dma-buf mapped. */
static int import(const struct rig_dma_answer *answer)
{
	struct rig_kiommu_ioas_alloc alloc = {.size = sizeof(alloc)};
	int iommu = open("/dev/iommu", O_RDWR | O_CLOEXEC);
	struct rig_kiommu_map_file map = {.size = sizeof(map),
	        .flags = RIG_KIOMMU_FIXED | RIG_KIOMMU_READABLE | RIG_KIOMMU_WRITABLE,
	        .fd = answer->fd,
	        .start = answer->offset,
	        .bytes = BYTES,
	        .iova = IOVA};

	lab_check(iommu >= 0 && ioctl(iommu, RIG_KIOMMU_IOAS_ALLOC, &alloc) == 0, "an address space");
	map.ioas = alloc.out_id;
	if (ioctl(iommu, RIG_KIOMMU_MAP_FILE, &map) < 0)
		lab_fail("iommufd refuses the dma-buf: %s", strerror(errno));
	return iommu;
}

/* Takes pieces of that size until what comes is not board memory any more. */
static unsigned take(struct rig_device *device, uint64_t bytes, struct rig_buffer **piece, unsigned n)
{
	for (; n < MOST && rig_buffer_create(device, RIG_MAPPED, bytes, &piece[n]) == 0; n++)
		if (rig_buffer_address(piece[n]) >= SYSTEM_VA) {
			rig_buffer_put(piece[n]);
			break;
		}
	return n;
}

/* Whether a buffer that has address `at` can be had: takes all of the memory that the host sees, and gives it
   back. */
static bool is_handed_out(struct rig_device *device, uint64_t at)
{
	struct rig_buffer *piece[MOST];
	/* What is left between large pieces too. */
	unsigned n = take(device, BYTES, piece, take(device, PIECE, piece, 0));
	bool found = false;

	lab_check(n < MOST, "the memory that the host sees is taken");
	while (n) {
		uint64_t start = rig_buffer_address(piece[--n]);

		found |= at >= start && at - start < rig_buffer_bytes(piece[n]);
		rig_buffer_put(piece[n]);
	}
	rig_cache_trim(device, 0);
	return found;
}

static void import_and_free(struct rig_device *device, struct rig_buffer *buffer)
{
	uint64_t at = rig_buffer_address(buffer);
	struct rig_dma_answer one, two;
	int iommu;

	lab_check(ask(buffer, &one) == RIG_DMABUF && ask(buffer, &two) == RIG_DMABUF, "two dma-bufs");
	lab_check(
	        one.fd != two.fd && (fcntl(one.fd, F_GETFD) & FD_CLOEXEC), "two descriptors, close-on-exec");
	iommu = import(&one);
	close(one.fd);
	close(two.fd);
	rig_buffer_put(buffer);
	lab_check(!is_handed_out(device, at), "memory that an importer has is nobody else's");
	close(iommu);
	lab_check(is_handed_out(device, at), "without an importer it is handed out again");
}

/* argument[0]: a device with dma=dmabuf. */
void check_dmabuf(char **argument)
{
	struct rig_device *device = lab_open(argument[0]);
	struct rig_buffer *buffer;

	lab_must(rig_buffer_create(device, RIG_MAPPED, BYTES, &buffer), "a buffer");
	import_and_free(device, buffer);
	lab_works(device);
	lab_close(device);
}

/* The same where the kernel has none. */
void check_no_dmabuf(char **argument)
{
	struct rig_device *device = lab_open(argument[0]);
	struct rig_dma_answer answer;
	struct rig_buffer *buffer;

	lab_must(rig_buffer_create(device, RIG_MAPPED, BYTES, &buffer), "a buffer");
	lab_check(ask(buffer, &answer) == RIG_NO_DMA, "there is no dma-buf");
	printf("%s\n", answer.reason);
	lab_check(
	        strstr(answer.reason, "this kernel exports no BAR as a dma-buf"), "the kernel is the reason");
	lab_check(strstr(answer.reason, "CONFIG_VFIO_PCI_DMABUF"), "what it needs is named");
	rig_buffer_put(buffer);
	lab_works(device);
	lab_close(device);
}
