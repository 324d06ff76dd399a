/* SPDX-License-Identifier: MIT */
/* What an agent waits for: connections, and devices of jobs that end. Neither busily nor without end. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test.h"

#include "agent.h"
#include "agent_session.h"
#include "cond.h"
#include "clock.h"

enum { ROUNDS = 5, LOOKS = 600 /* of 50 ms in 30 s */, LISTENER = 900, ENDING = 901 };

static struct {
	int accept_errno;
	unsigned accepts, naps, waits;
	uint64_t ms;       /* that all waits have taken */
	unsigned given_at; /* the wait in which the device's holder gives it; 0: never */
} did;

static struct agent agent;
static struct session earlier, later;

/* ---- The rest ---- */

void *session_run(void *served_socket)
{
	(void)served_socket;
	return NULL;
}

void session_fail_now(struct session *s, const char *format, ...)
{
	(void)s;
	(void)format;
}

int __wrap_accept4(int fd, struct sockaddr *at, socklen_t *n, int flags);
int __wrap_poll(struct pollfd *polls, nfds_t n, int ms);
int __wrap_rig_cond_wait_ms(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t ms);
struct rig_deadline __wrap_rig_deadline_in(const struct rig_clock *clock, uint64_t ns);
bool __wrap_rig_deadline_passed(const struct rig_deadline *deadline);

int __wrap_accept4(int fd, struct sockaddr *at, socklen_t *n, int flags)
{
	(void)at;
	(void)n;
	(void)flags;
	assert_int_equal(fd, LISTENER);
	did.accepts++;
	errno = did.accept_errno;
	return -1;
}

/* Connections wait all the time; the agent is to end after some rounds. */
int __wrap_poll(struct pollfd *polls, nfds_t n, int ms)
{
	if (n == 1) {
		assert_int_equal(polls->fd, ENDING);
		assert_true(ms > 0);
		did.naps++;
		return 0;
	}
	assert_int_equal(ms, -1);
	polls[0].revents = POLLIN;
	polls[1].revents = did.accepts < ROUNDS ? 0 : POLLIN;
	return 1;
}

int __wrap_rig_cond_wait_ms(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t ms)
{
	(void)cond;
	(void)lock;
	did.ms += ms;
	if (++did.waits == did.given_at)
		agent.served[0].holder = NULL;
	if (did.waits > LOOKS + 1)
		fail_msg("the wait has no end");
	return ETIMEDOUT;
}

struct rig_deadline __wrap_rig_deadline_in(const struct rig_clock *clock, uint64_t ns)
{
	return (struct rig_deadline){clock, did.ms * RIG_NS_PER_MS + ns};
}

bool __wrap_rig_deadline_passed(const struct rig_deadline *deadline)
{
	return did.ms * RIG_NS_PER_MS >= deadline->at;
}

/* ---- Connections ---- */

static void accept_with(int err)
{
	memset(&did, 0, sizeof(did));
	did.accept_errno = err;
	agent_accept(&agent, LISTENER, ENDING);
	assert_true(did.accepts >= ROUNDS);
}

static void connections_that_cannot_be_taken_now_are_waited_for_and_not_asked_for_at_full_speed(void **state)
{
	static const int errnos[] = {ENOMEM, ENOBUFS, EPERM};

	(void)state;
	agent_init(&agent);
	for (size_t i = 0; i < sizeof(errnos) / sizeof(*errnos); i++) {
		accept_with(errnos[i]);
		assert_int_equal(did.naps, did.accepts);
	}
	/* Each time two are asked for: one with the descriptor that is kept. */
	accept_with(ENFILE);
	assert_int_equal(did.naps, did.accepts / 2);
}

static void a_connection_that_is_gone_again_keeps_nobody_waiting(void **state)
{
	static const int errnos[] = {ECONNABORTED, EINTR, EAGAIN};

	(void)state;
	agent_init(&agent);
	for (size_t i = 0; i < sizeof(errnos) / sizeof(*errnos); i++) {
		accept_with(errnos[i]);
		assert_int_equal(did.naps, 0);
	}
}

/* ---- Devices ---- */

static int take_from(bool ending)
{
	static const struct rig_opener opener = {.name = "P0"};
	struct served *served;
	int err;

	memset(&agent, 0, sizeof(agent));
	agent_init(&agent);
	assert_int_equal(agent_serve(&agent, &opener, false), 0);
	earlier.agent = later.agent = &agent;
	atomic_store(&earlier.ended, ending);
	agent.served[0].holder = &earlier;
	err = agent_take(&later, "P0", &served);
	assert_ptr_equal(agent.served[0].holder, err ? &earlier : &later);
	free(agent.served[0].name);
	return err;
}

static void a_device_of_a_job_that_ends_is_waited_for_but_not_without_end(void **state)
{
	(void)state;
	memset(&did, 0, sizeof(did));
	did.given_at = LOOKS / 2;
	assert_int_equal(take_from(true), 0);
	assert_int_equal(did.waits, LOOKS / 2);
	memset(&did, 0, sizeof(did));
	assert_int_equal(take_from(true), -EBUSY);
	assert_int_equal(did.waits, LOOKS);
	/* Of one that goes on, some looks. */
	memset(&did, 0, sizeof(did));
	assert_int_equal(take_from(false), -EBUSY);
	assert_true(did.waits < LOOKS / 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(
	                connections_that_cannot_be_taken_now_are_waited_for_and_not_asked_for_at_full_speed),
	        cmocka_unit_test(a_connection_that_is_gone_again_keeps_nobody_waiting),
	        cmocka_unit_test(a_device_of_a_job_that_ends_is_waited_for_but_not_without_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
