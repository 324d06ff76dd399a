/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>

#include "rig_remote_abi.h"

static int refuse(const char *direction, size_t index, const char *what, int64_t value, const char *bound)
{
	return rig_error_set(-EINVAL, "%s[%zu]: %s is %" PRId64 ", %s", direction, index, what, value, bound);
}

/* Whether a span of `length` from `at` ends within the reach; `at` is not negative and `length` positive. */
static bool within_reach(int64_t at, int64_t length)
{
	return length <= RIG_REMOTE_REACH && at <= RIG_REMOTE_REACH - length;
}

static int check_transfer(const char *direction, size_t index, const struct rig_remote_transfer *t)
{
	if (t->length < 1)
		return refuse(direction, index, "length", t->length, "below 1");
	if (t->src < 0)
		return refuse(direction, index, "src", t->src, "below 0");
	if (t->dst < 0)
		return refuse(direction, index, "dst", t->dst, "below 0");
	if (!within_reach(t->src, t->length))
		return refuse(direction, index, "src", t->src, "and with its length it ends above 2^60");
	if (!within_reach(t->dst, t->length))
		return refuse(direction, index, "dst", t->dst, "and with its length it ends above 2^60");
	return 0;
}

static int check_direction(const char *direction, const struct rig_remote_transfer *transfers, size_t n)
{
	if (n && !transfers)
		return rig_error_set(-EINVAL, "%s is NULL with %zu transfers", direction, n);
	for (size_t i = 0; i < n; i++) {
		int code = check_transfer(direction, i, &transfers[i]);

		if (code)
			return code;
	}
	return 0;
}

int rig_remote_check_transfers(const struct rig_remote_transfer *send, size_t nsend,
        const struct rig_remote_transfer *receive, size_t nreceive)
{
	int code;

	if (!nsend && !nreceive)
		return rig_error_set(-EINVAL, "send and receive are both empty: a rail carries something");
	code = check_direction("send", send, nsend);
	return code ? code : check_direction("receive", receive, nreceive);
}

size_t rig_remote_copy_bytes(const struct rig_remote_transfer *transfers, size_t n, bool inbound)
{
	size_t most = 0;

	for (size_t i = 0; i < n; i++) {
		int64_t at = inbound ? transfers[i].dst : transfers[i].src;
		size_t end = (size_t)(at + transfers[i].length);

		if (end > most)
			most = end;
	}
	return (most + RIG_REMOTE_COPY_ALIGN - 1) / RIG_REMOTE_COPY_ALIGN * RIG_REMOTE_COPY_ALIGN;
}
