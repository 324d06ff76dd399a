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

void rig_logf(const struct rig_log *log, int level, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

#endif
