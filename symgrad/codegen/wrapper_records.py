"""What the wrapper's template is shown: frozen records of strings and tuples.

In: nothing.  Out: the records; ``symgrad.codegen.wrapper`` fills them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ArrayView:
    """An array in straight-line code: a local name, the name of its pointer ("" for none)."""

    name: str
    pointer: str
    dtype: str
    shape: str
    axes: str = ""


@dataclass(frozen=True)
class CallView:
    """A kernel's call: ``outputs`` are the op's own arrays, ``extras`` are always fresh."""

    kernel: str
    arguments: str
    reads: tuple[ArrayView, ...]
    outputs: tuple[ArrayView, ...]
    extras: tuple[ArrayView, ...]
    out_targets: str
    result: str


@dataclass(frozen=True)
class BackwardView:
    """One backward: ``targets`` takes the residuals apart.

    ``together``: assignments of the sizes that stand for batch axes.  ``arrays``: the residuals
    and cotangents that it reads; ``ignored`` cotangents are unused.
    """

    name: str
    mask: str
    full: bool
    targets: str
    together: tuple[str, ...]
    arrays: tuple[ArrayView, ...]
    ignored: tuple[ArrayView, ...]
    zeros: tuple[ArrayView, ...]
    call: CallView | None
    result: str


@dataclass(frozen=True)
class CaseView:
    """One case: how its sizes are read (``solved``), what must hold (``differs`` must not).

    ``conditions``: what must hold of the sizes themselves.
    """

    residuals_class: str
    residual_fields: str
    residual_names: str
    inputs: tuple[ArrayView, ...]
    solved: tuple[str, ...]
    differs: tuple[str, ...]
    conditions: tuple[str, ...]
    backwards: tuple[BackwardView, ...]


@dataclass(frozen=True)
class FunctionView:
    """``inference`` or ``forward``: the same but for the kernel and what is returned.

    ``keeps``: what is to be said of the arrays that are kept.
    """

    name: str
    annotation: str
    promise: str
    keeps: str
    calls: tuple[tuple[CaseView, CallView], ...]


@dataclass(frozen=True)
class ValueView:
    """A plain argument: the name of the parameter, its own name as a literal, the value's text."""

    local: str
    name: str
    text: str


@dataclass(frozen=True)
class WrapperView:
    """All that ``wrapper.py.j2`` is shown."""

    name: str
    summary: tuple[str, ...]
    runtime: str
    op_literal: str
    parameters: str
    keywords: str
    arguments: str
    values: tuple[ValueView, ...]
    cotangents: tuple[str, ...]
    cotangent_arguments: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    dtypes: tuple[tuple[str, str], ...]
    kernels: tuple[str, ...]
    residuals_classes: str
    cases: tuple[CaseView, ...]
    functions: tuple[FunctionView, ...]


@dataclass(frozen=True)
class PackageView:
    """All that ``package.py.j2`` is shown: the modules, and every public name."""

    names: tuple[str, ...]
    exported: tuple[str, ...]
