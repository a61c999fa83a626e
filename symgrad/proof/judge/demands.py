"""What operations raise without, for the whole call: places in their axes, divisors that are not 0.

In: the traces of a Function.  Out: conditions to print, or why there is no verdict.

A demand is met by the ends of its integers (``ops/integers``), or where the normal form shows that
no element misses it.  What is left is printed, in terms of the inputs; what it says of sizes alone,
as ``clamp(0, k - 2)`` does that is not negative, by itself, and the proof may use that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from symgrad.ir.assume import Assumption
from symgrad.ir.dim import Dim, DimLike
from symgrad.ir.dtype import bool_, float64
from symgrad.ir.function import Demanded, FunctionCase, FunctionGraphs, Relation, SizeCondition
from symgrad.ir.graph import Node
from symgrad.ops.integers import (
    Demand,
    Ends,
    Integers,
    Labels,
    extremum,
    gap_of,
    labels,
    moved,
    numbers_of,
    ramp,
    size_of,
)
from symgrad.proof.judge.initialised import vanishes
from symgrad.proof.judge.truths import truth_of
from symgrad.proof.oracle.met import is_met
from symgrad.proof.oracle.sizes import impossible
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.report.records import Condition
from symgrad.proof.words.code import NoSpelling
from symgrad.proof.words.relations import spelled

SubjectOf = Callable[[FunctionCase, Sequence[Assumption]], Subject]


class Raised:
    """What must hold for no operation to raise that is traced, used or not.

    ``conditions``: to be printed.  ``reason``: why nothing can be said; empty where it can.
    ``known``: what is printed, or always holds, of sizes alone, and of inputs as they are.
    """

    def __init__(self, traced: Sequence[FunctionGraphs], subject_of: SubjectOf) -> None:
        self.reason = ""
        cases = [case for graphs in traced for case in graphs.cases]
        sizes = frozenset(one for case in cases for one in _of_sizes(case))
        self.known: frozenset[SizeCondition | Assumption | str] = (
            sizes
            | frozenset(one for case in cases for one in _bounds(case))
            | frozenset(text for case in cases for text in _orders(case))
        )
        self._cases: dict[Condition, list[str]] = {}
        self._asked: list[tuple[Node, str]] = []
        """What is printed of elements of the case that is judged: some input has to meet it all."""
        for graphs in traced:
            for case in graphs.cases:
                if case.demanded:
                    self._judge(case, subject_of(case, graphs.assumptions), graphs.assumptions)
        self.conditions = tuple(
            _where(one, cases) for one, cases in self._cases.items()
        )  # fmt: skip

    def _judge(self, case: FunctionCase, subject: Subject, declared: Sequence[Assumption]) -> None:
        integers = Integers(_decides(subject), _of_inputs(subject, declared))
        known = list(_labels(subject, declared))
        self._asked = []
        for one, own in zip(case.demanded, subject.demanded, strict=True):
            if one.wished:
                continue
            demand = Demand(one.node, one.low, one.high, one.apart)
            taken = labels(demand)
            if taken is not None and taken in known:
                self._add(case, [_of_labels(*taken)])
                continue
            if _is_truth(demand):
                self._judge_truth(case, subject, own)
                continue
            if integers.misses(demand) or _is_missed(demand):
                what = "an integer of 32 bits overflows" if _of_bits(demand) else "it raises"
                self.reason = f"{what} for all inputs{_line(one)}"
                return
            parts = [part for part in _parts(demand) if not integers.meets(part)]
            parts = [part for part in parts if not vanishes(subject, _missing(part))]
            if not parts:
                continue
            try:
                found = _conditions(demand, parts)
            except NoSpelling:
                what = "an integer" if _of_bits(demand) else "it"
                may = "may overflow" if _of_bits(demand) else "may raise"
                self.reason = f"{what} {may}: {_said(demand)} is not shown{_line(one)}"
                return
            self._add(case, found)
        if self._asked and not is_met(subject, [node for node, _ in self._asked]):
            said = " and ".join(dict.fromkeys(text for _, text in self._asked))
            self.reason = f"no input was found with {said}"

    def _judge_truth(self, case: FunctionCase, subject: Subject, one: Demanded) -> None:
        """A demand that something holds: shown, shown not to hold anywhere, or printed."""
        node = one.node
        known = truth_of(subject, node)
        if known or vanishes(subject, _missing(Demand(node, one.low))):
            return
        if known is False or vanishes(subject, node.graph.apply("cast", node, dtype=float64)):
            self.reason = f"it raises for all inputs{_line(one)}"
            return
        if one.said:
            self._add(case, [Condition("index", one.said)])
            self._asked.append((node, one.said))
            return
        try:
            said = spelled(_of_all(node), 0)
        except NoSpelling:
            self.reason = f"it may raise: a condition is not shown{_line(one)}"
            return
        where = "" if one.location is None else f" (demanded in line {one.location.line})"
        self._add(case, [Condition("index", f"{said.text}{where}", code=said.code)])
        self._asked.append((node, f"{said.text}{where}"))

    def _add(self, case: FunctionCase, found: Sequence[Condition]) -> None:
        said = " and ".join(map(str, case.conditions))
        for condition in found:
            known = self._cases.setdefault(condition, [])
            known += [said] if said not in known else []


def _where(condition: Condition, cases: Sequence[str]) -> Condition:
    """The condition, with the sizes for which it is one."""
    if len(cases) != 1 or not cases[0]:
        return condition
    code = f"(not ({cases[0]})) | ({condition.code})" if condition.code else ""
    return Condition(condition.kind, f"{condition.text} where {cases[0]}", code=code)


def _parts(demand: Demand) -> Iterator[Demand]:
    """Its two ends, each for itself."""
    if demand.apart is not None:
        yield demand
    if demand.low is not None:
        yield from _operands(Demand(demand.node, low=demand.low))
    if demand.high is not None:
        yield from _operands(Demand(demand.node, high=demand.high))


def _operands(part: Demand) -> Iterator[Demand]:
    """The same of both operands of an extremum that has an end only where both have it."""
    op, operands = extremum(moved(part.node))
    if op != ("minimum" if part.low is not None else "maximum"):
        yield part
        return
    for operand in operands:
        yield from _operands(part._replace(node=operand))


def _is_missed(demand: Demand) -> bool:
    """Does one of places that are numbers and sizes lie outside, whatever the sizes are?"""
    numbers = numbers_of(demand.node) or []
    low, high = demand.low, demand.high
    return any(
        (low is not None and low.at_least(one + 1, least_size=1))
        or (high is not None and one.at_least(high, least_size=1))
        or (one.constant is not None and one.constant == demand.apart)
        for one in numbers
    )


def _is_truth(demand: Demand) -> bool:
    """Is it that something holds?"""
    return demand.node.dtype == bool_ and demand.low is not None


def _of_all(node: Node) -> Node:
    """What holds for all elements where ``.all()`` of it holds."""
    node = moved(node)
    while node.op == "all":
        node = moved(node.args[0])
    return node


def _of_sizes(case: FunctionCase) -> Iterator[SizeCondition]:
    """What the demands of a case say of sizes alone."""
    for one in case.demanded:
        for part in _parts(Demand(one.node, one.low, one.high, one.apart)):
            size = size_of(part.node)
            if size is not None and part.low is not None:
                yield SizeCondition(size, ">=", part.low)
            elif size is not None and part.high is not None:
                yield SizeCondition(size, "<", part.high)


def may_raise(case: FunctionCase) -> bool:
    """Is more demanded than the bounds of its inputs say?"""
    of_values = [one for one in case.demanded if not one.wished]
    return len(of_values) > len(list(_bounds(case))) or not set(_bounds(case)) <= set(case.bounds)


_KINDS = {"gt": ">", "lt": ">", "ge": ">=", "le": ">=", "ne": "!="}


def _compared(case: FunctionCase) -> Iterator[tuple[str, Node, Node]]:
    """What the demands of a case say of two sides: ``>``, ``>=`` or ``!=``, the greater first."""
    for one in case.demanded:
        node = _of_all(one.node)
        if not one.wished and _is_truth(Demand(one.node, one.low)) and node.op in _KINDS:
            more, less = node.args[::-1] if node.op in ("lt", "le") else node.args
            yield _KINDS[node.op], more, less


def _bounds(case: FunctionCase) -> Iterator[Assumption]:
    """What the demands of a case say of float inputs as they are, beside numbers."""
    for kind, more, less in _compared(case):
        for side, other in ((more, less), (less, more)):
            name, number = _name_in(case, side), _number(other)
            if kind != "!=" and name and number is not None and math.isfinite(number):
                end, is_open = Fraction(repr(float(number))), kind == ">"
                low, high = (end, None) if side is more else (None, end)
                text = f"{'(' if is_open else '['}{end}, inf)"
                if side is less:
                    text = f"(-inf, {end}{')' if is_open else ']'}"
                yield Assumption(
                    name, "interval", text, low, high, side is less or is_open,
                    side is more or is_open, taken=True,
                )  # fmt: skip


def _orders(case: FunctionCase) -> dict[str, tuple[str, Node, Node]]:
    """What the demands of a case say of two float inputs, or that one is no number.

    ``x >= y`` and ``x != 0``, with both sides.
    """
    found = {}
    for kind, more, less in _compared(case):
        first, second = _name_in(case, more), _name_in(case, less)
        if kind == "!=" and not second and (number := _number(less)) is not None:
            second = str(number)
        if first and second and first != second:
            found[f"{first} {kind} {second}"] = kind, more, less
    return found


def _name_in(case: FunctionCase, node: Node) -> str:
    """The float input that a node is; empty where it is none."""
    real = _as_real(node)
    is_input = real in case.inputs and real.dtype.is_float
    return str(real.attributes["name"]) if is_input else ""


def _number(node: Node) -> Any:
    """The number that a node is; None where it is none."""
    real = _as_real(node)
    return real.attributes["value"].value if real.op == "constant" else None


def _as_real(node: Node) -> Node:
    """What a node of floats was moved or cast from."""
    while node.op in ("expand", "reshape", "permute", "cast") and node.dtype.is_float:
        if not node.args[0].dtype.is_float:
            break
        node = node.args[0]
    return node


def where_it_runs(
    case: FunctionCase, printed: Collection[SizeCondition | Assumption | str]
) -> FunctionCase:
    """The case for the sizes and inputs for which nothing raises, as far as these are printed."""
    orders = {text: order for text, order in _orders(case).items() if text in printed}
    if orders:
        relations = [
            Relation(text, kind, one.graph.apply("sub", one, other), text.replace(kind, "=="))
            for text, (kind, one, other) in orders.items()
        ]
        case = replace(case, relations=(*case.relations, *relations))
    bounds = tuple(one for one in dict.fromkeys(_bounds(case)) if one in printed)
    if bounds:
        case = replace(case, bounds=bounds)
    sizes = [one for one in dict.fromkeys(_of_sizes(case)) if one in printed]
    conditions = (*case.conditions, *sizes)
    return case if not sizes or impossible(conditions) else replace(case, conditions=conditions)


def _missing(part: Demand) -> Node:
    """1 where an element misses one end of a demand, and 0 elsewhere."""
    node, graph = part.node, part.node.graph
    if _is_truth(part):
        return graph.apply("cast", graph.apply("logical_not", node), dtype=float64)
    end = part.low if part.low is not None else part.high
    op = "eq" if end is None else "lt" if part.low is not None else "ge"
    misses = graph.binary(op, node, part.apart or 0 if end is None else end)
    return graph.apply("cast", misses, dtype=float64)


def _conditions(demand: Demand, parts: Sequence[Demand]) -> list[Condition]:
    """What is printed of the parts that are not shown.  Raises NoSpelling."""
    found = [_of_numbers(part, [part]) for part in parts if part.node is not demand.node]
    if None in found or len(found) < len(parts):
        return [_of_numbers(demand, parts) or _condition(demand, parts)]
    return [one for one in found if one is not None]


def _of_numbers(demand: Demand, parts: Sequence[Demand]) -> Condition | None:
    """The same of places that are numbers and sizes, ``2 < n``; None for others."""
    numbers = numbers_of(demand.node)
    if numbers is None or demand.apart is not None:
        return None
    plain = [number for number in numbers if number.constant is not None]
    ends = sorted(plain, key=lambda number: number.constant or 0)
    others = [number for number in numbers if number not in plain]
    said = []
    for part in parts:
        low, high = part.low, part.high
        if low is not None:
            least = [one for one in (*ends[:1], *others) if not one.at_least(low, least_size=1)]
            said += [f"{low} <= {one}" for one in least]
        elif high is not None:
            most = [
                one for one in (*ends[-1:], *others) if not high.at_least(one + 1, least_size=1)
            ]
            said += [f"{one} < {high}" for one in most]
    text = " and ".join(said)
    return Condition("index", text, code=text) if text else None


def _condition(demand: Demand, parts: Sequence[Demand]) -> Condition:
    """What is printed of the ends that are not shown.  Raises NoSpelling."""
    size, ends = ramp(demand.node), [(part.low, part.high) for part in parts]
    if size is not None and demand.apart is None and all(low is None for low, _ in ends):
        text = f"{size} <= {ends[0][1]}"
        return Condition("index", text, code=text)
    said = spelled(moved(demand.node))
    if demand.apart is not None:
        code = f"{said.code} != {demand.apart}" if said.code else ""
        return Condition("index", f"no element of {said.text} is {demand.apart}", code=code)
    low = next((part.low for part in parts if part.low is not None), None)
    high = next((part.high for part in parts if part.high is not None), None)
    pieces = [] if low is None else [f"{low} <= {said.code}"]
    pieces += [] if high is None else [f"{said.code} < {high}"]
    code = pieces[0] if len(pieces) == 1 else " & ".join(f"({piece})" for piece in pieces)
    return Condition("index", _chain(said.text, low, high), code=code if said.code else "")


def _chain(text: str, low: Dim | None, high: Dim | None) -> str:
    return f"{'' if low is None else f'{low} <= '}{text}{'' if high is None else f' < {high}'}"


def _of_bits(demand: Demand) -> bool:
    """Is it that integers of 32 bits hold what is computed?"""
    return demand.high is not None and demand.high.constant == 2**31


def _said(demand: Demand) -> str:
    if demand.apart is not None:
        return f"that no divisor is {demand.apart}"
    return _chain("it" if _of_bits(demand) else "each place", demand.low, demand.high)


def _line(one: Demanded) -> str:
    return f" ({one.location})" if one.location is not None else ""


# -- what is known


def index_ranges(subject: Subject, declared: Sequence[Assumption]) -> list[Condition]:
    """The ranges that integer inputs are taken to lie in, for how they are used."""
    return [_of_labels(name, found) for name, found in _labels(subject, declared)]


def _of_labels(name: str, found: Labels) -> Condition:
    low = Dim.of(0) if found.counted else None
    code = _chain(name, low, found.size)
    if found.counted:
        code = f"(0 <= {name}) & ({name} < {found.size})"
    marks = [f"{name} == {mark}" for mark in found.marks]
    text = " or ".join([_chain(name, low, found.size), *marks])
    return Condition("index", text, code=" | ".join([f"({code})", *map("({})".format, marks)])
                     if marks else code)  # fmt: skip


def _labels(subject: Subject, declared: Sequence[Assumption]) -> Iterator[tuple[str, Labels]]:
    """Integer inputs of which nothing is declared, and what each is taken to be."""
    known = {assumption.name for assumption in declared if assumption.extent is not None}
    for name, use in sorted(subject.sampler.uses.items()):
        found = Labels(use.bounds[0]) if use.bounds else use.marked
        if found is not None and name not in known:
            yield name, found


def _taken(subject: Subject, declared: Sequence[Assumption]) -> Iterator[tuple[str, Dim]]:
    """Integer inputs of which nothing is declared, and the size that all of each are below."""
    for name, found in _labels(subject, declared):
        if found.counted and not found.marks:
            yield name, found.size


def _of_inputs(subject: Subject, declared: Sequence[Assumption]) -> Callable[[str], Ends]:
    """What is declared of integer inputs, or printed of them."""
    below = {one.name: one.extent for one in declared if one.extent is not None}
    below |= dict(_taken(subject, declared))
    found = {name: Ends((Dim.of(0),), (Dim.of(size) - 1,)) for name, size in below.items()}
    return lambda name: found.get(name, Ends())


def _decides(subject: Subject) -> Callable[[DimLike, str, DimLike], bool | None]:
    """Relations between sizes that hold for all that are at least 1, or as the case says."""
    given = [
        gap
        for one in subject.conditions
        if (gap := gap_of(Dim.of(one.left), one.relation, one.right)) is not None
    ]

    def decide(left: DimLike, relation: str, right: DimLike) -> bool | None:
        gap = gap_of(Dim.of(left), relation, right)
        if gap is None:
            return None
        return any((gap - one).at_least(0, least_size=1) for one in (Dim.of(0), *given)) or None

    return decide
