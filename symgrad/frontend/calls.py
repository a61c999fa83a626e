"""Another call beside the one that is judged, as other a call as there can be.

In: a traced Function whose code is not plain (``symgrad.frontend.plain_code``).  Out: for each of
its cases the same calls in the order of ``OtherCall``.

The other call has integers as sizes, 64 bits where nobody asked for 32, and the same tensor in all
places that can take it.  Where it is the first call but for that, the program looks at none of it;
where a tensor of one call gets into another one, the program keeps state.  Where traces change what
a program keeps, a call of other plain arguments, sizes or ranks comes earlier as well.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from symgrad.budgets import MOST_ALIASES, MOST_EARLIER_CALLS
from symgrad.errors import ControlFlowError, SymgradError
from symgrad.frontend.annotated import has_others
from symgrad.frontend.asked import other_values
from symgrad.frontend.case import (
    may_require,
    trace_after,
    trace_beside,
    trace_shown,
    unmarked,
)
from symgrad.frontend.facts import NeedsDecision, SizeFacts
from symgrad.frontend.plain import defaults, in_all, with_values
from symgrad.frontend.plain_code import ABOUT_DTYPES, is_plain
from symgrad.frontend.reach import reached
from symgrad.frontend.regions import Region
from symgrad.frontend.request import Request
from symgrad.frontend.spec import TensorSpec
from symgrad.frontend.state import changes_of
from symgrad.frontend.thresholds import NeedsAnswer
from symgrad.frontend.trace import BATCH_RANK, both_answers, trace_request, written_out
from symgrad.ir.dim import Atom, Dim, Size
from symgrad.ir.dtype import float32, float64
from symgrad.ir.function import FunctionCase, FunctionGraphs, OtherCall
from symgrad.ir.types import TensorType
from symgrad.plain_values import described

ALL = frozenset(("dtype", "same"))
IDENTITY = frozenset(("identity",))
DEFAULT = frozenset(("default",))
NARROW = frozenset(("narrow",))
EARLIER = frozenset(("earlier",))
_NUMBERS = (7, 11, 5, 13, 3, 17, 2, 19)
_FACTORS = (1, 2, 4, 8, 16, 32, 64)
_SMALL = 6
_MOST_TRIED = 2000
_MOST_ANSWERS = 8
_OTHER_RANKS = (1, 3)


def leaving_out(request: Request) -> Request:
    """The request, and all inferred for it, without what its calls have to leave out.

    Backward returns no gradient for these plain arguments: PyTorch refuses what passes them.
    """
    if not defaults(request):
        return request
    try:
        cases = trace_request(request).cases
    except SymgradError:
        return request
    found = frozenset(name for case in cases for name in case.left_out)
    return in_all(request, lambda one: replace(one, left_out=found)) if found else request


def asks_nothing(request: Request) -> bool:
    """Is its code plain, so that no other call need be traced?"""
    return is_plain(request.function)


def other_calls(
    request: Request, graphs: FunctionGraphs, rank: int | None = BATCH_RANK,
    aspects: frozenset[str] = ALL,
) -> list[OtherCall]:  # fmt: skip
    """Each case with another call beside it.

    ``aspects``: what is other about that; ``alike``: nothing is, its sizes are those of the first;
    ``identity``: tensors of the call are one tensor, in all ways that can be, and saved tensors
    are other objects, if the code asks; ``default``: the default dtype is another one; ``narrow``:
    floats have 16 bits, as far as it sees; ``earlier``: plain arguments, sizes and ranks, and it
    leaves its state, where calls change any.
    """
    if aspects == EARLIER:
        stateful = bool(changes_of(request.function))
        found = _earlier(request, graphs, rank) if stateful else iter(())
        return list(itertools.islice(found, MOST_EARLIER_CALLS))
    if aspects == IDENTITY:
        return list(_aliased(request, graphs, rank))
    if aspects == NARROW:
        return list(_narrow(request, graphs, rank))
    calls = []
    for case in graphs.traces:
        if case.problem is None and (aspects != DEFAULT or case.by_default):
            one = _beside(request, case, dict(graphs.answers), rank, aspects)
            calls += [] if one is None else [one]
    return calls


def _earlier(request: Request, graphs: FunctionGraphs, rank: int | None) -> Iterator[OtherCall]:
    """Each case after, or around, a call of other plain arguments, sizes or ranks."""
    own = written_out(request, float32, rank)
    for case, between in itertools.product(graphs.traces, (False, True)):
        if case.problem is None:
            for told, other in _other_arguments(request, own, case, graphs, rank):
                yield from _after(own, case, dict(graphs.answers), other, told, between=between)


def _other_arguments(
    request: Request, own: Request, case: FunctionCase, graphs: FunctionGraphs, rank: int | None
) -> Iterator[tuple[str, Request]]:
    """Requests with numbers for sizes, and what they are told apart by."""
    plain = _plain(own)
    usual = _with_plain(own, plain)
    for number, values in enumerate(_other_values(request, plain)):
        for known in graphs.traces if number == 0 else (case,):
            sizes = next(_sizes(own, known, []), None)
            if sizes is not None:
                yield _told({**plain, **values}, sizes), _at(_with_plain(usual, values), sizes)
    ranks = [] if rank is None else [written_out(request, float32, one) for one in _OTHER_RANKS]
    guess = (request.whole or request).guess
    ranks += [written_out(one, float32, rank) for one in (guess.others if guess else ())]
    for one in ranks:
        if [arg.name for arg in one.arguments] == [arg.name for arg in own.arguments]:
            sizes = dict(zip(one.sizes, itertools.cycle(_NUMBERS), strict=False))
            made = _at(_with_plain(one, plain), sizes)
            shapes = [arg.spec.of(arg.name) for arg in made.tensors if arg.spec is not None]
            yield f"with the shapes {', '.join(shapes)}", made


def _told(values: Mapping[str, Any], sizes: Mapping[str, int]) -> str:
    pairs = [f"{name} = {described(value)}" for name, value in {**values, **sizes}.items()]
    return f"with {', '.join(pairs)}" if pairs else "of its own"


def _plain(request: Request) -> dict[str, Any]:
    """The plain arguments: numbers, texts, truth values and None."""
    sizes = {*request.sizes, *request.batches.values()}
    passed = {one.name: one.value for one in request.arguments if not one.is_tensor}
    found = {**defaults(request), **passed}
    found = {name: one.value if isinstance(one, Region) else one for name, one in found.items()}
    return {
        name: one for name, one in found.items()
        if name not in sizes and has_others(request.function, one)
    }  # fmt: skip


def _other_values(request: Request, plain: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Other plain arguments: none first, other numbers together, then others one by one."""
    yield {}
    floats = {name: one for name, one in plain.items() if type(one) is float}
    if floats:
        yield {name: 0.75 * one or 0.25 for name, one in floats.items()}
        yield {name: 3 * one or 4.0 for name, one in floats.items()}
    for name, one in plain.items():
        more: list[Any] = []
        if type(one) is int:
            more = [one + 1, one - 1]
        elif type(one) is not float:
            more = [0.75] if one is None else []
            more += other_values(request, name, one, partial(_traced_with, request, name))
        yield from ({name: value} for value in more)


def _traced_with(request: Request, name: str, value: Any) -> FunctionGraphs:
    return trace_request(_with_plain(request, {name: value}))


def _with_plain(request: Request, values: Mapping[str, Any]) -> Request:
    """The request with other plain arguments, stated or not."""
    arguments = tuple(
        replace(one, value=values[one.name]) if one.name in values and not one.is_tensor else one
        for one in request.arguments
    )
    known = {one.name for one in arguments}
    left = {name: value for name, value in values.items() if name not in known}
    return with_values(replace(request, arguments=arguments), left)


def _after(
    own: Request, case: FunctionCase, answers: Mapping[str, bool], other: Request, told: str, *,
    between: bool,
) -> Iterator[OtherCall]:  # fmt: skip
    """A case after another call, for each answer to what it asks of sizes then."""
    facts = SizeFacts(own.sizes)
    for condition in case.conditions:
        facts = facts.assume(condition.left, condition.relation, condition.right) or facts
    given = tuple((one.name, _type(one.spec) if one.spec else one.value) for one in other.arguments)
    told = f"where a call {told} comes between forward and backward" if between else (
        f"after a call {told}"
    )  # fmt: skip
    found = replace(
        _without_sizes(own, case), earlier=told, alone=case, given=given, between=between
    )  # fmt: skip
    todo = [facts]
    for _ in range(_MOST_ANSWERS):
        if not todo:
            return
        known = todo.pop()
        trace = partial(trace_after, caller=sys._getframe(), between=between, chosen=case.chosen)
        try:
            one = trace(_copied(own), known, answers, other)
            alone = case if known is facts else trace(_copied(own), known, answers, None)
        except NeedsAnswer as question:
            yield replace(found, case=replace(case, problem=question.error))
        except NeedsDecision as question:
            todo += both_answers(known, question)
        except SymgradError as error:
            yield replace(found, case=replace(case, problem=error))
        else:
            if one is None:
                return
            yield replace(found, case=one, alone=alone)
    if todo:
        many = ControlFlowError("it asks too much about sizes")
        yield replace(found, case=replace(case, problem=many))


def _copied(request: Request) -> Request:
    """The request with regions of its own, which traces shrink."""
    return replace(
        request,
        arguments=tuple(
            replace(one, value=one.value.copy()) if isinstance(one.value, Region) else one
            for one in request.arguments
        ),
    )


def _type(spec: TensorSpec) -> TensorType:
    return TensorType(spec.dtype or float32, spec.dims)


def _beside(
    request: Request, case: FunctionCase, answers: Mapping[str, bool], rank: int | None,
    aspects: frozenset[str],
) -> OtherCall | None:  # fmt: skip
    own = written_out(request, float32, rank)
    facts = SizeFacts(own.sizes)
    for condition in case.conditions:
        facts = facts.assume(condition.left, condition.relation, condition.right) or facts
    first: OtherCall | None = None
    for asked in _fewer(aspects):
        wide = written_out(request, float64 if "dtype" in asked else float32, rank)
        groups = _groups(wide) if "same" in asked and not any(case.changed) else ()
        sizes = next(_sizes(wide, case, _alike(wide, case, groups)), None)
        if sizes is None and "alike" not in asked:
            continue
        sizes = sizes or {}
        other = own if "alike" in asked else _at(wide, sizes)
        try:
            found = trace_beside(
                own, facts, answers, other, sizes, groups, caller=sys._getframe(),
                dtype=str(float64 if "dtype" in asked else float32),
                other_default="default" in asked, chosen=case.chosen,
            )  # fmt: skip
        except (SymgradError, NeedsDecision):
            return None
        if found.other is not None or found.leaked is not None:
            return found
        first = first or found
    return first or _without_sizes(own, case)


def _narrow(request: Request, graphs: FunctionGraphs, rank: int | None) -> Iterator[OtherCall]:
    """Calls with floats of 16 bits; if the program asks, with floats of two dtypes as well."""
    guest = request.cls.symgrad_guest
    if guest is None or not guest.narrow:
        return
    if not guest.watches_dtypes and ABOUT_DTYPES.isdisjoint(reached(request.function).names):
        return
    own, wide = (written_out(request, dtype, rank) for dtype in (float32, float64))
    free = [
        one.name for one in request.arguments if one.spec is not None and one.spec.dtype is None
    ]
    for case in graphs.traces:
        if case.problem is not None:
            continue
        case = unmarked(case)  # once for all of these calls
        asks = not guest.watches_dtypes
        for name in guest.narrow:
            found = _in_dtypes(own, own, case, dict(graphs.answers), name)
            asks |= found.asks_dtypes
            yield found
        for names in _unlike(free) if asks else ():
            mixed = _joined(own, wide, names)
            for name in ("", *guest.narrow):
                found = _in_dtypes(own, mixed, case, dict(graphs.answers), name)
                yield replace(found, unlike=names)


def _in_dtypes(
    own: Request, other: Request, case: FunctionCase, answers: Mapping[str, bool], shown_as: str
) -> OtherCall:
    """A call with floats of other dtypes beside a case; a problem where it cannot be traced."""
    sizes = next(_sizes(own, case, []), None)
    if sizes is not None:
        with suppress(SymgradError, NeedsDecision):
            return trace_shown(
                case, tuple(own.sizes), answers, _at(other, sizes), sizes,
                caller=sys._getframe(), shown_as=shown_as,
            )  # fmt: skip
    found = _without_sizes(own, case)
    return replace(found, other=found.case, dtype=shown_as, asks_dtypes=True)


def _unlike(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Each of several inputs alone, and all others: any two inputs are told apart."""
    if len(names) < 2:
        return []
    found: list[tuple[str, ...]] = [(name,) for name in names]
    found += [tuple(other for other in names if other != name) for name in names]
    return list(dict.fromkeys(found))


def _joined(own: Request, other: Request, names: Sequence[str]) -> Request:
    """A request with the arguments of these names as another one has them."""
    pairs = zip(own.arguments, other.arguments, strict=True)
    return replace(own, arguments=tuple(b if a.name in names else a for a, b in pairs))


def _without_sizes(own: Request, case: FunctionCase) -> OtherCall:
    when = " and ".join(map(str, case.conditions))
    problem = ControlFlowError(f"no sizes were found for a second call where {when}")
    names = tuple(own.sizes)
    return OtherCall(replace(case, problem=problem), None, {}, str(float32), (), None, names)


def _fewer(aspects: frozenset[str]) -> Iterator[frozenset[str]]:
    """All, then fewer of them: forward may not accept such a call."""
    for count in range(len(aspects), -1, -1):
        yield from map(frozenset, itertools.combinations(sorted(aspects), count))


def _groups(request: Request) -> tuple[tuple[str, ...], ...]:
    """The inputs that may be one tensor: those of one rank and dtype."""
    kinds: dict[object, list[str]] = {}
    for name in may_require(request):
        spec = next(one.spec for one in request.arguments if one.name == name)
        if spec is not None:
            kinds.setdefault((len(spec.dims), spec.dtype, spec.complex), []).append(name)
    return tuple(tuple(names) for names in kinds.values() if len(names) > 1)


Groups = tuple[tuple[str, ...], ...]


def _alike(request: Request, case: FunctionCase, groups: Groups) -> list[tuple[Dim, Dim]]:
    """The sizes that are equal where the tensors of each group are one."""
    shapes = {one.name: one.spec.dims for one in request.arguments if one.spec is not None}
    for number, node in enumerate(case.outputs):
        shapes |= {f"output {number}": node.shape, f"cotangent {number}": node.shape}
    return [
        pair for group in groups for other in group[1:]
        for pair in zip(shapes[group[0]], shapes[other], strict=True)
    ]  # fmt: skip


def _aliased(request: Request, graphs: FunctionGraphs, rank: int | None) -> Iterator[OtherCall]:
    """Calls in which tensors are one tensor."""
    reach = reached(request.function)
    if not reach.tells_saved:
        return
    own = written_out(request, float32, rank)
    for case in graphs.traces:
        if case.problem is not None:
            continue
        yield from _hooked(own, case, dict(graphs.answers))
        if any(case.changed) or not reach.tensors:
            continue
        facts = SizeFacts(own.sizes)
        for condition in case.conditions:
            facts = facts.assume(condition.left, condition.relation, condition.right) or facts
        ways = [*_pairs(case), *itertools.islice(_ways(case), MOST_ALIASES)]
        for groups in dict.fromkeys(ways):
            sizes = next(_sizes(own, case, _alike(own, case, groups)), None)
            if sizes is None:
                continue  # they never have one shape
            try:
                found = trace_beside(
                    own, facts, dict(graphs.answers), _at(own, sizes), sizes, groups,
                    caller=sys._getframe(), dtype=str(float32), chosen=case.chosen,
                )  # fmt: skip
            except (SymgradError, NeedsDecision):
                found = _without_sizes(own, case)
                found = replace(found, other=found.case, same=groups)
            if found.other is not None:
                yield found
        if len(ways) > MOST_ALIASES:
            found = _without_sizes(own, case)
            names = tuple(str(node.attributes["name"]) for node in case.tensors)
            yield replace(found, other=found.case, same=((*names, "cotangent 0"),))


def _hooked(own: Request, case: FunctionCase, answers: Mapping[str, bool]) -> Iterator[OtherCall]:
    """A call in which ``saved_tensors`` has other objects than those that were saved."""
    facts = SizeFacts(own.sizes)
    for condition in case.conditions:
        facts = facts.assume(condition.left, condition.relation, condition.right) or facts
    found: OtherCall | None = None
    sizes = next(_sizes(own, case, []), None)
    if sizes is not None:
        with suppress(SymgradError, NeedsDecision):
            found = trace_beside(
                own, facts, answers, _at(own, sizes), sizes, (), caller=sys._getframe(),
                dtype=str(float32), hooked=True, chosen=case.chosen,
            )  # fmt: skip
    if found is None or found.other is None:
        found = _without_sizes(own, case)
        found = replace(found, other=found.case, hooked=True)
    yield found


def _pairs(case: FunctionCase) -> Iterator[Groups]:
    """The ways in which two tensors are one."""
    yield from itertools.islice(_ways(case, most=2), MOST_ALIASES)


def _ways(case: FunctionCase, most: int | None = None) -> Iterator[Groups]:
    """The ways in which the tensors of a call can be one, but for none.

    ``most``: of so many tensors.
    """
    inputs = {str(node.attributes["name"]): node for node in case.tensors}
    outputs = {f"output {number}": node for number, node in enumerate(case.outputs)}
    given = {
        f"cotangent {number}": node for number, node in enumerate(case.cotangents)
        if node is not None
    }  # fmt: skip
    kinds = {name: (node.rank, node.dtype) for name, node in {**inputs, **outputs, **given}.items()}

    def joined(names: list[str], groups: list[list[str]]) -> Iterator[list[list[str]]]:
        if not names:
            yield groups
            return
        name, rest = names[0], names[1:]
        full = most is not None and any(len(group) == most for group in groups)
        for place, group in enumerate(() if full else groups):
            if kinds[group[0]] == kinds[name]:
                yield from joined(rest, [*groups[:place], [*group, name], *groups[place + 1 :]])
        if name in given and not full:
            for output in outputs:
                if kinds[output] == kinds[name] and all(output not in one for one in groups):
                    yield from joined(rest, [*groups, [output, name]])
        yield from joined(rest, [*groups, [name]])

    for way in joined([*inputs, *given], []):
        found = tuple(tuple(one) for one in way if len(one) > 1)
        if found:
            yield found


def _sizes(
    request: Request, case: FunctionCase, alike: list[tuple[Dim, Dim]]
) -> Iterator[dict[str, int]]:
    """Numbers for the sizes of a case at which these are equal."""
    names = list(request.sizes)
    roots = _roots(names, alike)
    free = list(dict.fromkeys(roots.values()))
    named = {number for one in case.conditions for number in one.numbers if number > 0}
    tries: Iterator[tuple[int, ...]] = itertools.chain(
        (tuple(_NUMBERS[place % len(_NUMBERS)] * factor for place in range(len(free)))
         for factor in _FACTORS),
        itertools.product(range(1, _SMALL + 1), repeat=len(free)),
        ((factor,) * len(free) for factor in _FACTORS),
        itertools.product(sorted(named), repeat=len(free)),
    )  # fmt: skip
    for numbers in itertools.islice(tries, _MOST_TRIED):
        values = dict(zip(free, numbers, strict=True))
        sizes = {name: values[roots[name]] for name in names}
        fits = all(one.at(sizes) == other.at(sizes) for one, other in alike)
        if fits and all(one.holds(sizes) for one in case.conditions):
            yield sizes


def _roots(names: list[str], alike: list[tuple[Dim, Dim]]) -> dict[str, str]:
    """For each size the one that stands for all that are to be equal to it."""
    roots = {name: name for name in names}
    for left, right in alike:
        sides = [side.atom.name for side in (left, right) if isinstance(side.atom, Size)]
        if len(sides) == 2:
            old, new = roots[sides[1]], roots[sides[0]]
            roots = {name: new if root == old else root for name, root in roots.items()}
    return roots


def _at(request: Request, sizes: Mapping[str, int]) -> Request:
    """The request with numbers for its sizes."""
    put: dict[Atom, Dim] = {Size(name): Dim.of(number) for name, number in sizes.items()}
    return request.with_specs(
        lambda spec: replace(spec, dims=tuple(dim.substitute(put) for dim in spec.dims))
    )
