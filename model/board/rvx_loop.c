/* SPDX-License-Identifier: MIT */
/*
 * The main loop. Everything happens in slices of some ten microseconds: messages, the processor, each busy
 * engine, interrupts. What the processor waits for may be a plain store to mapped memory, which nothing
 * announces: an idle board looks again and again, first at once, then after naps that grow to a millisecond,
 * and after a second without work to ten (manual, sections 5.2 and 9: at the latest then).
 */
#include "rvx_state.h"

#include <errno.h>
#include <linux/pci_regs.h>
#include <sys/prctl.h>

#define SPIN_NS           50000ull
#define FIRST_NAP_NS      50000ull
#define LONGEST_NAP_NS    1000000ull
#define STILL_NAP_NS      10000000ull
#define NS_PER_MS         1000000ull
#define NS_PER_S          1000000000ull
#define STEP_INSTRUCTIONS 32768u
#define STEP_BYTES        (512u << 10)
#define TIMER_SLACK_NS    1000ul
#define FOREVER           UINT64_MAX

struct rest {
	uint64_t since_ns; /* the last time that something happened */
	uint64_t nap_ns;
	uint64_t rung; /* the doorbells as last seen, folded */
};

/* Changes when a doorbell or ARM does. */
static uint64_t read_doorbells(const struct rvx_board *board)
{
	uint64_t fold = rvx_load64(board->doorbells.host + RVX1_DOORBELL_ARM);

	for (uint32_t q = 0; q < board->config.queues; q++)
		fold = fold * 31 + rvx_load64(board->doorbells.host + q * RVX1_DOORBELL_PITCH);
	return fold;
}

static bool is_busy(const struct rvx_engine *engine)
{
	return rvx_engine_state(engine) == RVX1_ENGINE_RUNNING;
}

/* A queue may wait for a word of the host, whose change nothing announces either. */
static bool has_packets(const struct rvx_board *board)
{
	for (uint32_t q = 0; q < board->config.queues; q++)
		if (rvx_load64(rvx_status(board) + RVX1_STATUS_QUEUE + q * RVX1_STATUS_PITCH) !=
		        rvx_load64(board->doorbells.host + q * RVX1_DOORBELL_PITCH))
			return true;
	return false;
}

/* One slice of each busy engine; a change of state is news for the processor. */
static void run_engines(struct rvx_board *board)
{
	if (is_busy(&board->compute.engine)) {
		rvx_compute_step(&board->compute, STEP_INSTRUCTIONS);
		board->stirred |= !is_busy(&board->compute.engine);
	}
	if (is_busy(&board->copier.engine)) {
		rvx_copier_step(&board->copier, STEP_BYTES);
		board->stirred |= !is_busy(&board->copier.engine);
	}
}

/* A hung launch is RUNNING without needing anybody's time. */
static bool has_work(const struct rvx_board *board)
{
	if (is_busy(&board->copier.engine) || (is_busy(&board->compute.engine) && !board->compute.hung))
		return true;
	return rvx_cp_running(board) && !board->cp.asleep;
}

/* The next client finds the function as after power-on. */
static void forget_client(struct rvx_board *board)
{
	board->lost_client = false;
	rvx_board_reset(board);
	if (!board->gone)
		vfu_cfg_set(board->vfu, PCI_COMMAND, 2, 0);
}

static void step(struct rvx_board *board, uint64_t now_ns)
{
	if (board->lost_client)
		forget_client(board);
	if (board->gone_ns && now_ns >= board->gone_ns) {
		board->gone_ns = 0;
		rvx_board_leave(board);
	}
	board->cp.in_slice = true;
	rvx_cp_step(board, now_ns);
	run_engines(board);
	rvx_cp_slice_over(board);
	rvx_value_tick(board, now_ns);
	if (!board->gone)
		rvx_irq_check(board);
}

/* How long to sleep at most when nothing calls. */
static uint64_t nap_length(const struct rvx_board *board, const struct rest *rest, uint64_t now_ns)
{
	uint64_t nap = rvx_cp_running(board) ? rest->nap_ns : FOREVER;
	int timeout_ms = vfu_timeout(board->vfu);
	uint64_t deadline = timeout_ms < 0 ? FOREVER : (unsigned)timeout_ms * NS_PER_MS;

	if (board->late.count && nap > LONGEST_NAP_NS)
		nap = LONGEST_NAP_NS;
	if (board->gone_ns > now_ns && nap > board->gone_ns - now_ns)
		nap = board->gone_ns - now_ns;
	return nap < deadline ? nap : deadline;
}

/* Nothing to do now: looks again at once for a while, then longer and longer naps. Returns how long to
 * sleep. */
static uint64_t rest_for(struct rvx_board *board, struct rest *rest, uint64_t now_ns)
{
	uint64_t rung = read_doorbells(board);

	if (board->stirred || rung != rest->rung) {
		board->stirred = false;
		rest->rung = rung;
		rest->since_ns = now_ns;
		rest->nap_ns = FIRST_NAP_NS;
		return 0;
	}
	if (now_ns - rest->since_ns < SPIN_NS)
		return 0;
	uint64_t ns = nap_length(board, rest, now_ns);
	bool still = now_ns - rest->since_ns >= NS_PER_S && !has_packets(board);
	uint64_t longest = still ? STILL_NAP_NS : LONGEST_NAP_NS;
	rest->nap_ns = rest->nap_ns * 2 < longest ? rest->nap_ns * 2 : longest;
	return ns;
}

/* Sleeps that long, or looks up for 0; the signals of `unblocked` arrive here only. True: vfu_poll() has
 * something to do. */
static bool wait_for_news(struct rvx_board *board, uint64_t ns, const sigset_t *unblocked)
{
	struct timespec timeout = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
	struct pollfd fds[VFU_MAX_FDS];
	size_t count = vfu_fds(board->vfu, fds, VFU_MAX_FDS);

	return ppoll(fds, count, ns == FOREVER ? NULL : &timeout, unblocked) != 0 ||
	       vfu_timeout(board->vfu) == 0;
}

static bool is_over(const struct rvx_board *board, const volatile sig_atomic_t *stop)
{
	if (stop && *stop)
		return true;
	return !board->listening && !vfu_connected(board->vfu);
}

int rvx_board_run(struct rvx_board *board, const volatile sig_atomic_t *stop, const sigset_t *unblocked)
{
	struct rest rest = {.since_ns = rvx_now_ns(), .nap_ns = FIRST_NAP_NS};
	bool look = true;

	prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
	for (;;) {
		if (look && vfu_poll(board->vfu) > 0)
			board->stirred = true;
		if (is_over(board, stop))
			return 0;
		uint64_t now_ns = rvx_now_ns();
		step(board, now_ns);
		look = wait_for_news(board, has_work(board) ? 0 : rest_for(board, &rest, now_ns), unblocked);
	}
}
