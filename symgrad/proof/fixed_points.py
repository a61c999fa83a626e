"""Backwards of fixed points, by the implicit function theorem.

In: cases whose forward ends in a step ``z = f(z, x)``; the step, traced with ``z`` as an unknown.
Out: a judgement of each gradient.

``[rule: fixed point]``: where ``z = f(z, x)`` and ``I - df/dz`` has an inverse, the gradient of
``x`` for a cotangent ``g`` is the vector-Jacobian product of ``f`` by ``x`` for the one ``u`` with
``u = g + u df/dz``.  So three things are shown, for free ``z``, ``x``, ``g`` and ``u``:

- the vector-Jacobian products of the step, as any derivative is;
- what backward returns is that by ``x``, for some ``u`` that it computes on the way;
- that ``u`` solves the equation: by itself; as ``A^-1 g``, where ``A u = u - u df/dz``; or as the
  last round of an iteration ``u <- g + u df/dz``, whose convergence is printed then.

What forward computed for ``f(z, x)`` is ``z`` there; where arithmetic tells what an input is then,
it is put for that.  That forward has converged, and that the
inverse exists, is printed.  Equal for almost all ``z`` and ``x`` might be nowhere equal at fixed
points, which are few: so the gradients are compared with numbers at some as well, which the step
is iterated to.  What is not shown is UNDECIDED: nothing is refuted here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from symgrad.autodiff.reverse import recorded_vjp
from symgrad.errors import SymgradError
from symgrad.ir.assume import Assumption
from symgrad.ir.function import AppliedRule, FunctionCase
from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.ir.rewrite import rewrite
from symgrad.ops.markers import without_markers
from symgrad.ops.orthogonal import FACTORS
from symgrad.ops.record import get
from symgrad.ops.spectral import VECTORS
from symgrad.proof.judge.decide import Judgement, judge
from symgrad.proof.oracle.subject import NoPointError, Subject, generic_numbers
from symgrad.proof.report.records import Condition
from symgrad.proof.report.verdict import Verdict

KIND = "fixed point"
"""The kind of the unknown that stands for ``z`` in a traced step."""

MOST_CANDIDATES = 8
POINTS, ROUNDS = 3, 200
_ITERATED = Condition("axiom", "the iteration of backward has converged")
OTHERS: tuple[Callable[[Any], Any], ...] = (
    lambda x: x / 4, lambda x: x / 16, abs, lambda x: abs(x) / 4,
)  # fmt: skip
"""What is done to a point where the step does not converge: with smaller numbers most do."""
_COMPARED = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
_AWAY_FROM_ZERO = {"div": 1, "pow": 0, "sign": 0}
"""Operations that are continuous where an argument is not 0."""
_JUMPING = frozenset(("atan2", "copysign", "fmod", "mod", *VECTORS, *FACTORS))
CLOSE, NEAR, EDGE = 1e-9, 1e-4, 1e-6
Array = np.ndarray[Any, Any]
_LETTERS = "abcdefgh"


def unknown_of(step: FunctionCase) -> Node | None:
    """The fixed point in a traced step; None in any other trace."""
    drawn = [node for node in ancestors(step.outputs) if node.op == "draw"]
    return next((node for node in drawn if node.attributes["kind"] == KIND), None)


def judged(
    ways: Sequence[FunctionCase], step: FunctionCase, declared: Sequence[Assumption], budget: int
) -> tuple[Subject, Mapping[str, Judgement]]:
    """The step as a subject, and the judgement of each gradient.

    ``ways``: the case; or what it is in each number of rounds, where a loop waits for a value.
    """
    found: dict[str, Judgement] = {}
    for case in ways:
        search = _Search(case, step, declared, budget)
        for name, one in search.run().items():
            known = found.get(name)
            if known is None or one.verdict > known.verdict:
                found[name] = one
            elif one.verdict is known.verdict:
                both = dict.fromkeys((*known.conditions, *one.conditions))
                found[name] = replace(known, conditions=tuple(both))
        if not all(one.verdict for one in found.values()):
            break
    return search.subject, found


@dataclass(frozen=True)
class _Pair:
    """Two values that are to be the same."""

    written: Node
    meant: Node


class _Search:
    def __init__(
        self, case: FunctionCase, step: FunctionCase, declared: Sequence[Assumption], budget: int
    ) -> None:
        self.case, self.declared, self.budget = case, declared, budget
        self.problem = _problem(case, step)
        self.graph = graph = Graph()
        inputs = {node.attributes["name"]: graph.input(node.attributes["name"], node.type)
                  for node in case.inputs}  # fmt: skip
        output, unknown = case.outputs[0], unknown_of(step)
        assert unknown is not None
        self.z = graph.input(_free("z", inputs), output.type)
        self.v = graph.input(_free("u", inputs), output.type)
        self.g = graph.input(_free("g", inputs), output.type)
        there = {node: inputs[node.attributes["name"]] for node in step.inputs} | {unknown: self.z}
        self.root = without_markers(graph, step.outputs, there)[step.outputs[0]]
        self.wrt = {one.input: inputs[one.input] for one in case.gradients}
        found = recorded_vjp([self.root], [self.v], [self.z, *self.wrt.values()], _no_rule)
        ends = [graph.lift(0.0, node) if one is None else one
                for node, one in zip([self.z, *self.wrt.values()], found, strict=True)]  # fmt: skip
        self.by_z, self.by = ends[0], dict(zip(self.wrt, ends[1:], strict=True))
        known = {node: inputs[node.attributes["name"]] for node in case.inputs}
        known[output] = self.z
        if case.cotangents[0] is not None:
            known[case.cotangents[0]] = self.g
        given = {one.input: one.node for one in case.gradients}
        nodes = without_markers(graph, [n for n in given.values() if n is not None], known)
        constant = {one.name for one in declared if one.kind == "constant"}
        self.written = {
            name: graph.lift(0.0, self.wrt[name]) if node is None else nodes[node]
            for name, node in given.items() if node is not None or name not in constant
        }  # fmt: skip
        self.solved = _solved(self.root, self.z)
        self.subject = self._subject(
            graph, [*inputs.values(), self.z], [(self.root, self.v)],
            {name: self.by[name] for name in self.written},
        )  # fmt: skip

    def _subject(
        self, graph: Graph, inputs: Sequence[Node], outputs: Sequence[tuple[Node, Node]],
        gradients: Mapping[str, Node],
    ) -> Subject:  # fmt: skip
        names = {node.attributes["name"] for node in inputs}
        facts = [one for one in self.declared if names.issuperset(one.inputs)]
        return Subject(
            graph, inputs, outputs, gradients, conditions=self.case.conditions, assumptions=facts
        )

    def run(self) -> dict[str, Judgement]:
        """A judgement of each gradient: all of them PROVED with one ``u``, or none."""
        if self.problem:
            return self._undecided(self.problem)
        if not self._ends_in_step():
            return self._undecided("forward does not end in the step that is declared")
        derived = judge(self.subject, budget=self.budget)
        if not all(one.verdict for one in derived.values()):
            return self._undecided("the derivative of the declared step was not proved")
        for u in self._candidates():
            found = self._with(u)
            if found is not None and not self._agrees(u, iterated=_ITERATED in found):
                return self._undecided(
                    "no fixed point was found at which backward is continuous, or numbers do not "
                    "agree there"
                )
            if found is not None:
                return {
                    name: replace(derived[name], conditions=(*derived[name].conditions, *found),
                                  method="implicit function theorem")
                    for name in self.written
                }  # fmt: skip
        return self._undecided(
            "no part of backward was shown to solve u = g + u df/dz, with the gradients that "
            "follow from it"
        )

    def _undecided(self, why: str) -> dict[str, Judgement]:
        reason = f"against the fixed point: {why}"
        return dict.fromkeys(self.written, Judgement(Verdict.UNDECIDED, reason=reason))

    def _ends_in_step(self) -> bool:
        """Is the last thing that forward computes the step, of something before it?"""
        graph, output = Graph(), self.case.outputs[0]
        new = without_markers(graph, [output])
        inputs = {node.attributes["name"]: node for node in graph.nodes if node.op == "input"}
        own = [node for node in ancestors([self.root]) if node.op == "input" and node != self.z]
        known = {node: inputs[node.label] for node in own if node.label in inputs}
        before = [one for one in reversed(ancestors([new[output]])) if one.type == output.type]
        return len(known) == len(own) and any(
            _same(rewrite(graph, [self.root], {**known, self.z: one})[self.root], new[output])
            for one in before[1 : 1 + 4 * MOST_CANDIDATES]
        )

    # -- which u

    def _candidates(self) -> Iterator[Node]:
        """What backward computes of the cotangent, of its type; then what divides by ``1 - df``."""
        depends = {self.g}
        order = ancestors(self.written.values())
        for node in order:
            if any(arg in depends for arg in node.args):
                depends.add(node)
        fitting = [node for node in reversed(order) if node in depends and node.type == self.z.type]
        yield from fitting[:MOST_CANDIDATES]
        if self.g not in fitting[:MOST_CANDIDATES]:
            yield self.g
        slope = rewrite(self.graph, [self.by_z], {self.v: self.graph.lift(1.0, self.v)})
        yield self.g / (1.0 - slope[self.by_z])

    def _with(self, u: Node) -> tuple[Condition, ...] | None:
        """What is printed where the gradients are those for ``u``, and it solves the equation."""
        inside = u in ancestors(self.written.values())
        pairs = [_Pair(node, self.by[name]) for name, node in self.written.items()]
        first = self._same(pairs, {u: self.v}) if inside else None
        if first is None:
            first = self._same([self._at(u, one) for one in pairs], {})
        found = None if first is None else self._solves(u)
        if first is None or found is None:
            return None
        return tuple(dict.fromkeys([*_converged(self.z), *first, *found]))

    def _at(self, u: Node, pair: _Pair) -> _Pair:
        return _Pair(pair.written, rewrite(self.graph, [pair.meant], {self.v: u})[pair.meant])

    def _solves(self, u: Node) -> tuple[Condition, ...] | None:
        """What is printed where ``u`` solves ``u = g + u df/dz``; None where that was not shown."""
        found = self._same([self._at(u, _Pair(u - self.g, self.by_z))], {})
        if found is not None:
            return found
        for inverse in _inverses(u, self.z):
            found = self._is_inverse(inverse, u)
            if found is not None:
                return found
        before = [one for one in reversed(ancestors([u])) if one.type == u.type and one is not u]
        for one in before[:MOST_CANDIDATES]:
            found = self._same([_Pair(u, self.g + self.by_z)], {one: self.v})
            if found is not None:
                return (_ITERATED, *found)
        return None

    def _is_inverse(self, inverse: Node, u: Node) -> tuple[Condition, ...] | None:
        """What is printed where ``u`` is ``A^-1 g``, and ``A u = u - u df/dz``."""
        for turned in (False, True):
            matrix = self.graph.input(f"inverse {inverse.index} {turned}", inverse.type)
            product = _times(inverse.args[0], self.v, turned)
            first = self._same([_Pair(product, self.v - self.by_z)], {})
            second = self._same([_Pair(u, _times(matrix, self.g, turned))], {inverse: matrix})
            if first is not None and second is not None:
                return (*first, *second)
        return None

    # -- numbers

    def _agrees(self, u: Node, *, iterated: bool) -> bool:
        """Are the gradients those at some fixed points, and continuous there?

        ``iterated``: ``u`` is what an iteration of backward converges to.
        """
        roots = [*self.written.values()]
        put = rewrite(self.graph, roots, {u: self.v} if iterated else {})
        written = [put[node] for node in roots]
        seen = 0
        for number, sizes in enumerate(islice(self.subject.sampler.size_choices(), 2 * POINTS)):
            at = self.subject.draw(sizes, number)
            if at is None or seen == POINTS:
                continue
            for change in (lambda x: x, *(() if self.declared else OTHERS)):
                feeds = {name: change(array) for name, array in at.point.doubles().items()}
                feeds[self.g.label] = generic_numbers("g", number, feeds[self.z.label].shape) / 512
                found = self._compared(written, feeds, sizes)
                if found is not None:
                    if not found:
                        return False
                    seen += 1
                    break
        return seen > 0

    def _compared(
        self, written: Sequence[Node], feeds: dict[str, Array], sizes: Mapping[str, int]
    ) -> bool | None:  # fmt: skip
        """Is the gradient that at the fixed point that the step converges to?

        None where it converges to none, or to one where something jumps.
        """
        for _ in range(ROUNDS):
            before = feeds[self.z.label]
            (feeds[self.z.label],) = _values([self.root], feeds, sizes)
        gap = abs(feeds[self.z.label] - before)
        if not np.all(gap <= CLOSE * (1 + abs(before))):
            return None
        shape = before.shape
        rows = []
        for one in np.eye(before.size):
            rows.append(_values([self.by_z], {**feeds, self.v.label: one.reshape(shape)}, sizes)[0])
        jacobian = np.array(rows, dtype=float).reshape(before.size, before.size)
        try:
            u = np.linalg.solve(np.eye(before.size) - jacobian.T, feeds[self.g.label].ravel())
        except np.linalg.LinAlgError:
            return None
        known = {**feeds, self.v.label: u.reshape(shape)}
        meant = [self.by[name] for name in self.written]
        if not _is_continuous([*written, *meant], known, sizes):
            return None
        both = zip(_values(written, known, sizes), _values(meant, known, sizes), strict=True)
        return all(np.allclose(a, b, rtol=NEAR, atol=NEAR) for a, b in both)

    # -- equal as functions of everything

    def _same(
        self, pairs: Sequence[_Pair], put: Mapping[Node, Node]
    ) -> tuple[Condition, ...] | None:  # fmt: skip
        """What is printed where the values of each pair are the same; None where they are not.

        ``put``: nodes that others stand for; ``z`` stands for the step.
        """
        graph = Graph()
        z = graph.input(self.z.label, self.z.type)
        known = {self.root: z, self.z: z}
        if self.solved is not None:
            leaf, value = self.solved
            known[leaf] = rewrite(graph, [value], known)[value]
        known = rewrite(graph, put.values(), known)
        known |= {old: known[new] for old, new in put.items()}
        new = rewrite(graph, [n for one in pairs for n in (one.written, one.meant)], known)
        outputs, gradients = [], {}
        for number, one in enumerate(pairs):
            weight = graph.input(f"as meant {number}", new[one.meant].type)
            cotangent = graph.input(f"cotangent {number}", new[one.meant].type)
            outputs.append((weight * new[one.meant], cotangent))
            gradients[weight.attributes["name"]] = cotangent * new[one.written]
        cotangents = {cotangent for _, cotangent in outputs}
        given = ancestors([*(node for node, _ in outputs), *gradients.values()])
        inputs = [node for node in given if node.op == "input" and node not in cotangents]
        subject = self._subject(graph, inputs, outputs, gradients)
        try:
            subject.settle()
            found = judge(subject, budget=self.budget, until_refuted=True)
        except (SymgradError, NoPointError, ValueError):
            return None
        if len(found) < len(pairs) or not all(one.verdict for one in found.values()):
            return None
        said = dict.fromkeys(c for one in found.values() for c in one.conditions)
        spoilt = any(
            word in str(one) for one in said for word in ("as meant", "cotangent", "inverse ")
        )
        return None if spoilt else tuple(said)


def _problem(case: FunctionCase, step: FunctionCase) -> str:
    """Why a case cannot be judged in this way; empty where it can."""
    if len(case.outputs) != 1 or case.cotangents[0] is None or len(step.outputs) != 1:
        return "forward has to have one output"
    if step.outputs[0].type != case.outputs[0].type:
        return f"the step gives {step.outputs[0].type}, forward {case.outputs[0].type}"
    if any(one.problem is not None for one in case.gradients):
        return "a gradient does not fit its input"
    if any(one.op == "draw" for one in ancestors(case.outputs)):
        return "forward draws random numbers"
    if any(one.op == "detach" for one in ancestors(step.outputs)):
        return "the step is cut off from differentiation"
    return "relations are stated" if case.relations else ""


def _values(
    nodes: Sequence[Node], feeds: Mapping[str, Array], sizes: Mapping[str, int]
) -> list[Any]:
    """Nodes in doubles, whatever their floats are."""
    values: dict[Node, Any] = {}

    def size(dim: Any) -> int:
        return dim if isinstance(dim, int) else int(dim.at(sizes))

    with np.errstate(all="ignore"):
        for node in ancestors(nodes):
            if node.op == "input":
                values[node] = feeds[node.label]
            else:
                args = [values[arg] for arg in node.args]
                value = get(node.op).numpy(*args, size=size, **node.attributes)
                values[node] = np.asarray(value, dtype=float) if node.dtype.is_float else value
    return [values[node] for node in nodes]


def _is_continuous(
    nodes: Sequence[Node], feeds: Mapping[str, Array], sizes: Mapping[str, int]
) -> bool:
    """Is all that is computed continuous there?

    Then what is equal almost everywhere around the point is equal at it.
    """
    for node in ancestors(nodes):
        if not any(arg.dtype.is_float for arg in node.args):
            continue
        value, *args = _values([node, *node.args], feeds, sizes)
        if node.op in _COMPARED:
            far = bool(np.all(abs(args[0] - args[1]) > EDGE))
        elif node.op in _AWAY_FROM_ZERO:
            far = bool(np.all(abs(args[_AWAY_FROM_ZERO[node.op]]) > EDGE))
        else:
            far = get(node.op).vjp is not None and node.op not in _JUMPING and node.dtype.is_float
        if not far or not np.all(np.isfinite(value)):
            return False
    return True


def _converged(z: Node) -> Iterator[Condition]:
    yield Condition("axiom", f"forward has converged ({z.label} = f({z.label}))")
    yield Condition("axiom", "I - df/dz has an inverse there")


def _solved(root: Node, z: Node) -> tuple[Node, Node] | None:
    """An input of the step, and what it is where ``z`` is the step, if arithmetic tells."""
    order = ancestors([root])
    for leaf in order:
        if leaf.op != "input" or leaf is z or leaf.type != z.type:
            continue
        above = {leaf}
        for node in order:
            if any(arg in above for arg in node.args):
                above.add(node)
        value: Node | None = z
        node = root
        while node is not leaf and value is not None:
            places = [place for place, arg in enumerate(node.args) if arg in above]
            if len(places) != 1 or node.op not in _UNDONE or node.args[places[0]].type != z.type:
                value = None
                continue
            other = node.args[1 - places[0]] if len(node.args) > 1 else node
            value = _UNDONE[node.op][places[0]](value, other)
            node = node.args[places[0]]
        if value is not None:
            return leaf, value
    return None


_UNDONE: dict[str, Sequence[Callable[[Node, Node], Node]]] = {
    "add": (lambda v, b: v - b, lambda v, a: v - a),
    "sub": (lambda v, b: v + b, lambda v, a: a - v),
    "mul": (lambda v, b: v / b, lambda v, a: v / a),
    "div": (lambda v, b: v * b, lambda v, a: a / v),
    "neg": (lambda v, _: -v,),
}
"""What an argument is, by the value of an operation and its other argument."""


def _inverses(u: Node, z: Node) -> list[Node]:
    """The inverses of matrices as large as the last axis of z, below ``u``."""
    found = [node for node in ancestors([u]) if node.op == "inverse" and z.rank]
    return [
        node for node in found
        if node.shape[-1] == z.shape[-1]
        and (node.rank == 2 or node.shape[:-2] == z.shape[:-1])
    ][:MOST_CANDIDATES]  # fmt: skip


def _times(matrix: Node, vector: Node, turned: bool) -> Node:
    """The product of a matrix, transposed where it is ``turned``, and the last axis of a vector."""
    batch = _LETTERS[: vector.rank - 1]
    own = "" if matrix.rank == 2 else batch
    axes = "ji" if turned else "ij"
    return matrix.graph.apply("einsum", matrix, vector, spec=f"{own}{axes},{batch}j->{batch}i")


def _same(left: Node, right: Node) -> bool:
    """Are two nodes of a graph built alike?"""
    known: set[tuple[Node, Node]] = set()
    todo = [(left, right)]
    while todo:
        one = todo.pop()
        first, second = one
        if first is second or one in known:
            continue
        alike = first.op == second.op and first.type == second.type
        if not alike or first.attributes != second.attributes:
            return False
        known.add(one)
        todo += zip(first.args, second.args, strict=True)
    return True


def _free(name: str, taken: Iterable[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _no_rule(number: int) -> AppliedRule:
    raise SymgradError("a Function is applied in the step")
