"""Does what a Function does depend on the number of batch axes?

In: a ``Request``.  Out: the first thing that depends on it, or None.

If there is None, a trace with one batch axis stands for all of them (``docs/tracing.md``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from symgrad.budgets import COMPARED_RANKS
from symgrad.errors import Location, SymgradError
from symgrad.frontend.anyrank import rules  # noqa: F401  (fills RULES)
from symgrad.frontend.anyrank.call import guarded
from symgrad.frontend.anyrank.serving import typical_rank
from symgrad.frontend.anyrank.session import (
    MARK,
    AnyRankSession,
    Observation,
    RankDependent,
    RanksApart,
)
from symgrad.frontend.anyrank.tensor import AnyRankTensor
from symgrad.frontend.facts import SizeFacts
from symgrad.frontend.function import class_location
from symgrad.frontend.request import Request
from symgrad.frontend.spec import TensorSpec
from symgrad.frontend.trace import (
    CaseOptions,
    all_cases,
    trace_request,
    with_specs,
)
from symgrad.ir.assume import RELATION
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import DType, float32
from symgrad.ir.function import FunctionCase, FunctionGraphs
from symgrad.ir.graph import Node

_LAST_AXES = {"symmetric": 2, "square": 2, "one-hot": 1}


def rank_dependence(
    request: Request,
    *,
    answers: Mapping[str, bool] | None = None,
    given_cotangents: Sequence[bool] | None = None,
    dtype: DType = float32,
    histories: bool = False,
    apart: frozenset[int] = frozenset(),
) -> Observation | frozenset[int]:
    """What depends on the number of batch axes first; or the numbers that it does not speak of.

    These are ``apart`` and those that the program treats by themselves, as in ``if x.ndim == 2``;
    for all others it does the same.
    """
    stated = next((one.text for one in request.assumptions if one.kind == RELATION), None)
    if stated is not None:
        return Observation(f"{stated} is stated", class_location(request.cls))
    positional = _short(request, lambda spec: len(spec.dims) - spec.position)
    if positional is not None:
        return Observation(positional, class_location(request.cls))
    batches, any_rank = request.batches, _any_rank(request, dtype)
    names = tuple(
        batches.get(name.removeprefix(MARK), name) if name.startswith(MARK) else name
        for name in any_rank.sizes
    )
    options = CaseOptions(any_rank, answers or {}, given_cotangents, histories=histories)
    found = _traced(options, SizeFacts(names), batches, apart)
    if isinstance(found, Observation):
        return found
    cases, apart = found
    again = partial(
        trace_request, request, answers=answers,
        given_cotangents=given_cotangents, dtype=dtype, histories=histories,
    )  # fmt: skip
    tried = [rank for rank in range(len(apart) + 3) if rank not in apart and rank != 1]
    others = {rank: partial(again, batch_rank=rank) for rank in tried[:COMPARED_RANKS]}
    wrong = _disagreement(request, cases, others)
    typical = typical_rank(apart)
    more = None
    if wrong is None:
        more = _asks_more(cases, partial(again, batch_rank=typical if typical > 1 else None))
    if more is None or typical > 1:
        return wrong or more or apart
    return rank_dependence(
        request, answers=answers, given_cotangents=given_cotangents, dtype=dtype,
        histories=histories, apart=apart | {1},
    )  # fmt: skip


def _traced(
    options: CaseOptions, facts: SizeFacts, batches: Mapping[str, str], apart: frozenset[int]
) -> Observation | tuple[list[FunctionCase], frozenset[int]]:
    """The cases of an any-rank trace, and the numbers of axes that they do not speak of."""
    while True:
        session = partial(
            AnyRankSession, batches=batches, tensor_class=AnyRankTensor, guard=guarded, apart=apart
        )
        try:
            cases, _ = all_cases(replace(options, new_session=session), facts)
        except RanksApart as found:
            apart = found.ranks
        except RankDependent as found:
            return found.observation
        except SymgradError as error:
            return Observation(f"tracing it raises: {error.what}", error.location)
        else:
            return cases, apart


def _any_rank(request: Request, dtype: DType) -> Request:
    return with_specs(
        request, dtype, lambda spec: spec.with_batch_axes([Dim.size(f"{MARK}{spec.batch}")])
    )


def missing_axes(request: Request, rank: int) -> str | None:
    """What is declared of more axes than an input has with so many batch axes, as text."""
    return _short(request, lambda spec: len(spec.dims) + rank)


def _short(request: Request, count: Callable[[TensorSpec], int]) -> str | None:
    """An assumption about the last axes of an input that has fewer.  ``count``: how many it has."""
    for argument in request.tensors:
        if argument.spec is None or argument.spec.batch is None:
            continue
        for one in request.assumptions:
            if one.name == argument.name and count(argument.spec) < _LAST_AXES.get(one.kind, 0):
                return f"{argument.name} is declared {one.text}"
    return None


# -- the traces themselves, as a check of the rules


def _disagreement(
    request: Request, cases: Sequence[FunctionCase], traces: Mapping[int, Any]
) -> Observation | None:
    """A number of batch axes at which a trace differs from the any-rank one, though none should."""
    for rank, make in traces.items():
        where = class_location(request.cls)
        try:
            graphs: FunctionGraphs = make()
        except SymgradError as error:
            return Observation(f"with {rank} batch axes: {error.what}", error.location)
        if len(cases) == len(graphs.cases) == 1:
            if _skeleton(cases[0], rank) != _skeleton(graphs.cases[0], None):
                return Observation(f"with {rank} batch axes it does something else", where)
        elif rank > 1 and len(cases) != len(graphs.cases):
            return Observation(f"with {rank} batch axes it has other cases", where)
    return None


def _asks_more(
    cases: Sequence[FunctionCase], make: Callable[[], FunctionGraphs]
) -> Observation | None:
    """What traces for any number of batch axes ask, and the one that is judged does not.

    Of fewer axes more tensors are known to lie contiguously.
    """
    asked = _questions(cases)
    known = _questions(make().cases) if asked else {}
    return next((Observation(what, asked[what]) for what in asked if what not in known), None)


def _questions(cases: Sequence[FunctionCase]) -> dict[str, Location | None]:
    found = {one.what: one.location for case in cases for one in case.assumed}
    return found | {one.question: one.location for case in cases for one in case.answers}


def _skeleton(case: FunctionCase, rank: int | None) -> tuple[Any, ...]:
    """What a trace gives, less the graph.  ``rank``: how many axes a batch axis counts for."""

    def type_of(node: Node | None) -> Any:
        return None if node is None else (node.dtype, _rank(node, rank))

    return (
        [type_of(node) for node in (*case.inputs, *case.outputs, *case.cotangents)],
        [
            (one.input, type_of(one.node), type_of(one.returned), one.problem is None)
            for one in case.gradients
        ],
        case.changed,
        type(case.problem),
        0 if case.record is None else len(case.record.rules),
    )


def _rank(node: Node, rank: int | None) -> int:
    batches = [size for size in node.shape if any(name.startswith(MARK) for name in size.sizes)]
    return node.rank + (0 if rank is None else len(batches) * (rank - 1))
