/* SPDX-License-Identifier: MIT */
#include "text.h"

#include <stdio.h>
#include <string.h>

void rig_text_init(struct rig_text *text, char *buffer, size_t size)
{
	*text = (struct rig_text){.at = buffer, .size = buffer ? size : 0};
	if (text->size)
		buffer[0] = '\0';
}

void rig_text_addv(struct rig_text *text, const char *format, va_list args)
{
	size_t room;
	int wrote;

	if (!text)
		return;
	room = text->size - text->used;
	wrote = vsnprintf(room ? text->at + text->used : NULL, room, format, args);
	if (wrote <= 0)
		return;
	if ((size_t)wrote < room) {
		text->used += (size_t)wrote;
		return;
	}
	text->cut = true;
	if (room)
		text->used = text->size - 1;
}

void rig_text_addf(struct rig_text *text, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	rig_text_addv(text, format, args);
	va_end(args);
}

void rig_text_add_errno(struct rig_text *text, int error)
{
	int number = error < 0 ? -error : error;
	const char *name = strerrorname_np(number);
	const char *means = strerrordesc_np(number);

	rig_text_addf(text, ": %s (%s)", name ? name : "errno", means ? means : "unknown");
	if (!name)
		rig_text_addf(text, " %d", number);
}

static char key_char(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c - 'A' + 'a');
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '_';
}

void rig_text_add_key(struct rig_text *text, const char *name)
{
	for (; *name; name++)
		rig_text_addf(text, "%c", key_char(*name));
}
