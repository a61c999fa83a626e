"""What forward accepts of sizes for which one of its operations raises.

In: the facts of a case, and the error that forward ends in there.  Out: the cases among these sizes
that it accepts, and what it does not accept.

An operation raises for two sizes that are not known to be equal, as if they were not, and as if
neither were 1.  So the sizes are parted by what the error says: where the two are equal, where one
is 1, and the rest.  That forward does not accept the rest is tried with numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, islice, product

from symgrad.budgets import MOST_SIZES_LOOKED_AT, MOST_SIZES_TRIED
from symgrad.errors import ShapeError, SymgradError, TraceError
from symgrad.frontend.facts import NeedsDecision, SizeFacts
from symgrad.ir.dim import Dim
from symgrad.ir.function import FunctionCase, RefusedCase, SizeCondition

Refused = tuple[SizeFacts, SymgradError]
"""Sizes, and what forward raises there."""
Traced = tuple[list[FunctionCase], list[Refused]]


def parted(
    facts: SizeFacts, error: SymgradError, split: Callable[[NeedsDecision, SizeFacts], Traced],
    accepts: Callable[[SizeFacts], bool],
) -> tuple[list[FunctionCase], list[RefusedCase]]:  # fmt: skip
    """The cases that forward accepts among these sizes, and those that it does not.

    ``split``: traces both answers to a question.  ``accepts``: does forward accept the sizes, which
    are numbers?  Raises the error where it may accept some that no case is found for.
    """
    question = _open_question(facts, error)
    if question is None:
        if not _is_certain(error) and any(map(accepts, _numbers(facts))):
            raise error
        return [], [RefusedCase(facts.conditions, error)]
    cases, left = split(question, facts)
    refused: list[RefusedCase] = []
    for again, reason in left:
        more, rest = parted(again, reason, split, accepts)
        cases += more
        refused += rest
    return (cases, refused) if cases else ([], [RefusedCase(facts.conditions, error)])


def _open_question(facts: SizeFacts, error: SymgradError) -> NeedsDecision | None:
    """What decides whether the sizes that an error names fit; None where it is known.

    All of its pairs have to fit, so that one that does not is enough.
    """
    found = None
    for one, other in error.equal if isinstance(error, TraceError) else ():
        left, right = Dim.of(one), Dim.of(other)
        questions = [NeedsDecision(left, "==", right)]
        if facts.decide(left, "==", right) is True:
            continue
        questions += [NeedsDecision(size, "==", Dim.of(1)) for size in (left, right)]
        asked = next((q for q in questions if facts.decide(q.left, "==", q.right) is None), None)
        if asked is None:
            return None
        found = found or asked
    return found


def _numbers(facts: SizeFacts) -> list[SizeFacts]:
    """Facts with a number for each size that fit these; of few and of many different numbers."""
    conditions = facts.conditions
    known = {1, 2, 3, *(one for each in conditions for one in each.numbers)}
    near = sorted({max(one + step, 1) for one in known for step in (0, 1)})
    asked = (name for one in conditions for side in (one.left, one.right) for name in side.sizes)
    names = tuple(dict.fromkeys((*facts.order, *asked)))
    every = islice(_assigned(names, near), MOST_SIZES_LOOKED_AT)
    fitting = [sizes for sizes in every if _hold(conditions, sizes)]
    return [_at(facts, sizes) for sizes in fitting[:: max(1, len(fitting) // MOST_SIZES_TRIED)]]


def _hold(conditions: Iterable[SizeCondition], sizes: Mapping[str, int]) -> bool:
    try:
        return all(one.holds(sizes) for one in conditions)
    except ZeroDivisionError:
        return False


def _assigned(names: Sequence[str], values: Sequence[int]) -> Iterator[dict[str, int]]:
    """The values given to names, few different ones first."""
    for count in range(1, len(names) + 1):
        for chosen in combinations(values, count):
            for each in product(chosen, repeat=len(names)):
                if len({*each}) == count:
                    yield dict(zip(names, each, strict=True))


def _at(facts: SizeFacts, sizes: Mapping[str, int]) -> SizeFacts:
    found: SizeFacts | None = SizeFacts(facts.order)
    for name, number in sizes.items():
        found = found and found.assume(Dim.size(name), "==", number)
    assert found is not None
    return found


def _is_certain(error: SymgradError) -> bool:
    """Did the program raise of its own, so that it has asked about all sizes that matter?"""
    known: BaseException | None = error
    while known is not None and not isinstance(known, ShapeError):
        known = known.__cause__ or known.__context__
    return known is None
