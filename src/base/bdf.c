/* SPDX-License-Identifier: MIT */
#include "bdf.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { DOMAIN_LEAST = 4, DOMAIN_MOST = 8, SLOTS = 32, FUNCTIONS = 8 };

static int digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* The number before the character `end`, of `least` to `most` digits; text is then behind that character. */
static bool number(const char **text, unsigned least, unsigned most, char end, uint32_t *out)
{
	uint32_t n = 0;
	unsigned i = 0;

	while (i < most && digit((*text)[i]) >= 0)
		n = n << 4 | (uint32_t)digit((*text)[i++]);
	if (i < least || (*text)[i] != end)
		return false;
	*text += i + 1;
	*out = n;
	return true;
}

bool rig_bdf_parse(const char *text, struct rig_bdf *out)
{
	uint32_t domain, bus, slot, function;

	if (!number(&text, DOMAIN_LEAST, DOMAIN_MOST, ':', &domain) || !number(&text, 2, 2, ':', &bus) ||
	        !number(&text, 2, 2, '.', &slot) || !number(&text, 1, 1, 0, &function) || slot >= SLOTS ||
	        function >= FUNCTIONS)
		return false;
	*out = (struct rig_bdf){domain, (uint8_t)bus, (uint8_t)slot, (uint8_t)function};
	return true;
}

char *rig_bdf_print(const struct rig_bdf *bdf, char to[RIG_BDF_TEXT])
{
	snprintf(to, RIG_BDF_TEXT, "%04" PRIx32 ":%02x:%02x.%x", bdf->domain, bdf->bus, bdf->slot,
	        bdf->function);
	return to;
}

/* An address in one number, in the order of its parts. */
static uint64_t whole(const struct rig_bdf *bdf)
{
	return (uint64_t)bdf->domain << 24 | (uint64_t)bdf->bus << 16 | (uint64_t)bdf->slot << 8 |
	       bdf->function;
}

int rig_bdf_compare(const struct rig_bdf *a, const struct rig_bdf *b)
{
	return (whole(a) > whole(b)) - (whole(a) < whole(b));
}

bool rig_bdf_name(const char *text, char to[RIG_BDF_TEXT])
{
	struct rig_bdf bdf;

	if (!rig_bdf_parse(text, &bdf)) {
		*to = 0;
		return false;
	}
	rig_bdf_print(&bdf, to);
	return true;
}

bool rig_bdf_is_name(const char *text)
{
	char name[RIG_BDF_TEXT];

	return rig_bdf_name(text, name) && strcmp(name, text) == 0;
}
