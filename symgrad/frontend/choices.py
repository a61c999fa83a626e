"""Branches on values: ``if (x < 0).any(): raise``, ``if mask.any(): x[mask] = ...``.

In: how to trace with answers to what the program asks of elements.  Out: one case for all calls; or
why there is none.

The program is traced for each way that it takes.  Where it raises, that it takes another way is
demanded, as what an operation raises without is.  Others that give the same nodes are one.  Where a
mask selects nothing, ``where(mask, a, b)`` is b: what is given where it selects something, with
False for the mask, may be what is given where it does not.  Ways that give something else are
joined: ``where(answer, one, other)`` is what the program gives (``symgrad.frontend.ways``).

A loop that waits for an answer has no last way.  It is traced for few rounds: what goes on is one
way that is not judged, as one that raises is not, and that another is taken is demanded.  So are
those with fewer rounds than are asked for.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from symgrad.errors import (
    ControlFlowError,
    Location,
    ShapeError,
    SpecError,
    SymgradError,
    UnsupportedOpError,
    is_limit,
)
from symgrad.frontend.spoken import is_raised
from symgrad.frontend.ways import Answers, Choice, Way, joined, same
from symgrad.ir.expr import OPPOSITE
from symgrad.ir.function import Asked, Demanded, FunctionCase, Loop
from symgrad.ir.graph import Graph, Node, ancestors, input_names
from symgrad.ir.rewrite import rewrite
from symgrad.ir.types import TensorType
from symgrad.ops.integers import truth

MOST_CHOICES = 12
"""Questions about elements on one way."""
MOST_REPEATED = 1000
"""Answers on one way: a loop that waits for another answer to the same question does not end."""
MOST_WAYS = 16
"""Ways through one program: each is a trace."""
MOST_VALUED_WAYS = 64
"""The same, where there is one for each value of a number."""
MOST_ROUNDS = 3
"""Rounds of a loop that is traced for a few of them."""
_OF_ROUNDS = "line {} branches on at {} {} values, one a round of its loop"
_OTHERWISE = (ControlFlowError, ShapeError, SpecError, UnsupportedOpError)
"""Errors that say themselves what is not possible."""
_SAME = ("reshape", "expand", "detach")
_OF_ALL = {("amin", "ge"), ("amin", "gt"), ("amax", "le"), ("amax", "lt")}
"""Comparisons of an extremum with a number that hold where they do of all elements."""


FAILS_ELSEWHERE = "backward fails for another answer to this"
Trace = Callable[[Answers], FunctionCase]
_Clause = tuple[Choice, ...]
"""Of these one has to hold."""


def for_all_values(
    trace: Trace, asked: Sequence[Choice], *, joins: bool, rounds: int = 0
) -> FunctionCase:  # fmt: skip
    """One case for all answers; what keeps it from standing for all calls is observed.

    ``asked``: what the last trace asked, with the answers.  ``joins``: ways that differ are joined.
    ``rounds``: ways on which a loop waits for so many values at most are not judged.
    Raises what forward raises, and ControlFlowError where two ways differ that are not joined.
    """
    ways: list[Way] = []
    for way in _ways(trace, asked):
        ways.append(way)
        if _are_many(ways):
            break
        if len(ways) == 1 and not way.choices:
            return _only(way)
        if joins and _is_endless(way):
            ways = list(itertools.islice(_ways(trace, asked, _for_rounds), MOST_WAYS + 1))
            break
    loop = _loop(ways, rounds) if joins else None
    if loop is not None and rounds:
        ways = [_for_more_rounds(way, loop) for way in ways]
    if _are_many(ways):
        return _beyond(ways, "too many masks are asked whether they select anything")
    if not _is_tree(ways):
        return _beyond(ways, "it asks something else when it is traced again")
    if all(way.raises or way.case is None for way in ways):  # in backward, whatever is answered
        ways = [way._replace(raises=way.case is None and way.raises) for way in ways]
    taken = next((way for way in ways if way.case is not None and not way.raises), None)
    if taken is None or taken.case is None:
        return _only(next((way for way in ways if not way.raises), ways[-1]))
    found: list[Asked] = []
    others = [way for way in ways if way is not taken and not way.raises]
    apart = [way for way in others if way.case is None or not same(taken.case, way)]
    one = joined(taken.case, ways) if joins and apart else None
    alike = joins and all(way.case and _types(way.case) == _types(taken.case) for way in apart)
    failing = next((way for way in apart if alike and way.case and way.case.problem), None)
    if one is None and failing is not None and taken.choices:
        found += [Asked(FAILS_ELSEWHERE, taken.choices[0].location)]
    for way in () if one or failing else apart:
        found += _differing(taken, way, first=way is ways[0])
    case = _together(one or taken.case, [way.case for way in ways if way.case and not way.raises])
    demanded = _demanded(one or taken.case, ways, loop)
    raises = next((_raised(way) for way in ways if way.raises and way.choices), None)
    case = replace(
        case, demanded=(*case.demanded, *demanded), chosen=taken.answers, raises=raises, loop=loop
    )
    valued = next((one for way in ways for one in way.choices if one.is_value), None)
    known = valued and Asked("Python has to know a number that depends on values", valued.location)
    return replace(case, observed=(*case.observed, *dict.fromkeys(found)), valued=known)


def _are_many(ways: Sequence[Way]) -> bool:
    """Are they more than are judged?"""
    valued = any(one.is_value for one in ways[0].choices)
    return len(ways) > (MOST_VALUED_WAYS if valued else MOST_WAYS)


def _raised(way: Way) -> Asked:
    what = way.error.what if way.error is not None else "it raises"
    return Asked(what, way.choices[-1].location)


def passes(trace: Trace, asked: Sequence[Choice]) -> bool:
    """Is there a way on which forward returns?  The ways before it are traced as well."""
    return any(way.case is not None for way in itertools.islice(_ways(trace, asked), MOST_WAYS))


def _together(case: FunctionCase, others: Sequence[FunctionCase]) -> FunctionCase:
    """The case with all that is asked, needed and printed on any of the ways."""
    both: dict[str, Any] = {
        name: tuple(dict.fromkeys(one for other in (case, *others) for one in getattr(other, name)))
        for name in ("requires", "observed", "assumed", "left_out", "where", "state", "surplus")
    }
    answers = {one.key: one for other in (*others, case) for one in other.answers}
    symmetric = case.symmetric.union(*(other.symmetric for other in others))
    by_default = any(other.by_default for other in (case, *others))
    return replace(
        case, answers=tuple(answers.values()), symmetric=symmetric, by_default=by_default, **both
    )


def _is_endless(way: Way) -> bool:
    """Did it end since it asked too often, and one line in more rounds than are traced?"""
    often = isinstance(way.error, ControlFlowError) and len(way.choices) == MOST_CHOICES
    return often and not way.raises and _rounds_end(way.choices) is not None


def _rounds_end(choices: Sequence[Choice]) -> int | None:
    """The number of answers after which a loop goes on that was in as many rounds as are traced."""
    places: Counter[Location | None] = Counter()
    for number, one in enumerate(choices):
        if one.is_value:
            continue
        if places[one.location] > MOST_ROUNDS:
            return number
        places[one.location] += 1
    return None


def _for_rounds(way: Way) -> Way:
    """The way; one on which a loop goes on is none that is judged."""
    end = _rounds_end(way.choices)
    if end is None:
        return way
    error = ControlFlowError(
        f"Python cannot branch on a tensor here in more than {MOST_ROUNDS} rounds of a loop",
        location=way.choices[end - 1].location,
    )
    return Way(way.choices[:end], None, error, True)


def _loop(ways: Sequence[Way], rounds: int) -> Loop | None:
    """The loop in which most is asked on one way, more than once; None where there is none."""
    asked = [Counter(one.location for one in way.choices if not one.is_value) for way in ways]
    number, place = max(
        ((number, place) for one in asked for place, number in one.items() if place is not None),
        key=lambda pair: pair[0], default=(0, None),
    )  # fmt: skip
    if number < 2 or place is None:
        return None
    ended = sorted(
        ((of[place], way) for of, way in zip(asked, ways, strict=True) if way.case is not None),
        key=lambda pair: pair[0],
    )  # fmt: skip
    constant = 0
    for times, way in ended:
        if not times or (way.case is not None and _varies(way.case)):
            break
        constant = times
    return Loop(place, rounds + 1, constant)


def _varies(case: FunctionCase) -> bool:
    """Does what forward gives depend on the elements of an input?"""
    return any(node.op == "input" for node in ancestors(case.outputs))


def _for_more_rounds(way: Way, loop: Loop) -> Way:
    """The way; one on which the loop waits for fewer values is none that is judged."""
    number = [one.location for one in way.choices].count(loop.location)
    if way.case is None or not 0 < number < loop.least:
        return way
    error = ControlFlowError("the loop is judged for more rounds", location=loop.location)
    return Way(way.choices, None, error, True)


def _ways(
    trace: Trace, asked: Sequence[Choice], shortened: Callable[[Way], Way] = lambda way: way
) -> Iterator[Way]:
    """Every way through the program, by its answers: yes before no, the last question first."""
    todo: list[Answers] = [()]
    while todo:
        given = todo.pop()
        case, error = None, None
        try:
            case = trace(given)
            error = case.problem
        except SymgradError as raised:
            error = raised
        raises = error is not None and is_raised(error.__cause__ or error)
        if case is None and isinstance(error, ShapeError):  # so that shapes do not fit on this way
            raises |= any(one.is_value for one in asked)
        way = shortened(Way(tuple(asked), case, error, raises))
        todo += [(*way.answers[:at], False) for at in range(len(given), len(way.choices))]
        yield way


def _is_tree(ways: Sequence[Way]) -> bool:
    """Does it ask the same after the same answers?"""
    graph, asked = Graph(), dict[Answers, Node]()
    for way in ways:
        nodes = [one.node for one in way.choices]
        for at, node in enumerate(nodes):
            own = rewrite(graph, [node], named=False)[node]
            if asked.setdefault(way.answers[:at], own) is not own:
                return False
    ends = {way.answers for way in ways}
    return len(ends) == len(ways) and ends.isdisjoint(asked)


def _only(way: Way) -> FunctionCase:
    ended = way.error and way.error.__cause__
    if isinstance(ended, SystemExit) and not way.choices:
        raise ended  # whatever it is called with
    if way.case is not None:
        return way.case
    assert way.error is not None
    raise _on_values(way.error, [] if way.raises else way.choices) from way.error.__cause__


def _beyond(ways: Sequence[Way], what: str) -> FunctionCase:
    """Ways that are not all compared.  Raises ControlFlowError unless all are about masks."""
    taken = next((way for way in ways if way.case is not None and not way.raises), ways[0])
    if taken.case is None or not all(one.of_mask for one in taken.choices):
        asked = next((one for one in ways[-1].choices if not one.of_mask), None)
        if asked is not None and asked.is_value:
            raise ControlFlowError(
                "Python has to know numbers here that depend on values, and branches on them in "
                f"more than {MOST_VALUED_WAYS} ways", location=asked.location,
                hint="state smaller numbers for the sizes",
            )  # fmt: skip
        raise _refused(asked)
    note = Asked(what, next((one.location for one in ways[0].choices), None))
    return replace(taken.case, observed=(*taken.case.observed, note))


def _differing(taken: Way, way: Way, *, first: bool) -> Iterator[Asked]:
    """What is observed of a way that gives something else.  Raises where it can be no other's."""
    if way.case is None and way.error is not None and (first or is_limit(way.error)):
        raise _on_values(way.error, way.choices) from way.error.__cause__
    apart = next(
        one for one, other in zip(way.choices, taken.choices, strict=False)
        if one.holds is not other.holds
    )  # fmt: skip
    unlike = way.case is not None and _types(way.case) != _types(taken.case)
    if not apart.of_mask or unlike:
        known = way.case is not None and not unlike  # then a plain value may do in its place
        asked = input_names([apart.node]) if known else ()
        raise _refused(apart, "other shapes or dtypes" if unlike else "", asked)
    what = "it does something else where a mask selects nothing, and asks for that"
    yield Asked(what, apart.location)


def _types(case: FunctionCase | None) -> list[TensorType]:
    return [] if case is None else [node.type for node in case.outputs]


def _refused(
    choice: Choice | None, unlike: str = "", asked: Iterable[str] = ()
) -> ControlFlowError:  # fmt: skip
    return ControlFlowError(
        "Python cannot branch on a tensor here (if, while, and, or, not, assert): its value is "
        "unknown during tracing, and both ways give results "
        f"{f'of {unlike}' if unlike else 'that differ'}",
        location=choice and choice.location, hint="use torch.where(cond, a, b)",
        asked=asked,
    )  # fmt: skip


def _on_values(error: SymgradError, asked: Sequence[Choice]) -> SymgradError:
    """The error of a trace: where it asked of values, another answer may have led elsewhere."""
    if not asked or isinstance(error, _OTHERWISE):
        return error
    what = "Python cannot branch on whether a mask selects anything here: where it does"
    if not asked[0].of_mask:
        what = "Python cannot branch on a tensor here: where it is true"
    return ControlFlowError(
        f"{what}, {error.what}", location=asked[0].location,
        hint="use torch.where(cond, a, b), which computes both",
    )  # fmt: skip


# -- what is demanded for none of the ways to be taken that raise


def _demanded(
    case: FunctionCase, ways: Sequence[Way], loop: Loop | None
) -> Iterator[Demanded]:  # fmt: skip
    """What the case demands for all ways: of values, and what the other ways' operations demand."""

    def own(node: Node, way: Way) -> Node:
        given = zip(way.case.cotangents, case.cotangents, strict=False) if way.case else ()
        known = {one: other for one, other in given if one is not None and other is not None}
        return rewrite(case.graph, [node], known, named=False)[node]

    known_here = [
        way._replace(choices=[one._replace(node=own(one.node, way)) for one in way.choices])
        for way in ways
    ]
    last = {
        way.choices[-1].node for way in known_here if way.raises and len(way.choices) > MOST_ROUNDS
    }
    for clause in _clauses(known_here, 0) or []:
        parts = [_parts(one.node, one.holds) for one in clause]
        found = parts[0] if len(parts) == 1 else [_any_of(parts)]
        where = clause[-1].location
        said = _of_rounds(clause, loop, last)
        for node in found:
            yield Demanded(*truth(node), where, said=said)
    known = set(case.demanded)
    for way in ways:
        if way.case is not None and way.case is not case and not way.raises:
            for one in way.case.demanded:
                moved = replace(one, node=own(one.node, way))
                if moved not in known:
                    known.add(moved)
                    yield moved


def _of_rounds(clause: _Clause, loop: Loop | None, last: Collection[Node]) -> str:
    """What a demand about a loop says, in words; empty for others.

    ``last``: what ways that are not judged ask last.
    """
    if loop is None or {one.location for one in clause} != {loop.location}:
        return ""
    if len(clause) < loop.least and clause[-1].node not in last:
        return _OF_ROUNDS.format(loop.location.line, "least", loop.least)
    if len(clause) + loop.least - 1 > MOST_ROUNDS:
        return _OF_ROUNDS.format(loop.location.line, "most", MOST_ROUNDS + 1)
    return ""


def _clauses(ways: Sequence[Way], depth: int) -> list[_Clause] | None:
    """What has to hold for ways that are the same up to a question; None where all raise."""
    if len(ways) == 1 and len(ways[0].choices) == depth:
        return None if ways[0].raises else []
    question = ways[0].choices[depth]
    yes, no = (
        _clauses([way for way in ways if way.choices[depth].holds is holds], depth + 1)
        for holds in (True, False)
    )
    here = question._replace(holds=True), question._replace(holds=False)
    if yes is None:
        return None if no is None else [(here[1],), *no]
    if no is None:
        return [(here[0],), *yes]
    both = [one for one in yes if one in no]
    left = [(here[1], *one) for one in yes if one not in both]
    return [*both, *left, *((here[0], *one) for one in no if one not in both)]


def _parts(node: Node, holds: bool) -> list[Node]:
    """What is true of all elements where an answer is so, over the reals."""
    if node.rank and holds:
        return [_over_all("any", node)]
    return list(_each(node, holds))


def _each(node: Node, holds: bool) -> Iterator[Node]:
    """What all elements of are true where all of a node are so."""
    if node.op == "logical_not":
        yield from _each(node.args[0], not holds)
    elif node.op in _SAME or node.op == ("all" if holds else "any"):
        yield from _each(node.args[0], holds)
    elif node.op == ("logical_and" if holds else "logical_or"):
        for arg in node.args:
            yield from _each(arg, holds)
    elif node.op in OPPOSITE:
        yield _compared(node.op if holds else OPPOSITE[node.op], *node.args)
    else:
        yield node if holds else node.graph.apply("logical_not", node)


def _compared(op: str, left: Node, right: Node) -> Node:
    """A comparison; of all elements in place of their extremum."""
    while not left.rank and (left.op in _SAME or (left.op, op) in _OF_ALL):
        left = left.args[0]
    return left.graph.apply(op, left, left.graph.expand(right, left.shape))


def _any_of(parts: Sequence[Sequence[Node]]) -> Node:
    """One of several conditions holds, each of which has some parts."""

    def joined(op: str, nodes: Sequence[Node]) -> Node:
        return functools.reduce(lambda one, other: one.graph.apply(op, one, other), nodes)

    wholes = [joined("logical_and", [_over_all("all", one) for one in every]) for every in parts]
    return joined("logical_or", wholes)


def _over_all(op: str, node: Node) -> Node:
    return node.graph.apply(op, node, axes=tuple(range(node.rank))) if node.rank else node
