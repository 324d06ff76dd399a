/* SPDX-License-Identifier: MIT */
#include "allocs.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* Live blocks: open addressing over the address, with tombstones. Full means the test is wrong, not the code.
 */
#define SLOTS     (1u << 20)
#define TOMBSTONE ((void *)1)

static void *slots[SLOTS];
static unsigned live;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t count;
static _Atomic uint64_t fail_at; /* value of count whose allocation fails, 0 for none */
static atomic_bool failed;

void *__real_malloc(size_t);
void *__real_calloc(size_t, size_t);
void *__real_realloc(void *, size_t);
void *__real_reallocarray(void *, size_t, size_t);
void *__real_aligned_alloc(size_t, size_t);
int __real_posix_memalign(void **, size_t, size_t);
char *__real_strdup(const char *);
char *__real_strndup(const char *, size_t);
int __real_vasprintf(char **, const char *, va_list);
void __real_free(void *);

void *__wrap_malloc(size_t);
void *__wrap_calloc(size_t, size_t);
void *__wrap_realloc(void *, size_t);
void *__wrap_reallocarray(void *, size_t, size_t);
void *__wrap_aligned_alloc(size_t, size_t);
int __wrap_posix_memalign(void **, size_t, size_t);
char *__wrap_strdup(const char *);
char *__wrap_strndup(const char *, size_t);
int __wrap_vasprintf(char **, const char *, va_list);
int __wrap_asprintf(char **, const char *, ...);
void __wrap_free(void *);

static unsigned place(const void *p)
{
	return (unsigned)(((uintptr_t)p >> 4) * 0x9e3779b97f4a7c15u >> 44) & (SLOTS - 1);
}

/* The library allocates in the child of a fork that comes while its threads do. */
static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

static __attribute__((constructor)) void mind_forks(void)
{
	(void)pthread_atfork(before_fork, after_fork, after_fork);
}

static void *add(void *p)
{
	if (!p)
		return NULL;
	pthread_mutex_lock(&lock);
	for (unsigned i = place(p), n = 0; n < SLOTS; i = (i + 1) & (SLOTS - 1), n++) {
		if (slots[i] && slots[i] != TOMBSTONE)
			continue;
		slots[i] = p;
		live++;
		break;
	}
	pthread_mutex_unlock(&lock);
	return p;
}

/* Whether p was there: memory that a library allocated is not. */
static bool drop(const void *p)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	for (unsigned i = place(p), n = 0; p && slots[i] && n < SLOTS; i = (i + 1) & (SLOTS - 1), n++) {
		if (slots[i] != p)
			continue;
		slots[i] = slots[(i + 1) & (SLOTS - 1)] ? TOMBSTONE : NULL;
		live--;
		found = true;
		break;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

/* Counts one allocation; true if it must fail. */
static bool refuse(void)
{
	if (atomic_fetch_add(&count, 1) + 1 != atomic_load(&fail_at))
		return false;
	atomic_store(&failed, true);
	errno = ENOMEM;
	return true;
}

uint64_t test_allocs(void)
{
	return atomic_load(&count);
}

void test_allocs_fail_at(uint64_t k)
{
	atomic_store(&failed, false);
	atomic_store(&fail_at, k ? atomic_load(&count) + k : 0);
}

bool test_allocs_failed(void)
{
	return atomic_load(&failed);
}

unsigned test_allocs_live(void)
{
	pthread_mutex_lock(&lock);
	unsigned n = live;
	pthread_mutex_unlock(&lock);
	return n;
}

void *__wrap_malloc(size_t size)
{
	return refuse() ? NULL : add(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
	return refuse() ? NULL : add(__real_calloc(n, size));
}

/* The old block leaves the table before it may be handed to another thread, and returns to it if realloc
 * failed. */
void *__wrap_realloc(void *old, size_t size)
{
	if (refuse())
		return NULL;
	uintptr_t was = (uintptr_t)old;
	bool known = drop(old);
	void *p = __real_realloc(old, size);
	if (!p && known && size)
		add((void *)was);
	return add(p);
}

void *__wrap_reallocarray(void *old, size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return __wrap_realloc(old, bytes);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
	return refuse() ? NULL : add(__real_aligned_alloc(align, size));
}

int __wrap_posix_memalign(void **p, size_t align, size_t size)
{
	if (refuse())
		return ENOMEM;
	int r = __real_posix_memalign(p, align, size);
	if (!r)
		add(*p);
	return r;
}

char *__wrap_strdup(const char *s)
{
	return refuse() ? NULL : add(__real_strdup(s));
}

char *__wrap_strndup(const char *s, size_t n)
{
	return refuse() ? NULL : add(__real_strndup(s, n));
}

int __wrap_vasprintf(char **p, const char *format, va_list args)
{
	if (refuse())
		return -1;
	int r = __real_vasprintf(p, format, args);
	if (r >= 0)
		add(*p);
	return r;
}

int __wrap_asprintf(char **p, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	int r = __wrap_vasprintf(p, format, args);
	va_end(args);
	return r;
}

void __wrap_free(void *p)
{
	drop(p);
	__real_free(p);
}
