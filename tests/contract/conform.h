/* SPDX-License-Identifier: MIT */
/*
 * Laws: promises of the driver contract, each a function that runs against any opener.
 *
 * A law runs in a process of its own (conform_run), so that a driver that crashes or hangs fails that law
 * alone. It ends by returning (passed), by conform_fail or by conform_skip. What it opened is closed by it
 * when it passes, and by its process's end otherwise.
 *
 * A law's name is the promise. `pins` names the obligations it stands for (docs/contract-coverage.md).
 */
#ifndef CONFORM_H
#define CONFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rig_conform.h"

enum conform_end { CONFORM_PASSED, CONFORM_FAILED, CONFORM_SKIPPED };

#define CONFORM_TEXT 512u

/* Where devices come from. */
struct conform_source {
	/* As rig_conform.h's functions. */
	const struct rig_opener *(*opener)(const struct conform_source *source, unsigned index);
	const struct rig_conform_code *(*code)(const struct conform_source *source, const char *arch);
	/* NULL, or the driver's own complaint about the runtime, asked after a law of librig. Optional. */
	const char *(*complaint)(const struct conform_source *source);
	const void *arg;
	uint64_t wait_ms; /* what laws wait for the device at most; 0: CONFORM_WAIT_MS */
};

/* What a device takes at most for the small works of laws, on a loaded machine. */
#define CONFORM_WAIT_MS 20000u

/* A running law. */
struct conform {
	const struct conform_source *source;
	int out; /* takes the result */
};

struct conform_law {
	const char *name;
	const char *pins;
	void (*run)(struct conform *c);
};

/* Laws of one subject. */
struct conform_group {
	const char *name;
	const struct conform_law *laws;
	size_t n;
};

#define CONFORM_GROUP(name_, laws_)                                                                          \
	const struct conform_group conform_##name_ = {#name_, laws_, sizeof(laws_) / sizeof(laws_[0])}
/* A law whose function has the law's name. */
#define LAW(name_, pins_)                                                                                    \
	{                                                                                                    \
#name_, pins_, name_                                                                         \
	}

/* All groups; NULL ends the list. */
extern const struct conform_group *const conform_groups[];
const struct conform_law *conform_find(const char *name);

struct conform_result {
	enum conform_end end;
	char text[CONFORM_TEXT]; /* why, unless passed */
	uint64_t ns;
};

/* Runs the law in a process of its own, killed after deadline_ms (failed). With `inside`, in this
   process instead, for a debugger; it does not return unless the law passes. */
void conform_run(const struct conform_law *law, const struct conform_source *source, uint64_t deadline_ms,
        bool inside, struct conform_result *result);

/* For laws. Neither returns. */
_Noreturn void conform_fail(struct conform *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
_Noreturn void conform_skip(struct conform *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Fails unless the condition holds; what is more is printf-like and says what was found. */
#define conform_check(c, condition, ...)                                                                     \
	do {                                                                                                 \
		if (!(condition))                                                                            \
			conform_fail(c, __VA_ARGS__);                                                        \
	} while (0)

#endif
