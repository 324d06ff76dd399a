/* SPDX-License-Identifier: MIT */
#ifndef RIG_BDF_H
#define RIG_BDF_H

/*
 * The address of a PCI function: domain, bus, slot and function, as Linux writes it ("0000:65:00.0").
 *
 * A domain is a number of 32 bits, so its text has four to eight hex digits: those behind Intel VMD begin
 * at 10000. Nobody else reads, prints or compares addresses: two texts can be one address ("0000:6E:00.0",
 * "0000:6e:00.0"), and a text cut to four digits is the address of another function.
 *
 * Pure. Any thread.
 */

#include <stdbool.h>
#include <stdint.h>

/* Bytes of the longest text, with its end: "ffffffff:ff:1f.7". */
enum { RIG_BDF_TEXT = 17 };

struct rig_bdf {
	uint32_t domain;
	uint8_t bus;
	uint8_t slot;     /* 0 to 31 */
	uint8_t function; /* 0 to 7 */
};

/* The whole text is an address: four to eight hex digits of the domain, two of the bus, two of the slot, one
 * of the function; small or capital letters. Else false, and out is as it was. */
bool rig_bdf_parse(const char *text, struct rig_bdf *out);

/* As Linux writes it, which is the name in sysfs. Returns to. */
char *rig_bdf_print(const struct rig_bdf *bdf, char to[RIG_BDF_TEXT]);

/* Below, equal or above 0, in the order in which people look for them: domain, bus, slot, function. */
int rig_bdf_compare(const struct rig_bdf *a, const struct rig_bdf *b);

/* The name in sysfs of the address that text is; false and "" if it is none. */
bool rig_bdf_name(const char *text, char to[RIG_BDF_TEXT]);

/* Whether text is an address written as sysfs does: the name of a function's folder. */
bool rig_bdf_is_name(const char *text);

#endif
