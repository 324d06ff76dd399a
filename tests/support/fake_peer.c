/* SPDX-License-Identifier: MIT */
#include "test.h"
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "fake_peer.h"
#include "pci.h"
#include "vfio_user.h"

enum { BODY_MOST = 2 << 20, REPLY = 1, ERROR = 0x20, ANSWER_SECONDS = 20 };

static void put(unsigned char *to, uint64_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		to[i] = (unsigned char)(v >> (8 * i));
}

static uint64_t get(const unsigned char *from, unsigned bytes)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < bytes; i++)
		v |= (uint64_t)from[i] << (8 * i);
	return v;
}

void peer_header(
        unsigned char *to, uint16_t id, uint16_t command, uint32_t size, uint32_t flags, uint32_t error)
{
	put(to, id, 2);
	put(to + 2, command, 2);
	put(to + 4, size, 4);
	put(to + 8, flags, 4);
	put(to + 12, error, 4);
}

static void send_to(int fd, const void *bytes, size_t len, const int *fds, unsigned nfds)
{
	char control[CMSG_SPACE(16 * sizeof(int))] __attribute__((aligned(8))) = {0};
	struct iovec iov = {(void *)(uintptr_t)bytes, len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (nfds > 0) {
		struct cmsghdr *c;

		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, nfds * sizeof(int));
	}
	(void)!sendmsg(fd, &msg, MSG_NOSIGNAL);
}

void peer_send_raw(struct fake_peer *p, const void *bytes, size_t len, const int *fds, unsigned nfds)
{
	send_to(p->fd, bytes, len, fds, nfds);
}

void peer_send_own(struct fake_peer *p, const void *bytes, size_t len)
{
	int twin = atomic_load(&p->twin_fd);

	send_to(twin >= 0 ? twin : p->fd, bytes, len, NULL, 0);
}

void peer_reply(struct fake_peer *p, const struct peer_message *m, const void *body, size_t len, int fd)
{
	unsigned char bytes[PEER_HEADER + 16 + 65536];

	assert_true(len <= sizeof(bytes) - PEER_HEADER);
	peer_header(bytes, m->id, m->command, (uint32_t)(PEER_HEADER + len), REPLY, 0);
	if (len > 0)
		memcpy(bytes + PEER_HEADER, body, len);
	peer_send_raw(p, bytes, PEER_HEADER + len, &fd, fd >= 0);
}

void peer_error(struct fake_peer *p, const struct peer_message *m, uint32_t error)
{
	unsigned char bytes[PEER_HEADER];

	peer_header(bytes, m->id, m->command, PEER_HEADER, REPLY | ERROR, error);
	peer_send_raw(p, bytes, sizeof(bytes), NULL, 0);
}

/* -- The default behaviour -- */

static void do_version(struct fake_peer *p, const struct peer_message *m)
{
	static const char usual[] = "{\"capabilities\":{\"max_msg_fds\":3,\"max_data_xfer_size\":4096,"
	                            "\"pgsizes\":4096,\"max_dma_maps\":16,\"write_multiple\":false}}";
	static const char two[] = "{\"capabilities\":{\"max_msg_fds\":3,\"max_data_xfer_size\":1048576,"
	                          "\"twin_socket\":{\"supported\":true,\"fd_index\":0}}}";
	const char *json = p->json ? p->json : p->twin ? two : usual;
	int pair[2] = {-1, -1};
	size_t len = *json ? strlen(json) + 1 : 0;
	unsigned char body[4096];

	put(body, 0, 2);
	put(body + 2, p->minor, 2);
	memcpy(body + 4, json, len);
	if (p->twin && !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		atomic_store(&p->twin_fd, pair[0]);
	peer_reply(p, m, body, 4 + len, pair[1]);
	if (pair[1] >= 0)
		close(pair[1]);
}

static void do_info(struct fake_peer *p, const struct peer_message *m)
{
	unsigned char body[16];

	put(body, 16, 4);
	put(body + 4, 3, 4); /* resets, PCI */
	put(body + 8, 9, 4);
	put(body + 12, 5, 4);
	peer_reply(p, m, body, sizeof(body), -1);
}

static void do_region_info(struct fake_peer *p, const struct peer_message *m)
{
	unsigned index = (unsigned)get(m->body + 8, 4);
	unsigned char body[32 + 8 + 8 + 32] = {0};
	size_t len = 32;
	int fd = -1;

	put(body + 8, index, 4);
	put(body + 4, 3, 4);
	if (index == 0) {
		len = sizeof(body);
		fd = p->bar_fd[0];
		put(body + 4, 3 | 4 | 8, 4);
		put(body + 12, 32, 4);
		put(body + 16, PEER_BAR0_BYTES, 8);
		put(body + 32, 1, 2); /* sparse */
		put(body + 34, 1, 2);
		put(body + 40, 2, 4);
		put(body + 48, 0x4000, 8); /* not in order, as is allowed */
		put(body + 56, 0x1000, 8);
		put(body + 64, 0x2000, 8);
		put(body + 72, 0x1000, 8);
	} else if (index == 2) {
		fd = p->bar_fd[2];
		put(body + 4, 3 | 4, 4);
		put(body + 16, PEER_BAR2_BYTES, 8);
	} else if (index == 7) {
		put(body + 16, PEER_CONFIG_BYTES, 8);
	}
	put(body, len, 4);
	peer_reply(p, m, body, len, fd);
}

static void do_irq_info(struct fake_peer *p, const struct peer_message *m)
{
	static const unsigned counts[5] = {1, 0, 4, 1, 1};
	unsigned index = (unsigned)get(m->body + 8, 4);
	unsigned char body[16] = {0};

	put(body, 16, 4);
	put(body + 4, 1, 4);
	put(body + 8, index, 4);
	put(body + 12, index < 5 ? counts[index] : 0, 4);
	peer_reply(p, m, body, sizeof(body), -1);
}

static void drop_irqs(struct fake_peer *p, unsigned index, unsigned start, unsigned count)
{
	for (unsigned i = start; i < start + count; i++) {
		if (p->irq[index][i] >= 0)
			close(p->irq[index][i]);
		p->irq[index][i] = -1;
	}
}

static void do_set_irqs(struct fake_peer *p, const struct peer_message *m)
{
	uint32_t flags = (uint32_t)get(m->body + 4, 4), index = (uint32_t)get(m->body + 8, 4);
	uint32_t start = (uint32_t)get(m->body + 12, 4), count = (uint32_t)get(m->body + 16, 4);
	bool ok = m->len == 20 && get(m->body, 4) == 20 && index < 5 && start + count <= PEER_VECTORS;

	ok = ok && (m->nfds == 0 || m->nfds == count);
	if (!ok) {
		peer_error(p, m, EINVAL);
		return;
	}
	pthread_mutex_lock(&p->lock);
	if (flags == (0x1 | 0x20) && count == 0)
		drop_irqs(p, index, 0, PEER_VECTORS);
	if (flags == (0x4 | 0x20)) {
		drop_irqs(p, index, start, count);
		for (unsigned i = 0; i < m->nfds; i++)
			p->irq[index][start + i] = dup(m->fd[i]);
	}
	pthread_mutex_unlock(&p->lock);
	peer_reply(p, m, NULL, 0, -1);
}

static unsigned char *at(struct fake_peer *p, uint32_t region, uint64_t off, uint64_t count)
{
	uint64_t bytes = region == 0 ? PEER_BAR0_BYTES : region == 2 ? PEER_BAR2_BYTES : PEER_CONFIG_BYTES;

	if ((region != 0 && region != 2 && region != 7) || off > bytes || count > bytes - off)
		return NULL;
	return (region == 7 ? p->config : p->bar[region]) + off;
}

static void do_access(struct fake_peer *p, const struct peer_message *m)
{
	uint64_t off = get(m->body, 8);
	uint32_t region = (uint32_t)get(m->body + 8, 4), count = (uint32_t)get(m->body + 12, 4);
	bool write = m->command == PEER_REGION_WRITE;
	unsigned char body[16 + 4096], *mem = at(p, region, off, count);

	if (!mem || m->len != 16 + (write ? count : 0) || (!write && count > sizeof(body) - 16)) {
		peer_error(p, m, EINVAL);
		return;
	}
	memcpy(body, m->body, 16);
	if (write)
		memcpy(mem, m->body + 16, count);
	else
		memcpy(body + 16, mem, count);
	peer_reply(p, m, body, 16 + (write ? 0 : count), -1);
}

static void do_map(struct fake_peer *p, const struct peer_message *m)
{
	struct peer_map map = {
	        .flags = (uint32_t)get(m->body + 4, 4),
	        .offset = get(m->body + 8, 8),
	        .iova = get(m->body + 16, 8),
	        .bytes = get(m->body + 24, 8),
	        .fd = m->nfds == 1 ? dup(m->fd[0]) : -1,
	};
	uint32_t err = m->len == 32 && get(m->body, 4) == 32 && m->nfds <= 1 ? 0 : EINVAL;

	pthread_mutex_lock(&p->lock);
	for (unsigned i = 0; i < p->maps; i++) {
		if (map.iova < p->map[i].iova + p->map[i].bytes && p->map[i].iova < map.iova + map.bytes)
			err = EEXIST;
	}
	if (!err)
		p->map[p->maps++] = map;
	pthread_mutex_unlock(&p->lock);
	if (err && map.fd >= 0)
		close(map.fd);
	if (err)
		peer_error(p, m, err);
	else
		peer_reply(p, m, NULL, 0, -1);
}

static void do_unmap(struct fake_peer *p, const struct peer_message *m)
{
	uint64_t iova = get(m->body + 8, 8), bytes = get(m->body + 16, 8);
	bool found = false;

	pthread_mutex_lock(&p->lock);
	for (unsigned i = 0; i < p->maps && !found; i++) {
		if (p->map[i].iova != iova || p->map[i].bytes != bytes)
			continue;
		found = true;
		if (p->map[i].fd >= 0)
			close(p->map[i].fd);
		p->map[i] = p->map[--p->maps];
	}
	pthread_mutex_unlock(&p->lock);
	if (found)
		peer_reply(p, m, m->body, 24, -1);
	else
		peer_error(p, m, ENOENT);
}

static void do_reset(struct fake_peer *p, const struct peer_message *m)
{
	put(p->config + 4, 0, 2);
	pthread_mutex_lock(&p->lock);
	for (unsigned i = 0; i < 5; i++)
		drop_irqs(p, i, 0, PEER_VECTORS);
	pthread_mutex_unlock(&p->lock);
	peer_reply(p, m, NULL, 0, -1);
}

static void behave(struct fake_peer *p, const struct peer_message *m)
{
	switch (m->command) {
	case PEER_VERSION:
		do_version(p, m);
		break;
	case PEER_GET_INFO:
		do_info(p, m);
		break;
	case PEER_REGION_INFO:
		do_region_info(p, m);
		break;
	case PEER_IRQ_INFO:
		do_irq_info(p, m);
		break;
	case PEER_SET_IRQS:
		do_set_irqs(p, m);
		break;
	case PEER_REGION_READ:
	case PEER_REGION_WRITE:
		do_access(p, m);
		break;
	case PEER_DMA_MAP:
		do_map(p, m);
		break;
	case PEER_DMA_UNMAP:
		do_unmap(p, m);
		break;
	case PEER_RESET:
		do_reset(p, m);
		break;
	default:
		peer_error(p, m, ENOTSUP);
		break;
	}
}

/* -- The thread -- */

static bool receive(int fd, unsigned char *to, size_t len, struct peer_message *m)
{
	for (size_t got = 0; got < len;) {
		char control[CMSG_SPACE(16 * sizeof(int))] __attribute__((aligned(8)));
		struct iovec iov = {to + got, len - got};
		struct msghdr msg = {.msg_iov = &iov,
		        .msg_iovlen = 1,
		        .msg_control = control,
		        .msg_controllen = sizeof(control)};
		ssize_t n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);

		if (n <= 0)
			return false;
		got += (size_t)n;
		for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
			size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

			memcpy(m->fd + m->nfds, CMSG_DATA(c), count * sizeof(int));
			m->nfds += (unsigned)count;
		}
	}
	return true;
}

static void take_answer(struct fake_peer *p, const struct peer_message *m)
{
	pthread_mutex_lock(&p->lock);
	p->answer_id = m->id;
	p->answer_flags = m->flags;
	p->answer_error = m->error;
	p->answer_len = m->len < sizeof(p->answer) ? m->len : sizeof(p->answer);
	memcpy(p->answer, m->body, p->answer_len);
	p->answered = true;
	pthread_cond_broadcast(&p->wake);
	pthread_mutex_unlock(&p->lock);
}

bool peer_take(int fd, struct peer_message *m, void *body, size_t room)
{
	unsigned char header[PEER_HEADER];

	*m = (struct peer_message){.body = body};
	if (!receive(fd, header, sizeof(header), m))
		return false;
	m->id = (uint16_t)get(header, 2);
	m->command = (uint16_t)get(header + 2, 2);
	m->len = (size_t)get(header + 4, 4) - PEER_HEADER;
	m->flags = (uint32_t)get(header + 8, 4);
	m->error = (uint32_t)get(header + 12, 4);
	return m->len <= room && receive(fd, body, m->len, m);
}

static bool serve(struct fake_peer *p, unsigned char *body)
{
	struct peer_message m;
	enum peer_do what = PEER_BEHAVE;
	bool go = peer_take(p->fd, &m, body, BODY_MOST);

	if (go && (m.flags & 0xf) == REPLY) {
		take_answer(p, &m);
	} else if (go) {
		atomic_fetch_add(&p->seen[m.command % PEER_COMMANDS], 1);
		if (p->hook)
			what = p->hook(p, &m);
		if (what == PEER_BEHAVE)
			behave(p, &m);
	}
	for (unsigned i = 0; i < m.nfds; i++)
		close(m.fd[i]);
	return go && what != PEER_HANG_UP;
}

static void *run(void *arg)
{
	struct fake_peer *p = arg;
	/* Not from the heap, whose allocations tests make fail. */
	unsigned char *body =
	        mmap(NULL, BODY_MOST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	while (serve(p, body))
		;
	munmap(body, BODY_MOST);
	shutdown(p->fd, SHUT_RDWR);
	pthread_mutex_lock(&p->lock);
	p->answered = true;
	p->answer_flags = ERROR;
	p->answer_error = ENODEV;
	pthread_cond_broadcast(&p->wake);
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

static void make_bar(struct fake_peer *p, unsigned i, size_t bytes)
{
	p->bar_fd[i] = memfd_create("peer-bar", MFD_CLOEXEC);
	assert_true(p->bar_fd[i] >= 0);
	assert_int_equal(ftruncate(p->bar_fd[i], (off_t)bytes), 0);
	p->bar[i] = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, p->bar_fd[i], 0);
	assert_true(p->bar[i] != MAP_FAILED);
}

void fake_peer_start(struct fake_peer *p, int *client_fd)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	p->fd = pair[0];
	p->twin_fd = -1;
	*client_fd = pair[1];
	make_bar(p, 0, PEER_BAR0_BYTES);
	make_bar(p, 2, PEER_BAR2_BYTES);
	put(p->config, 0x52581234, 4);
	put(p->config + 8, 0x12000003, 4);
	put(p->config + 0x18, 0xc, 4); /* BAR2: 64 bits, prefetchable */
	memset(p->irq, 0xff, sizeof(p->irq));
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->wake, NULL);
	assert_int_equal(pthread_create(&p->thread, NULL, run, p), 0);
}

void fake_peer_die(struct fake_peer *p)
{
	shutdown(p->fd, SHUT_RDWR);
}

int fake_peer_give(int client_fd, unsigned deadline_ms, struct rig_pci_taking *options)
{
	options->ops = &rig_vuser_ops;
	return rig_vuser_new(client_fd, deadline_ms, &options->transport);
}

void fake_peer_stop(struct fake_peer *p)
{
	fake_peer_die(p);
	pthread_join(p->thread, NULL);
	close(p->fd);
	if (p->twin_fd >= 0)
		close(p->twin_fd);
	for (unsigned i = 0; i < 3; i += 2) {
		munmap(p->bar[i], i ? PEER_BAR2_BYTES : PEER_BAR0_BYTES);
		close(p->bar_fd[i]);
	}
	for (unsigned i = 0; i < p->maps; i++) {
		if (p->map[i].fd >= 0)
			close(p->map[i].fd);
	}
	for (unsigned i = 0; i < 5; i++)
		drop_irqs(p, i, 0, PEER_VECTORS);
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->lock);
}

/* -- The device's own commands -- */

static int await(struct fake_peer *p, uint16_t id)
{
	struct timespec end;
	int err = 0;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += ANSWER_SECONDS;
	while (!p->answered && !err)
		err = pthread_cond_timedwait(&p->wake, &p->lock, &end);
	if (err)
		return ETIMEDOUT;
	if (p->answer_flags & ERROR)
		return p->answer_error ? (int)p->answer_error : EIO;
	return p->answer_id == id ? 0 : EPROTO;
}

/* With the lock held. */
static int take_own(struct fake_peer *p, uint16_t id)
{
	struct peer_message m;

	if (!peer_take(p->twin_fd, &m, p->answer, sizeof(p->answer)))
		return ENODEV;
	p->answer_len = m.len;
	if ((m.flags & 0xf) != REPLY || m.id != id)
		return EPROTO;
	return m.flags & ERROR ? (int)m.error : 0;
}

static int dma(struct fake_peer *p, uint16_t command, uint64_t iova, const void *out, void *in, uint64_t len)
{
	static atomic_uint ids;
	uint16_t id = (uint16_t)atomic_fetch_add(&ids, 1);
	size_t data = out ? (size_t)len : 0;
	unsigned char bytes[PEER_HEADER + 16 + sizeof(p->answer)];
	int err;

	assert_true(data <= sizeof(p->answer));

	peer_header(bytes, id, command, (uint32_t)(PEER_HEADER + 16 + data), 0, 0);
	put(bytes + 16, iova, 8);
	put(bytes + 24, len, 8);
	if (data > 0)
		memcpy(bytes + 32, out, data);
	pthread_mutex_lock(&p->lock);
	p->answered = false;
	peer_send_own(p, bytes, PEER_HEADER + 16 + data);
	err = atomic_load(&p->twin_fd) >= 0 ? take_own(p, id) : await(p, id);
	if (!err && (p->answer_len != 16 + (in ? len : 0) || memcmp(p->answer, bytes + 16, 16) != 0))
		err = EPROTO;
	if (!err && in)
		memcpy(in, p->answer + 16, len);
	pthread_mutex_unlock(&p->lock);
	return err;
}

int peer_dma_read(struct fake_peer *p, uint64_t iova, void *buf, uint64_t len)
{
	return dma(p, PEER_DMA_READ, iova, NULL, buf, len);
}

int peer_dma_write(struct fake_peer *p, uint64_t iova, const void *buf, uint64_t len)
{
	return dma(p, PEER_DMA_WRITE, iova, buf, NULL, len);
}
