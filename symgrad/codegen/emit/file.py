"""Kernels to files: C source, header, declarations for cffi, and the header that all C files share.

In: emitted kernels.  Out: ``CFile``.

The templates lay out a frozen view and decide nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from symgrad.codegen.emit.groups import BLOCK, SUM_ROWS
from symgrad.codegen.emit.kernel import EmittedKernel, KernelView, comment_lines
from symgrad.codegen.emit.reductions import SUM_BLOCK, CombineView, Reduction, combine_view
from symgrad.codegen.environment import environment
from symgrad.codegen.names import identifier
from symgrad.codegen.schedule.interchange import SHORT_ROW
from symgrad.ops.exponential_c import FLOATS
from symgrad.ops.products_c import FLUSHED
from symgrad.ops.record import helpers, vector_operands

PRELUDE = "_prelude.h"
"""The header that each C file includes."""


@dataclass(frozen=True)
class FileDoc:
    """What a file is called and what stands on its top."""

    name: str
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class VectorView:
    """A function of ``math.h`` that libmvec has for several numbers at once."""

    name: str
    type: str
    parameters: str


@dataclass(frozen=True)
class ProductView:
    """A function that calls the BLAS."""

    short: str
    type: str
    blas: str
    one: str


@dataclass(frozen=True)
class FileView:
    """All that the templates of a file are shown."""

    guard: str
    lines: tuple[str, ...]
    vectors: tuple[VectorView, ...]
    helpers: tuple[str, ...]
    combines: tuple[CombineView, ...]
    kernels: tuple[KernelView, ...]
    prelude: str = PRELUDE


@dataclass(frozen=True)
class PreludeView:
    """All that the template of the shared header is shown."""

    block: int
    sum_block: int
    sum_rows: int
    short_row: int
    products: tuple[ProductView, ...]
    flushed: str
    floats: str
    helpers: tuple[str, ...]


@dataclass(frozen=True)
class CFile:
    """The texts of one file of kernels, and what compiling it needs."""

    source: str
    header: str
    cdef: str
    needs_blas: bool
    vector_functions: tuple[str, ...]


def emit_file(kernels: Sequence[EmittedKernel], doc: FileDoc) -> CFile:
    """One C file with these kernels."""
    view = _file_view(kernels, doc)
    load = environment().get_template
    return CFile(
        load("kernel.c.j2").render(file=view),
        load("kernel.h.j2").render(file=view),
        load("kernel.cdef.j2").render(file=view),
        any(kernel.needs_blas for kernel in kernels),
        tuple(vector.name for vector in view.vectors),
    )


def prelude() -> str:
    """The text of ``PRELUDE``, which is the same for all kernels."""
    products = (
        ProductView("f32", "float", "cblas_sgemm", "1.0f"),
        ProductView("f64", "double", "cblas_dgemm", "1.0"),
    )
    shared = tuple(helper.source for _, helper in helpers() if helper.shared)
    fixed = BLOCK, SUM_BLOCK, SUM_ROWS, SHORT_ROW
    view = PreludeView(*fixed, products, FLUSHED, FLOATS, shared)
    return environment().get_template("prelude.h.j2").render(prelude=view)


def included(source: str, header: str) -> str:
    """A C file with the text of ``PRELUDE`` in it, between line markers."""
    before, found, after = source.partition(f'#include "{PRELUDE}"\n')
    line = before.count("\n") + 2
    return f'{before}# 1 "{PRELUDE}"\n{header}# {line} "kernels.c"\n{after}' if found else source


def _file_view(kernels: Sequence[EmittedKernel], doc: FileDoc) -> FileView:
    operands = vector_operands()
    vectors = sorted({name for kernel in kernels for name in kernel.vector_functions})
    own = dict(sorted(pair for kernel in kernels for pair in kernel.helpers))
    combines: dict[str, Reduction] = {}
    for kernel in kernels:
        combines.update({reduction.combine: reduction for reduction in kernel.combines})
    return FileView(
        guard=f"SYMGRAD_{identifier(doc.name).upper()}_H",
        lines=comment_lines(doc.lines),
        vectors=tuple(_vector(name, operands) for name in vectors),
        helpers=tuple(own.values()),
        combines=tuple(combine_view(combines[name]) for name in sorted(combines)),
        kernels=tuple(kernel.view for kernel in kernels),
    )


def _vector(name: str, operands: Mapping[str, int]) -> VectorView:
    """``operands``: how many those functions take that are ops."""
    kind = "float" if name.endswith("f") and name not in operands else "double"
    count = operands.get(name if kind == "double" else name[:-1], 1)
    return VectorView(name, kind, ", ".join([kind] * count))
