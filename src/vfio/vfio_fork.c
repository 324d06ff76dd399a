/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <unistd.h>

#include "error.h"
#include "pci_private.h"

static pthread_mutex_t hold = PTHREAD_MUTEX_INITIALIZER; /* before lock: forks wait for who has it */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list */
static struct rig_pci *first;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int installed;

/* Only the calling thread is left: locks may be held by threads that are not there, lists are whole because
 * they are changed by one store. Heap memory is kept; nobody knows who was using it. */
static void orphan(struct rig_pci *f)
{
	f->orphan = true;
	rig_gone_orphan(&f->gone);
	f->ops->forked(f->transport);
	for (unsigned kind = 0; kind < RIG_IRQ_KINDS; kind++) {
		for (unsigned i = 0; f->irq[kind].fd && i < f->irq[kind].count; i++) {
			if (f->irq[kind].fd[i] >= 0)
				close(f->irq[kind].fd[i]);
		}
		f->irq[kind].fd = NULL;
	}
	for (struct rig_arena *a = f->arenas.first; a; a = a->next)
		close(a->mem.fd);
	f->arenas.first = NULL;
	pthread_mutex_init(&f->maps.lock, NULL);
	pthread_mutex_init(&f->region_lock, NULL);
	pthread_mutex_init(&f->config_lock, NULL);
	pthread_mutex_init(&f->dma_lock, NULL);
	pthread_mutex_init(&f->irq_lock, NULL);
}

static void prepare(void)
{
	pthread_mutex_lock(&hold);
	pthread_mutex_lock(&lock);
}

static void parent(void)
{
	pthread_mutex_unlock(&lock);
	pthread_mutex_unlock(&hold);
}

static void child(void)
{
	for (struct rig_pci *f = first; f; f = f->next)
		orphan(f);
	first = NULL;
	rig_peer_forked();
	rig_guard_forked();
	parent();
}

static void install(void)
{
	installed = -pthread_atfork(prepare, parent, child);
}

void rig_fork_hold(void)
{
	pthread_once(&once, install);
	pthread_mutex_lock(&hold);
}

void rig_fork_release(void)
{
	pthread_mutex_unlock(&hold);
}

int rig_fork_add(struct rig_pci *f)
{
	pthread_once(&once, install);
	if (installed)
		return rig_vfio_fail(installed, NULL, "pthread_atfork");
	pthread_mutex_lock(&lock);
	f->next = first;
	first = f;
	pthread_mutex_unlock(&lock);
	return 0;
}

void rig_fork_remove(struct rig_pci *f)
{
	struct rig_pci **at = &first;

	pthread_mutex_lock(&lock);
	while (*at && *at != f)
		at = &(*at)->next;
	if (*at)
		*at = f->next;
	pthread_mutex_unlock(&lock);
}
