"""The Python wrapper of an op: what its template is shown, and the text.

In: the ``OpSignature`` of each case (``symgrad.ir.abi``) and the names of the C files.  Out: one
frozen view of strings and tuples, and the text rendered from it.

The wrapper is straight-line code for the ordinary call: it checks types and shapes, takes pointers
and calls the kernel.  Everything else it leaves to ``symgrad.runtime.support``.
"""

from __future__ import annotations

from collections.abc import Sequence

from symgrad.codegen.environment import environment
from symgrad.codegen.literals import op_literal, string_literal
from symgrad.codegen.names import literal_text
from symgrad.codegen.safe_names import with_readable_sizes, with_safe_sizes
from symgrad.codegen.wrapper_case import (
    CaseMaker,
    Names,
    arrays_of,
    described,
    kernels_of,
    tuple_text,
)
from symgrad.codegen.wrapper_records import (
    CaseView,
    FunctionView,
    PackageView,
    ValueView,
    WrapperView,
)
from symgrad.errors import CodegenError
from symgrad.ir.abi import ArrayArgument, OpSignature
from symgrad.plain import PlainArgument

_KEEPS = (
    "`backward` reads inputs and outputs themselves, not copies: do not write to them before it."
)


def wrapper_view(
    name: str,
    signatures: Sequence[OpSignature],
    *,
    files: Sequence[str],
    header: str,
    blas: bool = False,
    runtime: str = "symgrad.runtime",
    summary: Sequence[str] = (),
    values: Sequence[PlainArgument] = (),
) -> WrapperView:
    """The view of the op ``name`` whose cases are ``signatures``, tried in this order.

    ``files`` and ``header`` name its C; ``runtime`` is where the wrapper imports from
    (``"._runtime"`` in a generated package); ``summary`` are lines for its docstring; ``values``:
    the plain arguments that it is compiled for.
    Raises CodegenError where a size cannot be read off the shapes of the inputs.
    """
    tables = with_readable_sizes(signatures)
    signatures = with_safe_sizes(signatures)
    names = Names(signatures)
    cotangents = tuple(names.of(f"grad_{name}", "cotangent") for name in _common(tables, "outputs"))
    inputs = [names.of(name) for name in _common(tables, "inputs")]
    shown, behind, among = _values(names, len(inputs), values)
    makers = [
        CaseMaker(names, position, one, table, cotangents)
        for position, (one, table) in enumerate(zip(signatures, tables, strict=True))
    ]
    cases = tuple(maker.view() for maker in makers)
    dtypes = {a.dtype.name.rstrip("_"): a.dtype.c for one in signatures for a in arrays_of(one)}
    kernels = dict.fromkeys(k.name for one in signatures for k in kernels_of(one))
    return WrapperView(
        name=name,
        summary=tuple(map(literal_text, summary)),
        runtime=runtime,
        op_literal=op_literal(name, tables, files, header, blas, values),
        parameters=", ".join([*(f"{one}: _Array" for one in inputs), *behind]),
        keywords="".join(f"{one}, " for one in among),
        arguments=tuple_text(inputs),
        values=shown,
        cotangents=cotangents,
        cotangent_arguments=tuple_text(cotangents),
        inputs=_described(inputs, [one.inputs for one in tables]),
        outputs=_described(_common(tables, "outputs"), [one.outputs for one in tables]),
        dtypes=tuple(sorted(dtypes.items())),
        kernels=tuple(kernels),
        residuals_classes=tuple_text(case.residuals_class for case in cases),
        cases=cases,
        functions=_functions(cases, makers),
    )


def _common(signatures: Sequence[OpSignature], kind: str) -> tuple[str, ...]:
    """The names of the inputs or outputs, the same in all cases.  Raises CodegenError."""
    found = {tuple(array.name for array in getattr(one, kind)) for one in signatures}
    if len(found) > 1:
        raise CodegenError(f"{signatures[0].name}: its cases call their {kind} differently")
    return found.pop()


def _described(names: Sequence[str], cases: Sequence[Sequence[ArrayArgument]]) -> tuple[str, ...]:
    """``y: float32[n, m] or float32[n]``: each array with what it is in one case or another."""
    kinds = (
        " or ".join(dict.fromkeys(map(described, arrays))) for arrays in zip(*cases, strict=True)
    )
    return tuple(f"{literal_text(name)}: {kind}" for name, kind in zip(names, kinds, strict=True))


def _values(
    names: Names, inputs: int, values: Sequence[PlainArgument]
) -> tuple[tuple[ValueView, ...], list[str], list[str]]:
    """The plain arguments; as parameters, those that come after all inputs and the others.

    One whose name is no word of Python is none: ``**{"a b": 1}`` is left to the op's own call.
    """
    shown: list[ValueView] = []
    behind: list[str] = []
    among: list[str] = []
    for position, one in enumerate(sorted(values, key=lambda one: (one.place is None, one.place))):
        if not one.name.isidentifier():
            continue
        local = names.of(one.name, "value")
        shown.append(ValueView(local, string_literal(one.name), literal_text(one.text)))
        last = one.place == inputs + position
        (behind if last else among).append(f"{local}: Any = _AS_COMPILED")
    return tuple(shown), behind, among


def _functions(cases: Sequence[CaseView], makers: Sequence[CaseMaker]) -> tuple[FunctionView, ...]:
    """``inference`` and ``forward``, which differ in the kernel and in what is returned."""
    pairs = list(zip(cases, makers, strict=True))
    alone = tuple((case, maker.inference()) for case, maker in pairs)
    keeping = tuple((case, maker.forward()) for case, maker in pairs)
    promise = "Return the outputs, and what `backward` needs"
    return (
        FunctionView("inference", "Any", "Return the outputs alone", "", alone),
        FunctionView("forward", "tuple[Any, _Residuals]", promise, _KEEPS, keeping),
    )


def render_wrapper(view: WrapperView) -> str:
    """The text of the wrapper."""
    return environment().get_template("wrapper.py.j2").render(op=view)


def render_package(modules: Sequence[str]) -> str:
    """The text of a generated package's ``__init__.py``, given the names of its modules."""
    names = tuple(sorted(modules))
    exported = tuple(sorted((*names, "get_num_threads", "set_num_threads")))
    return environment().get_template("package.py.j2").render(package=PackageView(names, exported))
