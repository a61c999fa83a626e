"""Parallel regions on threads of our own: which parts run, where, and that kernels get them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from symgrad.runtime import compiler
from symgrad.runtime.team_c import TEAM
from tests.runtime import scripts

needs_gcc = pytest.mark.skipif(
    not compiler.find_compiler().wrap or not shutil.which("gcc"), reason="no gcc, or no --wrap"
)

START = f"""
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
{TEAM}
"""

REGIONS = """
enum { MOST = 64 };
static _Thread_local int here;
static int counts[MOST], parts, others;
static void body(void *data)
{
    (void)data;
    __atomic_fetch_add(&counts[omp_get_thread_num()], 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&parts, omp_get_num_threads(), __ATOMIC_SEQ_CST);
    if (!here) __atomic_fetch_add(&others, 1, __ATOMIC_SEQ_CST);
}
static void ask(unsigned threads)
{
    for (int i = 0; i < MOST; i++) counts[i] = 0;
    here = 1, others = 0;
    __wrap_GOMP_parallel(body, 0, threads, 0);
    int once = 1;
    for (int i = 0; i < MOST; i++) once = once && counts[i] == (i < parts);
    printf("%d%s%s ", parts, once ? "" : "!", parts == 1 && others ? "?" : "");
}
void __real_GOMP_parallel(void (*)(void *), void *, unsigned, unsigned);
static void within(void *data)
{
    (void)data;
    if (omp_get_thread_num() == 0) { ask(0); ask(5); }
}
int main(void)
{
    omp_set_num_threads(3);
    for (unsigned threads = 0; threads < 8; threads++) ask(threads);
    omp_set_num_threads(1);
    ask(0);
    omp_set_num_threads(3);
    __wrap_GOMP_parallel(within, 0, 2, 0);
    __real_GOMP_parallel(within, 0, 2, 0);
    omp_set_max_active_levels(2);
    __real_GOMP_parallel(within, 0, 2, 0);
    fflush(stdout);
    if (fork() == 0) { ask(0); ask(2); fflush(stdout); _exit(0); }
    wait(0);
    return 0;
}
"""


def run(tmp_path: Path, text: str, *options: str) -> str:
    program = tmp_path / "program"
    flags = ["-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-DSYMGRAD_WRAP"]
    command = ["gcc", *flags, "-fopenmp", *options, *compiler.WRAP]
    command += ["-x", "c", "-", "-o", str(program)]
    subprocess.run(command, input=START + text, text=True, check=True)
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout


@needs_gcc
def test_each_part_runs_once(tmp_path: Path) -> None:
    """For 0 to 7 threads, 0 being 3; for one; within regions; in a forked process."""
    asked = ["12", "1", "2", "3", "4", "5", "6", "7", "1"]
    within, within_active, forked = ["1", "5"], ["12", "5"], ["12", "2"]
    said = run(tmp_path, REGIONS).split()
    assert said == [*asked, *within, *within, *within_active, *forked]


MANY = """
enum { CALLERS = 4, SIZE = 1000, TIMES = 300 };
static void *call(void *given)
{
    static _Thread_local long values[SIZE];
    long *const wrong = given;
    omp_set_num_threads(3);
    for (int turn = 0; turn < TIMES; turn++) {
        long *const mine = values;
        #pragma omp parallel for schedule(static)
        for (int i = 0; i < SIZE; i++) mine[i] += i;
        for (int i = 0; i < SIZE; i++) *wrong += values[i] != (turn + 1L)*i;
    }
    return 0;
}
int main(void)
{
    pthread_t callers[CALLERS];
    long wrong[CALLERS] = {0}, sum = 0;
    for (int i = 0; i < CALLERS; i++) pthread_create(&callers[i], 0, call, &wrong[i]);
    for (int i = 0; i < CALLERS; i++) pthread_join(callers[i], 0);
    for (int i = 0; i < CALLERS; i++) sum += wrong[i];
    printf("%ld wrong of %d", sum, symgrad_team->threads);
    return 0;
}
"""


@needs_gcc
@pytest.mark.parametrize("options", [(), ("-fsanitize=thread",)], ids=["", "without races"])
def test_regions_of_several_threads_at_once(tmp_path: Path, options: tuple[str, ...]) -> None:
    assert run(tmp_path, MANY, *options) == "0 wrong of 2"


THREADS = """
import os
import numpy
import symgrad as sg
from symgrad.runtime import threads
def compiled(function):
    forward = staticmethod(lambda ctx, x: function(x))
    return sg.compile(type("Op", (sg.Function,), {"forward": forward}), "f32[n m]")
ops = [compiled(sg.exp), compiled(sg.log)]
small, large = numpy.ones((3, 4), "f4"), numpy.ones((300, 300), "f4")
def tasks():
    return len(os.listdir("/proc/self/task"))
first = tasks()
for count in (1, 3, 2):
    threads.set_num_threads(count)
    for x in (small, large):
        for op in ops:
            op(x)
        print(tasks() - first, end=" ")
"""


@needs_gcc
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="no /proc")
def test_kernels_of_several_libraries_share_threads() -> None:
    """They start where a kernel has work for several."""
    said = scripts.finish(scripts.start(THREADS, CC="gcc", OPENBLAS_NUM_THREADS="1"))
    assert said.split() == ["0", "0", "0", "2", "2", "2"]
