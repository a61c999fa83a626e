"""Tracing: a Function and the shapes of its inputs, to graphs.

In: a Function, shape specs, values of plain arguments.  Out: ``FunctionGraphs``: one joint graph of
forward and backward for each case of sizes that the program asks about.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import symgrad.frontend.functions  # noqa: F401  (attaches the methods of symbolic tensors)
from symgrad.errors import ControlFlowError, SpecError, SymgradError
from symgrad.frontend.case import trace_case
from symgrad.frontend.facts import NeedsDecision, SizeFacts
from symgrad.frontend.function import Function, class_of, has_backward, is_once
from symgrad.frontend.outcome import refuses_sizes
from symgrad.frontend.request import Argument, Binding, bind, parameters, plain_values
from symgrad.frontend.session import Session
from symgrad.frontend.source import class_location, method_sources
from symgrad.frontend.spec import TensorSpec
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import DType, float32
from symgrad.ir.function import FunctionCase, FunctionGraphs, InnerCall, RefusedCase

MOST_CASES = 64
BATCH_RANK = 2


def trace(
    function: type[Function] | Function,
    *specs: Any,
    static: Mapping[str, Any] | None = None,
    needs_input_grad: Mapping[str, bool] | Sequence[bool] | None = None,
    given_cotangents: Sequence[bool] | None = None,
    assume: Mapping[str, str] | None = None,
    dtype: DType = float32,
    batch_rank: int | None = BATCH_RANK,
    most_cases: int = MOST_CASES,
    histories: bool = False,
) -> FunctionGraphs:
    """Trace forward and backward for all sizes.

    ``specs``: one for each tensor argument, None for an absent one; annotations when omitted.
    ``static``: values of the plain arguments.  ``needs_input_grad``: by name, or in order of the
    tensor inputs; all float inputs by default.  ``given_cotangents``: in order of the outputs,
    False for one that backward gets no cotangent of.  ``assume``: declared assumptions by input,
    on top of those in the class's attribute ``assume``.  ``dtype``: that of specs without one.
    ``batch_rank``: how many axes ``*batch`` stands for; None: one, of the size ``batch``.
    ``histories``: put markers into the
    graphs that say what PyTorch would record, for the proof of second order only.

    Raises SpecError, and what forward raises; what goes wrong in backward is recorded in the
    case.  Sizes that forward itself refuses have no case.
    """
    binding = bind(function, specs, static)
    names = batch_sizes(binding)
    binding = with_specs(binding, dtype, lambda spec: _written_out(spec, batch_rank, names))
    absent = absent_names(function, binding)
    stated = declared(class_of(function)).items()
    assumptions = {name: text for name, text in stated if name not in absent} | dict(assume or {})
    options = CaseOptions(
        function, binding, needed(binding, needs_input_grad), given_cotangents,
        distinct_inputs(assumptions), histories=histories,
    )  # fmt: skip
    cases, refused = all_cases(options, SizeFacts(size_names(binding)), most_cases)
    inputs = tuple(arg.name for arg in binding.arguments if arg.is_tensor)
    found = class_of(function)
    return FunctionGraphs(
        name=found.__name__,
        location=class_location(found),
        cases=tuple(cases),
        input_names=inputs,
        differentiable=tuple(
            arg.name for arg in binding.arguments
            if arg.spec is not None and arg.spec.dtype is not None and arg.spec.dtype.is_float
        ),
        derived=not has_backward(function),
        static=binding.static,
        source=method_sources(found),
        assumptions=tuple(assumptions.items()),
        refused=tuple(refused),
        inner=tuple(options.inner.values()),
        asked=tuple(name for name, wanted in options.needed.items() if wanted),
        once=has_backward(function) and is_once(function),
        values=plain_values(function, specs, static),
    )  # fmt: skip


@dataclass(frozen=True)
class CaseOptions:
    """What all cases of a trace share."""

    function: type[Function] | Function
    binding: Binding
    needed: Mapping[str, bool]
    given_cotangents: Sequence[bool] | None
    distinct: frozenset[str]
    inner: dict[Any, InnerCall] = field(default_factory=dict)
    histories: bool = False
    new_session: Callable[..., Session] = Session

    def trace(self, facts: SizeFacts) -> FunctionCase:
        """One case.  Raises NeedsDecision where these facts leave a question open."""
        return trace_case(
            self.function, self.binding, facts, self.needed, self.given_cotangents,
            caller=sys._getframe(), distinct=self.distinct, inner=self.inner,
            histories=self.histories, new_session=self.new_session,
        )  # fmt: skip


def all_cases(
    options: CaseOptions, start: SizeFacts, most: int = MOST_CASES
) -> tuple[list[FunctionCase], list[RefusedCase]]:
    """Trace, and split where the program asks about sizes, the general branch first."""
    cases: list[FunctionCase] = []
    refused: list[RefusedCase] = []
    todo = [start]
    while todo:
        if len(cases) + len(todo) > most:
            raise ControlFlowError(
                f"the program asks so much about its sizes that there are over {most} cases",
                location=class_location(class_of(options.function)),
                hint="write numbers for sizes that are fixed in the shape specs",
            )
        facts = todo.pop()
        try:
            cases.append(options.trace(facts))
        except NeedsDecision as question:
            todo.extend(reversed(_branches(facts, question)))
        except SymgradError as error:
            if not refuses_sizes(error):
                raise
            refused.append(RefusedCase(facts.conditions, error))
    if not cases:
        raise refused[0].reason
    return cases, refused


def _branches(facts: SizeFacts, question: NeedsDecision) -> list[SizeFacts]:
    """Both answers that do not contradict the facts; the one that fixes fewer sizes first."""
    found = [facts.answer(question, holds) for holds in (True, False)]
    possible = [branch for branch in found if branch is not None]
    return sorted(possible, key=lambda branch: len(branch.substitution))


def with_specs(
    binding: Binding, dtype: DType, written_out: Callable[[TensorSpec], TensorSpec]
) -> Binding:
    """Default dtypes, and batch axes written out."""
    arguments: list[Argument] = []
    for argument in binding.arguments:
        if argument.spec is not None:
            spec = written_out(argument.spec)
            spec = replace(spec, dtype=spec.dtype or dtype)
            argument = replace(argument, spec=spec)
        arguments.append(argument)
    return replace(binding, arguments=tuple(arguments))


def _written_out(spec: TensorSpec, rank: int | None, names: Mapping[str, str]) -> TensorSpec:
    return spec if spec.batch is None else spec.with_batch_axes(batch_axes(names[spec.batch], rank))


def batch_axes(name: str, rank: int | None) -> list[Dim]:
    """So many batch axes, or the one that stands for all; ``name``: as ``batch_sizes`` gives it."""
    if rank is None:
        return [Dim.size(name)]
    return [Dim.size(f"{name}_{axis}") for axis in range(rank)]


def batch_sizes(binding: Binding) -> dict[str, str]:
    """For each group of batch axes the name of the number of its elements: its own, if free.

    It is free if no other size is called so, nor as an axis of the group is, where they are written
    out.
    """
    taken, found = set(size_names(binding)), {}
    for argument in binding.arguments:
        batch = argument.spec.batch if argument.spec else None
        if batch is not None and batch not in found:
            found[batch] = next(
                name for count in itertools.count()
                if (name := batch + "_all" * count) not in taken
                and not any(_is_axis(one, name) or _is_axis(name, one) for one in taken)
            )  # fmt: skip
            taken.add(found[batch])
    return found


def _is_axis(size: str, group: str) -> bool:
    return size.startswith(f"{group}_") and size[len(group) + 1 :].isdigit()


def distinct_inputs(assumptions: Mapping[str, str]) -> frozenset[str]:
    """The inputs whose entries are declared to be all different."""
    return frozenset(name for name, text in assumptions.items() if text.startswith("unique"))


def size_names(binding: Binding) -> tuple[str, ...]:
    """The names of all sizes, in order of appearance."""
    names: list[str] = []
    for argument in binding.arguments:
        sizes = argument.spec.sizes if argument.spec else ()
        names.extend(name for name in sizes if name not in names)
    return tuple(names)


def needed(
    binding: Binding, wanted: Mapping[str, bool] | Sequence[bool] | None
) -> dict[str, bool]:  # fmt: skip
    """Whose gradient is asked for.  Raises SpecError for a mask of the wrong length."""
    names = [arg.name for arg in binding.arguments if arg.is_tensor]
    if wanted is None:
        return dict.fromkeys(names, True)
    if isinstance(wanted, Mapping):
        return {name: bool(wanted.get(name, True)) for name in names}
    if len(wanted) != len(names):
        raise SpecError(f"needs_input_grad has {len(wanted)} entries for {len(names)} inputs")
    return dict(zip(names, map(bool, wanted), strict=True))


def absent_names(function: type[Function] | Function, binding: Binding) -> set[str]:
    """The optional tensors that are not given: their class may state facts about them."""
    tensors = {argument.name for argument in binding.arguments if argument.is_tensor}
    return {one.name for one in parameters(function) if one.default is None} - tensors


def declared(found: type) -> dict[str, str]:
    """The assumptions that a class states."""
    stated = getattr(found, "assume", {})
    if not isinstance(stated, Mapping):
        return {}
    return {str(name): str(text) for name, text in stated.items()}
