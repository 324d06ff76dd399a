/* SPDX-License-Identifier: MIT */
/* The vfio-user client against a device process that breaks the protocol, goes quiet or dies. */
#include "test.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "counters.h"
#include "fake_peer.h"
#include "pci.h"

/* Long enough that only a peer that never answers meets it. */
/* SOON_MS: also for the messages of an opening that works, on a loaded machine. */
enum { NEVER_MS = 60000, SOON_MS = 1000, GONE_MS = 20000 };

static struct fake_peer peer;
static struct rig_pci *pci;
static struct test_counts before;

typedef enum peer_do hook_fn(struct fake_peer *, const struct peer_message *);

/* What the hook acts on: the n-th message (from 1) of this command. */
static unsigned bad_command, bad_at;

static int open_err(hook_fn *hook, unsigned deadline_ms)
{
	struct rig_pci_taking o = {.name = "the device process"};
	int fd, err;

	test_counts_take(&before);
	memset(&peer, 0, sizeof(peer));
	peer.hook = hook;
	fake_peer_start(&peer, &fd);
	err = fake_peer_give(fd, deadline_ms, &o);
	return err ? err : rig_pci_take(&pci, &o);
}

static void open_ok(hook_fn *hook, unsigned deadline_ms)
{

	if (open_err(hook, deadline_ms))
		fail_msg("%s", rig_error());
}

static void finish(void)
{
	rig_pci_close(pci);
	fake_peer_stop(&peer);
	test_counts_same(&before);
}

static bool its_turn(struct fake_peer *p, const struct peer_message *m)
{
	return m->command == bad_command && atomic_load(&p->seen[m->command]) == bad_at;
}

/* -- Opening fails cleanly whatever message goes wrong, and how -- */

static enum peer_do hang_up(struct fake_peer *p, const struct peer_message *m)
{
	return its_turn(p, m) ? PEER_HANG_UP : PEER_BEHAVE;
}

static enum peer_do answer_error(struct fake_peer *p, const struct peer_message *m)
{
	if (!its_turn(p, m))
		return PEER_BEHAVE;
	peer_error(p, m, EIO);
	return PEER_DONE;
}

static enum peer_do answer_short(struct fake_peer *p, const struct peer_message *m)
{
	if (!its_turn(p, m))
		return PEER_BEHAVE;
	peer_reply(p, m, "\1\2\3", 3, -1);
	return PEER_DONE;
}

static enum peer_do answer_long(struct fake_peer *p, const struct peer_message *m)
{
	static const char much[8193];

	if (!its_turn(p, m))
		return PEER_BEHAVE;
	/* One more than the longest answer that is asked for, a region's info. */
	peer_reply(p, m, much, sizeof(much), -1);
	return PEER_DONE;
}

static enum peer_do answer_with_descriptors(struct fake_peer *p, const struct peer_message *m)
{
	unsigned char h[16];
	int fds[16];

	if (!its_turn(p, m))
		return PEER_BEHAVE;
	for (unsigned i = 0; i < 16; i++)
		fds[i] = p->bar_fd[0];
	peer_header(h, m->id, m->command, 16, 1, 0);
	peer_send_raw(p, h, 16, fds, 16);
	return PEER_DONE;
}

static enum peer_do answer_another(struct fake_peer *p, const struct peer_message *m)
{
	struct peer_message other = *m;

	if (!its_turn(p, m))
		return PEER_BEHAVE;
	other.id++;
	peer_reply(p, &other, NULL, 0, -1);
	return PEER_DONE;
}

static enum peer_do answer_other_command(struct fake_peer *p, const struct peer_message *m)
{
	struct peer_message other = *m;

	if (!its_turn(p, m))
		return PEER_BEHAVE;
	other.command = m->command == PEER_RESET ? PEER_VERSION : PEER_RESET;
	peer_reply(p, &other, NULL, 0, -1);
	return PEER_DONE;
}

static enum peer_do answer_nonsense_length(struct fake_peer *p, const struct peer_message *m)
{
	unsigned char h[16];

	if (!its_turn(p, m))
		return PEER_BEHAVE;
	peer_header(h, m->id, m->command, 0xfffffff0, 1, 0);
	peer_send_raw(p, h, 16, NULL, 0);
	return PEER_DONE;
}

static enum peer_do answer_half_and_die(struct fake_peer *p, const struct peer_message *m)
{
	unsigned char h[20] = {0};

	if (!its_turn(p, m))
		return PEER_BEHAVE;
	peer_header(h, m->id, m->command, 36, 1, 0);
	peer_send_raw(p, h, 20, NULL, 0);
	return PEER_HANG_UP;
}

static const unsigned opening[] = {
        PEER_VERSION, PEER_GET_INFO, PEER_REGION_INFO, PEER_IRQ_INFO, PEER_REGION_READ};

static void check_open_fails(hook_fn *hook, const char *name)
{
	for (size_t i = 0; i < sizeof(opening) / sizeof(opening[0]); i++) {
		int err;

		bad_command = opening[i];
		for (bad_at = 1;; bad_at++) {
			err = open_err(hook, NEVER_MS);
			if (!err)
				break;
			assert_null(pci);
			assert_true(err == -ENODEV || err == -EPROTO || err == -EIO);
			if (strncmp(rig_error(), "the device process: ", 20) != 0)
				fail_msg("%s at %u of %u: %s", name, bad_at, bad_command, rig_error());
			fake_peer_stop(&peer);
			test_counts_same(&before);
		}
		assert_true(bad_at > 1);
		finish();
	}
}

static void opening_fails_cleanly_if_any_answer_is_a_hang_up(void **state)
{
	(void)state;
	check_open_fails(hang_up, "hang-up");
}

static void opening_fails_cleanly_if_any_answer_is_an_error(void **state)
{
	(void)state;
	check_open_fails(answer_error, "error");
}

static void opening_fails_cleanly_if_any_answer_is_too_short(void **state)
{
	(void)state;
	check_open_fails(answer_short, "short");
}

static void opening_fails_cleanly_if_any_answer_is_too_long(void **state)
{
	(void)state;
	check_open_fails(answer_long, "long");
}

static void opening_fails_cleanly_if_any_answer_brings_too_many_descriptors(void **state)
{
	(void)state;
	check_open_fails(answer_with_descriptors, "descriptors");
}

static void opening_fails_cleanly_if_any_answer_is_to_something_else(void **state)
{
	(void)state;
	check_open_fails(answer_another, "another");
	check_open_fails(answer_other_command, "other command");
}

static void opening_fails_cleanly_if_any_answer_has_a_nonsense_length(void **state)
{
	(void)state;
	check_open_fails(answer_nonsense_length, "length");
	check_open_fails(answer_half_and_die, "half");
}

static enum peer_do silent(struct fake_peer *p, const struct peer_message *m)
{
	return its_turn(p, m) ? PEER_DONE : PEER_BEHAVE;
}

static void opening_ends_at_the_deadline_if_any_answer_stays_out(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(opening) / sizeof(opening[0]); i++) {

		bad_command = opening[i];
		bad_at = 1;
		assert_int_equal(open_err(silent, SOON_MS), -ETIMEDOUT);
		assert_non_null(strstr(rig_error(), "no answer to"));
		fake_peer_stop(&peer);
		test_counts_same(&before);
	}
}

/* -- The second socket -- */

enum { NO_FD, ONE_SOCKET, TWO_SOCKETS, A_FILE, A_DATAGRAM };

static const struct twin_case {
	const char *caps;
	int fds;
	const char *reason;
} * twin_case;

#define TWIN(text) "{\"capabilities\":{\"twin_socket\":" text "}}"
#define YES        TWIN("{\"supported\":true,\"fd_index\":0}")

static enum peer_do answer_with_twin(struct fake_peer *p, const struct peer_message *m)
{
	unsigned char bytes[256] = {0};
	size_t json = strlen(twin_case->caps) + 1, len = PEER_HEADER + 4 + json;
	int pair[2], fds[2];

	if (m->command != PEER_VERSION)
		return PEER_BEHAVE;
	assert_int_equal(
	        socketpair(AF_UNIX, twin_case->fds == A_DATAGRAM ? SOCK_DGRAM : SOCK_STREAM, 0, pair), 0);
	fds[0] = twin_case->fds == A_FILE ? p->bar_fd[0] : pair[0];
	fds[1] = pair[1];
	peer_header(bytes, m->id, m->command, (uint32_t)len, 1, 0);
	memcpy(bytes + PEER_HEADER + 4, twin_case->caps, json);
	peer_send_raw(p, bytes, len, fds,
	        twin_case->fds == NO_FD         ? 0
	        : twin_case->fds == TWO_SOCKETS ? 2
	                                        : 1);
	close(pair[0]);
	if (twin_case->fds == TWO_SOCKETS)
		close(pair[1]);
	else
		atomic_store(&p->twin_fd, pair[1]);
	return PEER_DONE;
}

static void a_second_socket_that_is_not_as_it_is_said_ends_the_opening(void **state)
{
	static const struct twin_case cases[] = {
	        {YES, NO_FD, "no descriptor of the second socket"},
	        {YES, TWO_SOCKETS, "more than one descriptor"},
	        {YES, A_FILE, "none of its kind"},
	        {YES, A_DATAGRAM, "none of its kind"},
	        {"{}", ONE_SOCKET, "did not announce"},
	        {TWIN("{\"supported\":false}"), ONE_SOCKET, "did not announce"},
	        {TWIN("{\"supported\":true,\"fd_index\":1}"), ONE_SOCKET, "which descriptor"},
	        {TWIN("{\"supported\":true}"), ONE_SOCKET, "which descriptor"},
	        {TWIN("{\"supported\":1,\"fd_index\":0}"), ONE_SOCKET, "which descriptor"},
	        {TWIN("true"), ONE_SOCKET, "which descriptor"},
	};

	(void)state;
	for (twin_case = cases; twin_case < cases + sizeof(cases) / sizeof(cases[0]); twin_case++) {
		assert_true(open_err(answer_with_twin, NEVER_MS) < 0);
		if (!strstr(rig_error(), twin_case->reason))
			fail_msg("%s: %s", twin_case->caps, rig_error());
		fake_peer_stop(&peer);
		test_counts_same(&before);
	}
}

static void open_twin(unsigned deadline_ms)
{
	static const struct twin_case good = {YES, ONE_SOCKET, NULL};

	twin_case = &good;
	open_ok(answer_with_twin, deadline_ms);
}

static enum peer_do newer(struct fake_peer *p, const struct peer_message *m)
{
	if (m->command != PEER_VERSION)
		return PEER_BEHAVE;
	peer_reply(p, m, bad_at ? "\0\0\7\0" : "\1\0\0\0", 4, -1);
	return PEER_DONE;
}

static void another_protocol_version_is_named(void **state)
{

	(void)state;
	bad_at = 0;
	assert_int_equal(open_err(newer, NEVER_MS), -EPROTO);
	assert_non_null(strstr(rig_error(), "speaks 1.0"));
	fake_peer_stop(&peer);
	bad_at = 1;
	assert_int_equal(open_err(newer, NEVER_MS), -EPROTO);
	assert_non_null(strstr(rig_error(), "speaks 0.7"));
	fake_peer_stop(&peer);
}

static enum peer_do unexpected_descriptor(struct fake_peer *p, const struct peer_message *m)
{
	if (m->command != PEER_SET_IRQS)
		return PEER_BEHAVE;
	peer_reply(p, m, NULL, 0, p->bar_fd[0]);
	return PEER_DONE;
}

static void a_descriptor_that_nobody_expects_is_closed(void **state)
{
	int ev;

	(void)state;
	open_ok(unexpected_descriptor, NEVER_MS);
	ev = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(rig_pci_irq_enable(pci, RIG_IRQ_MSIX, 0, 1, &ev), 0);
	assert_int_equal(rig_pci_irq_disable(pci, RIG_IRQ_MSIX), 0);
	close(ev);
	finish();
}

static enum peer_do short_file(struct fake_peer *p, const struct peer_message *m)
{
	if (m->command == PEER_REGION_INFO && m->body[8] == 2)
		assert_int_equal(ftruncate(p->bar_fd[2], PEER_BAR2_BYTES - 1), 0);
	return PEER_BEHAVE;
}

static void an_area_beyond_the_end_of_its_file_is_refused(void **state)
{

	(void)state;
	assert_int_equal(open_err(short_file, NEVER_MS), -EPROTO);
	assert_non_null(strstr(rig_error(), "beyond the end of its file"));
	fake_peer_stop(&peer);
	test_counts_same(&before);
}

/* -- Afterwards -- */

static void wait_gone(void)
{
	struct pollfd p = {.fd = rig_pci_gone_fd(pci), .events = POLLIN};

	assert_int_equal(poll(&p, 1, GONE_MS), 1);
}

static void the_death_of_the_peer_is_noticed_while_nobody_calls(void **state)
{
	struct rig_win mapped, asked;
	const char *why;
	struct rig_dma d;
	uint64_t sent;

	(void)state;
	open_ok(NULL, NEVER_MS);
	assert_int_equal(rig_pci_window(pci, 2, 0, 0, 0, &mapped), 0);
	assert_int_equal(rig_pci_window(pci, 0, 0, 0x100, 0, &asked), 0);
	assert_int_equal(rig_dma_alloc(pci, 64, 0, &d), 0);
	fake_peer_die(&peer);
	wait_gone();
	assert_true(rig_pci_gone(pci, &why));
	assert_non_null(strstr(why, "hung up"));
	sent = rig_pci_messages(pci);
	assert_int_equal(rig_win_load32(&asked, 0), UINT32_MAX);
	assert_int_equal(rig_pci_reset(pci), -ENODEV);
	assert_int_equal(rig_pci_irq_enable(pci, RIG_IRQ_MSIX, 0, 1, &(int){0}), -ENODEV);
	assert_int_equal(rig_pci_bus_master(pci, true), -ENODEV);
	assert_int_equal(rig_pci_messages(pci), sent);
	rig_dma_free(pci, &d);
	finish();
}

static void the_death_of_the_peer_ends_a_call_in_progress(void **state)
{
	struct rig_win w;

	(void)state;
	bad_command = PEER_REGION_READ;
	bad_at = UINT32_MAX;
	open_ok(hang_up, NEVER_MS);
	assert_int_equal(rig_pci_window(pci, 0, 0, 0x100, 0, &w), 0);
	bad_at = atomic_load(&peer.seen[PEER_REGION_READ]) + 1;
	assert_int_equal(rig_win_load32(&w, 0), UINT32_MAX);
	assert_true(rig_pci_gone(pci, NULL));
	finish();
}

static void a_message_that_stays_unanswered_makes_the_function_gone(void **state)
{
	struct rig_win w;
	const char *why;

	(void)state;
	bad_command = PEER_REGION_READ;
	bad_at = UINT32_MAX;
	open_ok(silent, SOON_MS);
	assert_int_equal(rig_pci_window(pci, 0, 0, 0x100, 0, &w), 0);
	bad_at = atomic_load(&peer.seen[PEER_REGION_READ]) + 1;
	assert_int_equal(rig_win_load32(&w, 0), UINT32_MAX);
	assert_true(rig_pci_gone(pci, &why));
	assert_non_null(strstr(why, "REGION_READ"));
	finish();
}

static void a_reset_that_stays_unanswered_ends_at_its_own_deadline(void **state)
{
	struct rig_pci_taking o = {.reset_ms = SOON_MS};
	int fd;

	(void)state;
	bad_command = PEER_RESET;
	bad_at = 1;
	test_counts_take(&before);
	memset(&peer, 0, sizeof(peer));
	peer.hook = silent;
	fake_peer_start(&peer, &fd);
	assert_int_equal(fake_peer_give(fd, NEVER_MS, &o), 0);
	assert_int_equal(rig_pci_take(&pci, &o), 0);
	assert_int_equal(rig_pci_reset(pci), -ETIMEDOUT);
	assert_non_null(strstr(rig_error(), "DEVICE_RESET"));
	finish();
}

static void check_raw(const void *bytes, size_t len, const char *reason)
{
	const char *why;

	open_ok(NULL, NEVER_MS);
	peer_send_raw(&peer, bytes, len, NULL, 0);
	wait_gone();
	assert_true(rig_pci_gone(pci, &why));
	if (!strstr(why, reason))
		fail_msg("%s, not %s", why, reason);
	finish();
}

static void a_message_that_breaks_the_protocol_makes_the_function_gone(void **state)
{
	unsigned char m[32] = {0};

	(void)state;
	peer_header(m, 1, PEER_DMA_READ, 15, 0, 0);
	check_raw(m, 16, "shorter than its header");
	peer_header(m, 1, PEER_DMA_WRITE, UINT32_MAX, 0, 0);
	check_raw(m, 16, "longer than was agreed");
	peer_header(m, 1, PEER_REGION_READ, 32, 0, 0);
	check_raw(m, 32, "only we may send");
	peer_header(m, 1, 99, 16, 0, 0);
	check_raw(m, 16, "not known");
	peer_header(m, 1, PEER_REGION_READ, 16, 1, 0);
	check_raw(m, 16, "nothing that was asked");
	peer_header(m, 1, PEER_DMA_READ, 16, 0, 0);
	check_raw(m, 16, "too short");
	peer_header(m, 1, PEER_DMA_WRITE, 32, 0, 0);
	m[24] = 9;
	check_raw(m, 32, "another length");
	peer_header(m, 1, PEER_DMA_READ, 32, 0, 0);
	memset(m + 24, 0xff, 8);
	check_raw(m, 32, "more bytes than was agreed");
	peer_header(m, 1, PEER_DMA_READ, 16, 7, 0);
	check_raw(m, 16, "neither command nor reply");
}

static sigjmp_buf caught;

static void on_bus(int number)
{
	siglongjmp(caught, number);
}

/* A device process that cuts the file short of what it let us map. */
static void a_second_socket_that_ends_or_is_mixed_up_makes_the_function_gone(void **state)
{
	static const struct {
		bool own; /* sent over the second socket */
		uint16_t command;
		uint32_t flags;
		const char *reason;
	} cases[] = {
	        {true, PEER_REGION_READ, 1, "a reply over the socket of its own commands"},
	        {false, PEER_DMA_READ, 0, "a command over the socket of ours"},
	        {true, PEER_REGION_READ, 0, "a command that only we may send"},
	        {true, 0, 0, "hung up"},
	};
	unsigned char m[PEER_HEADER + 16] = {0};
	const char *why;

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		open_twin(NEVER_MS);
		peer_header(m, 1, cases[i].command, sizeof(m), cases[i].flags, 0);
		if (!cases[i].command)
			shutdown(peer.twin_fd, SHUT_RDWR);
		else if (cases[i].own)
			peer_send_own(&peer, m, sizeof(m));
		else
			peer_send_raw(&peer, m, sizeof(m), NULL, 0);
		wait_gone();
		assert_true(rig_pci_gone(pci, &why));
		assert_non_null(strstr(why, cases[i].reason));
		finish();
	}
}

/* More than any socket and all that is kept of answers hold. */
static void a_flood_over_the_second_socket_whose_answers_are_not_read_ends_at_the_deadline(void **state)
{
	static unsigned char p[64 << 10];
	unsigned char m[PEER_HEADER + 16] = {0};
	struct rig_dma d;
	const char *why;

	(void)state;
	open_twin(SOON_MS);
	assert_int_equal(rig_dma_alloc(pci, sizeof(p), 0, &d), 0);
	peer_header(m, 1, PEER_DMA_READ, sizeof(m), 0, 0);
	memcpy(m + PEER_HEADER, &d.iova, 8);
	m[PEER_HEADER + 10] = sizeof(p) >> 16;
	for (unsigned i = 0; i < 512; i++)
		peer_send_own(&peer, m, sizeof(m));
	wait_gone();
	assert_true(rig_pci_gone(pci, &why));
	assert_non_null(strstr(why, "answers it does not read"));
	rig_dma_free(pci, &d);
	finish();
}

static void a_guarded_window_that_vanishes_reads_ones_and_others_faults_pass_on(void **state)
{
	struct rig_pci_taking o = {.guard = true};
	int fd;
	struct sigaction mine = {.sa_handler = on_bus}, old;
	struct rig_win w;
	const char *why;

	(void)state;
	test_counts_take(&before);
	memset(&peer, 0, sizeof(peer));
	fake_peer_start(&peer, &fd);
	assert_int_equal(fake_peer_give(fd, 0, &o), 0);
	/* Ours is put over it, so that other faults must come here. */
	sigaction(SIGBUS, &mine, &old);
	assert_int_equal(rig_pci_take(&pci, &o), 0);
	assert_int_equal(rig_pci_window(pci, 2, 0, 0, 0, &w), 0);
	rig_win_store32(&w, 0, 7);
	assert_int_equal(ftruncate(peer.bar_fd[2], 0), 0);
	assert_int_equal(rig_win_load32(&w, 0), UINT32_MAX);
	assert_int_equal(rig_win_load64(&w, 0x5000), UINT64_MAX);
	rig_win_store32(&w, 0x9000, 1);
	assert_true(rig_pci_gone(pci, &why));
	assert_non_null(strstr(why, "vanished"));
	wait_gone();
	if (sigsetjmp(caught, 1) == 0) {
		peer.bar[2][0] = 1; /* the peer's own mapping */
		fail_msg("a fault elsewhere was swallowed");
	}
	sigaction(SIGBUS, &old, NULL);
	finish();
}

/* What comes to lie there in a child, where the window is not: memory of a file that is too short. */
static int touch_in_child(void *at)
{
	enum { SWALLOWED, PASSED_ON, NOT_MAPPED };
	int fd = memfd_create("short", MFD_CLOEXEC);
	unsigned char *mine = mmap(at, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);

	if (mine != at)
		return NOT_MAPPED;
	if (sigsetjmp(caught, 1))
		return PASSED_ON;
	__atomic_store_n(mine, 1, __ATOMIC_SEQ_CST);
	return SWALLOWED;
}

static void a_child_of_fork_guards_nothing_of_its_parents(void **state)
{
	struct rig_pci_taking o = {.guard = true};
	int fd;
	struct sigaction mine = {.sa_handler = on_bus}, old;
	struct rig_win w;
	int status;
	pid_t child;

	(void)state;
	test_counts_take(&before);
	memset(&peer, 0, sizeof(peer));
	fake_peer_start(&peer, &fd);
	assert_int_equal(fake_peer_give(fd, 0, &o), 0);
	sigaction(SIGBUS, &mine, &old);
	assert_int_equal(rig_pci_take(&pci, &o), 0);
	assert_int_equal(rig_pci_window(pci, 2, 0, 0, 0, &w), 0);
	child = fork();
	if (!child)
		_exit(touch_in_child(rig_win_host(&w)));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 1);
	sigaction(SIGBUS, &old, NULL);
	finish();
}

/* Keeps asking as the device while another thread of the client calls. */
static void *ask(void *arg)
{
	uint64_t iova = *(uint64_t *)arg, word;

	for (unsigned i = 0; i < 300; i++) {
		if (peer_dma_write(&peer, iova, &(uint64_t){i}, 8) || peer_dma_read(&peer, iova, &word, 8))
			return arg;
		if (word != i)
			return arg;
	}
	return NULL;
}

static void dma_is_served_while_calls_are_in_progress(void **state)
{
	struct rig_win w;
	struct rig_dma d;
	pthread_t thread;
	void *failed;

	(void)state;
	open_ok(NULL, NEVER_MS);
	assert_int_equal(rig_pci_window(pci, 0, 0, 0x100, 0, &w), 0);
	assert_int_equal(rig_dma_alloc(pci, 64, 0, &d), 0);
	assert_int_equal(pthread_create(&thread, NULL, ask, &d.iova), 0);
	for (uint32_t i = 0; i < 300; i++) {
		rig_win_store32(&w, 0, i);
		assert_int_equal(rig_win_load32(&w, 0), i);
	}
	pthread_join(thread, &failed);
	assert_null(failed);
	finish();
}

static void *hammer(void *arg)
{
	const struct rig_win *w = arg;
	static atomic_uint ids;
	unsigned me = atomic_fetch_add(&ids, 1);

	for (uint32_t i = 0; i < 200; i++) {
		rig_win_store32(w, me * 4, i);
		if (rig_win_load32(w, me * 4) != i)
			return arg;
	}
	return NULL;
}

static void several_threads_each_get_their_own_answers(void **state)
{
	pthread_t thread[4];
	struct rig_win w;
	void *failed;

	(void)state;
	open_ok(NULL, NEVER_MS);
	assert_int_equal(rig_pci_window(pci, 0, 0, 0x100, 0, &w), 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, hammer, &w), 0);
	for (unsigned i = 0; i < 4; i++) {
		pthread_join(thread[i], &failed);
		assert_null(failed);
	}
	finish();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(opening_fails_cleanly_if_any_answer_is_a_hang_up),
	        cmocka_unit_test(opening_fails_cleanly_if_any_answer_is_an_error),
	        cmocka_unit_test(opening_fails_cleanly_if_any_answer_is_too_short),
	        cmocka_unit_test(opening_fails_cleanly_if_any_answer_is_too_long),
	        cmocka_unit_test(opening_fails_cleanly_if_any_answer_brings_too_many_descriptors),
	        cmocka_unit_test(opening_fails_cleanly_if_any_answer_is_to_something_else),
	        cmocka_unit_test(opening_fails_cleanly_if_any_answer_has_a_nonsense_length),
	        cmocka_unit_test(opening_ends_at_the_deadline_if_any_answer_stays_out),
	        cmocka_unit_test(another_protocol_version_is_named),
	        cmocka_unit_test(a_second_socket_that_is_not_as_it_is_said_ends_the_opening),
	        cmocka_unit_test(a_second_socket_that_ends_or_is_mixed_up_makes_the_function_gone),
	        cmocka_unit_test(
	                a_flood_over_the_second_socket_whose_answers_are_not_read_ends_at_the_deadline),
	        cmocka_unit_test(a_descriptor_that_nobody_expects_is_closed),
	        cmocka_unit_test(an_area_beyond_the_end_of_its_file_is_refused),
	        cmocka_unit_test(the_death_of_the_peer_is_noticed_while_nobody_calls),
	        cmocka_unit_test(the_death_of_the_peer_ends_a_call_in_progress),
	        cmocka_unit_test(a_message_that_stays_unanswered_makes_the_function_gone),
	        cmocka_unit_test(a_reset_that_stays_unanswered_ends_at_its_own_deadline),
	        cmocka_unit_test(a_message_that_breaks_the_protocol_makes_the_function_gone),
	        cmocka_unit_test(a_guarded_window_that_vanishes_reads_ones_and_others_faults_pass_on),
	        cmocka_unit_test(a_child_of_fork_guards_nothing_of_its_parents),
	        cmocka_unit_test(dma_is_served_while_calls_are_in_progress),
	        cmocka_unit_test(several_threads_each_get_their_own_answers),
	};

	return cmocka_run_group_tests_name("vfio_user, hostile", tests, NULL, NULL);
}
