/* SPDX-License-Identifier: MIT */
#include "vfio_user_chan.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bits.h"
#include "clock.h"
#include "cond.h"
#include "gone.h"
#include "log.h"
#include "text.h"
#include "thread.h"
#include "vfio_user_parse.h"
#include "vfio_user_sock.h"

/* Errors beyond this are no errno of Linux (its MAX_ERRNO). */
enum { ERRNO_MOST = 4095 };

const char *rig_vuser_command_name(unsigned command)
{
	static const char *const names[RIG_VUSER_COMMAND_END] = {
	        [RIG_VUSER_VERSION] = "VERSION",
	        [RIG_VUSER_DMA_MAP] = "DMA_MAP",
	        [RIG_VUSER_DMA_UNMAP] = "DMA_UNMAP",
	        [RIG_VUSER_DEVICE_GET_INFO] = "DEVICE_GET_INFO",
	        [RIG_VUSER_REGION_INFO] = "DEVICE_GET_REGION_INFO",
	        [RIG_VUSER_REGION_IO_FDS] = "DEVICE_GET_REGION_IO_FDS",
	        [RIG_VUSER_IRQ_INFO] = "DEVICE_GET_IRQ_INFO",
	        [RIG_VUSER_SET_IRQS] = "DEVICE_SET_IRQS",
	        [RIG_VUSER_REGION_READ] = "REGION_READ",
	        [RIG_VUSER_REGION_WRITE] = "REGION_WRITE",
	        [RIG_VUSER_DMA_READ] = "DMA_READ",
	        [RIG_VUSER_DMA_WRITE] = "DMA_WRITE",
	        [RIG_VUSER_RESET] = "DEVICE_RESET",
	};

	return command < RIG_VUSER_COMMAND_END && names[command] ? names[command] : "a message";
}

static void hang_up(struct rig_vuser_chan *c)
{
	int twin = atomic_load(&c->twin);

	shutdown(c->fd, SHUT_RDWR);
	if (twin >= 0)
		shutdown(twin, SHUT_RDWR);
}

/* The first reason ends the connection; later ones are its consequences. When this returns the sink has been
 * told, whoever came first, because callers that fail ask for the reason. */
static void __attribute__((format(printf, 2, 3))) end(struct rig_vuser_chan *c, const char *format, ...)
{
	char line[RIG_GONE_BYTES];
	struct rig_text text;
	va_list args;
	bool first;

	rig_text_init(&text, line, sizeof(line));
	va_start(args, format);
	rig_text_addv(&text, format, args);
	va_end(args);
	pthread_mutex_lock(&c->lock);
	first = !c->ending;
	c->ending = true;
	while (!first && !c->dead)
		pthread_cond_wait(&c->wake, &c->lock);
	pthread_mutex_unlock(&c->lock);
	if (!first)
		return;
	c->sink->gone(c->sink->arg, line);
	hang_up(c);
	pthread_mutex_lock(&c->lock);
	c->dead = true;
	pthread_cond_broadcast(&c->wake);
	pthread_mutex_unlock(&c->lock);
}

int rig_vuser_broken(struct rig_vuser_chan *c, const char *what)
{
	end(c, "the device process sent %s", what);
	return -EPROTO;
}

static struct rig_vuser_call **find(struct rig_vuser_chan *c, uint16_t id)
{
	struct rig_vuser_call **at = &c->waiting;

	while (*at && (*at)->id != id)
		at = &(*at)->next;
	return at;
}

/* With the lock held. Whoever waits to send may. */
static void forget(struct rig_vuser_chan *c, struct rig_vuser_call *call)
{
	struct rig_vuser_call **at = find(c, call->id);

	if (*at == call)
		*at = call->next;
	pthread_cond_broadcast(&c->wake);
}

static int enter(struct rig_vuser_chan *c, struct rig_vuser_call *call)
{
	int err = 0;

	call->done = false;
	call->error = 0;
	call->reply_len = 0;
	call->reply_fd = -1;
	pthread_mutex_lock(&c->lock);
	while (!c->many && c->waiting && !c->dead)
		pthread_cond_wait(&c->wake, &c->lock);
	if (c->dead) {
		err = -ENODEV;
	} else {
		while (*find(c, c->next_id))
			c->next_id++;
		call->id = c->next_id++;
		call->next = c->waiting;
		c->waiting = call;
	}
	pthread_mutex_unlock(&c->lock);
	return err;
}

static int post(struct rig_vuser_chan *c, const struct rig_vuser_call *call, const struct rig_deadline *until)
{
	struct rig_vuser_header h = {
	        .id = call->id,
	        .command = call->command,
	        .size = (uint32_t)(sizeof(h) + call->head_len + call->data_len),
	        .flags = RIG_VUSER_TYPE_COMMAND,
	};
	struct iovec iov[] = {
	        {&h, sizeof(h)},
	        {(void *)(uintptr_t)call->head, call->head_len},
	        {(void *)(uintptr_t)call->data, call->data_len},
	};
	int err;

	pthread_mutex_lock(&c->send_lock);
	atomic_fetch_add_explicit(&c->messages, 1, memory_order_relaxed);
	err = rig_vuser_send(c->fd, iov, (int)RIG_ARRAY_LENGTH(iov), call->fds, call->nfds, until);
	pthread_mutex_unlock(&c->send_lock);
	return err;
}

/* 0: done; -ENODEV: the connection ended; -ETIMEDOUT. In any case the call is forgotten. */
static int await(struct rig_vuser_chan *c, struct rig_vuser_call *call, const struct rig_deadline *until)
{
	struct timespec ts = {(time_t)(until->at / RIG_NS_PER_S), (long)(until->at % RIG_NS_PER_S)};
	bool late = false;
	int err;

	pthread_mutex_lock(&c->lock);
	while (!call->done && !c->dead && !late)
		late = pthread_cond_timedwait(&c->wake, &c->lock, &ts) == ETIMEDOUT;
	if (!call->done)
		forget(c, call);
	err = call->done ? 0 : c->dead ? -ENODEV : -ETIMEDOUT;
	pthread_mutex_unlock(&c->lock);
	return err;
}

static int ended(struct rig_vuser_chan *c, struct rig_vuser_call *call, unsigned ms, int err)
{
	const char *name = rig_vuser_command_name(call->command);

	if (err == -ETIMEDOUT)
		end(c, "no answer to %s within %u ms", name, ms);
	else if (err == -EPIPE || err == -ECONNRESET)
		end(c, "the device process hung up");
	else if (err != -ENODEV)
		end(c, "%s could not be sent: %s", name, strerrordesc_np(-err));
	return err == -ETIMEDOUT ? err : -ENODEV;
}

int rig_vuser_call(struct rig_vuser_chan *c, struct rig_vuser_call *call)
{
	unsigned ms = call->deadline_ms ? call->deadline_ms : c->deadline_ms;
	struct rig_deadline until;
	int err = enter(c, call);

	if (err)
		return err;
	until = rig_deadline_in(NULL, ms * RIG_NS_PER_MS);
	err = post(c, call, &until);
	if (err) {
		pthread_mutex_lock(&c->lock);
		forget(c, call);
		pthread_mutex_unlock(&c->lock);
	} else {
		err = await(c, call, &until);
	}
	if (err)
		return ended(c, call, ms, err);
	return call->error ? -call->error : 0;
}

/* -- The receiver -- */

/* The answer to VERSION may bring the device's second socket. NULL, or what was wrong with it. */
static const char *take_twin(struct rig_vuser_chan *c, struct rig_vuser_fds *fds)
{
	int domain = 0, type = 0;
	socklen_t len = sizeof(domain);

	if (fds->count == 0)
		return NULL;
	if (fds->count > 1)
		return "more than one descriptor with its version";
	if (getsockopt(fds->fd[0], SOL_SOCKET, SO_DOMAIN, &domain, &len) ||
	        getsockopt(fds->fd[0], SOL_SOCKET, SO_TYPE, &type, &len) || domain != AF_UNIX ||
	        type != SOCK_STREAM)
		return "a second socket that is none of its kind";
	atomic_store(&c->twin, fds->fd[0]);
	rig_vuser_answers_move(&c->answers, fds->fd[0]);
	fds->count = 0;
	return NULL;
}

/* Hands a reply to its caller. NULL, or what was wrong with it. */
static const char *deliver(
        struct rig_vuser_chan *c, const struct rig_vuser_header *h, size_t len, struct rig_vuser_fds *fds)
{
	struct rig_vuser_call **at, *call;
	const char *wrong = NULL;

	pthread_mutex_lock(&c->lock);
	at = find(c, h->id);
	call = *at;
	if (!call) {
		wrong = "a reply to nothing that was asked";
	} else if (h->command != call->command) {
		wrong = "a reply of another command";
	} else if (!(h->flags & RIG_VUSER_ERROR) && len > call->reply_room) {
		wrong = "a reply longer than was asked for";
	} else if (call->command != RIG_VUSER_VERSION || !(wrong = take_twin(c, fds))) {
		*at = call->next;
		if (h->flags & RIG_VUSER_ERROR) {
			call->error = h->error >= 1 && h->error <= ERRNO_MOST ? (int)h->error : EIO;
		} else {
			if (len > 0)
				memcpy(call->reply, c->in, len);
			call->reply_len = len;
			if (call->takes_fd && fds->count > 0) {
				call->reply_fd = fds->fd[0];
				fds->fd[0] = fds->fd[--fds->count];
			}
		}
		call->done = true;
		pthread_cond_broadcast(&c->wake);
	}
	pthread_mutex_unlock(&c->lock);
	return wrong;
}

static int answer(struct rig_vuser_chan *c, const struct rig_vuser_header *h, int error,
        const struct rig_vuser_dma_access *a, size_t data_len)
{
	struct rig_vuser_header reply = {
	        .id = h->id,
	        .command = h->command,
	        .flags = RIG_VUSER_TYPE_REPLY | (error ? RIG_VUSER_ERROR : 0),
	        .error = (uint32_t)-error,
	};
	struct iovec iov[] = {
	        {&reply, sizeof(reply)},
	        {(void *)(uintptr_t)a, error ? 0 : sizeof(*a)},
	        {c->out, error ? 0 : data_len},
	};

	reply.size = (uint32_t)(iov[0].iov_len + iov[1].iov_len + iov[2].iov_len);
	return rig_vuser_answers_send(&c->answers, iov, (int)RIG_ARRAY_LENGTH(iov));
}

/* What is wrong with a device process to which an answer could not be sent. */
static const char *unsent(int err)
{
	if (err == -EPIPE || err == -ECONNRESET)
		return NULL; /* the next receive says so */
	if (err == -ENOMEM)
		return "more DMA commands than there is memory to answer";
	return err ? "DMA commands whose answers it does not read" : NULL;
}

/* A command of the device. NULL, or what was wrong with it. */
static const char *serve(struct rig_vuser_chan *c, const struct rig_vuser_header *h, size_t len)
{
	bool write = h->command == RIG_VUSER_DMA_WRITE;
	struct rig_vuser_dma_access a;
	const void *data;
	const char *why;
	int error;

	if (!write && h->command != RIG_VUSER_DMA_READ)
		return "a command that only we may send";
	if (rig_vuser_parse_dma(c->in, len, write, c->max_data, &a, &data, &why))
		return why;
	if (write)
		error = c->sink->dma_write(c->sink->arg, a.address, data, a.count);
	else
		error = c->sink->dma_read(c->sink->arg, a.address, c->out, a.count);
	if (h->flags & RIG_VUSER_NO_REPLY)
		return NULL;
	return unsent(answer(c, h, error, &a, write ? 0 : (size_t)a.count));
}

/* The socket that has a message or has ended; of both the twin. What the device wrote to memory before it
 * replied is there when the caller has the reply, because the twin is looked at after the first. */
static int readable(struct rig_vuser_chan *c)
{
	struct pollfd p[] = {
	        {.fd = c->fd, .events = POLLIN}, {.fd = atomic_load(&c->twin), .events = POLLIN}};

	if (p[1].fd < 0)
		return c->fd;
	while (poll(p, RIG_ARRAY_LENGTH(p), -1) < 0 && errno == EINTR)
		;
	return p[1].revents ? p[1].fd : c->fd;
}

/* A whole message. NULL, or what was wrong with it. */
static const char *take(struct rig_vuser_chan *c, int fd, const struct rig_vuser_header *h, size_t len,
        struct rig_vuser_fds *fds)
{
	bool reply = (h->flags & RIG_VUSER_TYPE_MASK) == RIG_VUSER_TYPE_REPLY;
	int twin = atomic_load(&c->twin);

	if (twin >= 0 && reply != (fd == c->fd))
		return reply ? "a reply over the socket of its own commands"
		             : "a command over the socket of ours";
	return reply ? deliver(c, h, len, fds) : serve(c, h, len);
}

/* One message. false: the connection has ended. */
static bool receive(struct rig_vuser_chan *c)
{
	struct rig_vuser_fds fds = {.count = 0};
	struct rig_vuser_header h;
	const char *wrong = unsent(rig_vuser_answers_idle(&c->answers));
	int fd = wrong ? -1 : readable(c), err = wrong ? 0 : rig_vuser_recv(fd, c->in, sizeof(h), &fds);
	size_t len = 0;

	if (!wrong && !err && !rig_vuser_parse_header(c->in, sizeof(h), c->room, &h, &wrong)) {
		len = h.size - sizeof(h);
		err = rig_vuser_recv(fd, c->in, len, &fds);
		if (!err)
			wrong = take(c, fd, &h, len, &fds);
	}
	rig_vuser_fds_close(&fds);
	if (wrong)
		rig_vuser_broken(c, wrong);
	else if (err == -ENODEV && len == 0)
		end(c, "the device process hung up");
	else if (err == -EPROTO || err == -ENODEV)
		end(c, "the device process hung up in the middle of a message, or sent too many descriptors");
	else if (err)
		end(c, "receiving from the device process: %s", strerrordesc_np(-err));
	return !wrong && !err;
}

static void *run(void *arg)
{
	struct rig_vuser_chan *c = arg;

	pthread_setname_np(pthread_self(), "rig-vfio-user");
	while (receive(c))
		;
	rig_vuser_answers_fini(&c->answers);
	return NULL;
}

static void init_locks(struct rig_vuser_chan *c)
{
	pthread_mutex_init(&c->send_lock, NULL);
	pthread_mutex_init(&c->lock, NULL);
	rig_cond_init(&c->wake);
}

static void fini_locks(struct rig_vuser_chan *c)
{
	pthread_cond_destroy(&c->wake);
	pthread_mutex_destroy(&c->lock);
	pthread_mutex_destroy(&c->send_lock);
}

int rig_vuser_chan_init(struct rig_vuser_chan *c, int fd, unsigned deadline_ms, uint64_t max_data,
        const struct rig_vfio_sink *sink)
{
	int err = -ENOMEM;

	*c = (struct rig_vuser_chan){
	        .fd = fd, .twin = -1, .deadline_ms = deadline_ms, .max_data = max_data, .sink = sink};
	c->room = (size_t)max_data + sizeof(struct rig_vuser_header) + sizeof(struct rig_vuser_region_access);
	init_locks(c);
	rig_vuser_answers_init(&c->answers, fd, deadline_ms, &c->send_lock);
	c->in = malloc(c->room);
	c->out = malloc(c->room);
	if (c->in && c->out)
		err = rig_thread_start(&c->receiver, RIG_THREAD_ANY, run, c);
	if (!err)
		return 0;
	free(c->out);
	free(c->in);
	fini_locks(c);
	return err;
}

const char *rig_vuser_chan_twin(struct rig_vuser_chan *c, bool said)
{
	bool came = atomic_load(&c->twin) >= 0;

	if (said != came)
		return said ? "no descriptor of the second socket that it offers"
		            : "a descriptor with its version that it did not announce";
	pthread_mutex_lock(&c->lock);
	c->many = came;
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

void rig_vuser_chan_close(struct rig_vuser_chan *c)
{
	int twin = atomic_load(&c->twin);

	close(c->fd);
	if (twin >= 0)
		close(twin);
}

void rig_vuser_chan_quiet(struct rig_vuser_chan *c)
{
	pthread_mutex_lock(&c->lock);
	c->ending = c->dead = true;
	pthread_mutex_unlock(&c->lock);
	hang_up(c);
	pthread_join(c->receiver, NULL);
}

void rig_vuser_chan_fini(struct rig_vuser_chan *c)
{
	free(c->out);
	free(c->in);
	fini_locks(c);
}
