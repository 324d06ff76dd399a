/* SPDX-License-Identifier: MIT */
/* Device processes that do not answer: every wait for them ends. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "pci.h"
#include "system.h"
#include "vfio_user.h"

enum { SHORT_MS = 50, CLIENTS = 16 };

/* A server that takes nobody, and has as many clients waiting as it lets wait. */
struct busy {
	int listener, client[CLIENTS];
	unsigned clients;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
};

static void busy_begin(struct busy *b)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd;

	strcpy(address.sun_path, sys_path("busy.sock"));
	strcpy(b->path, address.sun_path);
	b->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(b->listener >= 0);
	assert_int_equal(bind(b->listener, (const struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(b->listener, 0), 0);
	for (b->clients = 0; b->clients < CLIENTS; b->clients++) {
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		assert_true(fd >= 0);
		b->client[b->clients] = fd;
		if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0)
			break;
	}
	assert_int_equal(errno, EAGAIN);
	b->clients++;
}

static void busy_end(struct busy *b)
{
	while (b->clients > 0)
		close(b->client[--b->clients]);
	close(b->listener);
	assert_int_equal(unlink(b->path), 0);
}

static void a_server_that_takes_no_client_is_given_up(void **state)
{
	struct rig_vuser_want want = {.deadline_ms = SHORT_MS};
	struct rig_pci_taking options = {.begin = rig_vuser_begin, .arg = &want};
	struct rig_pci *pci;
	struct busy busy;

	(void)state;
	busy_begin(&busy);
	want.path = options.name = busy.path;
	assert_int_equal(rig_pci_take(&pci, &options), -ETIMEDOUT);
	assert_non_null(strstr(rig_error(), busy.path));
	assert_null(pci);
	busy_end(&busy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_server_that_takes_no_client_is_given_up),
	};

	return cmocka_run_group_tests(tests, sys_setup, sys_teardown);
}
