"""Does a condition hold for all elements, or for none, by what is declared of the inputs?

In: a ``Subject`` and a node of truth values.  Out: True, False, or None where ranges do not tell.
"""

from __future__ import annotations

from symgrad.ir.graph import Node
from symgrad.proof.judge.equality import facts_of
from symgrad.proof.judge.ranges import Ranges, of_inputs
from symgrad.proof.oracle.subject import Subject

_TURNED = {"gt": "le", "ge": "lt", "ne": "eq"}
_SAME = ("expand", "reshape", "permute", "all", "any")


def truth_of(subject: Subject, node: Node) -> bool | None:
    """What all elements of a node are, by the ranges of what is compared.  [rule: demanded]."""
    facts = facts_of(subject.assumptions, subject.sampler.uses, subject.conditions)
    return _truth(node, Ranges(of_inputs(subject, facts), facts.least_sizes))


def _truth(node: Node, ranges: Ranges) -> bool | None:
    if node.op in _SAME:
        return _truth(node.args[0], ranges)
    if node.op == "constant":
        return bool(node.attributes["value"].value)
    if node.op == "logical_not":
        return _negated(_truth(node.args[0], ranges))
    if node.op in ("logical_and", "logical_or"):
        parts = [_truth(arg, ranges) for arg in node.args]
        decides = node.op == "logical_or"
        return decides if decides in parts else None if None in parts else not decides
    if node.op in _TURNED:
        return _negated(_compared(_TURNED[node.op], node, ranges))
    return _compared(node.op, node, ranges)


def _negated(found: bool | None) -> bool | None:
    return None if found is None else not found


def _compared(op: str, node: Node, ranges: Ranges) -> bool | None:
    """Whether ``left < right``, ``left <= right`` or ``left == right``."""
    if op not in ("lt", "le", "eq") or not node.args[0].dtype.is_float:
        return None
    gap = ranges.of(node.args[1]) + -ranges.of(node.args[0])
    if op == "eq":
        return False if gap.nonzero else None
    if gap.positive or (op == "le" and gap.nonnegative):
        return True
    below = -gap
    return False if below.positive or (op == "lt" and below.nonnegative) else None
