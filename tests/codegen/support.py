"""Compile emitted kernels and call them, without the runtime.

In: graphs.  Out: a shared object of all of them, functions from arrays to arrays.
"""

from __future__ import annotations

import ctypes
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import symgrad as sg
from symgrad.abi import shape_of
from symgrad.codegen.calls import SizeNames
from symgrad.codegen.emit.file import PRELUDE, CFile, FileDoc, emit_file, prelude
from symgrad.codegen.emit.kernel import EmittedKernel, emit_kernel
from symgrad.frontend.trace import trace
from symgrad.ir.graph import Graph
from symgrad.kernels import KernelPlan, plan
from symgrad.passes.evaluate import bind_sizes

Array = np.ndarray[Any, Any]

FAST = (
    "-O2", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fopenmp",
    "-ftree-vectorize", "-march=native",
)  # fmt: skip
STRICT = (
    "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror",
    "-Wno-type-limits",  # a user may ask whether a uint8 is below 0
)  # fmt: skip
_ROUND_UP = "(((bytes) + 63) / 64 * 64)"
_OUTSIDE = 12345  # what outputs are filled with before a call


def op_of(forward: Callable[[Any, Any], Any]) -> type[sg.Function]:
    """A Function of two tensors; its backward is derived."""

    class Op(sg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            return forward(x, w)

    return Op


def kernels_of(forward: Callable[[Any, Any], Any], specs: Sequence[str]) -> dict[str, KernelPlan]:
    """The kernels of such a Function, by their names."""
    found = plan(trace(op_of(forward), *specs), pruned=False, name="op")
    return {kernel.name: kernel for kernel in found.kernels}


def feeds_of(graph: Graph, sizes: Mapping[str, int], source: np.random.Generator) -> dict[str, Any]:
    """Normal numbers for each input of a graph, of its dtype."""
    return {
        name: source.standard_normal([size.at(sizes) for size in node.shape]).astype(
            str(node.dtype)
        )
        for name, node in graph.inputs.items()
    }


def blas_options() -> tuple[list[str], list[str]]:
    """What compiles and links the calls of the BLAS."""
    import scipy_openblas32

    folder = scipy_openblas32.get_lib_dir()
    library = scipy_openblas32.get_library()
    names = ("cblas_sgemm", "cblas_dgemm")
    return (
        [f"-D{name}=scipy_{name}" for name in names],
        [f"-L{folder}", f"-l{library}", f"-Wl,-rpath,{folder}"],
    )


def build(file: CFile, folder: Path, flags: Sequence[str] = FAST) -> ctypes.CDLL:
    """The shared object of one file.  RuntimeError with what the compiler says, if anything."""
    source, library = folder / "kernels.c", folder / "kernels.so"
    watched = "-fsanitize=address,undefined" in flags
    text = file.source.replace(f'#include "{PRELUDE}"\n', prelude(), 1)
    source.write_text(_watched(text) if watched else text, encoding="utf-8")
    blas = file.needs_blas and not watched
    compile_options, link_options = blas_options() if blas else ([], [])
    command = [
        *shlex.split(os.environ.get("CC", "cc")), *STRICT, *flags, *compile_options, "-shared",
        "-fPIC", str(source), "-o", str(library), *link_options, "-lmvec", "-lm",
    ]  # fmt: skip
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    found = ctypes.CDLL(str(library))
    if blas:  # kernels call it in their own parallel loops
        found.scipy_openblas_set_num_threads(ctypes.c_int(1))
    return found


def _watched(source: str) -> str:
    """The source with products in C, and 64 bytes after each piece that nobody may touch.

    The address sanitizer sees neither what a BLAS writes nor the pieces of a workspace.
    """
    source = re.sub(r"void cblas_([sd])gemm\([^;]*\);", _plain_product, source)
    carved = "    *space += ROUND_UP(bytes);\n"
    if carved in source:
        assert _ROUND_UP in source
        source = source.replace(_ROUND_UP, f"({_ROUND_UP} + 64)")
        source = source.replace(
            carved,
            f"{carved}    __asan_poison_memory_region(piece + bytes, *space - piece - bytes);\n",
        )
    return (
        f"#include <stddef.h>\nvoid __asan_poison_memory_region(const void *, ptrdiff_t);\n{source}"
    )


def _plain_product(prototype: re.Match[str]) -> str:
    """A definition in place of the prototype: row by row, whole rows of the result."""
    kind = {"s": "float", "d": "double"}[prototype[1]]
    return f"""static void cblas_{prototype[1]}gemm(int order, int a_form, int b_form, int m, int n,
    int k, {kind} alpha, const {kind} *a, int lda, const {kind} *b, int ldb, {kind} beta,
    {kind} *c, int ldc)
{{
    (void)order;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {{
            {kind} total = 0;
            for (int64_t l = 0; l < k; l++)
                total += (a_form == 111 ? a[i*lda + l] : a[l*lda + i])
                    * (b_form == 111 ? b[l*ldb + j] : b[j*ldb + l]);
            c[i*ldc + j] = alpha*total + (beta == 0 ? 0 : beta*c[i*ldc + j]);
        }}
}}"""


@dataclass(frozen=True)
class Kernel:
    """A graph, and the function that was made of it."""

    graph: Graph
    emitted: EmittedKernel
    library: ctypes.CDLL

    def __call__(
        self, feeds: Mapping[str, Array], sizes: Mapping[str, int] | None = None
    ) -> list[Array]:
        """The outputs.  ValueError where the kernel returns another status than 0."""
        record = self.emitted.record
        known = bind_sizes(list(self.graph.inputs.values()), feeds, sizes or {})
        names = SizeNames(known)
        called = {names.of(size): value for size, value in known.items()}
        arguments: list[Any] = [ctypes.c_int64(called[size]) for size in record.sizes]
        alive = []
        for argument in record.inputs:
            array = pack(np.asarray(feeds[argument.name]), argument.strides)
            alive.append(array)
            arguments.append(ctypes.c_void_p(array.ctypes.data))
            arguments += [
                ctypes.c_int64(array.strides[axis] // array.itemsize) for axis in argument.strides
            ]
        outputs = [
            np.full(shape_of(out, called), _OUTSIDE % 100, out.dtype) for out in record.outputs
        ]
        arguments += [ctypes.c_void_p(output.ctypes.data) for output in outputs]
        workspace_bytes = getattr(self.library, f"{record.name}_workspace")
        workspace_bytes.restype = ctypes.c_int64
        size = workspace_bytes(*(ctypes.c_int64(called[one]) for one in record.sizes))
        workspace = np.full(size + 192, 0xA5, np.uint8)
        start = -workspace.ctypes.data % 64 + 64
        arguments.append(ctypes.c_void_p(workspace.ctypes.data + start))
        status = getattr(self.library, record.name)(*arguments)
        if unpoison := getattr(self.library, "__asan_unpoison_memory_region", None):
            unpoison(ctypes.c_void_p(workspace.ctypes.data), ctypes.c_size_t(workspace.size))
        assert (workspace[:start] == 0xA5).all()
        assert (workspace[start + size :] == 0xA5).all(), "written beyond the workspace"
        if status:
            raise ValueError(record.reasons[status])
        return outputs


def pack(array: Array, strides: Sequence[int]) -> Array:
    """The array as the record allows it: a copy where an axis without a stride is strided."""
    expected = array.itemsize
    fits = True
    for axis in range(array.ndim - 1, -1, -1):
        if axis in strides:
            expected = abs(array.strides[axis])
        elif array.shape[axis] > 1 and array.strides[axis] != expected:
            fits = False
        expected *= max(array.shape[axis], 1)
    return array if fits and array.size else np.ascontiguousarray(array)


def compile_graphs(
    graphs: Mapping[str, Graph], folder: Path, flags: Sequence[str] = FAST, *, derived: bool = False
) -> dict[str, Kernel]:
    """Kernels of all graphs, in one file."""
    emitted = {name: emit_kernel(graph, name, derived=derived) for name, graph in graphs.items()}
    library = build(emit_file(list(emitted.values()), FileDoc("kernels")), folder, flags)
    return {name: Kernel(graphs[name], one, library) for name, one in emitted.items()}
