/* SPDX-License-Identifier: MIT */
/* rigctl agents: what a set of agents serves. Each is asked by a job of its own, so that one that does not
   answer hides no other. */
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "via.h"

enum { LISTED = 64, WHY = 256, MOST = 256 };

struct agent_row {
	const char *name;
	char why[WHY]; /* "": it answered */
	char version[64];
	double round_trip_us;
	int n;
	struct rig_remote_listed listed[LISTED];
};

/* ---- Asking ---- */

static int ask_job(struct rig_remote_job *job, struct agent_row *row)
{
	struct rig_remote_stats stats;
	int n = rig_remote_list(job, 0, row->listed, LISTED);

	if (n < 0)
		return n;
	row->n = n < LISTED ? n : LISTED;
	(void)rig_remote_agent_version(job, 0, row->version, sizeof(row->version));
	(void)rig_remote_stats(job, 0, &stats);
	row->round_trip_us = (double)stats.round_trip_ns / 1e3;
	return 0;
}

static void ask(const char *key, struct agent_row *row)
{
	struct rig_remote_job *job = NULL;
	int err = rig_remote_connect(&row->name, 1, key, NULL, &job);

	if (!err)
		err = ask_job(job, row);
	if (err)
		snprintf(row->why, sizeof(row->why), "%s", rig_error());
	if (job)
		rig_remote_close(job);
}

/* ---- Printing ---- */

static const char *kind_of(const struct rig_remote_listed *l)
{
	return l->host ? "memory" : "device";
}

static const char *state_of(const struct rig_remote_listed *l)
{
	return l->busy ? "open" : "free";
}

static void print_row(const struct agent_row *row)
{
	int i;

	if (row->why[0]) {
		printf("%s  not reached: %s\n", row->name, row->why);
		return;
	}
	printf("%s  rig-agent %s, %.1f us there and back\n", row->name, row->version, row->round_trip_us);
	for (i = 0; i < row->n; i++)
		printf("  %-16s %-8s %s\n", row->listed[i].name, kind_of(&row->listed[i]),
		        state_of(&row->listed[i]));
}

static void add_text(struct json_object *o, const char *key, const char *text)
{
	json_object_object_add(o, key, json_object_new_string(text));
}

static struct json_object *row_json(const struct agent_row *row)
{
	struct json_object *o = json_object_new_object(), *devices;
	int i;

	add_text(o, "agent", row->name);
	if (row->why[0]) {
		add_text(o, "error", row->why);
		return o;
	}
	devices = json_object_new_array();
	add_text(o, "version", row->version);
	json_object_object_add(o, "round_trip_us", json_object_new_double(row->round_trip_us));
	for (i = 0; i < row->n; i++) {
		struct json_object *d = json_object_new_object();

		add_text(d, "name", row->listed[i].name);
		add_text(d, "kind", kind_of(&row->listed[i]));
		add_text(d, "state", state_of(&row->listed[i]));
		json_object_array_add(devices, d);
	}
	json_object_object_add(o, "devices", devices);
	return o;
}

static void print_json(const struct agent_row *rows, int n)
{
	struct json_object *array = json_object_new_array();
	int i;

	for (i = 0; i < n; i++)
		json_object_array_add(array, row_json(&rows[i]));
	printf("%s\n", json_object_to_json_string_ext(array, JSON_C_TO_STRING_PRETTY));
	json_object_put(array);
}

/* ---- The command ---- */

static int ask_all(const char *key, struct agent_row *rows, int n, bool json)
{
	int i, status = EXIT_DONE;

	for (i = 0; i < n; i++) {
		ask(key, &rows[i]);
		if (rows[i].why[0])
			status = EXIT_OPEN;
		if (!json)
			print_row(&rows[i]);
	}
	if (json)
		print_json(rows, n);
	return status;
}

static int run(int argc, char **argv)
{
	struct agent_row *rows = calloc((size_t)argc, sizeof(*rows));
	const char *key = via_key();
	bool json = false;
	int i, n = 0, status;

	for (i = 1; i < argc && rows; i++) {
		if (!strcmp(argv[i], "--json"))
			json = true;
		else
			rows[n++].name = argv[i];
	}
	if (!rows)
		status = complain(EXIT_FAILED, "no memory");
	else if (!n || n > MOST)
		status = complain(EXIT_USAGE, "it takes HOST:PORT of 1 to %d agents", MOST);
	else if (!key)
		status = complain(EXIT_USAGE, "it needs --key FILE before it, or RIG_KEY in the environment");
	else
		status = ask_all(key, rows, n, json);
	free(rows);
	return status;
}

static const struct option_help options[] = {
        {"--json", "an array of objects, one an agent"},
        {NULL, NULL},
};

const struct command command_agents = {
        .name = "agents",
        .synopsis = "HOST:PORT ... [--json]",
        .summary = "list what agents on other machines serve: devices, whether they are free, version, round "
                   "trip",
        .text = "Each HOST:PORT is where a rig-agent(1) listens; --key FILE before the command, or RIG_KEY "
                "in the "
                "environment, is the key that all have. The exit status is 3 if one was not reached, and its "
                "line "
                "says why.",
        .options = options,
        .run = run,
};
