/* SPDX-License-Identifier: MIT */
#include "vfio_user_answer.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "bits.h"
#include "clock.h"

/* How long a caller's message is waited for before looking whether it is we who have to receive. */
#define BUSY_NS RIG_NS_PER_MS

struct rig_vuser_kept {
	struct rig_vuser_kept *next;
	size_t len, sent;
	unsigned char bytes[];
};

void rig_vuser_answers_init(
        struct rig_vuser_answers *a, int fd, unsigned deadline_ms, pthread_mutex_t *send_lock)
{
	*a = (struct rig_vuser_answers){.fd = fd,
	        .other_fd = -1,
	        .deadline_ms = deadline_ms,
	        .send_lock = send_lock,
	        .last = &a->first};
}

void rig_vuser_answers_move(struct rig_vuser_answers *a, int fd)
{
	a->other_fd = a->fd;
	a->fd = fd;
	a->send_lock = NULL;
}

/* gcc says it with a macro, clang with a feature. */
#if defined(__SANITIZE_THREAD__)
#define RIG_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RIG_TSAN 1
#endif
#endif

/* As pthread_mutex_clocklock, which the ThreadSanitizer of gcc 12 and of clang 14 does not know: it would
 * report the unlock. */
static int lock_until(pthread_mutex_t *lock, uint64_t at)
{
#if defined(RIG_TSAN)
	while (pthread_mutex_trylock(lock)) {
		if (rig_clock_ns() >= at)
			return ETIMEDOUT;
		sched_yield();
	}
	return 0;
#else
	const struct timespec ts = {(time_t)(at / RIG_NS_PER_S), (long)(at % RIG_NS_PER_S)};

	return pthread_mutex_clocklock(lock, CLOCK_MONOTONIC, &ts);
#endif
}

/* false: a caller is sending, perhaps to a device process that waits for us. */
static bool lock(struct rig_vuser_answers *a)
{
	uint64_t at;

	if (a->locked || !a->send_lock || pthread_mutex_trylock(a->send_lock) == 0)
		return a->locked = true;
	at = rig_clock_ns() + BUSY_NS;
	a->locked = lock_until(a->send_lock, at) == 0;
	if (!a->locked)
		a->since = at; /* the caller has a deadline of its own */
	return a->locked;
}

static void unlock(struct rig_vuser_answers *a)
{
	if (a->locked && a->send_lock)
		pthread_mutex_unlock(a->send_lock);
	a->locked = false;
}

static void drop_first(struct rig_vuser_answers *a)
{
	struct rig_vuser_kept *kept = a->first;

	a->first = kept->next;
	if (!a->first)
		a->last = &a->first;
	a->bytes -= kept->len;
	free(kept);
}

/* What fits now: its bytes, which may be 0, or a negative errno. */
static ssize_t send_some(int fd, struct iovec *iov, int n)
{
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = (size_t)n};
	ssize_t sent;

	do
		sent = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (sent < 0 && errno == EINTR);
	if (sent >= 0)
		return sent;
	return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
}

/* Sends of what is kept all that fits now. */
static int flush(struct rig_vuser_answers *a)
{
	while (a->first && lock(a)) {
		struct rig_vuser_kept *kept = a->first;
		struct iovec rest = {kept->bytes + kept->sent, kept->len - kept->sent};
		ssize_t sent = send_some(a->fd, &rest, 1);

		if (sent > 0) {
			kept->sent += (size_t)sent;
			a->since = rig_clock_ns();
		}
		if (kept->sent == kept->len)
			drop_first(a);
		if (!a->first || a->first->sent == 0)
			unlock(a);
		if (sent <= 0)
			return (int)sent;
	}
	return 0;
}

/* Keeps iov, of which `sent` bytes went out. */
static int keep(struct rig_vuser_answers *a, const struct iovec *iov, int n, size_t len, size_t sent)
{
	struct rig_vuser_kept *kept = malloc(sizeof(*kept) + len);
	size_t at = 0;

	if (!kept)
		return -ENOMEM;
	*kept = (struct rig_vuser_kept){.len = len, .sent = sent};
	for (int i = 0; i < n; i++) {
		if (iov[i].iov_len > 0)
			memcpy(kept->bytes + at, iov[i].iov_base, iov[i].iov_len);
		at += iov[i].iov_len;
	}
	if (!a->first)
		a->since = rig_clock_ns();
	*a->last = kept;
	a->last = &kept->next;
	a->bytes += len;
	return 0;
}

/* Waits for the socket a little; `events` what else ends the wait. */
static int wait_some(struct rig_vuser_answers *a, short events, bool *readable)
{
	bool mine = lock(a);
	uint64_t end = a->since + a->deadline_ms * RIG_NS_PER_MS, now = rig_clock_ns();
	uint64_t ms = end > now ? (end - now) / RIG_NS_PER_MS + 1 : 0;
	struct pollfd p[] = {
	        {.fd = a->fd, .events = (short)(mine ? events | POLLOUT : events)},
	        {.fd = events ? a->other_fd : -1, .events = events},
	};
	int n;

	if (ms == 0)
		return -ETIMEDOUT;
	n = poll(p, RIG_ARRAY_LENGTH(p), mine ? (int)rig_min_u64(ms, INT32_MAX) : 0);
	if (n < 0 && errno != EINTR)
		return -errno;
	*readable = n > 0 && ((p[0].revents | p[1].revents) & ~POLLOUT) != 0;
	return flush(a);
}

int rig_vuser_answers_idle(struct rig_vuser_answers *a)
{
	bool readable = false;
	int err = flush(a);

	while (a->first && !readable && !err)
		err = wait_some(a, POLLIN, &readable);
	return err;
}

int rig_vuser_answers_send(struct rig_vuser_answers *a, struct iovec *iov, int n)
{
	ssize_t sent = 0;
	size_t len = 0;
	bool hung_up = false;
	int err = flush(a);

	for (int i = 0; i < n; i++)
		len += iov[i].iov_len;
	if (!err && !a->first && lock(a)) {
		sent = send_some(a->fd, iov, n);
		if (sent <= 0 || (size_t)sent == len)
			unlock(a);
	}
	if (err || sent < 0 || (size_t)sent == len)
		return err ? err : sent < 0 ? (int)sent : 0;
	err = keep(a, iov, n, len, (size_t)sent);
	while (a->bytes > RIG_VUSER_ANSWERS_BYTES && !err)
		err = hung_up ? -EPIPE : wait_some(a, 0, &hung_up);
	return err;
}

void rig_vuser_answers_fini(struct rig_vuser_answers *a)
{
	while (a->first)
		drop_first(a);
	unlock(a);
}
