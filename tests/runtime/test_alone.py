"""Parallel regions of one thread: which ones make no team, and that kernels get the function."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from symgrad.runtime import compiler
from symgrad.runtime.alone_c import ALONE
from tests.runtime import scripts

needs_gcc = pytest.mark.skipif(
    not compiler.find_compiler().wrap or not shutil.which("gcc"), reason="no gcc, or no --wrap"
)

# GOMP_parallel is one that says so.
PROGRAM = """
#include <omp.h>
#include <stdio.h>
#define SYMGRAD_WRAP
%s
void __real_GOMP_parallel(void (*body)(void *), void *data, unsigned threads, unsigned flags)
{
    (void)body; (void)data; (void)threads; (void)flags;
    printf("team ");
}
static void body(void *data) { (void)data; printf("alone "); }
static void ask(void)
{
    __wrap_GOMP_parallel(body, 0, 1, 0);
    __wrap_GOMP_parallel(body, 0, 3, 0);
    for (int threads = 1; threads < 3; threads++) {
        omp_set_num_threads(threads);
        __wrap_GOMP_parallel(body, 0, 0, 0);
    }
}
int main(void)
{
    ask();
    for (int threads = 1; threads < 3; threads++) {
        #pragma omp parallel num_threads(threads)
        #pragma omp single
        ask();
    }
    return 0;
}
"""


@needs_gcc
def test_which_regions_make_no_team(tmp_path: Path) -> None:
    """One thread is wanted, and the one that asks is the only one of the innermost team."""
    program = tmp_path / "program"
    command = ["gcc", "-fopenmp", "-x", "c", "-", "-o", str(program)]
    subprocess.run(command, input=PROGRAM % ALONE, text=True, check=True)
    said = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()
    alone, team = ["alone", "team", "alone", "team"], ["team"] * 4
    assert said == [*alone, *alone, *team]


COUNTING = """
#define _GNU_SOURCE
#include <dlfcn.h>
int regions = 0;
void GOMP_parallel(void (*body)(void *), void *data, unsigned threads, unsigned flags)
{
    void (*real)(void (*)(void *), void *, unsigned, unsigned) =
        dlsym(dlopen("libgomp.so.1", RTLD_NOW), "GOMP_parallel");
    regions++;
    real(body, data, threads, flags);
}
"""

COUNT = """
import ctypes
import numpy
from symgrad.runtime import threads
from tests.runtime.examples import SOFTPLUS
regions = ctypes.c_int.in_dll(ctypes.CDLL(None), "regions")
op = SOFTPLUS.op()
small, large = numpy.ones((3, 4), "f4"), numpy.ones((300, 300), "f4")
for count in (1, 2):
    threads.set_num_threads(count)
    for x in (small, large):
        before = regions.value
        op(x)
        print(regions.value - before, end=" ")
"""


@needs_gcc
@pytest.mark.slow
def test_kernels_make_a_team_where_it_has_several_threads(tmp_path: Path) -> None:
    library = tmp_path / "counting.so"
    command = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library), "-ldl"]
    subprocess.run(command, input=COUNTING, text=True, check=True)
    said = scripts.finish(scripts.start(COUNT, CC="gcc", LD_PRELOAD=str(library)))
    assert said.split() == ["0", "0", "0", "1"]
