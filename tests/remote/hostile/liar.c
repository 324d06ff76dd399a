/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "draw.h"
#include "liar.h"
#include "rig_remote.h"

uint32_t liar_draw(struct liar *l, uint32_t below)
{
	return test_draw(&l->numbers, below);
}

bool liar_once_in(struct liar *l, uint32_t n)
{
	return !liar_draw(l, n);
}

uint64_t liar_edge(struct liar *l)
{
	static const uint64_t edges[] = {0, 1, 2, 63, 64, 255, 4095, 4096, 65535, 1 << 19, INT32_MAX,
	        UINT32_MAX, UINT64_C(1) << 32, UINT64_C(1) << 60, UINT64_C(1) << 62, INT64_MAX,
	        UINT64_C(1) << 63, UINT64_MAX - 1, UINT64_MAX};
	uint32_t i = liar_draw(l, sizeof(edges) / sizeof(*edges) + 1);

	return i < sizeof(edges) / sizeof(*edges)
	               ? edges[i]
	               : (uint64_t)liar_draw(l, UINT32_MAX) << 32 | liar_draw(l, UINT32_MAX);
}

/* Mostly below `below`, else an edge. */
static uint64_t near(struct liar *l, uint32_t below)
{
	return liar_once_in(l, l->wild ? 24 : 400) ? liar_edge(l) : liar_draw(l, below);
}

static uint32_t device_of(struct liar *l)
{
	return (uint32_t)near(l, LIAR_DEVICES);
}

static bool strays(struct liar *l)
{
	return liar_once_in(l, l->wild ? 12 : 200);
}

static uint64_t bytes_of(struct liar *l)
{
	static const uint64_t sizes[] = {1, 8, 64, 1000, 4096, 65536, 300000, 600000, 1 << 20};

	return strays(l) ? liar_edge(l) : sizes[liar_draw(l, sizeof(sizes) / sizeof(*sizes))];
}

/* A number that the agent gave out, from 1. */
static uint32_t given(struct liar *l, uint32_t most)
{
	return l->wild || strays(l) ? (uint32_t)near(l, most + 4) : 1 + liar_draw(l, most);
}

static uint64_t value_of(struct liar *l)
{
	uint64_t *value = &l->values[liar_draw(l, LIAR_DEVICES)];

	return strays(l) ? liar_edge(l) : liar_once_in(l, 8) ? *value : ++*value;
}

static void put_noise(struct liar *l, struct rig_rmt_out *out, uint32_t most)
{
	uint32_t n = liar_draw(l, most);

	while (n--)
		rig_rmt_put8(out, (uint8_t)liar_draw(l, 256));
}

static void put_name(struct liar *l, struct rig_rmt_out *out, const char *right)
{
	static const char *const wrong[] = {
	        "", "no such thing", "127.0.0.1:1", "%s%n", "0000:00:00.0", "sim", "/dev/null"};

	rig_rmt_put_text(out, strays(l) ? wrong[liar_draw(l, sizeof(wrong) / sizeof(*wrong))] : right);
}

/* ---- Work ---- */

static struct rig_rmt_side side_of(struct liar *l, uint64_t row_bytes)
{
	struct rig_rmt_side side = {
	        .where = liar_once_in(l, l->wild ? 2 : 12) ? liar_draw(l, RIG_RMT_WHERES) : RIG_RMT_HERE,
	        .region = given(l, LIAR_REGIONS),
	        .offset = liar_once_in(l, 2) ? 0 : near(l, 5000),
	        .pitch = strays(l) ? near(l, 5000) : row_bytes,
	        .machine = (uint32_t)near(l, 3)};

	side.ticket = (struct rig_rmt_ticket){(uint32_t)near(l, 4), liar_edge(l), liar_edge(l)};
	return side;
}

/* A copy from here whose bytes go by a parcel. */
static void make_parcel(struct rig_rmt_part *part)
{
	part->kind = RIG_COPY;
	part->fill = false;
	part->rows = 1;
	part->row_bytes = 600000;
	part->src.where = RIG_RMT_LOCAL_PARCEL;
	part->dst = (struct rig_rmt_side){
	        .where = RIG_RMT_HERE, .region = part->dst.region, .pitch = part->row_bytes};
}

/* What the device's queues run, mostly. */
static void tame(struct liar *l, struct rig_rmt_part *part, bool on_board)
{
	if (!liar_once_in(l, on_board ? 3 : 30))
		part->kind = RIG_COPY;
	part->queue = on_board && part->kind == RIG_COPY;
}

static struct rig_rmt_part part_of(struct liar *l, uint32_t index, bool on_board)
{
	static uint32_t words[RIG_REMOTE_STEP_WORDS], after;
	static const uint8_t params[64];
	struct rig_rmt_part part = {.queue = (uint32_t)near(l, 2), .kind = liar_draw(l, 3)};

	if (!l->wild)
		tame(l, &part, on_board);

	if (strays(l))
		part.kind = (uint32_t)liar_edge(l);
	if (index && liar_once_in(l, 4)) {
		after = strays(l) ? (uint32_t)liar_edge(l) : liar_draw(l, index);
		part.nafter = 1;
		part.after = &after;
	}
	words[0] = (uint32_t)near(l, 4);
	words[1] = (uint32_t)near(l, 3);
	words[2] = liar_once_in(l, 8) ? liar_draw(l, 3) : 0;
	words[3] = (uint32_t)near(l, 9);
	words[4] = !l->linked && liar_once_in(l, 3) ? 1U << 30 : 0;
	part.words = words;
	part.nwords = liar_once_in(l, 8) ? liar_draw(l, RIG_REMOTE_STEP_WORDS) : RIG_REMOTE_STEP_WORDS;
	part.row_bytes = bytes_of(l);
	part.rows = part.row_bytes < 5000 ? 1 + near(l, 9) : UINT64_C(1) + strays(l);
	part.dst = side_of(l, part.row_bytes);
	part.src = side_of(l, part.row_bytes);
	if (!l->wild && part.dst.where != RIG_RMT_HERE)
		part.dst.where = RIG_RMT_LOCAL;
	part.fill = liar_once_in(l, 4);
	part.byte = 0x5a;
	if (l->linked && liar_once_in(l, 4))
		make_parcel(&part);
	part.function = given(l, 1);
	for (int i = 0; i < 3; i++) {
		part.block.groups[i] = liar_once_in(l, 6) ? (uint32_t)near(l, 5) : 1;
		part.block.threads[i] = liar_once_in(l, 6) ? (uint32_t)near(l, 40) : 1;
	}
	part.nparams = liar_once_in(l, 2) ? 8 : liar_draw(l, sizeof(params));
	part.params = params;
	return part;
}

static void put_work(struct liar *l, struct rig_rmt_out *out)
{
	struct rig_rmt_part parts[3];
	struct rig_rmt_work work = {.request = ++l->request,
	        .device = device_of(l),
	        .timed = liar_once_in(l, 3),
	        .partial = liar_once_in(l, 4),
	        .first = strays(l) ? (uint32_t)liar_edge(l) : 0,
	        .nwaits = liar_once_in(l, l->wild ? 4 : 20) ? liar_draw(l, 3) : 0,
	        .nparts = liar_draw(l, 4),
	        .parts = parts};
	uint32_t i;

	work.value = work.device < LIAR_DEVICES && !strays(l) ? ++l->values[work.device] : value_of(l);
	for (i = 0; i < work.nwaits; i++)
		work.waits[i] = (struct rig_rmt_wait){device_of(l), near(l, 5)};
	for (i = 0; i < work.nparts; i++)
		parts[i] = part_of(l, i, l->board && !work.device);
	rig_rmt_work_put(out, &work);
}

/* ---- Rails ---- */

static void put_rail(struct liar *l, struct rig_rmt_out *out)
{
	static const char *const providers[] = {"tcp", "tcp", "shm", "verbs", "sockets", ""};
	static struct rig_remote_transfer t[2][4];
	struct rig_rmt_rail r = {.op = 1 + liar_draw(l, RIG_RMT_RAIL_OPS - 1),
	        .peer = liar_once_in(l, 2) ? RIG_RMT_HERE_PEER : (uint32_t)near(l, 3),
	        .rail = near(l, 4),
	        .name = "a liar",
	        .nsend = liar_draw(l, 4),
	        .nreceive = liar_draw(l, 4)};
	uint32_t i;

	(void)strcpy(r.provider, providers[liar_draw(l, sizeof(providers) / sizeof(*providers))]);
	if (liar_once_in(l, 2))
		r.nblob = liar_draw(l, RIG_RMT_BLOB + 1);
	test_draw_bytes(&l->numbers, r.blob, r.nblob);
	for (i = 0; i < 8; i++)
		t[i / 4][i % 4] = (struct rig_remote_transfer){
		        (int64_t)near(l, 999), (int64_t)near(l, 999), (int64_t)near(l, 999)};
	rig_rmt_rail_put(out, &r, t[0], t[1]);
}

/* ---- Fields ----
 * q request, mostly the next    d device    g region       i image, function  k kind of memory
 * b bytes of memory, 64 bits    v value     r rail, 64     p part             o offset, 64
 * n device's name               f function's name          a address of a machine
 * t text    s bytes to the end  c code to the end          C bytes of code, 64
 * 1 flag    2 a few, 32 bits    4 any, 32   8 any, 64      m milliseconds, few
 * z 0, 32    Z 1, 64     0 0, 64
 * W work    R rail's request    x ticket    w machine */

static void put_code(struct liar *l, struct rig_rmt_out *out)
{
	size_t before = out->used;

	if (strays(l))
		put_noise(l, out, 3000);
	else
		rig_rmt_put_bytes(out, l->kernel, l->kernel_bytes);
	l->code += out->used - before;
}

static void put_ticket(struct liar *l, struct rig_rmt_out *out)
{
	const struct rig_rmt_ticket ticket = {(uint32_t)near(l, 4), liar_edge(l), liar_edge(l)};

	rig_rmt_ticket_put(out, &ticket);
}

static void put_number(struct liar *l, struct rig_rmt_out *out, char field)
{
	switch (field) {
	case 'q':
		rig_rmt_put32(out, strays(l) ? (uint32_t)liar_edge(l) : ++l->request);
		break;
	case 'd':
		rig_rmt_put32(out, device_of(l));
		break;
	case 'g':
		rig_rmt_put32(out, given(l, LIAR_REGIONS));
		break;
	case 'i':
		rig_rmt_put32(out, given(l, 1));
		break;
	case 'k':
		rig_rmt_put32(out, strays(l) ? liar_draw(l, 5) : RIG_DEVICE);
		break;
	case 'w':
	case '2':
		rig_rmt_put32(out, (uint32_t)near(l, 4));
		break;
	case 'z':
		rig_rmt_put32(out, strays(l) ? (uint32_t)near(l, 4) : 0);
		break;
	case '0':
		rig_rmt_put64(out, 0);
		break;
	case 'Z':
		rig_rmt_put64(out, strays(l) ? near(l, 4) : 1);
		break;
	case 'm':
		rig_rmt_put32(out, 1 + liar_draw(l, 40));
		break;
	case '4':
		rig_rmt_put32(out, (uint32_t)liar_edge(l));
		break;
	case '1':
		rig_rmt_put8(out, (uint8_t)near(l, 2));
		break;
	case 'b':
		rig_rmt_put64(out, bytes_of(l));
		break;
	case 'v':
		rig_rmt_put64(out, value_of(l));
		break;
	case 'r':
	case 'p':
		rig_rmt_put64(out, near(l, 4));
		break;
	case 'o':
		rig_rmt_put64(out, liar_once_in(l, 2) ? 0 : near(l, 5000));
		break;
	case 'C':
		rig_rmt_put64(out, strays(l) ? liar_edge(l) : l->code);
		l->code = 0;
		break;
	default:
		rig_rmt_put64(out, liar_edge(l));
	}
}

static void put_field(struct liar *l, struct rig_rmt_out *out, char field)
{
	switch (field) {
	case 'n':
		put_name(l, out, l->names[liar_draw(l, 4)]);
		break;
	case 'f':
		put_name(l, out, "globals");
		break;
	case 'a':
		put_name(l, out, l->peer);
		break;
	case 't':
		put_name(l, out, "a reason");
		break;
	case 's':
		put_noise(l, out, liar_once_in(l, 20) ? 200000 : 300);
		break;
	case 'c':
		put_code(l, out);
		break;
	case 'x':
		put_ticket(l, out);
		break;
	case 'W':
		put_work(l, out);
		break;
	case 'R':
		put_rail(l, out);
		break;
	default:
		put_number(l, out, field);
	}
}

void liar_fields(struct liar *l, struct rig_rmt_out *out, const char *fields)
{
	for (; *fields; fields++)
		put_field(l, out, *fields);
}

/* ---- Messages ---- */

struct message {
	uint8_t kind;
	uint8_t often; /* 0: by the wild alone */
	const char *fields;
};

static const struct message of_controller[] = {
        {RIG_RMT_OPEN, 4, "qn"},
        {RIG_RMT_ALLOC, 12, "qdkb"},
        {RIG_RMT_FREE, 1, "dg"},
        {RIG_RMT_MAP_PEER, 6, "qddg"},
        {RIG_RMT_CODE, 5, "dc"},
        {RIG_RMT_LOAD, 5, "qdC"},
        {RIG_RMT_ENTRY, 5, "qdif"},
        {RIG_RMT_CHECK, 6, "W"},
        {RIG_RMT_SUBMIT, 30, "W"},
        {RIG_RMT_DATA, 1, "dvos"},
        {RIG_RMT_PING, 3, "q"},
        {RIG_RMT_LIST, 3, "q"},
        {RIG_RMT_BEAT, 1, ""},
        {RIG_RMT_STOP, 2, "qd1t"},
        {RIG_RMT_LINK, 2, "qwam"},
        {RIG_RMT_RAIL, 8, "qR"},
        {RIG_RMT_MAP_RAIL, 4, "qdr1"},
        {RIG_RMT_FETCH, 4, "2zdgobbZ1"},
        /* Not a controller's, or not now. */
        {RIG_RMT_UNLOAD, 0, "di"},
        {RIG_RMT_JOIN, 0, "4888884tw"},
        {RIG_RMT_ANSWER, 0, "q4ts"},
        {RIG_RMT_TICKET, 0, "dv2x"},
        {RIG_RMT_VOID, 0, "2"},
        {RIG_RMT_REACHED, 0, "dv1"},
        {RIG_RMT_LOST, 0, "dt"},
        {RIG_RMT_FETCHED, 0, "2bos"},
        {RIG_RMT_CLAIM, 0, "2bx"},
        {RIG_RMT_UNCLAIM, 0, "2"},
        {RIG_RMT_FAILED, 0, "wt"},
        {RIG_RMT_CLOSE, 0, ""},
        {RIG_RMT_KINDS, 0, "s"},
};

static const struct message of_agent[] = {
        {RIG_RMT_ANSWER, 12, "q2t888"},
        {RIG_RMT_DATA, 12, "dvos"},
        {RIG_RMT_TICKET, 10, "dv2x"},
        {RIG_RMT_VOID, 6, "2"},
        {RIG_RMT_REACHED, 10, "dv1"},
        {RIG_RMT_LOST, 2, "dt"},
        {RIG_RMT_FAILED, 1, "wt"},
        {RIG_RMT_BEAT, 4, ""},
        {RIG_RMT_SUBMIT, 0, "W"},
        {RIG_RMT_FETCHED, 0, "2bos"},
        {RIG_RMT_CLOSE, 0, ""},
        {RIG_RMT_KINDS, 0, "s"},
};

static const struct message of_agent_to_agent[] = {
        {RIG_RMT_FETCHED, 8, "2b0s"},
        {RIG_RMT_FETCHED, 2, "2bos"},
        {RIG_RMT_FETCHED, 2, "200s"},
        {RIG_RMT_CLAIM, 6, "2bx"},
        {RIG_RMT_UNCLAIM, 4, "2"},
        {RIG_RMT_BEAT, 2, ""},
        {RIG_RMT_CLOSE, 0, ""},
        {RIG_RMT_SUBMIT, 0, "W"},
        {RIG_RMT_KINDS, 0, "s"},
};

static uint32_t often(const struct liar *l, const struct message *m)
{
	return m->often ? m->often : l->wild;
}

static const struct message *pick(struct liar *l, const struct message *from, size_t n)
{
	uint32_t all = 0, at;
	size_t i;

	for (i = 0; i < n; i++)
		all += often(l, &from[i]);
	at = liar_draw(l, all);
	for (i = 0; at >= often(l, &from[i]); i++)
		at -= often(l, &from[i]);
	return &from[i];
}

static void spoil(struct liar *l, struct rig_rmt_out *out)
{
	switch (liar_draw(l, 3)) {
	case 0:
		if (out->used)
			out->at[liar_draw(l, (uint32_t)out->used)] ^= (uint8_t)(1 + liar_draw(l, 255));
		break;
	case 1:
		out->used = out->used ? liar_draw(l, (uint32_t)out->used) : 0;
		break;
	default:
		put_noise(l, out, 20);
	}
}

static uint8_t make(struct liar *l, const struct message *message, struct rig_rmt_out *out)
{
	liar_fields(l, out, message->fields);
	if (l->wild && liar_once_in(l, 40))
		spoil(l, out);
	return message->kind;
}

uint8_t liar_controller(struct liar *l, struct rig_rmt_out *out)
{
	return make(l, pick(l, of_controller, sizeof(of_controller) / sizeof(*of_controller)), out);
}

uint8_t liar_agent(struct liar *l, struct rig_rmt_out *out)
{
	return make(l, pick(l, of_agent, sizeof(of_agent) / sizeof(*of_agent)), out);
}

uint8_t liar_between(struct liar *l, struct rig_rmt_out *out)
{
	return make(
	        l, pick(l, of_agent_to_agent, sizeof(of_agent_to_agent) / sizeof(*of_agent_to_agent)), out);
}

int liar_send(struct rig_rmt_chan *chan, uint8_t kind, struct rig_rmt_out *out)
{
	int err = out->bad ? -ENOMEM : rig_rmt_chan_send(chan, kind, out->at, out->used, NULL, 0);

	rig_rmt_out_free(out);
	return err;
}
