/* SPDX-License-Identifier: MIT */
/*
 * A message built piece by piece in the caller's buffer: the "why" texts that carry attempt, errno, evidence
 * and remedy.
 *
 * Never overflows and is always terminated; what does not fit is dropped and `cut` says so. One thread at a
 * time. A text over no buffer (NULL or 0 bytes) takes everything and keeps nothing, so callers need not ask
 * whether anybody wants the message.
 */
#ifndef RIG_TEXT_H
#define RIG_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct rig_text {
	char *at;    /* the caller's buffer, borrowed */
	size_t size; /* its bytes, terminator included */
	size_t used; /* bytes of text in it, without the terminator: < size, or 0 */
	bool cut;    /* something did not fit */
};

/* Begin an empty text in `buffer` of `size` bytes. */
void rig_text_init(struct rig_text *text, char *buffer, size_t size);

/* Append, as printf. NULL `text` is allowed and does nothing. */
void rig_text_addf(struct rig_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void rig_text_addv(struct rig_text *text, const char *format, va_list args)
        __attribute__((format(printf, 2, 0)));

/* Append ": NAME (text)" of the error number, positive or negative (strerror, thread safe). */
void rig_text_add_errno(struct rig_text *text, int error);

/* Append a name that people read as a key that programs do: ASCII letters small, digits as they are, '_' for
   all else. "bytes read" is "bytes_read". */
void rig_text_add_key(struct rig_text *text, const char *name);

#endif
