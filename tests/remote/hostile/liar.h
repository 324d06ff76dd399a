/* SPDX-License-Identifier: MIT */
#ifndef LIAR_H
#define LIAR_H

/*
 * Messages that lie: every kind of rmt_frames.h, field by field as that header has it, with numbers that are
 * right, nearly right, another's, repeated or at the ends of their range, so that most get past the parser.
 * The same ones in every run from the same seed. Pure but for liar_send.
 */
#include <stdbool.h>

#include "rmt_chan.h"
#include "rmt_frames.h"

/* Sanitizers map far more than a program has, so that nothing bounds it. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define LIAR_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define LIAR_SANITIZED 1
#endif
#endif
#ifndef LIAR_SANITIZED
#define LIAR_SANITIZED 0
#endif

enum { LIAR_DEVICES = 3, LIAR_REGIONS = 8, LIAR_REGION_BYTES = 1200000, LIAR_RAILS = 3 };

struct liar {
	uint64_t numbers; /* the state of its draws */
	bool wild;   /* says what is no message, too, and ends the job by that soon; else its regions are 1 to
	              LIAR_REGIONS, and image and function are 1 */
	bool linked; /* by rails, too: liar_rails.h */
	bool board;  /* its device 0 is one; the others are hosts */
	uint32_t request; /* the last */
	uint64_t values[LIAR_DEVICES];
	uint64_t code;         /* bytes since the last LOAD */
	const char *names[4];  /* of devices, some of which are served */
	const char *peer;      /* the agent's, which it may be told to dial */
	const uint8_t *kernel; /* a binary that loads */
	size_t kernel_bytes;
};

/* Below `below`; whether one of n draws falls that way. */
uint32_t liar_draw(struct liar *l, uint32_t below);
bool liar_once_in(struct liar *l, uint32_t n);
/* A number at an end of some range, or any. */
uint64_t liar_edge(struct liar *l);

/* Fields by letters (liar.c has them), after what out has. */
void liar_fields(struct liar *l, struct rig_rmt_out *out, const char *fields);
/* What a controller says, of a kind that is drawn; now and then with bytes changed, cut off or added. */
uint8_t liar_controller(struct liar *l, struct rig_rmt_out *out);
/* The same of an agent to its controller, and to another agent of a job. */
uint8_t liar_agent(struct liar *l, struct rig_rmt_out *out);
uint8_t liar_between(struct liar *l, struct rig_rmt_out *out);
/* Sends and frees it. */
int liar_send(struct rig_rmt_chan *chan, uint8_t kind, struct rig_rmt_out *out);

#endif
