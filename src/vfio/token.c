/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <stddef.h>

#include "pci.h"

bool rig_pci_token_parse(const char *text, unsigned char *uuid)
{
	static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
	unsigned nibbles = 0;

	for (size_t i = 0; form[i]; i++) {
		char c = text[i];
		int value = c <= '9' ? c - '0' : (c | ('a' ^ 'A')) - 'a' + 10;

		if (form[i] == '-' ? c != '-' : !isxdigit((unsigned char)c))
			return false;
		if (form[i] == '-')
			continue;
		uuid[nibbles / 2] = (unsigned char)(nibbles % 2 ? uuid[nibbles / 2] << 4 | value : value);
		nibbles++;
	}
	return !text[sizeof(form) - 1];
}
