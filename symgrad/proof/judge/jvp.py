"""Is a hand-written ``jvp`` the derivative of forward along the tangents, for all shapes?

In: the traces of a Function of inputs and tangents, whose outputs are those of forward and the
tangents that ``jvp`` gives.  Out: a ``Finding``.

Built of the tangents by linear ops alone, ``jvp(x, t)`` is ``J(x) t`` if, for every cotangent w,
the gradient of ``<w, jvp(x, t)>`` by t is ``w J(x)``.  It is judged as a hand-written gradient is,
against forward itself; and ``jvp(x, 0)``, by which ops that are undefined somewhere are seen, is to
be zero.

Any other may jump where its derivative is that of forward (``floor(t)``), or have none where it is
right (``t.abs() * t.sign()``).  Its value is judged: with a derived ``w J(x)``, which is proved to
be the gradient of forward, ``<w, jvp(x, t)> = <w J(x), t>``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from symgrad.autodiff import adjoints
from symgrad.errors import SymgradError
from symgrad.ir.assume import Assumption, narrowed
from symgrad.ir.function import FunctionCase, FunctionGraphs, SizeCondition
from symgrad.ir.graph import Graph, Node, ancestors
from symgrad.ir.rewrite import rewrite
from symgrad.ir.types import TensorType
from symgrad.proof.judge.decide import Judgement, judge
from symgrad.proof.judge.demands import may_raise, where_it_runs
from symgrad.proof.judge.opinions import Opinions
from symgrad.proof.judge.protocol import built_linearly
from symgrad.proof.oracle.refute import Counterexample, input_values
from symgrad.proof.oracle.stated import moved
from symgrad.proof.oracle.subject import Subject
from symgrad.proof.report.records import Finding
from symgrad.proof.report.rendering import worded
from symgrad.proof.report.verdict import Verdict

NAME = "jvp"
PREFIX = "tangent_"
_SCALE, _PAIRED = "tangent scale", "paired tangents"


def judge_jvp(
    graphs: FunctionGraphs, declared: Sequence[Assumption],
    runs: Collection[SizeCondition | Assumption | str], *, budget: int,
    opinions: Opinions | None = None,
) -> Finding:  # fmt: skip
    """The finding on ``jvp``, the worst of all cases of sizes; ``opinions`` hear what is proved.

    ``runs``: what is printed, or always holds, where forward does not raise.
    """
    cases = [where_it_runs(case, runs) for case in graphs.cases]
    found = [_judge_case(case, narrowed(declared, case.bounds), budget, opinions) for case in cases]
    return max(found, key=lambda finding: finding.verdict)


def failed(error: SymgradError) -> Finding:
    """The finding where ``jvp`` could not be traced, or returns no tangents of the outputs."""
    where = f" ({error.location})" if error.location else ""
    if getattr(error, "undecided", False):
        return Finding(NAME, Verdict.UNDECIDED, f"it cannot be traced{where}: {error.what}")
    return Finding(NAME, Verdict.REFUTED, f"it fails{where}: {error.what}")


def _judge_case(
    case: FunctionCase, declared: Sequence[Assumption], budget: int, opinions: Opinions | None
) -> Finding:
    try:
        found = _found(case, declared, budget, opinions)
    except SymgradError as error:
        return Finding(NAME, Verdict.UNDECIDED, error.what)
    if found.verdict is Verdict.REFUTED and may_raise(case):
        return Finding(NAME, Verdict.UNDECIDED, f"{found.text}; forward may raise there")
    return found


def _found(
    case: FunctionCase, declared: Sequence[Assumption], budget: int, opinions: Opinions | None
) -> Finding:
    proved: dict[str, Judgement] = {}
    undecided: list[str] = []
    conditions: dict[str, None] = {}
    _, _, pushed = _parts(case)
    tangents = {n for n in case.inputs if str(n.attributes["name"]).startswith(PREFIX)}
    linear = built_linearly(ancestors(pushed), tangents, pushed)
    for make in (_slope, _at_zero) if linear else (_at_zero, _derived, _paired):
        subject = make(case, declared)
        for name, one in judge(subject, budget=budget).items():
            proved[name] = one
            conditions.update((worded(condition), None) for condition in one.conditions)
            if one.verdict is Verdict.REFUTED:
                return Finding(NAME, Verdict.REFUTED, _wrong(subject, name, one.counterexample))
            if one.verdict is Verdict.UNDECIDED:
                undecided.append(f"{name}: {one.reason}")
    if undecided:
        return Finding(NAME, Verdict.UNDECIDED, undecided[0])
    if opinions is not None:
        subject, pairs, names = _pushed(case, declared)
        sizes = " and ".join(map(str, case.conditions))
        where = f" ({sizes})" if sizes else ""
        opinions.on_tangents(subject, pairs, names, proved, where)
    return Finding(NAME, Verdict.PROVED, "; ".join(conditions), limits=bool(conditions))


def _wrong(subject: Subject, name: str, found: Counterexample | None) -> str:
    if name == _SCALE:
        said = "for tangents of 0 it returns tangents that are not 0"
    elif name == _PAIRED:
        said = "it is not the derivative along the tangents"
    else:
        said = f"it is not the derivative along {PREFIX}{name}"
    if found is None:
        return said
    if name == _PAIRED:
        said = f"{said}: times the cotangents it is {found.true_text} instead of {found.hand_text}"
    elif name != _SCALE:
        said = (
            f"{said}: the factor of {PREFIX}{found.element} is {found.hand_text} instead of "
            f"{found.true_text}"
        )
    values = input_values(subject, found.point)
    shown = [f"{key} = {_list(values[key])}" for key in values if key not in (_SCALE, _PAIRED)]
    sizes = [f"{key} = {size}" for key, size in found.point.sizes.items()]
    return f"{said}, at {', '.join([*sizes, *shown])}"


def _list(values: Sequence[object]) -> str:
    texts = [str(value) for value in values]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


# -- what is judged


@dataclass(frozen=True)
class _Copy:
    """A case in a graph of its own.

    ``by_name``: the inputs; ``along``: the tangent of each that has one.  ``forward``: the outputs
    with their cotangents; ``pushed``: the tangents that jvp gives, with the same.
    """

    graph: Graph
    by_name: dict[str, Node]
    along: dict[str, Node]
    forward: list[tuple[Node, Node]]
    pushed: list[tuple[Node, Node]]

    def derivative(self, pairs: Sequence[tuple[Node, Node]], wrt: Sequence[Node]) -> list[Node]:
        """The derived gradient of pairs of a node and its weight by some nodes."""
        found = adjoints(list(pairs), ancestors([node for node, _ in pairs]))
        zeros = (self.graph.lift(0.0, node) for node in wrt)
        return [found.get(node, zero) for node, zero in zip(wrt, zeros, strict=True)]


def _copied(case: FunctionCase) -> _Copy:
    outputs, cotangents, pushed = _parts(case)
    graph = Graph()
    new = rewrite(graph, [*case.inputs, *outputs, *cotangents, *pushed])
    by_name = {str(node.attributes["name"]): new[node] for node in case.inputs}
    along = {name: by_name[PREFIX + name] for name in by_name if PREFIX + name in by_name}
    forward, found = (
        [(new[node], new[weight]) for node, weight in zip(nodes, cotangents, strict=True)]
        for nodes in (outputs, pushed)
    )
    return _Copy(graph, by_name, along, forward, found)


def _parts(case: FunctionCase) -> tuple[list[Node], list[Node], list[Node]]:
    """The outputs of forward, their cotangents, and the tangents that jvp gives."""
    count = len(case.outputs) // 2
    cotangents = [node for node in case.cotangents[:count] if node is not None]
    return list(case.outputs[:count]), cotangents, list(case.outputs[count:])


def _slope(case: FunctionCase, declared: Sequence[Assumption]) -> Subject:
    """Forward, with the gradient of ``<w, jvp(x, t)>`` by t as if it were backward's."""
    own = _copied(case)
    found = own.derivative(own.pushed, [*own.along.values()])
    gradients = dict(zip(own.along, found, strict=True))
    inputs = [*own.by_name.values()]
    return _subject(case, own.graph, inputs, own.forward, gradients, declared)


def _derived(case: FunctionCase, declared: Sequence[Assumption]) -> Subject:
    """Forward, with its derived gradient as if it were backward's."""
    own = _copied(case)
    found = own.derivative(own.forward, [own.by_name[name] for name in own.along])
    gradients = dict(zip(own.along, found, strict=True))
    inputs = [node for name, node in own.by_name.items() if not name.startswith(PREFIX)]
    return _subject(case, own.graph, inputs, own.forward, gradients, declared)


def _paired(case: FunctionCase, declared: Sequence[Assumption]) -> Subject:
    """A multiple of ``<w, jvp(x, t)>``, whose derivative by the factor is ``<w J(x), t>``."""
    own = _copied(case)
    scale = own.graph.input(_PAIRED, TensorType(own.pushed[0][0].dtype))
    total = own.graph.lift(0.0, scale)
    found = own.derivative(own.forward, [own.by_name[name] for name in own.along])
    for gradient, tangent in zip(found, own.along.values(), strict=True):
        product = gradient * _as(tangent, gradient)
        axes = tuple(range(len(product.shape)))
        total = total + _as(own.graph.apply("sum", product, axes=axes), scale)
    inputs, pairs = [*own.by_name.values(), scale], _multiple(scale, own.pushed)
    return _subject(case, own.graph, inputs, pairs, {_PAIRED: total}, declared)


def _multiple(scale: Node, pairs: Sequence[tuple[Node, Node]]) -> list[tuple[Node, Node]]:
    """Nodes times a factor, with their weights."""
    return [
        (scale.graph.expand(_as(scale, node), node.shape) * node, weight) for node, weight in pairs
    ]


def _pushed(
    case: FunctionCase, declared: Sequence[Assumption]
) -> tuple[Subject, list[tuple[Node, Node]], dict[str, str]]:
    """Forward beside what jvp gives: that with its weights, and the tangent of each input."""
    own = _copied(case)
    given = {f"{NAME} {place}": node for place, (node, _) in enumerate(own.pushed)}
    inputs = [*own.by_name.values()]
    subject = _subject(case, own.graph, inputs, own.forward, given, declared)
    return subject, own.pushed, {name: PREFIX + name for name in own.along}


def _at_zero(case: FunctionCase, declared: Sequence[Assumption]) -> Subject:
    """A multiple of ``jvp(x, 0)``, whose derivative by the factor is to be zero."""
    _, cotangents, pushed = _parts(case)
    graph = Graph()
    new = rewrite(graph, [*case.inputs, *cotangents])
    by_name = {node.attributes["name"]: new[node] for node in case.inputs}
    tangents = [name for name in by_name if name.startswith(PREFIX)]
    weights = [new[node] for node in cotangents]
    still = {
        node: graph.lift(0.0, new[node]) if node.attributes["name"] in tangents else new[node]
        for node in case.inputs
    }
    made = rewrite(graph, pushed, still)
    values = [made[node] for node in pushed]
    scale = graph.input(_SCALE, TensorType(values[0].dtype))
    pairs = _multiple(scale, list(zip(values, weights, strict=True)))
    inputs = [*(by_name[name] for name in by_name if name not in tangents), scale]
    gradients = {_SCALE: graph.lift(0.0, scale)}
    return _subject(case, graph, inputs, pairs, gradients, declared)


def _as(scale: Node, value: Node) -> Node:
    return scale if scale.dtype == value.dtype else scale.graph.apply(
        "cast", scale, dtype=value.dtype
    )  # fmt: skip


def _subject(
    case: FunctionCase, graph: Graph, inputs: Sequence[Node],
    outputs: Sequence[tuple[Node, Node]], gradients: Mapping[str, Node],
    declared: Sequence[Assumption],
) -> Subject:  # fmt: skip
    known = {node.attributes["name"] for node in inputs}
    assumptions = [one for one in declared if known.issuperset(one.inputs)]
    return Subject(
        graph,
        inputs,
        outputs,
        gradients,
        conditions=case.conditions,
        assumptions=assumptions,
        relations=moved(case.relations, graph, None),
    )
