/* SPDX-License-Identifier: MIT */
/* Memory that the device reaches, and what it does not reach. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lab_device.h"
#include "raw.h"
#include "rig_edu.h"

#define PAGE          4096u
#define MAX_IOAS      16u
#define EDU_BYTES     4096u
#define PEER_BYTES    65536u
#define MARK          0xA5
#define EDU_ROUNDS    4
#define EDU_END       (UINT64_C(1) << 28) /* of what its engine addresses */
#define TEN_FACTORIAL 3628800u
/* System memory in the board's address space, src/board/rvx1's layout: this plus the bus address. */
#define SYSTEM_VA (UINT64_C(64) << 40)

struct ids_params {
	uint64_t out;
	uint32_t capacity;
};

static void *pages(size_t bytes)
{
	void *host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	lab_check(host != MAP_FAILED, "the program gets memory");
	memset(host, 0, bytes);
	return host;
}

/* The library's container or iommufd. */
static int container_of_library(const char *node)
{
	int fd = lab_descriptor(node);

	if (fd < 0)
		lab_fail("the library has no descriptor of %s", node);
	return fd;
}

/* Takes a page from the device behind the library's back. */
static void unmap(enum raw_transport transport, uint64_t iova)
{
	struct raw raw = {.transport = transport};

	raw.container = container_of_library(transport == RAW_IOMMUFD ? "/dev/iommu" : "/dev/vfio/vfio");
	if (transport == RAW_IOMMUFD)
		lab_check(raw_unmap_any(&raw, MAX_IOAS, iova, PAGE),
		        "an address space of the library's has the page");
	else
		raw_unmap(&raw, iova, PAGE);
}

/* Work writes to a bus address that the IOMMU no longer maps: the device is lost, its fault is the reason,
   and the page is as it was. argument[1]: the transport. */
void check_outside(char **argument)
{
	const struct ids_params params = {.capacity = 1};
	const char *reason = "";
	struct rig_device *device = lab_open(argument[0]);
	uint32_t *host = pages(PAGE);
	struct rig_buffer *buffer;
	struct lab_work work;

	lab_must(rig_buffer_of_host(device, host, PAGE, &buffer), "buffer of host memory");
	lab_check(rig_buffer_address(buffer) >= SYSTEM_VA, "host memory is where the port puts it");
	lab_work_make(&work, device, "ids", &params, sizeof(params), buffer, 1, 1);
	lab_must(rig_wait(lab_work_submit(&work)), "the launch while the page is mapped");
	lab_check(__atomic_exchange_n(&host[15], 0, __ATOMIC_ACQ_REL) != 0, "the launch writes host memory");

	unmap(raw_transport_of(argument[1]), rig_buffer_address(buffer) - SYSTEM_VA);
	lab_check(rig_wait(lab_work_submit(&work)) == RIG_LOST,
	        "a launch that writes outside of the maps loses the device");
	rig_lost(device, &reason);
	printf("lost: %s\n", reason);
	lab_check(strstr(reason, "system memory did not answer"), "the reason is the fault");
	lab_check(__atomic_load_n(&host[15], __ATOMIC_ACQUIRE) == 0, "the page is as it was");
	lab_work_end(&work);
	rig_buffer_put(buffer);
	lab_close(device);
	/* Another open maps and works. */
	check_works(argument);
}

/* The device's engine writes where nothing is mapped (rvx1-model --fault dma-unmapped): the IOMMU refuses it,
   the device reports that, and the driver. */
void check_astray(char **argument)
{
	struct rig_device *device = lab_open(argument[0]);
	struct rig_buffer *from, *to;
	const char *reason = "";
	uint8_t *host;
	unsigned i;

	lab_must(rig_buffer_create(device, RIG_DEVICE, PAGE, &from), "board memory");
	lab_must(rig_buffer_create(device, RIG_PINNED, PAGE, &to), "pinned memory");
	host = rig_buffer_host(to);
	memset(host, MARK, PAGE);
	lab_check(rig_buffer_copy(to, 0, from, 0, PAGE) == RIG_LOST, "the copy loses the device");
	rig_lost(device, &reason);
	printf("lost: %s\n", reason);
	lab_check(strstr(reason, "system memory did not answer"), "the reason is the fault");
	for (i = 0; i < PAGE; i++)
		lab_check(host[i] == MARK, "the copy's own destination is as it was");
	rig_buffer_put(from);
	rig_buffer_put(to);
	lab_close(device);
	check_works(argument);
}

/* Maps page after page until it is refused: argument[1] is the most that can be, argument[2] what the text
   must name. The device goes on. */
void check_many(char **argument)
{
	unsigned long i, most = lab_number(argument[1]);
	struct rig_device *device = lab_open(argument[0]);
	/* Every second page, so that none adjoins another. */
	uint8_t *host = pages((most + 1) * 2 * PAGE);
	struct rig_buffer **buffer = calloc(most + 1, sizeof(struct rig_buffer *));
	int err = 0;

	lab_check(buffer, "the program gets memory");
	for (i = 0; !err && i <= most; i++)
		err = rig_buffer_of_host(device, host + i * 2 * PAGE, PAGE, &buffer[i]);
	lab_check(err, "more mappings than the limit are refused");
	printf("%lu pages were mapped, then %d: %s\n", i - 1, err, rig_error());
	lab_check(strstr(rig_error(), argument[2]), "the text names the limit");
	for (i = 0; i <= most; i++)
		rig_buffer_put(buffer[i]);
	lab_works(device);
	lab_close(device);
	free(buffer);
}

void lab_edu_copies(struct rig_device *edu, unsigned round)
{
	uint8_t out[EDU_BYTES], in[EDU_BYTES];
	struct rig_buffer *buffer;
	size_t i;

	for (i = 0; i < sizeof(out); i++)
		out[i] = (uint8_t)(i * 7 + i / 256 + round);
	memset(in, 0, sizeof(in));
	lab_must(rig_buffer_create(edu, RIG_DEVICE, sizeof(out), &buffer), "edu's buffer");
	lab_must(rig_buffer_write(buffer, 0, out, sizeof(out)), "a copy into edu");
	lab_must(rig_buffer_read(buffer, 0, in, sizeof(in)), "a copy out of edu");
	lab_check(!memcmp(in, out, sizeof(in)), "what edu gives back is what it got");
	rig_buffer_put(buffer);
}

static void factorial(struct rig_device *edu)
{
	uint32_t words[RIG_EDU_REQUEST_WORDS] = {RIG_EDU_FACTORIAL, 10};
	struct rig_work part = {
	        .kind = RIG_WORDS, .u.words = {.words = words, .count = RIG_EDU_REQUEST_WORDS}};
	struct rig_fixed fixed = {.access = RIG_WRITE};
	const struct rig_description description = {
	        .version = RIG_EDGE_VERSION, .parts = &part, .nparts = 1, .fixed = &fixed, .nfixed = 1};
	struct rig_submission *submission;
	struct rig_point point;
	uint32_t answer = 0;

	lab_must(rig_buffer_create(edu, RIG_PINNED, sizeof(answer), &fixed.buffer), "pinned buffer");
	lab_check(rig_buffer_address(fixed.buffer) < EDU_END, "edu's memory is where its engine reaches");
	words[2] = (uint32_t)rig_buffer_address(fixed.buffer);
	lab_must(rig_submission_make(edu, &description, &submission), "words");
	lab_must(rig_submit(submission, NULL, NULL, 0, &point), "submit");
	lab_must(rig_wait(point), "wait");
	lab_must(rig_buffer_read(fixed.buffer, 0, &answer, sizeof(answer)), "read");
	lab_check(answer == TEN_FACTORIAL, "10! is 3628800");
	rig_submission_put(submission);
	rig_buffer_put(fixed.buffer);
}

void check_edu(char **argument)
{
	struct rig_device *edu = lab_open(argument[0]);
	unsigned i;

	for (i = 0; i < EDU_ROUNDS; i++)
		lab_edu_copies(edu, i);
	factorial(edu);
	lab_close(edu);
}

/* Two boards of one process, each with the addresses that its mask allows: argument[0] the RVX-1, argument[1]
 * edu. */
void check_edu_beside(char **argument)
{
	struct rig_device *board = lab_open(argument[0]), *edu = lab_open(argument[1]);
	struct rig_buffer *high;
	unsigned i;

	lab_must(rig_buffer_of_host(board, pages(PAGE), PAGE, &high), "buffer of host memory");
	lab_check(
	        rig_buffer_address(high) - SYSTEM_VA >= EDU_END, "the board uses addresses that edu cannot");
	for (i = 0; i < EDU_ROUNDS; i++) {
		lab_edu_copies(edu, i);
		lab_works(board);
	}
	factorial(edu);
	rig_buffer_put(high);
	lab_close(edu);
	lab_works(board);
	lab_close(board);
}

/* One function's engine writes into the other's memory: argument[0] has the memory, argument[1] the
 * engine. */
void check_peer(char **argument)
{
	struct rig_device *memory = lab_open(argument[0]), *engine = lab_open(argument[1]);
	struct rig_work part = {.kind = RIG_COPY,
	        .u.copy = {.dst = {.slot = 1}, .src = {.slot = 0}, .row_bytes = PEER_BYTES, .rows = 1}};
	const struct rig_description description = {
	        .version = RIG_EDGE_VERSION, .parts = &part, .nparts = 1, .reads = 1, .writes = 1};
	static uint8_t out[PEER_BYTES], in[PEER_BYTES];
	struct rig_buffer *target, *borrowed, *source;
	struct rig_submission *submission;
	struct rig_run_args *run;
	struct rig_point point;
	size_t i;

	for (i = 0; i < sizeof(out); i++)
		out[i] = (uint8_t)(i * 5 + i / 256);
	lab_must(rig_buffer_create(memory, RIG_MAPPED, sizeof(in), &target), "the target");
	lab_must(rig_buffer_write(target, 0, in, sizeof(in)), "zeroing the target");
	lab_must(rig_buffer_borrow(engine, target, &borrowed), "borrowing the target");
	lab_must(rig_buffer_create(engine, RIG_DEVICE, sizeof(out), &source), "the source");
	lab_must(rig_buffer_write(source, 0, out, sizeof(out)), "filling the source");
	lab_must(rig_submission_make(engine, &description, &submission), "copy");
	lab_must(rig_run_make(submission, &run), "run");
	lab_must(rig_run_buffer(run, 0, source), "source");
	lab_must(rig_run_buffer(run, 1, borrowed), "borrowed target");
	lab_must(rig_submit(submission, run, NULL, 0, &point), "submit");
	lab_must(rig_wait(point), "wait");
	lab_must(rig_buffer_read(target, 0, in, sizeof(in)), "reading the target");
	lab_check(!memcmp(in, out, sizeof(in)), "the other function's memory has what the engine wrote");
	rig_run_put(run);
	rig_submission_put(submission);
	rig_buffer_put(borrowed);
	rig_buffer_put(source);
	rig_buffer_put(target);
	lab_close(engine);
	lab_close(memory);
}
