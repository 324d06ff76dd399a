/* SPDX-License-Identifier: MIT */
/* The polled driver for laws: its options by text. */
#include "polled_state.h"

#define MEMORY     (UINT64_C(64) << 20)
#define WORD_BYTES 64u

static const char *const lie_names[] = {"honest",
#define NAME(lie) #lie,
        POLLED_LIE_LIST(NAME)
#undef NAME
};

const char *polled_lie_name(enum polled_lie lie)
{
	return lie_names[lie];
}

static int take_lie(struct polled_options *o, const char *name)
{
	unsigned i;

	for (i = 0; i < POLLED_LIES_END; i++)
		if (!strcmp(lie_names[i], name)) {
			o->lie = (enum polled_lie)i;
			return 0;
		}
	return rig_error_set(-EINVAL, "no lie %s", name);
}

static int take(struct polled_options *o, const char *word)
{
	if (!strcmp(word, "batch"))
		o->batch = true;
	else if (!strcmp(word, "place"))
		o->place = true;
	else if (!strcmp(word, "times"))
		o->times = true;
	else if (!strcmp(word, "settle"))
		o->settle = true;
	else if (!strcmp(word, "own_word"))
		o->own_word = true;
	else if (!strcmp(word, "store"))
		o->completion = RIG_STORE;
	else if (!strcmp(word, "grows"))
		o->parts = 4;
	else if (!strcmp(word, "hosts"))
		o->host_addresses = true;
	else if (!strncmp(word, "lie=", 4))
		return take_lie(o, word + 4);
	else if (!strncmp(word, "pinned=", 7))
		o->pinned = strtoull(word + 7, NULL, 10);
	else if (!strncmp(word, "room_code=", 10))
		o->room_code = atoi(word + 10);
	else if (!strncmp(word, "load_code=", 10))
		o->load_code = atoi(word + 10);
	else if (word[0])
		return rig_error_set(-EINVAL,
		        "%s: not batch, place, times, settle, own_word, store, grows, hosts, lie=NAME, "
		        "pinned=BYTES, room_code=ERRNO or load_code=ERRNO",
		        word);
	return 0;
}

int polled_parse(const char *text, struct polled_options *options)
{
	char word[WORD_BYTES];
	int err = 0;

	*options = (struct polled_options){.name = "polled",
	        .completion = RIG_HOST,
	        .waits = {true, true},
	        .maps_host = true,
	        .peers = true,
	        .has_bus = true,
	        .thread = true,
	        .memory = MEMORY,
	        .pinned = MEMORY,
	        .budget = MEMORY,
	        .descriptors = POLLED_DESCRIPTORS};
	while (!err && *text) {
		size_t n = strcspn(text, ",");

		(void)snprintf(word, sizeof(word), "%.*s", (int)n, text);
		err = take(options, word);
		text += n + (text[n] == ',');
	}
	return err;
}
