/* SPDX-License-Identifier: MIT */
/* The vfio-user client against a device process that behaves. */
#include "test.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "counters.h"
#include "fake_peer.h"
#include "log.h"
#include "pci.h"
#include "vfio_user.h"

/* Longer than any test: a reset that a test leaves unanswered must not meet it. */
enum { NEVER_MS = 600000, FORK_SECONDS = 60 };

static struct fake_peer peer;
static struct rig_pci *pci;
static struct test_counts before;
static bool with_twin;
static const struct rig_log *with_log;

static void open_with(enum peer_do (*hook)(struct fake_peer *, const struct peer_message *), const char *json)
{
	struct rig_pci_taking o = {.reset_ms = NEVER_MS, .log = with_log};
	int fd;

	test_counts_take(&before);
	memset(&peer, 0, sizeof(peer));
	peer.hook = hook;
	peer.json = json;
	peer.twin = with_twin;
	fake_peer_start(&peer, &fd);
	if (fake_peer_give(fd, 0, &o) || rig_pci_take(&pci, &o))
		fail_msg("%s", rig_error());
}

static int setup(void **state)
{
	(void)state;
	open_with(NULL, NULL);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rig_pci_close(pci);
	fake_peer_stop(&peer);
	test_counts_same(&before);
	return 0;
}

static int setup_twin(void **state)
{
	with_twin = true;
	setup(state);
	with_twin = false;
	return 0;
}

static void the_function_is_described(void **state)
{
	const struct rig_pci_info *i = rig_pci_info(pci);

	(void)state;
	assert_int_equal(i->vendor, 0x1234);
	assert_int_equal(i->device, 0x5258);
	assert_int_equal(i->class_code, 0x120000);
	assert_int_equal(i->revision, 3);
	assert_string_equal(i->transport, "vfio-user");
	assert_null(i->bdf);
	assert_int_equal(i->bar[0].bytes, PEER_BAR0_BYTES);
	assert_int_equal(i->bar[2].bytes, PEER_BAR2_BYTES);
	assert_true(i->bar[0].mappable && i->bar[2].mappable);
	assert_true(i->bar[2].wide && i->bar[2].prefetchable && !i->bar[0].wide);
	assert_true(i->resets);
	assert_int_equal(i->dma_page, 4096);
	assert_int_equal(i->dma_maps, 16);
	assert_int_equal(rig_pci_irq_count(pci, RIG_IRQ_MSIX), 4);
	assert_int_equal(rig_pci_irq_count(pci, RIG_IRQ_MSI), 0);
	assert_int_equal(rig_pci_irq_count(pci, RIG_IRQ_INTX), 1);
	assert_int_equal(atomic_load(&peer.seen[PEER_VERSION]), 1);
	assert_int_equal(atomic_load(&peer.seen[PEER_REGION_WRITE]), 0);
}

static void sparse_areas_are_memory_and_the_rest_is_messages(void **state)
{
	struct rig_win mapped, asked;
	uint64_t sent;

	(void)state;
	assert_int_equal(rig_pci_window(pci, 0, 0x4000, 0x1000, 0, &mapped), 0);
	assert_int_equal(rig_pci_window(pci, 0, 0, 0x1000, 0, &asked), 0);
	assert_non_null(rig_win_host(&mapped));
	assert_null(rig_win_host(&asked));
	sent = rig_pci_messages(pci);
	rig_win_store32(&mapped, 8, 0x11223344);
	assert_int_equal(rig_win_load32(&mapped, 8), 0x11223344);
	assert_int_equal(rig_pci_messages(pci), sent);
	assert_int_equal(peer.bar[0][0x4008], 0x44);
	rig_win_store64(&asked, 16, UINT64_C(0x8877665544332211));
	assert_int_equal(rig_pci_messages(pci), sent + 1);
	assert_int_equal(peer.bar[0][16], 0x11);
	assert_true(rig_win_load64(&asked, 16) == UINT64_C(0x8877665544332211));
	assert_int_equal(rig_win_load8(&asked, 17), 0x22);
	assert_int_equal(rig_pci_messages(pci), sent + 3);
}

static void a_long_access_is_cut_to_what_the_peer_takes(void **state)
{
	static unsigned char in[3 * 4096 + 5], out[sizeof(in)];
	struct rig_win w;
	unsigned writes = atomic_load(&peer.seen[PEER_REGION_WRITE]) + 1; /* the window's COMMAND */

	(void)state;
	assert_int_equal(rig_pci_window(pci, 2, 0, 0, RIG_WIN_MESSAGES, &w), 0);
	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (unsigned char)(i * 31 + i / 4096);
	rig_win_write(&w, 7, in, sizeof(in));
	assert_int_equal(atomic_load(&peer.seen[PEER_REGION_WRITE]), writes + 4);
	assert_memory_equal(peer.bar[2] + 7, in, sizeof(in));
	rig_win_read(&w, 7, out, sizeof(out));
	assert_memory_equal(in, out, sizeof(in));
}

static void dma_memory_goes_over_by_descriptor(void **state)
{
	struct rig_dma d;
	char *there;

	(void)state;
	assert_int_equal(rig_dma_alloc(pci, 4096, 4096, &d), 0);
	assert_int_equal(peer.maps, 1);
	assert_true(peer.map[0].fd >= 0);
	assert_int_equal(peer.map[0].flags, 3);
	assert_true(d.iova >= peer.map[0].iova && d.iova >= RIG_PCI_IOVA_BASE);
	there = mmap(NULL, peer.map[0].bytes, PROT_READ | PROT_WRITE, MAP_SHARED, peer.map[0].fd,
	        (off_t)peer.map[0].offset);
	assert_true(there != MAP_FAILED);
	strcpy(there + (d.iova - peer.map[0].iova), "seen there");
	assert_string_equal(d.host, "seen there");
	munmap(there, peer.map[0].bytes);
	rig_dma_free(pci, &d);
}

static void a_read_only_descriptor_says_so(void **state)
{
	int fd = memfd_create("t", MFD_CLOEXEC);
	struct rig_dma d;

	(void)state;
	assert_int_equal(ftruncate(fd, 8192), 0);
	assert_int_equal(rig_dma_map_fd(pci, fd, 4096, 4096, NULL, RIG_DMA_READ, &d), 0);
	assert_int_equal(peer.map[0].flags, 1);
	assert_int_equal(peer.map[0].offset, 4096);
	assert_int_equal(peer.map[0].bytes, 4096);
	assert_int_equal(peer_dma_write(&peer, d.iova, "x", 1), EACCES);
	assert_int_equal(rig_dma_unmap(pci, &d), 0);
	assert_int_equal(peer.maps, 0);
	close(fd);
}

static void memory_without_a_descriptor_is_served_by_message(void **state)
{
	unsigned char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rig_pci_stats stats;
	struct rig_dma d;
	uint64_t word = UINT64_C(0x1122334455667788);
	char buf[100];

	(void)state;
	assert_int_equal(rig_dma_map_host(pci, p, 8192, RIG_DMA_READ | RIG_DMA_WRITE, &d), 0);
	assert_int_equal(peer.map[0].fd, -1);
	assert_int_equal(peer.map[0].offset, 0);
	assert_int_equal(peer_dma_write(&peer, d.iova + 8, &word, 8), 0);
	assert_true(__atomic_load_n((uint64_t *)(void *)(p + 8), __ATOMIC_ACQUIRE) == word);
	strcpy((char *)p + 4090, "across pages");
	assert_int_equal(peer_dma_read(&peer, d.iova + 4090, buf, 13), 0);
	assert_string_equal(buf, "across pages");
	rig_pci_stats(pci, &stats);
	assert_int_equal(stats.served, 2);
	assert_int_equal(stats.refused, 0);
	assert_int_equal(rig_dma_unmap(pci, &d), 0);
	assert_int_equal(peer_dma_read(&peer, d.iova, buf, 1), EFAULT);
	munmap(p, 8192);
}

static void addresses_outside_or_forbidden_are_refused_and_not_touched(void **state)
{
	unsigned char *p = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rig_pci_stats stats;
	struct rig_dma d;
	char buf[16] = "0123456789abcde";

	(void)state;
	assert_int_equal(rig_dma_map_host(pci, p + 4096, 4096, RIG_DMA_READ, &d), 0);
	assert_int_equal(peer_dma_write(&peer, d.iova, buf, 8), EACCES);
	assert_int_equal(peer_dma_read(&peer, d.iova - 1, buf, 8), EFAULT);
	assert_int_equal(peer_dma_read(&peer, d.iova + 4089, buf, 8), EFAULT);
	assert_int_equal(peer_dma_read(&peer, 0, buf, 8), EFAULT);
	assert_int_equal(peer_dma_read(&peer, UINT64_MAX, buf, 8), EFAULT);
	assert_int_equal(peer_dma_write(&peer, UINT64_MAX - 3, buf, 8), EFAULT);
	assert_int_equal(peer_dma_read(&peer, (uintptr_t)p, buf, 8), EFAULT);
	assert_int_equal(peer_dma_read(&peer, d.iova, buf, 0), 0);
	assert_string_equal(buf, "0123456789abcde");
	for (unsigned i = 0; i < 3 * 4096; i++)
		assert_int_equal(p[i], 0);
	rig_pci_stats(pci, &stats);
	assert_int_equal(stats.refused, 7);
	assert_false(rig_pci_gone(pci, NULL));
	assert_int_equal(rig_dma_unmap(pci, &d), 0);
	munmap(p, 3 * 4096);
}

static void dma_commands_without_reply_get_none(void **state)
{
	unsigned char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char m[16 + 16 + 1] = {0};
	struct rig_dma d;
	char byte;

	(void)state;
	assert_int_equal(rig_dma_map_host(pci, p, 4096, RIG_DMA_READ | RIG_DMA_WRITE, &d), 0);
	peer_header(m, 77, PEER_DMA_WRITE, sizeof(m), 0x10, 0);
	memcpy(m + 16, &d.iova, 8);
	m[24] = 1;
	m[32] = 'z';
	peer_send_raw(&peer, m, sizeof(m), NULL, 0);
	assert_int_equal(peer_dma_read(&peer, d.iova, &byte, 1), 0); /* would see the other's answer first */
	assert_int_equal(byte, 'z');
	assert_int_equal(rig_dma_unmap(pci, &d), 0);
	munmap(p, 4096);
}

static void vectors_go_over_in_messages_of_as_many_descriptors_as_fit(void **state)
{
	int ev[4];
	uint64_t one = 1, n = 0;

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		ev[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_int_equal(rig_pci_irq_enable(pci, RIG_IRQ_MSIX, 0, 4, ev), 0);
	assert_int_equal(atomic_load(&peer.seen[PEER_SET_IRQS]), 2); /* the peer takes three */
	for (unsigned i = 0; i < 4; i++) {
		assert_true(peer.irq[2][i] >= 0);
		assert_int_equal(write(peer.irq[2][i], &one, 8), 8);
		assert_int_equal(read(ev[i], &n, 8), 8);
		assert_int_equal(n, 1);
	}
	int gap[3] = {ev[0], -1, ev[2]};
	assert_int_equal(rig_pci_irq_enable(pci, RIG_IRQ_MSIX, 0, 3, gap), 0);
	assert_true(peer.irq[2][0] >= 0 && peer.irq[2][1] < 0 && peer.irq[2][2] >= 0 && peer.irq[2][3] >= 0);
	assert_int_equal(rig_pci_irq_disable(pci, RIG_IRQ_MSIX), 0);
	assert_true(peer.irq[2][0] < 0 && peer.irq[2][3] < 0);
	for (unsigned i = 0; i < 4; i++)
		close(ev[i]);
}

static void a_reset_arms_interrupts_again(void **state)
{
	int ev = eventfd(0, EFD_CLOEXEC);
	uint32_t command;

	(void)state;
	assert_int_equal(rig_pci_irq_enable(pci, RIG_IRQ_MSIX, 2, 1, &ev), 0);
	assert_int_equal(rig_pci_bus_master(pci, true), 0);
	assert_int_equal(rig_pci_reset(pci), 0);
	assert_int_equal(atomic_load(&peer.seen[PEER_RESET]), 1);
	assert_true(peer.irq[2][2] >= 0);
	assert_int_equal(rig_pci_config_read(pci, 4, 2, &command), 0);
	assert_int_equal(command, 4);
	close(ev);
}

static void giving_back_leaves_no_mapping_and_no_bus_mastering(void **state)
{
	struct rig_dma d;
	int ev;

	(void)state;
	open_with(NULL, NULL);
	ev = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(rig_dma_alloc(pci, 64, 0, &d), 0);
	assert_int_equal(rig_pci_bus_master(pci, true), 0);
	assert_int_equal(rig_pci_irq_enable(pci, RIG_IRQ_MSIX, 0, 1, &ev), 0);
	rig_pci_close(pci);
	pthread_mutex_lock(&peer.lock);
	assert_int_equal(peer.maps, 0);
	assert_int_equal(peer.irq[2][0], -1);
	pthread_mutex_unlock(&peer.lock);
	assert_int_equal(peer.config[4], 0);
	close(ev);
	fake_peer_stop(&peer);
	test_counts_same(&before);
}

static void an_error_reply_is_that_error_and_harms_nothing(void **state)
{
	unsigned char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rig_win w;

	(void)state;
	assert_int_equal(rig_pci_window(pci, 0, 0x100, 0x100, 0, &w), 0);
	pthread_mutex_lock(&peer.lock);
	peer.map[peer.maps++] = (struct peer_map){.iova = RIG_PCI_IOVA_BASE, .bytes = 4096, .fd = -1};
	pthread_mutex_unlock(&peer.lock);
	struct rig_dma d;
	assert_int_equal(rig_dma_map_host(pci, p, 4096, RIG_DMA_READ, &d), -EEXIST);
	assert_non_null(strstr(rig_error(), "DMA_MAP"));
	assert_false(rig_pci_gone(pci, NULL));
	assert_int_equal(rig_win_load32(&w, 0), 0);
	munmap(p, 4096);
}

static unsigned open_fds(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* What must hold in a child; its exit status says which did not. The peer's thread and descriptors are the
 * test's. */
static int in_child(struct rig_dma *d, unsigned fds_before)
{
	const char *why;
	struct rig_dma e;
	uint32_t v;

	if (!rig_pci_gone(pci, &why) || !strstr(why, "forked"))
		return 1;
	/* Socket, eventfd of gone, two regions, one arena, one vector. */
	if (open_fds() != fds_before - 6)
		return 2;
	if (rig_pci_config_read(pci, 0, 4, &v) != -ENODEV || rig_pci_reset(pci) != -ENODEV)
		return 3;
	if (rig_dma_alloc(pci, 64, 0, &e) != -ENODEV || rig_pci_irq_disable(pci, RIG_IRQ_MSIX) != 0)
		return 4;
	rig_dma_free(pci, d);
	rig_pci_close(pci);
	return open_fds() == fds_before - 6 ? 0 : 5;
}

static void a_child_of_fork_owns_nothing_and_the_parent_goes_on(void **state)
{
	int ev = eventfd(0, EFD_CLOEXEC), status;
	struct rig_dma d;
	unsigned fds;
	uint64_t sent;
	pid_t child;
	uint32_t v;

	(void)state;
	assert_int_equal(rig_dma_alloc(pci, 64, 0, &d), 0);
	assert_int_equal(rig_pci_irq_enable(pci, RIG_IRQ_MSIX, 0, 1, &ev), 0);
	/* The peer, a thread here, closes what it was sent after it replied: it has when it replies again. */
	assert_int_equal(rig_pci_config_read(pci, 0, 4, &v), 0);
	fds = open_fds();
	sent = rig_pci_messages(pci);
	child = fork();
	if (child == 0)
		_exit(in_child(&d, fds));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(open_fds(), fds);
	assert_false(rig_pci_gone(pci, NULL));
	assert_int_equal(rig_pci_messages(pci), sent);
	assert_int_equal(rig_pci_config_read(pci, 0, 4, &v), 0);
	assert_int_equal(v, 0x52581234);
	rig_dma_free(pci, &d);
	close(ev);
}

static atomic_bool joining, told, forked;

int __real_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result);

int __wrap_pthread_join(pthread_t thread, void **result)
{
	atomic_store(&joining, true);
	return __real_pthread_join(thread, result);
}

/* On the receiver: forks once who closes waits for this thread. */
static void fork_at_the_end(void *arg, int level, const char *text)
{
	pid_t child;

	(void)arg;
	(void)text;
	if (level != RIG_LOG_ERROR)
		return;
	atomic_store(&told, true);
	while (!atomic_load(&joining))
		sched_yield();
	child = fork();
	if (child == 0)
		_exit(0);
	atomic_store(&forked, waitpid(child, NULL, 0) == child);
}

static void what_logs_may_fork_while_another_thread_closes(void **state)
{
	static const struct rig_log log = {.fn = fork_at_the_end};

	with_log = &log;
	open_with(NULL, NULL);
	with_log = NULL;
	atomic_store(&joining, false);
	shutdown(peer.fd, SHUT_RDWR);
	while (!atomic_load(&told))
		sched_yield();
	alarm(FORK_SECONDS); /* or it would wait for ever */
	teardown(state);
	alarm(0);
	assert_true(atomic_load(&forked));
}

/* -- Two sides that both send -- */

enum { LARGE_BYTES = 1 << 20, IN_FLIGHT = 32 << 10, OWN_WRITES = 64, OWN_BYTES = 64 << 10 };

static struct rig_dma shared;

/* Asked for the configuration, the device process first sends commands of its own, more than the socket
 * holds, until when it receives nothing; a large message waits for it meanwhile. */
static enum peer_do first_its_own(struct fake_peer *p, const struct peer_message *m)
{
	static unsigned char own[PEER_HEADER + 16 + OWN_BYTES];
	int waiting = 0;

	if (m->command != PEER_REGION_READ || !p->hook_arg)
		return PEER_BEHAVE;
	p->hook_arg = NULL;
	while (waiting < IN_FLIGHT) {
		sched_yield();
		assert_int_equal(ioctl(p->fd, FIONREAD, &waiting), 0);
	}
	memcpy(own + PEER_HEADER, &shared.iova, 8);
	own[PEER_HEADER + 10] = OWN_BYTES >> 16;
	peer_header(own, 7, PEER_DMA_READ, PEER_HEADER + 16, 0, 0);
	peer_send_own(p, own, PEER_HEADER + 16);
	memset(own + PEER_HEADER + 16, 'w', OWN_BYTES);
	for (uint16_t i = 0; i < OWN_WRITES; i++) {
		peer_header(own, (uint16_t)(8 + i), PEER_DMA_WRITE, sizeof(own), 0, 0);
		peer_send_own(p, own, sizeof(own));
	}
	return PEER_BEHAVE;
}

static void *ask_config(void *arg)
{
	uint32_t v = 0;

	(void)arg;
	return (void *)(uintptr_t)(rig_pci_config_read(pci, 0, 4, &v) || v != 0x52581234);
}

static void a_peer_that_sends_before_it_receives_is_received_while_a_call_waits(void **state)
{
	static unsigned char bytes[LARGE_BYTES];
	struct rig_win w;
	pthread_t asker;
	unsigned reads;
	void *failed;

	(void)state;
	with_twin = true;
	open_with(first_its_own, NULL);
	with_twin = false;
	assert_int_equal(rig_dma_alloc(pci, OWN_BYTES, 0, &shared), 0);
	assert_int_equal(rig_pci_window(pci, 2, 0, 0, RIG_WIN_MESSAGES, &w), 0);
	reads = atomic_load(&peer.seen[PEER_REGION_READ]);
	peer.hook_arg = &peer;
	assert_int_equal(pthread_create(&asker, NULL, ask_config, NULL), 0);
	while (atomic_load(&peer.seen[PEER_REGION_READ]) == reads)
		sched_yield();
	memset(bytes, 'b', sizeof(bytes));
	rig_win_write(&w, 0, bytes, sizeof(bytes));
	pthread_join(asker, &failed);
	assert_null(failed);
	assert_false(rig_pci_gone(pci, NULL));
	assert_memory_equal(peer.bar[2], bytes, sizeof(bytes));
	assert_int_equal(((char *)shared.host)[OWN_BYTES - 1], 'w');
	rig_dma_free(pci, &shared);
	teardown(state);
}

/* -- Peers that ask for DMA while they serve a command, and take the next message for the answer -- */

enum { CALLERS = 6, CALLS = 200 };

static atomic_uint out_of_step;

/* Over the only socket, as libvfio-user. */
static enum peer_do ask_before_reply(struct fake_peer *p, const struct peer_message *m)
{
	unsigned char own[PEER_HEADER + 16] = {0}, body[256];
	struct peer_message next;

	if (m->command != PEER_REGION_READ || !p->hook_arg)
		return PEER_BEHAVE;
	peer_header(own, 9, PEER_DMA_READ, sizeof(own), 0, 0);
	memcpy(own + PEER_HEADER, &shared.iova, 8);
	own[PEER_HEADER + 8] = 8;
	peer_send_raw(p, own, sizeof(own), NULL, 0);
	if (!peer_take(p->fd, &next, body, sizeof(body)) || (next.flags & 0xf) != 1 || next.id != 9) {
		atomic_fetch_add(&out_of_step, 1);
		return PEER_HANG_UP;
	}
	return PEER_BEHAVE;
}

static enum peer_do ask_over_twin(struct fake_peer *p, const struct peer_message *m)
{
	char byte;

	if (m->command == PEER_REGION_READ && p->hook_arg && peer_dma_read(p, shared.iova, &byte, 1))
		atomic_fetch_add(&out_of_step, 1);
	return PEER_BEHAVE;
}

static void *ask_often(void *arg)
{
	uint32_t v;

	(void)arg;
	for (unsigned i = 0; i < CALLS; i++) {
		if (rig_pci_config_read(pci, 0, 4, &v) || v != 0x52581234)
			return (void *)1;
	}
	return NULL;
}

static void check_in_step(enum peer_do (*hook)(struct fake_peer *, const struct peer_message *))
{
	pthread_t caller[CALLERS];
	unsigned failures = 0;
	void *failed;

	atomic_store(&out_of_step, 0);
	assert_int_equal(rig_dma_alloc(pci, 4096, 0, &shared), 0);
	peer.hook = hook;
	peer.hook_arg = &peer;
	for (unsigned i = 0; i < CALLERS; i++)
		assert_int_equal(pthread_create(&caller[i], NULL, ask_often, NULL), 0);
	for (unsigned i = 0; i < CALLERS; i++) {
		pthread_join(caller[i], &failed);
		failures += failed != NULL;
	}
	assert_int_equal(atomic_load(&out_of_step), 0);
	assert_int_equal(failures, 0);
	rig_dma_free(pci, &shared);
}

static void a_peer_with_one_socket_gets_one_call_at_a_time(void **state)
{
	(void)state;
	check_in_step(ask_before_reply);
}

static void a_peers_own_commands_go_over_its_second_socket(void **state)
{
	struct rig_pci_stats stats;

	(void)state;
	check_in_step(ask_over_twin);
	rig_pci_stats(pci, &stats);
	assert_int_equal(stats.served, CALLERS * CALLS);
}

/* -- What it writes, and its replies -- */

static atomic_int reply_unread;

static int unread(int fd)
{
	int bytes = 0;

	(void)!ioctl(fd, SIOCOUTQ, &bytes);
	return bytes;
}

static void wait_read(int fd)
{
	while (unread(fd) > 0)
		sched_yield();
}

/* The client stands in the middle of one write when the reply and the head of another write are there. */
static enum peer_do reply_between_writes(struct fake_peer *p, const struct peer_message *m)
{
	enum { OWN = PEER_HEADER + 16 + 1, NO_REPLY = 0x10 };
	unsigned char own[2 * OWN] = {0}, body[16 + 4] = {0};
	int twin = atomic_load(&p->twin_fd);

	if (m->command != PEER_REGION_READ)
		return PEER_BEHAVE;
	for (unsigned i = 0; i < 2; i++) {
		peer_header(own + i * OWN, (uint16_t)i, PEER_DMA_WRITE, OWN, NO_REPLY, 0);
		memcpy(own + i * OWN + PEER_HEADER, &shared.iova, 8);
		own[i * OWN + PEER_HEADER + 8] = 1;
		own[i * OWN + PEER_HEADER + 16] = (unsigned char)('a' + i);
	}
	memcpy(body, m->body, 16);
	peer_send_own(p, own, PEER_HEADER);
	wait_read(twin);
	peer_reply(p, m, body, sizeof(body), -1);
	peer_send_own(p, own + PEER_HEADER, OWN);
	wait_read(twin);
	atomic_store(&reply_unread, unread(p->fd));
	peer_send_own(p, own + PEER_HEADER + OWN, OWN - PEER_HEADER);
	return PEER_DONE;
}

static void what_the_peer_writes_is_taken_before_a_reply_that_came_with_it(void **state)
{
	uint32_t v;

	(void)state;
	assert_int_equal(rig_dma_alloc(pci, 4096, 0, &shared), 0);
	peer.hook = reply_between_writes;
	assert_int_equal(rig_pci_config_read(pci, 0, 4, &v), 0);
	assert_true(atomic_load(&reply_unread) > 0);
	assert_int_equal(*(char *)shared.host, 'b');
	rig_dma_free(pci, &shared);
}

/* -- Ids of calls -- */

enum { ID_NONE = -1 };

static atomic_int held_id;
static atomic_uint taken_twice;

static enum peer_do hold_reset(struct fake_peer *p, const struct peer_message *m)
{
	(void)p;
	if (m->command == PEER_RESET) {
		atomic_store(&held_id, m->id);
		return PEER_DONE;
	}
	if (atomic_load(&held_id) == m->id)
		atomic_fetch_add(&taken_twice, 1);
	return PEER_BEHAVE;
}

static void *reset_it(void *arg)
{
	(void)arg;
	return (void *)(intptr_t)rig_pci_reset(pci);
}

static void the_id_of_a_call_that_waits_is_given_to_no_other(void **state)
{
	struct peer_message held = {.command = PEER_RESET};
	struct rig_win w;
	pthread_t waiter;
	void *err;

	(void)state;
	atomic_store(&held_id, ID_NONE);
	atomic_store(&taken_twice, 0);
	assert_int_equal(rig_pci_window(pci, 2, 0, 0, RIG_WIN_MESSAGES, &w), 0);
	peer.hook = hold_reset;
	assert_int_equal(pthread_create(&waiter, NULL, reset_it, NULL), 0);
	while (atomic_load(&held_id) == ID_NONE)
		sched_yield();
	for (unsigned i = 0; i <= UINT16_MAX; i++)
		rig_win_load32(&w, 0);
	held.id = (uint16_t)atomic_load(&held_id);
	peer.hook = NULL;
	peer_reply(&peer, &held, NULL, 0, -1);
	pthread_join(waiter, &err);
	assert_null(err);
	assert_int_equal(atomic_load(&taken_twice), 0);
}

enum { READ_MOST = 64 << 10, WRITE_MOST = 32 << 10 };

static atomic_uint most_asked;

static enum peer_do note_length(struct fake_peer *p, const struct peer_message *m)
{
	unsigned char body[16 + READ_MOST] = {0};
	uint32_t count;

	if (m->command != PEER_REGION_READ && m->command != PEER_REGION_WRITE)
		return PEER_BEHAVE;
	memcpy(body, m->body, 16);
	memcpy(&count, m->body + 12, 4);
	if (count > atomic_load(&most_asked))
		atomic_store(&most_asked, count);
	if (m->command == PEER_REGION_WRITE || count > READ_MOST)
		return PEER_BEHAVE;
	peer_reply(p, m, body, 16 + count, -1);
	return PEER_DONE;
}

static void one_read_carries_no_more_than_64_kib_and_one_write_32(void **state)
{
	static unsigned char bytes[2 * READ_MOST + 1];
	unsigned reads, writes;
	struct rig_win w;

	(void)state;
	assert_int_equal(rig_pci_window(pci, 2, 0, 0, RIG_WIN_MESSAGES, &w), 0);
	peer.hook = note_length;
	reads = atomic_load(&peer.seen[PEER_REGION_READ]);
	writes = atomic_load(&peer.seen[PEER_REGION_WRITE]);
	atomic_store(&most_asked, 0);
	rig_win_write(&w, 0, bytes, sizeof(bytes));
	assert_int_equal(atomic_load(&most_asked), WRITE_MOST);
	assert_int_equal(atomic_load(&peer.seen[PEER_REGION_WRITE]), writes + 5);
	rig_win_read(&w, 0, bytes, sizeof(bytes));
	assert_int_equal(atomic_load(&most_asked), READ_MOST);
	assert_int_equal(atomic_load(&peer.seen[PEER_REGION_READ]), reads + 3);
	assert_false(rig_pci_gone(pci, NULL));
}

/* -- Variations of the handshake -- */

static void a_peer_without_capabilities_gets_the_defaults(void **state)
{
	(void)state;
	open_with(NULL, "");
	assert_int_equal(rig_pci_info(pci)->dma_maps, 65535);
	assert_int_equal(rig_pci_info(pci)->dma_page, 4096);
	teardown(state);
}

static void a_granule_larger_than_a_page_is_kept(void **state)
{
	struct rig_dma d;
	unsigned char *p = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	open_with(NULL, "{\"capabilities\":{\"pgsizes\":2162688}}"); /* 64 KiB and 2 MiB */
	assert_int_equal(rig_pci_info(pci)->dma_page, 65536);
	assert_int_equal(rig_dma_map_host(pci, p, 4096, RIG_DMA_READ, &d), -EINVAL);
	assert_int_equal(rig_dma_alloc(pci, 1, 0, &d), 0);
	assert_int_equal(peer.map[0].bytes % 65536, 0);
	assert_int_equal(peer.map[0].iova % 65536, 0);
	munmap(p, 65536);
	teardown(state);
}

/* Every reply of the handshake in pieces of one byte. */
static enum peer_do one_byte_at_a_time(struct fake_peer *p, const struct peer_message *m)
{
	unsigned char version[16 + 4 + 3];

	if (m->command != PEER_VERSION)
		return PEER_BEHAVE;
	memset(version, 0, sizeof(version));
	peer_header(version, m->id, m->command, sizeof(version), 1, 0);
	memcpy(version + 20, "{}", 3);
	for (size_t i = 0; i < sizeof(version); i++)
		peer_send_raw(p, version + i, 1, NULL, 0);
	return PEER_DONE;
}

static void a_message_may_come_in_any_pieces(void **state)
{
	(void)state;
	open_with(one_byte_at_a_time, NULL);
	assert_int_equal(rig_pci_info(pci)->vendor, 0x1234);
	teardown(state);
}

static void a_server_at_a_path_is_connected_to(void **state)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct rig_vuser_want want = {.path = addr.sun_path, .deadline_ms = 50};
	struct rig_pci_taking o = {.begin = rig_vuser_begin, .arg = &want, .name = addr.sun_path};
	char dir[] = "/tmp/rig-test-XXXXXX";
	struct test_counts counts;

	(void)state;
	test_counts_take(&counts);
	assert_non_null(mkdtemp(dir));
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/s", dir);
	int l = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(l, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(rig_pci_take(&pci, &o), -ECONNREFUSED);
	assert_int_equal(listen(l, 1), 0);
	/* It takes the connection and says nothing. */
	assert_int_equal(rig_pci_take(&pci, &o), -ETIMEDOUT);
	assert_non_null(strstr(rig_error(), "no answer to VERSION within 50 ms"));
	assert_non_null(strstr(rig_error(), dir));
	close(l);
	unlink(addr.sun_path);
	rmdir(dir);
	test_counts_same(&counts);
}

#define ON_PEER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
#define ON_TWO(test)  cmocka_unit_test_setup_teardown(test, setup_twin, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        ON_PEER(the_function_is_described),
	        ON_PEER(sparse_areas_are_memory_and_the_rest_is_messages),
	        ON_PEER(a_long_access_is_cut_to_what_the_peer_takes),
	        ON_PEER(dma_memory_goes_over_by_descriptor),
	        ON_PEER(a_read_only_descriptor_says_so),
	        ON_PEER(memory_without_a_descriptor_is_served_by_message),
	        ON_PEER(addresses_outside_or_forbidden_are_refused_and_not_touched),
	        ON_PEER(dma_commands_without_reply_get_none),
	        ON_PEER(vectors_go_over_in_messages_of_as_many_descriptors_as_fit),
	        ON_PEER(a_reset_arms_interrupts_again),
	        cmocka_unit_test(giving_back_leaves_no_mapping_and_no_bus_mastering),
	        ON_PEER(a_child_of_fork_owns_nothing_and_the_parent_goes_on),
	        cmocka_unit_test(what_logs_may_fork_while_another_thread_closes),
	        ON_PEER(a_peer_with_one_socket_gets_one_call_at_a_time),
	        ON_TWO(a_peers_own_commands_go_over_its_second_socket),
	        ON_TWO(what_the_peer_writes_is_taken_before_a_reply_that_came_with_it),
	        ON_TWO(the_id_of_a_call_that_waits_is_given_to_no_other),
	        ON_TWO(one_read_carries_no_more_than_64_kib_and_one_write_32),
	        ON_TWO(memory_without_a_descriptor_is_served_by_message),
	        ON_PEER(an_error_reply_is_that_error_and_harms_nothing),
	        cmocka_unit_test(a_peer_that_sends_before_it_receives_is_received_while_a_call_waits),
	        cmocka_unit_test(a_peer_without_capabilities_gets_the_defaults),
	        cmocka_unit_test(a_granule_larger_than_a_page_is_kept),
	        cmocka_unit_test(a_message_may_come_in_any_pieces),
	        cmocka_unit_test(a_server_at_a_path_is_connected_to),
	};

	return cmocka_run_group_tests_name("vfio_user", tests, NULL, NULL);
}
