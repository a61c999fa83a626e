"""The Python wrapper of an op: what its template is shown, and the text.

In: the ``OpSignature`` of each case (``symgrad.ir.abi``) and the names of the C files.  Out: one
frozen view of strings and tuples, and the text rendered from it.  Imports ``symgrad.ir`` and its
neighbours in ``symgrad.codegen``.

The wrapper is straight-line code for the ordinary call: it checks types and shapes, takes pointers
and calls the kernel.  Everything else it leaves to ``symgrad.runtime.support``.
"""

from __future__ import annotations

from collections.abc import Sequence

from symgrad.codegen.environment import environment
from symgrad.codegen.literals import op_literal
from symgrad.codegen.safe_names import with_readable_sizes, with_safe_sizes
from symgrad.codegen.wrapper_case import (
    CaseMaker,
    Names,
    arrays_of,
    described,
    kernels_of,
    tuple_text,
)
from symgrad.codegen.wrapper_records import CaseView, FunctionView, PackageView, WrapperView
from symgrad.ir.abi import OpSignature


def wrapper_view(
    name: str,
    signatures: Sequence[OpSignature],
    *,
    files: Sequence[str],
    header: str,
    blas: bool = False,
    runtime: str = "symgrad.runtime",
    summary: Sequence[str] = (),
) -> WrapperView:
    """The view of the op ``name`` whose cases are ``signatures``, tried in this order.

    ``files`` and ``header`` name its C; ``runtime`` is where the wrapper imports from
    (``"._runtime"`` in a generated package); ``summary`` are lines for its docstring.
    Raises CodegenError where a size cannot be read off the shapes of the inputs.
    """
    tables = with_readable_sizes(signatures)
    signatures = with_safe_sizes(signatures)
    first = tables[0]
    names = Names(signatures)
    cotangents = [names.of(f"grad_{array.name}", "cotangent") for array in first.outputs]
    inputs = [names.of(array.name) for array in first.inputs]
    makers = [
        CaseMaker(names, position, one, table)
        for position, (one, table) in enumerate(zip(signatures, tables, strict=True))
    ]
    cases = tuple(maker.view() for maker in makers)
    dtypes = {a.dtype.name.rstrip("_"): a.dtype.c for one in signatures for a in arrays_of(one)}
    kernels = dict.fromkeys(k.name for one in signatures for k in kernels_of(one))
    return WrapperView(
        name=name,
        summary=tuple(summary),
        runtime=runtime,
        op_literal=op_literal(name, tables, files, header, blas),
        parameters=", ".join(f"{one}: _Array" for one in inputs),
        arguments=tuple_text(inputs),
        cotangents=tuple(cotangents),
        cotangent_arguments=tuple_text(cotangents),
        inputs=tuple(f"{one}: {described(a)}" for one, a in zip(inputs, first.inputs, strict=True)),
        outputs=tuple(f"{array.name}: {described(array)}" for array in first.outputs),
        dtypes=tuple(sorted(dtypes.items())),
        kernels=tuple(kernels),
        residuals_classes=tuple_text(case.residuals_class for case in cases),
        cases=cases,
        functions=_functions(cases, makers),
    )


def _functions(cases: Sequence[CaseView], makers: Sequence[CaseMaker]) -> tuple[FunctionView, ...]:
    """``inference`` and ``forward``, which differ in the kernel and in what is returned."""
    pairs = list(zip(cases, makers, strict=True))
    alone = tuple((case, maker.inference()) for case, maker in pairs)
    keeping = tuple((case, maker.forward()) for case, maker in pairs)
    promise = "Return the outputs, and what `backward` needs"
    return (
        FunctionView("inference", "Any", "Return the outputs alone", alone),
        FunctionView("forward", "tuple[Any, _Residuals]", promise, keeping),
    )


def render_wrapper(view: WrapperView) -> str:
    """The text of the wrapper."""
    return environment().get_template("wrapper.py.j2").render(op=view)


def render_package(modules: Sequence[str]) -> str:
    """The text of a generated package's ``__init__.py``, given the names of its modules."""
    names = tuple(sorted(modules))
    exported = tuple(sorted((*names, "get_num_threads", "set_num_threads")))
    return environment().get_template("package.py.j2").render(package=PackageView(names, exported))
