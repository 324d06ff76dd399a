/* SPDX-License-Identifier: MIT */
#include "rvx_client.h"

#include "vfu_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
/* cmocka wants the lines above */
#include "test.h"

#define MAX_ARGS      16u
#define CHILD_FD      3
#define DOORBELLS     (RVX1_MAX_QUEUES * RVX1_DOORBELL_PITCH)
#define LONGEST       (RVX_MSG_BYTES + 256u)
#define EXPRESS_CTRL  8u /* Device Control, from the capability */
#define HUNG_UP       (-1)
#define NOT_YET       0
#define FIRST_POINTER PCI_CAPABILITY_LIST

double rvx_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

struct rvx_config rvx_client_config(void)
{
	return (struct rvx_config){
	        .memory_bytes = RVX1_MIN_MEMORY, .aperture_bytes = RVX1_MIN_MEMORY, .queues = 2};
}

/* ---- the socket ---- */

static void send_all(struct rvx_client *c, const void *bytes, size_t len, const int *fds, size_t fd_count)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(8 * sizeof(int))];
	} control;
	const char *at = bytes;

	while (len) {
		struct iovec part = {(void *)(uintptr_t)at, len};
		struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
		if (fd_count) {
			memset(&control, 0, sizeof(control));
			message.msg_control = &control;
			message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
			struct cmsghdr *head = CMSG_FIRSTHDR(&message);
			head->cmsg_level = SOL_SOCKET;
			head->cmsg_type = SCM_RIGHTS;
			head->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
			memcpy(CMSG_DATA(head), fds, fd_count * sizeof(int));
		}
		ssize_t n = sendmsg(c->fd, &message, MSG_NOSIGNAL);
		assert_true(n > 0);
		at += n;
		len -= (size_t)n;
		fd_count = 0;
	}
}

/* Reads exactly len bytes; keeps one descriptor that comes with them. False: hung up. */
static bool recv_all(struct rvx_client *c, void *bytes, size_t len, int *fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	char *at = bytes;

	while (len) {
		struct iovec part = {at, len};
		struct msghdr message = {.msg_iov = &part,
		        .msg_iovlen = 1,
		        .msg_control = &control,
		        .msg_controllen = sizeof(control)};
		struct pollfd ready = {.fd = c->fd, .events = POLLIN};
		assert_true(poll(&ready, 1, (int)(RVX_DEADLINE_S * 1000)) == 1);
		ssize_t n = recvmsg(c->fd, &message, MSG_CMSG_CLOEXEC);
		if (n <= 0)
			return false;
		struct cmsghdr *head = CMSG_FIRSTHDR(&message);
		if (head && head->cmsg_type == SCM_RIGHTS) {
			int got;
			memcpy(&got, CMSG_DATA(head), sizeof(got));
			if (fd)
				*fd = got;
			else
				close(got);
		}
		at += n;
		len -= (size_t)n;
	}
	return true;
}

static uint8_t *dma_at(struct rvx_client *c, uint64_t iova, uint64_t count)
{
	if (iova - RVX_MSG_IOVA < RVX_MSG_BYTES && count <= RVX_MSG_BYTES - (iova - RVX_MSG_IOVA))
		return c->msg + (iova - RVX_MSG_IOVA);
	return NULL;
}

static void answer_dma(struct rvx_client *c, const struct vfu_wire_header *asked, const uint8_t *body)
{
	struct {
		struct vfu_wire_header header;
		struct vfu_wire_dma_rw rw;
	} reply;
	static uint8_t bytes[LONGEST];
	size_t data = 0;

	memcpy(&reply.rw, body, sizeof(reply.rw));
	uint8_t *at = c->mute ? NULL : dma_at(c, reply.rw.iova, reply.rw.count);
	reply.header = (struct vfu_wire_header){.id = asked->id, .cmd = asked->cmd, .flags = VFU_F_REPLY};
	if (!at) {
		reply.header.flags |= VFU_F_ERROR;
		reply.header.error = EFAULT;
	} else if (asked->cmd == VFU_CMD_DMA_READ) {
		data = reply.rw.count;
		memcpy(bytes + sizeof(reply), at, data);
		c->dma_reads++;
	} else {
		memcpy(at, body + sizeof(reply.rw), reply.rw.count);
		c->dma_writes++;
	}
	size_t len = at ? sizeof(reply) + data : sizeof(reply.header);
	reply.header.size = (uint32_t)len;
	memcpy(bytes, &reply, len < sizeof(reply) ? len : sizeof(reply));
	send_all(c, bytes, len, NULL, 0);
}

/* Takes one message. A command of the board is answered. 1: a reply is in header and body; 0: was a command;
 * -1: hung up. */
static int take(struct rvx_client *c, struct vfu_wire_header *header, uint8_t *body, int *fd)
{
	if (!recv_all(c, header, sizeof(*header), fd))
		return HUNG_UP;
	size_t len = header->size - sizeof(*header);
	assert_true(len <= LONGEST);
	if (len && !recv_all(c, body, len, fd))
		return HUNG_UP;
	if ((header->flags & VFU_F_TYPE) == VFU_F_REPLY)
		return 1;
	answer_dma(c, header, body);
	return NOT_YET;
}

bool rvx_serve(struct rvx_client *c)
{
	static uint8_t body[LONGEST];
	struct vfu_wire_header header;
	struct pollfd ready = {.fd = c->fd, .events = POLLIN};

	while (poll(&ready, 1, 0) == 1) {
		int got = take(c, &header, body, NULL);
		if (got == HUNG_UP)
			return false;
		assert_int_equal(got, NOT_YET); /* nobody asked */
	}
	return true;
}

int rvx_client_request(struct rvx_client *c, unsigned cmd, const void *body, size_t len, const int *fds,
        size_t fd_count, void *reply, size_t room, int *reply_fd)
{
	static uint8_t bytes[LONGEST];
	struct vfu_wire_header header = {
	        .id = c->next_id++, .cmd = (uint16_t)cmd, .size = (uint32_t)(sizeof(header) + len)};
	uint16_t id = header.id;
	int got;

	assert_true(len <= sizeof(bytes) - sizeof(header));
	memcpy(bytes, &header, sizeof(header));
	if (len)
		memcpy(bytes + sizeof(header), body, len);
	send_all(c, bytes, sizeof(header) + len, fds, fd_count);
	while ((got = take(c, &header, bytes, reply_fd)) == NOT_YET)
		continue;
	assert_int_equal(got, 1);
	assert_int_equal(header.id, id);
	if (header.flags & VFU_F_ERROR)
		return (int)header.error;
	if (reply)
		memcpy(reply, bytes,
		        header.size - sizeof(header) < room ? header.size - sizeof(header) : room);
	return 0;
}

/* ---- regions ---- */

void rvx_read_bytes(struct rvx_client *c, unsigned region, uint64_t off, void *to, size_t len)
{
	static uint8_t body[LONGEST];
	struct vfu_wire_region_rw rw = {.offset = off, .region = region, .count = (uint32_t)len};

	assert_int_equal(rvx_client_request(
	                         c, VFU_CMD_REGION_READ, &rw, sizeof(rw), NULL, 0, body, sizeof(body), NULL),
	        0);
	memcpy(to, body + sizeof(rw), len);
}

void rvx_write_bytes(struct rvx_client *c, unsigned region, uint64_t off, const void *from, size_t len)
{
	static uint8_t body[LONGEST];
	struct vfu_wire_region_rw rw = {.offset = off, .region = region, .count = (uint32_t)len};

	memcpy(body, &rw, sizeof(rw));
	memcpy(body + sizeof(rw), from, len);
	assert_int_equal(
	        rvx_client_request(c, VFU_CMD_REGION_WRITE, body, sizeof(rw) + len, NULL, 0, NULL, 0, NULL),
	        0);
}

uint64_t rvx_read(struct rvx_client *c, unsigned region, uint64_t off, unsigned width)
{
	uint64_t value = 0;

	rvx_read_bytes(c, region, off, &value, width);
	return value;
}

void rvx_write(struct rvx_client *c, unsigned region, uint64_t off, unsigned width, uint64_t value)
{
	rvx_write_bytes(c, region, off, &value, width);
}

uint32_t rvx_reg32(struct rvx_client *c, uint32_t off)
{
	return (uint32_t)rvx_read(c, RVX1_BAR_REGS, off, 4);
}

uint64_t rvx_reg64(struct rvx_client *c, uint32_t off)
{
	return rvx_read(c, RVX1_BAR_REGS, off, 8);
}

void rvx_set32(struct rvx_client *c, uint32_t off, uint32_t value)
{
	rvx_write(c, RVX1_BAR_REGS, off, 4, value);
}

void rvx_set64(struct rvx_client *c, uint32_t off, uint64_t value)
{
	rvx_write(c, RVX1_BAR_REGS, off, 8, value);
}

void rvx_command(struct rvx_client *c, uint16_t value)
{
	rvx_write(c, RVX_CONFIG, PCI_COMMAND, 2, value);
}

int rvx_reset_message(struct rvx_client *c)
{
	return rvx_client_request(c, VFU_CMD_DEVICE_RESET, NULL, 0, NULL, 0, NULL, 0, NULL);
}

void rvx_reset_flr(struct rvx_client *c)
{
	uint64_t at = rvx_read(c, RVX_CONFIG, FIRST_POINTER, 1);

	while (at && rvx_read(c, RVX_CONFIG, at, 1) != PCI_CAP_ID_EXP)
		at = rvx_read(c, RVX_CONFIG, at + 1, 1);
	assert_true(at != 0);
	rvx_write(c, RVX_CONFIG, at + PCI_EXP_DEVCTL, 2, PCI_EXP_DEVCTL_BCR_FLR);
}

int rvx_dma_map(struct rvx_client *c, uint64_t iova, uint64_t bytes, unsigned prot, int fd, uint64_t offset)
{
	struct vfu_wire_dma_map map = {
	        .argsz = sizeof(map), .flags = prot, .offset = offset, .iova = iova, .size = bytes};

	return rvx_client_request(c, VFU_CMD_DMA_MAP, &map, sizeof(map), &fd, fd >= 0, NULL, 0, NULL);
}

int rvx_dma_unmap(struct rvx_client *c, uint64_t iova, uint64_t bytes)
{
	struct vfu_wire_dma_unmap unmap = {.argsz = sizeof(unmap), .iova = iova, .size = bytes};

	return rvx_client_request(c, VFU_CMD_DMA_UNMAP, &unmap, sizeof(unmap), NULL, 0, NULL, 0, NULL);
}

/* ---- life ---- */

static void *serve_board(void *arg)
{
	struct rvx_client *c = arg;

	rvx_board_run(c->board, NULL, NULL);
	return NULL;
}

static void shake_hands(struct rvx_client *c)
{
	static const char json[] = "{\"capabilities\":{\"max_msg_fds\":8,\"max_data_xfer_size\":1048576}}";
	struct vfu_wire_version version = {.major = VFU_WIRE_MAJOR, .minor = VFU_WIRE_MINOR};
	uint8_t body[sizeof(version) + sizeof(json)];

	memcpy(body, &version, sizeof(version));
	memcpy(body + sizeof(version), json, sizeof(json));
	assert_int_equal(
	        rvx_client_request(c, VFU_CMD_VERSION, body, sizeof(body), NULL, 0, NULL, 0, NULL), 0);
}

static void clear(struct rvx_client *c)
{
	memset(c, 0, sizeof(*c));
	c->fd = -1;
	c->host_fd = -1;
	for (unsigned v = 0; v < RVX1_VECTORS; v++)
		c->irq[v] = -1;
}

void rvx_client_open(struct rvx_client *c, const struct rvx_config *config)
{
	int pair[2];

	clear(c);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(rvx_board_open(config, &c->board), 0);
	assert_int_equal(rvx_board_attach(c->board, pair[1]), 0);
	c->fd = pair[0];
	assert_int_equal(pthread_create(&c->thread, NULL, serve_board, c), 0);
	c->threaded = true;
	shake_hands(c);
}

static void become_model(int fd, const char *const *args)
{
	const char *argv[MAX_ARGS + 4] = {RVX_MODEL_PROGRAM, "--fd", "3"};
	unsigned n = 3;

	for (; args && *args && n < MAX_ARGS; args++)
		argv[n++] = *args;
	if (dup2(fd, CHILD_FD) < 0)
		_exit(126);
	if (fd == CHILD_FD)
		fcntl(fd, F_SETFD, 0);
	execv(RVX_MODEL_PROGRAM, (char *const *)(uintptr_t)argv);
	_exit(127);
}

void rvx_client_spawn(struct rvx_client *c, const char *const *args)
{
	int pair[2];

	clear(c);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	c->pid = fork();
	assert_true(c->pid >= 0);
	if (!c->pid)
		become_model(pair[1], args);
	close(pair[1]);
	c->fd = pair[0];
	shake_hands(c);
}

pid_t rvx_server_spawn(const char *const *args)
{
	const char *argv[MAX_ARGS + 2] = {RVX_MODEL_PROGRAM};
	pid_t pid;

	for (unsigned n = 1; *args && n <= MAX_ARGS; args++)
		argv[n++] = *args;
	pid = fork();
	assert_true(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that is killed leaves nothing that serves */
	int null = open("/dev/null", O_RDWR);
	dup2(null, STDIN_FILENO);
	execv(RVX_MODEL_PROGRAM, (char *const *)(uintptr_t)argv);
	_exit(127);
}

void rvx_client_connect(struct rvx_client *c, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	clear(c);
	assert_true(strlen(path) < sizeof(address.sun_path));
	strcpy(address.sun_path, path);
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(c->fd >= 0);
	/* The path is there a moment before the server listens. */
	double deadline = rvx_seconds() + RVX_DEADLINE_S;
	while (connect(c->fd, (struct sockaddr *)&address, sizeof(address)))
		assert_true(errno == ECONNREFUSED && rvx_seconds() < deadline);
	shake_hands(c);
}

/* Maps [offset, offset + bytes) of a BAR. */
static uint8_t *map_bar(struct rvx_client *c, unsigned region, uint64_t offset, uint64_t bytes, int prot)
{
	struct vfu_wire_region_info info = {.argsz = 4096, .index = region};
	int fd = -1;

	assert_int_equal(rvx_client_request(c, VFU_CMD_DEVICE_GET_REGION_INFO, &info, sizeof(info), NULL, 0,
	                         &info, sizeof(info), &fd),
	        0);
	assert_true(fd >= 0);
	void *at = mmap(NULL, bytes, prot, MAP_SHARED, fd, (off_t)(info.offset + offset));
	assert_true(at != MAP_FAILED);
	close(fd);
	return at;
}

static void assign_irqs(struct rvx_client *c)
{
	struct vfu_wire_irq_set set = {
	        .argsz = sizeof(set),
	        .flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER,
	        .index = VFIO_PCI_MSIX_IRQ_INDEX,
	        .count = RVX1_VECTORS,
	};

	for (unsigned v = 0; v < RVX1_VECTORS; v++) {
		c->irq[v] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		assert_true(c->irq[v] >= 0);
	}
	assert_int_equal(rvx_client_request(c, VFU_CMD_DEVICE_SET_IRQS, &set, sizeof(set), c->irq,
	                         RVX1_VECTORS, NULL, 0, NULL),
	        0);
}

void rvx_client_map(struct rvx_client *c)
{
	rvx_command(c, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
	c->memory_bytes = rvx_reg64(c, RVX1_APERTURE_BYTES);
	c->memory = map_bar(c, RVX1_BAR_MEMORY, 0, c->memory_bytes, PROT_READ | PROT_WRITE);
	c->status = map_bar(c, RVX1_BAR_REGS, RVX1_STATUS, RVX1_STATUS_BYTES, PROT_READ);
	c->doorbells = map_bar(c, RVX1_BAR_DOORBELL, 0, DOORBELLS, PROT_READ | PROT_WRITE);
	c->host_fd = memfd_create("client", MFD_CLOEXEC);
	assert_true(c->host_fd >= 0);
	assert_int_equal(ftruncate(c->host_fd, RVX_HOST_BYTES), 0);
	c->host = mmap(NULL, RVX_HOST_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, c->host_fd, 0);
	assert_true(c->host != MAP_FAILED);
	c->msg = calloc(1, RVX_MSG_BYTES);
	assert_non_null(c->msg);
	assert_int_equal(rvx_dma_map(c, RVX_HOST_IOVA, RVX_HOST_BYTES, 3, c->host_fd, 0), 0);
	assert_int_equal(rvx_dma_map(c, RVX_MSG_IOVA, RVX_MSG_BYTES, 3, -1, 0), 0);
	assign_irqs(c);
}

static void unmap(void *at, size_t bytes)
{
	if (at)
		munmap(at, bytes);
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

int rvx_server_wait(pid_t pid)
{
	int status = 0;
	double deadline = rvx_seconds() + RVX_DEADLINE_S;
	pid_t got;

	while ((got = waitpid(pid, &status, WNOHANG)) == 0 && rvx_seconds() < deadline)
		sched_yield();
	if (!got) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int rvx_client_close(struct rvx_client *c)
{
	int status = 0;

	close_fd(c->fd);
	if (c->threaded)
		pthread_join(c->thread, NULL);
	rvx_board_close(c->board);
	if (c->pid > 0)
		status = rvx_server_wait(c->pid);
	unmap(c->memory, c->memory_bytes);
	unmap(c->status, RVX1_STATUS_BYTES);
	unmap(c->doorbells, DOORBELLS);
	unmap(c->host, RVX_HOST_BYTES);
	free(c->msg);
	close_fd(c->host_fd);
	for (unsigned v = 0; v < RVX1_VECTORS; v++)
		close_fd(c->irq[v]);
	clear(c);
	return status;
}

/* ---- waits ---- */

static void check_deadline(double deadline, const char *what, uint64_t last, uint64_t wanted)
{
	if (rvx_seconds() > deadline)
		fail_msg("%s is 0x%llx after %.0f s, not 0x%llx", what, (unsigned long long)last,
		        RVX_DEADLINE_S, (unsigned long long)wanted);
	sched_yield();
}

void rvx_await_reg(struct rvx_client *c, uint32_t off, uint32_t value)
{
	double deadline = rvx_seconds() + RVX_DEADLINE_S;
	uint32_t last;

	while ((last = rvx_reg32(c, off)) != value)
		check_deadline(deadline, "register", last, value);
}

void rvx_await_word(struct rvx_client *c, const void *at, uint64_t least)
{
	double deadline = rvx_seconds() + RVX_DEADLINE_S;
	uint64_t last;

	while ((last = __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE)) < least) {
		assert_true(rvx_serve(c));
		check_deadline(deadline, "word", last, least);
	}
}

bool rvx_has_irq(struct rvx_client *c, unsigned vector)
{
	uint64_t count;

	return read(c->irq[vector], &count, sizeof(count)) == (ssize_t)sizeof(count);
}

void rvx_await_irq(struct rvx_client *c, unsigned vector)
{
	double deadline = rvx_seconds() + RVX_DEADLINE_S;

	while (!rvx_has_irq(c, vector)) {
		assert_true(rvx_serve(c));
		check_deadline(deadline, "interrupt", 0, 1);
	}
}

bool rvx_await_hangup(struct rvx_client *c)
{
	double deadline = rvx_seconds() + RVX_DEADLINE_S;

	while (rvx_seconds() < deadline) {
		if (!rvx_serve(c))
			return true;
		sched_yield();
	}
	return false;
}
