/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include <sodium.h>

#include "fabric_private.h"

#define VERSION FI_VERSION(1, 17)

int rig_fabric_error(const struct rig_fabric *fabric, int code, const char *what)
{
	int positive = code < 0 ? -code : code;

	/* libfabric's own codes are above the system's. */
	return rig_error_set(positive < FI_ERRNO_OFFSET ? -positive : -EIO, "%s: %s", what,
	        fabric->calls->strerror(positive));
}

/* What rails ask of a provider. */
static struct fi_info *make_hints(const struct rig_fabric *fabric, const char *provider)
{
	struct fi_info *hints = fabric->calls->dupinfo(NULL);

	if (!hints)
		return NULL;
	hints->fabric_attr->prov_name = strdup(provider);
	hints->caps = FI_MSG | FI_RMA | FI_WRITE | FI_REMOTE_WRITE;
	hints->mode = FI_RX_CQ_DATA | FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = fabric->connected ? FI_EP_MSG : FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->addr_format = FI_FORMAT_UNSPEC;
	return hints;
}

static int choose_info(struct rig_fabric *fabric, const char *provider, const char *node)
{
	struct fi_info *hints = make_hints(fabric, provider);
	int code;

	if (!hints)
		return rig_error_set(-ENOMEM, "no memory to ask libfabric");
	if (fabric->connected && !node)
		node = "127.0.0.1";
	code = fabric->calls->getinfo(VERSION, fabric->connected ? node : NULL, NULL,
	        fabric->connected ? FI_SOURCE : 0, hints, &fabric->info);
	fabric->calls->freeinfo(hints);
	if (code == -FI_ENODATA)
		return rig_error_set(-ENODEV, "libfabric has no provider %s for rails%s%s", provider,
		        node ? " on " : "", node ? node : "");
	return code ? rig_fabric_error(fabric, code, "fi_getinfo") : 0;
}

static void read_info(struct rig_fabric *fabric)
{
	int mode = fabric->info->domain_attr->mr_mode;

	fabric->key_chosen = !(mode & FI_MR_PROV_KEY);
	fabric->by_address = mode & FI_MR_VIRT_ADDR;
	fabric->local_memory = mode & FI_MR_LOCAL;
	fabric->note_receives = (fabric->info->mode | fabric->info->rx_attr->mode) & FI_RX_CQ_DATA;
}

static int open_domain(struct rig_fabric *fabric)
{
	int code = fabric->calls->fabric(fabric->info->fabric_attr, &fabric->fabric, NULL);

	if (code)
		return rig_fabric_error(fabric, code, "fi_fabric");
	code = fi_domain(fabric->fabric, fabric->info, &fabric->domain, NULL);
	return code ? rig_fabric_error(fabric, code, "fi_domain") : 0;
}

static int open_sealed(struct rig_fabric *fabric, const struct rig_fabric_options *options)
{
	const char *node = options->node ? options->node : "127.0.0.1";

	if (sodium_init() < 0)
		return rig_error_set(-ENOSYS, "libsodium does not start");
	if (strlen(node) >= sizeof(fabric->node))
		return rig_error_set(
		        -EINVAL, "an address of more than %zu characters", sizeof(fabric->node) - 1);
	if (options->first_port > options->last_port)
		return rig_error_set(
		        -EINVAL, "ports from %u to %u: none", options->first_port, options->last_port);
	fabric->sealed = true;
	(void)snprintf(fabric->node, sizeof(fabric->node), "%s", node);
	fabric->first_port = options->first_port;
	fabric->last_port = options->last_port;
	rig_sealed_targets_init(&fabric->targets);
	return 0;
}

int rig_fabric_open(const struct rig_fabric_options *options, struct rig_fabric **made)
{
	const char *provider = options->provider, *node = options->node;
	bool sealed = !strcmp(provider, "sealed");
	struct rig_fabric *fabric;
	int code;

	if (!sealed && strcmp(provider, "tcp") && strcmp(provider, "shm") && strcmp(provider, "verbs"))
		return rig_error_set(-EINVAL, "provider is %s, none of sealed, tcp, shm and verbs", provider);
	fabric = calloc(1, sizeof(*fabric));
	if (!fabric)
		return rig_error_set(-ENOMEM, "no memory for a fabric");
	fabric->connected = rig_fabric_provider_connects(provider);
	code = sealed ? open_sealed(fabric, options) : rig_fabric_load(&fabric->calls);
	if (!code && !sealed)
		code = choose_info(fabric, provider, node);
	if (!code && !sealed) {
		read_info(fabric);
		code = open_domain(fabric);
	}
	if (code) {
		rig_fabric_close(fabric);
		return code;
	}
	*made = fabric;
	return 0;
}

void rig_fabric_close(struct rig_fabric *fabric)
{
	if (!fabric)
		return;
	if (fabric->sealed)
		rig_sealed_targets_fini(&fabric->targets);
	if (fabric->domain)
		(void)fi_close(&fabric->domain->fid);
	if (fabric->fabric)
		(void)fi_close(&fabric->fabric->fid);
	if (fabric->info)
		fabric->calls->freeinfo(fabric->info);
	free(fabric);
}

static int choose_key(const struct rig_fabric *fabric, uint64_t *key)
{
	size_t bytes = fabric->info->domain_attr->mr_key_size;

	*key = 0;
	if (!fabric->key_chosen)
		return 0;
	if (getrandom(key, bytes < sizeof(*key) ? bytes : sizeof(*key), 0) < 0)
		return rig_error_set(-errno, "no random bytes for a memory key: %s", strerror(errno));
	return 0;
}

int rig_fabric_register(struct rig_fabric *fabric, void *at, size_t bytes, struct rig_fabric_memory *memory,
        struct rig_fabric_target *target)
{
	uint64_t key;
	int code;

	*memory = (struct rig_fabric_memory){0};
	if (!target && !fabric->local_memory)
		return 0;
	if (fabric->sealed) {
		code = rig_sealed_target_add(&fabric->targets, at, bytes, &key);
		if (!code) {
			*memory = (struct rig_fabric_memory){.lists = &fabric->targets, .key = key};
			*target = (struct rig_fabric_target){0, key};
		}
		return code;
	}
	code = choose_key(fabric, &key);
	if (code)
		return code;
	code = fi_mr_reg(
	        fabric->domain, at, bytes, target ? FI_REMOTE_WRITE : FI_WRITE, 0, key, 0, &memory->mr, NULL);
	if (code)
		return rig_fabric_error(fabric, code, "cannot register memory");
	memory->local = fi_mr_desc(memory->mr);
	if (target)
		*target = (struct rig_fabric_target){
		        fabric->by_address ? (uint64_t)(uintptr_t)at : 0, fi_mr_key(memory->mr)};
	return 0;
}

void rig_fabric_unregister(struct rig_fabric_memory *memory)
{
	if (memory->lists)
		rig_sealed_target_remove(memory->lists, memory->key);
	if (memory->mr)
		(void)fi_close(&memory->mr->fid);
	*memory = (struct rig_fabric_memory){0};
}

bool rig_fabric_provider_connects(const char *provider)
{
	return strcmp(provider, "shm") != 0;
}

bool rig_fabric_connects(const struct rig_fabric *fabric)
{
	return fabric->connected;
}

bool rig_fabric_one_sided(const struct rig_fabric *fabric)
{
	return !fabric->sealed;
}
