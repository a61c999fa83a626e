"""Documented approximations of smooth functions, read as what they approximate.

In: a subject.  Out: the same with thresholds of softplus left out, and what to print.

Where forward puts NaN for what it cannot compute, as ``logcumsumexp`` does for a sum of
exponentials that underflows, it has no value, and nothing is claimed: the other branch is read.

PyTorch's softplus is its argument where that is above a threshold (20), and so is what public code
makes of it: ``where(u > T, u, log(1 + exp(u)))`` differs from ``log(1 + exp(u))`` by at most
``exp(-T)``, and so does its derivative from ``sigmoid(u)``.  A gradient that is right for the
smooth function is right but for that bound, which is printed.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

from symgrad.ir.graph import Graph, Node
from symgrad.ir.rewrite import rewrite
from symgrad.ops.movement import bare
from symgrad.proof.oracle.subject import Subject

LEAST_THRESHOLD = 16
"""``exp(-16)`` is below the last place of a float32."""


def smoothed(subject: Subject) -> Subject | None:
    """The subject without thresholds of softplus; None where there are none.

    ``Subject.read_as`` then says what was read, and by how much it is off.
    """
    if not any(node.op == "where" for node in subject.everything.nodes):
        return None
    graph, said = Graph(), dict[str, None]()

    forward = {*subject.forward.nodes}

    def rule(node: Node, args: Sequence[Node]) -> Node | None:
        kept = _number_branch(node) if node in forward else None
        if kept is not None:
            said[_NO_NUMBER.format(f" ({node.location})" if node.location else "")] = None
            return args[kept]
        within = _within_doubles(node)
        if within is not None:
            said[_DOUBLES] = None
            return args[within]
        threshold = _threshold(node)
        if threshold is None:
            return None
        said[_sentence(threshold)] = None
        return args[2] if _above(node) else args[1]

    roots = [*subject.inputs, *(node for pair in subject.outputs for node in pair)]
    new = rewrite(graph, [*roots, *subject.gradients.values()], None, rule)
    if not said:
        return None
    found = subject.changed(graph=graph, new=new)
    found.read_as = (*subject.read_as, *said)
    return found


def _sentence(threshold: float) -> str:
    return (
        f"softplus, which is linear above {threshold:g} here, is read as log(1 + exp(x)) "
        f"(off by at most {math.exp(-threshold):.1e})"
    )


_NO_NUMBER = "forward is not NaN{}"
_DOUBLES = "numbers compared with the greatest double are less"


def _within_doubles(node: Node) -> int | None:
    """Which branch a ``where`` takes where what it compares is less than the greatest double."""
    if node.op != "where" or node.args[0].op not in ("gt", "ge", "lt", "le"):
        return None
    above = node.args[0].op in ("gt", "ge")
    for side, limit in enumerate(node.args[0].args):
        value = _number(limit)
        if value is not None and abs(value) == sys.float_info.max:
            return 1 if (value < 0) == (above == (side == 1)) else 2
    return None


def _number_branch(node: Node) -> int | None:
    """Which branch a ``where`` takes where it is a number, if the other one is NaN."""
    if node.op != "where":
        return None
    for nothing, other in ((1, 2), (2, 1)):
        value = _number(node.args[nothing])
        if value is not None and math.isnan(value):
            return other
    return None


def _above(node: Node) -> bool:
    """Is the condition of a ``where`` that something is above a number?"""
    return node.args[0].op in ("gt", "ge")


def _threshold(node: Node) -> float | None:
    """The number above which a ``where`` takes the linear branch of softplus, or its slope."""
    if node.op != "where" or node.args[0].op not in ("gt", "ge", "lt", "le"):
        return None
    compared, limit = node.args[0].args
    number = bare(limit)
    if number.op != "constant":
        return None
    threshold = float(number.attributes["value"].value)
    if not LEAST_THRESHOLD <= threshold < math.inf:
        return None
    linear, smooth = node.args[1:] if _above(node) else node.args[:0:-1]
    matches = _is_softplus(linear, smooth, compared) or _is_slope(linear, smooth, compared)
    return threshold if matches else None


def _is_softplus(linear: Node, smooth: Node, of: Node) -> bool:
    """Are the branches ``s*u`` and ``s*log(1 + exp(u))``, for one scale s?"""
    if linear is of:
        return _is_log1p_exp(smooth, of)
    scale = _scale(of, linear)
    if scale is None or smooth.op not in ("div", "mul"):
        return False
    inner, by = smooth.args
    if smooth.op == "mul" and not _is_log1p_exp(inner, of):
        inner, by = by, inner
    number = _number(by)
    if number is None or not _is_log1p_exp(inner, of):
        return False
    return number == scale if smooth.op == "div" else number * scale == 1


def _scale(of: Node, linear: Node) -> float | None:
    """b, where ``of`` is ``b * linear``."""
    if of.op != "mul" or linear not in of.args:
        return None
    return _number(of.args[1] if of.args[0] is linear else of.args[0])


def _number(node: Node) -> float | None:
    origin = bare(node)
    return float(origin.attributes["value"].value) if origin.op == "constant" else None


def _is_log1p_exp(node: Node, of: Node) -> bool:
    if node.op == "softplus":
        return node.args[0] is of
    if node.op == "log1p":
        return _is_exp(node.args[0], of)
    if node.op == "log":
        return _is_one_more(node.args[0], of)
    return node.op == "logaddexp" and any(
        left is of and _number(right) == 0 for left, right in (node.args, node.args[::-1])
    )


def _is_exp(node: Node, of: Node) -> bool:
    return node.op == "exp" and node.args[0] is of


def _is_one_more(node: Node, of: Node) -> bool:
    """Is it ``1 + exp(u)``?"""
    return node.op == "add" and any(
        _number(left) == 1 and _is_exp(right, of) for left, right in (node.args, node.args[::-1])
    )


def _is_slope(linear: Node, smooth: Node, of: Node) -> bool:
    """Are the branches ``a`` and ``a*sigmoid(u)``, or 1 and ``sigmoid(u)``?"""
    if _is_sigmoid(smooth, of):
        return _number(linear) == 1
    if smooth.op == "mul" and linear in smooth.args:
        other = smooth.args[1] if smooth.args[0] is linear else smooth.args[0]
        return _is_sigmoid(other, of)
    if smooth.op == "div" and smooth.args[0].op == "mul" and _is_one_more(smooth.args[1], of):
        factors = smooth.args[0].args  # a*exp(u)/(1 + exp(u)), as torch writes it
        return any(
            left is linear and _is_exp(right, of) for left, right in (factors, factors[::-1])
        )
    return False


def _is_sigmoid(node: Node, of: Node) -> bool:
    if node.op == "sigmoid":
        return node.args[0] is of
    return (
        node.op == "div" and _is_exp(node.args[0], of) and _is_one_more(node.args[1], of)
    )  # fmt: skip
