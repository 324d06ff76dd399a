/* SPDX-License-Identifier: MIT */
/* rvx1-model: the reference board as a process. */
#include "rvx_options.h"
#include "rvx_process.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define VERSION      "rvx1-model " RVX_MODEL_VERSION "\n"
#define EXIT_FAILED  1
#define EXIT_MISUSED 2
#define EXIT_SERVED  0

static void print_log(void *ctx, enum rvx_log_level level, const char *text)
{
	const struct rvx_options *options = ctx;

	if (options->log || level == RVX_LOG_ERROR)
		fprintf(stderr, "rvx1-model: %s\n", text);
}

static int fail(const char *what, int err)
{
	fprintf(stderr, "rvx1-model: %s: %s\n", what, strerror(-err));
	return EXIT_FAILED;
}

static int serve(struct rvx_options *options)
{
	struct rvx_board *board = NULL;
	struct rvx_stop stop;
	int err, status = EXIT_SERVED;

	options->config.log = print_log;
	options->config.log_ctx = options;
	err = rvx_board_open(&options->config, &board);
	if (err)
		return fail("the board does not start", err);
	err = rvx_process_prepare(options->fd, &stop);
	if (err) {
		status = fail("the process can not be set up", err);
		goto close_board;
	}
	err = options->socket ? rvx_board_listen(board, options->socket)
	                      : rvx_board_attach(board, options->fd);
	if (err) {
		status = fail(options->socket ? options->socket : "--fd", err);
		goto close_board;
	}
	rvx_board_run(board, stop.asked, &stop.unblocked);

close_board:
	rvx_board_close(board);
	return status;
}

int main(int argc, char **argv)
{
	struct rvx_options options;

	switch (rvx_options_parse(argc, argv, &options)) {
	case RVX_HELP:
		rvx_options_help();
		return EXIT_SERVED;
	case RVX_VERSION:
		fputs(VERSION, stdout);
		return EXIT_SERVED;
	case RVX_MISUSED:
		return EXIT_MISUSED;
	case RVX_RUN:
	default:
		rvx_process_close_others(options.fd);
		return serve(&options);
	}
}
