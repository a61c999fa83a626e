"""The C that runs parallel regions on a team of threads of our own.

In: nothing.  Out: its text.

GCC calls ``GOMP_parallel`` for a region and asks ``omp_get_thread_num`` in it; the linker lets
kernels call the functions below instead (``--wrap``).  A region is cut into more parts than there
are threads.  Each thread begins with its own and goes on with those of others, so that nobody waits
for a thread that the system has not started yet: OpenMP's barrier does, for as long as another
program has the processor.  A region of one thread makes no team at all.

The regions of kernels are loops of independent iterations: no barrier, no region within a region,
no memory of a thread, and no result that depends on which thread has an iteration.  A region that
says ``num_threads`` has as many parts.
"""

from __future__ import annotations

TEAM = """
#if defined(_OPENMP) && defined(SYMGRAD_WRAP) && !defined(__clang__)
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

int __real_omp_get_thread_num(void);
int __real_omp_get_num_threads(void);

enum {
    SYMGRAD_LAYOUT = 1,       /* of the two structures */
    SYMGRAD_THREADS = 1024,   /* at most */
    SYMGRAD_PARTS = 4,        /* for each thread */
    SYMGRAD_SPINS = 1 << 14   /* looks before a thread sleeps, half a millisecond */
};

/* A region that runs.  The lock of the team guards what is not atomic. */
struct symgrad_region {
    void (*run)(struct symgrad_region *, int thread);
    void (*body)(void *);
    void *data;
    int threads, parts;
    int open;                 /* how many more threads may join */
    _Atomic int working;      /* how many have joined and not left */
    _Atomic int *begun;       /* for each thread: how many of its parts */
    struct symgrad_region *next;
};

/* The threads that help, and the regions that they may join. */
struct symgrad_team {
    int layout;
    pthread_mutex_t lock;
    pthread_cond_t opened, left;
    struct symgrad_region *regions;
    int threads, idle;
    _Atomic unsigned changes; /* how many regions there were */
};

#define SYMGRAD_EMPTY \\
    {SYMGRAD_LAYOUT, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, \\
     PTHREAD_COND_INITIALIZER, 0, 0, 0, 0}

static struct symgrad_team symgrad_own_team = SYMGRAD_EMPTY;
static struct symgrad_team *symgrad_team = &symgrad_own_team;
static _Thread_local int symgrad_part, symgrad_parts;

__attribute__((visibility("hidden"))) int __wrap_omp_get_thread_num(void)
{
    return symgrad_parts ? symgrad_part : __real_omp_get_thread_num();
}

__attribute__((visibility("hidden"))) int __wrap_omp_get_num_threads(void)
{
    return symgrad_parts ? symgrad_parts : __real_omp_get_num_threads();
}

static void symgrad_run_part(void (*body)(void *), void *data, int part, int parts)
{
    const int outer_part = symgrad_part, outer_parts = symgrad_parts;
    symgrad_part = part, symgrad_parts = parts;
    body(data);
    symgrad_part = outer_part, symgrad_parts = outer_parts;
}

/* Run parts until each has been begun by somebody: those of this thread first. */
static void symgrad_run(struct symgrad_region *region, int thread)
{
    const int each = (region->parts + region->threads - 1)/region->threads;
    for (int turn = 0; turn < region->threads; turn++) {
        const int owner = (thread + turn)%region->threads;
        for (int k; (k = atomic_fetch_add(&region->begun[owner], 1)) < each;)
            if (owner*each + k < region->parts)
                symgrad_run_part(region->body, region->data, owner*each + k, region->parts);
    }
}

static void symgrad_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

static struct symgrad_region *symgrad_open_region(struct symgrad_team *team)
{
    struct symgrad_region *region = team->regions;
    while (region && region->open == 0) region = region->next;
    return region;
}

struct symgrad_helper { struct symgrad_team *team; int thread; };

static void *symgrad_help(void *given)
{
    struct symgrad_team *const team = ((struct symgrad_helper *)given)->team;
    const int thread = ((struct symgrad_helper *)given)->thread;
    free(given);
    pthread_mutex_lock(&team->lock);
    for (;;) {
        struct symgrad_region *const region = symgrad_open_region(team);
        if (region) {
            region->open--;
            region->working++;
            pthread_mutex_unlock(&team->lock);
            region->run(region, thread);
            pthread_mutex_lock(&team->lock);
            region->open = 0;
            if (--region->working == 0) pthread_cond_broadcast(&team->left);
            continue;
        }
        const unsigned seen = team->changes;
        pthread_mutex_unlock(&team->lock);
        for (int i = 0; i < SYMGRAD_SPINS && team->changes == seen; i++) symgrad_pause();
        pthread_mutex_lock(&team->lock);
        team->idle++;
        while (team->changes == seen) pthread_cond_wait(&team->opened, &team->lock);
        team->idle--;
    }
    return 0;
}

/* A forked process has none of the threads. */
static void symgrad_forked(void) { symgrad_own_team = (struct symgrad_team)SYMGRAD_EMPTY; }

__attribute__((constructor)) static void symgrad_loaded(void)
{
    pthread_atfork(0, 0, symgrad_forked);
}

/* Start the threads that are missing, which signals do not reach; fewer where there are no more. */
static void symgrad_hire(struct symgrad_team *team, int wanted)
{
    sigset_t all, before;
    if (team->threads >= wanted) return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (team->threads < wanted) {
        struct symgrad_helper *const helper = malloc(sizeof *helper);
        pthread_t started;
        if (!helper) break;
        helper->team = team, helper->thread = team->threads + 1;
        if (pthread_create(&started, 0, symgrad_help, helper)) { free(helper); break; }
        pthread_detach(started);
        team->threads++;
    }
    pthread_sigmask(SIG_SETMASK, &before, 0);
}

/* Let others join, and say how many sleep of those that are needed. */
static int symgrad_open(struct symgrad_team *team, struct symgrad_region *region)
{
    pthread_mutex_lock(&team->lock);
    symgrad_hire(team, region->open);
    region->next = team->regions;
    team->regions = region;
    team->changes++;
    const int sleeping = team->idle < region->open ? team->idle : region->open;
    pthread_mutex_unlock(&team->lock);
    return sleeping;
}

/* Let nobody else join, and wait for those who have. */
static void symgrad_close(struct symgrad_team *team, struct symgrad_region *region)
{
    struct symgrad_region **place = &team->regions;
    pthread_mutex_lock(&team->lock);
    while (*place != region) place = &(*place)->next;
    *place = region->next;
    pthread_mutex_unlock(&team->lock);
    for (int i = 0; i < SYMGRAD_SPINS && region->working; i++) symgrad_pause();
    if (!region->working) return;
    pthread_mutex_lock(&team->lock);
    while (region->working) pthread_cond_wait(&team->left, &team->lock);
    pthread_mutex_unlock(&team->lock);
}

/* Run a parallel region.  asked: for how many threads, 0 for as many as there may be. */
__attribute__((visibility("hidden")))
void __wrap_GOMP_parallel(void (*body)(void *), void *data, unsigned asked, unsigned flags)
{
    int threads = asked ? (int)asked : omp_get_max_threads();
    (void)flags;
    if (threads > SYMGRAD_THREADS) threads = SYMGRAD_THREADS;
    if (symgrad_parts > 1 || omp_get_active_level() >= omp_get_max_active_levels()) threads = 1;
    const int parts = asked ? (int)asked : threads > 1 ? SYMGRAD_PARTS*threads : 1;
    if (threads == 1) {
        for (int part = 0; part < parts; part++) symgrad_run_part(body, data, part, parts);
        return;
    }
    struct symgrad_team *const team = symgrad_team;
    _Atomic int begun[threads];
    for (int i = 0; i < threads; i++) atomic_init(&begun[i], 0);
    struct symgrad_region region = {
        symgrad_run, body, data, threads, parts, threads - 1, 0, begun, 0};
    const int sleeping = symgrad_open(team, &region);
    for (int i = 0; i < sleeping; i++) pthread_cond_signal(&team->opened);
    symgrad_run(&region, 0);
    symgrad_close(team, &region);
}
#endif
"""

SHARED = """
/* The threads that run this library's regions, by the address of their team; 0: OpenMP's. */
static uintptr_t symgrad_get_team(void)
{
#ifdef SYMGRAD_WRAP
    return (uintptr_t)symgrad_team;
#else
    return 0;
#endif
}

/* Let another library's threads run this one's regions, where both have them alike. */
static void symgrad_set_team(uintptr_t team)
{
#ifdef SYMGRAD_WRAP
    struct symgrad_team *const other = (struct symgrad_team *)team;
    if (other->layout == SYMGRAD_LAYOUT) symgrad_team = other;
#else
    (void)team;
#endif
}
"""
