/* SPDX-License-Identifier: MIT */
/* The version data of the handshake: JSON from a stranger. */
#include <errno.h>
#include <json.h>
#include <string.h>

#include "vfu.h"
#include "vfu_parse.h"

#define DEFAULT_FDS 1 /* the protocol's, where the client says nothing */

/*
 * A missing member leaves *out as it is; anything but a number in [min, max] is refused, above max is taken
 * as max.
 */
static int take_number(struct json_object *caps, const char *name, uint32_t min, uint32_t max, uint32_t *out)
{
	struct json_object *member;
	int64_t value;

	if (!json_object_object_get_ex(caps, name, &member))
		return 0;
	if (!json_object_is_type(member, json_type_int))
		return -EINVAL;
	value = json_object_get_int64(member);
	if (value < (int64_t)min)
		return -EINVAL;
	*out = value > (int64_t)max ? max : (uint32_t)value;
	return 0;
}

static int take_bool(struct json_object *caps, const char *name, bool *out)
{
	struct json_object *member;

	if (!json_object_object_get_ex(caps, name, &member))
		return 0;
	if (!json_object_is_type(member, json_type_boolean))
		return -EINVAL;
	*out = json_object_get_boolean(member);
	return 0;
}

/* "twin_socket": {"supported": true} */
static int take_twin(struct json_object *caps, bool *out)
{
	struct json_object *twin;

	if (!json_object_object_get_ex(caps, "twin_socket", &twin))
		return 0;
	return json_object_is_type(twin, json_type_object) ? take_bool(twin, "supported", out) : -EINVAL;
}

static int take_caps(struct json_object *root, struct vfu_version *out)
{
	struct json_object *caps;
	int rc;

	if (!json_object_is_type(root, json_type_object))
		return -EINVAL;
	if (!json_object_object_get_ex(root, "capabilities", &caps))
		return 0;
	if (!json_object_is_type(caps, json_type_object))
		return -EINVAL;
	rc = take_number(caps, "max_msg_fds", 0, VFU_MAX_MSG_FDS, &out->max_fds);
	if (!rc)
		rc = take_number(caps, "max_data_xfer_size", VFU_DATA_MIN, VFU_MAX_DATA, &out->max_data);
	if (!rc)
		rc = take_bool(caps, "write_multiple", &out->write_multiple);
	if (!rc)
		rc = take_twin(caps, &out->twin);
	return rc;
}

/* Nothing but white space follows the object. */
static bool ends_there(const char *text, size_t len, size_t end)
{
	while (end < len && strchr(" \t\r\n", text[end]))
		end++;
	return end == len;
}

static int take_json(const char *text, size_t len, struct vfu_version *out)
{
	struct json_tokener *tokener = json_tokener_new_ex(VFU_JSON_DEPTH);
	struct json_object *root;
	int rc = -EINVAL;

	if (!tokener)
		return -ENOMEM;
	root = json_tokener_parse_ex(tokener, text, (int)len);
	if (root && ends_there(text, len, json_tokener_get_parse_end(tokener)))
		rc = take_caps(root, out);
	json_object_put(root);
	json_tokener_free(tokener);
	return rc;
}

int vfu_parse_version(const void *bytes, size_t len, struct vfu_version *out)
{
	struct vfu_wire_version wire;
	const char *text;

	if (len < sizeof(wire) || len - sizeof(wire) > VFU_MAX_JSON)
		return -EINVAL;
	memcpy(&wire, bytes, sizeof(wire));
	*out = (struct vfu_version){
	        .major = wire.major, .minor = wire.minor, .max_fds = DEFAULT_FDS, .max_data = VFU_MAX_DATA};
	len -= sizeof(wire);
	if (len == 0)
		return 0;
	text = (const char *)bytes + sizeof(wire);
	/* Exactly one NUL, at the end: what follows another one would be hidden. */
	if (memchr(text, 0, len) != text + len - 1)
		return -EINVAL;
	return take_json(text, len - 1, out);
}
