/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "rig_edge.h"
#include "rmt_key.h"

static const char prefix[] = "rig-key-1 ";

enum {
	PREFIX = sizeof(prefix) - 1,
	LINE = PREFIX + 2 * RIG_RMT_KEY, /* without the newline */
	OTHERS = S_IRWXG | S_IRWXO,
};

static int write_all(int fd, const char *text, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t wrote = write(fd, text + done, n - done);

		if (wrote < 0 && errno != EINTR)
			return -errno;
		if (wrote > 0)
			done += (size_t)wrote;
	}
	return 0;
}

struct rig_rmt_key *rig_rmt_key_alloc(void)
{
	return sodium_init() < 0 ? NULL : sodium_malloc(sizeof(struct rig_rmt_key));
}

void rig_rmt_key_free(struct rig_rmt_key *key)
{
	sodium_free(key);
}

int rig_rmt_key_make(const char *path)
{
	struct rig_rmt_key key;
	char line[LINE + 2];
	int err, fd;

	if (sodium_init() < 0)
		return rig_error_set(-ENOSYS, "the system gives no random numbers");
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
	if (fd < 0) {
		err = -errno;
		return rig_error_set(err, "cannot make key file %s: %s", path, strerror(-err));
	}
	randombytes_buf(key.bytes, sizeof(key.bytes));
	memcpy(line, prefix, PREFIX);
	(void)sodium_bin2hex(line + PREFIX, sizeof(line) - PREFIX, key.bytes, sizeof(key.bytes));
	line[LINE] = '\n';
	err = write_all(fd, line, LINE + 1);
	if (!err && fsync(fd))
		err = -errno;
	if (close(fd) && !err)
		err = -errno;
	sodium_memzero(&key, sizeof(key));
	sodium_memzero(line, sizeof(line));
	if (!err)
		return 0;
	(void)unlink(path);
	return rig_error_set(err, "cannot write key file %s: %s", path, strerror(-err));
}

int rig_rmt_key_parse(const char *text, size_t n, struct rig_rmt_key *key)
{
	size_t made = 0;

	if (n && text[n - 1] == '\n')
		n--;
	if (n != LINE || memcmp(text, prefix, PREFIX) != 0 ||
	        sodium_hex2bin(key->bytes, sizeof(key->bytes), text + PREFIX, 2 * RIG_RMT_KEY, NULL, &made,
	                NULL) != 0 ||
	        made != sizeof(key->bytes)) {
		sodium_memzero(key, sizeof(*key));
		return -EINVAL;
	}
	return 0;
}

static int check_owner(const char *path, const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return rig_error_set(-EINVAL, "key file %s is no file", path);
	if (st->st_uid != geteuid() && st->st_uid != 0)
		return rig_error_set(-EPERM, "key file %s belongs to user %u, not to this one or root", path,
		        (unsigned)st->st_uid);
	if (st->st_mode & OTHERS)
		return rig_error_set(-EPERM,
		        "key file %s may be read or written by others (mode %04o): chmod 600", path,
		        (unsigned)st->st_mode & 07777u);
	return 0;
}

int rig_rmt_key_read(const char *path, struct rig_rmt_key *key)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err = 0;
	char text[LINE + 2];
	struct stat st;
	ssize_t n = 0;

	if (fd < 0) {
		err = -errno;
		return rig_error_set(err, "cannot read key file %s: %s", path, strerror(-err));
	}
	if (fstat(fd, &st))
		err = rig_error_set(-errno, "cannot read key file %s", path);
	if (!err)
		err = check_owner(path, &st);
	if (!err) {
		n = read(fd, text, sizeof(text));
		if (n < 0 || rig_rmt_key_parse(text, (size_t)n, key))
			err = rig_error_set(
			        -EINVAL, "%s is no key file: rig-agent --make-key FILE makes one", path);
	}
	sodium_memzero(text, sizeof(text));
	(void)close(fd);
	return err;
}
