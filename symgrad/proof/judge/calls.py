"""Two calls of one Function beside each other: does one see the other, do they compute the same?

In: ``OtherCall`` records.  Out: findings, and conditions for the report.

A tensor of one call in another one is state, and so is what another call changes.  A gradient that
is another one then is judged for its own forward; it is refuted by the order of the calls.  Where
the other call, with its numbers put for sizes, computes something else than the first, the program
asks what a trace does not see: which object a tensor is, of which dtype, whether a size is an int.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from symgrad.errors import SymgradError, is_limit
from symgrad.ir import dtype as dtypes
from symgrad.ir.dim import Atom, Dim, Size
from symgrad.ir.dtype import DType
from symgrad.ir.function import FunctionCase, FunctionGraphs, OtherCall
from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.ir.rewrite import rewrite
from symgrad.ir.types import TensorType
from symgrad.proof.judge.protocol import case_key, digest
from symgrad.proof.oracle.numbers import Array, Double
from symgrad.proof.oracle.values import DomainError, Evaluator
from symgrad.proof.report.records import Condition, Finding
from symgrad.proof.report.verdict import Verdict

ALIKE = frozenset(("alike",))
IDENTITY = frozenset(("identity",))
DEFAULT = frozenset(("default",))
NARROW = frozenset(("narrow",))
EARLIER = frozenset(("earlier",))
STATE = "calls share no state"
REAL = "the same in a real call"
_ORDER = (
    "in the order forward(A), forward(B), backward(A), backward(A) again with other cotangents, "
    "backward(B)"
)
_CLOSE = 1e-7
_PACKED = Condition(
    "asked", "saved_tensors has the tensors that were saved, which backward asks: hooks of saved "
    "tensors (torch.utils.checkpoint, save_on_cpu) put other objects there",
)  # fmt: skip
Trace = Callable[[frozenset[str]], Sequence[OtherCall]]
JudgeOther = Callable[[FunctionCase], Finding | None]


@dataclass
class Calls:
    """What was found of the calls of a Function.

    ``wide``: it does something else for float64, which is to be judged.
    """

    findings: list[Finding] = field(default_factory=list)
    conditions: list[Condition] = field(default_factory=list)
    wide: bool = False


def judge_calls(graphs: FunctionGraphs, trace: Trace, judge_other: JudgeOther) -> Calls:
    """Judge the calls of a Function.  ``trace``: makes them with some aspects of another call.

    ``judge_other``: judges a call of its own; None where that is proved.
    """
    found = Calls()
    if len(graphs.traces) > len(graphs.cases):
        judge_other = _on_a_way(judge_other)
    observed = any(case.observed for case in graphs.cases)
    if observed or any(case.state for case in graphs.cases):
        leaks = [
            _state(case, call, judge_other)
            for case, call in zip(graphs.traces, trace(ALIKE), strict=False)
            if call.leaked is not None
        ]
        found.findings = [one for one in leaks[:1] if one is not None]
        if observed or found.findings:
            return found
    calls = trace(frozenset(("dtype", "same")))
    cases = {(case_key(case), case.chosen): case for case in graphs.traces}
    state = _worst(
        [*(_after(call, judge_other) for call in trace(EARLIER)),
         *(_state(cases[case_key(call.case), call.case.chosen], call, judge_other)
           for call in calls)]
    )  # fmt: skip
    if state is not None:
        found.findings = [state]
        return found
    found.conditions += _identities(trace(IDENTITY))
    found.conditions += _defaults(trace(DEFAULT))
    found.conditions += _narrow(trace(NARROW))
    if not any(map(_differs, calls)):
        return found
    for aspects in (frozenset[str](), frozenset(("same",)), frozenset(("dtype",))):
        different = [one for one in trace(aspects) if _differs(one)]
        if not different:
            continue
        if not aspects:
            found.findings = [_real(different[0], judge_other)]
            return found
        found.wide = found.wide or "dtype" in aspects
        if "same" in aspects:
            more = _apart(different)
            found.conditions += [one for one in more if one not in found.conditions]
    if not found.wide and not found.conditions:
        found.findings = [_real(next(filter(_differs, calls)), judge_other)]
    return found


def _on_a_way(judge_other: JudgeOther) -> JudgeOther:
    """What a way gives is wrong only where it is taken, which is not asked."""

    def judge(case: FunctionCase) -> Finding | None:
        found = judge_other(case)
        return found and replace(found, verdict=Verdict.UNDECIDED, counterexample=None)

    return judge


def _apart(calls: Iterable[OtherCall]) -> list[Condition]:
    """It looks at which object a tensor is."""
    groups = dict.fromkeys(
        tuple(_called(call.case, name) for name in group) for call in calls for group in call.same
    )
    return [
        Condition("asked", f"{' and '.join(group)} are not the same tensor, which forward or "
                           "backward asks: they do something else then")
        for group in groups
    ]  # fmt: skip


def _called(case: FunctionCase, role: str) -> str:
    """What the report calls a tensor of a call."""
    kind, _, number = role.rpartition(" ")
    if kind == "output":
        return case.output_names[int(number)]
    node = case.cotangents[int(number)] if kind == "cotangent" else None
    return role if node is None else node.label


def _narrow(calls: Iterable[OtherCall]) -> list[Condition]:
    """What is printed of dtypes that are not judged, for which the program asks.

    Forward may not accept them: nothing is printed of it then.
    """
    asked = [
        call
        for call in calls
        if call.other is not None and (call.other.problem is not None or _differs(call))
    ]
    kinds = dict.fromkeys(call.dtype for call in asked if not call.unlike)
    said = []
    if kinds:
        said = [
            f"no float is a {' or '.join(kinds)}, for which forward or backward does something else"
        ]
    if any(call.unlike for call in asked):
        said.append("all floats have one dtype, else forward or backward does something else")
    return [Condition("asked", one) for one in said]


def _identities(calls: Iterable[OtherCall]) -> list[Condition]:
    """What is printed of tensors that are one tensor; the ways with the fewest come first."""
    found: list[OtherCall] = []
    hooked: list[OtherCall] = []
    for call in calls:
        if call.hooked:
            hooked.append(call)
            continue
        finer = any(all(_within(group, call.same) for group in one.same) for one in found)
        if not finer and _differs(call):
            found.append(call)
    return [*([_PACKED] if any(map(_asks_which, hooked)) else ()), *_apart(found)]


def _defaults(calls: Iterable[OtherCall]) -> list[Condition]:
    """What is printed where the program does something else with the other default dtype."""
    kinds = dict.fromkeys(call.dtype for call in calls if _differs(call))
    return [
        Condition("asked", f"the default dtype is {kind}, as when it was judged") for kind in kinds
    ]


def _asks_which(call: OtherCall) -> bool:
    """Does the program do something else, or what cannot be told, with other saved objects?"""
    other = call.other
    if other is None or other.problem is not None or len(other.observed) > len(call.case.observed):
        return True
    return _differs(call)


def _within(group: tuple[str, ...], groups: Iterable[tuple[str, ...]]) -> bool:
    return any(set(group) <= set(other) for other in groups)


def _real(
    call: OtherCall, judge_other: Callable[[FunctionCase], Finding | None]
) -> Finding:  # fmt: skip
    """A call with numbers for sizes, which does something else than the trace says."""
    at = ", ".join(f"{name} = {number}" for name, number in call.sizes.items())
    said = f"it asks what a trace cannot tell: where sizes are integers ({at}), it does otherwise"
    assert call.other is not None
    wrong = judge_other(call.other)
    if wrong is not None and wrong.verdict is Verdict.REFUTED:
        return Finding(REAL, Verdict.REFUTED, f"{said}, and {wrong.text}", wrong.counterexample)
    return Finding(REAL, Verdict.UNDECIDED, said)


# -- state


def _worst(findings: Sequence[Finding | None]) -> Finding | None:
    """The first that is refuted, else the first; None for none."""
    known = [one for one in findings if one is not None]
    return min(known, key=lambda one: one.verdict is not Verdict.REFUTED, default=None)


def _state(alone: FunctionCase, call: OtherCall, judge_other: JudgeOther) -> Finding | None:
    """What one call sees of another one; None for nothing."""
    said = ""
    if call.leaked is not None:
        where = f" ({call.leaked.location})" if call.leaked.location else ""
        said = f"a tensor of one call is used in another one{where}"
    elif call.case.problem is not None:
        if is_limit(call.case.problem):
            return Finding(STATE, Verdict.UNDECIDED, call.case.problem.what)
        said = f"backward fails after another forward: {call.case.problem.what}"
    elif (other := _otherwise(alone, call.case, _ORDER, judge_other)) is not None:
        return replace(other, counterexample=None)  # not one of a call alone
    elif "ctx" in call.case.written and "ctx" not in alone.written:
        said = "a second backward with other cotangents does not give their gradients"
    elif call.other is not None and _foreign(call.other):
        return Finding(STATE, Verdict.UNDECIDED, "a size of one call is used in another one")
    return Finding(STATE, Verdict.REFUTED, f"{said}, {_ORDER}") if said else None


def _after(call: OtherCall, judge_other: JudgeOther) -> Finding | None:
    """What a call does otherwise after one of other arguments; None for nothing."""
    assert call.alone is not None
    if call.case.problem is not None:
        said = f"it fails {call.earlier}: {call.case.problem.what}"
        return Finding(STATE, Verdict.UNDECIDED, said)
    found = _otherwise(call.alone, call.case, call.earlier, judge_other)
    if found is None or found.counterexample is None:
        return found
    point = replace(found.counterexample, beside=call.given, between=call.between)
    return replace(found, counterexample=point)


def _otherwise(
    alone: FunctionCase, case: FunctionCase, when: str, judge_other: JudgeOther
) -> Finding | None:
    """What a call does otherwise beside another one, judged for its own forward."""
    forward = [digest(node) for node in alone.outputs] == [digest(node) for node in case.outputs]
    if forward and _digests(alone) == _digests(case):
        return None
    wrong = judge_other(case)
    if wrong is not None and wrong.verdict is Verdict.REFUTED:
        return Finding(STATE, Verdict.REFUTED, f"{when}, {wrong.text}", wrong.counterexample)
    if forward and wrong is None:
        return None
    what = "backward" if forward else "forward"
    return Finding(STATE, Verdict.UNDECIDED, f"{what} does something else {when}")


def _digests(case: FunctionCase) -> list[int | None]:
    return [digest(gradient.node) for gradient in case.gradients]


def _foreign(case: FunctionCase) -> bool:
    """Is a size a symbol, though all sizes of this call are numbers?"""
    return any(
        size.constant is None for node in ancestors(_roots(case)) for size in node.shape
    ) or any(node.op == "size" for node in ancestors(_roots(case)))


def _roots(case: FunctionCase) -> list[Node]:
    found = [gradient.node for gradient in case.gradients]
    return [*case.outputs, *(node for node in found if node is not None)]


# -- the same program?


def _differs(call: OtherCall) -> bool:
    """Does the other call compute something else than the first one does at its sizes?"""
    if call.other is None:
        return False
    if call.other.problem is None and _foreign(call.other):
        return True
    if call.other.problem is not None:
        return not is_limit(call.other.problem)
    if len(call.case.gradients) != len(call.other.gradients):
        return True
    results, others = _results(call.case, call.case), _results(call.other, call.case)
    if [one is None for one in results] != [one is None for one in others]:
        return True
    graph = Graph()
    sizes: dict[Atom, Dim] = {Size(name): Dim.of(one) for name, one in call.sizes.items()}
    roots = {name: group[0] for group in call.same for name in group}
    known = _common(graph, call, sizes, roots)
    try:
        first = _moved(graph, [one for one in results if one is not None], known[0], sizes)
        second = _moved(graph, [one for one in others if one is not None], known[1], {})
    except SymgradError:  # a shape that does not fit at these sizes
        return True
    pairs = [(one, two) for one, two in zip(first, second, strict=True) if one is not two]
    return bool(pairs) and not _alike_at_points(graph, pairs)


def _common(
    graph: Graph, call: OtherCall, sizes: Mapping[Atom, Dim], roots: Mapping[str, str]
) -> list[dict[Node, Node]]:
    """Inputs of a common graph, for the inputs and cotangents of each call."""
    assert call.other is not None
    found: list[dict[Node, Node]] = []
    for case, put in ((call.case, sizes), (call.other, {})):
        known: dict[Node, Node] = {}
        named = [(str(node.attributes["name"]), node) for node in case.inputs]
        named = [(roots.get(name, name), node) for name, node in named]
        given = [
            (f"cotangent {number}", node)
            for number, node in enumerate(case.cotangents) if node is not None
        ]  # fmt: skip
        named += [
            (roots.get(role, role), node) for role, node in given
            if not roots.get(role, "").startswith("output ") and node.op == "input"
        ]  # fmt: skip
        for name, node in named:
            type = TensorType(_wide(node.dtype), tuple(d.substitute(put) for d in node.shape))
            if name not in graph.inputs:
                graph.input(name, type)
            known[node] = graph.inputs[name]
        for role, node in given:
            root = roots.get(role, "")
            if root.startswith("output ") and node.op == "input":
                output = case.outputs[int(root.removeprefix("output "))]
                known[node] = _moved(graph, [output], known, put)[0]
        found.append(known)
    return found


def _results(case: FunctionCase, first: FunctionCase) -> list[Node | None]:
    """What is compared of a call: outputs, and gradients; as returned where the first's is wrong.

    At the sizes of the other call a wrong shape may be the right one.
    """
    pairs = zip(case.gradients, first.gradients, strict=True)
    return [*case.outputs, *(own.returned if wrong.problem else own.node for own, wrong in pairs)]


def _moved(
    graph: Graph, roots: Sequence[Node], known: Mapping[Node, Node], sizes: Mapping[Atom, Dim]
) -> list[Node]:
    """Nodes of a case in a common graph, as if all floats had 64 bits."""

    def rule(node: Node, args: Sequence[Node]) -> Node | None:
        if node.op == "cast" and node.dtype.is_float and args[0].dtype.is_float:
            return args[0]
        if node.op == "draw":
            name = f"draw {node.attributes['number']}"
            shape = tuple(size.substitute(sizes) for size in node.shape)
            type = TensorType(_wide(node.dtype), shape)
            return graph.inputs.get(name) or graph.input(name, type)
        if node.op == "size":
            return graph.size(node.attributes["dim"].substitute(sizes), _wide(node.dtype))
        dtype = node.attributes.get("dtype")
        if isinstance(dtype, DType) and dtype.is_float:
            return graph.apply(node.op, *args, **{**node.attributes, "dtype": _wide(dtype)})
        return None

    new = rewrite(graph, roots, known, rule, sizes=sizes, named=False)
    return [new[node] for node in roots]


def _wide(dtype: DType) -> DType:
    return dtypes.float64 if dtype.is_float else dtype


def _alike_at_points(graph: Graph, pairs: Sequence[tuple[Node, Node]]) -> bool:
    """Do both have the same values at some points?"""
    evaluator = Evaluator([node for pair in pairs for node in pair])
    for seed in range(3):
        feeds = {
            name: _values(np.random.default_rng([seed, number]), node, signed=seed == 2)
            for number, (name, node) in enumerate(graph.inputs.items())
        }
        try:
            values = evaluator.run(Double(), feeds, {})
        except DomainError:
            continue
        if not all(_close(values[one], values[two]) for one, two in pairs):
            return False
    return True


def _values(random: np.random.Generator, node: Node, *, signed: bool) -> Array:
    shape = tuple(int(size.constant or 0) for size in node.shape)
    if node.dtype.is_float:
        return random.uniform(-2.0 if signed else 0.2, 0.9, shape)
    return np.asarray(random.integers(0, 2, shape), dtype=str(node.dtype))


def _close(one: Any, two: Any) -> bool:
    left, right = np.asarray(one, float), np.asarray(two, float)
    return left.shape == right.shape and bool(
        np.allclose(left, right, rtol=_CLOSE, atol=_CLOSE, equal_nan=True)
    )
