/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "vfio_user_parse.h"

/* Deeper than the two levels of the protocol, for names that are not known here. */
enum { JSON_DEPTH = 16 };

/* The most of one message that is worth a buffer on our side, and the most descriptors of one sendmsg(2) (the
 * kernel's SCM_MAX_FD). */
#define XFER_MOST (UINT64_C(16) << 20)
#define FDS_MOST  253u

static int wrong(const char **why, const char *what)
{
	*why = what;
	return -EPROTO;
}

/* A number of at least 1; absent leaves *out. */
static bool number(const struct json_object *caps, const char *name, uint64_t *out)
{
	struct json_object *v;
	int64_t n;

	if (!json_object_object_get_ex(caps, name, &v))
		return true;
	if (!json_object_is_type(v, json_type_int))
		return false;
	n = json_object_get_int64(v);
	if (n < 1)
		return false;
	*out = (uint64_t)n;
	return true;
}

/* {"supported": BOOLEAN, "fd_index": NUMBER}; nothing else of the protocol comes with descriptors, so that
 * the one of this socket has index 0. */
static bool twin(const struct json_object *caps, bool *out)
{
	struct json_object *o, *v;

	*out = false;
	if (!json_object_object_get_ex(caps, "twin_socket", &o))
		return true;
	if (!json_object_is_type(o, json_type_object))
		return false;
	if (json_object_object_get_ex(o, "supported", &v)) {
		if (!json_object_is_type(v, json_type_boolean))
			return false;
		*out = json_object_get_boolean(v);
	}
	if (!*out)
		return true;
	return json_object_object_get_ex(o, "fd_index", &v) && json_object_is_type(v, json_type_int) &&
	       json_object_get_int64(v) == 0;
}

static int read_caps(const struct json_object *o, struct rig_vuser_caps *caps, const char **why)
{
	uint64_t fds = caps->max_fds;

	if (!number(o, "max_msg_fds", &fds))
		return wrong(why, "a max_msg_fds that is no number of at least 1");
	if (!number(o, "max_data_xfer_size", &caps->max_xfer) || caps->max_xfer < sizeof(uint64_t))
		return wrong(why, "a max_data_xfer_size that does not carry a register");
	if (!number(o, "max_dma_maps", &caps->max_maps))
		return wrong(why, "a max_dma_maps that is no number of at least 1");
	if (!number(o, "pgsizes", &caps->page_sizes))
		return wrong(why, "a pgsizes without a page size");
	if (!twin(o, &caps->twin))
		return wrong(why, "a twin_socket that does not say which descriptor it is");
	caps->max_fds = (unsigned)(fds > FDS_MOST ? FDS_MOST : fds);
	if (caps->max_xfer > XFER_MOST)
		caps->max_xfer = XFER_MOST;
	return 0;
}

int rig_vuser_json_read(const char *text, struct rig_vuser_caps *caps, const char **why)
{
	struct json_tokener *tok = json_tokener_new_ex(JSON_DEPTH);
	struct json_object *root, *o;
	int err = 0;

	if (!tok) {
		*why = "no memory for its capabilities";
		return -ENOMEM;
	}
	root = json_tokener_parse_ex(tok, text, (int)strlen(text) + 1);
	if (json_tokener_get_error(tok) != json_tokener_success ||
	        !json_object_is_type(root, json_type_object))
		err = wrong(why, "capabilities that are no JSON object");
	else if (json_object_object_get_ex(root, "capabilities", &o))
		err = json_object_is_type(o, json_type_object)
		              ? read_caps(o, caps, why)
		              : wrong(why, "capabilities that are no JSON object");
	json_object_put(root);
	json_tokener_free(tok);
	return err;
}

int rig_vuser_json_write(const struct rig_vuser_caps *caps, char *text, size_t room)
{
	int n = snprintf(text, room,
	        "{\"capabilities\":{\"max_msg_fds\":%u,\"max_data_xfer_size\":%" PRIu64
	        ",\"max_dma_maps\":%" PRIu64 ",\"pgsizes\":%" PRIu64 ",\"twin_socket\":{\"supported\":%s}}}",
	        caps->max_fds, caps->max_xfer, caps->max_maps, caps->page_sizes,
	        caps->twin ? "true" : "false");

	return n < 0 || (size_t)n >= room ? -ENOSPC : n + 1;
}
