"""The backward of the backward: does what was saved keep its dependence on the inputs?

In: a ``Subject`` whose gradients are the hand-written ones.  Out: a ``Finding``.
Imports: ``symgrad.errors``, ``symgrad.ir``, ``symgrad.proof``: ``adjoints``, ``decide``,
``report``, ``subject``, ``verdict``.

Differentiating a backward again, PyTorch follows saved inputs and saved outputs back to the
inputs; an intermediate that forward computed and saved is a constant to it.  The second
derivative that this gives is judged like a hand-written gradient, the forward being the backward.
"""

from __future__ import annotations

from collections.abc import Sequence

from symgrad.ir.graph import Node, ancestors
from symgrad.proof.adjoints import reverse
from symgrad.proof.decide import judge
from symgrad.proof.rebuild import zero_like
from symgrad.proof.refute import Counterexample
from symgrad.proof.report import Finding
from symgrad.proof.subject import Subject
from symgrad.proof.verdict import Verdict, worst

NAME = "second order"


def second_order(subject: Subject, *, budget: int, cut: str = "") -> Finding:
    """Judge the derivative of the backward by the inputs and by the cotangents.

    ``cut``: how backward cuts values off from differentiation, where it does; what PyTorch then
    differentiates is not what is written, and nothing is decided.
    """
    if cut:
        return Finding(NAME, Verdict.UNDECIDED, f"{cut}: some dependence may be lost")
    lost = lost_nodes(subject)
    if not lost:
        said = "nothing that backward reads has lost its dependence on the inputs"
        return Finding(NAME, Verdict.PROVED, said)
    judged = judge(_twice(subject, lost), budget=budget)
    verdict = worst(judgement.verdict for judgement in judged.values())
    if verdict is Verdict.PROVED:
        return Finding(NAME, Verdict.PROVED)
    names = ", ".join(f"`{node.label}`" for node in lost)
    for name, judgement in judged.items():
        if judgement.verdict is not verdict:
            continue
        if verdict is Verdict.UNDECIDED:
            return Finding(NAME, verdict, f"by {name}: {judgement.reason}")
        said = (
            f"{names} was computed in forward and saved: its dependence on {name} is lost when "
            f"backward is differentiated again{_shown(judgement.counterexample)}; save inputs or "
            "outputs and recompute it in backward"
        )
        return Finding(NAME, verdict, said)
    return Finding(NAME, verdict)


def _shown(found: Counterexample | None) -> str:
    if found is None:
        return ""
    return f" (at {found.element}: {found.hand:.6g} instead of {found.true:.6g})"


def lost_nodes(subject: Subject) -> list[Node]:
    """Saved float intermediates that the gradients read: neither inputs nor outputs."""
    outputs = {node for node, _ in subject.outputs}
    read = set(ancestors(subject.gradients.values(), stop=[*subject.saved, *outputs]))
    return [
        node for node in dict.fromkeys(subject.saved)
        if node in read and node not in outputs and node.op not in ("input", "constant", "size")
        and node.dtype.is_float
    ]  # fmt: skip


def _twice(subject: Subject, lost: Sequence[Node]) -> Subject:
    """The backward as a forward, with the derivative that PyTorch would find for it."""
    graph = subject.graph
    outputs = []
    for name, gradient in subject.gradients.items():
        outputs.append((gradient, graph.input(f"grad_grad_{name}", gradient.type)))
    nodes = ancestors([gradient for gradient, _ in outputs])
    found = reverse(outputs, nodes, held=lost)
    cotangents = [cotangent for _, cotangent in subject.outputs]
    inputs = [*subject.inputs, *(node for node in cotangents if node not in subject.inputs)]
    gradients = {
        node.attributes["name"]: found[node] if node in found else zero_like(graph, node)
        for node in inputs if node.dtype.is_float
    }  # fmt: skip
    return Subject(
        graph, inputs, outputs, gradients, conditions=subject.conditions,
        assumptions=subject.assumptions,
    )  # fmt: skip
