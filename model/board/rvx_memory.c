/* SPDX-License-Identifier: MIT */
#include "rvx_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int rvx_memory_open(struct rvx_memory *memory, const char *name, uint64_t bytes)
{
	int err;

	memset(memory, 0, sizeof(*memory));
	memory->fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (memory->fd < 0)
		return -errno;
	if (ftruncate(memory->fd, (off_t)bytes) < 0 ||
	        fcntl(memory->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
		err = -errno;
		goto close_fd;
	}
	void *host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, memory->fd, 0);
	if (host == MAP_FAILED) {
		err = -errno;
		goto close_fd;
	}
	memory->host = host;
	memory->bytes = bytes;
	return 0;

close_fd:
	close(memory->fd);
	memset(memory, 0, sizeof(*memory));
	return err;
}

void rvx_memory_close(struct rvx_memory *memory)
{
	if (!memory->host)
		return;
	munmap(memory->host, memory->bytes);
	close(memory->fd);
	memset(memory, 0, sizeof(*memory));
}

void *rvx_memory_at(const struct rvx_memory *memory, uint64_t address, uint64_t bytes)
{
	if (address >= memory->bytes || bytes > memory->bytes - address)
		return NULL;
	return memory->host + address;
}

void rvx_memory_clear(const struct rvx_memory *memory)
{
	for (uint64_t at = 0; at < memory->bytes; at += sizeof(uint64_t))
		rvx_store64(memory->host + at, 0);
}

/* One access of `len` bytes, if both sides are aligned for it. */
static int is_word(const void *shared, size_t len)
{
	return (len == 2 || len == 4 || len == 8) && (uintptr_t)shared % len == 0;
}

void rvx_memory_get(void *own, const void *shared, size_t len)
{
	if (!is_word(shared, len)) {
		memcpy(own, shared, len);
	} else if (len == 8) {
		uint64_t value = rvx_load64(shared);
		memcpy(own, &value, len);
	} else if (len == 4) {
		uint32_t value = rvx_load32(shared);
		memcpy(own, &value, len);
	} else {
		uint16_t value = __atomic_load_n((const uint16_t *)shared, __ATOMIC_ACQUIRE);
		memcpy(own, &value, len);
	}
}

void rvx_memory_put(void *shared, const void *own, size_t len)
{
	if (!is_word(shared, len)) {
		memcpy(shared, own, len);
	} else if (len == 8) {
		uint64_t value;
		memcpy(&value, own, len);
		rvx_store64(shared, value);
	} else if (len == 4) {
		uint32_t value;
		memcpy(&value, own, len);
		rvx_store32(shared, value);
	} else {
		uint16_t value;
		memcpy(&value, own, len);
		__atomic_store_n((uint16_t *)shared, value, __ATOMIC_RELEASE);
	}
}
