/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "bdf.h"
#include "rig_edge.h"
#include "spec.h"

#define MIN_MEMORY   (64ull << 20)
#define MAX_MEMORY   (8ull << 30)
#define MIN_APERTURE (16ull << 20)
#define MAX_HANG_MS  (24 * 3600 * 1000ll)
/* As rvx1-model checks them. */
#define MIN_QUEUES    2
#define MAX_QUEUES    8
#define MIN_CLOCK_HZ  1000000ll
#define MAX_CLOCK_HZ  4000000000ll
#define MAX_DRIFT_PPM 100
#define MAX_STEP      1000000

/* "64M" in bytes; false if it is no size or does not fit 63 bits. */
static bool parse_size(const char *text, uint64_t *bytes)
{
	char *end;
	unsigned shift = 0;
	unsigned long long n;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	n = strtoull(text, &end, 10);
	if (*end == 'K' || *end == 'M' || *end == 'G')
		shift = *end == 'K' ? 10 : *end == 'M' ? 20 : 30, end++;
	if (errno || *end || n > (UINT64_MAX >> 1) >> shift)
		return false;
	*bytes = (uint64_t)n << shift;
	return true;
}

/* "500ms" or "2s" in milliseconds. */
static bool parse_time(const char *text, int64_t *ms)
{
	char *end;
	long long n;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	n = strtoll(text, &end, 10);
	if (errno || n < 1 || n > MAX_HANG_MS)
		return false;
	if (!strcmp(end, "ms"))
		*ms = n;
	else if (!strcmp(end, "s") && n <= MAX_HANG_MS / 1000)
		*ms = n * 1000;
	else
		return false;
	return true;
}

static int set_memory(struct rig_spec *spec, const char *value)
{
	if (!parse_size(value, &spec->memory) || spec->memory < MIN_MEMORY || spec->memory > MAX_MEMORY ||
	        spec->memory % (2ull << 20))
		return rig_error_set(-EINVAL, "mem=%s: a size from 64M to 8G, a multiple of 2M", value);
	return 0;
}

static int set_aperture(struct rig_spec *spec, const char *value)
{
	if (!parse_size(value, &spec->aperture) || spec->aperture < MIN_APERTURE ||
	        (spec->aperture & (spec->aperture - 1)))
		return rig_error_set(
		        -EINVAL, "aperture=%s: a power of two from 16M to the memory's size", value);
	return 0;
}

static int set_text(char *to, size_t room, const char *key, const char *value)
{
	if (!*value || strlen(value) >= room)
		return rig_error_set(-EINVAL, "%s=%s: 1 to %zu characters", key, value, room - 1);
	strcpy(to, value);
	return 0;
}

/* A whole number from `least` to `most`, up to the end of the text or `end_at`. */
static bool parse_whole(const char *text, char end_at, long long least, long long most, long long *out)
{
	char *end;

	errno = 0;
	*out = strtoll(text, &end, 10);
	return !errno && end != text && *end == end_at && !isspace((unsigned char)*text) && *out >= least &&
	       *out <= most;
}

static int set_queues(struct rig_spec *spec, const char *value)
{
	long long n;

	if (!parse_whole(value, 0, MIN_QUEUES, MAX_QUEUES, &n))
		return rig_error_set(-EINVAL, "queues=%s: %d to %d", value, MIN_QUEUES, MAX_QUEUES);
	spec->queues = (uint32_t)n;
	return 0;
}

static int set_clock_hz(struct rig_spec *spec, const char *value)
{
	long long n;

	if (!parse_whole(value, 0, MIN_CLOCK_HZ, MAX_CLOCK_HZ, &n))
		return rig_error_set(-EINVAL, "clock-hz=%s: %lld to %lld", value, MIN_CLOCK_HZ, MAX_CLOCK_HZ);
	spec->clock_hz = (uint64_t)n;
	return 0;
}

static int set_clock_drift(struct rig_spec *spec, const char *value)
{
	long long n;

	if (!parse_whole(value, 0, -MAX_DRIFT_PPM, MAX_DRIFT_PPM, &n))
		return rig_error_set(-EINVAL, "clock-drift=%s: parts per million, -%d to %d", value,
		        MAX_DRIFT_PPM, MAX_DRIFT_PPM);
	spec->has_clock_drift = true;
	spec->clock_drift = (int)n;
	return 0;
}

static int set_clock_step(struct rig_spec *spec, const char *value)
{
	const char *period = strchr(value, '/');
	long long us, ms;

	if (!period || !parse_whole(value, '/', 1, MAX_STEP, &us) ||
	        !parse_whole(period + 1, 0, 1, MAX_STEP, &ms))
		return rig_error_set(-EINVAL,
		        "clock-step=%s: US/MS, so many microseconds every so many milliseconds, each 1 to %d",
		        value, MAX_STEP);
	return set_text(spec->clock_step, sizeof(spec->clock_step), "clock-step", value);
}

static int set_completion(struct rig_spec *spec, const char *value)
{
	spec->store = !strcmp(value, "store");
	if (!spec->store && strcmp(value, "poll") != 0)
		return rig_error_set(-EINVAL, "completion=%s: poll or store", value);
	return 0;
}

static int set_dma(struct rig_spec *spec, const char *value)
{
	spec->dmabuf = !strcmp(value, "dmabuf");
	if (!spec->dmabuf && strcmp(value, "bus") != 0)
		return rig_error_set(-EINVAL, "dma=%s: bus or dmabuf", value);
	return 0;
}

static int set_hang(struct rig_spec *spec, const char *value)
{
	if (!parse_time(value, &spec->hang_ms))
		return rig_error_set(-EINVAL, "hang=%s: a time from 1ms to 24h, as 500ms or 2s", value);
	return 0;
}

static int set_poller(struct rig_spec *spec, const char *value)
{
	char *end;
	unsigned long cpu = strtoul(value, &end, 10);

	if (!isdigit((unsigned char)*value) || *end || cpu >= CPU_SETSIZE)
		return rig_error_set(-EINVAL, "poller=%s: the number of a CPU, below %d", value, CPU_SETSIZE);
	spec->poller_cpu = (int)cpu;
	return 0;
}

static int set_transport(struct rig_spec *spec, const char *value)
{
	static const struct {
		const char *name;
		enum rig_pci_transport which;
	} ways[] = {{"auto", RIG_PCI_ANY}, {"iommufd", RIG_PCI_IOMMUFD}, {"type1", RIG_PCI_TYPE1},
	        {"noiommu", RIG_PCI_NOIOMMU}};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (!strcmp(value, ways[i].name)) {
			spec->transport = ways[i].which;
			return 0;
		}
	}
	return rig_error_set(-EINVAL,
	        "transport=%s: auto, iommufd, type1, or noiommu (the device then reaches all memory)", value);
}

static int set_token(struct rig_spec *spec, const char *value)
{
	unsigned char uuid[16];

	if (!rig_pci_token_parse(value, uuid))
		return rig_error_set(
		        -EINVAL, "vf-token=%s: a UUID, as 00112233-4455-6677-8899-aabbccddeeff", value);
	strcpy(spec->token, value);
	return 0;
}

/* What rvx1-model --fault takes, which it says itself (--help). */
enum fault_number { NO_NUMBER, MAY_COUNT, MUST_COUNT };

static const struct fault_name {
	const char *name;
	enum fault_number number;
} faults[] = {{"hang", MAY_COUNT}, {"late", MUST_COUNT}, {"halt", MAY_COUNT}, {"bus", MAY_COUNT},
        {"dma-unmapped", MAY_COUNT}, {"corrupt-stamp", MAY_COUNT}, {"lose-irq", MAY_COUNT},
        {"gone", MUST_COUNT}, {"slow-boot", MUST_COUNT}, {"refuse-boot", NO_NUMBER},
        {"refuse-reset", NO_NUMBER}, {"die", MAY_COUNT}, {"die-boot", NO_NUMBER}};

static bool parse_count(const char *text)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	return strtoull(text, &end, 10) && !errno && !*end;
}

static bool is_fault(const char *text)
{
	size_t i, length = strcspn(text, "=");

	for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		if (strlen(faults[i].name) == length && !strncmp(faults[i].name, text, length))
			return text[length] ? faults[i].number != NO_NUMBER && parse_count(text + length + 1)
			                    : faults[i].number != MUST_COUNT;
	return false;
}

static int set_fault(struct rig_spec *spec, const char *value)
{
	char copy[RIG_SPEC_FAULT], *rest = copy, *item, *at;
	int err = set_text(spec->fault, sizeof(spec->fault), "fault", value);

	if (err)
		return err;
	strcpy(copy, spec->fault);
	while ((item = strsep(&rest, "+")))
		if (!is_fault(item))
			return rig_error_set(-EINVAL,
			        "fault=%s: hang, halt, bus, dma-unmapped, corrupt-stamp, lose-irq or die, "
			        "each with or without =N, late=MS, gone=MS, slow-boot=MS, refuse-boot, "
			        "refuse-reset, die-boot; several joined by +",
			        item);
	/* ',' separates options here. */
	for (at = spec->fault; *at; at++)
		if (*at == '+')
			*at = ',';
	return 0;
}

static const struct option {
	const char *name;
	int (*set)(struct rig_spec *spec, const char *value);
} sim_options[] = {{"mem", set_memory}, {"aperture", set_aperture}, {"queues", set_queues},
        {"clock-hz", set_clock_hz}, {"clock-drift", set_clock_drift}, {"clock-step", set_clock_step},
        {"fault", set_fault}};

static int set_option(struct rig_spec *spec, const char *key, const char *value)
{
	size_t i;

	if (!strcmp(key, "completion"))
		return set_completion(spec, value);
	if (!strcmp(key, "hang"))
		return set_hang(spec, value);
	if (!strcmp(key, "poller"))
		return set_poller(spec, value);
	if (!strcmp(key, "dma"))
		return set_dma(spec, value);
	if (!strcmp(key, "firmware"))
		return set_text(spec->firmware, sizeof(spec->firmware), key, value);
	if (spec->kind == RIG_SPEC_PCI && !strcmp(key, "transport"))
		return set_transport(spec, value);
	if (spec->kind == RIG_SPEC_PCI && !strcmp(key, "vf-token"))
		return set_token(spec, value);
	for (i = 0; spec->kind == RIG_SPEC_SIM && i < sizeof(sim_options) / sizeof(sim_options[0]); i++)
		if (!strcmp(key, sim_options[i].name))
			return sim_options[i].set(spec, value);
	return rig_error_set(-EINVAL, "option %s: %s takes completion, dma, hang, poller, firmware%s", key,
	        spec->base,
	        spec->kind == RIG_SPEC_SIM
	                ? ", mem, aperture, queues, clock-hz, clock-drift, clock-step, fault"
	        : spec->kind == RIG_SPEC_PCI ? ", transport, vf-token"
	                                     : "");
}

static int parse_options(struct rig_spec *spec, const char *text)
{
	char copy[RIG_SPEC_TEXT], *rest = copy, *item;
	int err = 0;

	if (strlen(text) >= sizeof(copy))
		return rig_error_set(-EINVAL, "device options longer than %d characters", RIG_SPEC_TEXT - 1);
	strcpy(copy, text);
	while (!err && (item = strsep(&rest, ","))) {
		char *value = strchr(item, '=');

		if (!value)
			return rig_error_set(-EINVAL, "device option \"%s\": NAME=VALUE", item);
		*value++ = 0;
		err = set_option(spec, item, value);
	}
	return err;
}

static int parse_base(struct rig_spec *spec)
{
	if (!strcmp(spec->base, "sim")) {
		spec->kind = RIG_SPEC_SIM;
	} else if (!strncmp(spec->base, "vfio-user:", 10) && spec->base[10]) {
		spec->kind = RIG_SPEC_VFIO_USER;
		strcpy(spec->path, spec->base + 10);
	} else if (rig_bdf_name(spec->base, spec->path)) {
		spec->kind = RIG_SPEC_PCI;
		strcpy(spec->base, spec->path);
	} else {
		return rig_error_set(-EINVAL,
		        "device \"%s\": sim[:OPTIONS], vfio-user:PATH or a PCI address as 0000:65:00.0",
		        spec->base);
	}
	return 0;
}

int rig_spec_parse(const char *device, struct rig_spec *spec)
{
	const char *options;
	size_t length;
	int err;

	memset(spec, 0, sizeof(*spec));
	spec->poller_cpu = -1;
	if (!device)
		return rig_error_set(-EINVAL, "device: NULL");
	options = !strncmp(device, "sim:", 4) ? device + 3 : strchr(device, ',');
	length = options ? (size_t)(options - device) : strlen(device);
	if (length >= sizeof(spec->base))
		return rig_error_set(-EINVAL, "device string longer than %d characters", RIG_SPEC_TEXT - 1);
	memcpy(spec->base, device, length);
	err = parse_base(spec);
	if (!err && options)
		err = parse_options(spec, options + 1);
	if (!err && spec->aperture > (spec->memory ? spec->memory : 256ull << 20))
		err = rig_error_set(-EINVAL, "aperture: larger than the memory");
	return err;
}

int rig_spec_default(struct rig_spec *spec, const char *hang)
{
	if (!hang || spec->kind != RIG_SPEC_SIM || spec->hang_ms)
		return 0;
	return parse_time(hang, &spec->hang_ms)
	               ? 0
	               : rig_error_set(
	                         -EINVAL, "RIG_SIM_HANG=%s: a time from 1ms to 24h, as 500ms or 2s", hang);
}
