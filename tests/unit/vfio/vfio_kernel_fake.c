/* SPDX-License-Identifier: MIT */
#include "vfio_kernel_fake.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vfio_kernel.h"
#include "kernel_abi.h"
#include "pci.h"
#include "vfio_ops.h"

enum { NR_MASK = 0xff, FDS_MOST = 1024, BAR0_BYTES = 0x10000, CONFIG_BYTES = 4096, IOAS = 7 };

enum kind { NOTHING, CONTAINER, GROUP, IOMMU, DEVICE, PAGEMAP };

static struct fake_kernel *k;
static struct {
	enum kind kind;
	unsigned function;
} fds[FDS_MOST];

#define DEVICES "/sys/bus/pci/devices/"

/* -- The tree -- */

static void make_folders(char *path)
{
	for (char *at = path + strlen(k->root) + 1; (at = strchr(at, '/')); at++) {
		*at = 0;
		(void)mkdir(path, 0700);
		*at = '/';
	}
}

void fake_kernel_file(struct fake_kernel *kernel, const char *path, const char *text)
{
	char full[256];
	FILE *file;

	snprintf(full, sizeof(full), "%s%s", kernel->root, path);
	(void)unlink(full);
	if (!text)
		return;
	make_folders(full);
	file = fopen(full, "w");
	if (!file)
		abort();
	fputs(text, file);
	(void)fclose(file);
}

void fake_kernel_link(struct fake_kernel *kernel, const char *path, const char *target)
{
	char full[256];

	snprintf(full, sizeof(full), "%s%s", kernel->root, path);
	(void)unlink(full);
	make_folders(full);
	if (symlink(target, full) < 0)
		abort();
}

static void make_function(struct fake_kernel *kernel, unsigned i, const char *bdf)
{
	static const struct {
		const char *name, *text;
	} files[] = {{"vendor", "0x1234\n"}, {"device", "0x5258\n"}, {"class", "0x120000\n"},
	        {"power_state", "D0\n"}, {"numa_node", "-1\n"}, {"current_link_width", "1\n"},
	        {"max_link_width", "1\n"},
	        {"resource", "0x00000000fe000000 0x00000000fe00ffff 0x0000000000040200\n"
	                     "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
	                     "0x0000004000000000 0x000000400fffffff 0x000000000014220c\n"}};
	char path[128], target[128];

	for (size_t n = 0; n < sizeof(files) / sizeof(files[0]); n++) {
		snprintf(path, sizeof(path), DEVICES "%s/%s", bdf, files[n].name);
		fake_kernel_file(kernel, path, files[n].text);
	}
	snprintf(path, sizeof(path), DEVICES "%s/vfio-dev/vfio%u/dev", bdf, i);
	fake_kernel_file(kernel, path, "511:0\n");
	snprintf(path, sizeof(path), DEVICES "%s/driver", bdf);
	fake_kernel_link(kernel, path, "../../../bus/pci/drivers/vfio-pci");
	snprintf(path, sizeof(path), DEVICES "%s/iommu_group", bdf);
	fake_kernel_link(kernel, path, "../../../kernel/iommu_groups/12");
	snprintf(path, sizeof(path), "/sys/kernel/iommu_groups/12/devices/%s", bdf);
	snprintf(target, sizeof(target), "../../../../bus/pci/devices/%s", bdf);
	fake_kernel_link(kernel, path, target);
}

/* -- Descriptors -- */

static int give(enum kind kind, unsigned function)
{
	int fd = memfd_create("fake-kernel", MFD_CLOEXEC);

	if (fd < 0 || fd >= FDS_MOST)
		abort();
	fds[fd].kind = kind;
	fds[fd].function = function;
	return fd;
}

static int fail(int err)
{
	errno = err;
	return -1;
}

static bool told_to_fail(void)
{
	return ++k->calls == k->fail_call;
}

static int give_device(unsigned function)
{
	int fd;

	if (function >= FAKE_KERNEL_FUNCTIONS)
		return fail(ENODEV);
	fd = fcntl(k->function[function].device_fd, F_DUPFD_CLOEXEC, 0);
	fds[fd].kind = DEVICE;
	fds[fd].function = function;
	return fd;
}

static int fake_open(const char *path, int flags)
{
	(void)flags;
	if (told_to_fail())
		return fail(EIO);
	if (k->fail_path && !strcmp(path, k->fail_path)) {
		if (k->fail_path_times && --k->fail_path_times == 0)
			k->fail_path = NULL;
		return fail(k->fail_path_errno);
	}
	if (!strcmp(path, "/dev/vfio/vfio"))
		return give(CONTAINER, 0);
	if (!strcmp(path, "/dev/vfio/12") || !strcmp(path, "/dev/vfio/noiommu-12"))
		return give(GROUP, 0);
	if (!strcmp(path, "/dev/iommu"))
		return k->no_iommu_node ? fail(ENOENT) : give(IOMMU, 0);
	if (!strcmp(path, "/dev/vfio/devices/vfio0") || !strcmp(path, "/dev/vfio/devices/noiommu-vfio0"))
		return k->no_cdev ? fail(EACCES) : give_device(0);
	if (!strcmp(path, "/dev/vfio/devices/vfio1"))
		return k->no_cdev ? fail(EACCES) : give_device(1);
	if (!strcmp(path, "/proc/self/pagemap") || !strcmp(path, "/proc/kpageflags"))
		return give(PAGEMAP, path[6] == 'k');
	return fail(ENOENT);
}

static int fake_dup(int fd)
{
	int copy = told_to_fail() ? fail(EMFILE) : fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (copy >= 0)
		fds[copy] = fds[fd];
	return copy;
}

static void drop_irqs(struct fake_kernel_function *f)
{
	for (unsigned n = 0; n < FAKE_KERNEL_IRQS; n++) {
		for (unsigned v = 0; v < FAKE_KERNEL_VECTORS; v++) {
			if (f->irq[n][v] >= 0)
				close(f->irq[n][v]);
			f->irq[n][v] = -1;
		}
	}
}

/* A mapping keeps a function open, as a descriptor does. Which of them is mapped is the file's name. */
static bool is_mapped(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	bool found = false;

	while (maps && !found && fgets(line, sizeof(line), maps))
		found = strstr(line, "memfd:fake-device") != NULL;
	if (maps)
		(void)fclose(maps);
	return found;
}

/* The device's last descriptor takes its interrupts along. */
static int fake_close(int fd)
{
	bool device = fds[fd].kind == DEVICE;

	if (device && is_mapped())
		k->closed_mapped++;
	fds[fd].kind = NOTHING;
	for (unsigned i = 0; i < FDS_MOST && device; i++)
		device = fds[i].kind != DEVICE || fds[i].function != fds[fd].function;
	if (device)
		drop_irqs(&k->function[fds[fd].function]);
	return close(fd);
}

/* -- Mappings -- */

static int add_map(uint64_t iova, uint64_t bytes)
{
	for (unsigned i = 0; i < k->maps; i++)
		if (iova < k->map[i].iova + k->map[i].bytes && k->map[i].iova < iova + bytes)
			return fail(EEXIST);
	if (k->maps >= k->entry_limit || k->maps == FAKE_KERNEL_MAPS)
		return fail(ENOSPC);
	memset(&k->map[k->maps], 0, sizeof(k->map[0]));
	k->map[k->maps].iova = iova;
	k->map[k->maps++].bytes = bytes;
	return 0;
}

static uint64_t drop_map(uint64_t iova, uint64_t bytes)
{
	for (unsigned i = 0; i < k->maps; i++) {
		if (k->map[i].iova == iova && k->map[i].bytes == bytes) {
			k->map[i] = k->map[--k->maps];
			return bytes;
		}
	}
	return 0;
}

/* -- ioctls; each checks the size that its caller states -- */

static int iommu_info(void *arg)
{
	static const struct {
		struct rig_kvfio_iommu_info info;
		struct rig_kvfio_iova_ranges head;
		uint64_t range[2][2];
		struct rig_kvfio_dma_avail avail;
	} answer = {{.flags = RIG_KVFIO_IOMMU_PGSIZES | RIG_KVFIO_IOMMU_CAPS,
	                    .pgsizes = 0x1000 | 0x200000,
	                    .caps = sizeof(answer.info)},
	        {{RIG_KVFIO_CAP_IOVA_RANGES, 1, offsetof(__typeof__(answer), avail)}, 2, 0},
	        {{0, 0xfedfffff}, {0xfef00000, 0x7fffffffff}}, {{RIG_KVFIO_CAP_DMA_AVAIL, 1, 0}, 65535}};
	uint32_t room;

	memcpy(&room, arg, sizeof(room));
	if (room < sizeof(answer))
		return fail(EINVAL);
	memcpy(arg, &answer, sizeof(answer));
	room = sizeof(answer);
	memcpy(arg, &room, sizeof(room));
	return 0;
}

static int container_ioctl(unsigned nr, void *arg)
{
	struct rig_kvfio_dma_map *map = arg;
	struct rig_kvfio_dma_unmap *unmap = arg;

	switch (nr) {
	case 100:
		return 0;
	case 101:
		return (uintptr_t)arg == RIG_KVFIO_TYPE1V2;
	case 102:
		return (uintptr_t)arg == RIG_KVFIO_TYPE1V2 || (uintptr_t)arg == RIG_KVFIO_NOIOMMU
		               ? 0
		               : fail(EINVAL);
	case 112:
		return iommu_info(arg);
	case 113:
		return map->argsz == 32 ? add_map(map->iova, map->bytes) : fail(EINVAL);
	case 114:
		if (unmap->argsz != 24)
			return fail(EINVAL);
		unmap->bytes = drop_map(unmap->iova, unmap->bytes) - k->unmap_less;
		return 0;
	default:
		return fail(ENOTTY);
	}
}

/* "0000:65:00.0 vf_token=UUID". */
static int device_by_name(const char *name)
{
	static const char key[] = " vf_token=";
	unsigned i = strncmp(name, FAKE_KERNEL_BDF0, sizeof(FAKE_KERNEL_BDF0) - 1) != 0;
	const char *token = name + strcspn(name, " ");

	if (*token && strncmp(token, key, sizeof(key) - 1) != 0)
		return fail(ENODEV);
	if (*k->function[i].token && (!*token || strcmp(token + sizeof(key) - 1, k->function[i].token) != 0))
		return fail(EACCES);
	return give_device(i);
}

static int bind_device(const struct fake_kernel_function *f, const struct rig_kvfio_bind *bind)
{
	unsigned char uuid[16] = {0};
	bool given = bind->argsz > offsetof(struct rig_kvfio_bind, token) && bind->flags;

	if (given && !k->binds_token)
		return fail(EINVAL);
	if (*f->token && (!given || !rig_pci_token_parse(f->token, uuid) ||
	                         memcmp(uuid, (const void *)(uintptr_t)bind->token, sizeof(uuid)) != 0))
		return fail(EACCES);
	return 0;
}

static int group_ioctl(unsigned nr, void *arg)
{
	struct rig_kvfio_group_status *status = arg;

	switch (nr) {
	case 103:
		status->flags = (k->viable ? RIG_KVFIO_GROUP_VIABLE : 0) |
		                (k->joins ? RIG_KVFIO_GROUP_CONTAINER_SET : 0);
		return 0;
	case 104:
		k->joins++;
		return 0;
	case 106:
		return device_by_name(arg);
	default:
		return fail(ENOTTY);
	}
}

/* The number of the function that the file is a dma-buf of, and 1; 0: of none. */
static unsigned owner_of(int fd)
{
	struct stat file, device;

	for (unsigned i = 0; i < FAKE_KERNEL_FUNCTIONS; i++)
		if (!fstat(fd, &file) && !fstat(k->function[i].device_fd, &device) &&
		        file.st_ino == device.st_ino && file.st_dev == device.st_dev)
			return i + 1;
	return 0;
}

static int map_file(const struct rig_kiommu_map_file *file)
{
	unsigned owner = owner_of(file->fd);

	if (owner && k->no_dmabuf_maps)
		return fail(EINVAL);
	k->file_maps++;
	if (file->ioas != IOAS)
		return fail(ENOENT);
	if (add_map(file->iova, file->bytes) < 0)
		return -1;
	k->map[k->maps - 1].dmabuf = owner;
	return 0;
}

static int iommu_ioctl(unsigned nr, void *arg)
{
	struct rig_kiommu_ioas_alloc *alloc = arg;
	struct rig_kiommu_iova_ranges *ranges = arg;
	struct rig_kiommu_map *map = arg;
	struct rig_kiommu_map_file *file = arg;
	struct rig_kiommu_unmap *unmap = arg;
	struct rig_kiommu_get_pa *pa = arg;
	struct rig_kiommu_range *range;

	switch (nr) {
	case 0x81:
		alloc->out_id = IOAS;
		return 0;
	case 0x84:
		range = (struct rig_kiommu_range *)(uintptr_t)ranges->at;
		range[0] = (struct rig_kiommu_range){0, 0xfedfffff};
		range[1] = (struct rig_kiommu_range){0xfef00000, 0x7fffffffff};
		ranges->count = 2;
		ranges->out_align = 4096;
		return 0;
	case 0x85:
		if (!(map->flags & RIG_KIOMMU_FIXED))
			map->iova = 0x1000000 + k->maps * 0x1000000ull;
		return map->ioas == IOAS ? add_map(map->iova, map->bytes) : fail(ENOENT);
	case 0x8f:
		return map_file(file);
	case 0x86:
		unmap->bytes = drop_map(unmap->iova, unmap->bytes);
		return unmap->bytes ? 0 : fail(ENOENT);
	case 0x95:
		if (!k->tells_pa)
			return fail(ENOTTY);
		if (pa->iova < 0x1000000)
			return fail(ENOENT);
		/* Every other piece is elsewhere. */
		pa->out_pa = 0x100000000 + pa->iova;
		if (k->pa_step) {
			pa->out_pa += (pa->iova / k->pa_step % 2) << 32;
			pa->bytes = k->pa_step - pa->iova % k->pa_step;
		}
		return 0;
	default:
		return fail(ENOTTY);
	}
}

/* BAR 0 with MSI-X in the middle, which may not be mapped; BAR 2 in one; configuration space. */
static int region_info(struct rig_kvfio_region_info *info)
{
	static const struct {
		struct rig_kvfio_sparse head;
		uint64_t area[2][2];
	} sparse = {{{RIG_KVFIO_CAP_SPARSE, 1, 0}, 2, 0}, {{0, 0x4000}, {0x5000, 0xb000}}};
	uint32_t room = info->argsz, whole = sizeof(*info) + (info->index == 0 ? sizeof(sparse) : 0);

	info->argsz = whole;
	info->flags = RIG_KVFIO_REGION_READ | RIG_KVFIO_REGION_WRITE;
	info->offset = (uint64_t)info->index << FAKE_KERNEL_REGION_SHIFT;
	info->bytes = info->index == RIG_VFIO_CONFIG ? CONFIG_BYTES
	              : info->index == 0             ? BAR0_BYTES
	              : info->index == 2             ? 0x100000
	                                             : 0;
	if (info->index == 0 || info->index == 2)
		info->flags |= RIG_KVFIO_REGION_MMAP;
	if (info->index == 0) {
		info->flags |= RIG_KVFIO_REGION_CAPS;
		info->caps = room >= whole ? sizeof(*info) : 0;
		if (room >= whole)
			memcpy(info + 1, &sparse, sizeof(sparse));
	}
	return 0;
}

static int set_irqs(struct fake_kernel_function *f, const struct rig_kvfio_irq_set *set)
{
	bool with = (set->flags & RIG_KVFIO_IRQ_EVENTFD) != 0;

	if (set->argsz != sizeof(*set) + (with ? set->count * 4 : 0) || set->index >= FAKE_KERNEL_IRQS ||
	        set->start + set->count > FAKE_KERNEL_VECTORS)
		return fail(EINVAL);
	if (set->flags & RIG_KVFIO_IRQ_UNMASK)
		return 0;
	if (with && k->vectors_free && set->start + set->count > k->vectors_free)
		return (int)k->vectors_free;
	f->irq_start = set->start;
	f->irq_count = set->count;
	for (unsigned i = 0; i < FAKE_KERNEL_VECTORS; i++) {
		int *at = &f->irq[set->index][i];
		bool in = set->count == 0 || (i >= set->start && i < set->start + set->count);

		if (!in)
			continue;
		if (*at >= 0)
			close(*at);
		*at = with && set->fd[i - set->start] >= 0
		              ? fcntl(set->fd[i - set->start], F_DUPFD_CLOEXEC, 0)
		              : -1;
	}
	return 0;
}

static int hot_info(struct rig_kvfio_hot_info *info)
{
	info->flags = k->hot_owned ? RIG_KVFIO_HOT_RESET_DEV_ID | RIG_KVFIO_HOT_RESET_OWNED : 0;
	info->count = k->hot_alone ? 1 : 2;
	info->entry[0] = (struct rig_kvfio_hot_entry){.group = 12, .bus = 0x65, .devfn = 0};
	info->entry[1] = (struct rig_kvfio_hot_entry){.group = k->hot_group, .bus = 0x65, .devfn = 1};
	return 0;
}

/* A dma-buf of a BAR is another descriptor of the device's memory. */
static int feature(struct fake_kernel_function *f, const struct rig_kvfio_dma_buf *get)
{
	const struct rig_kvfio_token *set = (const void *)get;

	if (set->flags == (RIG_KVFIO_FEATURE_TOKEN | RIG_KVFIO_FEATURE_SET) && set->argsz == sizeof(*set)) {
		memcpy(f->uuid, set->uuid, sizeof(f->uuid));
		f->tokens++;
		return 0;
	}
	if (get->argsz != sizeof(*get) || (get->flags & 0xffff) != RIG_KVFIO_FEATURE_DMA_BUF || !k->exports)
		return fail(ENOTTY);
	if (get->flags & RIG_KVFIO_FEATURE_PROBE)
		return 0;
	k->exported++;
	return fcntl(f->device_fd, F_DUPFD_CLOEXEC, 0);
}

/* What iommufd mapped of the function's dma-bufs is mapped no more, though its range is still taken. */
static void revoke_of(unsigned function)
{
	for (unsigned i = 0; i < k->maps; i++)
		if (k->map[i].dmabuf == function + 1)
			k->map[i].revoked = true;
}

static int device_ioctl(struct fake_kernel_function *f, unsigned nr, void *arg)
{
	struct rig_kvfio_device_info *info = arg;
	struct rig_kvfio_irq_info *irq = arg;

	switch (nr) {
	case 107:
		info->flags = f->flags;
		info->regions = 9;
		info->irqs = FAKE_KERNEL_IRQS;
		return 0;
	case 108:
		return region_info(arg);
	case 109:
		irq->count = irq->index == 2 ? FAKE_KERNEL_VECTORS : 1;
		irq->flags = irq->index == 1 || irq->index == 2 ? RIG_KVFIO_IRQ_NORESIZE : 0;
		return 0;
	case 110:
		return set_irqs(f, arg);
	case 111:
		f->resets++;
		revoke_of((unsigned)(f - k->function));
		return 0;
	case 112:
		return hot_info(arg);
	case 113:
		f->hot_resets++;
		for (unsigned i = 0; i < FAKE_KERNEL_FUNCTIONS; i++)
			revoke_of(i);
		return 0;
	case 117:
		return feature(f, arg);
	case 118:
		return bind_device(f, arg);
	case 119:
		f->attached = true;
		return 0;
	case 120:
		f->attached = false;
		return 0;
	default:
		return fail(ENOTTY);
	}
}

static int fake_ioctl(int fd, unsigned long request, void *arg)
{
	unsigned nr = request & NR_MASK;

	if (told_to_fail())
		return fail(EIO);
	if (k->fail_nr && nr == k->fail_nr) {
		if (k->fail_times && --k->fail_times == 0)
			k->fail_nr = 0;
		return fail(k->fail_errno);
	}
	switch (fds[fd].kind) {
	case CONTAINER:
		return container_ioctl(nr, arg);
	case GROUP:
		return group_ioctl(nr, arg);
	case IOMMU:
		return iommu_ioctl(nr, arg);
	case DEVICE:
		return device_ioctl(&k->function[fds[fd].function], nr, arg);
	default:
		return fail(EBADF);
	}
}

static ssize_t fake_pread(int fd, void *buf, size_t len, off_t off)
{
	if (told_to_fail())
		return fail(EIO);
	if (fds[fd].kind == PAGEMAP) {
		/* Frames in order, in huge pages. */
		for (size_t i = 0; i < len / 8; i++)
			((uint64_t *)buf)[i] =
			        fds[fd].function ? UINT64_C(1) << 17 : UINT64_C(1) << 63 | (0x100000 + i);
		return (ssize_t)len;
	}
	return pread(fd, buf, len, off);
}

static ssize_t fake_pwrite(int fd, const void *buf, size_t len, off_t off)
{
	return told_to_fail() ? fail(EIO) : pwrite(fd, buf, len, off);
}

static const struct rig_ksys calls = {.open = fake_open,
        .close = fake_close,
        .dup = fake_dup,
        .ioctl = fake_ioctl,
        .pread = fake_pread,
        .pwrite = fake_pwrite};

/* -- */

static void init_function(struct fake_kernel_function *f)
{
	static const unsigned char config[64] = {0x34, 0x12, 0x58, 0x52, 0, 0, 0, 0, 1, 0, 0, 0x12};

	f->flags = RIG_KVFIO_DEVICE_PCI | RIG_KVFIO_DEVICE_RESETS;
	f->device_fd = memfd_create("fake-device", MFD_CLOEXEC);
	if (f->device_fd < 0 || ftruncate(f->device_fd, (off_t)9 << FAKE_KERNEL_REGION_SHIFT) < 0 ||
	        pwrite(f->device_fd, config, sizeof(config),
	                (off_t)RIG_VFIO_CONFIG << FAKE_KERNEL_REGION_SHIFT) != sizeof(config))
		abort();
	memset(f->irq, 0xff, sizeof(f->irq));
}

void fake_kernel_init(struct fake_kernel *kernel)
{
	memset(kernel, 0, sizeof(*kernel));
	memset(fds, 0, sizeof(fds));
	k = kernel;
	strcpy(kernel->root, "/tmp/rig-fake-kernel-XXXXXX");
	if (!mkdtemp(kernel->root))
		abort();
	snprintf(kernel->lock_dir, sizeof(kernel->lock_dir), "%s/lock", kernel->root);
	kernel->env = (struct rig_kenv){.sys = &calls, .root = kernel->root, .lock_dir = kernel->lock_dir};
	kernel->viable = true;
	kernel->hot_group = 13;
	kernel->entry_limit = UINT64_MAX;
	make_function(kernel, 0, FAKE_KERNEL_BDF0);
	make_function(kernel, 1, FAKE_KERNEL_BDF1);
	for (unsigned i = 0; i < FAKE_KERNEL_FUNCTIONS; i++)
		init_function(&kernel->function[i]);
}

void fake_kernel_bind(struct fake_kernel *kernel, const char *bdf, const char *driver)
{
	char path[128], target[128];

	snprintf(path, sizeof(path), DEVICES "%s/vfio-dev", bdf);
	fake_kernel_remove(kernel, path);
	snprintf(path, sizeof(path), DEVICES "%s/driver", bdf);
	snprintf(target, sizeof(target), "../../../bus/pci/drivers/%s", driver);
	fake_kernel_link(kernel, path, target);
}

void fake_kernel_remove(struct fake_kernel *kernel, const char *path)
{
	char command[256];
	int status;

	snprintf(command, sizeof(command), "rm -r '%s%s'", kernel->root, path);
	status = system(command);
	(void)status;
}

void fake_kernel_fini(struct fake_kernel *kernel)
{
	for (unsigned i = 0; i < FAKE_KERNEL_FUNCTIONS; i++) {
		struct fake_kernel_function *f = &kernel->function[i];

		close(f->device_fd);
		drop_irqs(f);
	}
	fake_kernel_remove(kernel, "");
}
