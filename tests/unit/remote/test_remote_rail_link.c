/* SPDX-License-Identifier: MIT */
/* Who gets a data connection, and who does not; over each provider. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test.h"

#include "fabric_bell.h"
#include "rail_pair.h"
#include "rail_private.h"

/* A clock that the test moves. */
static uint64_t now;

static uint64_t read_now(void *arg)
{
	(void)arg;
	return __atomic_load_n(&now, __ATOMIC_ACQUIRE);
}

static void no_sleep(void *arg, uint64_t ns)
{
	(void)arg;
	(void)ns;
}

static const struct rig_clock test_clock = {read_now, no_sleep, NULL};

struct finishing {
	struct rig_rail_link *link;
	const struct rig_rail_blob *answer;
	int code;
};

static void *finish(void *arg)
{
	struct finishing *f = arg;
	struct rig_deadline deadline = rig_deadline_in(&test_clock, RIG_NS_PER_S);

	f->code = rig_rail_link_finish(f->link, f->answer, &deadline);
	return NULL;
}

static struct rig_rails *open_rails(void **state)
{
	struct rig_rails_options options = {.provider = *state, .spin_ns = UINT64_MAX};
	struct rig_rails *rails;
	int code = rig_rails_open(&options, &rails);

	if (code == -ENODEV)
		skip();
	if (code)
		fail_msg("no engine: %s", rig_error());
	return rails;
}

static uint64_t refused_of(struct rig_rails *rails)
{
	struct rig_rails_stats stats;

	rig_rails_stats(rails, &stats);
	return stats.refused;
}

/* An answer of nobody, so that the side that offers waits. */
static struct rig_rail_blob answer_of_nobody(const struct rig_rail_blob *offer)
{
	struct rig_rail_hello hello;
	struct rig_rail_blob answer;

	assert_int_equal(rig_rail_parse_hello(offer, RIG_BLOB_OFFER, &hello), 0);
	rig_rail_blob_hello(&answer, RIG_BLOB_ANSWER, &hello);
	return answer;
}

static struct rig_rail_blob with_wrong_token(const struct rig_rail_blob *offer)
{
	struct rig_rail_hello hello;
	struct rig_rail_blob wrong;

	assert_int_equal(rig_rail_parse_hello(offer, RIG_BLOB_OFFER, &hello), 0);
	hello.address.token[RIG_FABRIC_TOKEN - 1] ^= 1;
	rig_rail_blob_hello(&wrong, RIG_BLOB_OFFER, &hello);
	return wrong;
}

static int connect_to_offer(const struct rig_rail_blob *offer)
{
	struct rig_rail_hello hello;
	struct sockaddr_in to;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(rig_rail_parse_hello(offer, RIG_BLOB_OFFER, &hello), 0);
	assert_int_equal(hello.address.bytes, sizeof(to));
	memcpy(&to, hello.address.address, sizeof(to));
	if (connect(fd, (struct sockaddr *)&to, sizeof(to))) {
		int code = -errno;

		(void)close(fd);
		return code;
	}
	return fd;
}

static void who_shows_another_token_is_refused(void **state)
{
	struct rig_rails *rails = open_rails(state), *stranger = open_rails(state);
	struct rig_rail_link *link, *wrong_link;
	struct rig_rail_blob offer, wrong, unused, answer;
	struct rig_deadline deadline = rig_deadline_in(NULL, RAIL_PAIR_NS);
	struct finishing f;
	pthread_t thread;

	assert_int_equal(rig_rail_link_offer(rails, "nobody", &offer, &link), 0);
	wrong = with_wrong_token(&offer);
	answer = answer_of_nobody(&offer);
	assert_int_equal(rig_rail_link_accept(stranger, "a machine", &wrong, &unused, &wrong_link), 0);
	f = (struct finishing){link, &answer, 0};
	assert_int_equal(pthread_create(&thread, NULL, finish, &f), 0);
	assert_int_not_equal(rig_rail_link_finish(wrong_link, NULL, &deadline), 0);
	/* The side that offered waits on, for who has the token. */
	__atomic_store_n(&now, read_now(NULL) + 2 * RIG_NS_PER_S, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(f.code, -ETIMEDOUT);
	assert_int_not_equal(refused_of(rails), 0);
	rig_rail_link_put(link);
	rig_rail_link_put(wrong_link);
	rig_rails_close(rails);
	rig_rails_close(stranger);
}

/* Without connections: the greeting is looked at by who was offered to, and the other never hears of it. */
static void who_greets_with_another_token_does_not_get_a_link(void **state)
{
	struct rig_rails *rails = open_rails(state), *stranger = open_rails(state);
	struct rig_rail_link *link, *wrong_link;
	struct rig_rail_blob offer, wrong, answer;
	struct rig_deadline deadline = rig_deadline_in(NULL, RAIL_PAIR_NS);
	struct finishing f;
	pthread_t thread;

	assert_int_equal(rig_rail_link_offer(rails, "nobody", &offer, &link), 0);
	wrong = with_wrong_token(&offer);
	assert_int_equal(rig_rail_link_accept(stranger, "a machine", &wrong, &answer, &wrong_link), 0);
	f = (struct finishing){wrong_link, NULL, 0};
	assert_int_equal(pthread_create(&thread, NULL, finish, &f), 0);
	assert_int_equal(rig_rail_link_finish(link, &answer, &deadline), -EPROTO);
	__atomic_store_n(&now, read_now(NULL) + 2 * RIG_NS_PER_S, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(thread, NULL), 0);
	rig_rail_link_put(link);
	rig_rail_link_put(wrong_link);
	rig_rails_close(rails);
	rig_rails_close(stranger);
}

static unsigned descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	(void)closedir(dir);
	return n;
}

static void strangers_neither_keep_the_peer_out_nor_a_descriptor(void **state)
{
	static const char garbage[512] = "GET / HTTP/1.0\r\n\r\n";
	struct rig_rail_link *link[2];
	struct rig_rail_blob offer, answer;
	struct rig_deadline deadline = rig_deadline_in(NULL, RAIL_PAIR_NS);
	struct finishing f;
	pthread_t thread;
	unsigned before = descriptors();
	struct rig_rails *a = open_rails(state), *b = open_rails(state);
	int silent, loud;

	assert_int_equal(rig_rail_link_offer(a, "b", &offer, &link[0]), 0);
	silent = connect_to_offer(&offer);
	loud = connect_to_offer(&offer);
	assert_true(silent >= 0 && loud >= 0);
	assert_int_equal(send(loud, garbage, sizeof(garbage), MSG_NOSIGNAL), sizeof(garbage));
	assert_int_equal(rig_rail_link_accept(b, "a", &offer, &answer, &link[1]), 0);
	f = (struct finishing){link[1], NULL, 0};
	assert_int_equal(pthread_create(&thread, NULL, finish, &f), 0);
	assert_int_equal(rig_rail_link_finish(link[0], &answer, &deadline), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(f.code, 0);
	/* Nobody listens any more. */
	assert_int_equal(connect_to_offer(&offer), -ECONNREFUSED);
	(void)close(silent);
	(void)close(loud);
	rig_rails_stop(a);
	rig_rails_stop(b);
	rig_rails_close(a);
	rig_rails_close(b);
	assert_int_equal(descriptors(), before);
}

/* Whoever connected to an offer that is given up, before or after saying something. */
static void an_offer_that_is_given_up_leaves_no_descriptor(void **state)
{
	for (int round = 0; round < 5; round++) {
		unsigned before = descriptors();
		struct rig_rails *rails = open_rails(state);
		struct rig_rail_link *link;
		struct rig_rail_blob offer;
		int silent, loud;

		assert_int_equal(rig_rail_link_offer(rails, "nobody", &offer, &link), 0);
		silent = connect_to_offer(&offer);
		loud = connect_to_offer(&offer);
		assert_int_equal(send(loud, "hello", 5, MSG_NOSIGNAL), 5);
		rig_rail_link_put(link);
		rig_rails_close(rails);
		(void)close(silent);
		(void)close(loud);
		assert_int_equal(descriptors(), before);
	}
}

/* More than are heard at a time; the oldest go first. */
static void many_strangers_that_say_nothing_make_room_for_the_peer(void **state)
{
	enum { STRANGERS = 100 };
	struct rig_rails_options options = {.spin_ns = UINT64_MAX};
	struct rig_deadline deadline = rig_deadline_in(NULL, RAIL_PAIR_NS);
	struct rig_rail_blob offer, answer;
	struct rig_rail_link *link[2];
	struct rig_rails *a, *b;
	int silent[STRANGERS];
	struct finishing f;
	pthread_t thread;

	(void)state;
	assert_int_equal(rig_rails_open(&options, &a), 0);
	assert_int_equal(rig_rails_open(&options, &b), 0);
	assert_int_equal(rig_rail_link_offer(a, "b", &offer, &link[0]), 0);
	assert_int_equal(rig_rail_link_accept(b, "a", &offer, &answer, &link[1]), 0);
	f = (struct finishing){link[0], &answer, 0};
	assert_int_equal(pthread_create(&thread, NULL, finish, &f), 0);
	/* The backlog is as long as the crowd of the listener: each is taken before more come. */
	for (int i = 0; i < STRANGERS; i++)
		silent[i] = connect_to_offer(&offer);
	assert_int_equal(rig_rail_link_finish(link[1], NULL, &deadline), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(f.code, 0);
	for (int i = 0; i < STRANGERS; i++)
		if (silent[i] >= 0)
			(void)close(silent[i]);
	rig_rails_stop(a);
	rig_rails_stop(b);
	rig_rails_close(a);
	rig_rails_close(b);
}

static unsigned port_of(const struct rig_rail_blob *offer)
{
	struct rig_rail_hello hello;
	struct sockaddr_in at;

	assert_int_equal(rig_rail_parse_hello(offer, RIG_BLOB_OFFER, &hello), 0);
	memcpy(&at, hello.address.address, sizeof(at));
	return ntohs(at.sin_port);
}

/* Two ports that were free a moment ago: two offers take them, and a third is told. */
static void an_engine_listens_at_its_ports_alone(void **state)
{
	struct rig_rails_options options = {.spin_ns = UINT64_MAX};
	struct rig_rail_link *link[3];
	struct rig_rail_blob offer;
	struct rig_rails *rails;
	unsigned first = 0;
	int err = -EADDRINUSE;

	(void)state;
	for (unsigned port = 40000; err == -EADDRINUSE && port < 60000; port += 2) {
		options.first_port = (uint16_t)port;
		options.last_port = (uint16_t)(port + 1);
		assert_int_equal(rig_rails_open(&options, &rails), 0);
		err = rig_rail_link_offer(rails, "a", &offer, &link[0]);
		if (!err) {
			first = port_of(&offer);
			err = rig_rail_link_offer(rails, "b", &offer, &link[1]);
			if (err)
				rig_rail_link_put(link[0]);
		}
		if (err)
			rig_rails_close(rails);
	}
	assert_int_equal(err, 0);
	assert_int_equal(first, options.first_port);
	assert_int_equal(port_of(&offer), options.last_port);
	assert_int_equal(rig_rail_link_offer(rails, "c", &offer, &link[2]), -EADDRINUSE);
	assert_non_null(strstr(rig_error(), "no port from"));
	rig_rail_link_put(link[0]);
	rig_rail_link_put(link[1]);
	rig_rails_close(rails);
}

static void an_offer_is_good_once(void **state)
{
	struct rig_rails *late = open_rails(state);
	struct rig_deadline deadline = rig_deadline_in(NULL, RAIL_PAIR_NS);
	struct rig_rail_link *link[2], *again;
	struct rig_rail_blob offer, answer, unused;
	struct rig_rails *a = open_rails(state), *b = open_rails(state);
	struct finishing f;
	pthread_t thread;

	assert_int_equal(rig_rail_link_offer(a, "b", &offer, &link[0]), 0);
	assert_int_equal(rig_rail_link_accept(b, "a", &offer, &answer, &link[1]), 0);
	f = (struct finishing){link[1], NULL, 0};
	assert_int_equal(pthread_create(&thread, NULL, finish, &f), 0);
	assert_int_equal(rig_rail_link_finish(link[0], &answer, &deadline), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	if (!rig_rail_link_accept(late, "a", &offer, &unused, &again)) {
		assert_int_not_equal(rig_rail_link_finish(again, NULL, &deadline), 0);
		rig_rail_link_put(again);
	}
	rig_rails_stop(a);
	rig_rails_stop(b);
	rig_rails_close(a);
	rig_rails_close(b);
	rig_rails_close(late);
}

static void an_offer_that_nobody_takes_times_out(void **state)
{
	struct rig_rails *rails = open_rails(state);
	struct rig_deadline deadline = rig_deadline_in(&test_clock, 0);
	struct rig_rail_blob offer, answer;
	struct rig_rail_link *link;

	assert_int_equal(rig_rail_link_offer(rails, "nobody", &offer, &link), 0);
	answer = answer_of_nobody(&offer);
	assert_int_equal(rig_rail_link_finish(link, NULL, &deadline), -EINVAL);
	assert_int_equal(rig_rail_link_finish(link, &answer, &deadline), -ETIMEDOUT);
	rig_rail_link_put(link);
	rig_rails_close(rails);
}

static void an_offer_of_another_provider_or_piece_is_refused(void **state)
{
	struct rig_rails *rails = open_rails(state);
	struct rig_rail_blob offer, wrong, unused;
	struct rig_rail_link *link, *other;
	struct rig_rail_hello hello;

	assert_int_equal(rig_rail_link_offer(rails, "nobody", &offer, &link), 0);
	assert_int_equal(rig_rail_parse_hello(&offer, RIG_BLOB_OFFER, &hello), 0);
	hello.piece++;
	rig_rail_blob_hello(&wrong, RIG_BLOB_OFFER, &hello);
	assert_int_equal(rig_rail_link_accept(rails, "x", &wrong, &unused, &other), -EPROTO);
	hello.piece--;
	memcpy(hello.provider, "other", 6);
	rig_rail_blob_hello(&wrong, RIG_BLOB_OFFER, &hello);
	assert_int_equal(rig_rail_link_accept(rails, "x", &wrong, &unused, &other), -EPROTO);
	wrong = offer;
	wrong.bytes /= 2;
	assert_int_equal(rig_rail_link_accept(rails, "x", &wrong, &unused, &other), -EPROTO);
	assert_int_equal(rig_rail_parse_hello(&offer, RIG_BLOB_OFFER, &hello), 0);
	hello.address.bytes = 0;
	rig_rail_blob_hello(&wrong, RIG_BLOB_OFFER, &hello);
	assert_int_equal(rig_rail_link_accept(rails, "x", &wrong, &unused, &other), -EPROTO);
	rig_rail_link_put(link);
	rig_rails_close(rails);
}

static void an_unknown_provider_is_refused_by_name(void **state)
{
	struct rig_rails_options options = {.provider = "carrier-pigeon"};
	struct rig_rails *rails;

	(void)state;
	assert_int_equal(rig_rails_open(&options, &rails), -EINVAL);
	assert_non_null(strstr(rig_error(), "carrier-pigeon"));
}

static const int kept_signals[] = {SIGINT, SIGTERM, SIGSEGV, SIGBUS, SIGABRT, SIGILL};
enum { KEPT = sizeof(kept_signals) / sizeof(*kept_signals) };

static void the_programs_signal_handlers_are_as_before(void **state)
{
	struct sigaction before[KEPT], after;
	struct rail_pair pair;

	for (int i = 0; i < KEPT; i++)
		assert_int_equal(sigaction(kept_signals[i], NULL, &before[i]), 0);
	rail_pair_begin(&pair, state);
	for (int i = 0; i < KEPT; i++) {
		assert_int_equal(sigaction(kept_signals[i], NULL, &after), 0);
		assert_true(before[i].sa_handler == after.sa_handler);
	}
	rail_pair_close(&pair);
}

/* Another process's number is what the other side says. */
static void what_is_called_no_bell_is_not_opened(void **state)
{
	int fd = memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING), watch = inotify_init1(IN_NONBLOCK);
	struct rig_bell *bell = NULL;
	struct inotify_event event;
	char path[64];

	(void)state;
	assert_true(fd >= 0 && watch >= 0);
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL), 0);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_true(inotify_add_watch(watch, path, IN_OPEN) >= 0);
	assert_int_equal(rig_bell_open((uint64_t)getpid(), (uint64_t)fd, &bell), -ESTALE);
	assert_int_equal(read(watch, &event, sizeof(event)), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(rig_bell_open((uint64_t)getpid(), 1 << 20, &bell), -ENOENT);
	assert_null(bell);
	(void)close(watch);
	(void)close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        /* First: nothing has loaded libfabric yet. */
	        RAIL_TEST(the_programs_signal_handlers_are_as_before),
	        RAIL_TEST_OVER(
	                "who_shows_another_token_is_refused", who_shows_another_token_is_refused, "sealed"),
	        RAIL_TEST_OVER("who_shows_another_token_is_refused_over_tcp",
	                who_shows_another_token_is_refused, "tcp"),
	        cmocka_unit_test_prestate(
	                who_greets_with_another_token_does_not_get_a_link, (void *)(uintptr_t) "shm"),
	        RAIL_TEST_OVER("strangers_neither_keep_the_peer_out_nor_a_descriptor",
	                strangers_neither_keep_the_peer_out_nor_a_descriptor, "sealed"),
	        RAIL_TEST_OVER("strangers_neither_keep_the_peer_out_nor_a_descriptor_over_tcp",
	                strangers_neither_keep_the_peer_out_nor_a_descriptor, "tcp"),
	        RAIL_TEST_OVER("an_offer_is_good_once", an_offer_is_good_once, "sealed"),
	        RAIL_TEST_OVER("an_offer_is_good_once_over_tcp", an_offer_is_good_once, "tcp"),
	        RAIL_TEST_OVER("an_offer_that_is_given_up_leaves_no_descriptor",
	                an_offer_that_is_given_up_leaves_no_descriptor, "sealed"),
	        RAIL_TEST_OVER("an_offer_that_is_given_up_leaves_no_descriptor_over_tcp",
	                an_offer_that_is_given_up_leaves_no_descriptor, "tcp"),
	        cmocka_unit_test(many_strangers_that_say_nothing_make_room_for_the_peer),
	        cmocka_unit_test(an_engine_listens_at_its_ports_alone),
	        RAIL_TEST(an_offer_that_nobody_takes_times_out),
	        RAIL_TEST(an_offer_of_another_provider_or_piece_is_refused),
	        cmocka_unit_test(an_unknown_provider_is_refused_by_name),
	        cmocka_unit_test(what_is_called_no_bell_is_not_opened),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
