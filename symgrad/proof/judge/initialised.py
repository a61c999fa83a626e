"""Is what a program reads from memory written before?

In: a ``Subject``, a node that is 1 where nobody wrote.  Out: is it shown to be 0 everywhere?
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from symgrad.budgets import DOMAIN_WORK
from symgrad.errors import SymgradError
from symgrad.index.lower import Lowering
from symgrad.ir.dim import Dim
from symgrad.ir.dtype import int64
from symgrad.ir.graph import Node, ancestors
from symgrad.ir.rewrite import rewrite
from symgrad.ir.types import TensorType
from symgrad.proof.judge.equalities import FREE
from symgrad.proof.judge.equality import facts_of, with_ranks
from symgrad.proof.judge.reference import gradient_indices
from symgrad.proof.normal.atoms import Undecided
from symgrad.proof.normal.facts import Facts
from symgrad.proof.normal.zero import attempt
from symgrad.proof.oracle.subject import Subject


def vanishes(subject: Subject, node: Node) -> bool:
    """Is a node of the case's inputs 0 everywhere, for all admissible sizes?

    Where every second element is written, or every third, each of these is shown by itself.
    """
    node = _with_signs(node)
    facts = facts_of(
        subject.assumptions, subject.sampler.uses, subject.conditions,
        shapes={name: one.shape for name, one in subject.by_name.items()},
    )  # fmt: skip
    facts = with_ranks(facts, ancestors([node]))
    return _is_zero(node, facts) or any(
        all(_is_zero(part, facts) for part in _every(node, axis, step))
        for axis, step in sorted(_strides(node))
    )


def _with_signs(node: Node) -> Node:
    """The node with comparisons of reals as those of integers, which leave no null set out.

    What is drawn is an input.
    """
    graph = node.graph
    signs: dict[tuple[Node, Node], Node] = {}
    zeros: dict[Node, Node] = {}

    def rule(part: Node, args: Sequence[Node]) -> Node | None:
        if part.op == "draw":
            return graph.input(f"draw{FREE}{len(graph.nodes)}", part.type)
        if part.op not in _COMPARISONS or not part.args[0].dtype.is_float:
            return None
        left, right = args
        turned = (right, left) in signs
        pair = (right, left) if turned else (left, right)
        if pair not in signs:
            signs[pair] = graph.input(
                f"sign{FREE}{len(graph.nodes)}", TensorType(int64, part.shape)
            )
            zeros[signs[pair]] = graph.expand(graph.constant(0, int64), part.shape)
        sign = signs[pair]
        both = (zeros[sign], sign) if turned else (sign, zeros[sign])
        return graph.apply(part.op, *both)

    return rewrite(graph, [node], rule=rule, named=False)[node]


_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


def _is_zero(node: Node, facts: Facts) -> bool:
    """Is it 0, and not almost everywhere alone?"""
    try:
        element = Lowering(node.graph).element(node, gradient_indices(node.shape))
        found = attempt(element, None, facts, budget=DOMAIN_WORK)
    except (SymgradError, Undecided):
        return False
    return found.is_zero and not found.requirements and not found.obligations


def _strides(node: Node) -> set[tuple[int, int]]:
    """The axes along which elements are left out by what is written, and the steps."""
    return {
        (axis, step)
        for part in ancestors([node]) if part.op == "unslice" and part.shape == node.shape
        for axis, step in enumerate(part.attributes["steps"]) if 1 < step <= MOST_PARTS
    }  # fmt: skip


def _every(node: Node, axis: int, step: int) -> Iterator[Node]:
    """The elements at each remainder by the step along an axis."""
    for first in range(step):
        starts = tuple(Dim.of(first if place == axis else 0) for place in range(node.rank))
        steps = tuple(step if place == axis else 1 for place in range(node.rank))
        count = (node.shape[axis] - first + (step - 1)) // step
        sizes = tuple(count if place == axis else size for place, size in enumerate(node.shape))
        yield node.graph.apply("slice", node, starts=starts, steps=steps, sizes=sizes)


MOST_PARTS = 8
"""The largest step of a slice whose parts are shown one by one."""
