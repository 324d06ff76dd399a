/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rigctl.h"
#include "run_args.h"

int read_file(const char *path, uint8_t **bytes, uint64_t *count)
{
	uint64_t room = 1 << 16, have = 0;
	uint8_t *at = malloc(room);
	int err = 0, fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		err = -errno;
	while (!err && at) {
		ssize_t n = read(fd, at + have, room - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			err = -errno;
		if (n <= 0)
			break;
		have += (uint64_t)n;
		if (have == room) {
			uint8_t *more = realloc(at, room *= 2);

			if (!more)
				err = -ENOMEM;
			else
				at = more;
		}
	}
	if (!at)
		err = -ENOMEM;
	if (fd >= 0)
		close(fd);
	if (err)
		free(at);
	*bytes = err ? NULL : at;
	*count = have;
	return err;
}

int write_file(const char *path, const uint8_t *bytes, uint64_t count)
{
	int err = 0, fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (fd < 0)
		return -errno;
	while (!err && count) {
		ssize_t n = write(fd, bytes, count);

		if (n < 0 && errno != EINTR)
			err = -errno;
		if (n > 0) {
			bytes += n;
			count -= (uint64_t)n;
		}
	}
	if (close(fd) && !err)
		err = -errno;
	return err;
}

static int try_output(const char *path)
{
	bool there = !access(path, F_OK);
	int fd = open(path, O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0666);

	if (fd < 0)
		return -errno;
	close(fd);
	if (!there)
		unlink(path);
	return 0;
}

int check_outputs(const struct run_args *args)
{
	unsigned i;

	for (i = 0; i < args->count; i++) {
		const char *to = args->arg[i].to;
		int err = to ? try_output(to) : 0;

		if (err)
			return complain(EXIT_USAGE, "%s: %s", to, strerror(-err));
	}
	return 0;
}

static bool parse_bytes(const char *text, uint64_t *bytes)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*bytes = strtoull(text, &end, 0);
	return !errno && !*end && *bytes;
}

static int load(struct run_arg *a)
{
	int err = read_file(a->file, &a->bytes, &a->count);

	if (err)
		return complain(EXIT_USAGE, "%s: %s", a->file, strerror(-err));
	if (!a->count)
		return complain(EXIT_USAGE, "%s: it is empty, and a buffer has at least 1 byte", a->file);
	return 0;
}

/* "FILE,MORE" at its last comma, so that file names may have some; NULL if there is none. */
static char *split(char *value)
{
	char *comma = strrchr(value, ',');

	if (!comma || comma == value || !comma[1])
		return NULL;
	*comma = 0;
	return comma + 1;
}

static int add_buffer(struct run_arg *a, const char *kind, char *value)
{
	char *more;

	a->size = 8;
	if (!strcmp(kind, "in")) {
		if (!*value)
			return complain(EXIT_USAGE, "in: a file's name must follow, as in:FILE");
		a->kind = ARG_IN;
		a->file = value;
		return load(a);
	}
	if (!strcmp(kind, "zero")) {
		a->kind = ARG_ZERO;
		if (!parse_bytes(value, &a->count))
			return complain(EXIT_USAGE, "zero:%s: a plain number of bytes, at least 1", value);
		return 0;
	}
	more = split(value);
	if (!strcmp(kind, "out")) {
		a->kind = ARG_OUT;
		a->to = value;
		if (!more || !parse_bytes(more, &a->count))
			return complain(EXIT_USAGE,
			        "out:%s%s%s: out:FILE,BYTES with a plain number of bytes, at least 1", value,
			        more ? "," : "", more ? more : "");
		return 0;
	}
	a->kind = ARG_INOUT;
	a->file = value;
	a->to = more;
	if (!more)
		return complain(EXIT_USAGE, "inout:%s: inout:FILE,OUTFILE, and OUTFILE may be FILE", value);
	return load(a);
}

static bool parse_integer(const char *kind, const char *text, uint64_t *out)
{
	bool is_signed = *kind == 'i', wide = !strcmp(kind + 1, "64");
	const char *digits = text + (is_signed && *text == '-');
	char *end;

	if (!isdigit((unsigned char)*digits))
		return false;
	errno = 0;
	*out = is_signed ? (uint64_t)strtoll(text, &end, 0) : strtoull(text, &end, 0);
	if (errno || *end)
		return false;
	if (wide)
		return true;
	return is_signed ? (int64_t)*out >= INT32_MIN && (int64_t)*out <= INT32_MAX : *out <= UINT32_MAX;
}

/* A number too large for its type is refused; one too small becomes what is nearest. */
static bool parse_real(const char *text, bool wide, uint8_t *out)
{
	double real = 0;
	float single = 0;
	char *end;

	errno = 0;
	if (wide)
		real = strtod(text, &end);
	else
		single = strtof(text, &end);
	if (!*text || isspace((unsigned char)*text) || *end || (errno && fabs(real + (double)single) > 1))
		return false;
	memcpy(out, wide ? (void *)&real : (void *)&single, wide ? sizeof(real) : sizeof(single));
	return true;
}

static int add_scalar(struct run_arg *a, const char *kind, const char *value)
{
	uint64_t integer;

	a->kind = ARG_SCALAR;
	a->size = !strcmp(kind + 1, "64") ? 8 : 4;
	if (*kind == 'f') {
		if (!parse_real(value, a->size == 8, a->scalar))
			return complain(EXIT_USAGE, "%s:%s: a number of %u bits, as 2, -1.5 or 1e-3", kind,
			        value, a->size * 8);
		return 0;
	}
	if (!parse_integer(kind, value, &integer))
		return complain(EXIT_USAGE, "%s:%s: an integer of %u bits, %s", kind, value, a->size * 8,
		        *kind == 'i'   ? "-2147483648 to 2147483647"
		        : a->size == 8 ? "0 to 18446744073709551615"
		                       : "0 to 4294967295");
	memcpy(a->scalar, &integer, a->size); /* little-endian, as the device */
	return 0;
}

static bool is_one_of(const char *kind, const char *const *names)
{
	for (; *names; names++)
		if (!strcmp(kind, *names))
			return true;
	return false;
}

int add_arg(struct run_args *args, char *text)
{
	static const char *const buffers[] = {"in", "out", "inout", "zero", NULL};
	static const char *const scalars[] = {"u32", "i32", "u64", "f32", "f64", NULL};
	struct run_arg *a = &args->arg[args->count];
	char *value = strchr(text, ':');
	int err;

	if (args->count == MAX_RUN_ARGS)
		return complain(EXIT_USAGE, "more than %d ARGs", MAX_RUN_ARGS);
	if (value)
		*value++ = 0;
	if (value && is_one_of(text, buffers))
		err = add_buffer(a, text, value);
	else if (value && is_one_of(text, scalars))
		err = add_scalar(a, text, value);
	else
		return complain(EXIT_USAGE,
		        "ARG %s: in:FILE, out:FILE,BYTES, inout:FILE,OUTFILE, zero:BYTES, u32:, i32:, u64:, "
		        "f32: or f64: and a number",
		        text);
	args->count++;
	a->at = (args->end + a->size - 1) / a->size * a->size;
	args->end = a->at + a->size;
	if (a->size > args->align)
		args->align = a->size;
	/* As a C structure of them: its size is a multiple of its alignment. */
	args->params = (args->end + args->align - 1) / args->align * args->align;
	return err;
}

void free_args(struct run_args *args)
{
	unsigned i;

	for (i = 0; i < args->count; i++) {
		free(args->arg[i].bytes);
		rig_buffer_put(args->arg[i].buffer);
	}
}
