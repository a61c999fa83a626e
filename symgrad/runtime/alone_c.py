"""The C that runs a parallel region of one thread without making a team of it.

In: nothing.  Out: its text.

GCC calls ``GOMP_parallel`` for every region, also where its ``if`` says no: a team of one thread
takes longer to make than many kernels run.  The linker lets kernels call the function below instead
(``--wrap``).  What a region contains is right outside of every team, too: OpenMP has orphaned
loops, and a thread without a team is the first of one.
"""

from __future__ import annotations

ALONE = """
#if defined(_OPENMP) && defined(SYMGRAD_WRAP) && !defined(__clang__)
void __real_GOMP_parallel(void (*body)(void *), void *data, unsigned threads, unsigned flags);

/* Run a parallel region.  threads: how many were asked for, 0 for as many as there may be. */
__attribute__((visibility("hidden")))
void __wrap_GOMP_parallel(void (*body)(void *), void *data, unsigned threads, unsigned flags)
{
    const int wanted = threads ? (int)threads : omp_get_max_threads();
    if (wanted == 1 && omp_get_num_threads() == 1) body(data);
    else __real_GOMP_parallel(body, data, threads, flags);
}
#endif
"""
