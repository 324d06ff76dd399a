/* SPDX-License-Identifier: MIT */
/* BARs: how large they are, how large they could be, and what stands in the way. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor_private.h"
#include "text.h"
#include "tree.h"

/* resourceN_resize: bit n says that 2^n MiB is a size of the BAR (PCI Express 4.0, section 7.8.6). */
#define MIB_SHIFT 20u

enum { SIZE_TEXT = 32, WORD_BITS = 64, MOST_SIZE = 43 };

static const char *size_text(uint64_t bytes, char *to)
{
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
	unsigned i = 0;

	while (i < 4 && bytes && bytes % 1024 == 0) {
		bytes /= 1024;
		i++;
	}
	snprintf(to, SIZE_TEXT, "%" PRIu64 " %s", bytes, units[i]);
	return to;
}

void rig_look_bars(struct rig_exam *x)
{
	char content[RIG_FINDING_CONTENT], size[SIZE_TEXT];
	struct rig_text t;

	rig_text_init(&t, content, sizeof(content));
	for (unsigned i = 0; i < RIG_KSYSFS_BARS; i++)
		if (x->s.bar_bytes[i])
			rig_text_addf(
			        &t, "%sBAR%u %s", t.used ? ", " : "", i, size_text(x->s.bar_bytes[i], size));
	if (t.used)
		(void)rig_found(x, rig_attribute_path(x->s.bdf, "resource"), "%s", content);
}

void rig_look_bar_page(struct rig_exam *x)
{
	const uint64_t page = 4096;
	char size[SIZE_TEXT];

	for (unsigned i = 0; i < RIG_KSYSFS_BARS; i++)
		if (x->s.bar_bytes[i] && (x->s.bar_bytes[i] < page || x->s.bar[i] % page))
			(void)rig_found(x, rig_attribute_path(x->s.bdf, "resource"),
			        "BAR%u has %s at %#" PRIx64, i, size_text(x->s.bar_bytes[i], size),
			        x->s.bar[i]);
}

/* The bridge whose window is the smallest above the function. */
struct narrow {
	const struct rig_exam *x;
	char bridge[RIG_KSYSFS_NAME];
	uint64_t window;
};

static int check_bridge(void *arg, const char *bridge)
{
	struct narrow *n = arg;
	uint64_t window = rig_bridge_window(n->x->root, bridge);

	if (window && (!n->window || window < n->window)) {
		n->window = window;
		snprintf(n->bridge, sizeof(n->bridge), "%s", bridge);
	}
	return 0;
}

static uint64_t largest(uint64_t sizes)
{
	for (unsigned n = MOST_SIZE; n-- > 0;)
		if (sizes >> n & 1)
			return UINT64_C(1) << (n + MIB_SHIFT);
	return 0;
}

/* What else lies behind the bridge takes room too, so this is the most that can be hoped for. */
static void check_bar(struct rig_exam *x, unsigned bar, uint64_t most)
{
	char now[SIZE_TEXT], could[SIZE_TEXT], window[SIZE_TEXT], name[32];
	struct narrow n = {.x = x};
	struct rig_finding *f;

	snprintf(name, sizeof(name), "resource%u_resize", bar);
	size_text(x->s.bar_bytes[bar], now);
	size_text(most, could);
	(void)rig_bridges(x->root, x->s.bdf, check_bridge, &n);
	if (n.window && n.window < most) {
		size_text(n.window, window);
		f = rig_found(x, rig_attribute_path(n.bridge, "resource"),
		        "BAR%u has %s and could have %s, but the window of bridge %s has %s", bar, now, could,
		        n.bridge, window);
		rig_command(f, "# firmware setup: switch on \"above 4G decoding\" and \"resizable BAR\"; or "
		               "kernel command line: "
		               "pci=realloc");
		return;
	}
	f = rig_found(
	        x, rig_attribute_path(x->s.bdf, name), "BAR%u has %s and could have %s", bar, now, could);
	/* The kernel resizes while no driver has the function, which rigctl unbind would give to one. */
	if (*x->s.driver)
		rig_command(f, "echo %s > %s", x->s.bdf, rig_attribute_path(x->s.bdf, "driver/unbind"));
	rig_command(f, "echo %d > %s", __builtin_ctzll(most) - (int)MIB_SHIFT,
	        rig_attribute_path(x->s.bdf, name));
	rig_command(f, "rigctl bind %s", x->s.bdf);
}

void rig_look_bar_small(struct rig_exam *x)
{
	char name[32], line[64];

	for (unsigned i = 0; i < RIG_KSYSFS_BARS; i++) {
		snprintf(name, sizeof(name), "resource%u_resize", i);
		if (x->s.bar_bytes[i] && rig_attribute(x, x->s.bdf, name, line, sizeof(line)) &&
		        largest(strtoull(line, NULL, 16)) > x->s.bar_bytes[i])
			check_bar(x, i, largest(strtoull(line, NULL, 16)));
	}
}

/* -- The screen of firmware -- */

#define IOMEM "/proc/iomem"
#define FB    "/proc/fb"

enum { CLAIM = 64 };

/* What claims the memory that firmware's screen lies in. */
static bool is_screen(const char *name)
{
	static const char *const names[] = {"BOOTFB", "simpledrm", "simplefb", "simple-framebuffer", "efifb",
	        "efi-framebuffer", "vesafb", "vesa-framebuffer", "EFI VGA", "VESA VGA", "simple",
	        "simpledrmdrmfb", "OFfb", "ofdrm", "ofdrmdrmfb"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

struct claims {
	const char *bdf;
	int inside; /* how far the function's own lines stand in; -1: not below one of them */
	char claim[CLAIM];
};

/* "  4000000000-40007fffff : BOOTFB", two spaces deeper than what it lies in. Numbers are shown to root
 * alone. */
static int find_claim(void *arg, char *line)
{
	struct claims *c = arg;
	int depth = (int)strspn(line, " ");
	const char *name = strstr(line, " : ");

	if (!name)
		return 0;
	name += strlen(" : ");
	if (depth <= c->inside)
		c->inside = -1;
	if (c->inside < 0 && strcmp(name, c->bdf) == 0)
		c->inside = depth;
	else if (c->inside >= 0 && is_screen(name))
		snprintf(c->claim, sizeof(c->claim), "%.*s", (int)strcspn(line + depth, "\n"), line + depth);
	return *c->claim != 0;
}

/* "0 EFI VGA". */
static int find_screen(void *arg, char *line)
{
	const char *name = strchr(line, ' ');

	if (!name || !is_screen(name + 1))
		return 0;
	snprintf(arg, CLAIM, "%s", line);
	return 1;
}

/* Where iomem does not say what lies in the function: it is what the machine started with, on such a
 * screen. */
static const char *find_boot_screen(const struct rig_exam *x, struct claims *c)
{
	char line[8], *text;

	if (!rig_attribute(x, x->s.bdf, "boot_vga", line, sizeof(line)) || *line != '1')
		return FB;
	text = rig_tree_read(x->root, FB, NULL);
	(void)rig_tree_lines(text, find_screen, c->claim);
	free(text);
	return FB;
}

void rig_look_framebuffer(struct rig_exam *x)
{
	struct claims c = {.bdf = x->s.bdf, .inside = -1};
	char *text = rig_tree_read(x->root, IOMEM, NULL);
	bool known = text && strstr(text, x->s.bdf);
	const char *file = IOMEM;
	struct rig_finding *f;

	(void)rig_tree_lines(text, find_claim, &c);
	free(text);
	if (!known)
		file = find_boot_screen(x, &c);
	if (!*c.claim)
		return;
	f = rig_found(x, file, "%s", c.claim);
	rig_command(f, "# kernel command line: add initcall_blacklist=sysfb_init (before Linux 5.15: "
	               "video=efifb:off), then "
	               "reboot; the machine then starts without a picture on this function");
	rig_command(f, "# or firmware setup: another function as the first screen");
}
