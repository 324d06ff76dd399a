/* SPDX-License-Identifier: MIT */
/*
 * Where the library's messages go: a callback of the caller's. The library itself never prints.
 *
 * `fn` is called from whichever thread has something to say, with one line of text without a newline that
 * lives until `fn` returns. A NULL log, or one without `fn`, drops every message before it is formatted.
 */
#ifndef RIG_LOG_H
#define RIG_LOG_H

/* How bad, worst first. */
enum rig_log_level {
	RIG_LOG_ERROR, /* something was asked for and did not happen */
	RIG_LOG_WARN,  /* it happened, but not as well as it should */
	RIG_LOG_INFO,  /* once per open, boot or reset */
	RIG_LOG_DEBUG, /* for bringing up a board */
};

/* Longest text of one message, with its terminator; what is longer is cut. */
enum { RIG_LOG_BYTES = 1024 };

struct rig_log {
	void (*fn)(void *arg, int level, const char *text);
	void *arg;
};

/* What is said while fn must not be called, because a lock is held that fn may need (fork takes one): kept in
 * order, and handed on afterwards. Of what does not fit only the number is said, at the worst of its
 * levels. */
enum { RIG_LOG_LATE = 16 };

struct rig_log_late {
	unsigned count, more; /* lines kept; and those there was no room for */
	int worst;            /* level of these */
	struct rig_log_line {
		int level;
		char text[RIG_LOG_BYTES];
	} line[RIG_LOG_LATE];
};

/* A log that keeps into `late`, zeroed before the first. For one thread. */
struct rig_log rig_log_later(struct rig_log_late *late);
/* Empties it into `log`, NULL allowed. */
void rig_log_say(struct rig_log_late *late, const struct rig_log *log);

void rig_logf(const struct rig_log *log, int level, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

#endif
