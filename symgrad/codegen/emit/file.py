"""Kernels to files: C source, header, declarations for cffi.

In: emitted kernels.  Out: ``CFile``.

The templates lay out a frozen view and decide nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from symgrad.codegen.emit.groups import BLOCK, SUM_ROWS
from symgrad.codegen.emit.kernel import EmittedKernel, KernelView, comment_lines
from symgrad.codegen.emit.reductions import SUM_BLOCK, CombineView, Reduction, combine_view
from symgrad.codegen.emit.spelling import FLOOR_DIVIDE, FLOOR_MODULO
from symgrad.codegen.environment import environment
from symgrad.codegen.names import identifier
from symgrad.codegen.schedule.interchange import SHORT_ROW
from symgrad.ops.record import vector_operands


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

    name: str
    type: str
    blas: str
    one: str


@dataclass(frozen=True)
class FileView:
    """All that the templates of a file are shown.

    ``block``, ``sum_block``, ``sum_rows``, ``short_row``: constants, "" where they are not used.
    """

    guard: str
    lines: tuple[str, ...]
    vectors: tuple[VectorView, ...]
    helpers: tuple[str, ...]
    combines: tuple[CombineView, ...]
    kernels: tuple[KernelView, ...]
    floor_divide: bool
    floor_modulo: bool
    carve: bool
    groups: bool
    least: bool
    block: str
    sum_block: str
    sum_rows: str
    products: tuple[ProductView, ...]
    block_rows: bool
    product_groups: bool
    short_row: str


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


def _file_view(kernels: Sequence[EmittedKernel], doc: FileDoc) -> FileView:
    operands = vector_operands()
    vectors = sorted({name for kernel in kernels for name in kernel.vector_functions})
    helpers = dict(sorted(pair for kernel in kernels for pair in kernel.helpers))
    combines: dict[str, Reduction] = {}
    for kernel in kernels:
        combines.update({reduction.combine: reduction for reduction in kernel.combines})
    text = "".join(kernel.view.body for kernel in kernels)
    slots = [slot for kernel in kernels for slot in kernel.view.slots]
    groups = "row_groups(" in text
    products = sorted({short for kernel in kernels for short in kernel.products})
    return FileView(
        guard=f"SYMGRAD_{identifier(doc.name).upper()}_H",
        lines=comment_lines(doc.lines),
        vectors=tuple(_vector(name, operands) for name in vectors),
        helpers=tuple(helpers.values()),
        combines=tuple(combine_view(combines[name]) for name in sorted(combines)),
        kernels=tuple(kernel.view for kernel in kernels),
        floor_divide=f"{FLOOR_DIVIDE}(" in text,
        floor_modulo=f"{FLOOR_MODULO}(" in text,
        carve=bool(slots),
        groups=groups,
        least=groups or "MIN(" in text,
        block=_constant("BLOCK", BLOCK, text),
        sum_block=_constant("SUM_BLOCK", SUM_BLOCK, text),
        sum_rows=_constant("SUM_ROWS", SUM_ROWS, text),
        products=tuple(_product(short) for short in products),
        block_rows="block_rows(" in text,
        product_groups="product_groups(" in text,
        short_row=_constant("SHORT_ROW", SHORT_ROW, text),
    )


def _constant(name: str, value: int, text: str) -> str:
    return str(value) if re.search(rf"\b{name}\b", text) else ""


def _product(short: str) -> ProductView:
    if short == "f32":
        return ProductView("gemm_f32", "float", "cblas_sgemm", "1.0f")
    return ProductView("gemm_f64", "double", "cblas_dgemm", "1.0")


def _vector(name: str, operands: Mapping[str, int]) -> VectorView:
    """``operands``: how many those functions take that are ops."""
    kind = "float" if name.endswith("f") and name not in operands else "double"
    count = operands.get(name if kind == "double" else name[:-1], 1)
    return VectorView(name, kind, ", ".join([kind] * count))
