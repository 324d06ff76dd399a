/* SPDX-License-Identifier: MIT */
/* SIGBUS that is no guarded window's, among other handlers. Each case is a process of its own. */
#include "test.h"
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gone.h"

enum { PAGE = 4096, RETURNED = 7 };

static struct rig_gone gone;
static struct sigaction below; /* what the chaining handler passes on to */
static unsigned chained, caught, faults;
static sigjmp_buf back;

static void chain(int number, siginfo_t *info, void *context)
{
	chained++;
	if (below.sa_flags & SA_SIGINFO)
		below.sa_sigaction(number, info, context);
	else if (below.sa_handler != SIG_DFL)
		below.sa_handler(number);
	else
		(void)sigaction(number, &below, NULL);
}

static void leap(int number)
{
	(void)number;
	caught++;
	siglongjmp(back, 1);
}

static void put_chain(void)
{
	struct sigaction over = {.sa_sigaction = chain, .sa_flags = SA_SIGINFO};

	sigaction(SIGBUS, &over, &below);
}

static void put(void (*handler)(int))
{
	struct sigaction plain = {.sa_handler = handler};

	sigaction(SIGBUS, &plain, NULL);
}

/* Memory of a file that is too short. */
static void *vanished(void)
{
	int fd = memfd_create("short", MFD_CLOEXEC);

	return mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

static void guard_one(void)
{
	if (rig_guard_add(vanished(), PAGE, &gone))
		_exit(1);
}

static void touch(void)
{
	(void)__atomic_load_n((char *)vanished(), __ATOMIC_RELAXED);
}

/* How a process that does this ends: wait(2)'s word. */
static int end_of(void (*run)(void))
{
	pid_t child = fork();
	int status;

	if (!child) {
		put(SIG_DFL); /* cmocka has handlers of its own */
		if (rig_gone_init(&gone))
			_exit(1);
		run();
		_exit(RETURNED);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void in_a_circle(void)
{
	guard_one();
	put_chain();
	guard_one();
	touch();
}

static void in_two_circles(void)
{
	put_chain();
	guard_one();
	put_chain();
	guard_one();
	touch();
}

static void sent(void)
{
	guard_one();
	raise(SIGBUS);
}

static void handlers_that_chain_in_a_circle_end_as_the_fault_would_have(void **state)
{
	static void (*const runs[])(void) = {in_a_circle, in_two_circles, touch, sent};

	(void)state;
	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		int status = end_of(runs[i]);

		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGBUS)
			fail_msg("case %zu ended with %#x, not by SIGBUS", i, (unsigned)status);
	}
}

static void leap_out(void)
{
	put(leap);
	guard_one();
	put_chain();
	guard_one();
	while (faults++ < 3)
		if (!sigsetjmp(back, 1))
			touch();
	_exit(caught == 3 && chained == 3 ? RETURNED : 1);
}

static void the_handler_below_a_circle_gets_each_fault_once(void **state)
{
	(void)state;
	assert_int_equal(end_of(leap_out), RETURNED << 8);
}

static void ignore(void)
{
	char *at = vanished();

	put(SIG_IGN);
	if (rig_guard_add(at, PAGE, &gone))
		_exit(1);
	raise(SIGBUS);
	if (__atomic_load_n(at, __ATOMIC_RELAXED) != -1 || !rig_gone_is(&gone))
		_exit(1);
}

static void a_signal_that_is_sent_and_ignored_ends_no_guard(void **state)
{
	(void)state;
	assert_int_equal(end_of(ignore), RETURNED << 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(handlers_that_chain_in_a_circle_end_as_the_fault_would_have),
	        cmocka_unit_test(the_handler_below_a_circle_gets_each_fault_once),
	        cmocka_unit_test(a_signal_that_is_sent_and_ignored_ends_no_guard),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
