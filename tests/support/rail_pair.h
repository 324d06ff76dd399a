/* SPDX-License-Identifier: MIT */
/* Two rail engines in one process, linked, for tests: what two machines would have. */
#ifndef RIG_RAIL_PAIR_H
#define RIG_RAIL_PAIR_H

#include "rail.h"

/* A wait of a test ends after this, also on a machine with much else to do. */
#define RAIL_PAIR_NS (60 * RIG_NS_PER_S)

struct rail_pair {
	struct rig_rails *rails[2];
	struct rig_rail_link *link[2];
};

/* A rail's two ends. */
struct rail_ends {
	const struct rig_remote_end *end[2];
};

/* A test for each provider, whose name is its state: sealed, and over tcp and shm with a name that says so.
   One that is late is of libfabric's. */
#define RAIL_TEST_OVER(name, test, provider)                                                                 \
	{                                                                                                    \
		name, test, NULL, NULL, (void *)(uintptr_t)(provider)                                        \
	}
#ifdef RAIL_LATE
#define RAIL_TEST(test) RAIL_TEST_OVER(#test, test, "tcp"), RAIL_TEST_OVER(#test "_over_shm", test, "shm")
#else
#define RAIL_TEST(test)                                                                                      \
	RAIL_TEST_OVER(#test, test, "sealed"), RAIL_TEST_OVER(#test "_over_tcp", test, "tcp"),               \
	        RAIL_TEST_OVER(#test "_over_shm", test, "shm")
#endif

/* With the default options and the provider of the test; skips where the machine does not have it. */
void rail_pair_begin(struct rail_pair *pair, void **state);

/* The same with one rail, each way one transfer of `length` bytes. */
void rail_pair_begin_one(struct rail_pair *pair, void **state, int64_t length, struct rail_ends *ends);

/* Opens both engines with these options (provider and what else the test wants) and links them. 0, or a
   negative errno
 * with nothing left; -ENODEV: this machine does not have the provider. */
int rail_pair_open(struct rail_pair *pair, const struct rig_rails_options *options);
int rail_pair_open_two(struct rail_pair *pair, const struct rig_rails_options options[2]);

/* Stops both before it closes either. */
void rail_pair_close(struct rail_pair *pair);

/* A rail between the two, both ends made and joined: side 0 sends `send` and receives `receive`. */
int rail_pair_make(struct rail_pair *pair, uint64_t id, const struct rig_remote_transfer *send, size_t nsend,
        const struct rig_remote_transfer *receive, size_t nreceive, struct rail_ends *ends);

void rail_ends_put(struct rail_ends *ends);

/* Waits until the count is at least c and returns it; fails the test after RAIL_PAIR_NS. */
uint64_t rail_wait(const struct rig_remote_end *end, enum rig_remote_count count, uint64_t c);

/* end's ready, as work calls it. */
void rail_ready(const struct rig_remote_end *end, uint64_t c);

/* A link of two engines of this process. */
int rail_pair_link(struct rig_rails *a, struct rig_rails *b, struct rig_rail_link *link[2]);

#endif
