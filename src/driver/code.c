/* SPDX-License-Identifier: MIT */
/* Images: taken by the board's loader, placed by the runtime, their functions found by name. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

/* A program counter farther than this from the entry is in no code of its image. */
#define MOST_CODE (UINT64_C(1) << 24)

struct function {
	struct function *next;
	struct rig_launch launch;
	char name[];
};

struct image {
	struct image *next; /* of the device's */
	uint8_t *binary;
	size_t bytes;
	uint64_t base; /* device-virtual */
	struct function *functions;
};

/* Its only error is memory: load has judged the same binary. */
static int place(void *device, const void *binary, size_t bytes, void *region, uint8_t *buffer, void **out)
{
	struct rig_dev *dev = device;
	struct image *image = calloc(1, sizeof(*image));
	int err = -ENOMEM;

	if (!image)
		return -ENOMEM;
	image->binary = malloc(bytes);
	if (!image->binary)
		goto free_image;
	memcpy(image->binary, binary, bytes);
	image->bytes = bytes;
	image->base = ((struct rig_region *)region)->address;
	err = dev->board->image_place(binary, bytes, image->base, buffer);
	if (err)
		goto free_binary;
	pthread_mutex_lock(&dev->images_lock);
	image->next = dev->images;
	dev->images = image;
	pthread_mutex_unlock(&dev->images_lock);
	*out = image;
	return 0;

free_binary:
	free(image->binary);
free_image:
	free(image);
	return err;
}

int rig_dev_load(void *device, const void *binary, size_t bytes, struct rig_code *code, const char **fault)
{
	struct rig_dev *dev = device;
	int err;

	if (rig_dev_faulted(dev))
		return rig_dev_fault(dev, fault);
	if (!dev->board->image_bytes)
		return rig_error_set(-ENOEXEC, "board %s runs no code", dev->board->arch);
	err = dev->board->image_bytes(binary, bytes, &code->bytes);
	if (err)
		return err;
	code->kind = RIG_PLACE;
	code->place = place;
	code->image = NULL;
	return 0;
}

static struct function *find(const struct image *image, const char *name)
{
	struct function *f;

	for (f = image->functions; f; f = f->next)
		if (!strcmp(f->name, name))
			return f;
	return NULL;
}

static int add(struct rig_dev *dev, struct image *image, const char *name, struct function **out)
{
	size_t length = strlen(name) + 1;
	struct function *f = calloc(1, sizeof(*f) + length);
	int err;

	if (!f)
		return rig_error_set(-ENOMEM, "out of host memory for function %.64s", name);
	err = dev->board->image_find(image->binary, image->bytes, name, &f->launch.function);
	if (err) {
		free(f);
		return err;
	}
	memcpy(f->name, name, length);
	f->launch.entry = image->base + f->launch.function.offset;
	f->launch.stacks = dev->facts.stack_va;
	pthread_mutex_lock(&dev->images_lock);
	f->next = image->functions;
	image->functions = f;
	pthread_mutex_unlock(&dev->images_lock);
	*out = f;
	return 0;
}

static int answer(struct rig_dev *dev, struct function *f, struct rig_entry *entry, uint64_t *short_bytes)
{
	const struct rig_board_function *function = &f->launch.function;

	if (rig_dev_stacks(
	            dev, function->has_threads ? function->threads : dev->facts.stack_slots, short_bytes))
		return RIG_NO_MEMORY;
	entry->code = f->launch.entry;
	entry->launch = (uintptr_t)&f->launch;
	entry->has_params = function->has_params;
	entry->params = function->params;
	entry->has_threads = function->has_threads;
	entry->threads = function->threads;
	return RIG_ENTRY;
}

int rig_dev_entry(void *device, void *at, const char *name, struct rig_entry *entry, uint64_t *short_bytes,
        const char **fault)
{
	struct rig_dev *dev = device;
	struct image *image = at;
	struct function *f;
	int result = 0;

	if (rig_dev_faulted(dev))
		return rig_dev_fault(dev, fault);
	pthread_mutex_lock(&dev->lock);
	f = find(image, name);
	if (!f)
		result = add(dev, image, name, &f);
	if (f)
		result = answer(dev, f, entry, short_bytes);
	pthread_mutex_unlock(&dev->lock);
	return result == -ENOENT ? RIG_ABSENT : result;
}

static void forget(struct rig_dev *dev, struct image *image)
{
	struct image **at;

	pthread_mutex_lock(&dev->images_lock);
	for (at = &dev->images; *at != image; at = &(*at)->next)
		;
	*at = image->next;
	pthread_mutex_unlock(&dev->images_lock);
}

int rig_dev_unload(void *device, void *at, const char **fault)
{
	struct image *image = at;

	(void)fault;
	forget(device, image);
	while (image->functions) {
		struct function *f = image->functions;

		image->functions = f->next;
		free(f);
	}
	free(image->binary);
	free(image);
	return 0;
}

static const struct function *function_at(const struct rig_dev *dev, uint64_t va)
{
	const struct image *image;
	const struct function *f;

	for (image = dev->images; image; image = image->next)
		for (f = image->functions; f; f = f->next)
			if (f->launch.entry == va)
				return f;
	return NULL;
}

void rig_port_code_name(struct rig_port *port, uint64_t entry, uint64_t pc, char *name, size_t bytes)
{
	bool before = pc < entry;
	uint64_t off = before ? entry - pc : pc - entry;
	struct rig_dev *dev = (struct rig_dev *)((uint8_t *)port - offsetof(struct rig_dev, port));
	const struct function *f;

	pthread_mutex_lock(&dev->images_lock);
	f = function_at(dev, entry);
	if (f && off < MOST_CODE)
		snprintf(name, bytes, "%s%c0x%" PRIx64, f->name, before ? '-' : '+', off);
	else if (f)
		snprintf(name, bytes, "%s (0x%" PRIx64 ")", f->name, entry);
	else
		snprintf(name, bytes, "0x%" PRIx64, entry);
	pthread_mutex_unlock(&dev->images_lock);
}
