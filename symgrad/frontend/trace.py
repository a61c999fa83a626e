"""Tracing: a Function and the shapes of its inputs, to graphs.

In: a ``Request``.  Out: ``FunctionGraphs``: one joint graph of
forward and backward for each case of sizes that the program asks about.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import symgrad.frontend.functions  # noqa: F401  (attaches the methods of symbolic tensors)
from symgrad import deadline
from symgrad.budgets import MOST_CASES, MOST_STATE_ROUNDS
from symgrad.errors import CasesError, SpecError, SymgradError, counted, says_sizes
from symgrad.frontend.accepted import Refused, Traced, parted
from symgrad.frontend.case import trace_case
from symgrad.frontend.evidence import AnyFunction
from symgrad.frontend.facts import NeedsDecision, SizeFacts
from symgrad.frontend.function import class_location, has_backward, is_once, method_sources
from symgrad.frontend.plain import as_numbers
from symgrad.frontend.questions import requires
from symgrad.frontend.request import Request, bind
from symgrad.frontend.session import Session, refuses_sizes
from symgrad.frontend.spec import TensorSpec
from symgrad.frontend.state import changes_of, is_changed
from symgrad.frontend.thresholds import NeedsAnswer
from symgrad.ir.assume import Stated, symmetric
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import DType, float32
from symgrad.ir.function import FunctionCase, FunctionGraphs, InnerCall, RefusedCase

BATCH_RANK = 2


def trace(
    function: AnyFunction,
    *specs: Any,
    static: Mapping[str, Any] | None = None,
    assume: Stated | None = None,
    **how: Any,
) -> FunctionGraphs:
    """``trace_request`` of a request made of these.  Raises SpecError."""
    return trace_request(bind(function, specs, static, assume), **how)


def trace_request(
    request: Request,
    *,
    needs_input_grad: Mapping[str, bool] | Sequence[bool] | None = None,
    answers: Mapping[str, bool] | None = None,
    given_cotangents: Sequence[bool] | None = None,
    dtype: DType = float32,
    batch_rank: int | None = BATCH_RANK,
    most_cases: int = MOST_CASES,
    histories: bool = False,
) -> FunctionGraphs:
    """Trace forward and backward for all sizes.

    ``needs_input_grad``: by name, or in order of the tensor inputs; all float inputs by default.
    ``answers``: to other questions of the program's.
    ``given_cotangents``: in order of the outputs, False for one that backward gets no cotangent
    of.  ``dtype``: that of specs without one.  ``batch_rank``: how many axes ``*batch`` stands
    for; None: one, of the size ``batch``.  ``histories``: put markers into the graphs that say
    what PyTorch would record, for the proof of second order only.

    Raises what forward raises; what goes wrong in backward is recorded in the case.  Sizes that
    forward itself refuses have no case.
    """
    asked = request
    request = written_out(request, dtype, batch_rank)
    decided = {**needed(request, needs_input_grad), **(answers or {})}
    options = CaseOptions(
        request, decided, given_cotangents, histories=histories,
        known=len(changes_of(request.function)),
    )  # fmt: skip
    with deadline.step(f"{request.cls.__name__} was traced"):
        options, cases, refused = _settled(options, most_cases)
    found = request.cls
    return FunctionGraphs(
        name=found.__name__,
        location=class_location(found),
        cases=tuple(cases),
        input_names=tuple(arg.name for arg in request.tensors),
        differentiable=tuple(
            arg.name for arg in request.tensors
            if arg.spec is not None and arg.spec.dtype is not None and arg.spec.dtype.is_float
        ),
        derived=not has_backward(request.function) and all(one.problem is None for one in cases),
        static=request.static,
        source=method_sources(found),
        assumptions=options.request.assumptions,
        refused=tuple(refused),
        inner=tuple(options.inner.values()),
        asked=tuple(
            arg.name for arg in request.tensors if decided.get(requires(arg.name), True)
        ),
        once=has_backward(request.function) and is_once(request.function),
        values=as_numbers(asked),
        answers=tuple(decided.items()),
        state=frozenset(
            one.name for one in asked.plain_values() if is_changed(request.function, one.value)
        ),
    )  # fmt: skip


def _settled(
    options: CaseOptions, most_cases: int
) -> tuple[CaseOptions, list[FunctionCase], list[RefusedCase]]:
    """All cases, traced again until no case changes what another one may depend on.

    And with the inputs as symmetric that operations take to be so.
    """
    request = options.request
    cases, refused = all_cases(options, SizeFacts(request.sizes), most_cases)
    for _ in range(MOST_STATE_ROUNDS):
        if len(cases) == 1 or options.known == len(changes_of(request.function)):
            break
        options.inner.clear()
        options = replace(options, known=len(changes_of(request.function)))
        cases, refused = all_cases(options, SizeFacts(request.sizes), most_cases)
    taken: frozenset[str] = frozenset().union(*(case.symmetric for case in cases))
    if taken:
        facts = (*request.assumptions, *map(symmetric, sorted(taken)))
        options.inner.clear()
        options = replace(options, request=replace(request, assumptions=facts))
        return _settled(options, most_cases)
    return options, cases, refused


@dataclass(frozen=True)
class CaseOptions:
    """What all cases of a trace share."""

    request: Request
    answers: Mapping[str, bool]
    given_cotangents: Sequence[bool] | None
    inner: dict[Any, InnerCall] = field(default_factory=dict)
    histories: bool = False
    new_session: Callable[..., Session] = Session
    known: int = 0

    def trace(self, facts: SizeFacts) -> FunctionCase:
        """One case.  Raises NeedsDecision where these facts leave a question open."""
        return trace_case(
            self.request, facts, self.answers, self.given_cotangents, caller=sys._getframe(),
            inner=self.inner, histories=self.histories, new_session=self.new_session,
        )  # fmt: skip


def all_cases(
    options: CaseOptions, start: SizeFacts, most: int = MOST_CASES
) -> tuple[list[FunctionCase], list[RefusedCase]]:
    """Trace, and split where the program asks about sizes, the general branch first.

    Where an operation of forward raises for some sizes of a case, and not for others, the case is
    split there, if forward accepts the sizes of another one.  Raises that error where these would
    be too many cases.
    """
    cases, refused = _split(options, [start], most)
    if not cases:
        reasons = [error for _, error in refused]
        raise next(filter(says_sizes, reasons), reasons[0])
    left: list[RefusedCase] = []

    def split(question: NeedsDecision, facts: SizeFacts) -> Traced:
        room = most - len(cases) - len(left)
        return _split(options, both_answers(facts, question)[::-1], room)

    for facts, error in refused:
        try:
            more, rest = parted(facts, error, split, partial(_accepts, options))
        except CasesError:
            raise error from None
        cases += more
        left += rest
    return cases, left


def _split(options: CaseOptions, todo: list[SizeFacts], most: int) -> Traced:
    """The cases that the program makes of sizes by its questions, and those that raise."""
    cases: list[FunctionCase] = []
    refused: list[Refused] = []
    while todo:
        if len(cases) + len(todo) > most:
            raise CasesError(
                f"the program branches on its sizes into more than {most} cases",
                location=class_location(options.request.cls),
                hint='give shapes with numbers for the sizes that are fixed: --shapes "n 64" in '
                'the shell, sg.verify(Op, "n 64") in Python',
                number=_asked_again(todo[-1], most),
            )
        facts = todo.pop()
        try:
            cases.append(options.trace(facts))
        except NeedsAnswer as question:
            raise question.error from None
        except NeedsDecision as question:
            todo.extend(reversed(both_answers(facts, question)))
        except SymgradError as error:
            if not refuses_sizes(error):
                raise
            refused.append((facts, error))
    return cases, refused


def _accepts(options: CaseOptions, facts: SizeFacts) -> bool:
    """Does forward accept sizes that are numbers?  Not asked of one axis for any number of them."""
    if options.new_session is not Session:
        return False
    try:
        replace(options, inner={}).trace(facts)
    except SymgradError as error:
        return not refuses_sizes(error)
    except (NeedsAnswer, NeedsDecision):
        return True
    return True


def _asked_again(facts: SizeFacts, most: int) -> Dim | None:
    """The size that a loop asks about, again and again, so that more cases would not do."""
    asked = {(one.left - one.right).sizes for one in facts.conditions}
    alone = len(asked) == 1 and len(facts.conditions) >= most - 1
    return Dim.size(min(asked)[0]) if alone and len(min(asked)) == 1 else None


def both_answers(facts: SizeFacts, question: NeedsDecision) -> list[SizeFacts]:
    """Both answers that do not contradict the facts; the one that fixes fewer sizes first."""
    found = [facts.answer(question, holds) for holds in (True, False)]
    possible = [branch for branch in found if branch is not None]
    return sorted(possible, key=lambda branch: len(branch.substitution))


def written_out(request: Request, dtype: DType, batch_rank: int | None) -> Request:
    """A request with a dtype for specs that have none, and so many batch axes."""
    names = request.batches
    return with_specs(request, dtype, lambda spec: _written_out(spec, batch_rank, names))


def with_specs(
    request: Request, dtype: DType, written_out: Callable[[TensorSpec], TensorSpec]
) -> Request:
    """Default dtypes, and batch axes written out."""
    return request.with_specs(lambda spec: replace(written_out(spec), dtype=spec.dtype or dtype))


def _written_out(spec: TensorSpec, rank: int | None, names: Mapping[str, str]) -> TensorSpec:
    return spec if spec.batch is None else spec.with_batch_axes(batch_axes(names[spec.batch], rank))


def batch_axes(name: str, rank: int | None) -> list[Dim]:
    """So many batch axes, or the one that stands for all; ``name``: see ``Request.batches``."""
    if rank is None:
        return [Dim.size(name)]
    return [Dim.size(f"{name}_{axis}") for axis in range(rank)]


def needed(
    request: Request, wanted: Mapping[str, bool] | Sequence[bool] | None
) -> dict[str, bool]:  # fmt: skip
    """Whose gradient is asked for, as answers.  Raises SpecError for a mask of the wrong length."""
    names = [arg.name for arg in request.tensors]
    if wanted is None:
        return {}
    if not isinstance(wanted, Mapping):
        if len(wanted) != len(names):
            raise SpecError(
                f"needs_input_grad has {counted(len(wanted), 'value')}, {len(names)} expected, one"
                " for each input"
            )
        wanted = dict(zip(names, wanted, strict=True))
    return {requires(name): bool(wanted.get(name, True)) for name in names}
