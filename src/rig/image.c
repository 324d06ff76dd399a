/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rt.h"

/* A larger file is no image: what is read is held in host memory. */
#define MOST_FILE_BYTES (INT64_C(1) << 30)

static void release(struct rig_image *image)
{
	struct rig_device *d = image->device;

	rig_rt_mem_put(image->code);
	free(image);
	rig_device_put(d);
}

/* False: it is being stopped just now. */
static bool unload_image(struct rig_device *d, void *image)
{
	const char *fault = NULL;

	if (rig_rt_life_of(d) == RT_STOPPED) {
		(void)d->module->unload(d->handle, image, &fault);
		return true;
	}
	if (rig_rt_enter(d))
		return false;
	(void)rig_rt_leave_with(d, d->module->unload(d->handle, image, &fault), &fault);
	return true;
}

/* Once the work handed over until the last put is done: words and other kernels may name its code. */
static void unload(struct rig_rt_deferred *deferred)
{
	struct rig_image *image = (void *)((char *)deferred - offsetof(struct rig_image, deferred));
	char kept[RT_REASON_BYTES];
	bool unloaded;

	rig_rt_error_keep(kept);
	unloaded = unload_image(image->device, image->image);
	rig_rt_error_back(kept);
	if (unloaded)
		release(image);
	else
		/* Asked again then. */
		rig_rt_defer(image->device, deferred);
}

static int call_load(struct rig_device *d, const void *binary, size_t bytes, struct rig_code *code)
{
	const char *fault = NULL;
	int answer = rig_rt_enter(d);

	if (answer)
		return answer;
	(void)rig_error_set(0, "%s", "");
	memset(code, 0, sizeof(*code));
	code->version = RIG_EDGE_VERSION;
	answer = rig_rt_leave_with(d, d->module->load(d->handle, binary, bytes, code, &fault), &fault);
	if (answer && answer != RIG_LOST)
		return rig_error_set(
		        answer, "%s: %s", d->name, rig_error()[0] ? rig_error() : strerror(-answer));
	return answer;
}

static int call_place(struct rig_image *image, const struct rig_code *code, const void *binary, size_t bytes,
        uint8_t *buffer)
{
	struct rig_device *d = image->device;
	int answer = rig_rt_enter(d);

	if (answer)
		return answer;
	answer = code->place(d->handle, binary, bytes, image->code->region, buffer, &image->image);
	rig_rt_leave(d, NULL);
	return answer ? rig_error_set(answer, "%s: placing the code failed: %s", d->name, strerror(-answer))
	              : 0;
}

/* Through a buffer over the code's memory, as any other bytes. */
static int upload(struct rig_image *image, const uint8_t *bytes, uint64_t n)
{
	struct rig_buffer over = {.device = image->device, .mem = image->code, .bytes = n};

	atomic_init(&over.refs, 1);
	over.region = image->code->region;
	over.at = image->code->at;
	over.host = image->code->at.has_host ? image->code->at.host : NULL;
	return rig_buffer_write(&over, 0, bytes, n);
}

static void end_image(struct rig_image *image)
{
	image->deferred.run = unload;
	image->deferred.value = rig_rt_submitted(image->device);
	image->deferred.bytes = image->code ? image->code->bytes : 0;
	rig_rt_defer(image->device, &image->deferred);
}

/* On failure *placed tells whether the driver's image exists. */
static int place(
        struct rig_image *image, const struct rig_code *code, const void *binary, size_t bytes, bool *placed)
{
	uint8_t *buffer = calloc(1, code->bytes ? code->bytes : 1);
	int answer;

	*placed = false;
	if (!buffer)
		return rig_error_set(-ENOMEM, "no host memory for %" PRIu64 " bytes of code", code->bytes);
	answer = rig_rt_mem_alloc(image->device, RIG_DEVICE, code->bytes ? code->bytes : 1, &image->code);
	if (!answer)
		answer = call_place(image, code, binary, bytes, buffer);
	if (!answer) {
		*placed = true;
		answer = upload(image, buffer, code->bytes);
	}
	free(buffer);
	return answer;
}

int rig_image_load(struct rig_device *device, const void *binary, size_t bytes, struct rig_image **image)
{
	struct rig_image *made;
	struct rig_code code;
	bool placed = true;
	uint64_t start;
	int answer = rig_rt_given2(device, "device", image, "image");

	if (!answer && bytes)
		answer = rig_rt_given(binary, "binary");
	if (answer)
		return answer;
	start = rig_rt_note_start(device);
	made = calloc(1, sizeof(*made));
	if (!made)
		return rig_error_set(-ENOMEM, "no host memory for an image");
	rig_rt_drain(device);
	atomic_init(&made->refs, 1);
	made->device = rig_device_get(device);
	answer = call_load(device, binary, bytes, &code);
	if (answer) {
		release(made);
		return answer;
	}
	made->image = code.image;
	if (code.kind == RIG_PLACE)
		answer = place(made, &code, binary, bytes, &placed);
	else if (code.kind != RIG_LOADED)
		answer = rig_error_set(-EIO, "%s: load answered code of no kind", device->name);
	if (answer) {
		char why[RT_REASON_BYTES];

		(void)snprintf(why, sizeof(why), "%s", rig_error());
		if (placed)
			end_image(made);
		else
			release(made);
		return rig_error_set(answer, "%s", why);
	}
	rig_rt_note(device, RIG_EVENT_IMAGE, start, bytes);
	*image = made;
	return 0;
}

/* Reads the whole file: 0 with *data for free(). -EINVAL: no file that has bytes, such as a pipe, which is
 * not waited for. */
static int read_file(const char *path, void **data, size_t *bytes)
{
	struct stat st = {0};
	size_t done = 0;
	ssize_t n = 1;
	char *buffer;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size > MOST_FILE_BYTES) {
		(void)close(fd);
		return S_ISDIR(st.st_mode) ? -EISDIR : S_ISREG(st.st_mode) ? -EFBIG : -EINVAL;
	}
	buffer = malloc((size_t)st.st_size + 1);
	while (buffer && done < (size_t)st.st_size && n > 0) {
		n = read(fd, buffer + done, (size_t)st.st_size - done);
		done += n > 0 ? (size_t)n : 0;
	}
	(void)close(fd);
	if (!buffer || n < 0) {
		free(buffer);
		return buffer ? -EIO : -ENOMEM;
	}
	*data = buffer;
	*bytes = done;
	return 0;
}

int rig_image_load_file(struct rig_device *device, const char *path, struct rig_image **image)
{
	void *data = NULL;
	size_t bytes = 0;
	int code = rig_rt_given(path, "path");

	if (code)
		return code;
	code = read_file(path, &data, &bytes);
	if (code)
		return rig_error_set(
		        code, "%s: %s", path, code == -EINVAL ? "not a regular file" : strerror(-code));
	code = rig_image_load(device, data, bytes, image);
	free(data);
	return code ? rig_error_set(code, "%s: %s", path, rig_error()) : 0;
}

struct rig_image *rig_image_get(struct rig_image *image)
{
	if (image)
		atomic_fetch_add_explicit(&image->refs, 1, memory_order_relaxed);
	return image;
}

void rig_image_put(struct rig_image *image)
{
	if (image && atomic_fetch_sub_explicit(&image->refs, 1, memory_order_acq_rel) == 1)
		end_image(image);
}

static int ask_entry(struct rig_image *image, const char *name, struct rig_entry *entry, uint64_t *missing)
{
	struct rig_device *d = image->device;
	const char *fault = NULL;
	int answer = rig_rt_enter(d);

	if (answer)
		return answer;
	memset(entry, 0, sizeof(*entry));
	entry->version = RIG_EDGE_VERSION;
	return rig_rt_leave_with(
	        d, d->module->entry(d->handle, image->image, name, entry, missing, &fault), &fault);
}

int rig_image_entry(struct rig_image *image, const char *name, struct rig_entry *entry)
{
	struct rig_device *d;
	uint64_t missing = 0;
	unsigned round;
	int answer = RIG_NO_MEMORY, code = rig_rt_given2(image, "image", name, "name");

	if (!code)
		code = rig_rt_given(entry, "entry");
	if (code)
		return code;
	d = image->device;
	for (round = 0; !code; round++) {
		answer = ask_entry(image, name, entry, &missing);
		if (answer != RIG_NO_MEMORY)
			break;
		code = rig_rt_reclaim(d, round, RT_SHORT_DEVICE);
	}
	if (code && code != -ENOMEM)
		return code;
	if (answer == RIG_ENTRY || answer < 0)
		return answer;
	if (answer == RIG_ABSENT)
		return rig_error_set(-ENOENT, "%s: the image has no function \"%s\"", d->name, name);
	return rig_error_set(-ENOMEM, "%s: launches of \"%s\" need %" PRIu64 " bytes that the device lacks",
	        d->name, name, missing);
}
