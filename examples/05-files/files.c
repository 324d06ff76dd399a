/* SPDX-License-Identifier: MIT */
/* A range of a file to a board's memory and back into a file, without a copy in the program.
   usage: files [DEVICE [FILE [OUTPUT]]] */
#include <string.h>

#include <rig_file.h>

#include "example.h"

#define FROM   5u /* the range that goes to the board */
#define MOST   (64u << 20)
#define OUTPUT "files.out"

static struct rig_device *open_files(void)
{
	struct rig_io_opener opener;
	struct rig_device *files;

	rig_file_opener("files", &opener);
	must(rig_open_io(&opener, &files), "open files");
	return files;
}

int main(int argc, char **argv)
{
	const char *input = argc > 2 ? argv[2] : FILES_INPUT, *output = argc > 3 ? argv[3] : OUTPUT;
	struct rig_device *board = open_named(argc > 1 ? argv[1] : "sim"), *files = open_files();
	struct rig_buffer *in, *out, *on_board;
	uint64_t bytes;

	must(rig_file_buffer(files, input, RIG_READ, &in), "input");
	bytes = rig_buffer_bytes(in) < MOST ? rig_buffer_bytes(in) : MOST;
	bytes = bytes > FROM ? bytes - FROM : 0;
	must(rig_buffer_create(board, RIG_DEVICE, bytes, &on_board), "buffer");
	must(rig_file_create(files, output, bytes, &out), "output");

	/* The board's copy engine takes one half of its staging memory while the other is read from the
	   file. */
	must(rig_buffer_copy(on_board, 0, in, FROM, bytes), "copy to the board");
	must(rig_buffer_copy(out, 0, on_board, 0, bytes), "copy to the file");
	must(rig_file_sync(out), "sync");
	printf("%" PRIu64 " bytes of %s from byte %u, through %s, in %s\n", bytes,
	        strrchr(input, '/') ? strrchr(input, '/') + 1 : input, FROM, rig_arch(board), output);

	rig_buffer_put(on_board);
	rig_buffer_put(out);
	rig_buffer_put(in);
	close_named(files);
	close_named(board);
	return 0;
}
